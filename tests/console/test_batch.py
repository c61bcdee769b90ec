"""Several inputs: each has its output and its line, and the worst of them decides how the command ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.batch import once_each, outputs_for, render_each
from farm.errors import ExitCode, InputError, UsageError


def names(sources: list[Path], folder: Path, extension: str | None = None) -> list[str]:
    pairs = outputs_for(sources, folder, extension)
    assert pairs is not None
    return [target.name for _, target in pairs]


def test_outputs_are_called_like_their_inputs(tmp_path: Path) -> None:
    (tmp_path / "shots").mkdir()
    sources = [Path("a.mkv"), Path("b.AVI"), Path("c.webm"), tmp_path / "shots", Path("in/take.####.exr")]
    assert names(sources, tmp_path) == ["a.mkv", "b.mp4", "c.mp4", "shots.mp4", "take.mp4"]
    assert names(sources[:2], tmp_path, "mkv") == ["a.mkv", "b.mkv"]


def test_an_input_that_is_named_twice_is_rendered_once(tmp_path: Path) -> None:
    named = [Path("a.mkv"), Path("b.mkv"), Path("in/a.mkv"), Path.cwd() / "a.mkv", Path("in/../b.mkv")]
    assert once_each(named) == named[:3]
    assert names(once_each([*named[:2], *named[3:]]), tmp_path) == ["a.mkv", "b.mkv"]


def test_one_of_each_is_no_batch(tmp_path: Path) -> None:
    assert outputs_for([Path("a.mkv")], tmp_path / "b.mkv", None) is None
    assert outputs_for([], None, None) is None


def test_what_can_not_be_is_refused_before_the_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 inputs need a folder"):
        outputs_for([Path("a.mkv"), Path("b.mkv")], tmp_path / "gone", None)
    with pytest.raises(UsageError, match=r"a\.avi and a\.mp4 would both become .*a\.mp4"):
        outputs_for([Path("a.avi"), Path("a.mp4")], tmp_path, None)
    with pytest.raises(UsageError, match="--extension txt"):
        outputs_for([Path("a.avi")], tmp_path, "txt")


def test_it_goes_on_after_a_failure_and_ends_with_the_worst(capsys: pytest.CaptureFixture[str]) -> None:
    ends: dict[str, int | Exception] = {
        "a": 0,
        "b": InputError("b is no video"),
        "c": 5,
        "d": ValueError("our own"),
        "e": 0,
    }
    begun = []

    def render(source: Path, target: Path) -> int:
        begun.append(source.name)
        end = ends[source.name]
        if isinstance(end, Exception):
            raise end
        return end

    pairs = [(Path(name), Path(f"{name}.mp4")) for name in ends]
    assert render_each(pairs, render, lambda: None) == ExitCode.BUG
    assert begun == list(ends)
    table = capsys.readouterr().err.split("2 of 5 done\n")[1]
    assert [line.split()[0] for line in table.splitlines()] == list(ends)
    assert "b is no video" in table and "incomplete" in table
    assert render_each(pairs[:3], render, lambda: None) == ExitCode.INCOMPLETE
    assert render_each(pairs[:2], render, lambda: None) == ExitCode.INPUT
    assert render_each(pairs[:1], render, lambda: None) == ExitCode.DONE


def test_an_interrupt_ends_it_and_the_rest_is_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [(Path(name), Path(name)) for name in "abc"]
    code = render_each(pairs, lambda source, target: 130 if source.name == "b" else 0, lambda: None)
    assert code == ExitCode.INTERRUPTED
    assert "c " in (said := capsys.readouterr().err) and "not begun" in said


def test_what_is_there_is_kept_on_request(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"done before")
    begun = []

    def render(source: Path, target: Path) -> int:
        begun.append(source.name)
        return 0

    pairs = [(Path(name), tmp_path / f"{name}.mp4") for name in "ab"]
    assert render_each(pairs, render, lambda: None, keep_existing=True) == ExitCode.DONE
    assert begun == ["b"]


def test_a_sample_of_each_is_not_said_to_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [(Path(name), Path(f"no-{name}")) for name in "abc"]
    render_each(pairs, lambda source, target: 3 * (source.name == "b"), lambda: None, done="sampled")
    table = capsys.readouterr().err.split("2 of 3 sampled\n")[1].splitlines()
    assert [line.split()[-1] for line in table] == ["sampled", "3)", "sampled"]
