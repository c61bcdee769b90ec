"""How each event changes the books. The only code that does.

Rules of this package: no decisions, no I/O, no clock; all O(1), or O(parts moved). Each family of events has
a file, with the table of its events at the end. An event in no table concerns the console or the job's phases
and changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from farm.relay.fold import claims, parts, run, workers

if TYPE_CHECKING:
    from farm.relay.books import Books

HANDLERS: Final[dict[type, Callable[[Books, float, Any], None]]] = {
    **run.HANDLERS,
    **workers.HANDLERS,
    **claims.HANDLERS,
    **parts.HANDLERS,
}
#: What folds an event of a type, or None.
handler_of: Final = HANDLERS.get
