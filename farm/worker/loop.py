"""The life of a worker: join, then claim, render and deliver, until there is no more work.

Four threads. This one renders; ``channel`` reads answers, ``heartbeat`` says we live, ``delivery`` takes
parts to the store. They meet in ``Orders``, which knows what the relay wants, as last heard.

What ends what (DESIGN.md §4 and §6):
- a claim that is not live any more, or a part wholly outside ``[next, stop)``: the part in progress is
  dropped at its next frame;
- hold: between parts, until it is lifted;
- drain: the part in progress is finished and delivered, the rest released, and the worker leaves;
- *not claimant* for anything: that claim is dropped, and the next one is asked for;
- a part that can't be rendered: what was rendered before it is delivered, then the claim is failed;
- a message that the relay refuses: that is our own fault, so the worker leaves;
- no connection, or no answer for three leases: the worker ends. Rendered parts stay in its spool, and are
  offered by the next worker that works in it, before it asks for any claim.
"""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from collections.abc import Callable

from farm.clock import Clock
from farm.frames import PartGrid
from farm.manners import AHEAD_SECONDS
from farm.messages import (
    AnyAnswer,
    AnyRequest,
    Claim,
    Complete,
    Completed,
    Fail,
    Finished,
    Join,
    Leave,
    Parked,
    Refused,
    Release,
    Welcome,
)
from farm.store import part_file_name
from farm.worker.blocks import BlockSender
from farm.worker.channel import Channel, ChannelClosed
from farm.worker.delivery import Deliveries, Failure, Rendered
from farm.worker.faults import Faults
from farm.worker.heartbeat import Heartbeats
from farm.worker.log import Log
from farm.worker.offers import Offers
from farm.worker.orders import HeldClaim, Orders
from farm.worker.renderer import UNEXPECTED, PartAborted, PartProgress, Renderer, failure_of
from farm.worker.spec import WorkerSpec
from farm.worker.throttle import Throttle

#: How long a worker that says good-bye waits for the answer.
BYE_SECONDS = 2.0


class RelayRefused(Exception):
    """The relay did not take a message of ours."""


