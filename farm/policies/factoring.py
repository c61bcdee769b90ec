"""Factoring: work goes out in batches of W chunks, each batch half of what is left. ``fac2`` has equal
chunks, ``wf`` weighs them by speeds known beforehand, ``awf-b`` and ``awf-c`` by measured ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from farm.policies.base import Ask, Size
from farm.policies.measured import Measured
from farm.policies.parameters import parameter, spell


def in_batch(ask: Ask) -> float:
    """An even share of the present batch: R_b / 2W with R_b open frames at its start.

    k = grants mod W chunks of the batch are out. Had each an even share, R_b would be R * 2W / (2W - k), so
    the share is R / (2W - k): no memory, and right again at the next ask when W changes, sizes are rounded to
    parts, or work is reopened. (In whole frames it may be one below the paper's, in the last batches.)
    """
    return ask.open_frames / (2 * ask.workers - ask.grants % ask.workers)


@dataclass(frozen=True, slots=True)
class Fac2:
    """Batches of W chunks of size ceil(R_b / 2W), where R_b is R at the batch's start.

    Source: Hummel, Schonberg & Flynn, "Factoring", Communications of the ACM 35 (1992), with the fixed ratio
    of 2.
    """

    min: int = parameter(1, low=1, unit="frames")

    @property
    def name(self) -> str:
        return spell("fac2", self)

    def size(self, ask: Ask) -> Size:
        return _sized(in_batch(ask), 1.0, self.min, "its even share of the batch")


@dataclass(frozen=True, slots=True)
class Wf:
    """size = ceil(weight * R_b / 2W), weight = declared speed / mean declared speed; 1 for the undeclared.

    Source: Hummel, Schmidt, Uma & Wein, "Load-sharing in heterogeneous systems via weighted factoring",
    SPAA 1996.
    """

    min: int = parameter(1, low=1, unit="frames")

    @property
    def name(self) -> str:
        return spell("wf", self)

    def size(self, ask: Ask) -> Size:
        own = ask.caps.get(ask.worker)
        known = [cap for cap in ask.caps.values() if cap is not None]
        weight = 1.0 if own is None else own * len(known) / math.fsum(known)
        return _sized(in_batch(ask), weight, self.min, "its share of the batch by declared speed")


@dataclass(frozen=True, slots=True)
class AwfB:
    """size = ceil(weight * R_b / 2W), weight = measured speed / mean measured speed; before a worker's first
    chunk is done, an even share but at most first * N / W.

    Source: Banicescu, Velusamy & Devaprasad, Cluster Computing 6 (2003); the variants B (batch) and C (chunk)
    as in Cariño & Banicescu, Journal of Supercomputing 44 (2008). Here a speed counts from the end of the
    chunk it was measured on, also in mid-batch: waiting for the border, as B may be read, took 90.0 and
    89.0 s instead of 83.2 and 87.0 on the published fleets. The papers have neither ``first`` nor ``min``
    (first=1, min=1): there a chunk costs nothing to fetch, and nobody is much slower than the rest.
    """

    min: int = parameter(12, low=1, unit="frames")
    first: float = parameter(0.05, low=0, high=1)
    _measured: Measured = field(default_factory=Measured, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return spell("awf-b", self)

    def size(self, ask: Ask) -> Size:
        return _by_measured_speed(ask, in_batch(ask), self._measured, self.first, self.min)


@dataclass(frozen=True, slots=True)
class AwfC:
    """As awf-b, but every chunk is the first of a batch of its own: size = ceil(weight * R / 2W).

    Source: as awf-b.
    """

    min: int = parameter(12, low=1, unit="frames")
    first: float = parameter(0.05, low=0, high=1)
    _measured: Measured = field(default_factory=Measured, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return spell("awf-c", self)

    def size(self, ask: Ask) -> Size:
        base = ask.open_frames / (2 * ask.workers)
        return _by_measured_speed(ask, base, self._measured, self.first, self.min)


def _by_measured_speed(ask: Ask, base: float, measured: Measured, first: float, least: int) -> Size:
    known = measured.at(ask)
    own = known.get(ask.worker)
    if own is None:
        base = min(base, first * ask.total_frames / ask.workers)
        return _sized(base, 1.0, least, "a first share, until its speed is known")
    weight = own.rate * len(known) / math.fsum(speed.rate for speed in known.values())
    return _sized(base, weight, least, "its share of the batch by measured speed")


def _sized(base: float, weight: float, least: int, why: str) -> Size:
    share = math.ceil(weight * base - 1e-9)  # 1e-9: a share that is whole but for rounding stays so
    weighed = "" if weight == 1 else f", {weight:.3g} x the mean"
    return Size(max(share, least), f"{why}{weighed}" + (f", at least {least}" if share < least else ""))
