"""What every engine does, whatever it makes workers of. Runs over each engine in ENGINES."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from farm.engines.base import Engine
from farm.engines.local import LocalEngine

from .harness import Recorder, alive, run, spec, until

ENGINES = {"local": partial(LocalEngine, "tests.engines.fakes:scripted", preload=())}

Body = Callable[[Engine, Recorder], Coroutine[Any, Any, None]]


@pytest.fixture(params=ENGINES)
def make_engine(request: pytest.FixtureRequest) -> Callable[[], Engine]:
    return ENGINES[request.param]


@asynccontextmanager
async def started(
    make_engine: Callable[[], Engine], folder: Path, *names: str
) -> AsyncIterator[tuple[Engine, Recorder]]:
    engine, recorder = make_engine(), Recorder()
    await engine.start([spec(folder, name) for name in names or ("w1",)], recorder)
    try:
        await until(lambda: all(recorder.messages.values()), "every worker's hello")
        for messages in recorder.messages.values():
            messages.clear()
        yield engine, recorder
    finally:
        await engine.stop(5.0)
    assert set(recorder.ends) == set(recorder.pids)
    assert not [name for name, pid in recorder.pids.items() if alive(pid)]


def test_workers_come_up_in_the_order_asked_for(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path, "w1", "w2", "w3") as (_, recorder):
            assert [name for what, name in recorder.story if what == "up"] == ["w1", "w2", "w3"]
            assert all(alive(pid) for pid in recorder.pids.values())

    run(body())


def test_messages_arrive_whole_and_in_order(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            sent = [b"", b"one", b"x" * 100_000, b"two", bytes(8 << 20), b"three"]
            for data in sent:
                engine.send("w1", data)
            await until(lambda: len(recorder.messages["w1"]) == len(sent))
            assert recorder.messages["w1"] == sent

    run(body())


def test_a_killed_worker_is_gone_within_a_second_and_others_are_not(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path, "w1", "w2") as (engine, recorder):
            began = time.monotonic()
            os.kill(recorder.pids["w1"], signal.SIGKILL)
            await until(lambda: "w1" in recorder.ends)
            assert time.monotonic() - began < 1.0
            assert recorder.ends["w1"] == ("killed by SIGKILL", True)
            engine.send("w1", b"into the void")
            engine.stall("w1", True)
            await engine.kill("w1")
            engine.send("w2", b"you?")
            await until(lambda: recorder.messages["w2"] == [b"you?"])

    run(body())


def test_kill_returns_when_the_process_has_ended_even_if_it_was_frozen(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            engine.stall("w1", True)
            await engine.kill("w1")
            assert not alive(recorder.pids["w1"])
            await until(lambda: "w1" in recorder.ends)

    run(body())


def test_an_exit_code_is_reported(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            engine.send("w1", b"exit:3")
            await until(lambda: "w1" in recorder.ends)
            assert recorder.ends["w1"] == ("exited with code 3", True)

    run(body())


def test_last_words_come_before_gone(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            engine.send("w1", b"last words:5000")
            await until(lambda: "w1" in recorder.ends)
            assert recorder.messages["w1"] == [b"%d" % n for n in range(5000)]

    run(body())


def test_a_stalled_worker_is_silent_but_not_gone_and_answers_when_thawed(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path, "w1", "w2") as (engine, recorder):
            engine.stall("w1", True)
            engine.send("w1", b"frozen?")
            engine.send("w2", b"warm?")
            await until(lambda: recorder.messages["w2"])
            await asyncio.sleep(0.1)  # silence can only be waited for
            assert recorder.messages["w1"] == [] and "w1" not in recorder.ends
            engine.stall("w1", False)
            await until(lambda: recorder.messages["w1"] == [b"frozen?"])

    run(body())


def test_sending_to_a_frozen_worker_never_blocks(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            engine.stall("w1", True)
            began = time.monotonic()
            for _ in range(40_000):
                engine.send("w1", bytes(200))
            assert time.monotonic() - began < 5.0
            engine.stall("w1", False)
            await until(lambda: len(recorder.messages["w1"]) == 40_000)

    run(body())


def test_while_reading_is_held_nothing_is_reported_and_nothing_is_lost(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path, "w1", "w2") as (engine, recorder):
            engine.hold_reading(True)
            engine.send("w1", b"burst:2000")
            engine.send("w2", b"last words:2000")
            await until(lambda: not alive(recorder.pids["w2"]))
            await asyncio.sleep(0.1)  # silence can only be waited for
            assert recorder.messages == {"w1": [], "w2": []} and not recorder.ends
            engine.hold_reading(False)
            await until(lambda: len(recorder.messages["w1"]) == 2000 and "w2" in recorder.ends)
            assert recorder.messages["w1"] == recorder.messages["w2"] == [b"%d" % n for n in range(2000)]

    run(body())


class Full(Recorder):
    """Holds reading once a worker's hello and ten more messages have arrived."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine

    def message(self, worker: str, data: bytes) -> None:
        super().message(worker, data)
        if len(self.messages[worker]) == 11:
            self.engine.hold_reading(True)


