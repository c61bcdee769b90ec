"""Questions before something is lost: what is lost is named."""

from __future__ import annotations

from console.modals.dialog import Choice, Question
from console.model import Model
from console.text import count, plural, safe
from console.theme import Look
from console.timeline import WorkerModel


def quit_question(look: Look, model: Model) -> Question:
    """How to leave a run that goes on."""
    left = model.frames - model.credited_frames - model.set_aside_frames
    body = [f"The run goes on: {count(left)} of {count(model.frames)} frames are not credited yet."]
    lost = model.rendered_frames
    if model.drain_reason is not None:
        body.append("It is draining already: parts in progress are being finished.")
    body.append("What is credited is kept; the run can be resumed.")
    choices = [
        Choice("d", "drain: finish and keep the parts in progress, then leave", "drain"),
        Choice("x", f"stop now: loses {plural(lost, 'frame')} rendered and not delivered", "stop"),
        Choice("s", "stay", "stay"),
    ]
    return Question(look, "quit?", body, choices)


def kill_question(look: Look, worker: WorkerModel) -> Question:
    """What killing this worker loses."""
    name = safe(worker.name)
    claim = worker.claim
    if claim is None:
        body = [f"{name} holds no claim: nothing is lost. It does not come back."]
    else:
        # Frames of whole parts that were delivered are credited; the model counts what is not.
        rendered = max(claim.position - claim.start, 0)
        body = [
            f"{name} holds {claim.token}, frames [{count(claim.start)}, {count(claim.stop)}).",
            f"Of the {plural(rendered, 'frame')} it rendered there, those not delivered yet are lost and "
            "rendered again by another worker. What is credited stays. It does not come back.",
        ]
    choices = [Choice("x", f"kill {name}", "kill"), Choice("s", "stay", "stay")]
    return Question(look, f"kill {name}?", body, choices)
