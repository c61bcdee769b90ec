"""How long a drain will take: what the parts in progress need, and what the user's patience allows.

Rule: an estimate is said to be one, and what isn't known is left out.
"""

from __future__ import annotations

from console import text
from console.model import Model


def drain_text(model: Model, now: float) -> str:
    """``draining, about 6 s left, at most 24 s``."""
    eta = model.eta(now)  # in a drain, of the longest part in progress
    at_most = None if model.drain_until is None else max(model.drain_until - now, 0.0)
    said = "draining"
    if eta is not None:
        about = eta.mid if at_most is None else min(eta.mid, at_most)
        said += f", about {text.about(about)} left"
    if at_most is not None:
        said += f", at most {text.about(at_most)}" + (" left" if eta is None else "")
    return said
