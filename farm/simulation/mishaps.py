"""Deliveries of simulated workers that faults can be injected into, by rename and over a link.

What strikes one by rename strikes a whole part; over a link, damage and refusals strike a block, as in
farm.worker.faults. Without a fault both do what the deliveries do that they are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from farm.faults import BACKOFF_SECONDS, BACKOFF_SECONDS_MAX, BAD_TOKEN, Troubles
from farm.messages import AnyRequest, Deliver, Fail
from farm.simulation.agenda import Agenda
from farm.simulation.delivery import Deliveries, RenderedPart
from farm.simulation.line import Line
from farm.simulation.links import LinkedDeliveries


class Reporter:
    """Says that a part is delivered, with whatever is wrong with the report. One part at a time."""

    def __init__(self, line: Line, agenda: Agenda, troubles: Troubles) -> None:
        self._line = line
        self._agenda = agenda
        self._troubles = troubles
        self._again: AnyRequest | None = None  # what is said once more when it is answered
        self._held: Callable[[], None] | None = None  # what is done when the worker goes on
        self._gone = False

    def report(self, request: AnyRequest) -> None:
        now, troubles = self._agenda.now, self._troubles
        late = troubles.amount("report-late", now)
        if troubles.take("report-twice", now):
            self._again = request
        if troubles.take("report-late", now) and late:
            self.later(late, lambda: self._line.send(request))
        else:
            self._line.send(request)

    def spoilt(self, request: Deliver) -> Deliver:
        """What is said in its place."""
        now, troubles = self._agenda.now, self._troubles
        if troubles.take("bad-id", now):
            return replace(request, token=BAD_TOKEN)
        if troubles.take("wrong-count", now):
            return replace(request, frames=request.frames - 1)
        return request

    def says_again(self) -> bool:
        """It was answered; whether the same is said once more."""
        again, self._again = self._again, None
        if again is not None:
            self._line.send(again)
        return again is not None

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Do it then, or when the stopped worker goes on, unless its process is gone."""
        self._agenda.add(self._agenda.now + seconds, lambda _: self._when_awake(what))

    def _when_awake(self, what: Callable[[], None]) -> None:
        if self._line.hearer.frozen:
            self._held = what
        elif not self._gone:
            what()

    def resume(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._when_awake(held)

    def drop(self) -> None:
        self._gone = True


class TroubledDeliveries(Deliveries):
    """By rename."""

    __slots__ = ("_agenda", "_reporter", "_troubles")

    def __init__(self, line: Line, agenda: Agenda, troubles: Troubles) -> None:
        super().__init__(line)
        self._agenda = agenda
        self._troubles = troubles
        self._reporter = Reporter(line, agenda, troubles)

    def _send(self, part: RenderedPart) -> None:
        if self._troubles:
            self._bring(part, BACKOFF_SECONDS)
        else:
            super()._send(part)

    def _bring(self, part: RenderedPart, patience: float) -> None:
        """To the store, which may refuse it for now."""
        if self._troubles.take("rate-limit", self._agenda.now):
            longer = min(patience * 2, BACKOFF_SECONDS_MAX)
            self._reporter.later(patience, lambda: self._bring(part, longer))
        elif part.claim.wants(part.start, part.stop):
            self._reporter.report(self._spoilt(part))
        else:
            self.answered()

    def _spoilt(self, part: RenderedPart) -> AnyRequest:
        """What the relay hears of it: nothing is stored here, so what the shell finds out is said at once."""
        sound = part.deliver()
        request = self._reporter.spoilt(sound)
        if request is sound and self._troubles.take("corrupt", self._agenda.now):
            message = "a packet does not match its checksum"
            return Fail(token=sound.token, part=sound.part, kind="damaged", message=message)
        return request

    def answered(self) -> None:
        if not self._reporter.says_again():
            super().answered()

    def resume(self) -> None:
        self._reporter.resume()

    def drop(self) -> None:
        self._reporter.drop()


class TroubledLink(LinkedDeliveries):
    """Over a link, in blocks."""

    __slots__ = ("_reporter", "_troubles")

    def __init__(self, line: Line, agenda: Agenda, troubles: Troubles, *link: Any) -> None:
        """``link``: what LinkedDeliveries takes after its agenda."""
        super().__init__(line, agenda, *link)
        self._troubles = troubles
        self._reporter = Reporter(line, agenda, troubles)

    def _carry(self, part: RenderedPart) -> None:
        if self._troubles and self._troubles.take("rate-limit", self._agenda.now):
            self._retry(part, self._carry)
        else:
            super()._carry(part)

    def _arrived_sound(self) -> bool:
        return not (self._troubles and self._troubles.take("corrupt", self._agenda.now))

    def _report(self, request: Deliver) -> None:
        self._reporter.report(self._reporter.spoilt(request))

    def answered(self) -> None:
        if not self._reporter.says_again():
            super().answered()

    def resume(self) -> None:
        super().resume()
        self._reporter.resume()

    def drop(self) -> None:
        super().drop()
        self._reporter.drop()
