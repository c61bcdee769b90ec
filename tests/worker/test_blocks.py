"""Deliveries in blocks, from a worker's spool to a credited part. Nothing is rendered twice."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from pathlib import Path

import pytest

from farm import events as ev
from farm.commands import KillWorker
from farm.fleet import LinkProfile
from farm.host import End
from farm.manners import DELIVERIES_MAX
from farm.messages import Block, Claim, Declined, Inject, Offer
from farm.worker.link import LinkBroken, StoreBusy

from .farm import Farm
from .harness import PATIENCE_SECONDS, RenderTrouble, rig, write_part

BLOCKS = 127
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] if seed >= 4 else []) for seed in range(40)]


def broken(data: bytes) -> bytes:
    raise LinkBroken("cut by the test")


def assert_stored_whole(farm: Farm) -> None:
    """What is credited is in the store, and nothing else is there or in a spool."""
    credits = farm.events(ev.PartCredited)
    assert sorted(credit.part for credit in credits) == list(range(len(farm.cuts) - 1))
    for credit in credits:
        data = (farm.store / credit.file).read_bytes()
        assert hashlib.sha256(data).hexdigest() == credit.sha256
    left = {path.name for path in farm.store.iterdir()} - {credit.file for credit in credits}
    assert left <= {"incoming"}
    assert not list(farm.store.glob("incoming/*"))
    assert not list(farm.spool.glob("*/*"))


# --- acceptance 4: cut after 94 of 127 blocks -------------------------------------------------------------


def test_the_same_worker_goes_on_at_block_95(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    farm.faults.at[0, 94] = broken
    assert farm.work_on("w1", link=farm.link_of(BLOCKS)) is End.FINISHED
    assert farm.sent() == list(range(BLOCKS)) and farm.faults.seen.count((0, 94)) == 2
    assert "part 0: goes to the store from block 95 of 127" in farm.log.lines
    assert farm.renderers.rendered == [0]
    assert_stored_whole(farm)


def test_a_restarted_worker_goes_on_at_block_95(tmp_path: Path) -> None:
    farm = Farm(tmp_path)

    def killed(data: bytes) -> bytes:
        farm.kill_worker("w1")
        return data

    farm.faults.at[0, 94] = killed
    assert farm.work_on("w1", link=farm.link_of(BLOCKS)) is End.FINISHED
    assert len(farm.events(ev.WorkerJoined)) == 2 and len(farm.events(ev.ClaimGranted)) == 2
    assert farm.sent() == list(range(BLOCKS))
    assert farm.renderers.rendered == [0]
    assert_stored_whole(farm)


@pytest.mark.parametrize("second", ["w1", "w2"])
def test_after_a_restart_of_the_relay_it_goes_on_at_block_95(tmp_path: Path, second: str) -> None:
    """By the worker that had rendered it, or by another one that shares the disk."""
    farm = Farm(tmp_path)
    link = farm.link_of(BLOCKS)

    def killed(data: bytes) -> bytes:
        farm.kill_relay()
        raise LinkBroken("the relay is gone")

    farm.faults.at[0, 94] = killed
    assert farm.work_on("w1", link=link) is None
    assert farm.sent() == list(range(94)) and not farm.events(ev.PartCredited)
    orphans = () if second == "w1" else (farm.spool / "w1",)
    assert farm.work_on(second, link=link, orphans=orphans) is End.FINISHED
    assert farm.sent() == list(range(BLOCKS))
    assert farm.renderers.rendered == [0]
    assert [credit.worker for credit in farm.events(ev.PartCredited)] == [second]
    assert_stored_whole(farm)


# --- what happens to blocks -------------------------------------------------------------------------------


def test_a_block_that_comes_damaged_is_sent_again(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    farm.faults.at[0, 3] = lambda data: b"\0" * len(data)
    farm.faults.at[0, 5] = lambda data: data[:-1]
    assert farm.work_on("w1", link=farm.link_of(8)) is End.FINISHED
    assert farm.sent() == [0, 1, 2, 3, 3, 4, 5, 5, 6, 7]
    assert farm.renderers.rendered == [0]
    assert_stored_whole(farm)


def test_a_store_that_refuses_by_rate_limit_is_asked_again(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    refusals = 4
    began = time.monotonic()

    def busy(part: int, index: int) -> None:
        if index == 2 and farm.faults.seen.count((part, index)) <= refusals:
            raise StoreBusy(retry_after_seconds=0.1)

    farm.faults.always = busy
    assert farm.work_on("w1", link=farm.link_of(4)) is End.FINISHED
    assert time.monotonic() - began >= refusals * 0.1, "it waits for as long as it is told to"
    assert farm.sent() == [0, 1, 2, 3] and farm.faults.seen.count((0, 2)) == refusals + 1
    assert_stored_whole(farm)


def test_a_bad_link_costs_time_and_nothing_else(tmp_path: Path) -> None:
    farm = Farm(tmp_path, parts=4, tail="none")
    link = farm.link_of(8, drop_rate=0.3, latency_seconds=0.001)
    assert farm.work_on("w1", "w2", link=link) is End.FINISHED
    assert sorted(farm.renderers.rendered) == [0, 1, 2, 3]
    assert any("the link broke" in line for line in farm.log.lines)
    assert_stored_whole(farm)


def test_bytes_that_rot_in_the_store_are_sent_again(tmp_path: Path) -> None:
    """Each block was good when it came; the whole is compared once more."""
    farm = Farm(tmp_path)

    def rot(data: bytes) -> bytes:
        (path,) = (path for path in farm.store.glob("incoming/*") if path.suffix == ".part")
        path.write_bytes(b"\0" * 3 + path.read_bytes()[3:])
        return data

    farm.faults.at[0, 5] = rot
    assert farm.work_on("w1", link=farm.link_of(8)) is End.FINISHED
    assert farm.sent() == [*range(8), *range(8)]
    assert farm.renderers.rendered == [0] and not farm.events(ev.PartFailed)
    assert_stored_whole(farm)


def test_the_same_bytes_by_rename_and_in_blocks(tmp_path: Path) -> None:
    hashes = []
    for name, linked in (("near", False), ("far", True)):
        (tmp_path / name).mkdir()
        farm = Farm(tmp_path / name, parts=3)
        assert farm.work_on("w1", link=farm.link_of(9) if linked else None) is End.FINISHED
        assert_stored_whole(farm)
        hashes.append({credit.part: credit.sha256 for credit in farm.events(ev.PartCredited)})
    assert hashes[0] == hashes[1]


def test_the_relay_tells_how_much_of_a_part_is_there(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    farm.work_on("w1", link=farm.link_of(4))
    stored = farm.events(ev.BlockStored)
    assert [(event.done, event.of) for event in stored] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert stored[-1].size_bytes == farm.events(ev.PartCredited)[0].size_bytes


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_breaks_no_part_is_rendered_twice(tmp_path: Path, seed: int) -> None:
    """At random blocks the link breaks, a block comes damaged or late, or worker or relay are killed; the run
    is taken up again until it is done. One worker, or two of which each has the other's spool at a resume."""
    rng = random.Random(seed)
    farm = Farm(tmp_path, parts=5, policy=rng.choice(["fixed,10", "fixed,30", "fair"]), tail="none")
    workers = ("w1", "w2")[: rng.randint(1, 2)]
    link = farm.link_of(8, drop_rate=0.05)

    kills: list[bytes] = []

    def kill_worker(data: bytes) -> bytes:
        kills.append(data)
        farm.kill_worker(rng.choice(workers))
        return data

    def kill_relay(data: bytes) -> bytes:
        farm.kill_relay()
        return data

    def late(data: bytes) -> bytes:
        time.sleep(0.02)
        return data

    for part in range(5):
        for index in rng.sample(range(8), 2):
            farm.faults.at[part, index] = rng.choice(
                [broken, lambda data: b"?" * len(data), late, kill_relay, kill_worker]
            )
    stretches = 1
    while farm.work_on(*workers, link=link) is not End.FINISHED:
        stretches += 1
        assert stretches < 30
    rendered = farm.renderers.rendered
    assert sorted(set(rendered)) == [0, 1, 2, 3, 4]
    # What one that was killed had finished may go to the other before it is back to offer it.
    assert len(rendered) <= 5 + 2 * len(kills)
    if len(workers) == 1:
        assert sorted(rendered) == [0, 1, 2, 3, 4]
        assert_stored_whole(farm)


