"""What the worker's loop asks of whatever renders its parts, and what it hears of it: frames as they come, or
why there are none. ``farm.media`` has the real one, tests have others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from farm.messages import DISK_FULL
from farm.parts import PartFacts
from farm.paths import is_full
from farm.worker.delivery import Failure
from farm.worker.orders import HeldClaim

#: The kind of a failure that nothing is known of: a bug of ours, or of a library.
UNEXPECTED = "error"


class Progress(Protocol):
    """What a renderer reports while it works on a part."""

    def decoded(self) -> None:
        """A frame was decoded, whether it is used or not."""
        ...

    def before_frame(self, frame: int) -> None:
        """Frame ``frame`` of the job is about to be encoded. Takes its time where a cap says so; raises
        PartAborted if the part is of no use any more."""
        ...


class Renderer(Protocol):
    """farm.media.render.PartRenderer, or a test's. An exception's ``kind`` is passed on to the relay."""

    def render(self, part: int, start: int, stop: int, path: Path, progress: Progress) -> PartFacts: ...

    def close(self) -> None: ...


class PartAborted(Exception):
    """The part in progress is of no use any more."""


class PartProgress:
    """Counts one part's frames into its claim; ``pace`` waits until the next one may be encoded."""

    def __init__(self, claim: HeldClaim, start: int, pace: Callable[[], None]) -> None:
        self._claim = claim
        self._rendered_at_start = claim.rendered - start
        self._pace = pace

    def decoded(self) -> None:
        self._claim.decoded += 1

    def before_frame(self, frame: int) -> None:
        self._claim.position = frame
        # frames come again when a part has to be read again; what a heartbeat counts never goes down
        self._claim.rendered = max(self._claim.rendered, self._rendered_at_start + frame)
        self._pace()


def failure_of(part: int, error: Exception) -> Failure:
    """What the relay is told of a part that could not be rendered."""
    kind = "out of memory" if isinstance(error, MemoryError) else str(getattr(error, "kind", UNEXPECTED))
    kind = DISK_FULL if is_full(error) else kind
    return Failure(part, kind, str(getattr(error, "message", error)) or type(error).__name__)
