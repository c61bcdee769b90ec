"""The terminal: whether to open the console on it, and how signals reach the console.

Rules of this file:
- never imports textual, so that the plain, JSON and worker paths stay light;
- the console draws on standard error and reads standard input: both must be a terminal, and one that
  understands escapes, before the console is chosen without being asked for;
- a signal that ends a process must end the console first, or the shell is left raw with mouse codes
  (measured: by itself Textual restores nothing after SIGTERM and SIGHUP).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Literal, cast, get_args

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


def on_ending_signal(loop: asyncio.AbstractEventLoop, close: Callable[[signal.Signals], None]) -> None:
    """Have ``close`` called in ``loop`` with each ending signal, in place of what it does by default.

    Works in the main thread only; elsewhere (an app under test, another embedding) nothing is changed.
    """
    for number in ENDING_SIGNALS:
        try:
            loop.add_signal_handler(number, close, signal.Signals(number))
        except (NotImplementedError, RuntimeError, ValueError):
            return
