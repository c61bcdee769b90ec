"""Who made a part is what the journal's credits say, and a manifest says it again after any round trip."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from farm import events as ev
from farm.contents import checksums_from_hex, checksums_to_hex, new_checksums
from farm.errors import InputError, OutputError
from farm.manifest import (
    Manifest,
    check_manifest,
    manifest_of,
    manifest_path,
    read_events,
    read_manifest,
    write_manifest,
)
from tests.manifests import SOUND, contents, credit, grant, manifest, opened, records

CUTS = (0, 10, 20, 30)
OUTPUT = contents(range(30), None, SOUND)


def verified(*work: ev.AnyEvent) -> list[ev.AnyEvent]:
    """A run of three parts that is over."""
    end = ev.OutputVerified(packets_sha256="s", output_bytes=1, stream_frames=30)
    return [opened(CUTS), *work, *read_events(OUTPUT, (10, 10, 10), (), 1.2), end]


def made(events: list[ev.AnyEvent]) -> Manifest:
    found = manifest_of(records(events))
    assert found is not None
    return found


def makers(*work: ev.AnyEvent) -> list[tuple[str, str, bool]]:
    return [(part.worker, part.claim, part.adopted) for part in made(verified(*work)).parts]


def test_of_two_holders_the_one_whose_copy_counts_is_named() -> None:
    assert makers(
        grant("c0#1@e1", "w1", 0, 30),
        credit(0, "w1", "c0#1@e1"),
        grant("c0#2@e1", "w2", 10, 30, duplicate=True),
        credit(1, "w2", "c0#2@e1"),
        ev.PartSuperseded(part=1, token="c0#1@e1", worker="w1", frames=10, reason="later"),
        credit(2, "w1", "c0#1@e1"),
    ) == [("w1", "c0#1@e1", False), ("w2", "c0#2@e1", False), ("w1", "c0#1@e1", False)]


def test_after_a_lapse_it_is_who_delivered_and_not_who_held_the_claim_first() -> None:
    assert makers(
        grant("c0#1@e1", "w1", 0, 20),
        grant("c1#1@e1", "w2", 20, 30),
        credit(0, "w1", "c0#1@e1"),
        credit(2, "w2", "c1#1@e1"),
        ev.ClaimEnded(token="c0#1@e1", worker="w1", how="lapsed"),
        ev.RangeReopened(chunk=0, start=10, stop=20),
        grant("c2#1@e1", "w2", 10, 20),
        credit(1, "w2", "c2#1@e1"),
    ) == [("w1", "c0#1@e1", False), ("w2", "c2#1@e1", False), ("w2", "c1#1@e1", False)]


def test_a_part_that_was_taken_back_is_whose_who_rendered_it_again() -> None:
    assert makers(
        grant("c0#1@e1", "w1", 0, 30),
        *(credit(part, "w1", "c0#1@e1") for part in range(3)),
        ev.PartVoided(part=1, reason="damaged on disk"),
        grant("c1#1@e1", "w2", 10, 20),
        credit(1, "w2", "c1#1@e1"),
    )[1] == ("w2", "c1#1@e1", False)


def test_the_maker_of_a_part_from_the_store_is_known_by_the_claim_in_its_name() -> None:
    def adopted(part: int, file: str) -> ev.PartAdopted:
        return ev.PartAdopted(part=part, frames=10, file=file, size_bytes=1, sha256="s")

    assert makers(
        grant("c0#1@e1", "w1", 0, 10),
        adopted(0, "p000000-c0.1.e1.part"),
        adopted(1, "p000001-c1.1.e1.part"),  # of a journal that was lost: not the claim of that name below
        adopted(2, "somebody's"),
        grant("c1#1@e1", "w2", 10, 20),
    ) == [("w1", "c0#1@e1", True), ("", "c1#1@e1", True), ("", "", True)]


def test_packets_are_those_of_their_part_and_of_the_last_join() -> None:
    work = [grant("c0#1@e1", "w1", 0, 30), *(credit(part, "w1", "c0#1@e1") for part in range(3))]
    first = read_events(contents(range(50, 80)), (10, 10, 10), (), 1.2)
    found = made([*verified(*work, *first)])
    assert found.frames == 30 and found.others == (SOUND,)
    assert found.parts[1].pts == tuple(range(1000, 2000, 100))
    assert list(found.packets().checksums) == list(range(30))
    part = found.packets().part_of(19)
    assert part is not None and part.part == 1
    assert found.packets().part_of(30) is None


def test_a_long_output_is_told_in_many_events_and_is_whole_again() -> None:
    long = contents(range(3000))
    events = [opened((0, 3000)), grant("c0#1@e1", "w1", 0, 3000), credit(0, "w1", "c0#1@e1")]
    told = read_events(long, (3000,), (), 1.0)
    assert len(told) > 3
    end = ev.OutputVerified(packets_sha256="s", output_bytes=1, stream_frames=1)
    whole = made([*events, *told, end]).packets()
    assert (whole.pts, whole.checksums) == (long.pts, long.checksums)


def test_a_run_without_a_verified_output_has_none() -> None:
    assert manifest_of(records([opened(CUTS)])) is None
    assert manifest_of(records(verified()[:-1])) is None


def test_a_manifest_in_a_file_is_the_same_and_as_readable_as_the_output(tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    output.write_bytes(b"")
    output.chmod(0o640)
    written = structs.replace(manifest(OUTPUT, CUTS), output=str(output))
    path = manifest_path(output)
    write_manifest(written, path)
    assert path.name == "out.mp4.manifest.json" and path.stat().st_mode & 0o777 == 0o640
    assert read_manifest(path) == written
    assert read_manifest(path).settings == msgspec.convert({}, type(written.settings))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is not a manifest of uneven, or is damaged"),
        (b"\xff\xfe{}", "is not a manifest of uneven, or is damaged"),
        (b"{}", "is not a manifest of uneven"),
        (b'{"format":"uneven manifest","version":99}', "has version 99"),
        (b'{"format":"uneven manifest","version":1}', "is damaged"),
        (None, "can't be read: no such file"),
    ],
)
def test_what_is_no_manifest_is_said_in_a_sentence(data: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=words):
        read_manifest(path)


def test_a_manifest_whose_packets_do_not_fit_is_damaged() -> None:
    whole = manifest(OUTPUT, CUTS)
    for crc32 in ("0", "zz" * 40, "00000000"):
        parts = (structs.replace(whole.parts[0], crc32=crc32), *whole.parts[1:])
        with pytest.raises(InputError, match=r"the manifest of out\.mp4 is damaged"):
            structs.replace(whole, parts=parts).packets()


def test_a_manifest_never_replaces_a_file_unasked(tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    check_manifest(output, None)
    manifest_path(output).write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"out\.mp4\.manifest\.json exists already; replace it with -y"):
        check_manifest(output, None)
    check_manifest(output, True)
    with pytest.raises(OutputError, match="bytes long"):
        check_manifest(tmp_path / ("n" * 243 + ".mp4"), None)


def test_checksums_are_spelled_in_eight_digits_each() -> None:
    assert checksums_to_hex(new_checksums([1, 0xDEADBEEF])) == "00000001deadbeef"
    assert list(checksums_from_hex("00000001deadbeef")) == [1, 0xDEADBEEF]
