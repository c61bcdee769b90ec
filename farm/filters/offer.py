"""What is known of a filter that is offered: how its frames are made, and which options change that.

A frame is *exact* if it is, hash by hash, what one pass over the whole film gives. A filter is one of these:
- exact alone: a frame depends on the frame that comes in and its time;
- exact with neighbours: on so many frames before and after it, too;
- for the whole film only: on all frames before, or on how many there were; or other frames come out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Options = Mapping[str, str]  #: by their full names
Count = int | Callable[[Options], int]
#: With these options: why the filter is for the whole film only; empty if it isn't.
Rule = Callable[[Options], str]

_FRAME_NUMBER = re.compile(r"(?<![\w.])[nN](?!\w)")
_MEMORY = re.compile(r"(?<!\w)(random|randomi|ld|st)\s*\(")


@dataclass(frozen=True, slots=True)
class Offer:
    """``whole``: why it is for the whole film only, whatever its options; ``retimes``: then the number or the
    times of frames may change; ``forbidden``: options with why they aren't offered at all."""

    name: str
    inputs: Count = 1
    outputs: Count = 1
    before: Count = 0  #: frames
    after: Count = 0
    whole: str = ""
    retimes: bool | Rule = False
    rules: tuple[Rule, ...] = ()
    never: tuple[Rule, ...] = ()  #: why it is not offered with these options
    forbidden: Mapping[str, str] = field(default_factory=dict)
    required: Mapping[str, str] = field(default_factory=dict)  #: options that must be there, with why
    files: tuple[str, ...] = ()  #: options that name a file to be read

    def why_whole(self, options: Options) -> str:
        """Why it is for the whole film only with these options; empty if it isn't."""
        if self.whole:
            return self.whole
        for name, value in options.items():
            if name in self.files:
                continue
            if _FRAME_NUMBER.search(value):
                return f"{name}={value} counts frames"
            if found := _MEMORY.search(value):
                return f"{found[1]}() in {name}={value} keeps something from frame to frame"
        if "enable" in options and (self.before or self.after):
            return "with enable= it isn't told of all its neighbours"
        return next(filter(None, (rule(options) for rule in self.rules)), "")

    def changes_frames(self, options: Options) -> bool:
        """Whether other frames may come out than go in, by number or by time."""
        return bool(self.retimes(options)) if callable(self.retimes) else self.retimes


def count(value: Count, options: Options) -> int:
    """Raises ValueError if it hangs on an option that is no number."""
    return value(options) if callable(value) else value


def number(name: str, default: int) -> Callable[[Options], int]:
    return lambda options: int(options.get(name, default))


def only(name: str, allowed: str, default: str, why: str) -> Rule:
    """For the whole film unless the option is one of ``allowed``, values with spaces between."""
    return lambda options: "" if options.get(name, default) in allowed.split() else why


def unless_absent(names: str, why: str) -> Rule:
    """For the whole film as soon as one of these options is there."""
    return lambda options: next((f"{name}= {why}" for name in names.split() if name in options), "")
