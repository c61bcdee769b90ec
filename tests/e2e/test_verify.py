"""``uneven verify`` names what is wrong with an output, where, and who made it: the workers of a real run, as
its events told of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farm.comparison import compare
from farm.contents import Contents
from farm.difference import Difference
from farm.journal import RunCatalogue, read_recording
from farm.manifest import Manifest, manifest_of, manifest_path, read_manifest
from farm.media.contents import read_contents
from tests.e2e.command import Command, run
from tests.e2e.test_sequences import LOSSLESS
from tests.media.clips import make_clip
from tests.media.tampering import cut_off, flip_bit, garbled, late, rewritten, swapped, without
from tests.media.test_sequence import make_images
from tests.shared import made_once

PART = 12
#: Unlike workers, several chunks each.
TWO = ("--fleet", "90,40", "--part", str(PART), "--schedule", "fixed,24", "--preset", "ultrafast")


@dataclass(frozen=True)
class Rendered:
    folder: Path
    output: Path
    makers: dict[int, tuple[str, str]]  #: worker and claim of each part, as the events told
    manifest: Manifest

    def first(self, path: Path) -> Difference:
        found = compare(self.manifest, read_contents(path)).difference
        assert found is not None
        return found

    def assert_made(self, found: Difference, part: int) -> None:
        assert found.part is not None and found.part.part == part
        worker, claim = self.makers[part]
        assert (found.part.worker, found.part.claim) == (worker, claim)
        attempt = claim.partition("#")[2].partition("@")[0]
        assert f"{worker} made it (chunk {claim.partition('#')[0]}, attempt {attempt}, " in found.words


def makers(command: Command) -> dict[int, tuple[str, str]]:
    return {event["part"]: (event["worker"], event["token"]) for event in command.of("part_credited")}


def verify(*arguments: str | Path, cwd: Path) -> Command:
    return run("verify", *arguments, cwd=cwd, json=False)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    def make(folder: Path) -> None:
        source = make_clip(folder / "in.mp4", frames=96, gop=12, audio_seconds=3.84)
        command = run("render", source, "-o", "out.mp4", *TWO, "--manifest", cwd=folder)
        assert command.process.returncode == 0, command.stderr
        assert {worker for worker, _ in makers(command).values()} == {"w1", "w2"}
        (folder / "makers").write_bytes(msgspec.json.encode(makers(command)))

    folder = made_once(tmp_path_factory, "verified", make)
    made_by = msgspec.json.decode((folder / "makers").read_bytes(), type=dict[int, tuple[str, str]])
    output = folder / "out.mp4"
    return Rendered(folder, output, made_by, read_manifest(manifest_path(output)))


def test_the_recording_is_as_good_as_the_manifest(rendered: Rendered) -> None:
    catalogue = RunCatalogue(rendered.folder / "state" / "runs")
    (entry,) = catalogue.entries()
    assert manifest_of(read_recording(Path(entry.recording))) == rendered.manifest
    assert {part.part: (part.worker, part.claim) for part in rendered.manifest.parts} == rendered.makers
    whole = compare(rendered.manifest, read_contents(rendered.output))
    assert whole.difference is None and whole.complete and not whole.notes


def test_a_flipped_bit_is_told_with_frame_part_worker_and_attempt(rendered: Rendered, tmp_path: Path) -> None:
    for packet in (0, 40, 95):
        found = rendered.first(flip_bit(rendered.output, tmp_path / "out.mp4", packet))
        assert found.kind == "bytes"
        rendered.assert_made(found, packet // PART)
    wrong = verify(tmp_path / "out.mp4", "--run", "last", cwd=rendered.folder)
    assert wrong.process.returncode == 6 and found.words in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "kind", "frame"),
    [
        (without(41), "missing", 41),
        (without(95), "missing", 95),
        (late(62), "time", 62),
        (swapped(range(24, 36), range(60, 72)), "order", 24),
    ],
    ids=["dropped", "dropped at the end", "late", "swapped"],
)
def test_what_was_done_to_the_packets_is_named(
    change: Any, kind: str, frame: int, rendered: Rendered, tmp_path: Path
) -> None:
    found = rendered.first(rewritten(rendered.output, tmp_path / "out.mp4", change))
    assert (found.kind, found.frame) == (kind, frame)
    rendered.assert_made(found, frame // PART)


def test_another_container_by_another_tool(rendered: Rendered, tmp_path: Path) -> None:
    for name in ("out.mkv", "again.mp4"):
        same = compare(rendered.manifest, read_contents(rewritten(rendered.output, tmp_path / name)))
        assert same.difference is None and same.complete
    found = rendered.first(rewritten(rendered.output, tmp_path / "out.mkv", without(41)))
    assert (found.kind, found.frame) == ("missing", 41)
    rendered.assert_made(found, 3)
    moved = compare(rendered.manifest, read_contents(rewritten(rendered.output, tmp_path / "out.ts")))
    assert moved.difference is None and not moved.complete


def test_the_sound(rendered: Rendered, tmp_path: Path) -> None:
    words = {
        rendered.first(rewritten(rendered.output, tmp_path / "a.mp4", only=[0])).words,
        rendered.first(rewritten(rendered.output, tmp_path / "b.mp4", garbled(30), of=1)).words,
        rendered.first(rewritten(rendered.output, tmp_path / "c.mp4", without(30), of=1)).words,
    }
    number = rendered.manifest.others[0].packets
    assert words == {
        "its audio stream 0 (aac) is missing",
        "its audio stream 0 (aac) has other bytes",
        f"its audio stream 0 (aac) has {number - 1} packets and had {number}",
    }


@pytest.mark.parametrize("share", [0.45, 0.8])
def test_a_file_that_was_cut_off(share: float, rendered: Rendered, tmp_path: Path) -> None:
    """With its index at the front, or none at all, all that is there is read, and what is next is named."""
    fast = rewritten(rendered.output, tmp_path / "fast.mp4", options={"movflags": "faststart"})
    size = fast.stat().st_size
    whole = msgspec.structs.replace(rendered.manifest, size_bytes=size)
    cut = read_contents(cut_off(fast, tmp_path / "cut.mp4", share))
    found = compare(whole, cut).difference
    assert found is not None and found.kind == "truncated"
    assert f"of {size:,} bytes are there" in found.words
    assert found.frame is not None and abs(found.frame - 96 * share) < 24
    rendered.assert_made(found, found.frame // PART)


def test_an_index_that_was_cut_off_leaves_nothing_to_read(rendered: Rendered, tmp_path: Path) -> None:
    cut_off(rendered.output, tmp_path / "out.mp4", 0.01)
    shutil.copy(manifest_path(rendered.output), tmp_path)
    told = verify("out.mp4", "--json", cwd=tmp_path)
    assert told.process.returncode == 6
    assert "can't be read, it is truncated" in told.stderr
    verdict = msgspec.json.decode(told.stdout)
    assert verdict["difference"]["kind"] == "truncated" and not verdict["right"]


def test_by_hand(rendered: Rendered, tmp_path: Path) -> None:
    """Moved and renamed, beside its source; and as JSON, with the manifest beside it."""
    shutil.move(shutil.copy(rendered.output, tmp_path / "o.mp4"), rendered.folder / "holiday.mp4")
    moved = verify("holiday.mp4", "--against", "in.mp4", cwd=rendered.folder)
    assert moved.process.returncode == 0, moved.stderr
    assert f"run {rendered.manifest.run.id} made it: 8 parts (w1 " in moved.stdout
    assert "from the recording" in moved.stdout and "frames and times as in in.mp4" in moved.stdout
    flip_bit(rendered.output, tmp_path / "bad.mp4", 40)
    shutil.copy(manifest_path(rendered.output), tmp_path / "bad.mp4.manifest.json")
    told = verify("bad.mp4", "--json", cwd=tmp_path)
    assert told.process.returncode == 6
    difference = msgspec.json.decode(told.stdout)["difference"]
    worker, claim = rendered.makers[3]
    assert difference["kind"] == "bytes" and difference["part_frames"] == [36, 48]
    assert (difference["part"], difference["worker"], difference["claim"]) == (3, worker, claim)
    assert msgspec.json.decode(told.stdout)["compared_with"] == "bad.mp4.manifest.json"


@pytest.mark.slow
def test_after_a_lapse_who_was_credited_is_named(tmp_path: Path) -> None:
    """A worker is stalled past its lease: another finishes its chunk, and it is refused when it wakes."""
    source = make_clip(tmp_path / "in.mp4", frames=96, gop=12)
    stall = ("--fault", "stall w2 when it has delivered 1 part for 3", "--lease", "1", "--heartbeat", "0.3")
    two = ("--fleet", "60,30", "--part", "12", "--schedule", "fixed,36", "--tail", "none")
    command = run(
        "render", source, "-o", "out.mp4", *two, *stall, "--preset", "ultrafast", "--manifest", cwd=tmp_path
    )
    assert command.process.returncode == 0, command.stderr
    (lapsed,) = command.of("claim_ended", worker="w2", how="lapsed")
    (granted,) = command.of("claim_granted", token=lapsed["token"])
    held = range(granted["start"] // 12, granted["stop"] // 12)
    credited = makers(command)
    assert {credited[part][0] for part in held} == {"w1", "w2"}, "the chunk was begun and lost"
    manifest = read_manifest(tmp_path / "out.mp4.manifest.json")
    assert {part.part: (part.worker, part.claim) for part in manifest.parts} == credited
    lost = held[-1]
    found = compare(
        manifest, read_contents(flip_bit(tmp_path / "out.mp4", tmp_path / "bad.mp4", 12 * lost + 3))
    ).difference
    assert found is not None and found.part is not None
    assert (found.part.part, found.part.worker) == (lost, "w1") and "w1 made it" in found.words


@pytest.mark.slow
def test_of_two_copies_the_one_that_counts_is_named(tmp_path: Path) -> None:
    """The slow worker's last chunk is duplicated; each part has the maker that was first."""
    source = make_clip(tmp_path / "in.mp4", frames=120, gop=12)
    uneven = ("--fleet", "60,4", "--part", "12", "--schedule", "fixed,36", "--tail", "duplicate-oldest")
    command = run(
        "render", source, "-o", "out.mp4", *uneven, "--preset", "ultrafast", "--manifest", cwd=tmp_path
    )
    assert command.process.returncode == 0, command.stderr
    assert command.of("claim_granted", duplicate=True)
    manifest = read_manifest(tmp_path / "out.mp4.manifest.json")
    assert {part.part: (part.worker, part.claim) for part in manifest.parts} == makers(command)