# --- bounds -----------------------------------------------------------------------------------------------


def test_at_most_twelve_are_received_at_once_and_none_is_dropped(tmp_path: Path) -> None:
    workers = [f"w{n}" for n in range(1, DELIVERIES_MAX + 4)]
    farm = Farm(tmp_path, parts=len(workers), policy="fixed,10", tail="none")
    full = threading.Event()
    most: list[int] = []

    def hold(part: int, index: int) -> None:
        assert farm.host is not None
        desk = farm.host.desk
        most.append(desk.receiving)
        if desk.receiving == DELIVERIES_MAX and desk.waiting == 3:
            full.set()
        assert full.wait(PATIENCE_SECONDS)
        if index == 0:
            time.sleep(0.05)

    farm.faults.always = hold
    assert farm.work_on(*workers, link=farm.link_of(3)) is End.FINISHED
    assert max(most) == DELIVERIES_MAX
    assert sorted(farm.renderers.rendered) == list(range(len(workers))), "none was dropped"
    assert_stored_whole(farm)


def test_rendering_goes_on_beside_a_delivery_until_two_parts_wait(tmp_path: Path) -> None:
    farm = Farm(tmp_path, parts=5, policy="fixed,50")
    two = threading.Event()

    def hold(part: int, index: int) -> None:
        while len(farm.renderers.rendered) < 2 and not two.is_set():
            time.sleep(0.005)
        two.set()
        if part == 0:
            time.sleep(0.1)
            assert farm.renderers.rendered == [0, 1], "a third is not begun before one is in"

    farm.faults.always = hold
    assert farm.work_on("w1", link=farm.link_of(2)) is End.FINISHED
    assert farm.renderers.rendered == [0, 1, 2, 3, 4]
    assert_stored_whole(farm)


