"""``uneven crashtest``: it finds what is wrong, passes what is right, and misses no file operation.

The crashes themselves are the test of journal, store, run folder and resume: see docs/reliability.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farm.crashtest.points import VARIABLE, Order, name_of, points_of, read_log

#: Says at exit what this process did to files under a folder, by Python's own word.
AUDITED = """
import atexit, json, os, sys
root, report = sys.argv[1:3]
del sys.argv[1:3]
seen = []
KINDS = {"rename": "rename", "remove": "unlink", "mkdir": "mkdir", "rmdir": "rmdir", "link": "link"}
def full(path, folder=-1):
    if isinstance(path, int):
        return os.readlink(f"/proc/self/fd/{path}")
    base = os.readlink(f"/proc/self/fd/{folder}") if folder not in (-1, None) else os.getcwd()
    return os.path.join(base, os.fsdecode(path))
def hear(event, args):
    try:
        if event == "open" and isinstance(args[0], (str, bytes)):
            if args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and full(args[0]).startswith(root):
                seen.append(("open", full(args[0])))
        elif event.startswith("os.") and event[3:] in KINDS:
            two = event in ("os.rename", "os.link")
            path = full(args[1], args[3]) if two else full(args[0], args[-1])
            if path.startswith(root):
                seen.append((KINDS[event[3:]], path))
    except OSError:
        pass
sys.addaudithook(hear)
atexit.register(lambda: os._exit(0) if not seen else open(report, "w").write(json.dumps(seen)))
from console.__main__ import main
main()
"""


def test_no_file_operation_of_the_console_escapes_the_probe(clip: Path, tmp_path: Path) -> None:
    root, log, report = tmp_path / "root", tmp_path / "log", tmp_path / "report"
    (root / "tmp").mkdir(parents=True)
    order = Order(root=str(root), log=str(log), fired=str(tmp_path / "fired"))
    environment = os.environ | {
        VARIABLE: msgspec.json.encode(order).decode(),
        "UNEVEN_STATE_DIR": str(root / "state"),
        "TMPDIR": str(root / "tmp"),
    }
    output = root / "out.mp4"
    arguments = ["render", str(clip), "-o", str(output), "--preset", "ultrafast", "--ui", "none"]
    subprocess.run(
        [sys.executable, "-c", AUDITED, str(root), str(report), *arguments], env=environment, check=True
    )
    assert output.exists()
    steps = read_log(log)
    known = {(step.operation, step.path) for step in steps} | {(step.operation, step.to) for step in steps}
    known |= {("open", path) for operation, path in known if operation in ("create", "empty")}
    escaped = [(kind, path) for kind, path in json.loads(report.read_text()) if (kind, path) not in known]
    assert not escaped
    roles = {point.role for point in points_of(steps)}
    assert {"console", "w1", "stitch_job"} <= roles


def crashes(tmp_path: Path, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, a line for each crash, and what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "console", "crashtest", "--json", "--temp", str(tmp_path), *arguments],
        cwd=tmp_path,
        env=os.environ | {"UNEVEN_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert not list(tmp_path.glob("uneven-crashtest-*")), "the crash test left its folder"
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def assert_all_passed(result: tuple[int, list[dict[str, Any]], str]) -> None:
    code, lines, said = result
    assert code == 0, said
    assert lines and all(line["outcome"] in ("passed", "not reached") for line in lines)
    assert any(line["outcome"] == "passed" for line in lines)


def test_a_sample_of_crashes(tmp_path: Path) -> None:
    assert_all_passed(crashes(tmp_path, "--points", "1", "--random", "1", "--seed", "11"))


@pytest.mark.slow
def test_an_output_that_has_two_names_when_the_run_is_killed(tmp_path: Path) -> None:
    """It was linked to its name, and not yet unlinked from the other: joining once more must not write into
    it, and it is no stranger's file."""
    assert_all_passed(crashes(tmp_path, "--only", r"unlink out.mp4.partial \(run\)"))


def test_a_sync_that_is_left_out_is_found(tmp_path: Path) -> None:
    missing = ("--without-sync", r"/spool/.*\.part$|/store/.*\.part$")
    code, lines, said = crashes(tmp_path, "--only", r"stitch_job: fsync out.mp4.partial \(data\)", *missing)
    assert code == 7
    failed = [line for line in lines if line["outcome"] == "failed"]
    assert failed, said
    assert any("was acknowledged, and is taken back" in sentence for sentence in failed[0]["broken"])
    assert any("bytes of" in lost for lost in failed[0]["lost"])
    assert "FAILED stitch_job: fsync out.mp4.partial" in said


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["/store$", "/run$"], ids=["the store's names", "the run folder's name"])
def test_a_folder_that_is_not_synced_is_found(tmp_path: Path, name: str) -> None:
    code, lines, _ = crashes(tmp_path, "--only", "sql committed", "--points", "12", "--without-sync", name)
    assert code == 7
    assert {line["outcome"] for line in lines} >= {"failed"}


@pytest.mark.slow
def test_more_crashes(tmp_path: Path) -> None:
    assert_all_passed(crashes(tmp_path, "--points", "12", "--random", "6", "--seed", "5"))


@pytest.mark.slow
def test_crashes_while_an_output_is_replaced(tmp_path: Path) -> None:
    where = ("--only", r"out\.mp4 \(", "--over-existing", "--points", "4")
    assert_all_passed(crashes(tmp_path, *where))


def test_what_can_not_be_tested_is_said(tmp_path: Path) -> None:
    code, lines, said = crashes(tmp_path, "missing.mp4")
    assert (code, lines) == (3, [])
    assert "there is no file missing.mp4" in said


def test_the_watched_folder_itself_has_the_same_name_in_every_run() -> None:
    """It had the folder's own name, which no second run has: four points were never reached."""
    assert (
        name_of(
            "/tmp/uneven-crashtest-3efty098/recording/run", "/tmp/uneven-crashtest-3efty098/recording/run/"
        )
        == "."
    )
    assert name_of("/tmp/work/run/out.mp4", "/tmp/work/run/") == "out.mp4"
