"""The run's side of attaching: everybody gets the whole log, and nobody can hold up the run."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.attach import wire
from farm.attach.client import AttachedRun, NotListening, look
from farm.attach.server import CLIENTS_MAX
from farm.commands import Drain, KillWorker, Pause
from farm.errors import UsageError
from farm.events import Gauges, Notice
from tests.attach.telling import LIMIT_SECONDS, Reading, Telling, gauges, until
from tests.journal.helpers import credits


@pytest.fixture
def telling(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[Telling]:
    run = Telling(tmp_path, patience_seconds=0.5)
    yield run
    run.close()
    assert capfd.readouterr().err == "" and not caplog.records  # it may be a console's screen


def test_two_clients_get_the_log_so_far_and_what_follows(telling: Telling) -> None:
    telling.tell(credits(0, 250))  # more than the ring holds: the first ones come from the journal
    first = Reading(telling.attach())
    until(lambda: first.has(250), "the log so far")
    assert first.run.caught_up
    second = Reading(telling.attach())
    telling.tell([*credits(250, 5), gauges(7)])
    for reading in (first, second):
        until(lambda: reading.has(255), "what follows")  # noqa: B023 - used at once
        assert reading.numbered() == credits(0, 255)
        until(lambda: reading.has(0) and any(isinstance(r.event, Gauges) for r in reading.records))  # noqa: B023
        reading.run.close()


def test_what_is_not_journalled_comes_by_its_newest_only(telling: Telling) -> None:
    telling.tell([gauges(n) for n in range(50)])
    reading = Reading(telling.attach())
    reading.run.wait_current(LIMIT_SECONDS)
    assert reading.numbered() == []
    assert [r.event.inbox for r in reading.records if isinstance(r.event, Gauges)] == [49]
    reading.run.close()


def test_a_client_that_reads_nothing_is_cut_off_and_costs_the_run_nothing(telling: Telling) -> None:
    telling.tell(credits(0, 1))
    lines = [telling.greeted() for _ in range(3)]
    number = 1
    until(lambda: len(telling.server._clients) == 3, "the clients")
    deadline = time.monotonic() + LIMIT_SECONDS
    while telling.server._clients:
        assert time.monotonic() < deadline
        telling.tell(credits(number, 500))
        number += 500
    assert telling.publish_seconds < 0.05  # what the relay's loop has for everything
    for line in lines:
        line.close()
    # Nothing is lost for who comes back and reads.
    reading = Reading(telling.attach())
    until(lambda: reading.has(number), "everything")
    assert [r.seq for r in reading.numbered()] == list(range(number))
    reading.run.close()


def test_a_view_that_was_cut_off_comes_back_says_so_and_misses_nothing(telling: Telling) -> None:
    telling.tell(credits(0, 300))
    reading = Reading(telling.attach())
    until(lambda: reading.has(300), "the log so far")
    for client in list(telling.server._clients):
        assert telling.server._loop is not None
        telling.server._loop.call_soon_threadsafe(client.writer.transport.abort)
    telling.tell(credits(300, 300))
    until(lambda: reading.has(600), "what followed")
    assert [r.seq for r in reading.numbered()] == list(range(600))
    assert any(isinstance(r.event, Notice) and "cut and is back" in r.event.text for r in reading.records)
    reading.run.close()


def test_who_looks_and_does_not_take_is_read_for_no_further(
    telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.attach.client.WAITING_MAX", 100)
    telling.tell(credits(0, 1))
    reading = Reading(telling.attach())
    until(lambda: reading.has(1))
    telling.tell(credits(1, 6_000))
    time.sleep(0.2)
    assert len(reading.run._records) <= 100 + wire.PIECE_RECORDS
    until(lambda: reading.has(6_001), "the rest, once it is taken")
    assert [r.seq for r in reading.numbered()] == list(range(6_001))
    reading.run.close()


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        wire.LENGTH.pack(wire.ORDER_BYTES_MAX + 1),
        wire.LENGTH.pack(5) + b"\xc1\xc1\xc1\xc1\xc1",
        wire.LENGTH.pack(60_000) + b"\x91" * 60_000,  # nested deeper than any parser goes
        wire.frame(wire.Passing(now=1.0)),
        wire.frame(wire.Order(number=1, command=Drain())),
        b"",
    ],
    ids=["http", "huge", "too long", "no msgpack", "nested", "not a client's", "no hello", "nothing"],
)
def test_garbage_ends_that_client_only(telling: Telling, said: bytes) -> None:
    telling.tell(credits(0, 3))
    good = Reading(telling.attach())
    with contextlib.closing(telling.raw()) as bad:
        bad.sendall(said)
        if not said:
            bad.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while bad.recv(4096):
                pass
    with contextlib.closing(telling.greeted()) as bad:
        bad.sendall(said or b"\0")
        bad.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while bad.recv(4096):
                pass
    telling.tell(credits(3, 3))
    until(lambda: good.has(6), "the others")
    assert [type(c) for c in telling.commands] in ([], [Drain])
    good.run.close()


def test_beyond_the_most_clients_one_is_refused_in_a_sentence(telling: Telling) -> None:
    lines = [telling.greeted() for _ in range(CLIENTS_MAX)]
    until(lambda: len(telling.server._clients) == CLIENTS_MAX)
    with pytest.raises(UsageError, match="16 are attached already"):
        AttachedRun(telling.path)
    lines.pop().close()
    until(lambda: len(telling.server._clients) < CLIENTS_MAX)
    assert look(telling.path).run_id == "run-1"
    for line in lines:
        line.close()


def test_another_version_is_refused_in_a_sentence(telling: Telling) -> None:
    with contextlib.closing(telling.raw()) as line:
        line.sendall(wire.frame(wire.Hello(protocol=99, build="uneven 7.0, records 3")))
        answer = wire.from_run(line.recv(4096)[wire.LENGTH.size :])
    assert isinstance(answer, wire.Refused)
    assert "this is uneven 7.0, records 3" in answer.reason and wire.this_build() in answer.reason


# --- orders ----------------------------------------------------------------------------------------------


def test_orders_reach_the_run_and_refusals_come_back_to_who_gave_them(telling: Telling) -> None:
    asking, other = Reading(telling.attach()), Reading(telling.attach())
    assert asking.run.order(Pause(), LIMIT_SECONDS) is None
    telling.refusal = "there is no worker w9"
    assert asking.run.order(KillWorker(worker="w9"), LIMIT_SECONDS) == "there is no worker w9"
    assert telling.commands == [Pause(), KillWorker(worker="w9")]
    until(lambda: asking.numbered() == [] and bool(asking.records), "the notice")
    assert [r.event.text for r in asking.records if isinstance(r.event, Notice)] == [
        "refused: there is no worker w9"
    ]
    other.run.wait_current(LIMIT_SECONDS)
    other.numbered()
    assert not [r for r in other.records if isinstance(r.event, Notice)]
    for reading in (asking, other):
        reading.run.close()


def test_a_view_that_only_looks_gives_no_orders(telling: Telling) -> None:
    run = telling.attach(readonly=True)
    assert run.send(Drain()) == "this view was opened read-only"
    run._readonly = False  # as if by a client that lies
    assert run.order(Drain(), LIMIT_SECONDS) == "this view was opened read-only"
    assert telling.commands == []
    run.close()


# --- the end ---------------------------------------------------------------------------------------------


def test_everybody_hears_how_it_ended_and_has_the_whole_log(telling: Telling) -> None:
    readings = [Reading(telling.attach()) for _ in range(3)]
    telling.tell(credits(0, 300))
    telling.server.ended(5, "48 frames could not be rendered")
    for reading in readings:
        until(lambda: reading.run.ended, "the farewell")  # noqa: B023 - used at once
        assert len(reading.numbered()) == 300
        assert reading.run.ending is not None
        assert (reading.run.ending.why, reading.run.ending.exit_code) == ("ended", 5)
        assert reading.run.ending.message == "48 frames could not be rendered"
        assert reading.run.send(Drain()) == "the run is over"


def test_a_log_that_was_not_complete_at_the_farewell_is_completed_from_what_is_left(
    telling: Telling,
) -> None:
    telling.tell(credits(0, 1000))
    telling.close_journal()
    telling.server.ended(0, "")
    reading = Reading(telling.attach(leftover=lambda first: credits(first, 1000 - first)))
    until(lambda: reading.run.ended, "the farewell")
    assert reading.numbered() == credits(0, 1000)


def test_a_run_that_is_gone_without_a_word_is_said_to_be(telling: Telling) -> None:
    telling.tell(credits(0, 3))
    run = telling.attach()
    telling.server.close()  # without ``ended``: as after SIGKILL
    until(lambda: run.ended, "the end")
    assert run.ending is not None and run.ending.why == "lost"
    with pytest.raises(NotListening):
        AttachedRun(telling.path)


def test_a_client_that_reads_nothing_does_not_hold_up_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Telling(tmp_path)
    stuck = [run.greeted() for _ in range(4)]
    until(lambda: len(run.server._clients) == 4, "the clients")
    for number in range(0, 10_000, 500):
        run.tell(credits(number, 500))
    run.server.ended(0, "")
    run.close()
    assert not run.server._thread.is_alive()
    assert not caplog.records
    for line in stuck:
        line.close()


def test_time_goes_on_between_words_and_stands_still_in_silence(telling: Telling) -> None:
    now = [100.0]
    run = AttachedRun(telling.path, clock=lambda: now[0])
    assert run.now() == pytest.approx(5.0)
    now[0] += 0.4
    assert run.now() == pytest.approx(5.4)
    now[0] += 1000
    assert run.now() <= 5.0 + 10.0
    run.close()


def test_to_look_and_to_close_leaves_no_thread(telling: Telling) -> None:
    before = threading.active_count()
    for _ in range(5):
        telling.attach().close()
        look(telling.path)
    until(lambda: threading.active_count() <= before, "the threads")
