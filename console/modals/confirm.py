"""Questions before something is lost: what is lost is named."""

from __future__ import annotations

from console.modals.dialog import Choice, Question
from console.model import Model
from console.text import count, plural, safe
from console.theme import Look
from console.timeline import WorkerModel


def quit_question(look: Look, model: Model) -> Question:
    """How to leave a run that goes on."""

    def body() -> list[str]:
        left = model.frames - model.credited_frames - model.set_aside_frames
        lines = [f"The run goes on: {count(left)} of {count(model.frames)} frames are not credited yet."]
        if model.drain_reason is not None:
            lines.append("It is draining already: parts in progress are being finished.")
        if model.world == "simulated":
            return [*lines, "What came of it so far is printed; the same seed gives the same run again."]
        return [*lines, "What is credited is kept; the run can be resumed."]

    def choices() -> list[Choice]:
        lost = plural(model.rendered_frames, "frame")
        return [
            Choice("d", "drain: finish and keep the parts in progress, then leave", "drain"),
            Choice("x", f"stop now: loses {lost} rendered and not delivered", "stop"),
            Choice("s", "stay", "stay"),
        ]

    return Question(look, "quit?", body, choices)


def kill_question(look: Look, worker: WorkerModel) -> Question:
    """What killing this worker loses."""
    name = safe(worker.name)

    def body() -> list[str]:
        if worker.is_gone:
            return [f"{name} is gone already."]
        claim = worker.claim
        if claim is None:
            return [f"{name} holds no claim: nothing is lost. It does not come back."]
        return [
            f"{name} holds {claim.token}, frames [{count(claim.start)}, {count(claim.stop)}).",
            f"{plural(claim.undelivered, 'frame')} of it are rendered and not delivered, as far as it has "
            "reported: they are lost, and rendered again by another worker. What is credited stays. "
            "It does not come back.",
        ]

    choices = (Choice("x", f"kill {name}", "kill"), Choice("s", "stay", "stay"))
    return Question(look, f"kill {name}?", body, lambda: choices)
