"""What every event is: a small frozen struct that is told from others by its tag."""

from __future__ import annotations

import msgspec

#: Version of the recording format; a reader refuses a higher one.
SCHEMA_VERSION = 1


def _tag(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class Event(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=_tag, omit_defaults=True, gc=False
):
    """Base of all events. None refers back to what refers to it (``gc=False``), so the garbage collector need
    not look at them: with 100,000 credits in the books it would hold up the relay's loop for 0.1 s."""
