"""``uneven verify``: an output is read back and compared with what its run made, and with its source.

Rules of this file:
- the first difference is told in one sentence, with the frame, the part and who made it; exit code 6;
- what could not be compared is said beside the result, and never counts as equal;
- with ``--json`` the same goes to standard output as one object, also when the output is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer

from console import options as opt
from console import sourceoptions as src
from console import text
from console.evidence import Evidence, Found, find_evidence, named_evidence
from console.groups import grouped
from console.streams import give_line
from console.waiting import waiting
from farm.contents import Contents
from farm.difference import Difference, in_part
from farm.engines.child import ChildCrashed, run_in_child_blocking
from farm.engines.local import prepare
from farm.errors import ExitCode, InputError, UsageError, VerificationError
from farm.facts import Checked, Pictures
from farm.manifest import Manifest, ManifestPart, Packets
from farm.outputs import is_images
from farm.paths import printable
from farm.scratch import scratch_folder
from farm.sequence import find_sequence
from farm.settings import CONTAINERS, IMAGES, JobSettings
from farm.source import SourceIndex, save_index
from farm.trim import parse_trim

_Task = Literal["read_finished", "index_job", "check_finished"]
_DOING: Final[dict[_Task, str]] = {
    "read_finished": "reading",
    "index_job": "reading",
    "check_finished": "checking",
}
_OF_IMAGES = "give it as it was rendered, such as frame_%05d.png"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference, for machines. Frames are counted as they are shown, in the output."""

    kind: str
    words: str
    frame: int | None = None
    seconds: float | None = None
    part: int | None = None
    part_frames: tuple[int, int] | None = None  #: ``[start, stop)`` of the job
    worker: str | None = None
    chunk: int | None = None
    attempt: int | None = None
    claim: str | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints."""

    output: str
    right: bool
    complete: bool = True  #: all of it could be compared with what its run made
    exit_code: int
    difference: Place | None = None
    frames: int | None = None
    duration_seconds: float | None = None
    packets_sha256: str | None = None
    decoded_frames: int | None = None
    streams: tuple[str, ...] = ()
    run: str | None = None
    compared_with: str | None = None  #: the manifest's path, or "the recording"; None: there was neither
    against: str | None = None
    pictures_compared: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """How the source is to be taken, as typed (console.groups); None: as the run took it."""

    video_stream: src.VideoStream = None
    fps: src.Fps = None
    rotate: Annotated[str | None, typer.Option("--rotate", help="As at render: keep or apply.")] = None
    on_gap: Annotated[str | None, typer.Option("--on-gap", help="As at render: fail, hold or skip.")] = None
    conform: src.Conform = None
    start: src.Start = None
    stop: src.Stop = None
    frames: src.Frames = None
    every: Annotated[
        int | None, typer.Option("--every", min=1, metavar="N", help="Of those, every N-th frame.")
    ] = None
    start_number: src.StartNumber = None

    def over(self, settings: JobSettings) -> JobSettings:
        """``settings`` with what is asked otherwise. Raises UsageError."""
        old = settings.source
        source = src.source_settings(
            old.stream if self.video_stream is None else self.video_stream,
            self.fps,
            self.rotate or old.rotate,
            old.on_size_change,
            old.on_error,
        )
        if self.fps is None:
            source = msgspec.structs.replace(source, fps=old.fps)
        trim = settings.trim
        if any(value is not None for value in (self.start, self.stop, self.frames, self.every)):
            trim = parse_trim(self.start, self.stop, self.frames, self.every or 1)
        taken = src.taking(
            msgspec.structs.replace(settings, source=source),
            self.on_gap or settings.sequence.on_gap,
            self.conform,
            trim,
            self.start_number,
        )
        sequence, images = taken.sequence, settings.images
        if self.conform is None:
            sequence = msgspec.structs.replace(sequence, conform=settings.sequence.conform)
        if self.start_number is not None:
            images = msgspec.structs.replace(images, start_number=self.start_number)
        return msgspec.structs.replace(taken, sequence=sequence, images=images)


@grouped
def verify(
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="A video, frame_%05d.png, or a folder of images.")
    ],
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Compare with what that run made.")
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option("--manifest", metavar="FILE", help="Compare with that manifest.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="INPUT",
            help="Compare frames and times with this source, too; of a lossless output with --decode also "
            "the pictures.",
        ),
    ] = None,
    decode: opt.Decode = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False,
    *,
    asked: _Asked,
) -> int:
    """Read an output back and compare it with what its run made: frames, times, packets, streams.

    The run is known by the manifest beside the output, by the output's name, or by the hash of its packets
    where the file was moved or renamed. The first difference is told with the frame, the part, and the
    worker and attempt that made it. How the source is taken (--start, --fps, …) is known from the run; what
    is given here counts more.
    """
    if against is None and asked != _Asked():
        raise UsageError("how the source was taken matters with --against INPUT only; give that, too")
    named = named_evidence(run, manifest)
    inspection = _Inspection(_target(output))
    try:
        verdict = inspection.carry_out(named, against, asked, decode)
    except VerificationError as error:
        if json:
            give_line(msgspec.json.encode(inspection.wrong(error)).decode())
        raise
    give_line(msgspec.json.encode(verdict).decode() if json else inspection.text(verdict))
    return ExitCode.DONE


def _target(output: Path) -> Path:
    """The file that is meant, or the pattern of the images. Raises InputError, UsageError."""
    if output.is_dir():
        pattern = find_sequence(output)
        if pattern is None:
            raise InputError(f"{printable(output)} is a folder without numbered images; {_OF_IMAGES}")
        if not is_images(pattern.path):
            raise UsageError(
                f"{printable(pattern.path)}: verify takes images that uneven writes: {_OF_IMAGES}"
            )
        return pattern.path
    if not is_images(output) and not output.is_file():
        raise InputError(f"there is no file {printable(output)}")
    return output


class _Inspection:
    """One output and what is found out about it, in the order in which it is."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._contents: Contents | None = None
        self._found = Found()
        self._difference: Difference | None = None
        self._notes: list[str] = []
        self._pictures: Pictures | None = None
        self._against: Path | None = None

    def carry_out(self, named: Evidence | None, against: Path | None, asked: _Asked, decode: bool) -> Verdict:
        """Raises VerificationError at the first thing that is wrong, InputError, UsageError, OutputError."""
        self._against = against
        prepare()
        with scratch_folder() as scratch:
            log = scratch / "verify.log"
            self._read(named, log)
            index_path, settings, lost_pts = self._source(asked, scratch, log)
            checked = self._child(
                log,
                "check_finished",
                self._output,
                self._contents,
                index_path,
                settings,
                "all" if decode else "sample",
                lost_pts,
            )
            assert isinstance(checked, Checked)
        self._judge_pictures(checked.pictures)
        return self._verdict(checked)

    def _read(self, named: Evidence | None, log: Path) -> None:
        """Read the output, and compare it with what there is to compare with."""
        unreadable: VerificationError | None = None
        try:
            self._contents = self._child(log, "read_finished", self._output)
        except VerificationError as error:
            unreadable = error
        self._found = find_evidence(self._output, self._contents, named)
        self._notes += self._found.notes
        if unreadable is not None:
            raise self._told(unreadable) from unreadable
        if self._found.comparison is not None:
            self._notes += self._found.comparison.notes
            if self._found.comparison.difference is not None:
                self._differs(self._found.comparison.difference)

    def _told(self, error: VerificationError) -> VerificationError:
        """An output that can't be read, and how much of it is there if that is known."""
        manifest = self._manifest
        if manifest is None or manifest.is_images or not self._output.is_file():
            return error
        size = self._output.stat().st_size
        if size >= manifest.size_bytes:
            return error
        words = f"it is truncated: {size:,} of {manifest.size_bytes:,} bytes are there"
        self._difference = Difference(kind="truncated", words=words)
        return VerificationError(f"{printable(self._output)} can't be read, {words}")

    def _source(
        self, asked: _Asked, scratch: Path, log: Path
    ) -> tuple[Path | None, JobSettings | None, tuple[int, ...]]:
        """The index of the source as the run took it, the run's settings, and the frames that were lost."""
        manifest = self._manifest
        settings = None if manifest is None else manifest.settings
        if self._against is None:
            return None, settings, ()
        container = IMAGES if is_images(self._output) else CONTAINERS.get(self._output.suffix.lower(), "mp4")
        taken = asked.over(settings or JobSettings(container=container))
        index = self._child(log, "index_job", self._against, taken)
        assert isinstance(index, SourceIndex)
        if manifest is not None and index.fingerprint != manifest.run.fingerprint:
            self._notes.append(
                f"{printable(self._against)} is not the input that the run had, or was changed"
            )
        path = scratch / "index"
        save_index(index, path)
        return path, taken if settings is not None else None, manifest.lost_pts if manifest else ()

    def _judge_pictures(self, pictures: Pictures | None) -> None:
        self._pictures = pictures
        if pictures is None:
            return
        if pictures.why_not:
            self._notes.append(f"pictures were not compared with the source's: {pictures.why_not}")
        if pictures.differs is None:
            return
        part = self._part_shown(pictures.differs)
        words = f"frame {pictures.differs} at {pictures.seconds:.3f} s is another picture than the source's"
        if part is not None:
            words += f"; it is {in_part(part)}"
        self._differs(
            Difference(
                kind="picture", words=words, frame=pictures.differs, seconds=pictures.seconds, part=part
            )
        )

    def _part_shown(self, frame: int) -> ManifestPart | None:
        if self._manifest is None:
            return None
        packets: Packets = self._manifest.packets()
        shown = sorted(range(len(packets.pts)), key=packets.pts.__getitem__)
        return packets.part_of(shown[frame])

    def _differs(self, difference: Difference) -> None:
        self._difference = difference
        run = self._manifest.run.id if self._manifest is not None else ""
        what = f"is not what run {run} made" if run else "is not right"
        raise VerificationError(f"{printable(self._output)} {what}: {difference.words}")

    @property
    def _manifest(self) -> Manifest | None:
        return self._found.evidence.manifest if self._found.evidence is not None else None

    def _child(self, log: Path, task: _Task, read: Path, *args: object) -> Any:
        """What a task finds out about the file ``read``."""
        try:
            with waiting(f"{_DOING[task]} {printable(read)}") as on_progress:
                return run_in_child_blocking(
                    f"farm.media.tasks:{task}", read.absolute(), *args, log=log, on_progress=on_progress
                )
        except ChildCrashed as crash:
            raise VerificationError(
                f"{printable(self._output)} is not right: reading it crashed the media library"
            ) from crash

    # --- what is said ------------------------------------------------------------------------------------

    def _verdict(self, checked: Checked) -> Verdict:
        facts, pictures, comparison = checked.facts, self._pictures, self._found.comparison
        compared = pictures.compared if pictures is not None and not pictures.why_not else None
        return Verdict(
            output=str(self._output),
            right=True,
            complete=comparison is not None and comparison.complete,
            exit_code=0,
            frames=facts.frames,
            duration_seconds=facts.duration_seconds,
            packets_sha256=facts.packets_sha256,
            decoded_frames=max(facts.decoded_frames, compared or 0),
            streams=facts.streams,
            run=self._manifest.run.id if self._manifest is not None else None,
            compared_with=self._found.evidence.source if self._found.evidence is not None else None,
            against=str(self._against) if self._against is not None else None,
            pictures_compared=compared,
            notes=tuple(self._notes),
        )

    def wrong(self, error: VerificationError) -> Verdict:
        """The same of an output that is not right."""
        difference = self._difference or Difference(kind="unreadable", words=str(error))
        part, contents = difference.part, self._contents
        return Verdict(
            output=str(self._output),
            right=False,
            exit_code=int(ExitCode.VERIFICATION),
            difference=Place(
                kind=difference.kind,
                words=difference.words,
                frame=difference.frame,
                seconds=difference.seconds,
                part=part.part if part else None,
                part_frames=(part.start, part.stop) if part else None,
                worker=part.worker or None if part else None,
                chunk=part.chunk if part else None,
                attempt=part.attempt if part else None,
                claim=part.claim or None if part else None,
            ),
            frames=contents.frames if contents is not None else None,
            packets_sha256=contents.video.sha256 if contents is not None else None,
            streams=contents.stream_words if contents is not None else (),
            run=self._manifest.run.id if self._manifest is not None else None,
            compared_with=self._found.evidence.source if self._found.evidence is not None else None,
            against=str(self._against) if self._against is not None else None,
            notes=tuple(self._notes),
        )

    def text(self, verdict: Verdict) -> str:
        """For people, a line for each thing."""
        whole = verdict.complete or verdict.run is None
        assert verdict.frames is not None and verdict.decoded_frames is not None
        lines = [
            f"{printable(self._output)} is right" + ("" if whole else ", as far as that can be told"),
            f"frames    {text.count(verdict.frames)}, {verdict.duration_seconds or 0:.3f} s; "
            f"{text.count(verdict.decoded_frames)} decoded for the check",
            *(f"stream    {line}" for line in verdict.streams),
            f"packets   sha256 {verdict.packets_sha256}",
        ]
        if self._manifest is None:
            lines.append("run       none on record: there is nothing to compare it with")
        else:
            lines.append(f"run       as {_made(self._manifest)}; from {verdict.compared_with}")
        if verdict.against is not None:
            pictures = verdict.pictures_compared
            also = f"; {text.plural(pictures, 'picture')} the same" if pictures is not None else ""
            lines.append(f"source    frames and times as in {printable(verdict.against)}{also}")
        lines += [f"note      {text.safe(note)}" for note in verdict.notes]
        return "\n".join(lines)


def _made(manifest: Manifest) -> str:
    """The run, and who made how much of its output."""
    parts: dict[str, int] = {}
    for part in manifest.parts:
        parts[part.worker] = parts.get(part.worker, 0) + 1
    shares = ", ".join(f"{worker or 'unknown'} {count}" for worker, count in sorted(parts.items()))
    return f"run {manifest.run.id} made it: {text.plural(len(manifest.parts), 'part')} ({shares})"
