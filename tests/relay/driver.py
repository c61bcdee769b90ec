"""Drives the real relay by hand, one stimulus at a time, for tests that read like stories.

After every stimulus the books are recounted (``validate``), and folding the events into fresh books must give
the very same state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.frames import PartGrid
from farm.relay.books import Books
from farm.relay.ledger import OpenRanges
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.relay.validate import validate
from tests.relay.virtual import opened

E = TypeVar("E", bound=ev.Event)

#: What a refusal may change: it is counted, and whoever is refused has been heard.
HEARD = frozenset({"refusals", "silent", "idle"})


class Run:
    """A run of ``parts`` parts of 10 frames each, with joined workers; ``now`` is its lease time."""

    def __init__(self, *workers: str, parts: int = 10, build: str = "", **options: Any) -> None:
        self.now = 0.0
        self.log: list[tuple[float, ev.AnyEvent]] = []
        self.events: tuple[ev.AnyEvent, ...] = ()  #: of the last stimulus
        self.pushes: list[tuple[str, msg.AnyAnswer]] = []  #: of the last stimulus
        self.refusal: str | None = None
        self.relay = Relay(Books())
        self._twin = Books()
        options = {"policy": "fixed,20", "block_after_failures": 99} | options
        self._note(self.relay.open(opened(range(0, parts * 10 + 1, 10), ev.RelayOptions(**options)), 0.0))
        self.start()
        for worker in workers:
            self.join(worker)

    @property
    def books(self) -> Books:
        return self.relay.books

    # --- what happens ------------------------------------------------------------------------------------

    def start(self) -> None:
        self._note(self.relay.start(self.now))

    def restart(self) -> None:
        """The process with the relay is killed; another one opens the books from the journal."""
        self.relay = Relay(self._twin)
        self._twin = Books()
        for at, event in self.log:
            self._twin.apply(at, event)
        self.start()

    def wait(self, seconds: float, *beating: str) -> None:
        """Time passes; ``beating`` workers beat first, without having moved."""
        self.now += seconds
        for worker in beating:
            self.beat(worker, *self.tokens(worker))
        events = self.events if beating else ()
        self._note(self.relay.tick(self.now))
        self.events = events + self.events

    def command(self, command: cmd.AnyCommand) -> None:
        outcome = self._note(self.relay.command(command, self.now))
        self.refusal = outcome.refusal

    def options(self, **changes: Any) -> None:
        old = {name: getattr(self.books.options, name) for name in ev.RelayOptions.__struct_fields__}
        self.command(cmd.ChangeOptions(options=ev.RelayOptions(**(old | changes))))

    def gone(self, worker: str, sure: bool = True, kind: str = "worker lost") -> None:
        self._note(self.relay.gone(worker, "killed", sure, self.now, kind))

    def hold(self, reason: str) -> None:
        self._note(self.relay.hold(reason, self.now))

    def free(self) -> None:
        self._note(self.relay.free(self.now))

    def void(self, part: int) -> None:
        self._note(self.relay.void(part, "damaged", self.now))

    def retry(self) -> None:
        self._note(self.relay.retry(self.now))

    def adopt(self, *parts: int, **fields: Any) -> None:
        found = [
            ev.PartAdopted(part=part, frames=10, file=f"found-{part}", size_bytes=1, sha256="s", **fields)
            for part in parts
        ]
        self._note(self.relay.adopt(found, self.now))

    # --- what workers say --------------------------------------------------------------------------------

    def say(self, worker: str, request: msg.AnyRequest) -> msg.AnyAnswer:
        answer = self._note(self.relay.handle(worker, request, self.now)).answer
        assert answer is not None
        return answer

    def join(self, worker: str, **fields: Any) -> msg.AnyAnswer:
        return self.say(worker, msg.Join(worker=worker, **fields))

    def ask(self, worker: str) -> msg.AnyAnswer:
        return self.say(worker, msg.Claim())

    def claim(self, worker: str) -> msg.Granted:
        answer = self.ask(worker)
        assert isinstance(answer, msg.Granted), answer
        return answer

    def park(self, worker: str) -> msg.Parked:
        answer = self.ask(worker)
        assert isinstance(answer, msg.Parked), answer
        return answer

    def deliver(self, worker: str, token: str | None, part: int, **fields: Any) -> msg.AnyAnswer:
        fields = {"frames": 10, "file": f"{part}-{token}", "sha256": f"s{part}", "linear": True} | fields
        return self.say(worker, msg.Deliver(token=token, part=part, **fields))

    def credit(self, worker: str, token: str, *parts: int, **fields: Any) -> msg.Delivered:
        """Deliver parts, each of which has to count."""
        for part in parts:
            answer = self.deliver(worker, token, part, **fields)
            assert isinstance(answer, msg.Delivered) and answer.frames == 10, answer
        return answer

    def beat(self, worker: str, *claims: str | ev.ClaimProgress) -> msg.Beat:
        progress = [ev.ClaimProgress(claim) if isinstance(claim, str) else claim for claim in claims]
        answer = self.say(worker, msg.Heartbeat(claims=tuple(progress)))
        assert isinstance(answer, msg.Beat)
        return answer

    def fail(self, worker: str, part: int | None = None) -> msg.AnyAnswer:
        (token,) = self.tokens(worker)
        return self.say(worker, msg.Fail(token=token, part=part, message="no"))

    def release(self, worker: str) -> msg.AnyAnswer:
        (token,) = self.tokens(worker)
        return self.say(worker, msg.Release(token=token))

    def finish(self, worker: str) -> None:
        """Ask for work, and deliver what is granted, until there is nothing more for this worker."""
        while True:
            for token in self.tokens(worker):
                while (claim := self.books.claim(token)) is not None:
                    part = self.books.grid.part_at(self.books.next_frame(claim, skipping=True))
                    self.credit(worker, token, part)
            if not isinstance(self.ask(worker), msg.Granted):
                return

    # --- what can be seen --------------------------------------------------------------------------------

    def tokens(self, worker: str) -> list[str]:
        return list(self.books.workers[worker].claims)

    def saw(self, kind: type[E]) -> list[E]:
        """The events of one kind that the last stimulus brought."""
        return [event for event in self.events if isinstance(event, kind)]

    def all(self, kind: type[E]) -> list[E]:
        return [event for _, event in self.log if isinstance(event, kind)]

    def told(self, worker: str) -> list[msg.AnyAnswer]:
        """What the last stimulus pushed to a worker."""
        return [push for name, push in self.pushes if name == worker]

    def woken(self) -> list[tuple[str, msg.Granted]]:
        return [(name, push) for name, push in self.pushes if isinstance(push, msg.Granted)]

    def open_ranges(self) -> list[tuple[int, int]]:
        return list(self.books.open)

    def state(self, *, without: frozenset[str] = frozenset()) -> dict[str, Any]:
        return state_of(self.books, without)

    def _note(self, outcome: Outcome) -> Outcome:
        self.events, self.pushes = outcome.events, list(outcome.pushes)
        for event in outcome.events:
            self.log.append((self.now, event))
            self._twin.apply(self.now, event)
        validate(self.books)
        assert all(isinstance(push, msg.Answer) for _, push in outcome.pushes)
        assert state_of(self.books) == state_of(self._twin), "the state is not the fold of the events"
        return outcome


def state_of(books: Books, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Everything the books hold, with the order of what is ordered, as text: it can't change afterwards."""
    return {name: repr(_listed(value)) for name, value in vars(books).items() if name not in without}


def _listed(value: Any) -> Any:
    if isinstance(value, OpenRanges):
        return value.frames, list(value)
    if isinstance(value, PartGrid):
        return value.cuts
    return list(value.items()) if isinstance(value, Mapping) else value
