"""One worker: what it holds, how fast it is, what it did, and its last events. Goes on while it is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import ClassVar

from textual.binding import BindingType

from console.modals.dialog import Dialog, Pieces, Role
from console.model import Model
from console.profiles import cap_words, encoder_threads, profile_of, resource_words
from console.text import blocks, count, duration, plural, safe, share, size, speed
from console.theme import Look, Mark
from console.timeline import WorkerModel
from console.widgets.event_list import time_text
from console.widgets.lines import clip
from console.widgets.view import worker_state
from console.wording import WARNINGS, EventLine

STORY_LINES_MAX = 12
#: Cells of the name of a fact.
FACT_CELLS = 10
#: Its name and its value, each with its role.
Fact = tuple[tuple[str, Role], tuple[str, Role]]
#: Events of the ring that are looked through for a worker's story.
SEARCH_MAX = 4000

_ROLES: dict[Mark, Role] = {
    Mark.CLAIMED: "claimed",
    Mark.DUPLICATED: "duplicated",
    Mark.LAPSED: "alert",
    Mark.FAILED: "alert",
    Mark.STALLED: "alert",
}


class WorkerDetail(Dialog):
    BINDINGS: ClassVar[list[BindingType]] = [("enter,q", "dismiss", "close")]

    def __init__(self, look: Look, model: Model, name: str, clock: Callable[[], float]) -> None:
        super().__init__(look, f"worker {safe(name)}")
        self._model = model
        self._worker = name
        self._clock = clock
        self._story: list[EventLine] = []
        self._story_at = -1

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        model, now = self._model, self._clock()
        ellipsis = self.sheet.look.ellipsis
        facts: list[Pieces] = [
            (name, (clip(value, width - FACT_CELLS, ellipsis), role))
            for name, (value, role) in facts_of(model, model.workers[self._worker], now)
        ]
        if self._story_at != model.events_total:
            self._story_at = model.events_total
            newest = islice(reversed(model.events), SEARCH_MAX)
            own = (line for line in newest if line.worker == self._worker)
            self._story = list(islice(own, STORY_LINES_MAX))
        room = height - len(facts) - 2
        if room < 1:
            return facts
        wide = min(width, 88)
        story = [story_row(line, wide, self.sheet.look) for line in self._story[:room]]
        # The box keeps its size while lines come in.
        heading: Pieces = (("last events".ljust(wide), "muted"),)
        return [*facts, (), heading, *story]


def facts_of(model: Model, worker: WorkerModel, now: float) -> list[Fact]:
    """Name and value of everything known about a worker."""
    state, mark = worker_state(model, worker, now)
    trouble = worker.lapses + worker.refusals + worker.failures
    facts: list[tuple[str, str, Role]] = [
        (
            "state",
            f"{state} for {duration(max(now - worker.since, 0.0))}",
            _ROLES.get(mark or Mark.BLANK, "text"),
        ),
        ("why", safe(worker.note), "text"),
        ("process", _process(worker), "text"),
        ("uses", _uses(model, worker, now), "text"),
        ("last log", _last_log(model, worker, now), "text"),
        ("profile", _profile(model, worker), "text"),
        ("holds", *_holds(worker)),
        ("delivers", _delivers(worker), "text"),
        ("speed", f"now {speed(worker.fps)}, mean {speed(worker.measured_fps)}", "text"),
        (
            "credited",
            f"{plural(worker.credited_frames, 'frame')} in {plural(worker.credited_parts, 'part')}",
            "text",
        ),
        ("share", _share(model, worker), "text"),
        ("output", _output(model), "text"),
        ("claims", f"{count(worker.claims)}, of them {plural(worker.duplicates, 'duplicate')}", "text"),
        ("trouble", _trouble(worker), "alert" if trouble else "muted"),
        ("wasted", plural(worker.wasted_frames, "frame"), "text"),
        ("heard", f"{duration(max(now - worker.heard_at, 0.0))} ago", "text"),
    ]
    return [((f"{name:<{FACT_CELLS}}", "muted"), (value, role)) for name, value, role in facts if value]


def _process(worker: WorkerModel) -> str:
    pid = f"pid {worker.pid}" if worker.pid else "unknown"
    return pid + (f" on {safe(worker.host)}" if worker.host else "")


def _uses(model: Model, worker: WorkerModel, now: float) -> str:
    """CPU and memory when it was last looked at; nothing is known of a worker on another machine."""
    vitals = model.vitals.get(worker.name)
    if vitals is None or not vitals.memory_bytes or worker.is_gone:
        return f"memory {size(worker.peak_bytes)} at most" if worker.peak_bytes else ""
    peak = max(worker.peak_bytes, vitals.memory_bytes)
    return f"{vitals.cpu_share:.0%} of a core, memory {size(vitals.memory_bytes)} (at most {size(peak)})"


def _last_log(model: Model, worker: WorkerModel, now: float) -> str:
    vitals = model.vitals.get(worker.name)
    if vitals is None or vitals.log_age_seconds is None:
        return ""
    age = vitals.log_age_seconds + max(now - model.vitals_at, 0.0)
    return f"{duration(age)} ago: {safe(vitals.log_line)}"


def _profile(model: Model, worker: WorkerModel) -> str:
    words = [cap_words(worker.fps_cap)]
    if worker.overhead_seconds:
        words.append(f"{worker.overhead_seconds:g} s a claim")
    header = model.header
    fleet = header.fleet if header is not None else ()
    profile = profile_of(worker.name, fleet, model.added.get(worker.name, ""))
    if profile is not None:
        words += resource_words(profile)
    threads = encoder_threads(header.settings if header is not None else "")
    if threads is not None:
        words.append(plural(threads, "encoder thread"))
    return ", ".join(words)


def _share(model: Model, worker: WorkerModel) -> str:
    """What it was credited with of all that was, and what would be fair by speed."""
    total = sum(other.credited_frames for other in model.workers.values())
    if not total:
        return ""
    words = f"{share(worker.credited_frames, total)} of all credit"
    speeds = {name: rate for name, other in model.workers.items() if (rate := other.measured_fps)}
    if worker.name in speeds and len(speeds) > 1:
        words += f"; by its speed, {share(speeds[worker.name], sum(speeds.values()))} is fair"
    return words


def _output(model: Model) -> str:
    """How large the output is so far, and by that how large it will be."""
    if not model.delivered_bytes or not model.frames:
        return ""
    estimated = model.delivered_bytes / model.credited_frames * model.frames
    return f"{size(model.delivered_bytes)} so far, about {size(estimated)} in the end"


def _holds(worker: WorkerModel) -> tuple[str, Role]:
    claim = worker.claim
    if claim is None:
        return "nothing", "muted"
    what = "duplicate " if claim.duplicate else ""
    frames = f"frames [{count(claim.start)}, {count(claim.stop)}), next {count(claim.position)}"
    return f"{what}{claim.token}  {frames}", "duplicated" if claim.duplicate else "claimed"


def _delivers(worker: WorkerModel) -> str:
    on_the_way = (claim.delivering for claim in worker.held)
    return "; ".join(
        f"part {part.part}: {blocks(part.done, part.of)}, {size(part.size_bytes)}"
        for part in on_the_way
        if part is not None
    )


def _trouble(worker: WorkerModel) -> str:
    counts = (
        (worker.lapses, "lapse"),
        (worker.refusals, "refusal"),
        (worker.failures, "failure"),
        (worker.losses, "restart" if not worker.is_gone else "death"),
    )
    return ", ".join(plural(number, noun) for number, noun in counts if number) or "none"


def story_row(line: EventLine, width: int, look: Look) -> Pieces:
    role: Role = "alert" if line.kind in WARNINGS else "text"
    at = f"{time_text(line.at, tenths=True):<9} "
    return ((at, "muted"), (clip(line.text, width - len(at), look.ellipsis), role))
