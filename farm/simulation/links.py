"""A simulated worker's deliveries over a link: farm/worker/blocks.py and the delivery desk in virtual time.

Block by block, with the messages of the live farm: ask where to begin, wait for a place at the store, send
each block when the link has carried it, ask again when the link broke. Nothing is stored, so how much of a
part is there is known here. A block on its way goes on while its worker is stopped; what would be said then
is said when it goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from farm.fleet import LinkProfile
from farm.manners import BLOCK_TRIES_MAX, DELIVERIES_MAX
from farm.messages import Begin, Block, BlockStored, Deliver, Fail
from farm.simulation.agenda import Agenda
from farm.simulation.delivery import Deliveries, RenderedPart
from farm.simulation.line import Line
from farm.simulation.noise import Stream

#: The wait after trouble (farm.worker.link.Backoff).
RETRY_SECONDS = 0.1
RETRY_SECONDS_MAX = 15.0


class Places:
    """Who delivers in blocks now; the others wait in the order they came."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._taken: set[LinkedDeliveries] = set()
        self._waiting: deque[LinkedDeliveries] = deque()

    def ask(self, who: LinkedDeliveries) -> bool:
        """Whether there is a place; else ``who`` is called when there is."""
        if who in self._taken:
            return True
        if len(self._taken) >= DELIVERIES_MAX:
            self._waiting.append(who)
            return False
        self._taken.add(who)
        return True

    def give_up(self, who: LinkedDeliveries) -> None:
        if who in self._waiting:
            self._waiting.remove(who)
        if who in self._taken:
            self._taken.remove(who)
            if self._waiting:
                next_one = self._waiting.popleft()
                self._taken.add(next_one)
                self._agenda.soon.append((next_one.got_place, None))


class LinkedDeliveries(Deliveries):
    """``frame_bytes``: size of a rendered frame. ``stream`` says which blocks break the link."""

    __slots__ = (
        "_agenda",
        "_before",
        "_damaged",
        "_done",
        "_frame_bytes",
        "_gone",
        "_link",
        "_part",
        "_places",
        "_retry_seconds",
        "_said",
        "_stream",
        "_tries",
    )

    def __init__(
        self,
        line: Line,
        agenda: Agenda,
        places: Places,
        link: LinkProfile,
        frame_bytes: float,
        stream: Stream,
    ) -> None:
        super().__init__(line)
        self._agenda = agenda
        self._places = places
        self._link = link
        self._frame_bytes = frame_bytes
        self._stream = stream
        self._part: RenderedPart | None = None  # the one in transit
        self._done = 0  # its blocks that are stored
        self._damaged = False  # its block on the way
        self._before = 0  # bytes its claim had delivered before it
        self._retry_seconds = RETRY_SECONDS
        self._tries = 0  # since a block was stored
        self._said: Begin | Block | Fail | None = None  # what is to be said when the worker goes on
        self._gone = False

    # --- from the worker ---------------------------------------------------------------------------------

    def stored(self, answer: BlockStored) -> None:
        part = self._part
        if part is None:
            return
        claim = part.claim
        claim.delivered_bytes = max(claim.delivered_bytes, self._before + self._stored_bytes(part))
        if not claim.wants(part.start, part.stop):
            self.answered()
        elif self._damaged:
            self._damaged = False
            self._retry(part, self._carry)
        elif self._done < self._blocks(part):
            self._carry(part)
        else:
            size_bytes = self._size(part)
            self._report(msgspec.structs.replace(part.deliver(), blocks=self._done, size_bytes=size_bytes))

    def answered(self) -> None:
        if self._part is not None:
            self._part.claim.queued = False
            self._part = None
        self._places.give_up(self)
        super().answered()

    def resume(self) -> None:
        said, self._said = self._said, None
        if said is not None and not self._gone:
            self._line.send(said)

    def drop(self) -> None:
        self._gone = True
        self._part = None
        self._places.give_up(self)

    def got_place(self, _: None = None) -> None:
        part = self._part
        if part is None or self._gone:
            self._places.give_up(self)
            return
        part.claim.queued = False
        self._say(
            Begin(
                token=part.claim.token,
                part=part.part,
                size_bytes=self._size(part),
                block_bytes=self._link.block_bytes,
                of=self._blocks(part),
                stored=self._done,
                stored_bytes=self._stored_bytes(part),
            )
        )

    # --- on the link -------------------------------------------------------------------------------------

    def _send(self, part: RenderedPart) -> None:
        self._part, self._done = part, 0
        self._before = part.claim.delivered_bytes
        self._tries, self._retry_seconds = 0, RETRY_SECONDS
        self._damaged = False
        self._begin(part)

    def _begin(self, part: RenderedPart) -> None:
        if self._places.ask(self):
            self.got_place()
        else:
            part.claim.queued = True

    def _carry(self, part: RenderedPart) -> None:
        link = self._link
        breaks = self._stream.chance(link.drop_rate)
        size = min(link.block_bytes, self._size(part) - self._done * link.block_bytes)
        sent = size * (self._stream.uniform() if breaks else 1.0)
        seconds = link.latency_seconds + link.sending_seconds(sent)
        handler = self._broke if breaks else self._carried
        self._agenda.add(self._agenda.now + seconds, handler, part)

    def _carried(self, part: RenderedPart) -> None:
        if part is not self._part:
            return
        index = self._done
        self._damaged = not self._arrived_sound()
        if not self._damaged:
            self._done += 1
            self._tries, self._retry_seconds = 0, RETRY_SECONDS
        self._say(
            Block(
                token=part.claim.token,
                part=part.part,
                index=index,
                of=self._blocks(part),
                stored=self._done,
                stored_bytes=self._stored_bytes(part),
            )
        )

    def _broke(self, part: RenderedPart) -> None:
        if part is self._part:
            self._retry(part, self._begin)

    def _retry(self, part: RenderedPart, how: Callable[[RenderedPart], None]) -> None:
        """After trouble, when its time has come; after too much of it, the claim fails."""
        if self._tries >= BLOCK_TRIES_MAX:
            message = f"the store did not take it, and {BLOCK_TRIES_MAX} tries before"
            self._say(Fail(token=part.claim.token, part=part.part, message=message))
            return
        self._tries += 1
        seconds = self._retry_seconds * self._stream.uniform(0.5, 1.0)
        self._retry_seconds = min(2.0 * self._retry_seconds, RETRY_SECONDS_MAX)
        self._agenda.add(self._agenda.now + seconds, self._again, (part, how))

    def _again(self, retried: tuple[RenderedPart, Callable[[RenderedPart], None]]) -> None:
        part, how = retried
        if part is not self._part:
            return
        if part.claim.wants(part.start, part.stop):
            how(part)
        else:
            self.answered()

    def _arrived_sound(self) -> bool:
        """The block that was just carried."""
        return True

    def _report(self, request: Deliver) -> None:
        """All blocks are in."""
        self._line.send(request)

    def _say(self, request: Begin | Block | Fail) -> None:
        if self._line.hearer.frozen:
            self._said = request
        else:
            self._line.send(request)

    # --- sizes -------------------------------------------------------------------------------------------

    def _size(self, part: RenderedPart) -> int:
        return max(1, round((part.stop - part.start) * self._frame_bytes))

    def _blocks(self, part: RenderedPart) -> int:
        return self._link.blocks(self._size(part))

    def _stored_bytes(self, part: RenderedPart) -> int:
        return min(self._done * self._link.block_bytes, self._size(part))
