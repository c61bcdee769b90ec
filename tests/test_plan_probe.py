"""The probe's child, when the process that starts children is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm import events as ev
from farm import plan
from farm.engines.child import ChildCrashed
from farm.engines.forkserver import EXIT_UNKNOWN
from farm.errors import InputError
from farm.settings import JobSettings


class Crashes(Exception):
    """The next child was asked for."""


def probe(monkeypatch: pytest.MonkeyPatch, *codes: int) -> int:
    """How often a child was asked for, until one was not cut off with one of ``codes``."""
    left, asked = list(codes), 0

    def run(target: str, *args: object, **options: object) -> object:
        nonlocal asked
        asked += 1
        if not left:
            raise Crashes
        raise ChildCrashed(target, left.pop(0), ())

    monkeypatch.setattr(plan, "run_in_child_blocking", run)
    request = plan.JobRequest(
        source=Path("in.mp4"),
        output=Path("out.mp4"),
        settings=JobSettings(),
        options=ev.RelayOptions(),
        fleet=(),
    )
    with pytest.raises((Crashes, InputError)) as ended:
        plan._probe(request, Path("log"), lambda fraction: None)
    return asked if ended.type is Crashes else -asked


def test_a_lost_fork_server_says_nothing_of_the_input_and_is_asked_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert probe(monkeypatch, EXIT_UNKNOWN) == 2
    assert probe(monkeypatch, EXIT_UNKNOWN, EXIT_UNKNOWN) == -2


def test_an_input_that_crashes_the_media_library_is_not_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(monkeypatch, -11) == -1
