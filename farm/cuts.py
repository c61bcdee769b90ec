"""``--cuts FILE``: where parts have to begin, as a list of frames or as the scenes that Av1an found.

Rules of this file:
- a list has one frame of the input a line, counted from 0; what follows a ``#`` is a remark. A file that
  begins with ``{`` is Av1an's: its scenes count, which follow one another and cover the film; all else in it
  (how a scene is to be encoded) doesn't;
- a cut lies inside the input, not past its last frame; cuts ascend and differ. The first may be 0, as lists
  of scenes have it, where a part begins in any case;
- cuts count frames of the input, whatever is taken of it. A cut between two frames that are taken falls
  before the later one; cuts outside the range that is taken mean nothing there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from farm.errors import UsageError
from farm.paths import printable, reason
from farm.settings import GridSettings
from farm.source import SourceIndex, part_cuts

_FRAME = re.compile(r"\d{1,12}\Z", re.ASCII)
_FILE_BYTES_MAX = 64 << 20
#: Parts this short cost noticeably in size (DESIGN.md §5).
_SHORT_FRAMES = 48


class Cuts(NamedTuple):
    """Ascending frames of the input, and of how many frames the input has to be, if that is known."""

    frames: tuple[int, ...]
    made_for: int | None


class _Scene(msgspec.Struct):
    start_frame: int
    end_frame: int


class _Scenes(msgspec.Struct):
    frames: int
    scenes: list[_Scene]


def read_cuts(path: Path) -> Cuts:
    """Raises UsageError for a file that can't be read or isn't a list of cuts, with the line at fault."""
    name = f"--cuts {printable(path)}"
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name} can't be read: {reason(error)}") from error
    except UnicodeDecodeError:
        raise UsageError(f"{name} is neither a list of frames nor Av1an's scenes.json") from None
    if len(data) > _FILE_BYTES_MAX:
        raise UsageError(f"{name} is too large for a list of cuts")
    return _from_scenes(text, name) if text.lstrip().startswith("{") else _from_lines(text, name)


def _from_lines(text: str, name: str) -> Cuts:
    cuts: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        where = f"{name}, line {number}: {word[:40]}"
        if not _FRAME.match(word):
            raise UsageError(f"{where} is no frame; give one number a line, counted from 0")
        cut = int(word)
        if cuts and cut <= cuts[-1]:
            raise UsageError(f"{where} comes after {cuts[-1]}; give every cut once, in ascending order")
        cuts.append(cut)
    if cuts and cuts[0] == 0:  # where the first scene begins
        del cuts[0]
    if not cuts:
        raise UsageError(f"{name} holds no frame at which a part could begin; give one number a line")
    return Cuts(tuple(cuts), None)


def _from_scenes(text: str, name: str) -> Cuts:
    try:
        found = msgspec.json.decode(text, type=_Scenes)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{name} is not Av1an's scenes.json: {error}") from error
    stop = 0
    for number, scene in enumerate(found.scenes, 1):
        if scene.start_frame != stop or scene.end_frame <= stop:
            raise UsageError(
                f"{name}: scene {number} is {scene.start_frame} to {scene.end_frame} where one from {stop} "
                "on is due; scenes follow one another"
            )
        stop = scene.end_frame
    if not found.scenes or stop != found.frames:
        raise UsageError(f"{name}: its scenes end at {stop}, and it says that the film has {found.frames}")
    return Cuts(tuple(scene.start_frame for scene in found.scenes[1:]), found.frames)


def cuts_of_job(index: SourceIndex, asked: GridSettings) -> tuple[int, ...]:
    """The cuts as frames of the job. Raises UsageError if they are not of this input."""
    input_frames, numbers = index.input_frames or index.frames, index.input_numbers
    if asked.cuts_made_for not in (None, input_frames):
        raise UsageError(
            f"--cuts: the scenes are those of a film of {asked.cuts_made_for} frames, and the input has "
            f"{input_frames}; find the scenes of this input"
        )
    if asked.cuts and asked.cuts[-1] >= input_frames:
        beyond = asked.cuts[bisect_left(asked.cuts, input_frames)]
        raise UsageError(
            f"--cuts: {beyond} is not inside the input, which has {input_frames} frames, "
            f"0 to {input_frames - 1}"
        )
    places = {bisect_left(numbers, cut) for cut in asked.cuts}
    return tuple(sorted(places - {0, index.frames}))


def scene_grid(
    frames: int, target: int, keys: tuple[int, ...], cuts: Sequence[int], *, fixed: bool
) -> tuple[int, ...]:
    """The part grid in which every one of ``cuts`` is a boundary; between two of them it is as it would be if
    the film were no longer than that."""
    grid = [0]
    for start, stop in pairwise((0, *cuts, frames)):
        inside = keys[bisect_left(keys, start) : bisect_left(keys, stop)]
        scene = part_cuts(stop - start, target, tuple(key - start for key in inside), fixed=fixed)
        grid += [start + cut for cut in scene[1:]]
    return tuple(grid)


def words_for_cuts(index: SourceIndex, asked: GridSettings, parts: int) -> list[str]:
    """What is to be said of the cuts in a grid of so many parts, a sentence each."""
    if not asked.cuts:
        return []
    words = []
    given, used = len(asked.cuts), len(cuts_of_job(index, asked))
    if index.filtered is not None and index.filtered.whole:
        return ["--cuts means nothing here, for the film is one part"]
    if used < given:
        words.append(
            f"{given - used} of the {given} cuts lie outside the frames that are taken, or coincide there"
        )
    average = index.frames / parts
    if average < _SHORT_FRAMES and 2 * used >= parts - 1:
        words.append(
            f"with these cuts a part has {average:.0f} frames on average, which makes the file larger at "
            "equal quality: measured, by 10 to 14 % at 48 frames and 20 to 29 % at 24 for cuts anywhere; "
            "those at keyframes of the source cost less"
        )
    return words
