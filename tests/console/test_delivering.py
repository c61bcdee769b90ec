"""Parts on their way in blocks: rendered, delivered and credited are told apart."""

from __future__ import annotations

from console.modals.worker import facts_of
from console.model import Model
from console.plain import status_line
from console.summary import render_text, summarize
from console.widgets import view
from farm import events as ev
from tests.console.story import Story


def folded(story: Story) -> Model:
    model = Model()
    for record in story.records:
        model.fold(record)
    return model


def stored(story: Story, token: str, part: int, done: int, of: int = 127) -> None:
    event = ev.BlockStored(part=part, token=token, worker="w1", done=done, of=of, size_bytes=done * 5_000_000)
    story.add(event)


def begun() -> tuple[Story, str]:
    story = Story(frames=200, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 4)
    story.at(1).beat(token, 90)
    story.at(2)
    stored(story, token, 0, 12)
    return story, token


def modal(model: Model) -> str:
    return "\n".join("".join(text for text, _ in row) for row in facts_of(model, model.workers["w1"], 3.0))


def counts(model: Model) -> dict[str, str]:
    return {count.name: count.value for count in view.counts_row(model, 3.0).counts}


def test_a_part_on_its_way_is_shown_as_blocks_done_of_blocks() -> None:
    story, _ = begun()
    model = folded(story)
    assert "part 0: 12 of 127 blocks, 60.0 MB" in modal(model)
    assert counts(model)["credited"] == "0/200"
    assert counts(model)["rendered"] == "90" and counts(model)["delivering"] == "12/127 blocks"
    assert "0 of 200 frames" in status_line(model, 3.0)
    assert "90 frames rendered ahead, delivering 1 part: 12 of 127 blocks" in status_line(model, 3.0)


def test_it_is_shown_until_the_part_is_credited() -> None:
    story, token = begun()
    stored(story, token, 0, 127)
    story.credit(token, 0)
    model = folded(story)
    assert "delivers" not in modal(model) and "delivering" not in counts(model)
    assert "delivering" not in status_line(model, 3.0)
    assert model.stored_blocks == 127 and not model.blocks_of


def test_blocks_that_are_taken_over_count_once() -> None:
    """A delivery that goes on under another claim is told from where it goes on."""
    story, token = begun()
    story.end(token, "worker left")
    again = story.grant("w1", 0, 1)
    stored(story, again, 0, 12)
    stored(story, again, 0, 13)
    story.credit(again, 0)
    model = folded(story)
    assert model.stored_blocks == 13
    assert "delivered       13 blocks over links" in render_text(summarize(model))


def test_runs_without_links_say_nothing_of_it() -> None:
    story = Story(frames=200, part=50)
    story.join("w1")
    story.credit(story.grant("w1", 0, 4), 0)
    model = folded(story)
    shown = modal(model) + status_line(model, 3.0) + render_text(summarize(model)) + str(counts(model))
    assert "deliver" not in shown and "block" not in shown


def test_events_that_make_no_sense_are_left_alone() -> None:
    story, _ = begun()
    stored(story, "c77#1@e1", 3, 1)
    stored(story, "c77#1@e1", 99, 1)
    model = folded(story)
    assert [delivery.part for delivery in model.deliveries] == [0]
