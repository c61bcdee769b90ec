"""The ``uneven`` command, also as ``python -m console``: what must happen before anything else is loaded.

Rules of this file:
- it imports next to nothing, so that it is in charge a few milliseconds after Python is;
- while the rest is loaded there is nothing to clean up: Ctrl-C ends the process on the spot, with a word and
  with 130 instead of the traceback of an import;
- a standard stream that the caller closed leads to nowhere. Otherwise the next file that is opened gets its
  number, and what is printed ends up in it.
"""

import os
import signal
import sys

_INTERRUPTED = 130


def main(arguments: list[str] | None = None, report: int | None = None) -> None:
    """Entry point of the ``uneven`` command; exits with a ``farm.errors.ExitCode``. ``report``: a handle on
    which a detached run tells that it has begun."""
    _open_closed_streams()
    if "UNEVEN_CRASHTEST" in os.environ:
        from farm.crashtest.probe import install_if_asked

        install_if_asked()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from console.cli import main as command

    command(arguments, report)


def _leave(number: int, frame: object) -> None:
    try:
        os.write(2, b"uneven: interrupted\n")
    finally:
        os._exit(_INTERRUPTED)


def _open_closed_streams() -> None:
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            sink = os.open(os.devnull, os.O_RDWR)
            if sink != number:
                os.dup2(sink, number)
                os.close(sink)
        # What os.open gives is closed at exec, and children are to have all three.
        os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()
