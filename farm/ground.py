"""What a run stands on and others can take away: its input and its run folder.

A run whose input is replaced or whose folder is removed would fail part after part, each with a story of its
own. So both are looked at now and then, and the first thing that is wrong is said, once. Looking costs a few
``stat``; the input is read again only when its size or its time stamp is another one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from farm.errors import InputError, OutputError
from farm.folder import RunFolder
from farm.paths import printable, reason
from farm.source import SourceIndex, fingerprint

#: How often input and run folder are looked at.
LOOK_SECONDS = 1.0
#: Of a sequence of any length, a check takes some milliseconds.
IMAGES_A_CHECK = 500


class GroundWatch:
    """``check`` blocks, and raises when there is no point in going on. Use in one event loop."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._asked = asyncio.Event()

    def look_now(self) -> None:
        """There is a reason to: a part failed."""
        self._asked.set()

    async def run(self) -> None:
        """Watch until cancelled. Raises what ``check`` raises."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._asked.wait()
            self._asked.clear()
            await asyncio.to_thread(self._check)


class Ground:
    """Made when the run begins; ``check`` blocks, so call it off the event loop, one call at a time."""

    def __init__(self, source: Path, index: SourceIndex, folder: RunFolder) -> None:
        self._source = source
        self._images = index.images
        self._next_image = 0  # of a sequence, of which each check looks at some
        self._fingerprint = index.fingerprint
        self._filter_files = index.filtered.files if index.filtered is not None else ()
        self._folder = folder
        self._seen: tuple[int, int, int] | None = None  # of the input, when it was last known to be right

    def check(self) -> None:
        """Raises InputError if the input isn't what was indexed, OutputError if a part of the run folder is
        gone."""
        self._check_folder()
        self._check_source()
        for file in self._filter_files:
            self._check_filter_file(Path(file.path), (file.size, file.mtime_ns))

    def _check_folder(self) -> None:
        folder = self._folder
        for path in (folder.journal, folder.store, folder.spool):
            if not path.exists():
                name = printable(folder.path)
                raise OutputError(
                    f"{printable(path)} was removed while the run was on, so its results can't be relied on; "
                    f"remove what is left of {name} and start again with render"
                )
        if not folder.index.exists():
            raise OutputError(
                f"{printable(folder.index)} was removed while the run was on; resume makes it anew"
            )

    def _check_source(self) -> None:
        if self._images:
            self._check_images()
            return
        name = printable(self._source)
        try:
            stat = self._source.stat()
            found = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if found == self._seen:
                return
            if fingerprint(self._source) != self._fingerprint:
                raise InputError(
                    f"{name} was changed while it was rendered; put it back as it was and resume, or remove "
                    f"{printable(self._folder.path)} to start anew"
                )
            self._seen = found
        except FileNotFoundError as error:
            raise InputError(f"{name} was removed while it was rendered; put it back and resume") from error
        except OSError as error:
            raise InputError(f"{name} can't be read any more: {reason(error)}") from error

    def _check_filter_file(self, path: Path, planned: tuple[int, int]) -> None:
        try:
            stat = path.stat()
        except OSError as error:
            raise InputError(f"{printable(path)}, which a filter reads, is gone: {reason(error)}") from error
        if (stat.st_size, stat.st_mtime_ns) != planned:
            raise InputError(
                f"{printable(path)}, which a filter reads, was changed while the film was rendered; put it "
                "back as it was and resume"
            )

    def _check_images(self) -> None:
        """Some images a time: who renders one sees for itself whether it is the one that was planned."""
        count = len(self._images)
        for offset in range(min(count, IMAGES_A_CHECK)):
            image = self._images[(self._next_image + offset) % count]
            path = self._source.parent / image.name
            advice = (
                f"put it back as it was and resume, or remove {printable(self._folder.path)} to start anew"
            )
            try:
                stat = path.stat()
            except FileNotFoundError as error:
                raise InputError(f"{printable(path)} was removed while it was rendered; {advice}") from error
            except OSError as error:
                raise InputError(f"{printable(path)} can't be read any more: {reason(error)}") from error
            if (stat.st_size, stat.st_mtime_ns) != (image.size, image.mtime_ns):
                raise InputError(f"{printable(path)} was changed while it was rendered; {advice}")
        self._next_image = (self._next_image + IMAGES_A_CHECK) % count
