"""A simulated worker: farm/worker/loop.py in virtual time, message by message.

Like the real one it joins, then claims, waits its overhead, renders part after part and delivers beside
rendering; asks again when its last part was acknowledged; beats every few seconds; drops what lies outside
``[next, stop)``; stops at the next frame when its claim is over; waits between parts on hold; on drain
finishes the part in hand, releases the rest and leaves.

Theory of operation. ``doing`` says what its working thread is at. ``go_on`` is that thread: called whenever
something it may be waiting for has come, it goes as far as it can. ``_stamp`` dates what it put on the
agenda: an entry with an older stamp is void.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

from farm import messages as msg
from farm.events import ClaimProgress
from farm.frames import PartGrid
from farm.manners import AHEAD_SECONDS, SILENT_LEASES, SILENT_SECONDS_MIN
from farm.simulation.agenda import Agenda
from farm.simulation.bench import Bench
from farm.simulation.claims import Claims, HeldClaim
from farm.simulation.delivery import Deliveries, RenderedPart
from farm.simulation.doing import (
    ABORTING,
    AWAY,
    GONE,
    IDLE,
    IN_HAND,
    NOT_THERE,
    OVERHEAD,
    RENDERING,
    WAITING,
    Doing,
)
from farm.simulation.heartbeats import Heartbeats
from farm.simulation.line import Line
from farm.simulation.world import SimWorker


class Worker:
    """``deliveries`` makes those of a new process; ``beats``: whether it sends heartbeats."""

    def __init__(
        self,
        spec: SimWorker,
        grid: PartGrid,
        bench: Bench,
        agenda: Agenda,
        line: Line,
        deliveries: Callable[[], Deliveries],
        *,
        beats: bool,
    ) -> None:
        line.hearer = self
        self.spec = spec
        self.name = spec.name
        self.doing = Doing.AWAY
        self.frozen = False  #: its process is stopped
        self.fps_cap: float | None = None  #: an operator's, for this process once told, and those after it
        self._shares = [1.0, 1.0]  # of its speed: what the cap leaves, and what a fault leaves
        self.rendered_frames = 0  #: whole frames, whatever became of them
        self.idle_seconds = 0.0  #: without a claim, from its arrival to its end
        self._grid = grid
        self._bench = bench
        self._agenda = agenda
        self._line = line
        self._heartbeats = Heartbeats(agenda, line, self._progress) if beats else None
        self._make_deliveries = deliveries
        self._stamp = 0
        self._idle_since: float | None = None
        self._forget()

    def _forget(self) -> None:
        """As a new process."""
        self.claim: HeldClaim | None = None
        self._claims = Claims()
        self._deliveries = self._make_deliveries()
        self._asked = False  # a question of the working thread is not answered yet, or with Parked
        self._asked_ahead = False
        self._hold = self._drain = self._finished = self._ahead = False
        self._heard_at = self._lease_seconds = 0.0
        self._work_at = 0.0  # when the overhead is over
        self._free_at: float | None = None  # when the last claim's work ended; None: parked since
        self._part = 0
        self._full_since: float | None = None  # its link is what it waits for, before another part

    # --- what happens to it ------------------------------------------------------------------------------

    def arrive(self) -> None:
        """Join. Its first question follows when all who arrive now have joined."""
        if self.doing is not Doing.AWAY:
            return
        self._forget()
        self.doing = IDLE
        self._asked = True
        self._idle_since = self._heard_at = self._agenda.now
        overhead = self.spec.overhead_seconds
        if self.fps_cap is not None:
            self._take_cap()
        cap = self.fps_cap or self.spec.fps
        self._line.send(msg.Join(worker=self.name, fps_cap=cap, overhead_seconds=overhead))

    def freeze(self) -> None:
        """SIGSTOP."""
        if self.frozen:
            return
        if self.doing in IN_HAND:
            self._bench.halt(self._agenda.now)
        self.frozen = True
        self._stop()

    def thaw(self) -> None:
        """SIGCONT: it goes on from where it was, and beats at once."""
        if not self.frozen:
            return
        self.frozen = False
        now = self._agenda.now
        if self.doing is OVERHEAD:
            self._agenda.add(max(now, self._work_at), self._begin, self._stamp)
        elif self.doing in IN_HAND:
            self._agenda.add(self._bench.resume(now), self._rendered, self._stamp)
        if self.doing in NOT_THERE:
            return
        self._line.listen()
        if self._heartbeats is not None:
            self._heartbeats.resume()
        self._deliveries.resume()
        self.go_on()

    def die(self, *, for_good: bool = True) -> None:
        """SIGKILL; unless it is for good, it may arrive anew."""
        self._drop_part()
        self._end(Doing.GONE if for_good else Doing.AWAY)
        self._line.drop()

    def give_up(self) -> None:
        """Too long without an answer: the process ends. It may arrive anew."""
        if self.frozen or self.doing in NOT_THERE:
            return
        self._drop_part()
        self._end(Doing.AWAY)
        self._line.drop()

    @property
    def patience_ends_at(self) -> float:
        """When it will give up, if it hears nothing until then: never before it was welcomed."""
        patience_seconds = max(SILENT_LEASES * self._lease_seconds, SILENT_SECONDS_MIN)
        return self._heard_at + patience_seconds if self._lease_seconds else inf

    @property
    def at_work(self) -> bool:
        return not self.frozen and (self.doing is OVERHEAD or self.doing in IN_HAND)

    def settle(self) -> None:
        """The simulation ends: count what is in hand."""
        self._drop_part()
        self._note_idle(False)

    def _end(self, doing: Doing) -> None:
        self.doing = doing
        self._note_idle(False)
        self._stop()
        self._deliveries.drop()
        self._deliveries = self._make_deliveries()
        self._claims = Claims()
        self.claim = None

    def _stop(self) -> None:
        """Nothing that was planned happens."""
        self._stamp += 1
        if self._heartbeats is not None:
            self._heartbeats.stop()

    def _note_idle(self, idle: bool) -> None:
        now = self._agenda.now
        if self._idle_since is not None:
            self.idle_seconds += now - self._idle_since
        self._idle_since = now if idle else None

    # --- hearing -----------------------------------------------------------------------------------------

    def hear(self, answer: msg.AnyAnswer) -> None:
        if self.doing is AWAY or self.doing is GONE:
            return
        self._heard_at = self._agenda.now
        _HEAR[type(answer)](self, answer)
        if self.doing is WAITING or self.doing is IDLE:
            self.go_on()

    def _welcome(self, answer: msg.Welcome) -> None:
        self._lease_seconds = answer.lease_seconds
        self._ahead = answer.claim_ahead
        if self._heartbeats is not None:
            self._heartbeats.start(answer.heartbeat_seconds)
        self._agenda.add(self._agenda.now, self._ask_first)

    def _ask_first(self, _: None) -> None:
        if self.doing is IDLE and not self._claims.granted:
            self._asked = False
            self.go_on()

    def _grant(self, answer: msg.Granted) -> None:
        self._claims.grant(answer, self._agenda.now)
        self._lease_seconds = answer.lease_seconds
        self._asked_ahead = False
        if self.claim is None:
            self._asked = False

    def _park(self, answer: msg.Parked) -> None:
        if self._asked_ahead:
            self._asked_ahead = False  # not now: it asks again when it is idle
        else:
            self._free_at = None

    def _finish(self, answer: msg.Finished) -> None:
        self._finished = True
        self._asked_ahead = False

    def _beat_answered(self, answer: msg.Beat) -> None:
        self._hold = answer.hold
        self._drain = self._drain or answer.drain
        if answer.fps_cap is not None:
            self._take_cap()
        for state in answer.claims:
            self._claims.update(state.token, state.next, state.stop, state.live)
        self._look_up()

    def _delivered(self, answer: msg.Delivered) -> None:
        self._claims.update(answer.token, answer.next, answer.stop, answer.live)
        if self.doing is not WAITING:
            self._look_up()
        self._deliveries.answered()

    def _block_stored(self, answer: msg.BlockStored) -> None:
        self._claims.update(answer.token, answer.next, answer.stop, answer.live)
        if self.doing is not WAITING:
            self._look_up()
        self._deliveries.stored(answer)

    def _completed(self, answer: msg.Completed) -> None:
        self._asked = False
        self._claims.update(answer.token, answer.next, answer.stop, not answer.done)
        claim = self.claim
        if claim is None or claim.token != answer.token or answer.done:
            return
        claim.cursor = answer.next
        if max(claim.cursor, claim.next) >= claim.stop:
            self._asked = True
            self._line.send(msg.Release(token=claim.token))

    def _ended(self, answer: msg.Ended) -> None:
        self._claims.drop(answer.token)
        if self._deliveries.in_transit:  # the part was not what it should be
            self._look_up()
            self._deliveries.answered()
        else:
            self._asked = False

    def _not_claimant(self, answer: msg.NotClaimant) -> None:
        self._claims.drop(answer.token)
        self._look_up()
        if self._deliveries.in_transit:
            self._deliveries.answered()
        else:
            self._asked = False

    def _refused(self, answer: msg.Refused) -> None:
        if self._asked_ahead:
            self._asked_ahead = False
            return
        self._drop_part()
        self._leave(f"refused: {answer.reason}")

    def _bye(self, answer: msg.Bye) -> None:
        pass

    def _look_up(self) -> None:
        """Break off what is of no use any more: an overhead at once, a part at its next frame."""
        claim = self.claim
        if claim is None:
            return
        if self.doing is RENDERING:
            if not claim.wants(self._bench.start, self._bench.stop):
                self.doing = ABORTING
                self._stamp += 1
                self._agenda.add(self._bench.abort(self._agenda.now), self._rendered, self._stamp)
            elif self._ahead:
                self._consider_ahead(self._stamp)
        elif self.doing is OVERHEAD and (self._drain or not claim.live):
            self._stamp += 1
            self.doing = WAITING

    # --- the working thread ------------------------------------------------------------------------------

    def go_on(self) -> None:
        while (self.doing is WAITING or self.doing is IDLE) and not self.frozen:
            claim = self.claim
            if claim is None:
                claim = self._next_claim()
                if claim is None or self.doing is not WAITING:
                    return
            more = False
            if claim.live:
                if self._hold and not self._drain:
                    return
                frame = max(claim.cursor, claim.next)
                more = frame < claim.stop
                if more and not self._drain:
                    if self._deliveries.has_room():
                        self._start_part(frame)
                    elif self.spec.link is not None and self._full_since is None:
                        self._full_since = self._agenda.now
                    return
            if self._deliveries.in_transit or self._asked:
                return
            if not claim.live:
                self.claim = None
                self.doing = IDLE
                self._note_idle(True)
                if self._free_at is None:
                    self._free_at = self._agenda.now  # nothing was rendered to its end
                continue
            self._asked = True
            token = claim.token
            self._line.send(msg.Release(token=token) if more else msg.Complete(token=token))
            return

    def _next_claim(self) -> HeldClaim | None:
        """Take up the next claim, or ask for it, or leave."""
        claim = self._claims.take() if self._claims.granted else None
        if claim is not None:
            self._take_up(claim)
        elif self._drain or self._finished:
            self._leave("drained" if self._drain else "no more work")
        elif not self._asked and not self._asked_ahead:
            self._asked = True
            self._line.send(msg.Claim())
        return claim

    def _take_up(self, claim: HeldClaim) -> None:
        """The overhead counts from the end of the last claim's work, if that was waited for by nothing but
        the claim, else from the grant's arrival."""
        self._note_idle(False)
        self.claim = claim
        overhead = self.spec.overhead_seconds
        work_at = claim.granted_at + overhead
        if self._free_at is not None:
            sooner = self._free_at + overhead
            if sooner < work_at:
                work_at = sooner if sooner > claim.granted_at else claim.granted_at
            self._free_at = None
        self._work_at = work_at
        if work_at <= self._agenda.now:
            self.doing = WAITING
        else:
            self.doing = OVERHEAD
            self._agenda.add(work_at, self._begin, self._stamp)

    def _begin(self, stamp: int) -> None:
        if stamp == self._stamp:
            self.doing = WAITING
            self.go_on()

    def _leave(self, reason: str) -> None:
        self._end(Doing.GONE)
        self._line.send(msg.Leave(reason=reason))

    # --- one part ----------------------------------------------------------------------------------------

    def _start_part(self, frame: int) -> None:
        if self._full_since is not None and self.claim is not None:
            self.claim.seconds += self._agenda.now - self._full_since
            self._full_since = None
        self._part = part = self._grid.part_at(frame)
        cuts = self._grid.cuts
        self.doing = RENDERING
        at = self._bench.begin(cuts[part], cuts[part + 1], self._agenda.now)
        self._agenda.add(at, self._rendered, self._stamp)
        if self._ahead:
            self._consider_ahead(self._stamp)

    def _rendered(self, stamp: int) -> None:
        """The part in hand is done, or its last frame if it is of no use."""
        if stamp != self._stamp:
            return
        claim = self.claim
        assert claim is not None
        if self.doing is ABORTING:
            self._drop_part()
            self.doing = WAITING
        else:
            now = self._agenda.now
            bench = self._bench
            bench.done(now)
            start, stop = bench.start, bench.stop
            seconds = now - bench.begun_at
            rendered = stop - start
            self.rendered_frames += rendered
            claim.rendered += rendered
            claim.seconds += seconds
            claim.cursor = stop
            self._free_at = now
            part = RenderedPart(claim, self._part, start, stop, seconds, claim.rendered, claim.seconds)
            self.doing = WAITING
            self._deliveries.put(part)
        if self.doing is WAITING:
            self.go_on()

    def _drop_part(self) -> None:
        """Count the frames of a part that comes to nothing."""
        if self.doing in IN_HAND and self.claim is not None:
            frames = self._bench.position(self._agenda.now) - self._bench.start
            self.rendered_frames += frames
            self.claim.rendered += frames
            self.claim.seconds += self._agenda.now - self._bench.begun_at

    def _consider_ahead(self, stamp: int) -> None:
        """Ask for the next claim when what is left of this one, at its own pace so far, takes as long as the
        overhead and AHEAD_SECONDS: once for each claim, and only when something of it was rendered."""
        claim = self.claim
        if stamp != self._stamp or self.doing is not RENDERING or claim is None or claim.asked_ahead:
            return
        if self._claims.granted or not claim.live or self._drain or self._finished:
            return
        now = self._agenda.now
        bench = self._bench
        progress = bench.progress(now)
        done = claim.rendered + progress
        soonest = now + 1.0 / bench.speed(now)
        if done < 1.0:
            at = soonest
        else:
            left = claim.stop - bench.start - progress
            frame_seconds = (claim.seconds + now - bench.begun_at) / done
            at = now + left * frame_seconds - self.spec.overhead_seconds - AHEAD_SECONDS
        if at <= now:
            claim.asked_ahead = self._asked_ahead = True
            self._line.send(msg.Claim(ahead=True))
        elif at < bench.ends_at():
            self._agenda.add(max(at, soonest), self._consider_ahead, stamp)

    # --- its speed ---------------------------------------------------------------------------------------

    def _take_cap(self) -> None:
        cap = self.spec.fps if self.fps_cap is None else self.fps_cap
        self._keep(0, min(cap / self.spec.fps, 1.0))

    def _keep(self, which: int, share: float) -> None:
        """From now on it has that share of its speed; the part in hand ends when it does now."""
        self._shares[which] = share
        self._bench.slow(self._agenda.now, self._shares[0] * self._shares[1])
        if self.doing in IN_HAND and self._is_rendering:
            self._stamp += 1
            self._agenda.add(self._bench.ends_at(), self._rendered, self._stamp)
            if self._ahead and self.doing is RENDERING:
                self._consider_ahead(self._stamp)

    @property
    def _is_rendering(self) -> bool:
        """The part in hand goes on at this moment."""
        return not self.frozen

    # --- reporting ---------------------------------------------------------------------------------------

    def _progress(self) -> tuple[ClaimProgress, ...]:
        return tuple(map(self._progress_of, self._claims.held()))

    def _progress_of(self, claim: HeldClaim) -> ClaimProgress:
        now = self._agenda.now
        if claim is not self.claim or self.doing not in IN_HAND:
            waited = now - self._full_since if self._full_since is not None and claim is self.claim else 0.0
            return claim.progress(claim.cursor, 0, waited)
        position = self._bench.position(now)
        return claim.progress(position, position - self._bench.start, now - self._bench.begun_at)


_HEAR: Final[dict[type, Callable[[Worker, Any], None]]] = {
    msg.Welcome: Worker._welcome,
    msg.Granted: Worker._grant,
    msg.Parked: Worker._park,
    msg.Finished: Worker._finish,
    msg.Beat: Worker._beat_answered,
    msg.Delivered: Worker._delivered,
    msg.BlockStored: Worker._block_stored,
    msg.Completed: Worker._completed,
    msg.Ended: Worker._ended,
    msg.NotClaimant: Worker._not_claimant,
    msg.Refused: Worker._refused,
    msg.Bye: Worker._bye,
}
