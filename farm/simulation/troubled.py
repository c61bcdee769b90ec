"""A simulated worker that faults can be injected into (farm.simulation.faults)."""

from __future__ import annotations

from typing import Any

from farm import messages as msg
from farm.faults import Kind, Troubles
from farm.simulation.doing import ABORTING, RENDERING, WAITING
from farm.simulation.worker import Worker


class TroubledWorker(Worker):
    """As ``Worker`` for as long as ``ill`` is False and nothing else of here is called.

    ``troubles``: the faults it has, which its deliveries know of too; they outlive its process. ``ill``: one
    may keep it from rendering.
    """

    def __init__(self, *args: Any, troubles: Troubles, **options: Any) -> None:
        self.troubles = troubles
        self.ill = False
        self._failure = ""  # of the part that was in hand, as in farm.messages.Fail.kind
        super().__init__(*args, **options)

    @property
    def stands(self) -> bool:
        return self.ill and self.troubles.has("stand-still", self._agenda.now)

    # --- what is done to it ------------------------------------------------------------------------------

    def fall_ill(self) -> None:
        """A fault that keeps it from rendering begins."""
        self.ill = True
        if self.doing is RENDERING and not self.frozen:
            self._consider_health()

    def recover(self, kind: Kind) -> None:
        """That fault is over. Where two of a kind overlap, the first end is the end of both."""
        stood = self.stands
        self.troubles.end(kind)
        if kind == "stand-still" and stood and self.doing is RENDERING and not self.frozen:
            self._agenda.add(self._bench.resume(self._agenda.now), self._rendered, self._stamp)

    def slow(self, factor: float) -> None:
        """From now on it has that share of its speed."""
        self._keep(1, factor)

    @property
    def _is_rendering(self) -> bool:
        return not (self.frozen or self.stands)

    def lose_heartbeats(self, lost: bool) -> None:
        if self._heartbeats is not None:
            self._heartbeats.lost = lost

    # --- what is otherwise with it -----------------------------------------------------------------------

    def _forget(self) -> None:
        super()._forget()
        self._failure = ""

    def thaw(self) -> None:
        super().thaw()
        if self.ill and self.doing is RENDERING:
            self._consider_health()

    def _start_part(self, frame: int) -> None:
        super()._start_part(frame)
        if self.ill:
            self._consider_health()

    def _look_up(self) -> None:
        super()._look_up()
        if self.ill and self.doing is ABORTING and self.stands:
            self._stamp += 1
            self._agenda.add(self._agenda.now, self._rendered, self._stamp)

    def _consider_health(self) -> None:
        """Whether the part in hand goes on; if not, what was planned for it is void."""
        now = self._agenda.now
        if self.stands:
            self._stamp += 1
            self._bench.halt(now)
        elif self.troubles.take("fill-memory", now):
            self._stamp += 1
            self._agenda.add(self._bench.abort(now), self._run_out_of_memory, self._stamp)

    def _run_out_of_memory(self, stamp: int) -> None:
        if stamp == self._stamp:
            self._drop_part()
            self.doing = WAITING
            self._failure = "out of memory"
            self.go_on()

    def go_on(self) -> None:
        if not self._failure:
            super().go_on()
            return
        claim = self.claim
        if claim is None or not claim.live:
            self._failure = ""
            super().go_on()
        elif not (self.frozen or self._asked or self._deliveries.in_transit):
            self._asked = True
            self._line.send(msg.Fail(token=claim.token, part=self._part, kind=self._failure))
