"""A user's own policy: ``path.py:Name`` with parameters, or a name from the entry point group
``uneven.policies``. It runs in the simulator and in the farm without change.

Rules: the class is made with its parameters (parameters.py) and has ``name`` and ``size`` (base.py); it is
tried once before a run begins. Whatever is wrong with it, then or later, is a PolicyError: one sentence with
the policy, the file and the line, never a traceback of ours. A file is read anew each time, needs no
installing, and leaves nothing behind (no ``__pycache__``).
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from numbers import Real
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, cast

from farm.errors import UsageError, shorten
from farm.policies.base import Ask, Policy, Size
from farm.policies.parameters import did_you_mean, read_parameters

ENTRY_POINTS = "uneven.policies"


class PolicyError(UsageError):
    """A user's policy is broken: which one, where, and how."""


class Guarded:
    """A user's policy, so that whatever it does wrong ends in a PolicyError."""

    def __init__(self, policy: Policy, where: str, file: str) -> None:
        self._policy = policy
        self._where = where
        self._file = file
        with _reported(where, file):
            name = policy.name
        if not (isinstance(name, str) and name.strip()):
            raise PolicyError(f"{where}: its name must be a text, not {shorten(name)}")
        self._name = name

    @property
    def name(self) -> str:
        """As the policy itself says."""
        return self._name

    def size(self, ask: Ask) -> Size:
        """Raises PolicyError if the policy does, or answers nonsense."""
        with _reported(self._where, self._file):
            answer: object = self._policy.size(ask)
        frames, why = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, self._name)
        if isinstance(frames, bool) or not isinstance(frames, Real) or not 0 < float(frames) < math.inf:
            line = _line_of(type(self._policy).size)
            raise PolicyError(
                f"{self._where}: size(){_at(self._file, line)} answered {shorten(answer)} with "
                f"{ask.open_frames} frames open; it must be a number of frames above 0"
            )
        return Size(float(frames), str(why))


def load_from_file(where: str, path: str, name: str, given: Sequence[str]) -> Policy:
    """The class ``name`` of the Python file ``path``, made with the parameters ``given``.

    ``where`` begins every error. Raises PolicyError, or UsageError for wrong parameters.
    """
    if not name:
        raise UsageError(f"{where}: say which class of {path} is the policy, as in {path}:Name")
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{where}: can't read {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{where}: {shorten(path)} is not a path") from None
    module = ModuleType(f"uneven_policy_{sha256(str(Path(path).absolute()).encode()).hexdigest()[:16]}")
    module.__file__ = path
    with _reported(where, path):
        sys.modules[module.__name__] = module  # dataclasses look up their module there
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    found = vars(module).get(name)
    if found is None:
        mine = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise PolicyError(f"{where}: {path} has no class {shorten(name)}{did_you_mean(name, mine)}")
    return _made(where, path, name, found, given)


def load_from_entry_point(where: str, name: str, given: Sequence[str]) -> Policy | None:
    """The policy that an installed package offers under ``name``; None if there is none."""
    from importlib.metadata import entry_points  # slow, and of no use to who names a policy of ours

    for point in entry_points(group=ENTRY_POINTS, name=name):
        with _reported(f"{where}: {point.value}", ""):
            found = point.load()
        file = getattr(sys.modules.get(getattr(found, "__module__", "")), "__file__", None)
        return _made(where, file or "", name, found, given)
    return None


def names_of_entry_points() -> tuple[str, ...]:
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=ENTRY_POINTS)}))


def _made(where: str, file: str, name: str, found: object, given: Sequence[str]) -> Policy:
    if not isinstance(found, type):
        raise PolicyError(f"{where}: {name} is a {type(found).__name__}; a policy is a class")
    line = _line_of(found)
    missing = [part for part in ("name", "size") if not hasattr(found, part) and part not in _fields(found)]
    if missing:
        raise PolicyError(f"{where}: the class {name}{_at(file, line)} has no {' and no '.join(missing)}")
    with _reported(where, file, line):
        values = read_parameters(where, name, found, given)
    with _reported(where, file, _line_of(vars(found).get("__init__"))):
        policy, trial = cast(Policy, found(**values)), cast(Policy, found(**values))
    with _reported(where, file, _line_of(getattr(found, "size", None))):
        inspect.signature(policy.size).bind(_FIRST_ASK)
    Guarded(trial, where, file).size(_FIRST_ASK)
    return Guarded(policy, where, file)


_FIRST_ASK = Ask(
    worker="w1", workers=1, total_frames=1000, open_frames=1000, now=0.0, grants=0, caps={"w1": None}
)


def _fields(cls: type) -> dict[str, Any]:
    return getattr(cls, "__dataclass_fields__", {})


@contextmanager
def _reported(where: str, file: str, line: int | None = None) -> Iterator[None]:
    """Turn what a user's code raises into a PolicyError; ``line``: where it began, if no better is known."""
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        found = _line_in(error, file) or line
        what = str(error) or "no message"
        if isinstance(error, SyntaxError):
            what = error.msg
        kind = type(error).__name__
        raise PolicyError(f"{where}: {kind}{_at(file, found)}: {' '.join(what.split())[:300]}") from error


def _at(file: str, line: int | None) -> str:
    if not file:
        return ""
    return f" in {file}" if line is None else f" in {file}, line {line}"


def _line_in(error: BaseException, file: str) -> int | None:
    """The innermost line of ``file`` that ``error`` passed through."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    found = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _line_of(thing: object) -> int | None:
    """Where a function or class begins."""
    code = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__code__", None)
    if code is not None:
        line = code.co_firstlineno
        return line if isinstance(line, int) else None
    members = (
        [_line_of(member) for member in vars(thing).values() if inspect.isfunction(member)]
        if isinstance(thing, type)
        else []
    )
    return min((line for line in members if line is not None), default=None)
