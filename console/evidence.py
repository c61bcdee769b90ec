"""What an output can be compared with: the manifest beside it, and the recordings of the runs that may have
made it.

Rules of this file:
- what is named by the user is the one thing to compare with, or it is an error;
- else the name only proposes: of what is found by name or by the hash of its packets, the run with which the
  file agrees longest is the one that is meant; so a file that was moved is known, and a manifest that was
  left from an earlier run doesn't count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.report import records_of
from farm.comparison import compare
from farm.contents import Contents
from farm.difference import Comparison
from farm.errors import InputError, OutputError, UnevenError, UsageError
from farm.journal import RunCatalogue, RunEntry, read_recording
from farm.manifest import MANIFEST_SUFFIX, Manifest, manifest_of, manifest_path, read_manifest
from farm.outputs import is_images
from farm.paths import printable
from farm.sequence import parse_pattern


@dataclass(frozen=True, slots=True)
class Evidence:
    """A manifest, and where it comes from: a path, or ``the recording``."""

    manifest: Manifest
    source: str


@dataclass(frozen=True, slots=True)
class Found:
    """The evidence that is meant, and what it says. Without any there is nothing to compare with."""

    evidence: Evidence | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()


def named_evidence(run: str | None, manifest: Path | None) -> Evidence | None:
    """What the user names; None: nothing. Raises UsageError, InputError, OutputError."""
    if run is not None and manifest is not None:
        raise UsageError("--run and --manifest exclude each other: give one thing to compare with")
    if manifest is not None:
        return Evidence(read_manifest(manifest), printable(manifest))
    if run is None:
        return None
    found = manifest_of(records_of(run))
    if found is None:
        raise InputError(f"the run {printable(run)} has no verified output on record to compare with")
    return Evidence(found, "the recording")


def find_evidence(output: Path, contents: Contents | None, named: Evidence | None) -> Found:
    """What ``output`` is to be compared with, and how it compares. ``contents``: None for a file that can't
    be read. Raises InputError for named evidence that is damaged."""
    if named is not None:
        return Found(named, None if contents is None else compare(named.manifest, contents))
    best = Found()
    notes: list[str] = []
    for evidence in _proposed(output, contents, notes):
        try:
            found = Found(evidence, None if contents is None else compare(evidence.manifest, contents))
        except InputError as error:
            notes.append(str(error))
            continue
        if best.evidence is None or _agreement(found) > _agreement(best):
            best = found
    return Found(best.evidence, best.comparison, tuple(notes))


def _agreement(found: Found) -> tuple[bool, int]:
    comparison = found.comparison
    return (False, 0) if comparison is None else (comparison.difference is None, comparison.agreed)


def _proposed(output: Path, contents: Contents | None, notes: list[str]) -> Iterator[Evidence]:
    beside = _beside(output)
    seen = set()
    if beside is not None:
        try:
            manifest = read_manifest(beside)
            seen.add(manifest.run.id)
            yield Evidence(manifest, printable(beside))
        except InputError as error:
            notes.append(str(error))
    sha256 = contents.video.sha256 if contents is not None else ""
    for entry in _entries(output, sha256):
        if entry.run_id in seen:
            continue
        seen.add(entry.run_id)
        try:
            recorded = manifest_of(read_recording(Path(entry.recording)))
        except UnevenError as error:
            notes.append(str(error))
            continue
        if recorded is None:
            notes.append(f"the run {entry.run_id} was recorded by an older uneven, which kept no manifest")
            continue
        yield Evidence(recorded, "the recording")


def _beside(output: Path) -> Path | None:
    """The manifest with the output's name; of numbered images one whose pattern means the same files."""
    path = manifest_path(output)
    if path.is_file():
        return path
    if is_images(output):
        with suppress(OSError):
            for other in sorted(output.parent.glob("*" + MANIFEST_SUFFIX)):
                if _alike(other.with_name(other.name.removesuffix(MANIFEST_SUFFIX)), output):
                    return other
    return None


def _entries(output: Path, sha256: str) -> Iterator[RunEntry]:
    """Runs with a recording: the newest of that output, then those with these very packets."""
    try:
        entries = [entry for entry in RunCatalogue().entries() if entry.recording]
    except OutputError:
        return
    real = output.resolve()
    by_name = (entry for entry in entries if entry.output and _same_output(Path(entry.output), real))
    newest = next(by_name, None)
    if newest is not None:
        yield newest
    for entry in entries:
        if sha256 and entry.packets_sha256 == sha256:
            yield entry


def _same_output(one: Path, other: Path) -> bool:
    return one.resolve() == other or _alike(one, other)


def _alike(one: Path, other: Path) -> bool:
    """Whether both are names of numbered images that differ at most in how many digits they give."""
    if not (is_images(one) and is_images(other)):
        return False
    try:
        first, second = parse_pattern(one), parse_pattern(other)
    except InputError:
        return False
    if first is None or second is None or (first.prefix, first.suffix) != (second.prefix, second.suffix):
        return False
    return first.folder.resolve() == second.folder.resolve()