def test_holding_takes_effect_within_a_batch_even_of_last_words(make_engine, tmp_path):
    async def body() -> None:
        engine = make_engine()
        recorder = Full(engine)
        await engine.start([spec(tmp_path)], recorder)
        engine.send("w1", b"last words:2000")
        await until(lambda: len(recorder.messages["w1"]) >= 11)
        await until(lambda: not alive(recorder.pids["w1"]))
        await asyncio.sleep(0.1)  # silence can only be waited for
        engine.send("w1", b"into the void")
        assert len(recorder.messages["w1"]) == 11 and not recorder.ends
        engine.hold_reading(False)
        await until(lambda: recorder.ends)
        assert len(recorder.messages["w1"]) == 2001
        await engine.stop(5.0)

    run(body())


def test_a_broken_connection_does_not_overtake_messages_that_are_held(make_engine, tmp_path, monkeypatch):
    monkeypatch.setattr("farm.engines.local.EXIT_SECONDS", 0.1)

    async def body() -> None:
        engine = make_engine()
        recorder = Full(engine)
        await engine.start([spec(tmp_path)], recorder)
        engine.send("w1", b"hang up:2000")
        await until(lambda: len(recorder.messages["w1"]) >= 11)

        def broken() -> bool:
            engine.send("w1", b"into the void")
            return not alive(recorder.pids["w1"])

        await until(broken)
        await asyncio.sleep(0.1)  # silence can only be waited for
        assert len(recorder.messages["w1"]) == 11 and not recorder.ends
        engine.hold_reading(False)
        await until(lambda: recorder.ends)
        messages = recorder.messages["w1"][1:]
        assert len(messages) > 10 and messages == [b"%d" % n for n in range(len(messages))]
        await engine.stop(5.0)

    run(body())


def test_stop_ends_frozen_deaf_and_busy_workers_and_reports_them(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path, "w1", "w2", "w3") as (engine, recorder):
            engine.stall("w1", True)
            engine.send("w2", b"deaf")
            await engine.stop(0.5)
            assert not [name for name, pid in recorder.pids.items() if alive(pid)]
            assert recorder.ends == dict.fromkeys(["w1", "w2", "w3"], ("stopped", True))
            await engine.stop(0.5)

    run(body())


def test_stop_works_while_reading_is_held(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            engine.hold_reading(True)
            engine.send("w1", b"burst:100000")
            await engine.stop(1.0)
            assert recorder.ends == {"w1": ("stopped", True)}

    run(body())


def test_what_is_not_a_message_ends_the_worker(make_engine, tmp_path):
    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            engine.send("w1", b"garbage")
            await until(lambda: "w1" in recorder.ends)
            reason, sure = recorder.ends["w1"]
            assert sure and "4294967295 bytes" in reason
            assert not alive(recorder.pids["w1"])

    run(body())


def test_a_worker_that_hangs_up_and_stays_is_ended(make_engine, tmp_path, monkeypatch):
    monkeypatch.setattr("farm.engines.local.EXIT_SECONDS", 0.1)

    async def body() -> None:
        async with started(make_engine, tmp_path) as (engine, recorder):
            engine.send("w1", b"hang up:0")
            await until(lambda: "w1" in recorder.ends)
            assert not alive(recorder.pids["w1"])

    run(body())
