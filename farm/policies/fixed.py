"""``fixed,FRAMES``: every chunk the same; the relay write-up's baseline."""

from __future__ import annotations

from dataclasses import dataclass

from farm.policies.base import Ask, Size


@dataclass(frozen=True, slots=True)
class Fixed:
    """size = frames. Source: the relay write-up."""

    frames: int = 120

    @property
    def name(self) -> str:
        return f"fixed,{self.frames}"

    def size(self, ask: Ask) -> Size:
        return Size(self.frames, f"always {self.frames} frames")
