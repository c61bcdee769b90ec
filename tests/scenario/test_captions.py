"""Captions in scenario files: what they mean, and what is said of impossible ones."""

from __future__ import annotations

import pytest

from farm.captions import CAPTIONS_MAX, TEXT_MAX, AtEnd, AtMoment, Caption
from farm.errors import UsageError
from farm.faults import AfterParts, AtClaim, AtShare, AtTime
from farm.scenario.scenario import parse_scenario

FLEET = "[[worker]]\ncount = 2\nfps = 30\n"


def captions(*tables: str) -> tuple[Caption, ...]:
    return parse_scenario(FLEET + "".join(f"[[caption]]\n{table}\n" for table in tables), "s.toml").captions


@pytest.mark.parametrize(
    ("when", "meant"),
    [
        ("w2 lapses", AtMoment("lapse", "w2")),
        ("a worker lapses", AtMoment("lapse")),
        ("w1 is refused", AtMoment("refusal", "w1")),
        ("w1 duplicates", AtMoment("duplicate", "w1")),
        ("w1 is  killed", AtMoment("kill", "w1")),
        ("w1 wakes", AtMoment("wake", "w1")),
        ("a chunk is split", AtMoment("split")),
        ("the work is done", AtEnd("work")),
        ("the output is verified", AtEnd("verified")),
        ("the run ends", AtMoment("finish")),
        ("w1 has delivered 2 parts of one chunk", AfterParts(2, "w1", True)),
        ("w2 makes its third claim", AtClaim(3, "w2")),
        ("50 % is credited", AtShare(0.5)),
    ],
)
def test_the_words_of_a_trigger(when: str, meant: object) -> None:
    (caption,) = captions(f'when = "{when}"\ntext = "Look."')
    assert caption.when == meant


def test_a_caption_has_its_time_its_text_and_how_long_it_is_shown() -> None:
    assert captions('at = 12\ntext = "  Look\\n here. "\nfor = 3') == (
        Caption(text="Look here.", when=AtTime(12.0), seconds=3.0),
    )


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('text = "a"', r"s.toml: caption\[0\]: say when"),
        ('text = "a"\nat = 1\nwhen = "w1 lapses"', "either at or when"),
        ('text = " "\nat = 1', r"caption\[0\].text: say something"),
        (f'text = "{"x" * (TEXT_MAX + 1)}"\nat = 1', f"more than {TEXT_MAX}"),
        ('text = "a"\nat = -1', r"caption\[0\].at: give seconds"),
        ('text = "a"\nat = 1\nfor = 0', r"caption\[0\].for: give seconds"),
        ('text = "a"\nwhen = "w9 lapses"', "no worker 'w9'"),
        ('text = "a"\nwhen = "w9 has delivered 2 parts"', "no worker 'w9'"),
        ('text = "a"\nwhen = "on its first claim"', "say which worker"),
        ('text = "a"\nwhen = "pigs fly"', "not understood; .*'a chunk is split'.*'lapses'"),
        ('txt = "a"\nat = 1', "unknown field"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence_with_its_place(table: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        captions(table)


def test_there_may_not_be_too_many() -> None:
    with pytest.raises(UsageError, match="more than"):
        captions(*['text = "a"\nat = 1'] * (CAPTIONS_MAX + 1))
