"""Offers finished parts that were left in a spool, and delivers those that are wanted (DESIGN.md §4 rule 5).

They are this worker's own, from before a restart or from a claim that was lost before they were in, or those
of workers that won't come back. The relay says for each: a claim to deliver it under, keep it, or remove it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from farm.frames import PartGrid
from farm.messages import AnyAnswer, AnyRequest, Declined, Fail, Granted, Offer, Release
from farm.worker.delivery import Deliveries, Rendered
from farm.worker.log import Log
from farm.worker.orders import HeldClaim, Orders
from farm.worker.spec import WorkerSpec
from farm.worker.spool import SpooledPart, finished_parts


class Offers:
    """For the working thread, while it has no claim. ``ask`` is the loop's."""

    def __init__(
        self,
        spec: WorkerSpec,
        ask: Callable[[AnyRequest], AnyAnswer],
        orders: Orders,
        deliveries: Deliveries,
        log: Log,
    ) -> None:
        self._spec = spec
        self._grid = PartGrid(spec.cuts)
        self._ask = ask
        self._orders = orders
        self._deliveries = deliveries
        self._log = log
        self._orphans = spec.orphan_spools

    @property
    def due(self) -> bool:
        """There may be something to offer."""
        return self._deliveries.left_behind or self._orders.has_orphans

    def make(self) -> None:
        """Offer what there is, part after part. Raises what ``ask`` raises, ChannelClosed, and OSError."""
        self._deliveries.left_behind = False
        self._orphans += self._orders.take_orphan_spools()
        for folder in (self._spec.spool_dir, *self._orphans):
            for found in finished_parts(folder, self._grid, self._spec.settings_hash):
                if self._orders.leaving or self._orders.finished:
                    return
                self._offer(found, "" if folder == self._spec.spool_dir else folder.name)
            if folder != self._spec.spool_dir:
                with contextlib.suppress(OSError):
                    folder.rmdir()  # unless something is kept in it

    def _offer(self, found: SpooledPart, maker: str) -> None:
        part = found.facts.header.part
        answer = self._ask(Offer(part=part, maker=maker))
        claim = self._orders.take_grant() if isinstance(answer, Granted) else None
        if claim is not None:
            self._log.begin(claim.token)
            self._log.line(f"part {part}: found finished in the spool, {claim.token} to deliver it")
            self._deliveries.put(Rendered(claim, found.facts, found.path, 0.0, 0, 0.0))
            self._end(claim)
            self._log.end()
        elif isinstance(answer, Declined):
            self._log.line(f"part {part}: found finished in the spool; {answer.why}")
            if answer.keep:
                self._deliveries.left_behind = True
            else:
                found.path.unlink(missing_ok=True)

    def _end(self, claim: HeldClaim) -> None:
        """Wait until what was found is delivered, and give back what else its claim covers."""
        self._deliveries.wait_idle()
        failure = self._deliveries.take_failure()
        if not claim.live:
            return
        if failure is not None:
            self._ask(Fail(token=claim.token, part=failure.part, kind=failure.kind, message=failure.message))
        else:
            self._ask(Release(token=claim.token))