class WorkerLoop:
    """``renderer(linear)`` opens a renderer; ``sock`` is the worker's end of its connection."""

    def __init__(
        self,
        spec: WorkerSpec,
        sock: socket.socket,
        renderer: Callable[[bool], Renderer],
        log: Log,
        clock: Clock,
        faults: Faults | None = None,
    ) -> None:
        self._spec = spec
        self._grid = PartGrid(spec.cuts)
        self._open_renderer = renderer
        self._log = log
        self._clock = clock
        self.orders = Orders(clock)
        self.faults = faults or Faults(clock, log)
        self._channel = Channel(self.faults.wire(sock), self._heard, self.orders.closed)
        blocks = None
        if spec.link is not None:
            blocks = BlockSender(spec, self._channel, self.orders, clock, log, self.faults)
        self._deliveries = Deliveries(self._channel, self.orders, spec.store_dir, log, self.faults, blocks)
        self._offers = Offers(spec, self._ask, self.orders, self._deliveries, log)
        self._throttle = Throttle(spec.profile.fps_cap, clock, self._sleep_paced)
        self._free_at: float | None = None  # when the last claim's work was scheduled to end; None: parked
        self._heartbeats: Heartbeats | None = None
        self._renderer: Renderer | None = None
        self._renderer_linear = False
        self._in_hand: tuple[HeldClaim, int, int] | None = None  # claim, start and stop of the part

    def run(self) -> int:
        """The whole life; returns the process's exit code: 0 after a good-bye or at the engine's wish."""
        self._channel.start()
        code = 0
        try:
            self._join()
            self._deliveries.start()
            self._spec.spool_dir.mkdir(exist_ok=True)
            while (claim := self._claim()) is not None:
                self._work(claim)
            self._leave("drained" if self.orders.drain else "no more work")
        except RelayRefused as refusal:
            self._log.line(f"the relay refused: {refusal}")
            self._leave(f"refused: {refusal}")
            code = 1
        except ChannelClosed as closed:
            self._log.line(f"end: {closed}")
        finally:
            self._channel.close("the worker ends")
            self._stop_heartbeats()
            self._drop_renderer()
        return code

    # --- talking

    def _heard(self, answer: AnyAnswer) -> None:
        if not self.faults.hear(answer):
            self.orders.heard(answer)

    def _ask(self, request: AnyRequest) -> AnyAnswer:
        answer = self._channel.ask(request)
        if isinstance(answer, Refused):
            raise RelayRefused(self.orders.refused)
        return answer

    def _join(self) -> None:
        profile = self._spec.profile
        welcome = self._ask(
            Join(
                worker=profile.name,
                pid=os.getpid(),
                build=self._spec.build,
                fps_cap=profile.fps_cap,
                overhead_seconds=profile.overhead_seconds,
            )
        )
        if not isinstance(welcome, Welcome):
            raise RelayRefused(f"{type(welcome).__name__} instead of a welcome")
        self._log.line(f"joined, epoch {welcome.epoch}")
        self._heartbeats = Heartbeats(
            self._channel,
            self.orders,
            self._clock.now,
            heartbeat_seconds=welcome.heartbeat_seconds,
            lease_seconds=welcome.lease_seconds,
            mute=lambda: self.faults.mute,
        )
        self._heartbeats.start()

    def _stop_heartbeats(self) -> None:
        heartbeats, self._heartbeats = self._heartbeats, None
        if heartbeats is not None:
            heartbeats.stop()

    def _claim(self) -> HeldClaim | None:
        """The next claim, waited for if there is none now. None: leave. What is left in spools is offered
        first. Who is parked asks again only if a claim came in between and was taken back, or was for what it
        had offered."""
        orders = self.orders
        look, asked_at = self._offers.due, -1  # how many claims there had been when it last asked
        while True:
            claim = orders.take_grant()
            if claim is not None:
                return claim
            if look or orders.has_orphans:
                look = False
                self._offers.make()
                continue
            if orders.leaving or orders.finished:
                return None
            if asked_at != orders.grants:
                asked_at = orders.grants
                self._ask_for_claim()
            orders.wait_for_news(asked_at)

    def _ask_for_claim(self) -> None:
        answer = self._ask(Claim())
        if isinstance(answer, Parked):
            self._free_at = None
            self._log.line(f"parked: {answer.why}")
        elif isinstance(answer, Finished):
            self._log.line(f"finished: {answer.why}")

    def _leave(self, reason: str) -> None:
        self._log.line(f"leave: {reason}")
        self._stop_heartbeats()  # after the good-bye they would come from a stranger
        with contextlib.suppress(ChannelClosed, TimeoutError):  # we go anyway
            self._channel.ask(Leave(reason=reason), BYE_SECONDS)

    # --- one claim

    def _work(self, claim: HeldClaim) -> None:
        self._log.begin(claim.token)
        linear = ", read from the start" if claim.linear else ""
        self._log.line(
            f"{self._spec.name} claims {claim.token}: frames [{claim.start}, {claim.stop}){linear}"
        )
        try:
            self._wait_overhead(claim)
            while self._work_round(claim):
                pass
            self._log.line(f"{claim.token} is over: {claim.why or 'nothing left to do'}")
        finally:
            self._log.end()
            if self._free_at is None or self._free_at < claim.granted_at:
                self._free_at = self._clock.now()  # nothing was rendered to its end

    def _wait_overhead(self, claim: HeldClaim) -> None:
        """The profile's overhead is what a claim costs this worker, the real cost of getting it included: it
        counts from the scheduled end of the last claim's work, if that was waited for by nothing but the
        claim, else from the grant's arrival. A claim held ahead has it behind it, or part of it."""
        overhead = self._spec.profile.overhead_seconds
        work_at = claim.granted_at + overhead
        if self._free_at is not None:
            work_at = max(claim.granted_at, self._free_at, min(work_at, self._free_at + overhead))
        self.orders.wait(lambda: not claim.live or self.orders.leaving, work_at)
        self._throttle.begin(work_at)

    def _work_round(self, claim: HeldClaim) -> bool:
        """Render and deliver what the claim wants now, then tell the relay; whether the claim goes on."""
        failure = self._render_parts(claim)
        self._wait_idle()
        failure = self._deliveries.take_failure() or failure
        if self.orders.refused:
            raise RelayRefused(self.orders.refused)
        if not claim.live:
            return False
        if failure is not None:
            self._ask(Fail(token=claim.token, part=failure.part, kind=failure.kind, message=failure.message))
            return False
        if not self.orders.drain or claim.next_part(self._grid) is None:
            answer = self._ask(Complete(token=claim.token))
            if not isinstance(answer, Completed) or answer.done:
                return False
            self._log.line(f"{claim.token} goes on at {answer.next}")
            claim.cursor = answer.next
            if not self.orders.leaving and claim.next_part(self._grid) is not None:
                return True
        self._log.line(f"{claim.token}: releases [{claim.cursor}, {claim.stop})")
        self._ask(Release(token=claim.token))
        return False

    def _render_parts(self, claim: HeldClaim) -> Failure | None:
        """Render part after part until the claim is at its end, is over, fails, or the worker is to leave."""
        orders = self.orders
        while True:
            orders.wait(lambda: not orders.hold or not claim.live or orders.leaving)
            self._wait_room(claim)
            if orders.leaving or self._deliveries.failed:
                return None
            part = claim.next_part(self._grid)
            if part is None:
                return None
            try:
                self._render(claim, part)
            except PartAborted:
                self._log.line(f"part {part}: aborted, {claim.why or 'outside the claim by now'}")
            except Exception as error:
                failure = failure_of(part, error)
                if failure.kind == UNEXPECTED:  # any other says in its sentence what it is
                    traceback.print_exc()
                self._drop_renderer()
                return failure

    def _wait_idle(self) -> None:
        """Wait until all is delivered. For as long as its link takes, a worker could not have begun the next
        claim: none of that is lateness."""
        began = self._clock.now()
        self._deliveries.wait_idle()
        if self._spec.link is not None and self._free_at is not None:
            self._free_at += self._clock.now() - began

    def _wait_room(self, claim: HeldClaim) -> None:
        """Wait until another part may be begun. Behind a link that is slower than the rendering, this is most
        of the time, and counts as rendering: else the relay would give a worker what its link can't carry."""
        if self._spec.link is None:
            self._deliveries.wait_room()
            return
        began = claim.part_began_at = self._clock.now()
        self._deliveries.wait_room()
        waited = self._clock.now() - began
        claim.render_seconds += waited
        claim.part_began_at = None
        self._throttle.postpone(waited)

    def _render(self, claim: HeldClaim, part: int) -> None:
        start, stop = self._grid.start(part), self._grid.stop(part)
        path = self._spec.spool_dir / part_file_name(part, claim.token)
        path.unlink(missing_ok=True)
        renderer = self._renderer_for(claim.linear)
        began = claim.part_began_at = self._clock.now()
        rendered_before = claim.rendered
        self._in_hand = (claim, start, stop)
        try:
            facts = renderer.render(part, start, stop, path, PartProgress(claim, start, self.pace))
        finally:
            self._in_hand = None
            seconds = self._clock.now() - began
            claim.render_seconds += seconds
            claim.part_began_at = None
        self._free_at = min(self._clock.now(), self._throttle.due)
        claim.cursor = claim.position = stop
        claim.rendered = rendered_before + stop - start
        self._log.line(
            f"part {part}: rendered [{start}, {stop}), {facts.size_bytes} bytes in {seconds:.2f} s"
        )
        self._deliveries.put(Rendered(claim, facts, path, seconds, claim.rendered, claim.render_seconds))

    def _renderer_for(self, linear: bool) -> Renderer:
        if self._renderer is None or self._renderer_linear != linear:
            self._drop_renderer()
            self._renderer = self._open_renderer(linear)
            self._renderer_linear = linear
        return self._renderer

    def _drop_renderer(self) -> None:
        renderer, self._renderer = self._renderer, None
        if renderer is not None:
            renderer.close()

    # --- one frame

    def aborted(self) -> bool:
        """The part in hand is of no use any more."""
        if self._in_hand is None:
            return False
        claim, start, stop = self._in_hand
        return self.orders.cut_off or not claim.wants(start, stop)

    def pace(self) -> None:
        """Wait until the next frame may be encoded. Raises PartAborted."""
        try:
            self._ask_ahead()
            self.faults.before_frame(self._sleep)
            while not self.aborted():
                self._take_cap()
                if self._throttle.wait(self.faults.speed):
                    return
            raise PartAborted
        except ChannelClosed as closed:
            raise PartAborted from closed

    def _take_cap(self) -> None:
        cap = self.orders.take_fps_cap()
        if cap is not None:
            self._log.line(f"throttled to {cap:g} fps" if cap else "throttled no more")
            self._throttle.change(cap or None)

    def _ask_ahead(self) -> None:
        """Ask for the next claim when this one's end is about as far away as the overhead of a claim, so that
        it passes meanwhile. Once a claim; the answer comes as a grant, or not at all."""
        if self._in_hand is None or not self.orders.claim_ahead or self.orders.leaving:
            return
        claim = self._in_hand[0]
        spent = claim.seconds(self._clock.now())
        if claim.asked_ahead or claim.rendered < 1 or spent <= 0:
            return
        left_seconds = (claim.stop - claim.position) * spent / claim.rendered
        if left_seconds <= self._spec.profile.overhead_seconds + AHEAD_SECONDS:
            claim.asked_ahead = True
            self._channel.send(Claim(ahead=True))

    def _sleep(self, seconds: float) -> bool:
        return self.orders.wait(self.aborted, self._clock.now() + seconds)

    def _sleep_paced(self, seconds: float) -> bool:
        """As ``_sleep``; another cap ends it as well, or a slow frame would have to be waited for."""
        return self.orders.wait(
            lambda: self.aborted() or self.orders.fps_cap is not None, self._clock.now() + seconds
        )
