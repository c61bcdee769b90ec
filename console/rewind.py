"""Going back: a model is folded forwards only, so its past is folded again, from the nearest keyframe.

Measured (docs/decisions): 100,000 events take 0.9 s to fold, so keyframes are worth their memory: with one
every KEYFRAME_RECORDS, a way back costs about 0.1 s at most.

Rules of this file:
- the model keeps its identity: whoever holds it sees it go back;
- keyframes are bounded: where there are too many, every second one goes, and the gaps double.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Final

from console.model import Model
from farm.events import Record

KEYFRAME_RECORDS: Final = 8192
KEYFRAMES_MAX: Final = 64


class Rewinder:
    """The past of ``model``, which must not have folded anything yet."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._keyframes: list[tuple[int, bytes]] = []
        self._gap = KEYFRAME_RECORDS
        self.folded = 0  #: records
        self._keep()

    def fold(self, records: Sequence[Record]) -> None:
        """Take in the next records of the log."""
        model = self._model
        for record in records:
            model.fold(record)
            self.folded += 1
            if self.folded - self._keyframes[-1][0] >= self._gap:
                self._keep()

    def back_to(self, position: int, log: Sequence[Record]) -> None:
        """Make the model what it was after the first ``position`` records of ``log``."""
        at, frame = next(kept for kept in reversed(self._keyframes) if kept[0] <= position)
        # Only what this object has pickled itself is ever unpickled.
        restored: Model = pickle.loads(frame)
        restored.map.all_dirty = True
        vars(self._model).clear()
        vars(self._model).update(vars(restored))
        for record in log[at:position]:
            self._model.fold(record)
        self.folded = position

    def restart(self) -> None:
        """The log has begun anew."""
        self.back_to(0, ())
        del self._keyframes[1:]

    def _keep(self) -> None:
        self._keyframes.append((self.folded, pickle.dumps(self._model, pickle.HIGHEST_PROTOCOL)))
        if len(self._keyframes) > KEYFRAMES_MAX:
            self._keyframes = self._keyframes[::2]
            self._gap *= 2
