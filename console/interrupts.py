"""Ctrl-C before and after a run is shown, which has its own ways (``console.draining``)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn


class Interrupted(BaseException):
    """Ctrl-C. Not KeyboardInterrupt, of which typer makes an exit without a word."""


class Interrupter:
    """A signal handler that raises Interrupted, and remembers that it did: where Python calls it from a
    finaliser what it raises is lost, and whoever takes over the signals then has to be told."""

    def __init__(self) -> None:
        self.heard: list[signal.Signals] = []

    def __call__(self, number: int, frame: FrameType | None) -> NoReturn:
        self.heard.append(signal.Signals(number))
        raise Interrupted


def heed_interrupts() -> None:
    """Works in the main thread only; a shell's background job, which ignores Ctrl-C, goes on doing so.
    SIGTERM counts, too: what was begun is cleared away whoever ends it."""
    interrupt = Interrupter()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, interrupt)


def hold_interrupts() -> Callable[[], None]:
    """Have signals wait while something begins that has to be known before it can be ended. What is returned
    lets them go, and raises if one came."""
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda number, frame: came.append(number))

    def let_go() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])

    return let_go


def ignore_interrupts() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
