"""The delivery thread: takes rendered parts to the store beside the rendering.

A part goes from the spool to the store by rename, under a name no other attempt uses, or over a link in
blocks (farm.worker.blocks), and only then is the relay told. At most WAITING_PARTS are rendered and not
acknowledged: the renderer waits for room before it begins another. A part that is of no use any more when its
turn comes is dropped. One that can't be moved, for want of space or rights, is a failure of its claim. One
whose claim was lost before it was in stays in the spool, to be offered.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from pathlib import Path

from farm.manners import WAITING_PARTS
from farm.messages import (
    DISK_FULL,
    AnyAnswer,
    BlockStored,
    Deliver,
    Delivered,
    Ended,
    NotClaimant,
)
from farm.parts import PartFacts
from farm.paths import is_full
from farm.store import part_file_name
from farm.worker.blocks import BlockSender
from farm.worker.channel import Channel, ChannelClosed
from farm.worker.faults import Faults
from farm.worker.log import Log
from farm.worker.orders import HeldClaim, Orders


@dataclass(frozen=True, slots=True)
class Rendered:
    """A part in the spool."""

    claim: HeldClaim
    facts: PartFacts
    path: Path
    render_seconds: float
    claim_rendered: int  #: frames rendered under the claim when it was done
    claim_seconds: float  #: seconds spent rendering under the claim when it was done


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a part could not be rendered or delivered; ``kind`` as in ``farm.messages.Fail``."""

    part: int
    kind: str
    message: str


class Deliveries:
    """``blocks`` None: the worker shares the store's disk."""

    def __init__(
        self,
        channel: Channel,
        orders: Orders,
        store: Path,
        log: Log,
        faults: Faults,
        blocks: BlockSender | None = None,
    ) -> None:
        self.left_behind = True  #: there may be finished parts in the spool that nobody delivers
        self._channel = channel
        self._orders = orders
        self._store = store
        self._log = log
        self._blocks = blocks
        self._faults = faults
        self._queue: queue.SimpleQueue[Rendered] = queue.SimpleQueue()
        self._waiting = 0  # handed over and not yet done with; guarded by orders.changed
        self._failure: Failure | None = None
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, rendered: Rendered) -> None:
        with self._orders.changed:
            self._waiting += 1
        self._queue.put(rendered)

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def take_failure(self) -> Failure | None:
        failure, self._failure = self._failure, None
        return failure

    def wait_room(self) -> None:
        """Wait until another part may be rendered. Raises ChannelClosed."""
        self._orders.wait(lambda: self._waiting < WAITING_PARTS or self._orders.cut_off)

    def wait_idle(self) -> None:
        """Wait until every part handed over was acknowledged, dropped or failed. Raises ChannelClosed."""
        self._orders.wait(lambda: self._waiting == 0 or self._orders.cut_off)

    def _run(self) -> None:
        while True:
            rendered = self._queue.get()
            try:
                self._deliver(rendered)
            except ChannelClosed:
                return
            except OSError as error:
                header = rendered.facts.header
                kind = DISK_FULL if is_full(error) else "error"
                self._failure = Failure(header.part, kind, f"the part can't be put into the store: {error}")
                self._log.line(f"part {header.part}: {self._failure.message}")
            finally:
                with self._orders.changed:
                    self._waiting -= 1
                    self._orders.changed.notify_all()

    def _deliver(self, rendered: Rendered) -> None:
        claim, header = rendered.claim, rendered.facts.header
        part = header.part
        if self._blocks is None:
            self._faults.before_delivery(self._sleep)
        if self._orders.cut_off:
            return  # what is in the spool stays there
        if not claim.wants(header.start, header.stop):
            if claim.live:
                rendered.path.unlink(missing_ok=True)
            else:
                self.left_behind = True
            self._log.line(f"part {part}: dropped, {claim.why or 'outside the claim by now'}")
            return
        answer = (
            self._by_rename(rendered) if self._blocks is None else self._in_blocks(rendered, self._blocks)
        )
        match answer:
            case Delivered(frames=frames):
                credit = f"{frames} frames credited" if frames else "acknowledged, someone else's copy counts"
                self._log.line(f"part {part}: delivered, {credit}")
            case NotClaimant():
                self._log.line(f"part {part}: not taken, {claim.why}")
            case _:
                self._log.line(f"part {part}: not taken")

    def _by_rename(self, rendered: Rendered) -> AnyAnswer:
        name = part_file_name(rendered.facts.header.part, rendered.claim.token)
        facts = self._faults.shorten(rendered.facts, rendered.path)
        rendered.path.replace(self._store / name)
        self._faults.corrupt(self._store / name)
        answer = self._report(_deliver(rendered, facts, file=name))
        if isinstance(answer, Delivered):
            rendered.claim.delivered_bytes += facts.size_bytes
        return answer

    def _in_blocks(self, rendered: Rendered, blocks: BlockSender) -> AnyAnswer | None:
        """None: the part came to be of no use under its claim."""
        claim, header = rendered.claim, rendered.facts.header
        facts = self._faults.shorten(rendered.facts, rendered.path)
        answer: AnyAnswer | None = None
        while blocks.send(claim, facts, rendered.path):
            answer = self._report(_deliver(rendered, facts, blocks=blocks.blocks(facts)))
            if not isinstance(answer, BlockStored):
                break  # else it was not whole after all
        if isinstance(answer, Delivered | Ended) or (
            claim.live and not claim.wants(header.start, header.stop)
        ):
            rendered.path.unlink(missing_ok=True)
        else:
            self.left_behind = True
        return answer

    def _report(self, request: Deliver) -> AnyAnswer:
        return self._faults.report(self._channel.ask, request, self._sleep)

    def _sleep(self, seconds: float) -> bool:
        return self._orders.pause(lambda: self._orders.cut_off, seconds)


def _deliver(rendered: Rendered, facts: PartFacts, *, file: str = "", blocks: int = 0) -> Deliver:
    claim = rendered.claim
    return Deliver(
        token=claim.token,
        part=facts.header.part,
        file=file,
        blocks=blocks,
        frames=facts.footer.frames,
        size_bytes=facts.size_bytes,
        sha256=facts.sha256,
        render_seconds=rendered.render_seconds,
        first_frame_crc=facts.footer.first_frame_crc,
        next_frame_crc=facts.footer.next_frame_crc,
        lost_frames=facts.footer.lost_frames,
        linear=claim.linear,
        claim_rendered=rendered.claim_rendered,
        claim_seconds=rendered.claim_seconds,
    )
