"""How faults are written: what a line means, how it is spelt, and what is said of an impossible one."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import UsageError
from farm.faults import KINDS, AfterParts, AtClaim, AtShare, AtTime, Fault, Kind
from farm.scenario.faults import check_faults, parse_fault, spell

NAMES = st.sampled_from(("w1", "w2", "laptop-1", "four-cores.3"))
SECONDS = st.floats(0.001, 1e6)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "stall w3 at 10 for 30",
            Fault(kind="stall", workers=("w3",), when=AtTime(10.0), seconds=30.0),
        ),
        (
            "kill w1,w5 when w3 has delivered 2 parts of one chunk",
            Fault(kind="kill", workers=("w1", "w5"), when=AfterParts(2, "w3", one_chunk=True)),
        ),
        (
            "corrupt w2 when it has delivered 1 part every time",
            Fault(kind="corrupt", workers=("w2",), when=AfterParts(1), every_time=True),
        ),
        ("bad-id w2 on its first claim", Fault(kind="bad-id", workers=("w2",), when=AtClaim(1))),
        ("cut w2 when w4 makes its 12th claim", Fault(kind="cut", workers=("w2",), when=AtClaim(12, "w4"))),
        (
            "slow all to 0.25 when 50 % is credited",
            Fault(kind="slow", workers=("all",), when=AtShare(0.5), amount=0.25),
        ),
        ("pause-relay at 5s", Fault(kind="pause-relay", when=AtTime(5.0), seconds=3.0)),
        ("step-clock by -3600 at 1", Fault(kind="step-clock", when=AtTime(1.0), amount=-3600.0)),
    ],
)
def test_a_line_means(line: str, fault: Fault) -> None:
    assert parse_fault(line) == fault
    assert parse_fault(spell(fault)) == fault


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    kind: Kind = draw(st.sampled_from(get_args(Kind)))
    facts = KINDS[kind]
    whens = [
        st.builds(AtTime, st.floats(0, 1e6)),
        st.builds(AfterParts, st.integers(1, 999), NAMES, st.booleans()),
        st.builds(AtClaim, st.integers(1, 9999), NAMES),
        st.builds(AtShare, st.integers(1, 100).map(lambda percent: percent / 100)),
    ]
    when = draw(st.one_of(whens))
    seconds = draw(SECONDS) if facts.lasts == "stop" else None
    if facts.lasts in ("time", "report"):
        seconds = draw(st.none() | SECONDS)
    return Fault(
        kind=kind,
        workers=tuple(draw(st.lists(NAMES, min_size=1, unique=True))) if facts.on_worker else (),
        when=when,
        seconds=seconds,
        amount=draw(st.floats(facts.amount.low, facts.amount.high)) if facts.amount else None,
        every_time=isinstance(when, AfterParts | AtClaim) and draw(st.booleans()),
    )


@given(faults())
def test_what_is_spelt_is_read_as_the_same_fault(fault: Fault) -> None:
    assert parse_fault(spell(fault)) == fault


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "say what goes wrong"),
        ("stal w3 at 3", "did you mean 'stall'?"),
        ("stall at 3", "say which worker"),
        ("stall w3", "say when"),
        ("stall w3 at ten", "after 'at' comes a number, not 'ten'"),
        ("stall w3 at 3 at 4", "'at' is given twice"),
        ("stall w3 at 3 when 5 % is credited", "not both"),
        ("stall w3 at -1", "give seconds from 0"),
        ("stall w3 at nan", "comes a number"),
        ("stall w3 at 1 for 0", "give seconds from 0.001"),
        ("stall w3,w3 at 1", "named twice"),
        ("stall all,w3 at 1", "all stands alone"),
        ("stall w/3 at 1", "not the name of a worker"),
        ("stall w3 soon", "'soon' is not expected there"),
        ("slow w1 at 3", "say to what"),
        ("slow w1 to 2 at 3", "from 0.001 to 1, not 2"),
        ("slow w1 by 2 at 3", "slow takes no 'by'; it takes 'to'"),
        ("kill w3 by 3 at 3", "kill takes no 'by'"),
        ("pause-relay w1 at 3", "'w1' is not expected there"),
        ("resume w3 at 3 for 2", "happens at one moment"),
        ("kill w1 when moon is full", "'moon is full' is not understood"),
        ("kill w1 when 0 % is credited", "is not understood"),
        ("kill w1 when it has delivered 0 parts", "a number of parts from 1"),
        ("suspend when it has delivered 2 parts", "say which worker"),
        ("kill w3 at 3 every time", "happens once"),
        ("kill w3 on its first claim every day", "after 'every' comes 'time'"),
    ],
)
def test_an_impossible_line_gets_one_sentence(line: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fault(line)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("--fault ")


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(["stall", "kill", "w3", "at", "3", "for", "to", "by", "when", "on", "its", "%"])
    ).map(" ".join)
)
def test_any_text_is_a_fault_or_one_sentence(text: str) -> None:
    try:
        fault = parse_fault(text)
    except UsageError as error:
        assert "\n" not in str(error) or "\n" in text
    else:
        assert parse_fault(spell(fault)) == fault


def test_a_fault_is_about_a_worker_that_there_is() -> None:
    fleet = ("w1", "w2")
    check_faults([parse_fault("kill all when w2 has delivered 1 part")], fleet, live=True)
    with pytest.raises(UsageError, match=r"there is no worker 'w3'.*; the fleet has w1, w2"):
        check_faults([parse_fault("kill w3 at 1")], fleet, live=True)
    with pytest.raises(UsageError, match="there is no worker 'w9'"):
        check_faults([parse_fault("kill w1 when w9 has delivered 1 part")], fleet, live=True)
    with pytest.raises(UsageError, match="in a live run only"):
        check_faults([parse_fault("fill-disk at 1")], fleet, live=False)
