"""The manifest of an output: what it held when it was verified, part by part, and who made each part.

It comes from a run's records alone, so that the recording is as good as a manifest, and a file beside the
output (``OUTPUT.manifest.json``) is for where the recording can't go. docs/manifest.md describes the format.

Rules of this file:
- a reader believes nothing: what is not a manifest, or of a newer version, is said in one sentence;
- new fields are optional; fields are never renamed.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from farm import events as ev
from farm.contents import (
    IMAGE_FILES,
    Contents,
    StreamContents,
    checksums_from_hex,
    checksums_to_hex,
    new_checksums,
    new_times,
)
from farm.errors import IdError, InputError, OutputError
from farm.frames import parse_token
from farm.journal.history import History, read_history
from farm.outputs import image_pattern
from farm.paths import atomic_file, check_free, check_name_length, printable, reason
from farm.settings import JobSettings
from farm.store import parse_part_file_name

MANIFEST_SUFFIX = ".manifest.json"
FORMAT = "uneven manifest"
VERSION = 1
#: So many packets go into one event.
_EVENT_PACKETS = 1024


class ManifestPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One part, and the claim under which the copy that counts was made."""

    part: int
    start: int  #: frames ``[start, stop)`` of the job
    stop: int
    worker: str = ""  #: empty where the records don't say any more
    claim: str = ""  #: its token, ``c3#2@e1``
    chunk: int | None = None
    attempt: int | None = None  #: at that chunk, from 1
    adopted: bool = False  #: found in the store when the run was resumed
    sha256: str = ""  #: of the part file
    pts: tuple[int, ...] = ()  #: of its packets in the output, in decoding order, in ticks of the video
    crc32: str = ""  #: of their data, eight hex digits each

    @property
    def maker(self) -> str:
        """Who made it, as which attempt, in words."""
        claim = f"chunk c{self.chunk}, attempt {self.attempt}, claim {self.claim}" if self.claim else ""
        adopted = "found in the store at a resume" if self.adopted else ""
        details = "; ".join(words for words in (claim, adopted) if words)
        return f"{self.worker or 'an unknown worker'} made it" + (f" ({details})" if details else "")


class ManifestRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that made the output."""

    id: str
    started: str  #: wall time, for people
    input: str
    fingerprint: str  #: of the input
    build: str
    settings_hash: str
    settings: dict[str, Any]  #: as farm.settings.JobSettings


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a run's output is, exactly."""

    format: str = FORMAT
    version: int = VERSION
    output: str  #: where it was written
    container: str  #: ``mp4`` (also mov), ``matroska`` (also webm) or ``images``
    size_bytes: int
    frames: int
    duration_seconds: float
    run: ManifestRun
    video: StreamContents
    others: tuple[StreamContents, ...] = ()
    lost_pts: tuple[int, ...] = ()  #: of frames that could not be decoded, in the source's time base
    parts: tuple[ManifestPart, ...] = ()

    @property
    def is_images(self) -> bool:
        return self.container == IMAGE_FILES

    @property
    def settings(self) -> JobSettings:
        """Raises InputError for what this version doesn't know."""
        try:
            return msgspec.convert(self.run.settings, JobSettings)
        except msgspec.ValidationError as error:
            raise InputError(
                f"the settings in the manifest of {printable(self.output)} are of another version: {error}"
            ) from error

    def packets(self) -> Packets:
        """All packets of the video. Raises InputError if they are damaged."""
        pts, checksums, counts = new_times(), new_checksums(), []
        try:
            for part in self.parts:
                found = checksums_from_hex(part.crc32)
                if len(found) != len(part.pts):
                    raise ValueError(f"part {part.part} has {len(part.pts)} times, {len(found)} checksums")
                pts.extend(part.pts)
                checksums.extend(found)
                counts.append(len(found))
        except (ValueError, OverflowError) as error:
            raise InputError(f"the manifest of {printable(self.output)} is damaged: {error}") from error
        return Packets(pts, checksums, tuple(accumulate(counts)), self.parts)


class Packets(msgspec.Struct, frozen=True):
    """The packets of a video as they should be, in decoding order."""

    pts: array[int]
    checksums: array[int]
    stops: tuple[int, ...]  #: of each part: the packet after its last one
    parts: tuple[ManifestPart, ...]

    def part_of(self, packet: int) -> ManifestPart | None:
        """None: beyond the last one."""
        place = bisect_right(self.stops, packet)
        return self.parts[place] if place < len(self.parts) else None


def manifest_path(output: Path) -> Path:
    """Where the manifest of an output is, if it was asked for."""
    return output.parent / (output.name + MANIFEST_SUFFIX)


def check_manifest(output: Path, overwrite: bool | None) -> None:
    """Raises OutputError for a manifest that could not be written, or would replace a file unasked."""
    path = manifest_path(output)
    check_name_length(path)
    check_free(path, overwrite)
    if path.exists() and not path.is_file():
        raise OutputError(f"{printable(path)} is not an ordinary file; choose another name for the output")


