"""The command line: options in, a job or a sentence out.

Rules of this file:
- names mean what users know them to mean (DESIGN.md §9); a spelling of ffmpeg's gets one line with ours;
- whatever a user can cause ends in one sentence on standard error and a distinct exit code;
- nothing heavy is imported before it is needed: textual only for the console, media code never.
"""

from __future__ import annotations

import shutil
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import msgspec
import typer
from typer.exceptions import TyperException
from typer.models import CommandInfo

from console import attach as attaching
from console import comparing, lab
from console.burnoptions import with_places
from console.clean import clean
from console.crashtest import crashtest
from console.demo import demo
from console.detach import Invocation, Report
from console.interrupts import Interrupted, heed_interrupts, ignore_interrupts
from console.rendering import render, resume
from console.replay import replay
from console.report import records_of, report_text
from console.spellings import refuse_ffmpeg_spellings, refuse_other_digits
from console.streams import attempt, give_line, tell, unwritten
from console.verify import verify
from farm.errors import ExitCode, UnevenError
from farm.reports.hardware import hardware_report


def _made() -> typer.Typer:
    return typer.Typer(
        name="uneven",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


app = _made()


def main(arguments: Sequence[str] | None = None, report: int | None = None) -> None:
    """The ``uneven`` command, once it is loaded (``console.__main__``); exits with an ``ExitCode``.
    ``report``: a handle on which a detached run tells that it has begun.

    Until a run is shown, which has its own ways, Ctrl-C ends the command with a word; at the very end it is
    ignored, for there is nothing left to interrupt."""
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    heed_interrupts()
    try:
        _run(Invocation(arguments, None if report is None else Report(report)))
    finally:
        ignore_interrupts()


def _run(invocation: Invocation) -> NoReturn:
    arguments = invocation.arguments
    try:
        refuse_ffmpeg_spellings(arguments)
        refuse_other_digits(arguments)
        code = _app_for(arguments)(
            args=with_places(arguments), prog_name="uneven", standalone_mode=False, obj=invocation
        )
        sys.exit(_given(code if isinstance(code, int) else 0))
    except typer.Exit as ended:
        sys.exit(_given(ended.exit_code))
    except TyperException as error:
        _complain(f"{error.format_message().rstrip('.')}; see uneven {_command(arguments)}--help")
        sys.exit(ExitCode.USAGE)
    except (typer.Abort, Interrupted):
        _complain("interrupted")
        sys.exit(ExitCode.INTERRUPTED)
    except UnevenError as error:
        _complain(str(error))
        sys.exit(error.exit_code)
    except Exception as error:
        # A result that was printed goes nowhere: the disk is full, or who read it has left.
        if isinstance(error, OSError) and (lost := attempt(sys.stdout, "")) is not None:
            sys.exit(_lost(lost))
        _complain("this is a bug of uneven; what follows helps to mend it:")
        tell(traceback.format_exc())
        sys.exit(ExitCode.BUG)


def _given(code: int) -> int:
    """The exit code, once all that was printed has been written."""
    lost = attempt(sys.stdout, "")
    return code if lost is None or code else _lost(lost)


def _lost(lost: OSError | ValueError) -> ExitCode:
    if isinstance(lost, BrokenPipeError):
        return ExitCode.DONE
    _complain(unwritten(lost))
    return ExitCode.OUTPUT


def _app_for(arguments: Sequence[str]) -> typer.Typer:
    """The app with only the command that is asked for: to prepare the options of all takes a sixth of the
    time that a command needs to begin."""
    asked = _known().get(arguments[0])
    if asked is None:
        return app
    one = _made()
    one.callback()(uneven)
    one.registered_commands.append(asked)
    return one


def _command(arguments: Sequence[str]) -> str:
    return f"{arguments[0]} " if arguments[0] in _known() else ""


def _known() -> dict[str, CommandInfo]:
    return {
        command.name or command.callback.__name__: command
        for command in app.registered_commands
        if command.callback
    }


def _complain(sentence: str) -> None:
    tell(f"uneven: {sentence}")


def _say_version(asked: bool) -> None:
    if asked:
        from importlib import metadata  # slow to load

        give_line(f"uneven {metadata.version('uneven')}")
        raise typer.Exit


@app.callback()
def uneven(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Say which version this is, and exit."
        ),
    ] = False,
) -> None:
    """Render a video on uneven workers, from the terminal, exact to the frame."""


app.command()(render)
app.command()(resume)
app.command()(verify)


@app.command()
def report(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="An id, an output, a run folder, a recording, or 'last'.")
    ] = "last",
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> int:
    """The hardware table of a run: what each worker was, did and used, its share and its fair share."""
    made = hardware_report(records_of(run))
    if json:
        give_line(msgspec.json.encode(made).decode())
    else:
        give_line(report_text(made, shutil.get_terminal_size((160, 24)).columns))
    return ExitCode.DONE


app.command()(demo)
app.command()(replay)
app.command()(lab.simulate)
app.command()(comparing.compare)
app.command()(crashtest)
app.command()(clean)
app.command()(attaching.attach)
app.command()(attaching.status)
app.command()(attaching.stop)
app.command()(attaching.runs)


if __name__ == "__main__":
    main()
