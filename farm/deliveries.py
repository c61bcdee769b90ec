"""The delivery desk: where parts enter the store, beside the relay's loop.

Theory of operation (DESIGN.md §4 rule 5 and §6). A part comes by rename, or in blocks that grow in
``farm.staging`` and are renamed when the last one is in. Either way its bytes are read back, compared and
synced before the relay hears of the delivery, and only what was found here counts. A message that names no
part of a live claim is the relay's to refuse and costs no disk.

Rules of this file:
- at most DELIVERIES_MAX parts are received in blocks at once, and as many checked; the others wait in the
  order they came, and none is dropped. A place is given up when the part is in, when its worker is gone, or
  when the part is of no use any more;
- files are read, written and synced in threads;
- blocks of a claim that is over are kept for whoever brings the same part next, until the part is credited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from farm import events as ev
from farm import messages as msg
from farm.fleet import BLOCK_BYTES_MAX
from farm.manners import DELIVERIES_MAX
from farm.parts import PartError, PartFacts
from farm.relay.books import CREDITED, Books
from farm.relay.deliveries import covers
from farm.staging import NOTHING, Staging, Stored, Whole
from farm.store import Store

Delivery = msg.Deliver | msg.Begin | msg.Block


class DeliveryDesk:
    """``post`` tells the relay of a request, with what was found; ``spawn`` runs a coroutine beside the loop,
    and ends the run with what it raises (OutputError, when the disk refuses)."""

    def __init__(
        self,
        store: Store,
        books: Books,
        settings_hash: str,
        post: Callable[[str, msg.AnyRequest], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._store = store
        self._books = books
        self._settings_hash = settings_hash
        self._post = post
        self._spawn = spawn
        self._staging = Staging(store.folder)
        self._checks = asyncio.Semaphore(DELIVERIES_MAX)
        self._places = asyncio.Semaphore(DELIVERIES_MAX)
        self._placed: dict[str, tuple[str, int]] = {}  # token and part that each worker is delivering
        self._checking: set[str] = set()  # workers whose part is checked, or waits for that
        self._waiting = 0
        self._damaged: set[tuple[str, int]] = set()  # came whole and wrong once

    @property
    def receiving(self) -> int:
        """Parts that are received or checked now."""
        return min(len(self._checking | self._placed.keys()), DELIVERIES_MAX)

    @property
    def waiting(self) -> int:
        """Parts that wait for a place."""
        return self._waiting + max(len(self._checking) - DELIVERIES_MAX, 0)

    # --- what comes --------------------------------------------------------------------------------------

    def take(self, worker: str, request: Delivery) -> None:
        """A delivery, or a step of one; the relay hears of it when it is on disk."""
        if isinstance(request, msg.Deliver):
            in_grid = request.part is not None and 0 <= request.part < self._books.grid.parts
            usable = self._is_claimant(worker, request) if request.blocks else in_grid
            if usable:
                self._spawn(self._check(worker, request))
            else:
                self._post(worker, request)
        elif not self._is_claimant(worker, request):
            self._post(worker, _found(request, NOTHING))
        elif isinstance(request, msg.Block):
            self._spawn(self._store_block(worker, request))
        else:
            self._spawn(self._begin(worker, request))

    def gone(self, worker: str) -> None:
        """A worker ended."""
        self._give_up_place(worker)

    def watch(self, events: Sequence[ev.AnyEvent]) -> None:
        """See what events mean for deliveries on their way."""
        changed = False
        for event in events:
            match event:
                case ev.ClaimEnded() | ev.ChunkSplit():
                    changed = True
                case ev.PartCredited(part=part):
                    changed = True
                    if self._staging.holds(part):
                        self._spawn(asyncio.to_thread(self._staging.discard, part, self._is_live))
                case ev.SeamMismatched():
                    self._spawn(self._purge())
        if changed and self._placed:
            for worker, (token, part) in list(self._placed.items()):
                if not self._is_wanted(token, part):
                    self._give_up_place(worker)

    def answered(self, request: msg.Deliver, answer: msg.AnyAnswer | None) -> None:
        """Remove a delivered file that counts for nothing; attempt-unique names make that safe."""
        if isinstance(answer, msg.Delivered) and answer.frames:
            return
        credit = self._books.credits.get(request.part) if request.part is not None else None
        if request.file and (credit is None or credit.file != request.file):
            self._spawn(self._discard(request.file))

    # --- in blocks ---------------------------------------------------------------------------------------

    async def _begin(self, worker: str, request: msg.Begin) -> None:
        assert request.part is not None and request.token is not None
        whole = Whole(size_bytes=request.size_bytes, sha256=request.sha256, block_bytes=request.block_bytes)
        if not (0 < whole.block_bytes <= BLOCK_BYTES_MAX and whole.size_bytes > 0):
            reason = f"blocks of {whole.block_bytes} bytes, of {whole.size_bytes}"
            self._post(
                worker, msg.Fail(seq=request.seq, token=request.token, part=request.part, message=reason)
            )
            return
        await self._get_place(worker, request.token, request.part)
        stored = NOTHING
        if self._is_claimant(worker, request):
            stored = await asyncio.to_thread(
                self._staging.begin,
                request.part,
                request.token,
                whole,
                lambda token: not self._is_live(token),
            )
        else:
            self._give_up_place(worker)
        self._post(worker, _found(request, stored))

    async def _store_block(self, worker: str, request: msg.Block) -> None:
        assert request.part is not None and request.token is not None
        stored = await asyncio.to_thread(
            self._staging.put, request.part, request.token, request.index, request.crc, request.data
        )
        self._post(worker, _found(request, stored))

    async def _get_place(self, worker: str, token: str, part: int) -> None:
        if worker not in self._placed:
            self._waiting += 1
            try:
                await self._places.acquire()
            finally:
                self._waiting -= 1
            if worker in self._placed:  # a process before it asked as well
                self._places.release()
        self._placed[worker] = token, part

    def _give_up_place(self, worker: str) -> None:
        if self._placed.pop(worker, None) is not None:
            self._places.release()

    # --- whole -------------------------------------------------------------------------------------------

    async def _check(self, worker: str, request: msg.Deliver) -> None:
        """Check and sync the delivered file, then tell the relay what was found."""
        self._checking.add(worker)
        async with self._checks:
            try:
                if request.blocks:
                    found = await self._check_blocks(request)
                else:
                    found = await self._accept(request)
            except PartError as error:
                found = msg.Fail(
                    seq=request.seq,
                    token=request.token,
                    part=request.part,
                    kind="damaged",
                    message=str(error),
                )
        self._checking.discard(worker)
        if not isinstance(found, msg.Begin):
            self._give_up_place(worker)
        self._post(worker, found)

    async def _accept(self, request: msg.Deliver) -> msg.AnyRequest:
        grid, part = self._books.grid, request.part
        assert part is not None
        facts: PartFacts = await asyncio.to_thread(
            self._store.accept,
            request.file,
            part=part,
            start=grid.start(part),
            stop=grid.stop(part),
            settings_hash=self._settings_hash,
            sha256=request.sha256 or None,
        )
        return msgspec.structs.replace(
            request,
            frames=facts.footer.frames,
            size_bytes=facts.size_bytes,
            sha256=facts.sha256,
            first_frame_crc=facts.footer.first_frame_crc,
            next_frame_crc=facts.footer.next_frame_crc,
            lost_frames=facts.footer.lost_frames,
        )

    async def _check_blocks(self, request: msg.Deliver) -> msg.AnyRequest:
        """As ``_accept``, of a part whose blocks are in. Begin, as if the worker had asked where to go on:
        some are missing, or the whole is not what it should be, which once is no fault of anybody's claim."""
        token, part = request.token, request.part
        assert token is not None and part is not None
        stored = self._staging.stored(part, token)
        final = await asyncio.to_thread(self._staging.finish, part, token) if stored.complete else None
        if final is not None:
            try:
                return await self._accept(msgspec.structs.replace(request, file=final.name))
            except PartError:
                await self._discard(final.name)
                if (token, part) in self._damaged:
                    raise
                self._damaged.add((token, part))
                stored = NOTHING
        return msg.Begin(
            seq=request.seq,
            token=token,
            part=part,
            of=request.blocks,
            stored=stored.done,
            stored_bytes=stored.size_bytes,
        )

    async def _discard(self, file: str) -> None:
        try:
            await asyncio.to_thread(self._store.discard, file)
        except PartError:
            return  # it named no file of the store: nothing to remove

    async def _purge(self) -> None:
        """Remove what the store holds and the books don't."""
        for _, path in await asyncio.to_thread(self._store.scan):
            if path.name not in {credit.file for credit in self._books.credits.values()}:
                await asyncio.to_thread(self._store.discard, path.name)
        for part in await asyncio.to_thread(self._staging.parts):
            await asyncio.to_thread(self._staging.discard, part, self._is_live)

    # --- what the books say ------------------------------------------------------------------------------

    def _is_claimant(self, worker: str, request: Delivery) -> bool:
        token, part = request.token, request.part
        claim = self._books.claim(token) if isinstance(token, str) else None
        return (
            claim is not None
            and claim.worker == worker
            and part is not None
            and covers(self._books, claim.text, part)
        )

    def _is_live(self, token: str) -> bool:
        return self._books.claim(token) is not None

    def _is_wanted(self, token: str, part: int) -> bool:
        claim = self._books.claim(token)
        inside = claim is not None and self._books.grid.start(part) < claim.stop
        return inside and self._books.parts[part] != CREDITED


def _found(request: msg.Begin | msg.Block, stored: Stored) -> msg.AnyRequest:
    """The request for the relay: with what is on disk, without the bytes."""
    if isinstance(request, msg.Block):
        return msgspec.structs.replace(request, data=b"", stored=stored.done, stored_bytes=stored.size_bytes)
    return msgspec.structs.replace(request, stored=stored.done, stored_bytes=stored.size_bytes)
