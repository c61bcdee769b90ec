"""The start line: the first claims of a fleet are held back until all of it is there, and then granted in its
order, so that a run doesn't depend on which process happened to start first. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from farm.messages import Claim


class StartLine:
    """``workers``: the fleet, in its order."""

    def __init__(self, workers: Iterable[str]) -> None:
        self._order = tuple(workers)
        self._missing = set(self._order)  # have not asked or gone yet
        self._claims: dict[str, Claim] = {}

    @property
    def is_open(self) -> bool:
        return not self._missing

    def claim(self, worker: str, claim: Claim) -> None:
        """It is there, and asks."""
        self._claims[worker] = claim
        self.strike_off(worker)

    def strike_off(self, worker: str) -> None:
        """Nobody waits for it any more."""
        self._missing.discard(worker)

    def open(self) -> None:
        """Nobody waits any longer."""
        self._missing.clear()

    def let_go(self) -> list[tuple[str, Claim]]:
        """Whose claims may be granted now, in this order; each once."""
        if not self.is_open:
            return []
        claims, self._claims = self._claims, {}
        later = [worker for worker in claims if worker not in self._order]  # added meanwhile
        return [(worker, claims[worker]) for worker in (*self._order, *later) if worker in claims]
