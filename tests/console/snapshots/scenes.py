"""Every screen and every box of the console at a moment worth a picture, and the keys that lead there.

Rules of this file:
- what is shown comes from told or simulated logs, on clocks that stand still: no wall clock, path, version or
  id of this machine, so that a picture is the same on every machine and in any order;
- a scene says what has to be on the screen before the picture is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from console.app import ConsoleApp
from console.attached import AttachedConsole
from console.compare_app import CompareApp
from console.contest import Heat
from console.presentation import Presentation
from farm.captions import Caption
from farm.events import Record
from farm.faults import AtTime
from farm.playback import Log, Playback
from farm.simulation.source import SimulatedSource
from tests.console.contests import contest_of, heats, play_to
from tests.console.player import Player
from tests.console.story import Fault, play
from tests.simulation.test_source import HandClock
from tests.simulation.worlds import small_world, worker

#: When a worker has been stalled and lapsed, and another was killed.
MOMENT_SECONDS = 84.0
CAPTION = Caption(
    text="Two workers, one ten times as fast as the other: the slow one must not hold up the end.",
    when=AtTime(0.0),
    seconds=30.0,
)


@dataclass(frozen=True, slots=True)
class Scene:
    """``keys`` are pressed one after the other on what ``make`` makes; then ``shows`` has to come up."""

    name: str
    make: Callable[[], ConsoleApp]
    shows: str
    keys: tuple[str, ...] = ()


@cache
def _log() -> tuple[Record, ...]:
    return tuple(play(faults=[Fault("w2", 40, 30), Fault("w3", 76)]))


@cache
def _heats() -> tuple[Heat, ...]:
    return tuple(heats(("fair+split", "static+none"), ("10,10,3",)))


def _player() -> Player:
    player = Player(_log())
    player.time = MOMENT_SECONDS
    return player


def live() -> ConsoleApp:
    return ConsoleApp(_player(), refresh_hz=1e-6, exit_when_done=False)


def attached() -> ConsoleApp:
    return AttachedConsole(_player(), refresh_hz=1e-6, exit_when_done=False)


def readonly() -> ConsoleApp:
    return ConsoleApp(_player(), refresh_hz=1e-6, exit_when_done=False, readonly=True)


def recording() -> ConsoleApp:
    clock = HandClock()
    source = Playback(Log(_log()), clock)
    source.seek(MOMENT_SECONDS)
    app = ConsoleApp(source, refresh_hz=1e-6, exit_when_done=False)
    app.real = clock
    return app


def simulation() -> ConsoleApp:
    clock = HandClock()

    def begin() -> SimulatedSource:
        return SimulatedSource(small_world(worker("w1", 30.0), worker("w2", 3.0), frames=960), clock)

    source = Playback(Log(), clock, present=begin(), again=begin)
    source.seek(12.0)
    presentation = Presentation(captions=(CAPTION,))
    app = ConsoleApp(source, refresh_hz=1e-6, exit_when_done=False, presentation=presentation)
    app.real = clock
    return app


def compare() -> ConsoleApp:
    contest, clock = contest_of(_heats())
    play_to(contest, clock, 40.0)
    return CompareApp(contest, refresh_hz=1e-6)


SCENES = (
    Scene("live", live, "workers"),
    Scene("live-filter", live, "with 'laps'", ("slash", *"laps")),
    Scene("timeline", live, "timeline", ("2",)),
    Scene("chunks", live, "chunks", ("3",)),
    Scene("compare", compare, "lower bound"),
    Scene("recording", recording, "event "),
    Scene("simulation-caption", simulation, "Two workers"),
    Scene("attached", attached, "q leave"),
    Scene("readonly", readonly, "read only"),
    Scene("modal-chunk", live, "chunk c", ("3", "j", "enter")),
    Scene("modal-worker", live, "worker w2", ("j", "enter")),
    Scene("modal-policy", live, "policy", ("o",)),
    Scene("modal-throttle", live, "throttle w2", ("j", "t")),
    Scene("modal-add", live, "add a worker", ("a",)),
    Scene("modal-kill", live, "kill w2?", ("j", "x")),
    Scene("modal-quit", live, "not credited yet", ("q",)),
    Scene("modal-leave", attached, "leave?", ("ctrl+c",)),
    Scene("modal-release", live, "release c", ("r",)),
    Scene("modal-send-away", live, "send w1 away?", ("w",)),
    Scene("modal-fault", live, "what goes wrong", ("i",)),
    Scene("modal-help", live, "keys", ("question_mark",)),
    Scene("palette", live, "stall or unstall", ("ctrl+p",)),
)
