"""Sends parts in blocks: asks the relay where to begin, sends each block until it is stored, and goes on
after the last good one when the delivery breaks. Nothing is rendered again: the bytes are in the spool.

Three kinds of trouble, and what follows: the link broke (wait, ask where to go on), the store refuses (wait,
the same block again), a block came damaged (the same block again). BLOCK_TRIES_MAX of them in a row without a
block stored are a failure of the claim. Between two blocks it is looked whether the part is still wanted.
"""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from typing import BinaryIO

from farm.clock import Clock
from farm.manners import BLOCK_TRIES_MAX
from farm.messages import AnyAnswer, Begin, Block, BlockStored
from farm.parts import PartFacts
from farm.worker.channel import Channel
from farm.worker.link import Backoff, Link, LinkBroken, LinkFaults, LinkInterrupted, StoreBusy
from farm.worker.log import Log
from farm.worker.orders import HeldClaim, Orders
from farm.worker.spec import WorkerSpec


class BlocksRefused(OSError):
    """The store did not take a part after many tries."""


class BlockSender:
    """For the delivery thread."""

    def __init__(
        self, spec: WorkerSpec, channel: Channel, orders: Orders, clock: Clock, log: Log, faults: LinkFaults
    ) -> None:
        assert spec.link is not None
        rng = random.Random(f"link of {spec.name}")
        self._channel = channel
        self._orders = orders
        self._clock = clock
        self._log = log
        self._profile = spec.link
        self._link = Link(spec.link, clock, self._sleep, rng, faults)
        self._backoff = Backoff(rng)
        self._wanted: tuple[HeldClaim, int, int] | None = None  # claim, start and stop of the part in hand

    def blocks(self, facts: PartFacts) -> int:
        """How many blocks a part has."""
        return self._profile.blocks(facts.size_bytes)

    def send(self, claim: HeldClaim, facts: PartFacts, path: Path) -> bool:
        """Send what the store has not got of a part; False if it came to be of no use.

        Raises BlocksRefused, OSError when the spool can't be read, and ChannelClosed.
        """
        header = facts.header
        self._wanted = claim, header.start, header.stop
        self._backoff.reset()
        delivered_before = claim.delivered_bytes
        at: int | None = None  # the block to send; None: ask
        with path.open("rb") as file:
            while self._is_wanted():
                try:
                    answer = (
                        self._begin(claim, facts) if at is None else self._send_block(file, claim, facts, at)
                    )
                except LinkInterrupted:
                    continue
                except LinkBroken as broken:
                    self._wait(claim, str(broken))
                    at = None
                    continue
                except StoreBusy as busy:
                    self._wait(claim, str(busy), busy.retry_after_seconds, queued=True)
                    continue
                if not isinstance(answer, BlockStored):
                    return False
                if at is not None and answer.next_block <= at:
                    self._again(header.part, at)
                elif at is not None:
                    self._backoff.reset()
                at = answer.next_block
                stored = min(at * self._profile.block_bytes, facts.size_bytes)
                claim.delivered_bytes = max(claim.delivered_bytes, delivered_before + stored)
                if at >= self.blocks(facts):
                    return True
        return False

    def _begin(self, claim: HeldClaim, facts: PartFacts) -> AnyAnswer:
        claim.queued = True
        try:
            answer = self._channel.ask(
                Begin(
                    token=claim.token,
                    part=facts.header.part,
                    size_bytes=facts.size_bytes,
                    sha256=facts.sha256,
                    block_bytes=self._profile.block_bytes,
                    of=self.blocks(facts),
                )
            )
        finally:
            claim.queued = False
        if isinstance(answer, BlockStored):
            place = f"from block {answer.next_block + 1} of {self.blocks(facts)}"
            self._log.line(f"part {facts.header.part}: goes to the store {place}")
        return answer

    def _send_block(self, file: BinaryIO, claim: HeldClaim, facts: PartFacts, index: int) -> AnyAnswer:
        file.seek(index * self._profile.block_bytes)
        data = file.read(self._profile.block_bytes)
        crc = zlib.crc32(data)
        part = facts.header.part
        data = self._link.carry(part, index, data)
        return self._channel.ask(
            Block(token=claim.token, part=part, index=index, of=self.blocks(facts), crc=crc, data=data)
        )

    # --- trouble

    def _again(self, part: int, index: int) -> None:
        """A block was not stored; without a wait at first, since damage is chance."""
        self._count(f"block {index + 1} of part {part} came damaged")
        if self._backoff.tries > 1:
            self._sleep(self._backoff.next())
        else:
            self._backoff.next()

    def _wait(self, claim: HeldClaim, why: str, least_seconds: float = 0.0, *, queued: bool = False) -> None:
        self._count(why)
        claim.queued = queued
        self._sleep(self._backoff.next(least_seconds))
        claim.queued = False

    def _count(self, why: str) -> None:
        self._log.line(f"delivery: {why}")
        if self._backoff.tries >= BLOCK_TRIES_MAX:
            raise BlocksRefused(f"{why}, and {BLOCK_TRIES_MAX} tries before")

    def _is_wanted(self) -> bool:
        assert self._wanted is not None
        claim, start, stop = self._wanted
        return not self._orders.cut_off and claim.wants(start, stop)

    def _sleep(self, seconds: float) -> bool:
        return self._orders.wait(lambda: not self._is_wanted(), self._clock.now() + seconds)
