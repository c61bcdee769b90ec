"""One function in a child process: results, refusals, bugs, crashes, cancellation."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from pathlib import Path

import pytest

from farm.engines import child, forkserver
from farm.engines.child import ChildCrashed, ChildFailed, run_in_child, run_in_child_blocking
from farm.engines.forkserver import prepare, server_pid
from farm.errors import ExitCode, InputError, VerificationError

from .harness import alive, run, until

FAKES = "tests.engines.fakes:"


def call(function: str, *args: object, log: Path, **kwargs: object) -> object:
    return run_in_child_blocking(FAKES + function, *args, log=log, **kwargs)  # type: ignore[arg-type]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


def test_the_result_comes_back_and_prints_do_not(log, capfd):
    assert call("double", 21, log=log) == 42
    assert "a stray print" in log.read_text()
    assert capfd.readouterr() == ("", "")


def test_a_child_without_a_log_works_as_well(tmp_path, capfd):
    assert call("double", 21, log=tmp_path / "no" / "such" / "folder.log") == 42
    assert capfd.readouterr() == ("", "")


def test_in_an_event_loop(log):
    async def body() -> None:
        results = await asyncio.gather(*(run_in_child(FAKES + "double", n, log=log) for n in range(4)))
        assert results == [0, 2, 4, 6]

    run(body())


def test_progress_arrives_in_order_and_before_the_result(log):
    async def body() -> None:
        heard: list[float] = []
        result = await run_in_child(FAKES + "count_up", 50_000, log=log, on_progress=heard.append)
        assert result == "counted"
        assert heard == sorted(heard) and heard[0] == 0.0 and heard[-1] == 1.0
        assert 500 <= len(heard) <= 1002

    run(body())


def test_who_waits_hears_again_what_was_last_while_there_is_no_news(log, tmp_path, monkeypatch):
    monkeypatch.setattr(child, "REPEAT_SECONDS", 0.01)
    heard: list[float] = []

    def hear(fraction: float) -> None:
        heard.append(fraction)
        if heard.count(0.5) == 3:
            (tmp_path / "go on").touch()

    assert call("rest_halfway", str(tmp_path / "go on"), log=log, on_progress=hear) == "rested"
    assert heard.count(0.5) >= 3


def test_an_error_of_the_user_is_raised_as_what_it_is(log, capfd):
    with pytest.raises(InputError, match=r"a\.mp4 is not a video") as caught:
        call("refuse", "a.mp4", log=log)
    assert type(caught.value) is InputError and caught.value.exit_code is ExitCode.INPUT
    assert capfd.readouterr() == ("", "")


def test_an_error_unknown_here_is_raised_as_its_nearest_known_class_with_its_attributes(log):
    with pytest.raises(InputError, match=r"a\.mp4: 7 frames are odd") as caught:
        call("refuse_oddly", "a.mp4", log=log)
    assert caught.value.frames == 7  # type: ignore[attr-defined]


def test_an_error_that_keeps_its_facts_apart_arrives_as_its_sentence(log):
    with pytest.raises(VerificationError) as caught:
        call("refuse_damage", log=log)
    assert str(caught.value) == "part 3 can't be used: cut off"
    assert caught.value.part == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "summary"),
    [
        ("fail", "ZeroDivisionError: one over none"),
        ("unpicklable", "TypeError: can't be sent"),
        ("no_such_function", "AttributeError"),
    ],
)
def test_any_other_exception_is_a_failure_with_its_traceback(log, function, summary):
    with pytest.raises(ChildFailed) as caught:
        call(function, log=log)
    assert summary in str(caught.value)
    assert "Traceback" in caught.value.traceback


def test_a_crash_names_the_signal_and_the_last_lines_of_this_run_only(log):
    log.write_text("from an earlier run\n")
    with pytest.raises(ChildCrashed) as caught:
        call("crash", log=log)
    assert caught.value.signal_name == "SIGSEGV"
    assert caught.value.log_lines == ("about to crash",)
    assert "killed by SIGSEGV" in str(caught.value)


def test_an_exit_without_a_result_is_a_crash_without_a_signal(log):
    with pytest.raises(ChildCrashed, match="exited with code 3") as caught:
        call("leave", 3, log=log)
    assert caught.value.signal_name is None and caught.value.exit_code == 3


def test_cancelling_kills_the_child(log, tmp_path):
    async def body() -> None:
        note = tmp_path / "pid"
        task = asyncio.create_task(run_in_child(FAKES + "forever", str(note), log=log))
        await until(lambda: note.exists() and note.read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(int(note.read_text()))

    run(body())


def test_cancelling_at_once_leaves_no_child(log, tmp_path):
    async def body() -> None:
        note = tmp_path / "pid"
        task = asyncio.create_task(run_in_child(FAKES + "forever", str(note), log=log))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not note.exists() or not alive(int(note.read_text()))

    run(body())


def test_cancelling_twice_leaves_no_complaint_behind(log, tmp_path):
    complaints: list[object] = []

    async def body() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        note = tmp_path / "pid"
        task = asyncio.create_task(run_in_child(FAKES + "forever", str(note), log=log))
        await until(lambda: note.exists() and note.read_text())
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not alive(int(note.read_text())))

    run(body())
    gc.collect()
    assert not complaints


def test_a_fork_server_that_does_not_answer_keeps_nobody_waiting(log, monkeypatch):
    prepare(preload=())
    server = server_pid()
    assert server is not None
    os.kill(server, signal.SIGSTOP)
    monkeypatch.setattr(forkserver, "START_SECONDS", 0.2)
    with pytest.raises(ChildCrashed):
        call("double", 21, log=log)
    monkeypatch.undo()
    assert call("double", 21, log=log) == 42
    assert server_pid() != server


def test_cancelling_ends_the_wait_for_a_fork_server_that_does_not_answer(log, monkeypatch):
    prepare(preload=())
    server = server_pid()
    assert server is not None
    monkeypatch.setattr(child, "CANCEL_SECONDS", 0.2)

    async def body() -> None:
        os.kill(server, signal.SIGSTOP)
        task = asyncio.create_task(run_in_child(FAKES + "double", 21, log=log))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await run_in_child(FAKES + "double", 21, log=log) == 42

    run(body())


def test_a_child_whose_end_is_not_reported_has_ended(log, tmp_path, monkeypatch):
    monkeypatch.setattr(forkserver, "REPORT_SECONDS", 0.1)

    async def body() -> None:
        note = tmp_path / "pid"
        task = asyncio.create_task(run_in_child(FAKES + "forever", str(note), log=log))
        await until(lambda: note.exists() and note.read_text())
        server = server_pid()
        assert server is not None
        os.kill(server, signal.SIGSTOP)
        os.kill(int(note.read_text()), signal.SIGKILL)
        with pytest.raises(ChildCrashed, match="lost sight of it"):
            await task

    run(body())


def test_a_result_that_would_load_media_code_here_is_refused(log):
    import pickle

    with pytest.raises(pickle.UnpicklingError, match=r"may not hold a farm\.media"):
        run_in_child_blocking("tests.engines.fakes:media_result", log=log)
