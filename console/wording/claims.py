"""What happens to claims and chunks, in words."""

from __future__ import annotations

from typing import Final

from console.text import plural
from console.wording.lines import LineKind, Table, Words
from farm import events as ev


def _claim_granted(e: ev.ClaimGranted) -> Words:
    verb = "duplicates" if e.duplicate else "claimed"
    text = f"{verb} {e.token}  frames [{e.start}, {e.stop})"
    if e.reopened and not e.duplicate:
        text += ", reopened"
    return ("duplicate" if e.duplicate else "claim"), e.worker, text + (f"  {e.why}" if e.why else "")


_ENDS: Final[dict[str, tuple[LineKind, str]]] = {
    "completed": ("end", "completed"),
    "superseded": ("superseded", "superseded"),
    "lapsed": ("lapse", "LAPSED"),
    "stalled": ("lapse", "LAPSED (no progress)"),
    "timed out": ("lapse", "LAPSED (time limit)"),
    "failed": ("end", "failed"),
    "released": ("end", "released"),
    "worker left": ("end", "gave up"),
    "relay restarted": ("end", "closed"),
    "voided": ("end", "voided"),
}


def _claim_ended(e: ev.ClaimEnded) -> Words:
    kind, verb = _ENDS.get(e.how, ("end", e.how))
    text = f"{verb} {e.token}" + (f"  {e.reason}" if e.reason else "")
    if e.wasted_frames:
        text += f"  ({plural(e.wasted_frames, 'frame')} wasted)"
    return kind, e.worker, text


def _duplicate_wanted(e: ev.DuplicateWanted) -> Words:
    return "operator", "", f"a copy of c{e.chunk} is wanted by {e.by}: the next worker that asks gets it"


def _claim_released(e: ev.ClaimReleased) -> Words:
    return "operator", e.worker, f"{e.token} is taken away by {e.by}"


def _range_reopened(e: ev.RangeReopened) -> Words:
    return "reopen", "", f"reopened frames [{e.start}, {e.stop}) of c{e.chunk}"


def _chunk_split(e: ev.ChunkSplit) -> Words:
    return "split", "", f"c{e.chunk} is split at frame {e.at}" + (f": {e.why}" if e.why else "")


def _chunk_completed(e: ev.ChunkCompleted) -> Words:
    return "end", "", f"chunk c{e.chunk} is complete"


def _claim_refused(e: ev.ClaimRefused) -> Words:
    reason = e.reason if e.token in e.reason else f"{e.token} {e.reason}"
    held = f"; held by {e.holder}" if e.holder and f"held by {e.holder}" not in reason else ""
    return "refusal", e.worker, f"refused {e.asked}: not claimant ({reason}{held})"


def _message_refused(e: ev.MessageRefused) -> Words:
    return "refusal", e.worker, f"refused {e.asked}: {e.reason} (received {e.received})"


WORDS: Final[Table] = {
    ev.ClaimGranted: _claim_granted,
    ev.ClaimEnded: _claim_ended,
    ev.DuplicateWanted: _duplicate_wanted,
    ev.ClaimReleased: _claim_released,
    ev.RangeReopened: _range_reopened,
    ev.ChunkSplit: _chunk_split,
    ev.ChunkCompleted: _chunk_completed,
    ev.ClaimRefused: _claim_refused,
    ev.MessageRefused: _message_refused,
}
