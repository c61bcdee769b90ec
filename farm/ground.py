"""What a run stands on and others can take away: its input and its run folder.

A run whose input is replaced or whose folder is removed would fail part after part, each with a story of its
own. So both are looked at now and then, and the first thing that is wrong is said, once. Looking costs a few
``stat``; the input is read again only when its size or its time stamp is another one.
"""

from __future__ import annotations

from pathlib import Path

from farm.errors import InputError, OutputError
from farm.folder import RunFolder
from farm.paths import printable, reason
from farm.source import fingerprint


class Ground:
    """Made when the run begins; ``check`` blocks, so call it off the event loop, one call at a time."""

    def __init__(self, source: Path, source_fingerprint: str, folder: RunFolder) -> None:
        self._source = source
        self._fingerprint = source_fingerprint
        self._folder = folder
        self._seen: tuple[int, int, int] | None = None  # of the input, when it was last known to be right

    def check(self) -> None:
        """Raises InputError if the input isn't what was indexed, OutputError if a part of the run folder is
        gone."""
        self._check_folder()
        self._check_source()

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
