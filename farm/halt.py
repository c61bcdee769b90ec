"""``--halt``: when a run with parts that can't be rendered is not worth finishing, in GNU parallel's words.

``soon,fail=3``: when three parts were set aside, nothing more is begun, parts in progress are finished;
``now,fail=3``: the run stops at once; ``never``: the other parts are rendered all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