def read_events(
    contents: Contents, part_packets: tuple[int, ...], lost_pts: tuple[int, ...], duration_seconds: float
) -> list[ev.AnyEvent]:
    """An output that was verified, as events from which its manifest can be made."""
    events: list[ev.AnyEvent] = [
        ev.OutputRead(
            container=contents.container,
            size_bytes=contents.size_bytes,
            duration_seconds=duration_seconds,
            video=contents.video,
            others=contents.others,
            part_packets=part_packets,
            lost_pts=lost_pts,
        )
    ]
    for first in range(0, contents.frames, _EVENT_PACKETS):
        chosen = slice(first, first + _EVENT_PACKETS)
        crc32 = checksums_to_hex(contents.checksums[chosen])
        events.append(ev.PacketsRead(pts=tuple(contents.pts[chosen]), crc32=crc32))
    return events


def manifest_of(records: Iterable[ev.Record]) -> Manifest | None:
    """The manifest of a run's output, from its records; None if the run has no verified output, or is of a
    version that didn't write down what was in it. Raises what ``records`` raises."""
    noted = _Noted()
    history = read_history(noted.tap(records))
    if noted.opened is None or noted.read is None or not noted.verified:
        return None
    opened, read = noted.opened, noted.read
    return Manifest(
        output=opened.output,
        container=read.container,
        size_bytes=read.size_bytes,
        frames=read.video.packets,
        duration_seconds=read.duration_seconds,
        run=ManifestRun(
            id=opened.run_id,
            started=noted.started,
            input=opened.input,
            fingerprint=opened.fingerprint,
            build=opened.build,
            settings_hash=opened.settings_hash,
            settings=msgspec.json.decode(opened.settings or "{}"),
        ),
        video=read.video,
        others=read.others,
        lost_pts=read.lost_pts,
        parts=tuple(_parts(history, read.part_packets, noted)),
    )


class _Noted:
    """What passes by on the way to the history."""

    def __init__(self) -> None:
        self.opened: ev.RunOpened | None = None
        self.started = ""
        self.read: ev.OutputRead | None = None
        self.pts = new_times()
        self.checksums = new_checksums()
        self.verified = False
        self.adopted: dict[int, tuple[str, str]] = {}  #: worker and claim of parts found in the store
        self._granted: dict[str, str] = {}

    def tap(self, records: Iterable[ev.Record]) -> Iterator[ev.Record]:
        for record in records:
            self._note(record.event)
            yield record

    def _note(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.RunOpened():
                self.opened = self.opened or event
            case ev.RelayStarted(wall_time=wall_time):
                self.started = self.started or wall_time
            case ev.ClaimGranted(token=token, worker=worker):
                self._granted[token] = worker
            case ev.PartAdopted(part=part, file=file):
                # Its file's name tells the claim, and the journal whose that was, unless that was lost.
                named = parse_part_file_name(file)
                claim = str(named.token) if named is not None else ""
                self.adopted[part] = self._granted.get(claim, ""), claim
            case ev.OutputRead():  # of a join that was done once more the last counts
                self.read, self.verified = event, False
                self.pts, self.checksums = new_times(), new_checksums()
            case ev.PacketsRead(pts=pts, crc32=crc32):
                self.pts.extend(pts)
                self.checksums.extend(checksums_from_hex(crc32))
            case ev.OutputVerified():
                self.verified = True
            case _:
                pass


def _parts(history: History, counts: tuple[int, ...], noted: _Noted) -> Iterator[ManifestPart]:
    first = 0
    for life, count in zip(history.parts, counts, strict=False):
        stop = first + count
        adopted = not life.worker
        worker, claim = noted.adopted.get(life.part, ("", "")) if adopted else (life.worker, life.token)
        token = parse_token(claim) if claim else None
        yield ManifestPart(
            part=life.part,
            start=life.start,
            stop=life.stop,
            worker=worker,
            claim=claim,
            chunk=token.chunk if token else None,
            attempt=token.attempt if token else None,
            adopted=adopted,
            sha256=life.sha256,
            pts=tuple(noted.pts[first:stop]),
            crc32=checksums_to_hex(noted.checksums[first:stop]),
        )
        first = stop


def write_manifest(manifest: Manifest, path: Path) -> None:
    """Write it under its name, whole, for those who may read the output; what had that name is replaced.
    Raises OutputError."""
    with atomic_file(path) as file:
        with suppress(OSError):
            os.fchmod(file.fileno(), _a_file_of(manifest).stat().st_mode & 0o666)
        file.write(msgspec.json.encode(manifest) + b"\n")


def _a_file_of(manifest: Manifest) -> Path:
    """The output, or its first image."""
    output = Path(manifest.output)
    if not manifest.is_images:
        return output
    pattern = image_pattern(output)
    return pattern.folder / pattern.name(manifest.video.first_pts or 0)


def read_manifest(path: Path) -> Manifest:
    """Raises InputError for what can't be read, is no manifest, or is of a newer version."""
    name = printable(path)
    try:
        data = path.read_bytes()
        head = msgspec.json.decode(data, type=_Head)
        if head.format != FORMAT:
            raise InputError(f"{name} is not a manifest of uneven")
        if head.version > VERSION:
            raise InputError(
                f"the manifest {name} has version {head.version} and this uneven reads up to {VERSION}; use "
                "a newer uneven"
            )
        manifest = msgspec.json.decode(data, type=Manifest)
        for part in manifest.parts:
            if part.claim:
                parse_token(part.claim)
    except (msgspec.DecodeError, UnicodeDecodeError, IdError) as error:
        raise InputError(f"{name} is not a manifest of uneven, or is damaged: {error}") from error
    except OSError as error:
        raise InputError(f"the manifest {name} can't be read: {reason(error)}") from error
    return manifest


class _Head(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0
