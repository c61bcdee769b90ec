"""Questions before something is lost: what is lost is named."""

from __future__ import annotations

from console.modals.dialog import Choice, Question
from console.model import Model
from console.text import count, plural, safe, size
from console.theme import Look
from console.timeline import WorkerModel


def quit_question(look: Look, model: Model) -> Question:
    """How to leave a run that goes on."""

    def body() -> list[str]:
        left = model.target_frames - model.credited_frames - model.set_aside_frames
        lines = [
            f"The run goes on: {count(left)} of {count(model.target_frames)} frames are not credited yet."
        ]
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


def send_away_question(look: Look, worker: WorkerModel) -> Question:
    """What becomes of what this worker holds if it is sent away."""
    name = safe(worker.name)

    def body() -> list[str]:
        if worker.is_gone:
            return [f"{name} is gone already."]
        claim = worker.claim
        if claim is None:
            return [f"{name} holds no claim and leaves at once. It does not come back."]
        left = plural(claim.stop - claim.position, "frame")
        return [
            f"{name} finishes and delivers the part it is at; the rest of {claim.token}, {left} as far as it "
            "has reported, is open again for others. Nothing rendered is lost. It does not come back."
        ]

    choices = (Choice("w", f"send {name} away", "send away"), Choice("s", "stay", "stay"))
    return Question(look, f"send {name} away?", body, lambda: choices)


def release_question(look: Look, model: Model, chunk: str) -> Question:
    """What is lost when the claims on a chunk are taken away."""

    def body() -> list[str]:
        claims = model.chunks.get(chunk, ())
        if not claims:
            return [f"Nobody holds {chunk} any more: there is nothing to take away."]
        lines = []
        for claim in claims:
            frames = f"frames [{count(claim.start)}, {count(claim.stop)})"
            text = f"{safe(claim.worker)} holds {claim.token}, {frames}: "
            text += f"{plural(claim.undelivered, 'frame')} rendered and not delivered are lost"
            if claim.delivering is not None:
                sent = claim.delivering
                text += f", and {size(sent.size_bytes)} sent of part {sent.part}, if it is not resumed"
            lines.append(text + ".")
        return [*lines, "What is not credited is open again, for other workers first; no try is counted."]

    choices = (Choice("r", f"take {chunk} away", "release"), Choice("s", "stay", "stay"))
    return Question(look, f"release {chunk}?", body, lambda: choices)
