"""Any name will do for input, output and run folder, or it is refused at the start (RG29)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import Command, run
from tests.media.clips import make_clip
from tests.media.test_sequence import make_images

NAMES = {
    "spaces": "a  film with spaces ",
    "quotes": 'it\'s "so" `odd`',
    "signs": "#1 %d %04d 100% $HOME ; & | * ? [a] \\ ~",
    "newline": "one\ntwo\ttabs",
    "emoji": "🎬 фильм ﷽ 👩‍👩‍👧 é",
    "dash": "-y --crf",
    "colon": "file:http:x",
    "240 bytes": "x" * 236,
}
ALL_IN_ONE = '-y it\'s "#%d"\n🎬 '
QUICK = ("--preset", "ultrafast", "-w", "1")


def check_name(name: str, tmp_path: Path) -> None:
    source, output = f"{name}.mkv", f"{name}.mp4"
    make_clip(tmp_path / "plain.mkv", frames=10).rename(tmp_path / source)
    temp = tmp_path / name
    temp.mkdir()
    for more in ((), ("--temp", name, "-y")):
        done = run("render", "-o", output, *more, *QUICK, "-i", source, cwd=tmp_path)
        assert done.process.returncode == 0, done.stderr
        assert done.summary is not None and done.summary["credited_frames"] == 10
    good = run("verify", "--against", source, "--", output, cwd=tmp_path, json=False)
    assert good.process.returncode == 0, good.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source, output, name, "state"])
    assert not list(temp.iterdir())


def check_commands(name: str, folder: Path) -> None:
    """A settings file, several inputs into a folder, a run that is looked at, stopped and taken up again by
    such a name, and what is left of it played again."""
    within = name if len(os.fsencode(name)) < 100 else "in"  # a run folder's path has 480 bytes at most
    sources = [f"{name}{number}.mkv" for number in (1, 2)]
    for source in sources:
        make_clip(folder / source, frames=20)
    (folder / f"{name}.toml").write_text('preset = "ultrafast"\npart = "5"\nworkers = 1\n')
    (folder / within).mkdir()
    settings = ("--settings", f"{name}.toml")
    done = run("render", *settings, "-o", within, "--", *sources, cwd=folder, json=False)
    assert done.process.returncode == 0, done.stderr
    assert "2 of 2 done" in done.stderr
    assert sorted(path.name for path in (folder / within).iterdir()) == sources

    output = f"{name}.mp4"
    # A part in two seconds, and forty for all: on a busy machine three commands take more than a few.
    slow = ("--preset", "ultrafast", "--part", "1", "--fleet", "0.5", "--overhead", "0", "--keep")
    live = Command("render", *slow, "--temp", within, "-o", output, "-i", sources[0], cwd=folder)
    try:
        live.wait_for("part_credited")
        looked = run("status", "--", output, cwd=folder, json=False)
        assert looked.process.returncode == 0 and "20" in looked.stdout, looked.stderr
        attached = Command("attach", folder / output, cwd=folder)
        attached.wait_for("part_credited")
        stopped = run("stop", "--", output, cwd=folder, json=False)
        assert stopped.process.returncode in (0, 130), stopped.stderr
        assert live.finish() == 130, live.stderr
        attached.finish()
    finally:
        live.close()
    (left,) = (path for path in (folder / within).iterdir() if path.is_dir())
    resumed = run("resume", "--ui", "json", "--fleet", "max", "--", left, cwd=folder, json=False)
    assert resumed.process.returncode == 0, resumed.stderr
    assert (folder / output).is_file()
    for what in (output, left):
        played = run("replay", "--ui", "json", "--", what, cwd=folder, json=False)
        assert played.process.returncode == 0, played.stderr
        told = run("report", "--", what, cwd=folder, json=False)
        assert told.process.returncode == 0 and "w1" in told.stdout, told.stderr
    cleaned = run("clean", "--yes", "--", output, cwd=folder, json=False)
    assert cleaned.process.returncode == 0, cleaned.stderr
    assert not left.exists() and (folder / output).is_file()


def test_an_odd_name(tmp_path: Path) -> None:
    check_name(ALL_IN_ONE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_odd_names(name: str, tmp_path: Path) -> None:
    check_name(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [ALL_IN_ONE, NAMES["signs"], NAMES["240 bytes"]], ids=("all", "signs", "240")
)
def test_every_command_takes_an_odd_name(name: str, tmp_path: Path) -> None:
    check_commands(name, tmp_path)


@pytest.mark.slow
def test_odd_names_of_sequences(tmp_path: Path) -> None:
    name = 'it\'s "50%"\n🎬 '
    folder = make_images(tmp_path / name, range(1, 6))
    for path in sorted(folder.iterdir()):
        path.rename(folder / f"{name}{path.name}")
    done = run("render", folder, "-o", f"{name}.mkv", "-e", "ffv1", "-w", "1", cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
    source = folder / f"{name}f_####.png"
    done = run("render", source, "-o", f"{name}-%d.png", "-w", "1", cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
    assert [path.name for path in sorted(tmp_path.glob("*.png"))] == [f"{name}-{n}.png" for n in range(1, 6)]


@pytest.mark.parametrize("which", ["input", "output", "temp", "folder of images"])
def test_a_name_that_is_not_utf8_is_refused_at_the_start(which: str, tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    source, output, more = tmp_path / "in.mkv", tmp_path / "out.mp4", ()
    if which == "folder of images":
        source = make_images(tmp_path / odd, range(2))
    else:
        make_clip(source, frames=3)
    if which == "input":
        source = source.rename(tmp_path / f"{odd}.mkv")
    elif which == "output":
        output = tmp_path / f"{odd}.mp4"
    elif which == "temp":
        (tmp_path / odd).mkdir()
        more = ("--temp", odd)
    before = sorted(tmp_path.iterdir())
    refused = subprocess.run(
        [sys.executable, "-m", "console", "render", source, "-o", output, *more],
        capture_output=True,
        cwd=tmp_path,
        env=os.environ | {"UNEVEN_STATE_DIR": str(tmp_path / "state")},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    said = refused.stderr.decode()
    assert refused.returncode in (3, 4), said
    assert len(said.splitlines()) == 1 and r"caf\xe9" in said and "not valid UTF-8" in said
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_without_a_console_leaves_standard_input_alone(tmp_path: Path) -> None:
    make_clip(tmp_path / "in.mkv", frames=10)
    command = [sys.executable, "-m", "console", "render", "in.mkv", "-o", "out.mp4", "--ui", "plain", *QUICK]
    script = 'read first; "$@" 2>/dev/null; read second; echo "$first $second"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        input="one\ntwo\nthree\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"UNEVEN_STATE_DIR": str(tmp_path / "state")},
        check=False,
    )
    assert (tmp_path / "out.mp4").exists(), done.stderr
    assert done.stdout == "one two\n"


def test_a_path_too_long_for_the_journal_is_refused_at_the_start(tmp_path: Path) -> None:
    make_clip(tmp_path / "in.mkv", frames=3)
    deep = tmp_path / ("x" * 240) / ("y" * 200)
    deep.mkdir(parents=True)
    refused = run("render", "in.mkv", "-o", deep / f"{'z' * 100}.mp4", cwd=tmp_path)
    assert refused.process.returncode == 4
    assert "bytes long; use at most" in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert not list(deep.iterdir())
    done = run("render", "in.mkv", "-o", deep / f"{'z' * 100}.mp4", "--temp", tmp_path, *QUICK, cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
