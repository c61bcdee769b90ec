"""How long work takes: what frames cost, and how fast a worker is over time.

- ``Costs``: the running sum of what frames cost a worker, and its inverse;
- ``Pace``: a worker's speed, constant between changes (throttles, other work in steps of 5 s), integrated and
  inverted.

Rule: both are functions of the world alone, so that it makes no difference who asks, or how often.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import inf

from farm.simulation.noise import Stream
from farm.simulation.world import SimWorker, World

#: Length of a step of other work on a worker's machine.
LOAD_STEP_SECONDS = 5.0
#: A frame counts as done this much of a frame early, since sums of floats fall short of whole numbers.
_WHOLE = 1e-6
#: Workers share this many tables of frame noise. A worker never renders a frame twice and two that share one
#: rarely render the same, so more would change nothing but the time it takes to draw them.
_NOISE_TABLES = 4


class Costs:
    """``prefix[f]`` is the cost of the frames ``[0, f)``; None: each frame costs 1.0."""

    __slots__ = ("_prefix",)

    def __init__(self, prefix: Sequence[float] | None = None) -> None:
        self._prefix = prefix

    def before(self, frame: int) -> float:
        """Cost of the frames ``[0, frame)``."""
        return frame if self._prefix is None else self._prefix[frame]

    def frame_at(self, cost: float) -> int:
        """How many frames are done when ``cost`` has been spent from frame 0 on."""
        if self._prefix is None:
            return int(cost + _WHOLE)
        return bisect_right(self._prefix, cost + _WHOLE * (self._prefix[-1] / len(self._prefix))) - 1


class Pace:
    """Frames of cost 1.0 per second of one worker over time: pieces of constant speed, made when needed.

    Piece k begins at ``_starts[k]`` with ``_done[k]`` done before it; the newest one has no end yet.
    """

    __slots__ = (
        "_done",
        "_factor",
        "_fps",
        "_kept",
        "_load",
        "_speeds",
        "_starts",
        "_steady",
        "_stream",
        "_throttles",
    )

    def __init__(self, worker: SimWorker, stream: Stream) -> None:
        self._fps = worker.fps
        self._steady = not worker.throttles and not worker.load
        self._load = worker.load
        self._stream = stream
        self._throttles = list(reversed(worker.throttles))
        self._factor = 1.0
        self._kept = self._draw()
        self._pass_throttles(0.0)
        self._starts = [0.0]
        self._speeds = [worker.fps * self._factor * self._kept]
        self._done = [0.0]

    def at(self, time: float) -> float:
        """The speed at ``time``."""
        if self._steady:
            return self._fps
        self._extend(time, inf)
        return self._speeds[bisect_right(self._starts, time) - 1]

    def work(self, start: float, stop: float) -> float:
        """What can be done in ``[start, stop)``, in frames of cost 1.0."""
        if self._steady:
            return self._fps * (stop - start)
        return self._total(stop) - self._total(start)

    def until(self, start: float, work: float) -> float:
        """When ``work`` that is begun at ``start`` is done."""
        if self._steady:
            return start + work / self._fps
        target = self._total(start) + work
        self._extend(inf, target)
        piece = bisect_right(self._done, target) - 1
        return max(start, self._starts[piece] + (target - self._done[piece]) / self._speeds[piece])

    def _total(self, time: float) -> float:
        self._extend(time, inf)
        piece = bisect_right(self._starts, time) - 1
        return self._done[piece] + self._speeds[piece] * (time - self._starts[piece])

    def _draw(self) -> float:
        """The share of its speed that the worker keeps in the next step."""
        return 1.0 - self._stream.uniform(0.0, 2.0 * self._load) if self._load else 1.0

    def _pass_throttles(self, time: float) -> None:
        while self._throttles and self._throttles[-1][0] <= time:
            self._factor = self._throttles.pop()[1]

    def _extend(self, time: float, done: float) -> None:
        """Add pieces until the newest begins after ``time``, or after ``done`` was done, or no more come."""
        while self._starts[-1] <= time and self._done[-1] <= done:
            start = self._starts[-1]
            step = (int(start / LOAD_STEP_SECONDS) + 1) * LOAD_STEP_SECONDS if self._load else inf
            stop = min(step, self._throttles[-1][0] if self._throttles else inf)
            if stop == inf:
                return
            if stop == step:
                self._kept = self._draw()
            self._pass_throttles(stop)
            self._done.append(self._done[-1] + self._speeds[-1] * (stop - start))
            self._starts.append(stop)
            self._speeds.append(self._fps * self._factor * self._kept)


class Efforts:
    """Costs and paces of a world's workers, by number; tables that are alike are made once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._plain = Costs(None if world.cost is None else list(accumulate(world.cost, initial=0.0)))
        self._noisy: dict[tuple[int, float], Costs] = {}

    @property
    def plain(self) -> Costs:
        """What frames cost a worker without noise."""
        return self._plain

    def pace(self, number: int) -> Pace:
        worker = self._world.workers[number]
        return Pace(worker, Stream(self._world.seed, "load", worker.name))

    def costs(self, number: int) -> Costs:
        sigma = self._world.workers[number].frame_noise
        if not sigma:
            return self._plain
        key = (number % _NOISE_TABLES, sigma)
        if key not in self._noisy:
            stream = Stream(self._world.seed, "noise", *map(repr, key))
            cost = self._world.cost or (1.0,) * self._world.frames
            noisy = (each * stream.lognormal(sigma) for each in cost)
            self._noisy[key] = Costs(list(accumulate(noisy, initial=0.0)))
        return self._noisy[key]

    @property
    def total_cost(self) -> float:
        """Of all frames, without the workers' noise, whose mean is 1."""
        return self._plain.before(self._world.frames)
