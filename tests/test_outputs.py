"""Numbered images as an output: which files there will be, and how they come to their names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from farm.errors import OutputError, UsageError
from farm.outputs import (
    as_ranges,
    check_images_free,
    discard,
    existing_numbers,
    image_pattern,
    is_images,
    place,
)
from farm.paths import partial_path
from farm.source import ImageFile, SourceIndex


def index_of(numbers: range, source: Path | None = None) -> SourceIndex:
    """Of as many frames; of the images with these numbers, if ``source`` is their pattern."""
    return SourceIndex(
        path=str(source or "film.mp4"),
        fingerprint="",
        container="",
        stream=0,
        codec="png",
        width=2,
        height=2,
        pix_fmt="rgb24",
        time_base=(1, 25),
        frame_rate=(25, 1),
        sample_aspect_ratio=None,
        pts=tuple(range(len(numbers))),
        keys=(),
        packets=(),
        images=tuple(ImageFile(n, f"in_{n}.png", 1, 1) for n in numbers) if source else (),
        numbers=tuple(numbers),
    )


def finished(output: Path, numbers: range) -> Path:
    partial = partial_path(output)
    partial.mkdir()
    pattern = image_pattern(output)
    for number in numbers:
        (partial / pattern.name(number)).write_bytes(b"image %d" % number)
    return partial


def test_a_sign_for_a_number_is_one_in_the_names_of_images_alone() -> None:
    assert not is_images(Path("100%d.mp4")) and not is_images(partial_path(Path("a####.mkv")))
    assert is_images(Path("f_%04d.PNG")) and is_images(partial_path(Path("f#.jpg")))


@pytest.mark.parametrize("name", ["frame.png", "a%d_%d.png", "a[1-5].png", "a%s.png"])
def test_images_need_one_place_for_a_number(name: str) -> None:
    with pytest.raises(UsageError):
        image_pattern(Path(name))


def test_images_that_are_there_are_refused_by_number(tmp_path: Path) -> None:
    for number in (3, 4, 9):
        (tmp_path / f"f_{number:03d}.png").write_bytes(b"mine")
    (tmp_path / "f_005.png").write_bytes(b"")
    output = tmp_path / "f_%03d.png"
    assert existing_numbers(image_pattern(output)) == [3, 4, 9]
    check_images_free(output, index_of(range(10, 20)), None, keep_existing=False)
    check_images_free(output, index_of(range(1, 20)), True, keep_existing=False)
    check_images_free(output, index_of(range(5, 8)), None, keep_existing=True)
    for overwrite, advice in ((None, "-y"), (False, "-n says")):
        with pytest.raises(OutputError, match=rf"4 of the images .*: 3-5, 9; .*{advice}"):
            check_images_free(output, index_of(range(1, 20)), overwrite, keep_existing=False)


def test_the_input_is_never_an_output(tmp_path: Path) -> None:
    index = index_of(range(1, 5), tmp_path / "in_%d.png")
    with pytest.raises(OutputError, match=r"in_1\.png would overwrite an image of the input"):
        check_images_free(tmp_path / "in_#.png", index, True, keep_existing=False)
    (tmp_path / "other").mkdir()
    check_images_free(tmp_path / "other" / "in_#.png", index, True, keep_existing=False)


def test_images_get_their_names_and_nothing_else_is_left(tmp_path: Path) -> None:
    output = tmp_path / "f_%d.png"
    place(finished(output, range(3)), output, overwrite=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        f"f_{n}.png": b"image %d" % n for n in range(3)
    }


def test_who_was_cut_off_goes_on(tmp_path: Path) -> None:
    output = tmp_path / "f_%d.png"
    for number in (0, 1):
        (tmp_path / f"f_{number}.png").write_bytes(b"image %d" % number)
    place(finished(output, range(3)), output, overwrite=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f_0.png", "f_1.png", "f_2.png"]


def test_an_image_that_appeared_meanwhile_is_left_alone(tmp_path: Path) -> None:
    output = tmp_path / "f_%d.png"
    partial = finished(output, range(3))
    (tmp_path / "f_1.png").write_bytes(b"somebody else's")
    with pytest.raises(OutputError, match=r"f_1\.png appeared while it was rendered"):
        place(partial, output, overwrite=False)
    assert (tmp_path / "f_1.png").read_bytes() == b"somebody else's"
    assert (partial / "f_1.png").read_bytes() == b"image 1"
    place(partial, output, overwrite=True)
    assert (tmp_path / "f_1.png").read_bytes() == b"image 1"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    output = tmp_path / "f_%d.png"
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "f_0.png").write_bytes(b"kept")
    partial_path(output).symlink_to(kept)
    discard(partial_path(output))
    assert (kept / "f_0.png").exists() and not os.path.lexists(partial_path(output))


def test_runs_of_numbers() -> None:
    assert as_ranges([1, 2, 3, 7, 9, 10]) == ((1, 4), (7, 8), (9, 11))
    assert as_ranges([]) == ()
