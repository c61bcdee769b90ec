"""Policies: how many frames an idle worker gets; and how policies and tails are spelt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import ExitCode, UsageError
from farm.policies.base import Ask
from farm.policies.fixed import Fixed
from farm.policies.guided import Guided
from farm.policies.registry import TailRule, parse_policy, parse_tail


def ask(open_frames: int, workers: int = 4, total_frames: int = 4800) -> Ask:
    return Ask(worker="w1", workers=workers, total_frames=total_frames, open_frames=open_frames, now=0.0)


def test_fixed_gives_always_the_same() -> None:
    assert {Fixed(48).size(ask(n)).frames for n in (1, 48, 4800)} == {48}


@pytest.mark.parametrize(
    ("open_frames", "policy", "frames"),
    [
        (4800, Guided(12), 600),
        (4801, Guided(12), 601),  # rounded up
        (96, Guided(12), 12),
        (95, Guided(12), 12),
        (8, Guided(12), 12),
        (4800, Guided(12, 300), 300),
        (1000, Guided(12, 300), 125),
        (8, Guided(1), 1),
    ],
)
def test_guided_is_half_a_share_within_bounds(open_frames: int, policy: Guided, frames: int) -> None:
    assert policy.size(ask(open_frames)).frames == frames


@given(st.integers(1, 10**6), st.integers(1, 500), st.integers(1, 100), st.none() | st.integers(100, 10**5))
def test_guided_never_leaves_its_bounds(open_frames: int, workers: int, low: int, high: int | None) -> None:
    frames = Guided(low, high).size(ask(open_frames, workers)).frames
    assert frames >= low and (high is None or frames <= high)
    if low < frames and (high is None or frames < high):
        assert (frames - 1) * 2 * workers < open_frames <= frames * 2 * workers


def test_a_decision_says_why() -> None:
    assert Fixed(48).size(ask(100)).why == "always 48 frames"
    assert Guided(12).size(ask(4800)).why == "4800 open frames / (2 x 4 workers) = 600"
    assert Guided(12).size(ask(8)).why.endswith("= 1, held within 12 and no maximum")


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("fixed", Fixed(120)),
        ("fixed,48", Fixed(48)),
        ("fixed, frames=48", Fixed(48)),
        ("guided", Guided(12, None)),
        ("guided,5", Guided(5)),
        ("guided,5,70", Guided(5, 70)),
        ("guided,max=70,min=5", Guided(5, 70)),
        ("guided,5,max=5", Guided(5, 5)),
    ],
)
def test_policies_are_read_as_users_spell_them(text: str, policy: Fixed | Guided) -> None:
    assert parse_policy(text) == policy
    assert parse_policy(policy.name) == policy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no policy ''; known: fair, fixed, guided"),
        ("magic", "no policy 'magic'; known: fair, fixed, guided"),
        ("Fixed,48", "no policy 'Fixed'"),
        ("fixed,48,2", "'2' is one too many"),
        ("fixed,size=48", "no parameter 'size'; it takes frames"),
        ("fixed,48,frames=48", "frames is given twice"),
        ("fixed,0", "not '0'"),
        ("fixed,-5", "not '-5'"),
        ("fixed,1.5", "not '1.5'"),
        ("fixed,٣", "not '٣'"),
        ("fixed,", "not ''"),
        ("fixed,1000000000", "not '1000000000'"),
        ("guided,20,10", "max 10 is below min 20"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_in_one_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_policy(text)
    assert says in str(raised.value) and str(raised.value).startswith(f"--schedule {text}:")
    assert raised.value.exit_code == ExitCode.USAGE


def test_a_number_of_any_length_is_refused_in_one_sentence() -> None:
    """Python itself refuses to read numbers beyond 4,300 digits, with an error of its own."""
    with pytest.raises(UsageError):
        parse_policy("fixed," + "9" * 5000)


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("none", TailRule("none")),
        ("duplicate-oldest", TailRule("duplicate-oldest", "frontier")),
        ("duplicate-oldest,from=frontier", TailRule("duplicate-oldest", "frontier")),
        ("duplicate-oldest, from=start", TailRule("duplicate-oldest", "start")),
    ],
)
def test_tails_are_read_as_users_spell_them(text: str, tail: TailRule) -> None:
    assert parse_tail(text) == tail
    assert parse_tail(tail.name) == tail


@pytest.mark.parametrize(
    "text", ["", "latest", "none,from=start", "duplicate-oldest,from=end", "duplicate-oldest,from=start,2"]
)
def test_a_tail_that_cannot_be_is_refused_with_the_choices(text: str) -> None:
    with pytest.raises(UsageError, match="choose none, split, late or duplicate-oldest"):
        parse_tail(text)