def test_waiting_for_a_slow_link_is_reported_as_the_worker_s_pace(tmp_path: Path) -> None:
    """Or it would be given more than its link can carry. A part takes 0.2 s to deliver, and next to nothing
    to render: from the third on each waits for the one two before it."""
    farm = Farm(tmp_path, parts=5, policy="fixed,50")
    assert farm.work_on("w1", link=farm.link_of(4, latency_seconds=0.05)) is End.FINISHED
    credits = farm.events(ev.PartCredited)
    rendering = sum(credit.render_seconds for credit in credits)
    assert max(credit.claim_seconds for credit in credits) > rendering + 0.3


# --- finished parts in spools -----------------------------------------------------------------------------


def leave_in_spool(farm: Farm, *workers: str) -> None:
    """Each of the workers renders parts, and the relay is killed before any is in the store."""

    def killed(part: int, index: int) -> None:
        while len(farm.renderers.rendered) < len(workers):
            time.sleep(0.005)
        farm.kill_relay()
        raise LinkBroken("the relay is gone")

    farm.faults.always = killed
    assert farm.work_on(*workers, link=LinkProfile()) is None
    farm.faults.always = lambda part, index: None
    assert not farm.events(ev.PartCredited)


def test_a_worker_that_shares_the_disk_delivers_what_others_had_rendered(tmp_path: Path) -> None:
    """Both old workers are gone for good; the new one delivers by rename and renders nothing."""
    farm = Farm(tmp_path, parts=2, policy="fixed,10", tail="none")
    leave_in_spool(farm, "old1", "old2")
    orphans = (farm.spool / "old1", farm.spool / "old2")
    assert farm.work_on("new", orphans=orphans) is End.FINISHED
    assert sorted(farm.renderers.rendered) == [0, 1]
    assert {credit.worker for credit in farm.events(ev.PartCredited)} == {"new"}
    assert not any(path.exists() for path in orphans)
    assert_stored_whole(farm)


