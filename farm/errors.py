"""Errors a user can cause, each with one clear sentence and the exit code it ends in.

Rule: an error of this family is printed as its sentence (what, where, what to do) and never as a
traceback. Everything else is our own bug and ends in exit code 70 with its story.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended; documented in the README, part of the interface."""

    DONE = 0  #: done and verified
    USAGE = 2  #: the command line asks for something impossible
    INPUT = 3  #: the input can't be used
    OUTPUT = 4  #: the output can't be written
    INCOMPLETE = 5  #: finished without some parts; resumable
    VERIFICATION = 6  #: the output, or two copies of a part, did not verify
    EXPECTATION = 7  #: an expectation of a scenario failed
    BUG = 70  #: our own bug
    INTERRUPTED = 130  #: stopped by the user; resumable


class UnevenError(Exception):
    """Base of all errors that end in one sentence for the user."""

    exit_code = ExitCode.BUG


class UsageError(UnevenError):
    exit_code = ExitCode.USAGE


class InputError(UnevenError):
    exit_code = ExitCode.INPUT


class OutputError(UnevenError):
    exit_code = ExitCode.OUTPUT


class IncompleteError(UnevenError):
    exit_code = ExitCode.INCOMPLETE


class VerificationError(UnevenError):
    exit_code = ExitCode.VERIFICATION


class FinishedAlready(UnevenError):
    """There is nothing left to do, and what was left of the run was removed."""

    exit_code = ExitCode.DONE


class InterruptedRun(UnevenError):
    exit_code = ExitCode.INTERRUPTED


class IdError(ValueError):
    """An id or token that is not exactly what the relay hands out; says what was received."""

    def __init__(self, received: object, reason: str) -> None:
        self.received = shorten(received)
        self.reason = reason
        super().__init__(f"{reason}: received {self.received}")


def shorten(received: object, limit: int = 60) -> str:
    """``repr`` of what was received, cut in the middle so that 400 digits don't fill the log."""
    text = repr(received)
    return (
        text if len(text) <= limit else f"{text[: limit // 2]}…{text[-limit // 4 :]} ({len(text)} characters)"
    )
