"""FFmpeg's spelling of filters: what is quoted, labelled and wired, and what is said of mistakes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import UsageError
from farm.filters.syntax import GraphError, parse_graph, parse_options, spell_options
from farm.filters.wiring import Pad, wire


def test_chains_labels_and_options() -> None:
    first, second, third = parse_graph("[in] split [a][b]; [a]scale=640:-2:flags=lanczos[c];[b][c] hstack")
    assert (first.name, first.takes, first.gives) == ("split", ("in",), ("a", "b"))
    assert second.options == (("", "640"), ("", "-2"), ("flags", "lanczos"))
    assert (third.name, third.takes, third.at) == ("hstack", ("b", "c"), 60)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("crop=w='min(iw\\,ih)':h=2", (("w", "min(iw,ih)"), ("h", "2"))),
        ("crop=w=min(iw\\,ih)", (("w", "min(iw,ih)"),)),
        ("crop=w='min(iw,ih)'", (("w", "min(iw,ih)"),)),
        ("drawbox=x = 1 :color='black '", (("x", "1"), ("color", "black"))),
        ("lut3d=C\\\\:/l.cube", (("", "C:/l.cube"),)),
        ("movie='it'\\\\\\''s.png'", (("", "it's.png"),)),
        ("drawbox=enable='between(t,1,2)'", (("enable", "between(t,1,2)"),)),
        ("hflip", ()),
    ],
)
def test_quotes_and_escapes_are_read_twice_as_ffmpeg_does(
    text: str, options: tuple[tuple[str, str], ...]
) -> None:
    (step,) = parse_graph(text)
    assert step.options == options


@given(st.lists(st.tuples(st.sampled_from("wxyz"), st.text(min_size=1, max_size=8)), max_size=4))
def test_options_read_as_they_were_spelt(options: list[tuple[str, str]]) -> None:
    assert parse_options(spell_options(options)) == tuple(options)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("scale=640,", "character 11"),
        ("hflip,,vflip", "character 7"),
        ("crop=w='min(iw", "character 6"),
        ("[in hflip", "character 1"),
        ("hflip[a]vflip", "character 9"),
        ("sws_flags=lanczos;hflip", "sws_flags"),
        ("  ", "empty"),
    ],
)
def test_mistakes_are_said_with_their_place(text: str, where: str) -> None:
    with pytest.raises(GraphError, match=where):
        parse_graph(text)


def test_labelled_inputs_come_before_what_the_step_before_gives() -> None:
    steps = parse_graph("split[a],hflip[b];[a][b]overlay")
    wiring = wire(steps, [(1, 2), (1, 1), (2, 1)])
    assert wiring.source == Pad(0, 0) and wiring.sink == Pad(2, 0)
    assert set(wiring.links) == {
        (Pad(0, 1), Pad(1, 0)),
        (Pad(0, 0), Pad(2, 0)),
        (Pad(1, 0), Pad(2, 1)),
    }


@pytest.mark.parametrize(
    ("text", "pads", "words"),
    [
        ("hstack", [(2, 1)], "there are 2 and 1"),
        ("split", [(1, 2)], "there are 1 and 2"),
        ("[in]hflip[a];[b]vflip", [(1, 1), (1, 1)], r"\[a\]"),
        ("split,hflip", [(1, 2), (1, 1)], "more goes into hflip"),
        ("hflip[a][b]", [(1, 1)], "1 outputs and 2 labels"),
        ("split[a][a]", [(1, 2)], r"called \[a\]"),
    ],
)
def test_graphs_that_leave_something_open_are_refused(
    text: str, pads: list[tuple[int, int]], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        wire(parse_graph(text), pads)
