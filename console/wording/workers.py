"""What happens to workers, in words."""

from __future__ import annotations

from typing import Final

from console.profiles import cap_words, profile_words, read_profile
from console.text import clock, plural
from console.wording.lines import Table, Words
from farm import events as ev


def _worker_joined(e: ev.WorkerJoined) -> Words:
    cap = "" if e.fps_cap is None else f", at most {e.fps_cap:g} fps"
    return "worker", e.worker, "joined" + (f", pid {e.pid}" if e.pid else "") + cap


def _worker_added(e: ev.WorkerAdded) -> Words:
    profile = read_profile(e.profile)
    return "operator", e.worker, f"added by {e.by}" + (f": {profile_words(profile)}" if profile else "")


def _worker_throttled(e: ev.WorkerThrottled) -> Words:
    return "operator", e.worker, f"throttled by {e.by}: {cap_words(e.fps_cap)}"


def _worker_dismissed(e: ev.WorkerDismissed) -> Words:
    return "operator", e.worker, f"sent away by {e.by}: it finishes its part, gives back the rest and leaves"


def _worker_left(e: ev.WorkerLeft) -> Words:
    return ("lost", e.worker, f"LOST: {e.reason}") if e.lost else ("worker", e.worker, f"left: {e.reason}")


def _worker_parked(e: ev.WorkerParked) -> Words:
    return "idle", e.worker, f"parked: {e.why}"


def _worker_blocked(e: ev.WorkerBlocked) -> Words:
    text = f"blocked until {clock(e.until)} after {plural(e.failures, 'failure')} in a row"
    return "failure", e.worker, text


def _worker_forgiven(e: ev.WorkerForgiven) -> Words:
    return "worker", e.worker, "may ask for work again"


WORDS: Final[Table] = {
    ev.WorkerJoined: _worker_joined,
    ev.WorkerAdded: _worker_added,
    ev.WorkerThrottled: _worker_throttled,
    ev.WorkerDismissed: _worker_dismissed,
    ev.WorkerLeft: _worker_left,
    ev.WorkerParked: _worker_parked,
    ev.WorkerBlocked: _worker_blocked,
    ev.WorkerForgiven: _worker_forgiven,
}
