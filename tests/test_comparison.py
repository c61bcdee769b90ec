"""The first difference is named by its kind, its frame and its part, whatever was done to an output."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from farm.comparison import compare
from farm.contents import IMAGE_FILES, Contents
from farm.difference import Difference
from farm.manifest import Manifest
from tests.manifests import SOUND, contents, manifest

FRAMES = 60
CUTS = (0, 12, 24, 36, 48, 60)
#: In decoding order: every third frame comes before the two that are shown before it.
PLACES = [n + 2 if n % 3 == 0 else n - 1 for n in range(FRAMES)]
TIMES = [100 * place for place in PLACES]
DATA = [1000 + n for n in range(FRAMES)]


@pytest.fixture(scope="module")
def right() -> Manifest:
    return manifest(contents(DATA, TIMES, SOUND), CUTS)


def first(right: Manifest, found: Contents) -> Difference:
    difference = compare(right, found).difference
    assert difference is not None
    return difference


def without(packet: int, count: int = 1) -> Contents:
    gone = slice(packet, packet + count)
    data, times = DATA[:], TIMES[:]
    del data[gone], times[gone]
    return contents(data, times, SOUND)


def test_what_is_the_same_has_no_difference(right: Manifest) -> None:
    comparison = compare(right, contents(DATA, TIMES, SOUND))
    assert (comparison.difference, comparison.agreed, comparison.notes) == (None, FRAMES, ())


def test_other_bytes(right: Manifest) -> None:
    found = first(right, contents([*DATA[:40], 7, *DATA[41:]], TIMES, SOUND))
    assert (found.kind, found.frame, found.seconds) == ("bytes", PLACES[40], PLACES[40] / 25)
    assert found.part is not None and (found.part.part, found.part.worker) == (3, "w2")
    assert "w2 made it (chunk c3, attempt 1, claim c3#1@e1)" in found.words


def test_frames_that_are_missing(right: Manifest) -> None:
    found = first(right, without(25))
    assert (found.kind, found.frame) == ("missing", PLACES[25])
    found = first(right, without(24, 3))
    assert (found.kind, found.frame) == ("missing", 24), "the first of them as they are shown"
    assert "frame 24 at 0.960 s and 2 more are missing" in found.words
    found = first(right, without(FRAMES - 1))
    assert (found.kind, found.frame) == ("missing", PLACES[-1])


def test_frames_too_many(right: Manifest) -> None:
    data, times = [*DATA[:30], 5, *DATA[30:]], [*TIMES[:30], 2950, *TIMES[30:]]
    assert first(right, contents(data, times, SOUND)).kind == "extra"
    assert first(right, contents([*DATA, 5], [*TIMES, 6000], SOUND)).kind == "extra"


@pytest.mark.parametrize("carried", [True, False])
def test_two_parts_that_changed_places(right: Manifest, carried: bool) -> None:
    """With their times, or in the times of the other."""
    order = [*range(24), *range(36, 48), *range(24, 36), *range(48, 60)]
    times = [TIMES[n] for n in order] if carried else TIMES
    found = first(right, contents([DATA[n] for n in order], times, SOUND))
    assert found.kind == "order" and found.part is not None and found.part.part == 2
    assert found.frame == PLACES[24] and "belongs are those of part 3" in found.words


def test_another_time(right: Manifest) -> None:
    found = first(right, contents(DATA, [*TIMES[:50], TIMES[50] + 1, *TIMES[51:]], SOUND))
    assert (found.kind, found.frame) == ("time", PLACES[50])
    assert "is shown 0.0004 s later than it was made" in found.words


def test_the_same_container_written_anew_with_another_clock(right: Manifest) -> None:
    """By way of Matroska, which rounds times to milliseconds."""
    whole = contents(DATA, [round(pts * 1000 / 2500) * 16 for pts in TIMES])
    sound = structs.replace(SOUND, time_base=(1, 1000), last_pts=833)
    anew = replace(whole, video=structs.replace(whole.video, time_base=(1, 16_000)), others=(sound,))
    comparison = compare(right, anew)
    assert comparison.difference is None and "written anew, with another clock" in comparison.notes[0]


def test_a_file_that_ends_too_soon_is_truncated_and_its_last_packet_may_be_a_piece(right: Manifest) -> None:
    for data in (DATA[:30], [*DATA[:29], 3]):
        ends = contents(data, TIMES[:30], SOUND, fault="its header promises 60 frames and 30 are there")
        found = first(right, replace(ends, size_bytes=29_500))
        assert found.kind == "truncated" and "29,500 of 60,000 bytes" in found.words
        assert found.part is not None and found.part.part == 2
    written_anew = replace(contents(DATA[:30], TIMES[:30], SOUND), size_bytes=29_500)
    assert first(right, written_anew).kind == "missing"


def test_other_streams(right: Manifest) -> None:
    def words(*others: object) -> str:
        return first(right, contents(DATA, TIMES, *others)).words  # type: ignore[arg-type]

    assert words() == "its audio stream 0 (aac) is missing"
    assert words(structs.replace(SOUND, sha256="dd")) == "its audio stream 0 (aac) has other bytes"
    assert words(structs.replace(SOUND, packets=39)) == "its audio stream 0 (aac) has 39 packets and had 40"
    assert words(structs.replace(SOUND, codec="opus")) == "its audio stream 0 (aac) is opus now"
    assert "begins 0.020 s later" in words(structs.replace(SOUND, first_pts=960))
    assert "language fra" in words(structs.replace(SOUND, language="fra"))
    assert "didn't write" in words(SOUND, SOUND)


def test_the_header_of_the_video(right: Manifest) -> None:
    whole = contents(DATA, TIMES, SOUND)
    damaged = replace(whole, video=structs.replace(whole.video, header_sha256="dd"))
    assert first(right, damaged).kind == "header"


def test_how_the_pictures_are_to_be_shown(right: Manifest) -> None:
    def turned(degrees: int) -> Contents:
        whole = contents(DATA, TIMES, SOUND)
        return replace(whole, video=structs.replace(whole.video, looks={"rotation": f"{degrees}°"}))

    known = manifest(turned(0), CUTS)
    assert compare(known, turned(0)).difference is None
    assert first(known, turned(90)).words == "the rotation of its video is 90° and was 0°"
    assert compare(right, turned(90)).difference is None, "a manifest of before that was written down"


def in_matroska(found: Contents, *, delay_ms: int = 0) -> Contents:
    """As another tool puts it there: in milliseconds, and perhaps later."""
    times = [round(pts * 1000 / 2500) + delay_ms for pts in found.pts]
    sound = structs.replace(SOUND, time_base=(1, 1000), first_pts=delay_ms, last_pts=833 + delay_ms)
    other = contents(list(found.checksums), times, sound)
    video = structs.replace(other.video, time_base=(1, 1000), header_sha256="other")
    return replace(other, container="matroska", video=video, size_bytes=1)


def test_another_container_is_compared_by_bytes_and_rounded_times(right: Manifest) -> None:
    comparison = compare(right, in_matroska(contents(DATA, TIMES), delay_ms=21))
    assert comparison.difference is None and comparison.complete
    assert "it is matroska now and was mp4" in comparison.notes[0]
    assert first(right, in_matroska(without(25), delay_ms=21)).frame == PLACES[25]
    late = [*TIMES[:50], TIMES[50] + 20, *TIMES[51:]]
    found = first(right, in_matroska(contents(DATA, late), delay_ms=21))
    assert (found.kind, found.frame) == ("time", PLACES[50])
    assert "is shown 0.008 s later than it was made" in found.words


def with_start_codes(found: Contents) -> Contents:
    moved = in_matroska(found)
    video = structs.replace(moved.video, length_prefixed=False)
    other = contents([n ^ 0xFFFF for n in found.checksums], list(moved.pts), *moved.others)
    return replace(other, container="mpegts", video=video)


def test_where_the_bytes_are_written_in_another_way_that_is_said(right: Manifest) -> None:
    comparison = compare(right, with_start_codes(contents(DATA, TIMES)))
    assert comparison.difference is None and not comparison.complete
    assert "the bytes of its video could not be compared" in comparison.notes[1]
    found = first(right, with_start_codes(without(25)))
    assert (found.kind, found.frame) == ("missing", PLACES[25])


def test_images(right: Manifest) -> None:
    data = {number: 100 + number for number in range(1, 13)}

    def found(images: dict[int, int]) -> Contents:
        made = contents(list(images.values()), list(images))
        return replace(made, container=IMAGE_FILES, video=structs.replace(made.video, time_base=(1, 1)))

    due = manifest(found(data), (0, 4, 8, 12))
    assert compare(due, found(data)).difference is None
    lacking = first(due, found({n: crc for n, crc in data.items() if n not in (6, 11)}))
    assert lacking.kind == "missing" and "image 6 is missing (with others: 6, 11)" in lacking.words
    assert lacking.part is not None and (lacking.part.part, lacking.part.worker) == (1, "w2")
    changed = first(due, found(data | {9: 1}))
    assert changed.kind == "bytes" and changed.part is not None and changed.part.part == 2
    extra = first(due, found(data | {13: 1, 15: 1}))
    assert (extra.kind, extra.words) == ("extra", "it has images that its run didn't write: 13, 15")
    kept = structs.replace(due.run, settings={"images": {"existing": [[13, 16]]}})
    assert compare(structs.replace(due, run=kept), found(data | {13: 1, 15: 1})).difference is None


packets = st.lists(st.integers(0, 3), min_size=2, max_size=40)


@given(packets, st.data())
def test_a_dropped_packet_is_named_even_where_packets_are_alike(data: list[int], draw: st.DataObject) -> None:
    """A still picture gives packets that are all the same; their times tell them apart."""
    due = manifest(contents(data), (0, len(data)))
    gone = draw.draw(st.integers(0, len(data) - 1))
    times = [100 * n for n in range(len(data)) if n != gone]
    found = first(due, contents(data[:gone] + data[gone + 1 :], times))
    assert (found.kind, found.frame) == ("missing", gone)


@given(packets, packets, st.data())
def test_no_difference_goes_unnoticed_and_none_is_seen_where_there_is_none(
    data: list[int], other: list[int], draw: st.DataObject
) -> None:
    times = [100 * n for n in range(len(other))]
    if draw.draw(st.booleans()):
        times = draw.draw(st.permutations(times))
    due, found = manifest(contents(data), (0, len(data))), contents(other, times)
    comparison = compare(due, found)
    same = data == other and all(after > before for before, after in pairwise(times))
    assert (comparison.difference is None) == same
    if not same:
        right = list(zip(data, range(0, 100 * len(data), 100), strict=True))
        alike = [a == b for a, b in zip(right, zip(other, times, strict=True), strict=False)]
        assert comparison.agreed == (alike.index(False) if False in alike else len(alike))