@pytest.mark.parametrize("heir", ["at work", "parked"])
def test_what_a_worker_had_finished_that_is_gone_for_good_goes_to_another(tmp_path: Path, heir: str) -> None:
    """1. w1 has finished two parts and hangs in the delivery of the first. 2. The operator kills it. 3. w2,
    which renders part 2, or has nothing to do, delivers both in its place."""
    farm = Farm(tmp_path, parts=3 if heir == "at work" else 2, policy="fixed,20", tail="none")
    if heir == "at work":
        farm.renderers.hold_at = {25}

    def hang(part: int, index: int) -> None:
        if part == 0 and not farm.events(ev.WorkerLeft):
            while len(farm.renderers.rendered) < 2 or not (heir == "parked" or farm.renderers.at.qsize()):
                time.sleep(0.005)
            assert farm.loop is not None and farm.host is not None
            farm.loop.call_soon_threadsafe(farm.host.post_command, KillWorker(worker="w1"))
            while not farm.events(ev.WorkerLeft):
                time.sleep(0.005)
            farm.renderers.go_on()
            raise LinkBroken("its process is gone")

    farm.faults.always = hang
    assert farm.work_on("w1", "w2", link=LinkProfile()) is End.FINISHED
    rendered = sorted(farm.renderers.rendered)
    if heir == "at work":
        assert rendered == [0, 1, 2]
    else:  # who is parked is given the work at once, and offers what is finished when it looks up
        assert set(rendered) == {0, 1}
    assert {credit.worker for credit in farm.events(ev.PartCredited)} == {"w2"}
    offers = [request for worker, request in farm.heard if worker == "w2" and isinstance(request, Offer)]
    assert offers and {offer.maker for offer in offers} == {"w1"}
    assert_stored_whole(farm)


@pytest.mark.parametrize("damage", ["cut off", "other settings", "no part"])
def test_what_is_not_whole_in_a_spool_is_removed_and_rendered_again(tmp_path: Path, damage: str) -> None:
    farm = Farm(tmp_path)
    leave_in_spool(farm, "w1")
    (path,) = farm.spool.glob("w1/*")
    data = path.read_bytes()
    match damage:
        case "cut off":
            path.write_bytes(data[:-1])
        case "other settings":
            path.write_bytes(data.replace(b"hash", b"hush", 1))
        case _:
            path.rename(path.with_name("notes.txt"))
    assert farm.work_on("w1") is End.FINISHED
    assert farm.renderers.rendered == [0, 0]
    assert not any(isinstance(request, Offer) for _, request in farm.heard)
    assert_stored_whole(farm)


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_not_wanted_any_more_is_removed_from_the_spool(tmp_path: Path, keep: bool) -> None:
    """What may be wanted later is kept, and offered again before the next claim is asked for."""
    (tmp_path / "spool").mkdir()
    path = tmp_path / "spool" / "p000001-c0.1.e1.part"
    write_part(path, 1, 10, 20)
    with rig(tmp_path) as r:
        r.join()
        r.peer.say(Declined(part=1, why="for a reason", keep=keep), to=r.peer.expect(Offer, part=1))
        r.grant(0, 10)
        assert path.exists() == keep
        r.credit(0, 10)
        r.complete()
        if keep:
            r.peer.say(Declined(part=1, why="credited"), to=r.peer.expect(Offer, part=1))
        r.peer.expect(Claim)
        assert not path.exists()


def test_a_part_whose_claim_lapsed_is_offered_and_not_rendered_again(tmp_path: Path) -> None:
    """A worker hangs in mid-delivery for longer than its lease, and beats no more; then it goes on."""
    farm = Farm(tmp_path, lease_seconds=1.5)
    link = farm.link_of(6)

    def hang(data: bytes) -> bytes:
        while not farm.events(ev.ClaimEnded):
            time.sleep(0.005)
        return data

    farm.faults.at[0, 3] = hang
    farm.mute_beats = lambda: not farm.events(ev.ClaimEnded)
    assert farm.work_on("w1", link=link) is End.FINISHED
    assert farm.events(ev.ClaimEnded)[0].how == "lapsed"
    assert farm.renderers.rendered == [0]
    assert [request.part for _, request in farm.heard if isinstance(request, Offer)] == [0]
    assert sorted(set(farm.sent())) == list(range(6)) and farm.sent().count(0) == 1
    assert_stored_whole(farm)


