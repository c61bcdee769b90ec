"""How the steps of a filtergraph are linked: by labels, and within a chain from one to the next.

The rules are FFmpeg's: labelled inputs of a step come before what the step before it gives; an input that
nothing was written for takes the film, an output that nothing was written for gives it. There must be one of
each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from farm.filters.syntax import GraphError, Step


class Pad(NamedTuple):
    """An input or an output of a step."""

    step: int
    number: int


class Wiring(NamedTuple):
    links: tuple[tuple[Pad, Pad], ...]  #: from an output to an input
    source: Pad  #: where the film comes in
    sink: Pad  #: where it comes out


def wire(steps: Sequence[Step], pads: Sequence[tuple[int, int]]) -> Wiring:
    """Link the steps, of which each has so many inputs and outputs. Raises GraphError."""
    book = _Book()
    onward: list[Pad] = []  # what the steps of the chain so far give, and nobody took
    for number, step in enumerate(steps):
        inputs, outputs = pads[number]
        if step.first:
            onward = []
        waiting: list[Pad | str] = [book.open_outputs.pop(label, label) for label in step.takes]
        waiting += onward
        if len(waiting) > inputs:
            raise GraphError(f"--filter: more goes into {step.place} than the {_inputs(inputs)} it has")
        for place in range(inputs):
            book.feed(waiting[place] if place < len(waiting) else None, Pad(number, place), step)
        onward = [Pad(number, place) for place in range(outputs)]
        if len(step.gives) > outputs:
            raise GraphError(f"--filter: {step.place} has {outputs} outputs and {len(step.gives)} labels")
        for label in step.gives:
            book.name(onward.pop(0), label, step)
        if step.last or number + 1 == len(steps):
            book.loose += onward
    return book.closed()


class _Book:
    def __init__(self) -> None:
        self.links: list[tuple[Pad, Pad]] = []
        self.open_outputs: dict[str, Pad] = {}
        self.open_inputs: dict[str, Pad] = {}
        self.free_inputs: list[Pad] = []  # that nothing was written for
        self.loose: list[Pad] = []  # outputs that nothing was written for

    def feed(self, what: Pad | str | None, into: Pad, step: Step) -> None:
        if isinstance(what, Pad):
            self.links.append((what, into))
        elif what is None:
            self.free_inputs.append(into)
        elif what in self.open_inputs:
            raise GraphError(f"--filter: [{what}] goes into two places, the second {step.place}; use split")
        else:
            self.open_inputs[what] = into

    def name(self, output: Pad, label: str, step: Step) -> None:
        if label in self.open_inputs:
            self.links.append((output, self.open_inputs.pop(label)))
        elif label in self.open_outputs:
            raise GraphError(f"--filter: two outputs are called [{label}], the second of {step.place}")
        else:
            self.open_outputs[label] = output

    def closed(self) -> Wiring:
        sources = [*self.open_inputs.values(), *self.free_inputs]
        sinks = [*self.open_outputs.values(), *self.loose]
        if len(sources) == 1 and len(sinks) == 1:
            return Wiring(tuple(self.links), sources[0], sinks[0])
        unused = ", ".join(f"[{label}]" for label in (*self.open_inputs, *self.open_outputs))
        raise GraphError(
            f"--filter: one input and one output must be left for the film, and there are {len(sources)} and "
            f"{len(sinks)}" + (f"; nothing fits {unused}" if unused else "")
        )


def _inputs(count: int) -> str:
    return "one input" if count == 1 else f"{count} inputs"
