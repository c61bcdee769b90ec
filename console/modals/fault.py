"""The menu of faults: what can be made to go wrong with the selected worker, or with the run, at a key."""

from __future__ import annotations

from typing import Final

from console.modals.dialog import Choice, Question
from console.text import safe
from console.theme import Look
from console.timeline import WorkerModel
from farm.faults import Fault
from farm.scenario.faults import parse_fault

#: Key, words, and the fault as ``--fault`` has it; ``{w}`` is the worker.
FAULT_MENU: Final = (
    ("f", "freeze it for 20 s", "stall {w} at 0 for 20"),
    ("k", "kill it; after 10 s another process takes its place", "kill {w} at 0 for 10"),
    ("s", "slow it down to a quarter for 30 s", "slow {w} to 0.25 at 0 for 30"),
    ("n", "alive, but renders nothing for 30 s", "stand-still {w} at 0 for 30"),
    ("h", "its heartbeats get lost for 30 s", "lose-heartbeats {w} at 0 for 30"),
    ("c", "cut it off for 20 s", "cut {w} at 0 for 20"),
    ("l", "its reports come 5 s late for 30 s", "report-late {w} by 5 at 0 for 30"),
    ("t", "it reports the next part twice", "report-twice {w} at 0"),
    ("b", "it reports the next part under a bad id", "bad-id {w} at 0"),
    ("w", "its next part has a frame too few", "wrong-count {w} at 0"),
    ("d", "its next part is damaged", "corrupt {w} at 0"),
    ("r", "the store refuses its deliveries for 5 s", "rate-limit {w} at 0 for 5"),
    ("m", "its memory is full", "fill-memory {w} at 0"),
    ("p", "the relay's loop stands still for 3 s", "pause-relay at 0 for 3"),
    ("z", "the whole machine sleeps for 5 s", "suspend at 0 for 5"),
    ("o", "the run's clock is set an hour forth", "step-clock by 3600 at 0"),
)


def fault_question(look: Look, worker: WorkerModel) -> Question:
    """Which one; the answer is for ``chosen_fault``."""
    choices = [Choice(key, words, key) for key, words, _ in FAULT_MENU]
    return Question(look, f"what goes wrong with {safe(worker.name)}?", lambda: [], lambda: choices)


def chosen_fault(answer: str, worker: str) -> Fault:
    line = next(line for key, _, line in FAULT_MENU if key == answer)
    return parse_fault(line.format(w=worker))
