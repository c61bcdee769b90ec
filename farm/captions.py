"""Captions: sentences that explain a run while it is watched, and when each is shown.

Theory of operation. A ``Reel`` is told the run's events and remembers which captions have come due, and when.
What is shown at a moment follows from that alone: captions are shown in the order in which they came due, one
at a time, each for its seconds; one that came due meanwhile waits, unless it would come too late to be about
what is seen, and one that is skipped ends at once. So a recording that is played to a point shows there what
the run showed; whoever jumps to a point sees what came due there last (``jump``).

Rules of this file:
- pure: no clock; run time (lease seconds) comes with each call;
- a caption comes due once;
- ``seconds`` are for the reader: where run time passes faster than real time, it stays for as many more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from farm import events as ev
from farm.faults import AfterParts, AtClaim, AtShare, AtTime
from farm.moments import Kind, Moment, moment_of

TEXT_MAX: Final = 200
CAPTIONS_MAX: Final = 200
DEFAULT_SECONDS: Final = 6.0
#: A caption that would have to wait longer, in seconds of the reader, is left out.
WAIT_SECONDS_MAX: Final = 5.0


class AtMoment(msgspec.Struct, frozen=True, tag="moment"):
    """When something of that kind happens; to ``worker`` if it is said whom."""

    kind: Kind
    worker: str | None = None


class AtEnd(msgspec.Struct, frozen=True, tag="end"):
    """When the last frame is credited (``work``), or the joined output was verified."""

    of: Literal["work", "verified"]


CaptionWhen = AtTime | AfterParts | AtClaim | AtShare | AtMoment | AtEnd


class Caption(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence or two. ``when`` as for faults; a time counts from the first grant."""

    text: str
    when: CaptionWhen = AtTime(0.0)
    seconds: float = DEFAULT_SECONDS


class Shown(msgspec.Struct, frozen=True):
    """A caption that came due: which one, and when in run time."""

    number: int  #: of the reel's captions
    caption: Caption
    due_at: float


class Reel:
    """The captions of one run, which is told from its first record on."""

    def __init__(self, captions: Sequence[Caption]) -> None:
        self.captions = tuple(captions)
        self._armed = [_Armed(number, caption) for number, caption in enumerate(self.captions)]
        self._timed: list[Shown] = []  # due at a time that has not come
        self._due: list[Shown] = []
        self._skipped: dict[int, float] = {}  # when
        self._frames, self._credited = 1, 0
        self._origin: float | None = None
        self._told = 0

    def see(self, record: ev.Record) -> None:
        """Take in the next record of the log."""
        at, event = record.at, record.event
        self._pass(at)
        match event:
            case ev.RunOpened():
                self._frames = event.frames
            case ev.PartCredited() | ev.PartAdopted():
                self._credited += event.frames
            case ev.ClaimGranted() if self._origin is None:
                self._origin = at
                self._start(at)
        if not self._armed:
            return
        share, moment = self._credited / self._frames, moment_of(event)
        for armed in self._armed[:]:
            if armed.meets(event, moment, share):
                self._armed.remove(armed)
                self._due.append(Shown(armed.number, armed.caption, at))

    def shown(self, now: float, rate: float = 1.0) -> Shown | None:
        """What is to be read at ``now``, where run time passes ``rate`` times as fast as real time."""
        self._pass(now)
        free_from, pace = 0.0, max(rate, 1.0)
        for due in self._due:
            begins = max(due.due_at, free_from)
            if due.due_at > now:
                return None
            if begins > due.due_at + WAIT_SECONDS_MAX * pace:
                continue
            if begins > now:
                return None
            free_from = begins + due.caption.seconds * pace
            skipped_at = self._skipped.get(due.number)
            if skipped_at is not None:
                free_from = min(free_from, max(skipped_at, due.due_at))
            elif now < free_from:
                return due
        return None

    def skip(self, now: float, rate: float = 1.0) -> bool:
        """Whoever reads has read it. False: nothing was shown."""
        shown = self.shown(now, rate)
        if shown is not None:
            self._skipped[shown.number] = now
        return shown is not None

    def jump(self, now: float) -> None:
        """Reading goes on at ``now``, forwards or back: of what came due by then, only the last may still be
        read. What was seen of the log needn't be told again."""
        self._pass(now)
        due = [due for due in self._due if due.due_at <= now]
        self._skipped = {passed.number: passed.due_at for passed in due[:-1]}

    def take_due(self, now: float) -> list[Shown]:
        """Those that came due since the last call, in order; for output that can't take anything back."""
        self._pass(now)
        fresh, self._told = self._due[self._told :], len(self._due)
        return fresh

    @property
    def waiting(self) -> tuple[Caption, ...]:
        """Those that have not come due."""
        return (*(armed.caption for armed in self._armed), *(due.caption for due in self._timed))

    def _start(self, at: float) -> None:
        """The first grant: from here on times count."""
        timed = [armed for armed in self._armed if isinstance(armed.caption.when, AtTime)]
        for armed in timed:
            self._armed.remove(armed)
            when = armed.caption.when
            assert isinstance(when, AtTime)
            self._timed.append(Shown(armed.number, armed.caption, at + when.seconds))
        self._timed.sort(key=lambda due: due.due_at)
        self._pass(at)

    def _pass(self, now: float) -> None:
        while self._timed and self._timed[0].due_at <= now:
            self._due.append(self._timed.pop(0))


class _Armed:
    """A caption that waits for its event."""

    __slots__ = ("_count", "_parts", "caption", "number")

    def __init__(self, number: int, caption: Caption) -> None:
        self.number = number
        self.caption = caption
        self._count = 0
        self._parts: dict[str, int] = {}  # by claim, or all of them under ""

    def meets(self, event: ev.AnyEvent, moment: Moment | None, share: float) -> bool:
        """Whether its time has come with this event."""
        match self.caption.when:
            case AtMoment(kind=kind, worker=worker):
                return moment is not None and moment.kind == kind and worker in (None, moment.worker)
            case AtShare(share=wanted):
                return isinstance(event, ev.PartCredited) and share >= wanted
            case AtClaim(nth=nth, worker=worker):
                self._count += isinstance(event, ev.ClaimGranted) and event.worker == worker
                return self._count >= nth
            case AfterParts() as when:
                return self._delivered(when, event)
            case AtEnd(of="work"):
                return isinstance(event, ev.WorkFinished)
            case AtEnd():
                return isinstance(event, ev.OutputVerified)
        return False  # at a time: see ``Reel._start``

    def _delivered(self, when: AfterParts, event: ev.AnyEvent) -> bool:
        if not isinstance(event, ev.PartCredited | ev.PartSuperseded) or event.worker != when.worker:
            return False
        key = event.token if when.one_chunk else ""
        self._parts[key] = self._parts.get(key, 0) + 1
        return self._parts[key] >= when.parts
