"""Several inputs, one after another over the same kind of fleet: ``uneven render *.mkv -o DIR``.

Rules of this file:
- what can't be is refused before the first one begins: two that would get the same name;
- one that fails is no reason not to go on; the exit code is that of the worst;
- every input has its line in the table at the end, also when the user stopped on the way.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from console import text
from console.streams import tell
from farm.errors import ExitCode, UnevenError, UsageError
from farm.folder import holds_run
from farm.paths import printable, run_folder_path
from farm.sequence import parse_pattern
from farm.settings import CONTAINERS

_DEFAULT_EXTENSION = ".mp4"
_NOT_BY_DEFAULT = (".webm",)  #: which the default encoder doesn't go into
#: From bad to worse; what isn't listed is worst.
_SEVERITY = (
    ExitCode.DONE,
    ExitCode.USAGE,
    ExitCode.INPUT,
    ExitCode.OUTPUT,
    ExitCode.INCOMPLETE,
    ExitCode.EXPECTATION,
    ExitCode.VERIFICATION,
    ExitCode.INTERRUPTED,
    ExitCode.BUG,
)
_WORDS = {
    ExitCode.DONE: "done",
    ExitCode.INCOMPLETE: "incomplete; resume goes on",
    ExitCode.INTERRUPTED: "stopped; resume goes on",
    ExitCode.VERIFICATION: "failed its verification",
    ExitCode.BUG: "a bug of uneven",
}

_THERE = "there already"


@dataclass(slots=True)
class _Line:
    source: Path
    output: Path
    result: str = "not begun"
    seconds: float = 0.0


def once_each(sources: Sequence[Path]) -> list[Path]:
    """The inputs in their order, each once however often and by whichever path it is named."""
    found: dict[str, Path] = {}
    for source in sources:
        found.setdefault(os.path.normpath(source.absolute()), source)
    return list(found.values())


def outputs_for(
    sources: Sequence[Path], output: Path | None, extension: str | None
) -> list[tuple[Path, Path]] | None:
    """Each input with its output; None if there is one of each and nothing to work out.

    Raises UsageError for several inputs and no folder, two inputs of one name, or an unknown extension.
    """
    folder = output is not None and output.is_dir()
    if len(sources) < 2 and not folder:
        if extension is not None:
            raise UsageError("--extension is for an output that is a folder")
        return None
    if output is None:
        return None  # which is complained of where one input is, too
    if not folder:
        wrong = "is no folder" if output.exists() else "does not exist; make it first"
        raise UsageError(
            f"{len(sources)} inputs need a folder to go to, -o DIR, and {printable(output)} {wrong}"
        )
    if extension is not None and f".{extension.lstrip('.').lower()}" not in CONTAINERS:
        raise UsageError(f"--extension {extension}: use one of {', '.join(CONTAINERS)}")
    pairs = [(source, output / _output_name(source, extension)) for source in sources]
    seen: dict[Path, Path] = {}
    for source, target in pairs:
        if target in seen:
            raise UsageError(
                f"{printable(seen[target])} and {printable(source)} would both become {printable(target)}; "
                "render one of them by itself"
            )
        seen[target] = source
    return pairs


def _output_name(source: Path, extension: str | None) -> str:
    pattern = None if source.exists() else parse_pattern(source)
    if pattern is not None:
        stem = pattern.prefix.rstrip("._- ") or source.absolute().parent.name
    else:
        stem = source.absolute().name if source.is_dir() else source.stem
    own = source.suffix.lower()
    kept = own in CONTAINERS and own not in _NOT_BY_DEFAULT and not source.is_dir()
    chosen = extension or (own if kept else _DEFAULT_EXTENSION)
    return f"{stem}.{chosen.lstrip('.')}"


def render_each(
    pairs: Sequence[tuple[Path, Path]],
    render: Callable[[Path, Path], int],
    between: Callable[[], None],
    *,
    keep_existing: bool = False,
    done: str = _WORDS[ExitCode.DONE],
) -> int:
    """Render them in turn and print the table; returns the exit code of the worst. ``between`` is called
    before each. An interrupted one is the last. ``keep_existing``: an output that is there, with no run
    that isn't over, is done already. ``done``: the word for what went well."""
    lines = [_Line(source, output) for source, output in pairs]
    worst = ExitCode.DONE
    try:
        for number, line in enumerate(lines, 1):
            between()
            if keep_existing and line.output.is_file() and not holds_run(run_folder_path(line.output)):
                line.result = _THERE
                continue
            _say(f"[{number} of {len(lines)}] {printable(line.source)} → {printable(line.output)}")
            began = time.monotonic()
            code = _one(line, render, done)
            line.seconds = time.monotonic() - began
            worst = max(worst, code, key=_severity)
            if code is ExitCode.INTERRUPTED:
                break
    finally:
        if len(lines) > 1:
            _say(_table(lines, done))
    return worst


def _one(line: _Line, render: Callable[[Path, Path], int], done: str) -> ExitCode:
    line.result = "stopped"
    try:
        code = ExitCode(render(line.source, line.output))
        line.result = (_WORDS | {ExitCode.DONE: done}).get(code, f"failed (exit code {int(code)})")
    except UnevenError as error:
        code = ExitCode(error.exit_code)
        line.result = str(error)
        _say(f"uneven: {error}")
    except Exception:
        code = ExitCode.BUG
        line.result = _WORDS[code]
        _say("uneven: this is a bug of uneven; what follows helps to mend it:")
        traceback.print_exc()
    return code


def _severity(code: ExitCode) -> int:
    return _SEVERITY.index(code)


def _table(lines: Sequence[_Line], done: str) -> str:
    well = sum(line.result in (done, _THERE) for line in lines)
    names = [text.safe(printable(line.source.name)) for line in lines]
    width = max(map(text.width, names))
    rows = [f"{well} of {len(lines)} {done}"]
    for name, line in zip(names, lines, strict=True):
        rows.append(f"{text.pad(name, width)}  {line.seconds:8.1f} s  {line.result}")
    return "\n" + "\n".join(rows)


def _say(line: str) -> None:
    tell("\n".join(map(text.safe, line.split("\n"))))
