"""How the console writes to the terminal: never waiting for it.

Textual's own writer hands text to a thread through a queue of 30 texts and then waits. When the terminal
goes away (a cut SSH line, a closed window) or stops reading (Ctrl-S, a stuck connection), that wait never
ends: the console hangs, deaf to signals, and the run behind it is never drained (measured, Textual 8.2.8).

Rules of this file:
- ``write`` never blocks and never raises; a terminal that is gone swallows everything;
- a terminal that is too slow loses frames, not the run: when it has caught up, the whole screen is drawn
  again;
- the end waits a moment for what restores the terminal, and no longer;
- while the terminal is ours, a keeper (console.keeper) waits to give it back should we be killed.
"""

from __future__ import annotations

import os
import termios
import threading
from collections import deque
from contextlib import suppress

from textual.drivers.linux_driver import LinuxDriver

from console.keeper import Keeper
from console.suspend import stop_here, workers_stopped

#: Text that waits for a slow terminal; what comes beyond is dropped.
PENDING_BYTES_MAX = 256 * 1024
CLOSE_SECONDS = 1.0


class TerminalWriter:
    """Writes to ``fd`` in a thread of its own."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._dropped = False
        self._gone = False
        self._closing = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="console-output", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        with self._change:
            if self._gone:
                return
            if self._pending_bytes + len(data) > PENDING_BYTES_MAX:
                self._dropped = True
                return
            self._pending.append(data)
            self._pending_bytes += len(data)
            self._change.notify()

    def flush(self) -> None:
        """Nothing to do: the thread writes at once."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def forget(self) -> None:
        """Drop what is still waiting: the screen it would draw is about to be left."""
        with self._change:
            self._pending.clear()
            self._pending_bytes = 0

    def take_caught_up(self) -> bool:
        """True once after text was dropped and the terminal has read all the rest."""
        with self._change:
            caught_up = self._dropped and not self._pending
            self._dropped = self._dropped and not caught_up
            return caught_up

    def stop(self) -> None:
        """Wait a moment until everything is written, then leave the thread to its fate (it is a daemon)."""
        with self._change:
            self._closing = True
            self._change.notify()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (data := self._next()) is not None:
            try:
                # No file object: its lock, held by a stuck write, would stop the interpreter from ending.
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                with self._change:
                    self._gone = True
                return

    def _next(self) -> bytes | None:
        with self._change:
            while not self._pending:
                if self._closing:
                    return None
                self._change.wait()
            data = b"".join(self._pending)
            self._pending.clear()
            self._pending_bytes = 0
            return data


class ConsoleDriver(LinuxDriver):
    """Textual's driver with the writer above in place of its own, and with workers that stop with it."""

    _writer: TerminalWriter | None = None
    _keeper: Keeper | None = None
    _stopping = False  #: by ourselves, so that going on is no surprise
    _back = False  #: the terminal is ours again, and empty

    def _get_terminal_size(self) -> tuple[int, int]:
        """Of the terminal that is drawn on. The base class asks standard output, which may be a file."""
        try:
            width, height = (0, 0) if self._file is None else os.get_terminal_size(self._file.fileno())
        except (OSError, ValueError):
            width = height = 0
        return (width, height) if width and height else super()._get_terminal_size()

    @property  # type: ignore[override]
    def _writer_thread(self) -> TerminalWriter | None:
        return self._writer

    @_writer_thread.setter
    def _writer_thread(self, theirs: object) -> None:
        """The base class makes a writer of its own at every start; ours takes its place, theirs is unused."""
        if theirs is None or self._file is None:
            self._writer = None
            return
        self._writer = TerminalWriter(self._file.fileno())
        self._keeper = self._keeper or Keeper()
        self._keeper.taken(self._file.fileno())  # which is the next thing that happens

    def close(self) -> None:
        super().close()
        if self._keeper is not None:
            self._keeper.given()

    def start_application_mode(self) -> None:
        # What was typed while the command was loading was not meant for keys that act at once.
        with suppress(OSError, termios.error):
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        if self._writer is not None:
            self._writer.forget()
        super().stop_application_mode()

    def take_caught_up(self) -> bool:
        """Whether the whole screen has to be drawn again: frames were dropped and there is room now, or the
        terminal was given away and is back."""
        back, self._back = self._back, False
        return back or (self._writer is not None and self._writer.take_caught_up())

    def _sigtstp_application(self, *_: object) -> None:
        """Give the terminal back, stop with all workers, and take it again when we go on. In the background
        (``bg``) taking it stops us once more, so the workers wait for it."""
        self._stopping = True
        try:
            self.suspend_application_mode()
            with workers_stopped():
                stop_here()
                self._take_terminal()
        finally:
            self._stopping = False

    def _sigcont_application(self, *_: object) -> None:
        """Somebody else had stopped us: the shell may have changed the terminal meanwhile."""
        if not self._stopping:
            self.suspend_application_mode()
            self._take_terminal()

    def _take_terminal(self) -> None:
        self._must_signal_resume = True
        self.resume_application_mode()
        self._back = True
