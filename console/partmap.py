"""The parts of the job as a map: the state of each, how much of it is encoded, and what changed.

Rules of this file:
- a part's state follows from credits, set-asides and the live claims on it; nothing else sets it;
- counts of frames by state are kept as states change, never recounted;
- open + in flight + credited + set aside = all frames, after every operation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from console.timeline import ClaimModel
from farm.frames import PartGrid

OPEN: Final = 0
CLAIMED: Final = 1
DUPLICATE: Final = 2
CREDITED: Final = 3
LAPSED: Final = 4  #: open again after a lapse, until it is claimed again
SET_ASIDE: Final = 5

_SETTLED: Final = frozenset({CREDITED, SET_ASIDE})


class PartMap:
    """All parts of one job; ``state`` holds one of the constants above for each."""

    def __init__(self, grid: PartGrid) -> None:
        self.grid = grid
        self.state = bytearray(grid.parts)
        self.dirty: set[int] = set()  #: parts whose state or shade changed since ``take_dirty``
        self.all_dirty = True
        self.frames_in = [grid.frames, 0, 0, 0, 0, 0]  #: frames of the parts in each state
        self.rendered = array("l", bytes(array("l").itemsize * grid.parts))
        self.rendered_frames = 0  #: sum of ``rendered``: encoded in live claims and not credited
        self._holders = bytearray(grid.parts)  #: live claims on each part

    def __len__(self) -> int:
        return len(self.state)

    def __contains__(self, part: int) -> bool:
        return 0 <= part < len(self.state)

    def shade(self, part: int) -> float:
        """How much of a part is encoded, 0 to 1; 1 once it is credited."""
        return 1.0 if self.state[part] == CREDITED else self.rendered[part] / self.grid.size(part)

    def take_dirty(self) -> set[int]:
        """The parts to draw again since the last call; the first time, all of them."""
        dirty = set(range(len(self))) if self.all_dirty else self.dirty
        self.dirty, self.all_dirty = set(), False
        return dirty

    def hold(self, claim: ClaimModel) -> None:
        """A claim was granted on its range."""
        holders, state = self._holders, self.state
        for part in self.grid.parts_in(claim.start, claim.stop):
            holders[part] += 1
            if state[part] not in _SETTLED:
                self._set_state(part, DUPLICATE if holders[part] > 1 else CLAIMED)

    def let_go(self, claim: ClaimModel, others: Iterable[ClaimModel], *, lapsed: bool) -> None:
        """A claim ended; ``others`` are the live claims that its chunk still has."""
        grid, holders, state = self.grid, self._holders, self.state
        for part in grid.parts_in(claim.start, claim.stop):
            holders[part] -= 1
            if state[part] not in _SETTLED:
                self._refresh(part, lapsed=lapsed)
        for part in range(grid.part_at(claim.start), grid.part_at(claim.position - 1) + 1):
            if state[part] not in _SETTLED:  # of those nothing counts as rendered
                start, stop = grid.start(part), grid.stop(part)
                ahead = (min(c.position, stop) - start for c in others if c.start <= start < c.position)
                self._set_rendered(part, max(ahead, default=0))

    def shrink(self, claim: ClaimModel, stop: int) -> None:
        """A claim ends at ``stop`` from now on: its chunk was split."""
        if not claim.start < stop < claim.stop:
            return
        for part in self.grid.parts_in(stop, claim.stop):
            self._holders[part] -= 1
            if self.state[part] not in _SETTLED:
                self._set_rendered(part, 0)
            self._refresh(part)
        claim.stop = stop
        claim.position = min(claim.position, stop)

    def advance(self, claim: ClaimModel, position: int) -> None:
        """The claim's next frame is ``position``: what lies before it is encoded, or another one's credit."""
        position = min(position, claim.stop)
        if position <= claim.position:
            return
        cuts, state = self.grid.cuts, self.state
        part = self.grid.part_at(claim.position)
        start = cuts[part]
        while start < position:
            stop = cuts[part + 1]
            if state[part] not in _SETTLED:  # of those nothing counts as rendered
                ahead = (stop if stop < position else position) - start
                if ahead > self.rendered[part]:
                    self._set_rendered(part, ahead)
            part, start = part + 1, stop
        claim.position = position

    def credit(self, part: int) -> int:
        """Frames newly credited: the size of the part, 0 if it was credited before or isn't one."""
        if not 0 <= part < len(self.state) or self.state[part] == CREDITED:
            return 0
        if self.rendered[part]:
            self._set_rendered(part, 0)
        return self._set_state(part, CREDITED)

    def void(self, part: int) -> int:
        """A credited part is not credited any more. Returns its frames, 0 if it wasn't credited."""
        if part not in self or self.state[part] != CREDITED:
            return 0
        self._reopen(part)
        return self.grid.size(part)

    def set_aside(self, part: int) -> None:
        if part in self and self.state[part] != CREDITED:
            self._set_rendered(part, 0)
            self._set_state(part, SET_ASIDE)

    def retry(self, start: int, stop: int) -> None:
        """Parts of frames ``[start, stop)`` that were set aside are open again."""
        for part in self.grid.parts_in(start, stop):
            if self.state[part] == SET_ASIDE:
                self._reopen(part)

    def _reopen(self, part: int) -> None:
        self._set_state(part, OPEN)
        self._refresh(part)

    def _refresh(self, part: int, *, lapsed: bool = False) -> None:
        state = self.state[part]
        if state in _SETTLED:
            return
        holders = self._holders[part]
        if holders:
            self._set_state(part, DUPLICATE if holders > 1 else CLAIMED)
        elif state != LAPSED:
            self._set_state(part, LAPSED if lapsed else OPEN)

    def _set_state(self, part: int, state: int) -> int:
        """Frames of the part; 0 if it was in this state before."""
        old = self.state[part]
        if state == old:
            return 0
        cuts = self.grid.cuts
        size = cuts[part + 1] - cuts[part]
        self.frames_in[old] -= size
        self.frames_in[state] += size
        self.state[part] = state
        self._mark(part)
        return size

    def _mark(self, part: int) -> None:
        """It is to be drawn again. Where all are, as while a long log is read, none needs a note."""
        if not self.all_dirty:
            self.dirty.add(part)

    def _set_rendered(self, part: int, frames: int) -> None:
        change = (0 if self.state[part] in _SETTLED else frames) - self.rendered[part]
        if change:
            self.rendered[part] += change
            self.rendered_frames += change
            self._mark(part)
