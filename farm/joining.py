"""From the last credited part to the output under its name: joined, read back, written down, named.

Rules of this file:
- the output gets its name only when it is verified; what was there before is untouched until then;
- a part that the stitch finds damaged is taken back, and the job goes on with rendering it again;
- a run that was cut off after it gave the name knows its own output by what it had written down before.
"""

from __future__ import annotations

import asyncio

from farm import events as ev
from farm.errors import VerificationError
from farm.facts import StitchFacts, VerifyFacts
from farm.helpers import Helpers
from farm.manifest import read_events
from farm.outputs import discard, place
from farm.paths import check_free, make_durable, partial_path
from farm.plan import OpenedRun
from farm.relay.books import CREDITED
from farm.relay.relay import Relay
from farm.stage import Stage
from farm.store import Store

_EVENTS_AT_ONCE = 32


class Joining:
    """Of one job."""

    def __init__(self, run: OpenedRun, stage: Stage, relay: Relay, store: Store, helpers: Helpers) -> None:
        self._run = run
        self._plan = run.plan
        self._request = run.plan.request
        self._stage = stage
        self._relay = relay
        self._store = store
        self._helpers = helpers
        self.output_bytes = 0  #: of the output, once it has its name

    async def stitch(self) -> StitchFacts | None:
        """Join the parts; None if one of them had to be taken back."""
        await self._stage.enter("stitch")
        books = self._relay.books
        assert all(place == CREDITED for place in books.parts)
        parts = [self._store.path(books.credits[part].file).absolute() for part in range(len(books.parts))]
        partial = partial_path(self._request.output).absolute()
        discard(partial)  # what a crash left may have the output's name, too, and must not be written to
        try:
            stitched = await self._stage.guard(
                self._helpers.ask(
                    "stitch",
                    self._run.folder.index.absolute(),
                    self._request.settings,
                    self._plan.settings_hash,
                    parts,
                    partial,
                    log="stitch.log",
                    on_progress=self._stage.progress("stitch"),
                )
            )
        except VerificationError as error:
            part = getattr(error, "part", None)
            if part is None:
                raise
            reason = str(getattr(error, "reason", error))
            await self._stage.note("warning", f"part {part} is rendered again: {reason}")
            await self._stage.commit(self._relay.void(part, reason, self._stage.clock.now()))
            return None
        except BaseException:
            discard(partial)
            raise
        assert isinstance(stitched, StitchFacts)
        for warning in stitched.warnings:
            await self._stage.note("warning", warning)
        return stitched

    async def verify(self, stitched: StitchFacts) -> VerifyFacts:
        """Read the joined output back, and give it its name. Raises VerificationError, OutputError."""
        await self._stage.enter("verify")
        output = self._request.output.absolute()
        partial = partial_path(output)
        try:
            verified = await self._stage.guard(
                self._helpers.ask(
                    "verify",
                    partial,
                    self._request.settings.container,
                    self._run.folder.index.absolute(),
                    self._request.decode,
                    stitched.lost_pts,
                    stitched.carried,
                    log="verify.log",
                    on_progress=self._stage.progress("verify"),
                )
            )
            assert isinstance(verified, VerifyFacts)
        except BaseException:
            discard(partial)
            raise
        await self._write_down(stitched, verified)
        about_to = ev.OutputVerified(
            packets_sha256=verified.packets_sha256,
            output_bytes=stitched.output_bytes,
            stream_frames=verified.frames,
        )
        await self._stage.log.commit(self._stage.clock.now(), [about_to])
        overwrite = bool(self._request.overwrite)
        await asyncio.to_thread(place, partial, output, overwrite=overwrite)
        self.output_bytes = stitched.output_bytes
        return verified

    async def _write_down(self, stitched: StitchFacts, verified: VerifyFacts) -> None:
        """What the output consists of, for its manifest."""
        assert verified.contents is not None
        events = await asyncio.to_thread(
            read_events,
            verified.contents,
            stitched.part_packets,
            stitched.lost_pts,
            verified.duration_seconds,
        )
        for first in range(0, len(events), _EVENTS_AT_ONCE):
            await self._stage.log.commit(self._stage.clock.now(), events[first : first + _EVENTS_AT_ONCE])

    async def find_placed(self) -> VerifyFacts | None:
        """What the file that has the output's name is, if it is this run's own: the run was cut off between
        giving the name and writing that down. Raises OutputError for another that may not be replaced."""
        placed, output = self._run.placed, self._request.output.absolute()
        if placed is None:
            return None
        await self._stage.enter("verify")
        try:
            found = await self._stage.guard(
                self._helpers.ask(
                    "verify",
                    output,
                    self._request.settings.container,
                    None,
                    "sample",
                    (),
                    (),
                    log="verify.log",
                    on_progress=self._stage.progress("verify"),
                )
            )
        except VerificationError:
            found = None
        if not isinstance(found, VerifyFacts) or found.packets_sha256 != placed.packets_sha256:
            check_free(output, self._request.overwrite)
            return None
        await asyncio.to_thread(make_durable, output)
        partial_path(output).unlink(missing_ok=True)
        self.output_bytes = placed.output_bytes
        return found