@pytest.mark.slow
def test_the_source_is_taken_as_the_run_took_it(clip: Path, tmp_path: Path) -> None:
    """Ranges, rates and every n-th frame are known from the recording; without one they are given."""
    taken = ("--frames", "24:96", "--every", "2", "--fps", "24")
    done = run("render", clip, "-o", "o.mkv", *taken, *LOSSLESS, cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
    good = verify("o.mkv", "--against", clip, "--decode", cwd=tmp_path)
    assert good.process.returncode == 0, good.stderr
    assert "pictures the same" in good.stdout
    shutil.rmtree(tmp_path / "state")
    plain = verify("o.mkv", "--against", clip, cwd=tmp_path)
    assert plain.process.returncode == 6 and "and should have 480" in plain.stderr
    told = verify("o.mkv", "--against", clip, "--decode", *taken, cwd=tmp_path)
    assert told.process.returncode == 0, told.stderr
    assert "none on record" in told.stdout and "pictures the same" in told.stdout
    odd = verify("o.mkv", "--every", "2", cwd=tmp_path)
    assert odd.process.returncode == 2 and "--against" in odd.stderr


@pytest.mark.slow
def test_another_picture_than_the_source_shows(tmp_path: Path) -> None:
    """One frame of the source is changed after the run."""
    folder = make_images(tmp_path / "in", range(1, 25))
    done = run("render", folder, "-o", "o.mkv", *LOSSLESS, cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
    shutil.copy(folder / "f_0001.png", folder / "f_0015.png")
    found = verify("o.mkv", "--against", folder, "--decode", cwd=tmp_path)
    assert found.process.returncode == 6
    assert "frame 14 at " in found.stderr and "another picture than the source's" in found.stderr
    worker, claim = makers(done)[4]
    assert "part 4, frames [12, 15)" in found.stderr and f"{worker} made it" in found.stderr
    assert claim in found.stderr


@pytest.mark.slow
def test_images(tmp_path: Path) -> None:
    """Missing, changed and extra ones, in a folder of another name too."""
    folder = make_images(tmp_path / "in", range(1, 13))
    (tmp_path / "out").mkdir()
    done = run("render", folder, "-o", "out/o_%03d.png", "--part", "3", "-w", "2", cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
    (tmp_path / "out").rename(tmp_path / "else")
    good = verify("else", "--against", folder, "--decode", cwd=tmp_path)
    assert good.process.returncode == 0, good.stderr
    assert "12 pictures the same" in good.stdout and "4 parts" in good.stdout
    (tmp_path / "else").rename(tmp_path / "out")
    worker, _ = makers(done)[1]
    image = tmp_path / "out" / "o_005.png"
    whole = image.read_bytes()
    for change, words in (
        (lambda: image.unlink(), "image 5 is missing; it is of part 1"),
        (lambda: image.write_bytes(whole[:-1]), "image 5 has other bytes; it is of part 1"),
    ):
        change()
        wrong = verify("out", cwd=tmp_path)
        assert wrong.process.returncode == 6, wrong.stdout
        assert words in wrong.stderr and f"{worker} made it" in wrong.stderr
    image.write_bytes(whole)
    (tmp_path / "out" / "o_013.png").write_bytes(whole)
    wrong = verify("out/o_%03d.png", cwd=tmp_path)
    assert wrong.process.returncode == 6 and "images that its run didn't write: 13" in wrong.stderr


def test_a_manifest_that_is_in_the_way_is_said_before_the_work(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "o.mp4.manifest.json").write_text("mine")
    refused = run("render", clip, "-o", "o.mp4", "--manifest", cwd=tmp_path)
    assert refused.process.returncode == 4 and "exists already" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["o.mp4.manifest.json"]


def test_contents_are_read_in_one_pass(rendered: Rendered) -> None:
    found: Contents = read_contents(rendered.output)
    assert (found.container, found.frames, len(found.keys)) == ("mp4", 96, 8)
    assert found.size_bytes == rendered.output.stat().st_size and not found.fault
