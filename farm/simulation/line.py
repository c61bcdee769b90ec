"""The connection between a simulated worker and the relay.

A message takes the world's latency. While the line is cut, or the worker's process is stopped, nothing is
lost: messages wait where they are. On one line, and on all together, they arrive in the order in which they
were sent. Without latency a message that none waits before is handed over at once: the same order, sooner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from farm import messages as msg
from farm.simulation.agenda import Agenda, Handler


class Hears(Protocol):
    frozen: bool

    def hear(self, answer: msg.AnyAnswer) -> None: ...


class Line:
    """``arrive`` hands a message to the relay; ``hearer`` is set once the worker exists."""

    __slots__ = ("_agenda", "_arrive", "_inbox", "_latency", "_outbox", "_process", "cut", "hearer", "name")

    hearer: Hears

    def __init__(
        self, name: str, agenda: Agenda, arrive: Callable[[Line, msg.AnyRequest], None], latency: float
    ) -> None:
        self.name = name
        self.cut = False
        self._agenda = agenda
        self._arrive = arrive
        self._latency = latency  # seconds, one way
        self._process = 0  # what is on its way to an earlier one arrives nowhere
        self._inbox: deque[msg.AnyAnswer] = deque()
        self._outbox: list[msg.AnyRequest] = []

    @property
    def process(self) -> int:
        """Which process of the worker is at its end, counted from 0."""
        return self._process

    def send(self, request: msg.AnyRequest) -> None:
        """From the worker to the relay."""
        if self.cut:
            self._outbox.append(request)
        elif self._latency or self._agenda.soon:
            self._queue(self._pass_on, request)
        else:
            self._arrive(self, request)

    def _pass_on(self, request: msg.AnyRequest) -> None:
        self._arrive(self, request)

    def reply(self, answer: msg.AnyAnswer) -> None:
        """From the relay to the worker."""
        if self._latency or self._agenda.soon:
            self._queue(self._reach, (self._process, answer))
        elif self._inbox or self.cut or self.hearer.frozen:
            self._inbox.append(answer)
        else:
            self.hearer.hear(answer)

    def push(self, answer: msg.AnyAnswer) -> None:
        """From the relay to the worker, when what is happening now is over."""
        self._queue(self._reach, (self._process, answer))

    def _queue(self, handler: Handler, message: Any) -> None:
        if self._latency:
            self._agenda.add(self._agenda.now + self._latency, handler, message)
        else:
            self._agenda.soon.append((handler, message))

    def _reach(self, message: tuple[int, msg.AnyAnswer]) -> None:
        process, answer = message
        if process != self._process:
            return
        if self._inbox or self.cut or self.hearer.frozen:
            self._inbox.append(answer)
        else:
            self.hearer.hear(answer)

    def listen(self) -> None:
        """Let the worker hear what waits for it, unless it can't."""
        while self._inbox and not (self.cut or self.hearer.frozen):
            self.hearer.hear(self._inbox.popleft())

    def heal(self) -> None:
        """The cut ends. All that the worker had said is on its way before anything new."""
        self.cut = False
        said, self._outbox = self._outbox, []
        for request in said:
            self._queue(self._pass_on, request)
        self.listen()

    def drop(self) -> None:
        """The worker's process is gone, and what waits on either side with it."""
        self._process += 1
        self._inbox.clear()
        self._outbox.clear()
