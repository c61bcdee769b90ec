"""Manifests and contents made up for tests, without a media file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from farm import events as ev
from farm.contents import Contents, StreamContents, new_checksums, new_times
from farm.manifest import Manifest, manifest_of, read_events

SOUND = StreamContents(
    kind="audio",
    codec="aac",
    packets=40,
    sha256="aa" * 32,
    time_base=(1, 48_000),
    header_sha256="bb" * 32,
    first_pts=0,
    last_pts=40_000,
)


def records(events: Iterable[ev.AnyEvent]) -> list[ev.Record]:
    return [ev.Record(seq, float(seq), event) for seq, event in enumerate(events)]


def opened(cuts: Sequence[int]) -> ev.RunOpened:
    return ev.RunOpened(
        run_id="r1",
        input="in.mp4",
        output="out.mp4",
        frames=cuts[-1],
        cuts=tuple(cuts),
        settings_hash="h",
        fingerprint="f",
        build="b",
        options=ev.RelayOptions(),
        settings="{}",
    )


def credit(part: int, worker: str, token: str, **changes: Any) -> ev.PartCredited:
    fields = {"frames": 1, "file": f"{part}", "size_bytes": 1, "sha256": "s"} | changes
    return ev.PartCredited(part=part, worker=worker, token=token, **fields)


def grant(token: str, worker: str, start: int, stop: int, *, duplicate: bool = False) -> ev.ClaimGranted:
    return ev.ClaimGranted(
        token=token, worker=worker, start=start, stop=stop, lease_seconds=1.0, duplicate=duplicate
    )


def contents(
    checksums: Sequence[int], pts: Sequence[int] | None = None, *others: StreamContents, **changes: Any
) -> Contents:
    """A video of these packets, in decoding order; each frame lasts 100 ticks."""
    times = [100 * n for n in range(len(checksums))] if pts is None else list(pts)
    video = StreamContents(
        kind="video",
        codec="h264",
        packets=len(checksums),
        sha256=f"{hash((tuple(checksums), 0)) & (1 << 63) - 1:064x}",
        time_base=(1, 2500),
        header_sha256="cc" * 32,
        length_prefixed=True,
        first_pts=min(times, default=None),
        last_pts=max(times, default=None),
    )
    made = Contents(
        container="mp4",
        size_bytes=1000 * len(checksums),
        video=video,
        others=others,
        pts=new_times(times),
        checksums=new_checksums(checksums),
        last_duration=100,
    )
    return replace(made, **changes)


def manifest(
    right: Contents, cuts: Sequence[int], makers: Sequence[tuple[str, str]] | None = None
) -> Manifest:
    """Of an output that is ``right``, in parts with these cuts; ``makers``: worker and token of each."""
    parts = len(cuts) - 1
    chosen = makers or [(f"w{part % 2 + 1}", f"c{part}#1@e1") for part in range(parts)]
    events: list[ev.AnyEvent] = [opened(cuts)]
    for part, (worker, token) in enumerate(chosen):
        events.append(grant(token, worker, cuts[part], cuts[part + 1]))
        events.append(credit(part, worker, token))
    counts = tuple(cuts[part + 1] - cuts[part] for part in range(parts))
    events += read_events(right, counts, (), right.duration_seconds)
    events.append(ev.OutputVerified(packets_sha256=right.video.sha256, output_bytes=1, stream_frames=1))
    made = manifest_of(records(events))
    assert made is not None
    return made
