"""Options kept in a file are understood as if they were typed, and what is typed counts more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.exceptions import TyperException

from console import options as opt
from console import sourceoptions as src
from farm.errors import UsageError


def parsed(tmp_path: Path, toml: str, *typed: str) -> dict[str, object]:
    """The parameters of a command with some of the real options, and which of them count as typed."""
    app = typer.Typer(add_completion=False)
    seen: dict[str, object] = {}

    @app.command()
    def render(
        context: typer.Context,
        crf: src.Crf = None,
        preset: src.Preset = None,
        part: src.Part = None,
        fleet: opt.Fleet = None,
        option: src.EncoderOption = None,
        decode: opt.Decode = False,
        claim_ahead: opt.ClaimAhead = None,
        threads: src.Threads = 1,
        settings_file: opt.SettingsFile = None,
        source: Annotated[str, typer.Argument()] = "",
    ) -> None:
        seen.update(context.params, typed=opt.typed(context))

    (tmp_path / "s.toml").write_text(toml)
    app(["--settings", str(tmp_path / "s.toml"), *typed], standalone_mode=False)
    return seen


def test_values_are_those_of_the_command_line(tmp_path: Path) -> None:
    toml = """
        crf = 20
        preset = "slow"
        part = 96
        fleet = [30, "max", 2.5]
        option = { tune = "film", bf = 3 }
        decode = true
        no-claim-ahead = true
        threads = 2
    """
    found = parsed(tmp_path, toml)
    expected = {"crf": 20.0, "preset": "slow", "part": "96", "fleet": "30,max,2.5", "threads": 2}
    expected |= {"decode": True, "claim_ahead": False}
    assert {name: found[name] for name in expected} == expected
    assert found["option"] == ["tune=film", "bf=3"]
    assert found["typed"] == {"settings_file"}


def test_what_is_typed_counts_more_wherever_it_stands(tmp_path: Path) -> None:
    found = parsed(tmp_path, "crf = 20\npreset = 'slow'", "--crf", "30")
    assert (found["crf"], found["preset"]) == (30.0, "slow")


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("crff = 1", "crff is no option; did you mean crf"),
        ("source = 'a.mkv'", "source is no option"),
        ("settings = 'other.toml'", "settings is no option"),
        ("decode = 'yes'", "decode is a switch: give true or false"),
        ("crf = true", "crf is no switch"),
        ("preset = {a = 1}", "preset: give text or a number"),
        ("crf =", "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path: Path, toml: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        parsed(tmp_path, toml)
    assert "s.toml" in str(error.value)


def test_a_value_out_of_range_is_refused_as_if_typed(tmp_path: Path) -> None:
    with pytest.raises(TyperException, match="greater than or equal to 1"):
        parsed(tmp_path, "threads = 0")
