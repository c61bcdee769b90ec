"""What can be read back from a journal of every chunk and part."""

from __future__ import annotations

from pathlib import Path

from farm import events as ev
from farm.folder import RunFolder
from farm.journal import Journal
from farm.journal.history import read_history
from farm.salvage import take_journal
from tests.journal.helpers import opened


def record(events: list[tuple[float, ev.AnyEvent]]) -> list[ev.Record]:
    return [ev.Record(seq, at, event) for seq, (at, event) in enumerate(events)]


def granted(token: str, worker: str, start: int, stop: int, *, duplicate: bool = False) -> ev.ClaimGranted:
    return ev.ClaimGranted(
        token=token, worker=worker, start=start, stop=stop, lease_seconds=20, duplicate=duplicate
    )


def credited(part: int, token: str, worker: str, sha256: str) -> ev.PartCredited:
    return ev.PartCredited(
        part=part, frames=48, token=token, worker=worker, file=f"{token}.part", size_bytes=7, sha256=sha256
    )


def heartbeat(worker: str, token: str, rendered: int) -> ev.LeaseRenewed:
    return ev.LeaseRenewed(worker=worker, claims=(ev.ClaimProgress(token, rendered=rendered),))


STORY = record(
    [
        (0.0, opened()),
        (0.0, ev.RelayStarted(epoch=1)),
        (0.5, ev.WorkerJoined(worker="w1")),
        (1.0, granted("c0#1@e1", "w1", 0, 96)),
        (2.0, heartbeat("w1", "c0#1@e1", 10)),
        (3.0, heartbeat("w1", "c0#1@e1", 20)),
        (4.0, credited(0, "c0#1@e1", "w1", "aa")),
        (5.0, ev.ChunkSplit(chunk=0, at=48)),
        (5.0, granted("c1#1@e1", "w2", 48, 96)),
        (6.0, ev.PartFailed(part=1, token="c1#1@e1", worker="w2", kind="error", message="no", tries=1)),
        (6.0, ev.ClaimEnded(token="c1#1@e1", worker="w2", how="failed", reason="no")),
        (6.0, ev.RangeReopened(start=48, stop=96, chunk=1)),
        (7.0, granted("c1#2@e1", "w1", 48, 96)),
        (9.0, credited(1, "c1#2@e1", "w1", "bb")),
        (9.0, ev.ClaimEnded(token="c1#2@e1", worker="w1", how="completed")),
        (9.0, ev.ChunkCompleted(chunk=1)),
        (10.0, ev.PartVoided(part=0, reason="changed on disk")),
    ]
)


def test_every_part_has_its_checksum_frames_worker_attempt_and_tries() -> None:
    first, second = read_history(STORY).parts
    assert (second.start, second.stop, second.sha256) == (48, 96, "bb")
    assert (second.worker, second.token, second.attempt) == ("w1", "c1#2@e1", 2)
    assert (second.tries, second.credited_at, second.voided) == (1, 9.0, 0)
    assert (first.sha256, first.worker, first.credited_at, first.voided) == ("", "", None, 1)


def test_every_chunk_has_its_transitions_and_its_claims_their_heartbeats() -> None:
    history = read_history(STORY)
    assert [(step.at, step.what) for step in history.chunks[0].steps] == [
        (1.0, "granted"),
        (4.0, "credited"),
        (5.0, "split"),
    ]
    assert [step.what for step in history.chunks[1].steps] == [
        "granted",
        "failed",
        "reopened",
        "granted",
        "credited",
        "completed",  # the claim
        "completed",  # the chunk
    ]
    claim = history.chunks[0].claims["c0#1@e1"]
    assert (claim.heartbeats, claim.last_heartbeat_at) == (2, 3.0)
    assert claim.last_progress is not None and claim.last_progress.rendered == 20
    assert (history.chunks[0].stop, history.chunks[1].claims["c1#1@e1"].how) == (48, "failed")


def test_heartbeats_are_on_record_and_are_not_kept_in_memory(tmp_path: Path) -> None:
    beats = [heartbeat("w1", "c0#1@e1", n) for n in range(2000)]
    with RunFolder.create(tmp_path / "o.mp4.uneven") as folder:
        journal = Journal.create(folder.journal)
        journal.append([*STORY[:6], *(ev.Record(6 + n, 3.5, beat) for n, beat in enumerate(beats))])
        journal.close()
        taken = take_journal(folder)
        assert read_history(taken.journal.records()).chunks[0].claims["c0#1@e1"].heartbeats == 2002
        assert taken.history.records == 2006 and taken.history.last_at == 3.5
        assert taken.journal.last_seq == 2005
        taken.journal.close()
