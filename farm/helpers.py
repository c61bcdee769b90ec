"""The children that do a phase of a job at one go: measure, join, verify.

A helper that is cut off (killed, out of memory, a crash of the media library) is asked once more. One that is
cut off again ends the run in one sentence, and the run can be resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Literal

from farm.engines.child import ChildCrashed, ChildFailed, run_in_child
from farm.engines.forkserver import EXIT_UNKNOWN
from farm.errors import IncompleteError
from farm.paths import printable

Note = Callable[[Literal["info", "warning", "error"], str], Awaitable[None]]

#: What helpers are asked to do, and how that is called.
_TASKS = {
    "measure": ("farm.media.tasks:measure_job", "measuring the machine"),
    "stitch": ("farm.media.tasks:stitch_job", "joining the parts"),
    "verify": ("farm.media.tasks:verify_job", "verifying the output"),
}


class Helpers:
    """``check_ground`` blocks, and raises an UnevenError when there is no point in going on."""

    def __init__(self, logs: Path, check_ground: Callable[[], None], note: Note) -> None:
        self._logs = logs
        self._check_ground = check_ground
        self._note = note

    async def ask(
        self,
        what: Literal["measure", "stitch", "verify"],
        *args: object,
        log: str,
        on_progress: Callable[[float], None] | None = None,
    ) -> Any:
        """What the task returns for ``args``; its output goes to the file ``log`` among the logs.

        Raises the UnevenErrors of the task and of ``check_ground``, IncompleteError if the helper is cut off
        twice or can't be started. Cancelling ends it.
        """
        target, doing = _TASKS[what]
        path = self._logs / log
        try:
            await asyncio.to_thread(self._check_ground)
            try:
                return await run_in_child(target, *args, log=path, on_progress=on_progress)
            except ChildCrashed as crash:
                await self._note("warning", f"{doing} was cut off ({_end_of(crash)}) and is tried once more")
                return await run_in_child(target, *args, log=path, on_progress=on_progress)
        except ChildCrashed as crash:
            await asyncio.to_thread(self._check_ground)
            raise IncompleteError(
                f"{doing} was cut off twice ({_end_of(crash)}); see {printable(path)}, then resume"
            ) from crash
        except ChildFailed:
            await asyncio.to_thread(self._check_ground)  # no bug of ours, if the file it wanted is gone
            raise
        except OSError as error:
            raise IncompleteError(
                f"{doing} needs a process and none could be started ({error.strerror or error}); make room, "
                "then resume"
            ) from error


async def all_of(work: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """What all of them return. Raises the first error, once all have ended; cancelling waits for all, too."""
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def _end_of(crash: ChildCrashed) -> str:
    if crash.exit_code == EXIT_UNKNOWN:
        return "the process that starts helpers was lost"
    return crash.signal_name or f"exit code {crash.exit_code}"
