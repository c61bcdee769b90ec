"""Whether a filtergraph can be had, and how: by parts, with neighbours, or in one pass over the film."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from farm.filters.offer import Offer, count
from farm.filters.offers import MISSING, OFFERS, REFUSED
from farm.filters.optionnames import OPTION_NAMES
from farm.filters.syntax import GraphError, Step, parse_graph
from farm.filters.wiring import Wiring, wire
from farm.paths import check_name


@dataclass(frozen=True, slots=True)
class Judgement:
    """A graph that can be had."""

    steps: tuple[Step, ...]  #: with the full names of all options, and files by their absolute paths
    wiring: Wiring
    before: int  #: frames before a part that it must see for its frames to be those of one pass
    after: int
    whole: tuple[str, ...]  #: why it is for the whole film only, a clause for each filter; empty if it isn't
    retimes: bool  #: other frames may come out than go in, by number or by time
    files: tuple[Path, ...]  #: that are read


def judge(text: str, folder: Path, known: Collection[str]) -> Judgement:
    """``folder``: what the names of files start from; ``known``: all filters of this build.

    Raises GraphError for what can't be had, saying what, where and what would do.
    """
    steps: list[Step] = []
    pads: list[tuple[int, int]] = []
    whole: list[str] = []
    files: list[Path] = []
    before = after = 0
    retimes = False
    for written in parse_graph(text):
        offer = _offer(written, known)
        step = _named(written, offer, folder)
        options = dict(step.options)
        try:
            pads.append((count(offer.inputs, options), count(offer.outputs, options)))
            # Along a path they add up; of paths side by side the longest counts, which the sum isn't below.
            before += count(offer.before, options)
            after += count(offer.after, options)
        except ValueError:
            raise GraphError(f"--filter: {step.place}: a whole number is missing in its options") from None
        if never := next(filter(None, (rule(options) for rule in offer.never)), ""):
            raise GraphError(f"--filter: {step.place} is not offered: {never}")
        reason = offer.why_whole(options)
        whole += [f"{step.name}: {reason}"] if reason else []
        retimes = retimes or offer.changes_frames(options)
        files += [Path(options[name]) for name in offer.files if name in options]
        steps.append(step)
    wiring = wire(steps, pads)
    return Judgement(tuple(steps), wiring, before, after, tuple(whole), retimes, tuple(files))


def _offer(step: Step, known: Collection[str]) -> Offer:
    if step.name in OFFERS:
        return OFFERS[step.name]
    where = f"--filter: {step.place}"
    if step.name in REFUSED:
        raise GraphError(f"{where} is not offered: {REFUSED[step.name]}")
    if step.name in MISSING:
        raise GraphError(f"{where} is not in this build of FFmpeg; {MISSING[step.name]}")
    if step.name in known:
        raise GraphError(f"{where} is not offered: nobody has tested that its parts are those of one pass")
    close = difflib.get_close_matches(step.name, OFFERS, n=1)
    hint = f"; did you mean {close[0]}?" if close else "; docs/filters.md lists those that are offered"
    raise GraphError(f"{where}: there is no such filter{hint}")


def _named(step: Step, offer: Offer, folder: Path) -> Step:
    """The step with the full name of every option, one value for each. Raises GraphError."""
    places = [names.split("/") for names in OPTION_NAMES[step.name].split()]
    full = {alias: names[0] for names in places for alias in names}
    options: dict[str, str] = {}
    for place, (name, value) in enumerate(step.options):
        if not name:
            if place >= len(places) or any(earlier for earlier, _ in step.options[:place]):
                raise GraphError(f"--filter: {step.place}: write {value!r} with its name, name=value")
            name = places[place][0]
        if name != "enable" and name not in full:
            close = difflib.get_close_matches(name, full, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise GraphError(f"--filter: {step.place}: {step.name} has no option {name}{hint}")
        name = full.get(name, name)
        if name in offer.forbidden:
            raise GraphError(f"--filter: {step.place}: {name}= is not offered: {offer.forbidden[name]}")
        if name in offer.files:
            file = (folder / value).absolute()
            check_name(file, GraphError)
            value = str(file)
        options[name] = value
    for name, why in offer.required.items():
        if name not in options:
            raise GraphError(f"--filter: {step.place}: {why}")
    return replace(step, options=tuple(options.items()))
