"""Who may fill how much memory: a worker its cap, all of them together the gate, and no new work while too
little is free.

Rules of this file: ``judge`` decides on figures that somebody else measured; no I/O, no clock.
- a worker beyond its own cap is stopped: out of memory;
- all of them beyond the gate: the largest is sent away, without fault, and does not come back; the last one
  stays, since without it nothing would ever be finished;
- with less free than ``memfree`` nothing more is granted, until a little more than that is free;
- a new peak is told when it is a quarter above the last one told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.machine import size

_TELL_GROWTH = 1.25
_FREE_AGAIN = 1.05


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured, in bytes."""

    used: Mapping[str, int]  #: resident, by worker
    available: int  #: on the machine and in its control group


@dataclass(slots=True)
class Verdict:
    """What is to be done now; names with reasons."""

    beyond_cap: dict[str, str] = field(default_factory=dict)
    beyond_gate: dict[str, str] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)  #: bytes, to be told
    hold: str = ""  #: why nothing more may be granted


class MemoryBooks:
    """``caps``: bytes, of the workers that have one; ``gate_bytes``: of all together, 0 for none."""

    def __init__(self, caps: Mapping[str, int], gate_bytes: int) -> None:
        self._caps = dict(caps)
        self.gate_bytes = gate_bytes
        self.used_bytes = 0
        self._peaks: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._sent_away: set[str] = set()
        self._short = False

    def limit(self, worker: str, cap_bytes: int) -> None:
        """One more worker that has a cap."""
        self._caps[worker] = cap_bytes

    def judge(self, sample: Sample, memfree_bytes: int) -> Verdict:
        verdict = Verdict()
        self.used_bytes = sum(sample.used.values())
        for worker, used in sample.used.items():
            peak = self._peaks[worker] = max(used, self._peaks.get(worker, 0))
            if peak > self._told.get(worker, 0) * _TELL_GROWTH:
                verdict.peaks[worker] = self._told[worker] = peak
            cap = self._caps.get(worker)
            if cap is not None and used > cap:
                verdict.beyond_cap[worker] = f"out of memory: it used {size(used)}, and may use {size(cap)}"
        self._judge_gate(sample, verdict)
        self._judge_free(sample, memfree_bytes, verdict)
        return verdict

    def last_peaks(self) -> dict[str, int]:
        """The peaks that were not told yet, in bytes by worker."""
        untold = {w: peak for w, peak in self._peaks.items() if peak > self._told.get(w, 0)}
        self._told.update(untold)
        return untold

    def _judge_gate(self, sample: Sample, verdict: Verdict) -> None:
        staying = {
            worker: used
            for worker, used in sample.used.items()
            if worker not in verdict.beyond_cap and worker not in self._sent_away
        }
        total = sum(staying.values())
        if not self.gate_bytes or total <= self.gate_bytes or len(staying) < 2:
            return
        largest = max(staying, key=lambda worker: staying[worker])
        self._sent_away.add(largest)
        verdict.beyond_gate[largest] = (
            f"sent away: {len(staying)} workers used {size(total)} of the {size(self.gate_bytes)} that "
            "they may fill"
        )

    def _judge_free(self, sample: Sample, memfree_bytes: int, verdict: Verdict) -> None:
        wanted = memfree_bytes * (_FREE_AGAIN if self._short else 1.0)
        self._short = sample.available < wanted
        if self._short:
            verdict.hold = (
                f"{size(sample.available)} of memory are free, less than --memfree {size(memfree_bytes)}"
            )
