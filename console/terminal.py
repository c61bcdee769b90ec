"""The terminal: whether to open the console on it, and how signals reach the console.

Rules of this file:
- never imports textual, so that the plain, JSON and worker paths stay light;
- the console draws on standard error and reads standard input: both must be a terminal, and one that
  understands escapes, before the console is chosen without being asked for;
- a signal that ends a process must end the console first, or the shell is left raw with mouse codes
  (measured: by itself Textual restores nothing after SIGTERM and SIGHUP).
"""

from __future__ import annotations

import contextlib
import signal
from collections import deque
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Literal, cast, get_args

from console.interrupts import Interrupter
from farm.errors import UsageError

Ui = Literal["tui", "plain", "json", "none"]

#: Signals that close the console and are handed to the caller, who drains or stops the run.
ENDING_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def choose_ui(requested: str, env: Mapping[str, str], stdin_isatty: bool, stderr_isatty: bool) -> Ui:
    """What shows the run. ``requested`` is ``--ui``; ``auto`` looks at ``UNEVEN_UI``, then at the terminal.

    Raises UsageError for an unknown name, and where ``tui`` was asked for without a terminal.
    """
    where, wanted = "--ui", requested
    if requested == "auto":
        where, wanted = "UNEVEN_UI", env.get("UNEVEN_UI", "").strip() or "auto"
    able = stdin_isatty and stderr_isatty and env.get("TERM", "") not in ("", "dumb")
    if wanted == "auto":
        return "tui" if able else "plain"
    if wanted not in get_args(Ui):
        raise UsageError(f"{where} {wanted!r}: choose auto, {', '.join(get_args(Ui))}")
    if wanted == "tui" and not able:
        raise UsageError(
            f"{where} tui: the console needs a terminal on standard input and standard error "
            "(and TERM set, not dumb); use plain"
        )
    return cast(Ui, wanted)


class SignalBox:
    """Remembers ending signals, from before the console opens until after it closed, and wakes who listens.

    One box holds all of a run's signals, so that none is lost while one reader takes over from another.
    """

    def __init__(self) -> None:
        self._pending: deque[signal.Signals] = deque()
        self._wake: Callable[[], object] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Take over from what the signals do by default. A SIGHUP that is ignored (nohup) stays ignored.

        Works in the main thread only; elsewhere (an app under test, another embedding) nothing is changed.
        One that came before and has not ended the command (see Interrupter) counts as having come now.
        """
        for number in ENDING_SIGNALS:
            if number is not signal.SIGINT and signal.getsignal(number) is signal.SIG_IGN:
                continue
            with contextlib.suppress(ValueError):
                self._before[number] = before = signal.signal(number, self._note)
                if isinstance(before, Interrupter) and number in before.heard:
                    self._pending.append(number)

    def remove(self) -> None:
        """Give the signals back to whoever had them."""
        while self._before:
            signal.signal(*self._before.popitem())

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pending.append(signal.Signals(number))
        if self._wake is not None:
            self._wake()

    def listen(self, wake: Callable[[], object] | None) -> None:
        """Have ``wake`` called, in the signal handler, for each that comes; at once if one is here."""
        self._wake = wake
        if wake is not None and self._pending:
            wake()

    @property
    def first(self) -> signal.Signals | None:
        """The oldest that was not taken yet."""
        return self._pending[0] if self._pending else None

    def take(self) -> signal.Signals | None:
        """The oldest, once."""
        return self._pending.popleft() if self._pending else None
