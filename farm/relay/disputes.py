"""What the books know of copies that differ (DESIGN.md §4 rule 13): which parts are in dispute, who made
which copy, and who is not trusted any more. State only; farm.relay.divergence decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from farm import events as ev


class Copy(NamedTuple):
    """One worker's copy of a part; ``worker`` None: a part that was found in the store at a resume."""

    worker: str | None
    sha256: str


def maker(credit: ev.PartCredited | ev.PartAdopted) -> str | None:
    """Who made a credited part; None: it was found in the store."""
    return credit.worker if isinstance(credit, ev.PartCredited) else None


@dataclass(slots=True)
class Dispute:
    """A part of which two copies differ. ``since``: when it began, or when a worker last left."""

    copies: tuple[Copy, ...]
    since: float

    def has(self, worker: str) -> bool:
        """Whether ``worker`` made one of the copies, so that it can't be the third."""
        return any(copy.worker == worker for copy in self.copies)


@dataclass(slots=True)
class Disputes:
    """``open``: by part. ``distrusted``: workers whose copy was the odd one, and the part it was of.
    ``suspect_files``: credited once, and never to be adopted again."""

    open: dict[int, Dispute] = field(default_factory=dict)
    distrusted: dict[str, int] = field(default_factory=dict)
    suspect_files: dict[str, None] = field(default_factory=dict)

    def barred(self, worker: str) -> Iterator[int]:
        """The parts that ``worker`` has to leave to a third one."""
        return (part for part, dispute in self.open.items() if dispute.has(worker))

    def bars(self, worker: str, part: int) -> bool:
        dispute = self.open.get(part)
        return worker in self.distrusted or (dispute is not None and dispute.has(worker))

    def diverged(self, at: float, event: ev.PartDiverged, credited: ev.PartCredited | ev.PartAdopted) -> None:
        first = Copy(maker(credited), credited.sha256)
        self.open[event.part] = Dispute((first, Copy(event.worker, event.sha256)), at)
        self.suspect_files[credited.file] = None

    def settled(self, event: ev.PartSettled) -> None:
        self.open.pop(event.part, None)
        if event.odd is not None:
            self.distrusted[event.odd] = event.part

    def someone_left(self, at: float) -> None:
        for dispute in self.open.values():
            dispute.since = at