def test_a_store_that_never_takes_a_part_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.worker.blocks.BLOCK_TRIES_MAX", 2)
    farm = Farm(tmp_path, max_tries=1)

    def busy(part: int, index: int) -> None:
        raise StoreBusy

    farm.faults.always = busy
    assert farm.work_on("w1", link=farm.link_of(4)) is End.FINISHED
    (failed,) = farm.events(ev.PartFailed)
    assert "takes no more" in failed.message
    assert farm.events(ev.PartSetAside)


def test_a_part_that_fails_leaves_nothing_to_offer(tmp_path: Path) -> None:
    farm = Farm(tmp_path, max_tries=1)
    farm.renderers.trouble = {0: RenderTrouble("encoder", "no")}
    assert farm.work_on("w1", link=LinkProfile()) is End.FINISHED
    assert not farm.heard and not list(farm.spool.glob("*/*"))
    assert not [request for _, request in farm.heard if isinstance(request, Block)]


# --- faults that are injected -----------------------------------------------------------------------------


def injects(farm: Farm, at: tuple[int, int], **fault: object) -> None:
    """Into w1, when that block is on its way."""

    def inject(data: bytes) -> bytes:
        farm.faults.of["w1"].hear(Inject(**fault))  # type: ignore[arg-type]
        return data

    farm.faults.at[at] = inject


def test_an_injected_corruption_costs_one_block(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    injects(farm, (0, 2), kind="corrupt")
    assert farm.work_on("w1", link=farm.link_of(8)) is End.FINISHED
    assert farm.sent() == [0, 1, 2, 3, 3, 4, 5, 6, 7]
    assert "delivery: block 4 of part 0 came damaged" in farm.log.lines
    assert farm.renderers.rendered == [0] and not farm.events(ev.PartFailed)
    assert_stored_whole(farm)


def test_an_injected_rate_limit_holds_the_block_back(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    injects(farm, (0, 2), kind="rate-limit", seconds=0.4)
    assert farm.work_on("w1", link=farm.link_of(8)) is End.FINISHED
    assert farm.sent() == list(range(8))
    assert "delivery: the store takes no more for now" in farm.log.lines
    assert farm.renderers.rendered == [0] and not farm.events(ev.PartFailed)
    assert_stored_whole(farm)


def test_an_injected_cut_breaks_the_delivery_which_goes_on_after_it(tmp_path: Path) -> None:
    """With a rate limit before it, so that a block is to be sent while the line is cut."""
    farm = Farm(tmp_path)

    def inject(data: bytes) -> bytes:
        farm.faults.of["w1"].hear(Inject(kind="cut", seconds=0.6))
        raise StoreBusy

    farm.faults.at[0, 3] = inject
    assert farm.work_on("w1", link=farm.link_of(8)) is End.FINISHED
    assert "delivery: the link is cut at block 4 of part 0" in farm.log.lines
    assert "part 0: goes to the store from block 4 of 8" in farm.log.lines
    assert farm.sent() == list(range(8))
    assert farm.renderers.rendered == [0] and not farm.events(ev.PartFailed)
    assert_stored_whole(farm)


def test_an_injected_wrong_count_comes_whole_and_is_refused(tmp_path: Path) -> None:
    """Once more, in case the blocks were put together wrongly; then the part failed, and is rendered anew."""
    farm = Farm(tmp_path, parts=2)
    injects(farm, (0, 2), kind="wrong-count")
    assert farm.work_on("w1", link=farm.link_of(4)) is End.FINISHED
    ((failed,),) = [farm.events(ev.PartFailed)]
    assert failed.part == 1 and "frames" in failed.message
    assert farm.renderers.rendered == [0, 1, 1]
    assert_stored_whole(farm)
