"""What FFmpeg and the encoders themselves say while something is done: the words a refusal quotes.

Rules of this file:
- FFmpeg's log comes through PyAV; x264, x265 and SVT-AV1 also write to standard error past it, so that is
  taken for the while, too. It is the whole process's: for checks in child processes only, one at a time;
- PyAV's log callback takes the interpreter's lock, which no thread of an encoder at work should wait for:
  nothing is listened to while parts are rendered.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator

import av

#: ``x265 [error]: …``, ``Svt[warn]: …``
_LINE = re.compile(r"(?:x26[45] ?|Svt)\[(error|warn|warning)\]: *(.+)")
_STDERR = 2


def heard(action: Callable[[], object], level: int) -> list[str]:
    """What is said, at ``level`` (of av.logging) or worse, while ``action`` runs or fails of an FFmpegError;
    each line once, FFmpeg's before the encoder's own."""
    before, skipped = av.logging.get_level(), av.logging.get_skip_repeated()
    av.logging.set_level(level)
    av.logging.set_skip_repeated(False)
    own: list[str] = []
    try:
        with _standard_error(own), av.logging.Capture() as log, contextlib.suppress(av.error.FFmpegError):
            action()
    finally:
        av.logging.set_level(before)
        av.logging.set_skip_repeated(skipped)
    lines = [text.strip().rstrip(".") for _, _, text in log]
    for line in own:
        found = _LINE.match(line)
        if found and (found[1] == "error" or level >= av.logging.WARNING):
            lines.append(found[2].strip().rstrip("."))
    return list(dict.fromkeys(line for line in lines if line))


def words(action: Callable[[], object], failure: av.error.FFmpegError) -> str:
    """What is said about ``failure``, heard by doing ``action`` once more; else FFmpeg's word for it."""
    return "; ".join(heard(action, av.logging.ERROR)) or str(failure.strerror)


@contextlib.contextmanager
def _standard_error(lines: list[str]) -> Iterator[None]:
    """Take what is written to standard error, into ``lines``; nothing where there is none or no room."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            saved = os.dup(_STDERR)
        except OSError:
            yield
            return
        os.dup2(file.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(saved, _STDERR)
            os.close(saved)
            file.seek(0)
            said = file.read()
            lines += said.decode(errors="replace").splitlines()
            with contextlib.suppress(OSError):
                os.write(_STDERR, said)  # where it belongs: the log of whoever does this
