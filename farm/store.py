"""The store: the folder of delivered parts.

Rules of this file:
- a part is in the store once its bytes were read back whole, matched what was planned, and file and name are
  synced; only then may the journal say so (DESIGN.md §4 rule 5);
- every attempt delivers under a name of its own, so that a late worker can't write over another's part;
- names come from workers and are not trusted: a plain name of an ordinary file in this folder, or refused.

All functions block; call them off the event loop.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from pathlib import Path
from typing import NamedTuple

from farm.errors import IdError, OutputError, shorten
from farm.frames import ClaimToken, parse_token
from farm.parts import PartError, PartFacts, check_part
from farm.paths import printable, reason, sync_file, sync_name

_PART_FILE = re.compile(r"p([0-9]{6}|[1-9][0-9]{6,17})-(c[0-9]+)\.([0-9]+)\.(e[0-9]+)\.part\Z", re.ASCII)


class PartFile(NamedTuple):
    """What the name of a delivered file says: the part, and the claim it was made under."""

    part: int
    token: ClaimToken


def part_file_name(part: int, token: ClaimToken | str) -> str:
    """The name a part is delivered under, ``p000012-c4.3.e2.part``. Raises IdError for a malformed token."""
    claim = token if isinstance(token, ClaimToken) else parse_token(token)
    return f"p{part:06d}-{str(claim).replace('#', '.').replace('@', '.')}.part"


def parse_part_file_name(name: str) -> PartFile | None:
    """The inverse of ``part_file_name``; None for anything it would not have made."""
    match = _PART_FILE.match(name)
    if match is None:
        return None
    try:
        token = parse_token(f"{match[2]}#{match[3]}@{match[4]}")
    except IdError:
        return None
    return PartFile(int(match[1]), token)


class Store:
    """Delivered parts in ``folder``, which exists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, file_name: str) -> Path:
        """Where a file of that name is, or would be. Raises PartError unless it is a plain name."""
        plain = 0 < len(file_name) <= 255 and file_name not in (".", "..") and file_name.isprintable()
        if not plain or "/" in file_name or "\\" in file_name:
            raise PartError(
                f"a delivery names a file in the store by its plain name, not {shorten(file_name)}"
            )
        return self.folder / file_name

    def accept(
        self,
        file_name: str,
        *,
        part: int,
        start: int,
        stop: int,
        settings_hash: str,
        sha256: str | None = None,
    ) -> PartFacts:
        """Read a delivered file back, compare it with what was planned, and make it durable.

        ``sha256``: of the whole file, where it is known from the worker or the journal; only that finds a
        changed time stamp. Raises PartError when the file is damaged, another part, or not there; OutputError
        when the disk fails.
        """
        path = self.path(file_name)
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                raise PartError(f"{file_name} is not an ordinary file")
            facts = check_part(path, part=part, start=start, stop=stop, settings_hash=settings_hash)
            if sha256 is not None and facts.sha256 != sha256:
                raise PartError(f"{file_name} is not what was written: its sha256 is another one")
            sync_file(path)
        except FileNotFoundError as error:
            raise PartError(f"{file_name} is not in the store") from error
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
                raise PartError(f"{file_name} is not in the store: {reason(error)}") from error
            raise self._failed(path, error) from error
        sync_name(path)
        return facts

    def scan(self) -> list[tuple[int, Path]]:
        """The files that by their names are parts, by part number and name. Their bytes are not looked at."""
        found = []
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    file = parse_part_file_name(entry.name)
                    if file is not None and entry.is_file(follow_symlinks=False):
                        found.append((file.part, self.folder / entry.name))
        except OSError as error:
            raise self._failed(self.folder, error) from error
        return sorted(found)

    def discard(self, file_name: str) -> None:
        """Remove a file that counts for nothing; one that is gone already is fine."""
        path = self.path(file_name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(path, error) from error

    def free_bytes(self) -> int:
        """Room left on the store's disk for a user without privileges."""
        try:
            return shutil.disk_usage(self.folder).free
        except OSError as error:
            raise self._failed(self.folder, error) from error

    def _failed(self, path: Path, error: OSError) -> OutputError:
        return OutputError(f"the store's {printable(path)} can't be used: {reason(error)}")
