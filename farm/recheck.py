"""At resume nothing is believed that can be checked: a done-list that is trusted over the disk ends in a
shortened film (RG15)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from farm import events as ev
from farm.frames import PartGrid
from farm.parts import PartError
from farm.relay.books import OPEN
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.store import Store

Commit = Callable[[Outcome], Awaitable[None]]
Note = Callable[[Literal["info", "warning", "error"], str], Awaitable[None]]


async def recheck_store(
    relay: Relay, store: Store, settings_hash: str, now: Callable[[], float], commit: Commit, note: Note
) -> None:
    """Read every credited part back and take back what is gone or changed; adopt valid parts that had not
    reached the journal; remove what counts for nothing. Raises OutputError when the disk refuses."""
    books, grid = relay.books, relay.books.grid
    for part, credit in sorted(books.credits.items()):
        try:
            await asyncio.to_thread(_accept, store, grid, settings_hash, credit.file, part, credit.sha256)
        except PartError as error:
            await commit(relay.void(part, str(error), now()))
            await note("warning", f"part {part} is rendered again: {error}")
    credited = {credit.file for credit in books.credits.values()}
    for part, path in await asyncio.to_thread(store.scan):
        if path.name in credited:
            continue
        # What a reading that turned out wrong had made is never adopted.
        if part < grid.parts and books.parts[part] == OPEN and not books.linear:
            try:
                found = await asyncio.to_thread(_accept, store, grid, settings_hash, path.name, part, "")
            except PartError:
                found = None
            if found is not None:
                await commit(relay.adopt([found], now()))
                continue
        await asyncio.to_thread(store.discard, path.name)


def _accept(
    store: Store, grid: PartGrid, settings_hash: str, file: str, part: int, sha256: str
) -> ev.PartAdopted:
    facts = store.accept(
        file,
        part=part,
        start=grid.start(part),
        stop=grid.stop(part),
        settings_hash=settings_hash,
        sha256=sha256 or None,
    )
    return ev.PartAdopted(
        part=part,
        frames=grid.size(part),
        file=file,
        size_bytes=facts.size_bytes,
        sha256=facts.sha256,
        first_frame_crc=facts.footer.first_frame_crc,
        next_frame_crc=facts.footer.next_frame_crc,
    )
