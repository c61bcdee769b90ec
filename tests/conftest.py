"""Fixtures every test may use."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.shared import demo_clip

ROOT = Path(__file__).resolve().parents[1]

# Where Python is told to keep no bytecode, as in many a container, each of the hundreds of commands that
# tests start would compile all of ours again, half of what a start costs. xdist's workers start after this.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Hypothesis' own 200 ms an example: a busy machine is no fault of ours. Each run has other examples; with
# --hypothesis-profile=thorough it has many more.
settings.register_profile("uneven", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile("uneven")


def pytest_configure(config: pytest.Config) -> None:
    """In a fresh checkout, all tests are collected before xdist's workers start: these begin at the same
    moment, and each would compile everything for itself."""
    starts_workers = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not starts_workers or (ROOT / "tests" / "relay" / "__pycache__").exists():
        return
    places = sorted(path for path in (ROOT / "tests").iterdir() if path.is_dir() or path.suffix == ".py")
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-n", "0"]
    halves = [
        subprocess.Popen([*collect, *half], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for half in (places[::2], places[1::2])
    ]
    for half in halves:
        half.wait()


def pytest_collection_finish() -> None:
    """Thousands of tests stay as they are now: no collection of garbage needs to look through them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def ordinary_signals() -> None:
    """Started by nohup or in the background of a script, or after a test that ran the command to its end in
    this process, SIGHUP and SIGINT are ignored. What tests start would inherit that; they are about the
    defaults."""
    for number, default in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real media files; tests that need it are skipped where it is not."""
    folder = Path(os.environ.get("UNEVEN_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not folder.is_dir():
        pytest.skip(f"there is no corpus in {folder}; set UNEVEN_CORPUS")
    return folder


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A numbered clip of 480 frames with sound."""
    return demo_clip(tmp_path_factory, 480)
