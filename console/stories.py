"""The parts that were set aside, told at the end of a run: who tried, when, what happened, and what the
attempt's log says last."""

from __future__ import annotations

from collections.abc import Sequence

from console import text
from farm.stories import PartStory

PARTS_TOLD = 5


def story_lines(stories: Sequence[PartStory]) -> list[str]:
    """Lines for people; of many parts the first few, and how many there are."""
    lines = []
    for story in stories[:PARTS_TOLD]:
        lines.append(f"part {story.part} was set aside: {text.safe(story.reason)}")
        for one in story.tries:
            what = text.safe(f"{one.kind}: {one.message}")
            lines.append(f"  {text.moment(one.at)}  {text.safe(one.worker)}  {text.safe(one.token)}  {what}")
            lines += [f"      | {text.safe(line)}" for line in one.log]
    if len(stories) > PARTS_TOLD:
        lines.append(f"({PARTS_TOLD} of {len(stories)} parts shown)")
    return lines
