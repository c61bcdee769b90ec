"""``fixed,FRAMES``: every chunk the same; the relay write-up's baseline."""

from __future__ import annotations

from dataclasses import dataclass

from farm.policies.base import Ask, Size
from farm.policies.parameters import parameter


@dataclass(frozen=True, slots=True)
class Fixed:
    """size = frames. Source: the relay write-up."""

    frames: int = parameter(120, low=1, unit="frames")

    @property
    def name(self) -> str:
        return f"fixed,{self.frames}"

    def size(self, ask: Ask) -> Size:
        return Size(self.frames, f"always {self.frames} frames")
