"""``--halt``: when a run with parts that can't be rendered is not worth finishing, in GNU parallel's words.

``soon,fail=3``: when three parts were set aside, nothing more is begun, parts in progress are finished;
``now,fail=3``: the run stops at once; ``never``: the other parts are rendered all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from farm.commands import Drain, StopNow
from farm.errors import UsageError, shorten

_HALT = re.compile(r"(soon|now),fail=([1-9]\d{0,6})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Halt:
    fails: int  #: parts set aside
    now: bool  #: stop at once instead of finishing what is in progress


def parse_halt(text: str) -> Halt | None:
    """None: never. Raises UsageError."""
    if text in ("", "never"):
        return None
    found = _HALT.match(text)
    if found is None:
        raise UsageError(
            f"--halt {shorten(text)}: give soon,fail=N or now,fail=N, N being parts set aside; or never"
        )
    return Halt(fails=int(found[2]), now=found[1] == "now")


class Halting:
    """Counts the parts that one stretch of work sets aside."""

    def __init__(self) -> None:
        self._parts = 0
        self.reason = ""  #: why the run is halted, if it is

    def set_aside(self, text: str) -> Drain | StopNow | None:
        """One more was, with ``--halt text``: the order to stop, once, if that is one too many."""
        self._parts += 1
        halt = parse_halt(text)
        if halt is None or self.reason or self._parts < halt.fails:
            return None
        parts = "1 part was" if self._parts == 1 else f"{self._parts} parts were"
        self.reason = f"{parts} set aside (--halt {text})"
        order = StopNow if halt.now else Drain
        return order(by="--halt", reason=self.reason)
