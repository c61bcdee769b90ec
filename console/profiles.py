"""What each worker of a run is like, as its profile says, in words. Profiles come with the run's events as
JSON; a simulation's are ``name:fps``, and what can't be read is left out."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from console.text import size
from farm.fleet import LinkProfile, WorkerProfile


def read_profile(text: str) -> WorkerProfile | None:
    """A profile as ``RunOpened.fleet`` and ``WorkerAdded.profile`` have it."""
    try:
        return msgspec.json.decode(text, type=WorkerProfile)
    except msgspec.DecodeError:
        return None


def profile_of(worker: str, fleet: Iterable[str], added: str = "") -> WorkerProfile | None:
    """The profile of ``worker``: of the one that was added (``added``), else of the fleet's."""
    if added:
        return read_profile(added)
    mark = msgspec.json.encode(worker).decode()
    found = (read_profile(text) for text in fleet if mark in text)
    return next((profile for profile in found if profile is not None and profile.name == worker), None)


def cap_words(fps_cap: float | None) -> str:
    return "no limit" if fps_cap is None else f"at most {fps_cap:g} fps"


def profile_words(profile: WorkerProfile) -> str:
    """All that a profile says, in one line."""
    words = [cap_words(profile.fps_cap)]
    if profile.overhead_seconds:
        words.append(f"{profile.overhead_seconds:g} s a claim")
    return ", ".join([*words, *resource_words(profile)])


def resource_words(profile: WorkerProfile) -> list[str]:
    """What its machine is like."""
    words = []
    if profile.memory_bytes is not None:
        words.append(f"memory {size(profile.memory_bytes)} at most")
    if profile.link is not None:
        words.append(f"link {link_words(profile.link)}")
    return words


def link_words(link: LinkProfile) -> str:
    speed = "without limit" if link.mib_per_second is None else f"{link.mib_per_second:g} MiB/s"
    latency = f", {link.latency_seconds:g} s a block" if link.latency_seconds else ""
    return speed + latency + (f", drops {link.drop_rate:.0%}" if link.drop_rate else "")


def encoder_threads(settings: str) -> int | None:
    """Of every worker's encoder, from the job's settings as JSON; None: not said."""
    try:
        return msgspec.json.decode(settings, type=_Settings).video.threads
    except msgspec.DecodeError:
        return None


class _Video(msgspec.Struct):
    threads: int


class _Settings(msgspec.Struct):
    video: _Video
