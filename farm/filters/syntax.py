"""FFmpeg's filtergraph syntax, read into steps: labels, quotes, escapes, ``,`` and ``;``.

Rules of this file:
- what is quoted and escaped is read as FFmpeg reads it: once for the graph, once more for a filter's options;
- nothing is known here of any filter: options without a name stay without one;
- whatever is wrong is said with the place in the string, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from farm.errors import UsageError
from farm.paths import printable

_SPACE = " \n\t\r"
_NAME_ENDS = "=,;["
_ARGUMENT_ENDS = "[],;"
_OPTION_NAME = re.compile(r"\s*([A-Za-z0-9_./-]+)\s*=")
_SPECIAL = re.compile(r"[\\':\s]")
_SHOWN = 60  # characters of a filter in a message


@dataclass(frozen=True, slots=True)
class Step:
    """One filter of a graph as it was written."""

    name: str
    options: tuple[tuple[str, str], ...]  #: in order; an empty name: by its place alone
    takes: tuple[str, ...]  #: labels of its inputs, as far as written
    gives: tuple[str, ...]  #: labels of its outputs, as far as written
    first: bool  #: begins a chain, so that nothing comes in from a step before
    last: bool  #: ends a chain, so that nothing goes on to a step behind
    at: int  #: where it begins in the string, counted from 1
    text: str  #: as it was written, without labels

    @property
    def place(self) -> str:
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"
        return f"{printable(text)} (character {self.at})"


class GraphError(UsageError):
    """A filtergraph that can't be used, and where."""


def parse_graph(text: str) -> tuple[Step, ...]:
    """The steps of a filtergraph in the order they are written. Raises GraphError."""
    return _Parser(text).steps()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> tuple[Step, ...]:
        if not self._text.strip():
            raise GraphError("--filter is empty: give filters such as scale=640:-2,hflip")
        if self._text.lstrip().startswith("sws_flags="):
            raise self._error("sws_flags= for a whole graph isn't offered; give each scale its flags=", 0)
        steps: list[Step] = []
        first = True
        while True:
            step, end = self._step(first)
            steps.append(step)
            if not end:
                return tuple(steps)
            first = end == ";"
            self._skip_space()
            if first and self._at == len(self._text):
                return tuple(steps)

    def _step(self, first: bool) -> tuple[Step, str]:
        """A filter with its labels, and the separator behind it; an empty one at the end of the string."""
        takes = self._labels()
        start = self._at
        name = self._token(_NAME_ENDS)
        if not name:
            raise self._error("a filter's name is missing", start)
        options: tuple[tuple[str, str], ...] = ()
        if self._peek() == "=":
            self._at += 1
            options = parse_options(self._token(_ARGUMENT_ENDS))
        written = self._text[start : self._at].strip()
        gives = self._labels()
        end = self._peek()
        if end and end not in ",;":
            raise self._error(f"{end!r} makes no sense there", self._at)
        self._at += len(end)
        name, _, _ = name.partition("@")  # behind it a name for this very filter, which nobody needs
        step = Step(name, options, takes, gives, first, end != ",", start + 1, written)
        return step, end

    def _labels(self) -> tuple[str, ...]:
        labels = []
        self._skip_space()
        while self._peek() == "[":
            begin = self._at
            self._at += 1
            label = self._token("]")
            if self._peek() != "]" or not label:
                raise self._error("a label is written [name]", begin)
            self._at += 1
            labels.append(label)
            self._skip_space()
        return tuple(labels)

    def _token(self, ends: str) -> str:
        value, length = unquote(self._text[self._at :], ends)
        if length < 0:
            raise self._error("a quote ' is not closed", self._at)
        self._at += length
        return value

    def _skip_space(self) -> None:
        while self._peek() and self._peek() in _SPACE:
            self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _error(self, words: str, at: int) -> GraphError:
        return GraphError(f"--filter, character {at + 1}: {words}; near {self._text[at : at + 24]!r}")


def unquote(text: str, ends: str) -> tuple[str, int]:
    """The value at the start of ``text`` up to one of the characters ``ends``, without its quotes and
    escapes and the space around it, and how much of the text that was; below 0 where a quote isn't closed."""
    value: list[str] = []
    kept = 0  # as long as this the value stays, whatever space is at its end
    at = len(text) - len(text.lstrip(_SPACE))
    while at < len(text) and text[at] not in ends:
        if text[at] == "\\" and at + 1 < len(text):
            value.append(text[at + 1])
            at += 2
            kept = len(value)
        elif text[at] == "'":
            close = text.find("'", at + 1)
            if close < 0:
                return "", -1
            value += text[at + 1 : close]
            at = close + 1
            kept = len(value)
        else:
            value.append(text[at])
            at += 1
    while len(value) > kept and value[-1] in _SPACE:
        value.pop()
    return "".join(value), at


def parse_options(text: str) -> tuple[tuple[str, str], ...]:
    """``640:-2:flags=lanczos`` as pairs, the name empty where none is written."""
    options = []
    while text:
        name, text = _option_name(text)
        value, length = unquote(text, ":")
        if length < 0:  # as FFmpeg takes it: up to the end
            value, length = text, len(text)
        options.append((name, value))
        text = text[length + 1 :]
    return tuple(options)


def spell_options(options: Iterable[tuple[str, str]]) -> str:
    """The text that reads as these options, all of them with names."""
    return ":".join(f"{name}={_SPECIAL.sub(_escaped, value)}" for name, value in options)


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _option_name(text: str) -> tuple[str, str]:
    """The name in front, if there is one, and what is behind it."""
    found = _OPTION_NAME.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)
