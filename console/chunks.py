"""Every chunk of a run: what became of it, by whom, and why; folded from events.

Rules of this file:
- of every chunk that ever was, a row of columns is kept (about 50 bytes); the whole story only of chunks in
  flight and of those that ended last, and longer of those in trouble: ``is_told`` says whether it is there;
- the story is kept as the events themselves; words are made of them when somebody looks;
- a chunk ends with its last claim. What it leaves undone is open again and goes to another chunk: see
  ``followers``.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import Any, Final

import msgspec

from farm import events as ev

#: Ended chunks whose story is kept: of those where all went well, and of the others.
PLAIN_MAX, TROUBLED_MAX = 1_000, 3_000
#: Events of one chunk's story, and claims on it, that are kept.
STORY_MAX, ATTEMPTS_MAX = 64, 32
#: No run has more; a number beyond is from a log that can't be believed.
CHUNKS_MAX = 10_000_000

LAPSES: Final = frozenset({"lapsed", "stalled", "timed out"})


class ChunkState(IntEnum):
    UNKNOWN = 0  #: a gap in the log
    IN_FLIGHT = 1
    DUPLICATED = 2  #: in flight, with two live claims
    DONE = 3
    GIVEN_BACK = 4  #: its claims are over, and not all of it was credited


class Trait(IntFlag):
    """What happened to a chunk at some time; never taken back."""

    LAPSED = 1
    DUPLICATED = 2
    SET_ASIDE = 4
    SPLIT = 8
    REFUSED = 16
    REOPENED = 32  #: its frames had been in a claim before


#: With one of these a chunk's story is worth keeping for longer.
TROUBLE: Final = Trait.LAPSED | Trait.DUPLICATED | Trait.SET_ASIDE | Trait.REFUSED


class Attempt(msgspec.Struct, gc=False):
    """One claim on a chunk, live while ``until_seconds`` is None."""

    token: str
    chunk: int
    worker: str
    start: int
    stop: int
    from_seconds: float
    duplicate: bool
    why: str
    until_seconds: float | None = None
    how: str = ""
    reason: str = ""
    frames: int = 0  #: credited
    parts: int = 0  #: credited
    copies: int = 0  #: parts that came after somebody else's: no frames
    wasted_frames: int = 0
    size_bytes: int = 0  #: of the credited parts
    sha256: str = ""  #: of the last part that came
    refusals: int = 0


class ChunkStory(msgspec.Struct, gc=False):
    """All that is known of one chunk. Thousands are kept, hence no more containers than need be, and nothing
    for the garbage collector to follow: there are no cycles."""

    number: int
    attempts: dict[str, Attempt] = {}  #: by token, in the order of grants
    live: int = 0  #: claims
    records: list[ev.Record] = []  #: the newest, of what happened to it
    told: int = 0  #: records ever
    given_back: tuple[tuple[int, int], ...] = ()  #: frames that were open again

    def tell(self, record: ev.Record) -> None:
        self.records.append(record)
        self.told += 1
        if len(self.records) > STORY_MAX:
            del self.records[0]

    def holders(self) -> list[str]:
        """Workers with a live claim."""
        return [attempt.worker for attempt in self.attempts.values() if attempt.until_seconds is None]

    def digest(self) -> tuple[object, ...]:
        told = [(record.at, record.event) for record in self.records]
        return repr(self.attempts), self.live, repr(told), self.told, self.given_back


class ChunkBook:
    """The chunks of one run by number. Read it freely; only ``HANDLERS`` and ``void`` write."""

    def __init__(self) -> None:
        self.state = bytearray()
        self.traits = bytearray()
        self.start = array("q")
        self.stop = array("q")
        self.from_seconds = array("d")
        self.until_seconds = array("d")  #: meaningless while in flight
        self.credited = array("q")  #: frames, voided ones taken out
        self.attempts = array("L")  #: claims ever granted on it
        self.worker = array("L")  #: who had the newest claim: index into ``workers``
        self.workers: list[str] = []
        self.live: dict[int, ChunkStory] = {}
        #: Numbers of the chunks with a trait, in the order in which they got it.
        self.having: dict[Trait, array[int]] = {trait: array("q") for trait in Trait}
        self.changes = 0  #: grows with everything that a list of chunks shows, but for rendering
        self._stories: dict[int, ChunkStory] = {}
        self._live: dict[str, Attempt] = {}  #: live claims by token: what most events are about
        self._plain: deque[int] = deque()
        self._troubled: deque[int] = deque()
        self._index: dict[str, int] = {}
        self._failed_in: dict[int, int] = {}  #: chunk in which a part failed, until it is credited or retried

    def __len__(self) -> int:
        """Chunks ever, those that the log says nothing of included."""
        return len(self.state)

    # --- reading -----------------------------------------------------------------------------------------

    def story(self, number: int) -> ChunkStory | None:
        """The whole story, where it is (still) known."""
        return self._stories.get(number)

    def number_of(self, token: str) -> int:
        """The number of the chunk that a token is of; -1 for what is no token."""
        attempt = self._live.get(token)
        return chunk_of(token) if attempt is None else attempt.chunk

    def worker_of(self, number: int) -> str:
        """Who had the newest claim on it."""
        return self.workers[self.worker[number]] if self.state[number] else ""

    def frames(self, number: int) -> int:
        return self.stop[number] - self.start[number]

    def has(self, number: int, trait: Trait) -> bool:
        return bool(self.traits[number] & trait)

    def followers(self, number: int, since: int = 0) -> list[int]:
        """The chunks, from number ``since`` on, that got what this one gave back."""
        story = self._stories.get(number)
        ranges = story.given_back if story else ()
        if not ranges:
            return []
        low, high = min(start for start, _ in ranges), max(stop for _, stop in ranges)
        return [
            other
            for other in range(max(number + 1, since), len(self))
            if self.start[other] < high and low < self.stop[other]
            if any(self.start[other] < stop and start < self.stop[other] for start, stop in ranges)
        ]

    def repeated(self, number: int, step: int) -> int | None:
        """The next chunk (``step`` 1) or the last one before (-1) with more than one claim, if any."""
        at = number + step
        while 0 <= at < len(self):
            if self.attempts[at] > 1:
                return at
            at += step
        return None

    def digest(self) -> tuple[object, ...]:
        """All of it as plain data."""
        columns = (self.start, self.stop, self.from_seconds, self.until_seconds, self.credited)
        return (
            bytes(self.state),
            bytes(self.traits),
            *(column.tobytes() for column in (*columns, self.attempts, self.worker)),
            {number: story.digest() for number, story in self._stories.items()},
            {trait.name: numbers.tolist() for trait, numbers in self.having.items()},
        )

    # --- folding -----------------------------------------------------------------------------------------

    def _claim_granted(self, record: ev.Record, event: ev.ClaimGranted) -> None:
        number = chunk_of(event.token)
        known = event.token in self._live
        if known or not 0 <= number < CHUNKS_MAX or event.stop <= event.start:
            return
        story = self._stories.get(number)
        if story is None:
            story = self._open(number, record.at, event)
        if len(story.attempts) >= ATTEMPTS_MAX:
            ended = (a.token for a in story.attempts.values() if a.until_seconds is not None)
            story.attempts.pop(next(ended, next(iter(story.attempts))))
        story.attempts[event.token] = self._live[event.token] = Attempt(
            event.token, number, event.worker, event.start, event.stop, record.at, event.duplicate, event.why
        )
        story.live += 1
        self.live[number] = story
        self.attempts[number] += 1
        self.worker[number] = self._worker(event.worker)
        self.state[number] = ChunkState.DUPLICATED if story.live > 1 else ChunkState.IN_FLIGHT
        if event.duplicate:
            self._mark(number, Trait.DUPLICATED)
        if event.reopened:
            self._mark(number, Trait.REOPENED)
        story.tell(record)
        self.changes += 1

    def _open(self, number: int, at: float, event: ev.ClaimGranted) -> ChunkStory:
        more = number + 1 - len(self.state)
        if more > 0:
            self.state.extend(bytes(more))
            self.traits.extend(bytes(more))
            for column in (self.start, self.stop, self.credited, self.attempts, self.worker):
                column.extend([0] * more)
            for times in (self.from_seconds, self.until_seconds):
                times.extend([at] * more)
        self.start[number], self.stop[number] = event.start, event.stop
        self.from_seconds[number] = at
        story = self._stories[number] = ChunkStory(number)
        return story

    def _worker(self, name: str) -> int:
        index = self._index.get(name)
        if index is None:
            index = self._index[name] = len(self.workers)
            self.workers.append(name)
        return index

    def _mark(self, number: int, trait: Trait) -> None:
        if not self.traits[number] & trait:
            self.traits[number] |= trait
            self.having[trait].append(number)

    def _attempt(self, token: str) -> tuple[ChunkStory | None, Attempt | None]:
        story = self._stories.get(chunk_of(token))
        return story, story.attempts.get(token) if story is not None else None

    def _claim_ended(self, record: ev.Record, event: ev.ClaimEnded) -> None:
        attempt = self._live.pop(event.token, None)
        if attempt is None:
            return
        number = attempt.chunk
        story = self.live[number]
        attempt.until_seconds, attempt.how, attempt.reason = record.at, event.how, event.reason
        attempt.wasted_frames += event.wasted_frames
        story.live -= 1
        if event.how in LAPSES:
            self._mark(number, Trait.LAPSED)
        if story.live:
            self.state[number] = ChunkState.IN_FLIGHT if story.live == 1 else ChunkState.DUPLICATED
        else:
            self.state[number] = ChunkState.GIVEN_BACK  # unless the next event says that it is complete
            self.until_seconds[number] = record.at
            del self.live[number]
            self._retire(number)
        story.tell(record)
        self.changes += 1

    def _retire(self, number: int) -> None:
        """Keep the story of a chunk that ended, at the price of the oldest one."""
        troubled = bool(self.traits[number] & TROUBLE)
        queue, most = (self._troubled, TROUBLED_MAX) if troubled else (self._plain, PLAIN_MAX)
        queue.append(number)
        if len(queue) > most:
            oldest = queue.popleft()
            if oldest not in self.live:
                self._stories.pop(oldest, None)

    def _chunk_completed(self, record: ev.Record, event: ev.ChunkCompleted) -> None:
        number = event.chunk
        if 0 <= number < len(self) and self.state[number] == ChunkState.GIVEN_BACK:
            self.state[number] = ChunkState.DONE
            self.changes += 1

    def _chunk_split(self, record: ev.Record, event: ev.ChunkSplit) -> None:
        number = event.chunk
        story = self._stories.get(number)
        if story is None or not self.start[number] < event.at < self.stop[number]:
            return
        story.given_back += ((event.at, self.stop[number]),)
        self.stop[number] = event.at
        self._mark(number, Trait.SPLIT)
        story.tell(record)
        self.changes += 1

    def _duplicate_wanted(self, record: ev.Record, event: ev.DuplicateWanted) -> None:
        story = self._stories.get(event.chunk)
        if story is not None:
            story.tell(record)

    def _claim_released(self, record: ev.Record, event: ev.ClaimReleased) -> None:
        story, _ = self._attempt(event.token)
        if story is not None:
            story.tell(record)

    def _range_reopened(self, record: ev.Record, event: ev.RangeReopened) -> None:
        story = self._stories.get(event.chunk)
        if story is not None and event.stop > event.start:
            if (event.start, event.stop) not in story.given_back:
                story.given_back += ((event.start, event.stop),)
            story.tell(record)

    def _claim_refused(self, record: ev.Record, event: ev.ClaimRefused) -> None:
        story, attempt = self._attempt(event.token)
        if story is not None:
            self._mark(story.number, Trait.REFUSED)
            if attempt is not None:
                attempt.refusals += 1
            story.tell(record)
            self.changes += 1

    def _part_credited(self, record: ev.Record, event: ev.PartCredited) -> None:
        attempt, number = self._live.get(event.token), event.chunk
        if number is None:
            number = chunk_of(event.token) if attempt is None else attempt.chunk
        if 0 <= number < len(self.state):
            self.credited[number] += event.frames
        if attempt is not None:
            attempt.frames += event.frames
            attempt.parts += 1
            attempt.size_bytes += event.size_bytes
            attempt.sha256 = event.sha256
        if self._failed_in:
            self._failed_in.pop(event.part, None)
        self.changes += 1

    def void(self, at: float, event: ev.PartVoided, number: int, frames: int) -> None:
        """``frames`` that were credited to a chunk are not any more."""
        if 0 <= number < len(self):
            self.credited[number] -= frames
            story = self._stories.get(number)
            if story is not None:
                story.tell(ev.Record(0, at, event))
            self.changes += 1

    def _part_superseded(self, record: ev.Record, event: ev.PartSuperseded) -> None:
        story, attempt = self._attempt(event.token)
        if story is not None:
            if attempt is not None:
                attempt.copies += 1
                attempt.wasted_frames += event.frames
                attempt.sha256 = event.sha256 or attempt.sha256
            story.tell(record)

    def _part_failed(self, record: ev.Record, event: ev.PartFailed) -> None:
        story, _ = self._attempt(event.token)
        self._failed_in[event.part] = chunk_of(event.token)
        if story is not None:
            story.tell(record)

    def _part_set_aside(self, record: ev.Record, event: ev.PartSetAside) -> None:
        number = self._failed_in.pop(event.part, -1)
        if 0 <= number < len(self):
            self._mark(number, Trait.SET_ASIDE)
            story = self._stories.get(number)
            if story is not None:
                story.tell(record)
            self.changes += 1

    def _part_retried(self, record: ev.Record, event: ev.PartRetried) -> None:
        self._failed_in.pop(event.part, None)

    def _part_diverged(self, record: ev.Record, event: ev.PartDiverged) -> None:
        story, _ = self._attempt(event.token)
        if story is not None:
            story.tell(record)


def chunk_of(token: str) -> int:
    """The number of the chunk that a token such as ``c12#3@e2`` is of; -1 for what is no token."""
    digits = token[1:].partition("#")[0]
    return int(digits) if token[:1] == "c" and digits.isascii() and digits.isdigit() else -1


#: What the book makes of each type of event. The type is the key, which mypy can't express.
HANDLERS: Final[dict[type, Callable[[ChunkBook, ev.Record, Any], None]]] = {
    ev.ClaimGranted: ChunkBook._claim_granted,
    ev.ClaimEnded: ChunkBook._claim_ended,
    ev.ChunkCompleted: ChunkBook._chunk_completed,
    ev.ChunkSplit: ChunkBook._chunk_split,
    ev.DuplicateWanted: ChunkBook._duplicate_wanted,
    ev.ClaimReleased: ChunkBook._claim_released,
    ev.RangeReopened: ChunkBook._range_reopened,
    ev.ClaimRefused: ChunkBook._claim_refused,
    ev.PartCredited: ChunkBook._part_credited,
    ev.PartSuperseded: ChunkBook._part_superseded,
    ev.PartFailed: ChunkBook._part_failed,
    ev.PartSetAside: ChunkBook._part_set_aside,
    ev.PartRetried: ChunkBook._part_retried,
    ev.PartDiverged: ChunkBook._part_diverged,
}
