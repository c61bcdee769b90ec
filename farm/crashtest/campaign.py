"""All trials of a crash test: the undisturbed run that finds the points, a crash at each, random kills.

The job for the points is made to take the same way every time: two workers with one chunk each. A point that
a later run doesn't come by (two messages shared a commit, say) is tried again, and then counted as not
reached; the run has to end as well as ever all the same. Random kills are of a livelier job: three workers,
small parts, the default policy.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from farm.crashtest.points import Kill, Point, kills_of, points_of, read_log
from farm.crashtest.trial import Ground, Judge, TrialJob, Verdict, Victims, listen
from farm.engines.child import run_in_child_blocking
from farm.errors import OutputError, UnevenError
from farm.facts import VerifyFacts
from farm.paths import printable
from farm.settings import CONTAINERS

CLIP_FRAMES = 48
#: Ways to the same end, so that a point lost to chance is met at last.
_TRIES = 3
_WAIT_SECONDS_MAX = 0.06
_STEADY = (
    "--workers",
    "2",
    "--part",
    "12,fixed",
    "--schedule",
    "fixed,24",
    "--tail",
    "none",
    "--no-claim-ahead",
)
_LIVELY = ("--workers", "3", "--part", "3,fixed", "--lease", "2", "--heartbeat", "0.4")
_QUICK = ("--preset", "ultrafast")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asks for. ``command``: what starts uneven on this machine."""

    command: Sequence[str]
    source: Path | None = None  #: None: a clip of its own
    points: int | None = None  #: how many crash points, chosen by the seed; None: all
    kills: int = 0  #: how many random kills
    seed: int = 0
    over_existing: bool = False
    only: str = ""  #: a pattern: points whose words it is found in
    unsynced: str = ""  #: leave out the syncs of names that match: what then fails shows that the test works
    keep: bool = False  #: keep the folders of trials that failed
    folder: Path | None = None  #: where to work, a temporary folder by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A trial that was made."""

    number: int
    of: int
    what: str  #: in words: the point and the kind of kill
    verdict: Verdict
    folder: Path | None = None  #: where it can be looked at, if it was kept

    @property
    def failed(self) -> bool:
        return bool(self.verdict.broken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the undisturbed run showed."""

    points: tuple[Point, ...]
    packets: str
    records: int
    seconds: float


class Campaign:
    """A crash test. Use as a context: its folder goes at the end, unless something is kept in it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._folder = Path(tempfile.mkdtemp(prefix="uneven-crashtest-", dir=request.folder)).resolve()
        self._random = random.Random(request.seed)
        self._kept = 0

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._kept:
            shutil.rmtree(self._folder, ignore_errors=True)

    def trials(self, note: Callable[[str], None]) -> Iterator[Trial]:
        """Make all trials; each is handed out when it is over.

        Raises UnevenError if the undisturbed run doesn't end well: then there is nothing to compare with.
        """
        chosen: list[tuple[Point, Kill]] = []
        judge = None
        if self._request.points != 0:
            recorded = self._record(_STEADY)
            judge = Judge(self._packets, recorded.packets)
            chosen = self._choose(recorded.points)
            note(f"{len(recorded.points)} crash points, {len(chosen)} crashes at them")
        total = len(chosen) + self._request.kills
        for number, (point, kill) in enumerate(chosen, 1):
            assert judge is not None
            yield self._at_point(judge, number, total, point, kill)
        if self._request.kills:
            recorded = self._record(_LIVELY)
            judge = Judge(self._packets, recorded.packets)
            for number in range(len(chosen) + 1, total + 1):
                yield self._at_random(judge, number, total, recorded)

    def _job(self, arguments: Sequence[str]) -> TrialJob:
        source = self._request.source
        if source is None:
            source = self._folder / "clip.mp4"
            if not source.exists():
                run_in_child_blocking(
                    "farm.media.tasks:make_demo_clip", source, CLIP_FRAMES, log=self._folder / "clip.log"
                )
            arguments = (*arguments, *_QUICK)
        suffix = source.suffix if source.suffix.lower() in CONTAINERS else ".mkv"
        return TrialJob(
            command=self._request.command,
            source=source.absolute(),
            suffix=suffix,
            arguments=arguments,
            over_existing=self._request.over_existing,
        )

    def _record(self, arguments: Sequence[str]) -> Recorded:
        ground = Ground(self._folder / "recording", self._job(arguments))
        began = time.monotonic()
        story = listen(ground.start(ground.order()))
        seconds = time.monotonic() - began
        if story.exit_code != 0:
            raise OutputError(
                f"the undisturbed run ended with {story.exit_code}, so there is nothing to compare with: "
                f"{story.errors.strip() or 'it said nothing'}"
            )
        left = ground.leftovers()
        if left:
            raise OutputError(f"the undisturbed run left {', '.join(left)}")
        recorded = Recorded(
            points=tuple(points_of(read_log(ground.log))),
            packets=self._packets(ground.output),
            records=len(story.records),
            seconds=seconds,
        )
        ground.remove()
        return recorded

    def _choose(self, points: Sequence[Point]) -> list[tuple[Point, Kill]]:
        crashes = [
            (point, kill)
            for number, point in enumerate(points)
            for kill in kills_of(point, number)
            if re.search(self._request.only, f"{point} ({kill})")
        ]
        wanted = self._request.points
        if wanted is None or wanted >= len(crashes):
            return crashes
        chosen = sorted(self._random.sample(range(len(crashes)), wanted))
        return [crashes[number] for number in chosen]

    def _at_point(self, judge: Judge, number: int, of: int, point: Point, kill: Kill) -> Trial:
        for again in range(_TRIES):
            ground = Ground(self._folder / f"{number}-{again}", self._job(_STEADY))
            verdict = judge.crash_at(ground, ground.order(point, kill, self._request.unsynced))
            if verdict.reached or verdict.broken:
                break
            ground.remove()
        return self._told(ground, number, of, f"{point} ({kill})", verdict)

    def _at_random(self, judge: Judge, number: int, of: int, recorded: Recorded) -> Trial:
        records = self._random.randrange(1, recorded.records)
        wait_seconds = self._random.uniform(0, _WAIT_SECONDS_MAX)
        victims: Victims = self._random.choice(("console", "worker", "both"))
        ground = Ground(self._folder / str(number), self._job(_LIVELY))
        verdict = judge.crash_random(ground, records, wait_seconds, victims)
        what = f"{victims} killed {wait_seconds * 1000:.0f} ms after record {records}"
        return self._told(ground, number, of, what, verdict)

    def _told(self, ground: Ground, number: int, of: int, what: str, verdict: Verdict) -> Trial:
        trial = Trial(number=number, of=of, what=what, verdict=verdict)
        if trial.failed and self._request.keep:
            self._kept += 1
            return replace(trial, folder=ground.folder)
        ground.remove()
        return trial

    def _packets(self, output: Path) -> str:
        """Raises UnevenError if the file isn't a right video."""
        try:
            verified = run_in_child_blocking(
                "farm.media.tasks:verify_job",
                output,
                CONTAINERS[output.suffix.lower()],
                None,
                "sample",
                (),
                (),
                log=self._folder / "verify.log",
                on_progress=lambda fraction: None,
            )
        except UnevenError:
            raise
        except Exception as error:
            raise OutputError(f"{printable(output)} can't be read: {error}") from error
        assert isinstance(verified, VerifyFacts)
        return verified.packets_sha256
