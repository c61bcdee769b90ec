"""How policies and tails are spelt, and what is said about those that can't be."""

from __future__ import annotations

import pytest

from farm.errors import ExitCode, UsageError
from farm.policies.adaptive_factoring import Af
from farm.policies.assignment import Adaptive, Decaying, Granular, Static
from farm.policies.base import Policy
from farm.policies.factoring import AwfB, AwfC, Fac2, Wf
from farm.policies.fair import Fair
from farm.policies.fixed import Fixed
from farm.policies.guided import Gss, Guided
from farm.policies.registry import POLICIES, TailRule, from_anywhere, parse_policy, parse_tail
from farm.policies.trapezoid import Tss


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("fixed", Fixed(120)),
        ("fixed,48", Fixed(48)),
        ("fixed, frames=48", Fixed(48)),
        (" fixed , frames = 48 ", Fixed(48)),
        ("guided", Guided(12, None)),
        ("guided,5", Guided(5)),
        ("guided,5,70", Guided(5, 70)),
        ("guided,max=70,min=5", Guided(5, 70)),
        ("guided,5,max=5", Guided(5, 5)),
        ("static", Static()),
        ("decaying", Decaying()),
        ("granular", Granular(4)),
        ("granular,8", Granular(8)),
        ("adaptive", Adaptive(1, 10, 2000, 0.2)),
        ("adaptive,split=4,min=10,max=2000,tail=0.2", Adaptive(4, 10, 2000, 0.2)),
        ("adaptive,4,10,2000,.35", Adaptive(4, 10, 2000, 0.35)),
        ("adaptive,tail=0", Adaptive(tail=0.0)),
        ("adaptive,tail=1", Adaptive(tail=1.0)),
        ("adaptive,tail=1.23456789e-1", Adaptive(tail=0.123456789)),
        ("gss", Gss(1)),
        ("gss,12", Gss(12)),
        ("tss", Tss(None, 1)),
        ("tss,600,12", Tss(600, 12)),
        ("tss,last=3", Tss(last=3)),
        ("fac2", Fac2()),
        ("wf,min=12", Wf(12)),
        ("awf-b", AwfB(12, 0.05)),
        ("awf-c,6,0.1", AwfC(6, 0.1)),
        ("af,first=0", Af(first=0.0)),
        ("fair", Fair()),
        ("fair,0.05", Fair(first=0.05)),
        ("fair,cap=30,first=1", Fair(first=1.0, cap=30.0)),
    ],
)
def test_policies_are_read_as_users_spell_them(text: str, policy: Policy) -> None:
    assert parse_policy(text) == policy
    assert parse_policy(policy.name) == policy


def test_every_policy_of_the_documentation_is_there() -> None:
    simple = {"fair", "static", "fixed", "decaying", "granular", "adaptive", "guided"}
    assert set(POLICIES) == simple | {"gss", "tss", "fac2", "wf", "awf-b", "awf-c", "af"}
    for name in POLICIES:
        assert parse_policy(name).name.split(",")[0] == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no policy ''; known: fair, static, fixed"),
        ("magic", "no policy 'magic'; known: fair, static, fixed"),
        ("Fixed,48", "no policy 'Fixed' (did you mean 'fixed'?)"),
        ("giuded", "no policy 'giuded' (did you mean 'guided'?)"),
        ("awf_b", "did you mean 'awf-b'?"),
        ("fixed,48,2", "fixed takes frames; '2' is one too many"),
        ("static,2", "static takes no parameters; '2' is one too many"),
        ("fixed,size=48", "fixed has no parameter 'size'; it takes frames"),
        ("adaptive,spilt=4", "no parameter 'spilt' (did you mean 'split'?); it takes split, min, max, tail"),
        ("fixed,48,frames=48", "frames is given twice"),
        ("fixed,0", "frames must be a whole number of frames, at least 1, not '0'"),
        ("fixed,-5", "not '-5'"),
        ("fixed,1.5", "not '1.5'"),
        ("fixed,1e3", "not '1e3'"),
        ("fixed,٣", "not '٣'"),
        ("fixed,", "not ''"),
        ("fixed,1_000", "not '1_000'"),
        ("fixed,1000000000", "not '1000000000'"),
        ("guided,20,10", "max 10 is below min 20"),
        ("adaptive,min=20,max=10", "max 10 is below min 20"),
        ("tss,first=2,last=5", "first 2 is below last 5"),
        ("adaptive,tail=1.5", "tail must be a number from 0 to 1, not '1.5'"),
        ("adaptive,tail=-0.1", "not '-0.1'"),
        ("adaptive,tail=nan", "not 'nan'"),
        ("adaptive,tail=inf", "not 'inf'"),
        ("adaptive,tail=1e999", "not '1e999'"),
        ("adaptive,split=0", "split must be a whole number, at least 1, not '0'"),
        ("awf-b,first=2", "first must be a number from 0 to 1"),
        ("fair,first=nan", "not 'nan'"),
        ("fair,cap=0", "not '0'"),
        ("fair,cap=-1", "not '-1'"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_in_one_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_policy(text)
    assert says in str(raised.value) and str(raised.value).startswith(f"--schedule {text}:")
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == ExitCode.USAGE


def test_a_number_of_any_length_is_refused_in_one_short_sentence() -> None:
    """Python itself refuses to read numbers beyond 4,300 digits, with an error of its own."""
    for text in (
        "fixed," + "9" * 5000,
        "adaptive,tail=" + "9" * 5000,
        "x" * 5000,
        "fixed," + "y" * 5000 + "=1",
    ):
        with pytest.raises(UsageError) as raised:
            parse_policy(text)
        assert len(str(raised.value)) < 600


def test_only_a_users_file_is_made_absolute(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert from_anywhere("mine.py:Mine,3,b=2") == f"{tmp_path}/mine.py:Mine,3,b=2"
    assert from_anywhere("/there/mine.py:Mine") == "/there/mine.py:Mine"
    assert from_anywhere("guided,12") == "guided,12"


@pytest.mark.parametrize(
    ("text", "tail"),
    [
        ("none", TailRule("none")),
        ("late", TailRule("late")),
        ("split", TailRule("split")),
        ("duplicate-oldest", TailRule("duplicate-oldest", "frontier")),
        ("duplicate-oldest,from=frontier", TailRule("duplicate-oldest", "frontier")),
        ("duplicate-oldest, from=start", TailRule("duplicate-oldest", "start")),
    ],
)
def test_tails_are_read_as_users_spell_them(text: str, tail: TailRule) -> None:
    assert parse_tail(text) == tail
    assert parse_tail(tail.name) == tail


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "none,from=start",
        "split,2",
        "duplicate-oldest,from=end",
        "duplicate-oldest,from=start,2",
    ],
)
def test_a_tail_that_cannot_be_is_refused_with_the_choices(text: str) -> None:
    with pytest.raises(UsageError, match="choose none, split, late or duplicate-oldest"):
        parse_tail(text)
