"""How many workers a machine bears, and who has to go when they grow."""

from __future__ import annotations

import pytest

from farm.fleet import WorkerProfile, uniform_fleet
from farm.machine import Machine, automatic_workers, fit_fleet, worker_memory_bytes
from farm.memory import MemoryBooks, Sample
from farm.settings import VideoSettings
from farm.source import SourceIndex

GB = 1_000_000_000
X264 = VideoSettings()


def index(width: int, height: int) -> SourceIndex:
    return SourceIndex(
        path="in.mkv",
        fingerprint="f",
        container="matroska",
        stream=0,
        codec="h264",
        width=width,
        height=height,
        pix_fmt="yuv420p",
        time_base=(1, 1000),
        frame_rate=(24, 1),
        sample_aspect_ratio=None,
        pts=(0,),
        keys=(0,),
        packets=(),
    )


# --- before the work -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoder", "threads", "width", "height", "measured_mib"),
    [
        ("libx264", 1, 1280, 720, 228),
        ("libx264", 1, 3840, 2160, 1424),
        ("libx264", 4, 3840, 2160, 1480),
        ("libx265", 1, 1280, 720, 278),
        ("libx265", 1, 3840, 2160, 1629),
        ("libsvtav1", 4, 3840, 2160, 1313),
        ("libvpx-vp9", 1, 3840, 2160, 1074),
        ("libvpx-vp9", 4, 3840, 2160, 1113),
        ("ffv1", 1, 3840, 2160, 417),
    ],
)
def test_the_estimate_is_above_what_was_measured_and_not_far(
    encoder: str, threads: int, width: int, height: int, measured_mib: int
) -> None:
    estimate = worker_memory_bytes(index(width, height), VideoSettings(encoder=encoder, threads=threads))
    assert 1.0 <= estimate / (measured_mib << 20) < 2.6


def test_eight_workers_on_a_4k_clip_stay_under_the_gate() -> None:
    """RG28: on a machine with 8 GB, eight workers at 2160p would fill 12."""
    machine = Machine(cores=8, memory_bytes=8 * GB)
    fleet, sentence = fit_fleet(uniform_fleet(8), index(3840, 2160), X264, machine)
    assert len(fleet) * worker_memory_bytes(index(3840, 2160), X264) <= machine.gate_bytes
    assert [profile.name for profile in fleet] == ["w1", "w2", "w3"]
    assert sentence.startswith("3 of 8 workers are started: a worker may need 1.5 GB at 3840x2160")
    assert "5.6 GB may be filled (70% of what is available)" in sentence


def test_a_fleet_that_fits_is_left_alone_and_needs_no_word() -> None:
    fleet = uniform_fleet(8)
    machine = Machine(cores=2, memory_bytes=8 * GB)
    assert fit_fleet(fleet, index(640, 360), X264, machine) == (fleet, "")


def test_one_worker_is_started_whatever_the_memory() -> None:
    fleet, sentence = fit_fleet(uniform_fleet(3), index(3840, 2160), X264, Machine(1, GB // 10))
    assert len(fleet) == 1 and "1 of 3 workers" in sentence
    fleet, sentence = fit_fleet(uniform_fleet(1), index(3840, 2160), X264, Machine(1, GB // 10))
    assert len(fleet) == 1 and sentence.startswith("memory may not be enough for even one worker")


def test_a_capped_worker_counts_with_its_cap() -> None:
    fleet = tuple(WorkerProfile(name=f"w{n}", memory_bytes=GB // 2) for n in range(8))
    assert len(fit_fleet(fleet, index(3840, 2160), X264, Machine(8, 6 * GB))[0]) == 8


@pytest.mark.parametrize(
    ("cores", "memory", "threads", "workers"),
    [(8, 64 * GB, 1, 8), (8, 64 * GB, 4, 2), (0.5, 64 * GB, 1, 1), (64, 8 * GB, 1, 3), (2.5, 64 * GB, 1, 3)],
)
def test_as_many_workers_as_cores_and_memory_bear(
    cores: float, memory: int, threads: int, workers: int
) -> None:
    video = VideoSettings(threads=threads)
    assert automatic_workers(index(3840, 2160), video, Machine(cores, memory)) == workers


# --- while they work -------------------------------------------------------------------------------------


def test_a_worker_beyond_its_cap_is_out_of_memory() -> None:
    verdict = MemoryBooks({"w1": 100, "w2": 100}, 0).judge(Sample({"w1": 101, "w2": 100, "w3": 999}, 0), 0)
    assert list(verdict.beyond_cap) == ["w1"]
    assert verdict.beyond_cap["w1"].startswith("out of memory: it used")


def test_beyond_the_gate_the_largest_is_sent_away_one_at_a_time_and_never_the_last() -> None:
    books = MemoryBooks({}, 100)
    used = {"w1": 40, "w2": 90, "w3": 60}
    assert list(books.judge(Sample(used, 0), 0).beyond_gate) == ["w2"]
    # It is on its way; what it still has is no reason to send another.
    assert not books.judge(Sample(used, 0), 0).beyond_gate
    assert list(books.judge(Sample({"w1": 60, "w3": 61}, 0), 0).beyond_gate) == ["w3"]
    assert not books.judge(Sample({"w1": 500}, 0), 0).beyond_gate


def test_who_is_stopped_for_its_own_cap_is_no_reason_to_send_another_away() -> None:
    verdict = MemoryBooks({"w1": 50}, 100).judge(Sample({"w1": 80, "w2": 60, "w3": 30}, 0), 0)
    assert list(verdict.beyond_cap) == ["w1"] and not verdict.beyond_gate


def test_with_too_little_free_nothing_is_granted_until_there_is_clearly_more() -> None:
    books = MemoryBooks({}, 0)
    assert not books.judge(Sample({}, 1000), 1000).hold
    assert "less than --memfree" in books.judge(Sample({}, 999), 1000).hold
    assert books.judge(Sample({}, 1010), 1000).hold, "it would go to and fro"
    assert not books.judge(Sample({}, 1060), 1000).hold
    assert not books.judge(Sample({}, 1010), 1000).hold


def test_peaks_are_told_when_they_grew_by_a_quarter_and_at_the_end() -> None:
    books = MemoryBooks({}, 0)
    told = [books.judge(Sample({"w1": used}, 0), 0).peaks for used in (100, 90, 120, 126, 80, 157)]
    assert told == [{"w1": 100}, {}, {}, {"w1": 126}, {}, {}]
    assert books.last_peaks() == {"w1": 157}
    assert books.last_peaks() == {}
