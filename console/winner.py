"""Who wins a comparison, and why, in words.

Rules of this file:
- the finishing time decides; where the runs are of different work, the ratio to the lower bound does;
- a difference that nobody would notice is none: within half a per cent two runs finish together;
- what explains the difference is what differs most; what doesn't differ isn't mentioned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from console import text
from console.contest import Figures

#: Finishing times that are closer than this share of themselves are the same.
SAME = 0.005
#: Lower bounds that differ by more than this share are of different work.
SAME_WORK = 0.01


class Run(NamedTuple):
    name: str
    figures: Figures
    over: bool


class Verdict(NamedTuple):
    """``winner``: index of the run that is first, also of those that still run; None: nobody is."""

    winner: int | None
    headline: str
    reasons: str


def verdict(runs: Sequence[Run]) -> Verdict:
    """Of one run or more."""
    by_ratio = not _same_work(runs)
    done = [number for number, run in enumerate(runs) if _measure(run, by_ratio) is not None]
    if len(runs) == 1:
        return _alone(runs[0])
    if len(done) < len(runs) and not all(run.over for run in runs):
        return _underway(runs, done, by_ratio)
    if not done:
        return Verdict(None, "None of them finished.", "")
    order = sorted(done, key=lambda number: _measure(runs[number], by_ratio) or 0.0)
    lost = [run.name for run in runs if _measure(run, by_ratio) is None]
    unfinished = f" Not finished: {', '.join(lost)}." if lost else ""
    if len(order) == 1:
        return Verdict(order[0], f"Only {runs[order[0]].name} finished.", unfinished.strip())
    first, second = runs[order[0]], runs[order[1]]
    if _same(first, second, by_ratio):
        together = [runs[n].name for n in order if _same(first, runs[n], by_ratio)]
        names = ", ".join(together[:-1]) + f" and {together[-1]}"
        headline = f"{names} finish together, at {_told(first, by_ratio)}."
        second = runs[order[len(together)]] if len(order) > len(together) else second
    else:
        headline = f"{first.name} is first: {_told(first, by_ratio)}, {_gap(first, second, by_ratio)}."
    if by_ratio:
        headline += " The runs are of different work, so the ratio to the lower bound decides."
    return Verdict(order[0], headline, _reasons(first, second) + _last(runs, order, by_ratio) + unfinished)


def _alone(run: Run) -> Verdict:
    if run.figures.seconds is None:
        return Verdict(None, f"{run.name} did not finish." if run.over else f"{run.name} is at work.", "")
    return Verdict(0, f"{run.name} finishes in {_told(run, False)}.", "")


def _same_work(runs: Sequence[Run]) -> bool:
    if len({run.figures.frames for run in runs}) > 1:
        return False
    bounds = [run.figures.bound_seconds for run in runs if run.figures.bound_seconds]
    return not bounds or max(bounds) <= min(bounds) * (1 + SAME_WORK)


def _measure(run: Run, by_ratio: bool) -> float | None:
    """What decides; less is better."""
    return run.figures.ratio if by_ratio else run.figures.seconds


def _same(one: Run, other: Run, by_ratio: bool) -> bool:
    a, b = _measure(one, by_ratio) or 0.0, _measure(other, by_ratio) or 0.0
    return abs(a - b) <= SAME * max(a, b)


def _told(run: Run, by_ratio: bool) -> str:
    figures = run.figures
    seconds = text.seconds(figures.seconds or 0.0)
    ratio = figures.ratio
    if ratio is None:
        return seconds
    return f"{ratio:.3f} x its lower bound ({seconds})" if by_ratio else f"{seconds}, {ratio:.3f} x the bound"


def _gap(first: Run, second: Run, by_ratio: bool) -> str:
    a, b = _measure(first, by_ratio) or 0.0, _measure(second, by_ratio) or 0.0
    share = text.share(b - a, b)
    ahead = "" if by_ratio else f"{text.seconds(b - a)} or "
    return f"{ahead}{share} ahead of {second.name}"


def _underway(runs: Sequence[Run], done: Sequence[int], by_ratio: bool) -> Verdict:
    if done:
        first = min(done, key=lambda number: _measure(runs[number], by_ratio) or 0.0)
        left = len(runs) - len(done)
        others = f"{left} of {len(runs)} still at work" if left > 1 else "one still at work"
        return Verdict(first, f"{runs[first].name} is first: {_told(runs[first], by_ratio)}; {others}.", "")
    order = sorted(range(len(runs)), key=lambda number: -runs[number].figures.progress)
    ahead, behind = runs[order[0]], runs[order[-1]]
    points = 100 * (ahead.figures.progress - behind.figures.progress)
    if points < 0.05:
        return Verdict(None, "Level so far.", "")
    return Verdict(
        order[0],
        f"{ahead.name} is ahead: {text.share(ahead.figures.progress, 1.0)} of the frames, "
        f"{points:.1f} points before {behind.name}.",
        "",
    )


def _reasons(first: Run, other: Run) -> str:
    """Why ``other`` is behind, what counts most first."""
    a, b = first.figures, other.figures
    found: list[tuple[float, str]] = []
    scale = a.seconds or 1.0
    idle = b.idle_seconds - a.idle_seconds
    if abs(idle) >= 0.01 * scale:
        words = "more" if idle > 0 else "less"
        found.append((abs(idle) / scale, f"{text.seconds(abs(idle))} {words} idle time"))
    wasted = b.wasted_share - a.wasted_share
    if abs(wasted) >= 0.001:
        more, less = text.share(b.wasted_share, 1.0), text.share(a.wasted_share, 1.0)
        found.append((20 * abs(wasted), f"{more} wasted against {less}"))
    for weight, one, two, noun in (
        (0.3, a.lapses, b.lapses, "lapse"),
        (0.02, a.duplicates, b.duplicates, "duplicate"),
        (0.01, a.splits, b.splits, "split"),
        (0.005, a.claims, b.claims, "claim"),
    ):
        if one != two:
            found.append((weight * abs(two - one), f"{text.plural(two, noun)} against {text.count(one)}"))
    if not found:
        return ""
    found.sort(key=lambda reason: -reason[0])
    return f"{other.name}: {', '.join(words for _, words in found[:4])}."


def _last(runs: Sequence[Run], order: Sequence[int], by_ratio: bool) -> str:
    if len(order) < 3:
        return ""
    first, last = runs[order[0]], runs[order[-1]]
    if _same(first, last, by_ratio):
        return ""
    factor = (_measure(last, by_ratio) or 0.0) / (_measure(first, by_ratio) or 1.0)
    return f" {last.name} is last, {factor:.2f} times as long."
