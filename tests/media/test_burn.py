"""Text in the pictures: read back from them, letter by letter; in every pixel format, from any part alike."""

from __future__ import annotations

import functools
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from farm.burnin import burn_settings
from farm.errors import UsageError
from farm.media.burn import Burner
from farm.media.encode import Picture, build_identity, conform
from farm.media.letters import Letters
from farm.media.planes import codes_of, drawable, layout_of, rows_of
from farm.media.render import PartRenderer
from farm.media.stitch import stitch
from farm.media.tasks import probe_job
from farm.settings import BurnSettings, GridSettings, JobSettings, SourceSettings, TrimSettings, VideoSettings
from farm.source import SourceIndex, part_cuts
from farm.trim import parse_trim
from tests.media.clips import make_clip, picture
from tests.media.jobs import HASH, Patient
from tests.media.test_turn import matrix, shown
from tests.test_cuts import film

LOSSLESS = VideoSettings(encoder="ffv1")
ALL = parse_trim(None, None, None, 1)
DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
Luma = NDArray[np.uint8]


def still(width: int, height: int, pix_fmt: str = "yuv420p", number: int = 0) -> av.VideoFrame:
    frame = picture(number, width, height, pix_fmt)
    frame.pts, frame.time_base = 0, Fraction(1, 24)
    return frame


def index_of(width: int, height: int, pix_fmt: str = "yuv420p", **more: Any) -> SourceIndex:
    return msgspec.structs.replace(film(480), width=width, height=height, pix_fmt=pix_fmt, **more)


def burner(index: SourceIndex, burn: BurnSettings, color_range: int = 1) -> Burner:
    picture = Picture(index.width, index.height, index.pix_fmt, color_range, index.colorspace)
    return Burner(index, JobSettings(burn=burn), picture)


def luma(frame: av.VideoFrame) -> Luma:
    plane = frame.planes[0]
    return np.array(
        np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
    )


@functools.cache
def letters(height: int) -> Letters:
    return Letters(BurnSettings(), max(6, round(height / 20)), (1, 1))


def read(picture: Luma, place: str, alphabet: str = "0123456789:;.") -> str:
    """The text at the left upper or the left lower corner, as the letters say that look most like it."""
    height = picture.shape[0]
    font, margin = letters(height), min(picture.shape) * 3 // 100 // 2 * 2
    box = font.height + 2 * (font.height // 8)
    box += box % 2
    top = margin if place == "top-left" else height - margin - box
    strip = picture[top + font.height // 8 :][: font.height].astype(int)
    x, text = margin + font.height // 4, ""
    while True:
        errors = {}
        for letter in alphabet:
            mask = font.mask(letter)
            seen = strip[:, x : x + mask.shape[1]]
            if seen.shape == mask.shape:
                drawn = 16 + mask.astype(int) * 219 // 255
                errors[letter] = float(np.abs(seen - drawn).max())
        best = min(errors, key=errors.__getitem__, default="")
        if not best or errors[best] > 3:
            return text
        text += best
        x += font.width(best)


def rendered(
    source: Path,
    folder: Path,
    burn: BurnSettings,
    *,
    part_frames: int = 7,
    trim: TrimSettings = ALL,
    fps: tuple[int, int] | None = None,
) -> list[Luma]:
    """The luma of every frame of the output, each part rendered by a renderer of its own, the last first."""
    settings = JobSettings(
        video=LOSSLESS,
        grid=GridSettings(frames=part_frames),
        source=SourceSettings(fps=fps),
        container="matroska",
        trim=trim,
        burn=burn,
    )
    index = probe_job(source, settings).index
    cuts = list(pairwise(part_cuts(index.frames, part_frames, index.keys)))
    parts = [folder / f"{part_frames}-{number}" for number in range(len(cuts))]
    for number, (start, stop) in reversed(list(enumerate(cuts))):
        renderer = PartRenderer(index, settings, HASH)
        renderer.render(number, start, stop, parts[number], Patient())
        renderer.close()
    output = folder / f"{part_frames}.mkv"
    stitch(index, settings, HASH, parts, output, lambda fraction: None)
    with av.open(str(output)) as file:
        return [luma(frame) for frame in file.decode(video=0)]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 frames of 25 a second, with B-frames."""
    return make_clip(tmp_path_factory.mktemp("burn") / "clip.mp4", width=320, height=180)


OPAQUE = {"size": "5%", "box": "black@100%"}


def numbered(*texts: str, **more: Any) -> BurnSettings:
    return burn_settings(None, texts, **{**OPAQUE, **more})


def test_every_frame_has_its_own_number_and_time_whatever_the_parts_are(clip: Path, tmp_path: Path) -> None:
    burn = numbered("top-left|{frame}", "bottom-left|{timecode}", start="01:00:00:20")
    by_sevens = rendered(clip, tmp_path, burn)
    for number, frame in enumerate(by_sevens):
        assert read(frame, "top-left") == f"{number:02}"
        seconds, rest = divmod(number + 20, 25)
        assert read(frame, "bottom-left") == f"01:00:{seconds:02}:{rest:02}"
    others = rendered(clip, tmp_path, burn, part_frames=24)
    assert all(np.array_equal(a, b) for a, b in zip(by_sevens, others, strict=True))


def test_nothing_but_the_text_changes(clip: Path, tmp_path: Path) -> None:
    """Frames that others are predicted from are not drawn on: their text would spread."""
    plain = rendered(clip, tmp_path, BurnSettings())
    drawn = rendered(clip, tmp_path, numbered("{frame}"), part_frames=60)
    for before, after in zip(plain, drawn, strict=True):
        changed = np.argwhere(before != after)
        assert len(changed) > 100
        assert changed[:, 0].max() < 30 and changed[:, 1].max() < 60


def test_of_a_range_every_third_frame_has_the_inputs_number(clip: Path, tmp_path: Path) -> None:
    trim = parse_trim(None, None, "10:40", 3)
    frames = rendered(clip, tmp_path, numbered("{frame}", "bottom-left|{time}"), trim=trim)
    assert [read(frame, "top-left") for frame in frames] == [str(n) for n in range(10, 40, 3)]
    assert [read(frame, "bottom-left") for frame in frames] == [
        f"00:00:0{n // 25}.{n % 25 * 40:03}" for n in range(10, 40, 3)
    ]


def test_a_frame_that_is_shown_twice_has_one_number_and_two_labels(clip: Path, tmp_path: Path) -> None:
    burn = numbered("{frame}", "bottom-left|{timecode}")
    frames = rendered(clip, tmp_path, burn, fps=(50, 1))
    assert [read(frame, "top-left") for frame in frames] == [f"{n // 2:02}" for n in range(120)]
    assert [read(frame, "bottom-left") for frame in frames] == [
        f"00:00:{n // 50:02}:{n % 50:02}" for n in range(120)
    ]


def test_a_timecode_goes_on_from_the_containers(clip: Path, tmp_path: Path) -> None:
    tagged = tmp_path / "tagged.mov"
    with av.open(str(clip)) as file, av.open(str(tagged), "w") as output:
        output.metadata["timecode"] = "09:59:59:20"
        stream = output.add_stream_from_template(file.streams.video[0])
        for packet in file.demux(video=0):
            if packet.size:
                packet.stream = stream
                output.mux(packet)
    frames = rendered(tagged, tmp_path, numbered("bottom-left|{timecode}"), part_frames=60)
    assert [read(frames[n], "bottom-left") for n in (0, 4, 5)] == [
        "09:59:59:20",
        "09:59:59:24",
        "10:00:00:00",
    ]


def offered_formats() -> list[str]:
    """What the encoders of this build take, and can be drawn on."""
    found = set()
    for name in av.codecs_available:
        try:
            codec = av.Codec(name, "w")
        except (av.codec.codec.UnknownCodecError, av.error.FFmpegError):
            continue
        if codec.type == "video":
            found |= {entry.name for entry in codec.video_formats or () if entry.components}
    return sorted(name for name in found if drawable(name) and not name.startswith("yuvj"))


def in_rgb(frame: av.VideoFrame, source_range: int) -> NDArray[np.int64]:
    return np.asarray(conform(frame, Picture(64, 48, "rgb24", 2, 0, source_range)).to_ndarray(), np.int64)


def below_text(frame: av.VideoFrame, pix_fmt: str) -> list[NDArray[Any]]:
    """The samples of every channel in the lowest rows of a picture of 64x48."""
    layout = layout_of(pix_fmt)
    if layout is None:
        return []
    rows = rows_of(frame, layout)
    return [
        rows[c.plane][40 // c.down : 48 // c.down, c.offset : 64 // c.across * c.step : c.step]
        for c in layout.channels
    ]


@pytest.mark.parametrize("color_range", [1, 2], ids=["limited", "full"])
def test_in_every_pixel_format_the_colours_are_those_that_were_asked_for(color_range: int) -> None:
    """As swscale sees them: in the box as it would have converted that colour, and white in the letter."""
    formats = offered_formats()
    assert len(formats) > 100
    burn = burn_settings(None, ["0"], size="50%", box="#d08020@100%", color="white")
    plain = burn_settings(None, ["0"], size="50%", box="black@100%")
    flat, white = (
        av.VideoFrame.from_ndarray(np.full((48, 64, 3), color, np.uint8), format="rgb24")
        for color in ((0xD0, 0x80, 0x20), (255, 255, 255))
    )
    passed_over = []
    for pix_fmt in formats:
        target = Picture(64, 48, pix_fmt, color_range, 6)
        if np.abs(in_rgb(conform(white, target), color_range) - 255).max() > 5:
            passed_over.append(pix_fmt)  # swscale itself has it wrong
            continue
        index = index_of(64, 48, pix_fmt, colorspace=6)
        drawn = burner(index, burn, color_range)(still(64, 48), 0, 0)
        white_on_black = burner(index, plain, color_range)
        assert drawn.format.name == pix_fmt
        far = 4 if layout_of(pix_fmt) else 80  # formats of few colours are dithered
        # Grey is of full range to swscale, whatever it is marked as, and white is 0.92 in its floats.
        white_far = 25 if pix_fmt.startswith(("gray", "ya")) else 5
        seen, wanted = in_rgb(drawn, color_range), in_rgb(conform(flat, target), color_range)
        assert np.abs(seen[4:8, 4:8] - wanted[4:8, 4:8]).mean(axis=(0, 1)).max() <= max(far, white_far), (
            pix_fmt
        )
        seen_plain = in_rgb(white_on_black(still(64, 48), 0, 0), color_range)[4:36, 4:28]
        assert np.abs(seen_plain - 255).max(axis=2).min() <= white_far, pix_fmt
        assert seen_plain.max(axis=2).min() <= white_far, pix_fmt
        below = below_text(conform(still(64, 48), target), pix_fmt)
        assert all(map(np.array_equal, below_text(drawn, pix_fmt), below)), pix_fmt
    assert not any(layout_of(pix_fmt) for pix_fmt in passed_over) and len(passed_over) < 5


def test_text_covers_what_is_transparent() -> None:
    clear = av.VideoFrame.from_ndarray(np.zeros((48, 64, 4), np.uint8), format="rgba")
    clear.pts, clear.time_base = 0, Fraction(1, 24)
    burn = burn_settings(None, ["0"], size="50%", box="black@50%")
    alpha = burner(index_of(64, 48, "rgba"), burn)(clear, 0, 0).to_ndarray()[:, :, 3]
    assert alpha[4, 4] == 128 and alpha.max() == 255 and alpha[45, 60] == 0


@pytest.mark.parametrize(("width", "height"), [(101, 75), (64, 47), (63, 48), (320, 180)])
@pytest.mark.parametrize("place", ["top-left", "center", "bottom-right", "bottom"])
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv410p", "yuv422p10le", "rgb24"])
def test_in_odd_sizes_the_box_is_the_same_in_luma_and_colour(
    width: int, height: int, place: str, pix_fmt: str
) -> None:
    burn = burn_settings(None, [f"{place}|1"], size="12%", box="#ff0000@100%", color="#ff0000")
    gray = av.VideoFrame.from_ndarray(np.full((height, width, 3), 128, np.uint8), format="rgb24")
    gray.pts, gray.time_base = 0, Fraction(1, 24)
    plain = conform(gray, Picture(width, height, pix_fmt, 1, 6))
    drawn = burner(index_of(width, height, pix_fmt), burn)(plain, 0, 0)
    layout = layout_of(pix_fmt)
    assert layout is not None
    boxes = set()
    for c in layout.channels:
        before, after = (rows_of(frame, layout)[c.plane][:, c.offset :: c.step] for frame in (plain, drawn))
        columns = -(-width // c.across)  # beside them is padding
        changed = np.argwhere(before[:, :columns] != after[:, :columns])
        (top, left), (bottom, right) = changed.min(axis=0), changed.max(axis=0) + 1
        assert len(changed) == (bottom - top) * (right - left), "not one solid box"
        boxes.add((top * c.down, bottom * c.down, left * c.across, right * c.across))
    ((_, bottom, _, right),) = boxes
    assert bottom <= height and right <= width


@pytest.mark.parametrize(
    "turn",
    [
        (0, 1, -1, 0),
        (0, -1, 1, 0),
        (-1, 0, 0, -1),
        (-1, 0, 0, 1),
        (1, 0, 0, -1),
        (0, 1, 1, 0),
        (0, -1, -1, 0),
    ],
    ids=str,
)
def test_what_a_player_turns_is_upright_when_it_is_shown(turn: tuple[int, int, int, int]) -> None:
    index = index_of(320, 180, "yuv420p", display_matrix=tuple(matrix(*turn)))
    burn = burn_settings(None, ["top-left|{frame}", "bottom-left|{timecode}"], **OPAQUE)
    seen = shown(luma(burner(index, burn)(still(320, 180), 123, 0)), *turn)
    assert read(seen, "top-left") == "123"
    assert read(seen, "bottom-left") == "00:00:05:03"


def box_of(frame: av.VideoFrame, plain: av.VideoFrame) -> tuple[int, int]:
    """Width and height of what has changed."""
    changed = np.argwhere(luma(frame) != luma(plain))
    height, width = changed.max(axis=0) - changed.min(axis=0) + 1
    return int(width), int(height)


def test_letters_are_as_wide_on_the_screen_whatever_the_shape_of_the_pixels_is() -> None:
    burn = burn_settings(None, ["{timecode}"], size="10%", box="white@100%", color="black")
    plain = still(640, 360)
    square = box_of(burner(index_of(640, 360), burn)(plain, 1, 0), plain)
    wide = box_of(burner(index_of(640, 360, sample_aspect_ratio=(2, 1)), burn)(plain, 1, 0), plain)
    assert abs(wide[0] * 2 - square[0]) <= 16 and wide[1] == square[1]


def test_digits_do_not_move_what_follows() -> None:
    burn = burn_settings(None, ["{frame} x"], **OPAQUE)
    index, plain = index_of(320, 180), still(320, 180)
    drawn = [luma(burner(index, burn)(plain, number, 0)) for number in (111, 444)]
    beyond = letters(180).height // 4 + 5 + letters(180).width("000")
    assert np.array_equal(drawn[0][:, beyond:], drawn[1][:, beyond:])
    assert not np.array_equal(drawn[0], drawn[1])


def test_text_in_hdr_is_as_bright_as_graphics_are_to_be() -> None:
    layout = layout_of("yuv420p10le")
    assert layout is not None
    codes = {
        trc: codes_of((255, 255, 255), layout, height=2160, color_range=1, colorspace=9, color_trc=trc)
        for trc in (1, 16, 18)
    }
    assert codes == {1: [940, 512, 512], 16: [572, 512, 512], 18: [721, 512, 512]}


@pytest.mark.parametrize(
    ("typed", "size", "words"),
    [
        ({"texts": ["x" * 60]}, (320, 180), "of a picture of 320x180"),
        ({"texts": ["\n".join("a" * 40)]}, (320, 180), "of a picture of 320x180"),
        ({"texts": ["{frame}"]}, (1, 1), "of a picture of 1x1"),
        ({"texts": ["left|" + "x" * 30, "right|" + "y" * 30]}, (320, 180), "would overlap"),
        ({"texts": ["\u65e5"]}, (320, 180), "Pillow's own font has no \u65e5 (U+65E5)"),
        ({"texts": ["\U0001f44d"]}, (320, 180), "(U+1F44D)"),
    ],
)
def test_what_does_not_fit_is_refused(typed: dict[str, Any], size: tuple[int, int], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        burner(index_of(*size), burn_settings(None, **typed))
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_formats_that_can_not_be_drawn_on_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="pixel format pal8: choose another with --pix-fmt"):
        burner(index_of(320, 180, "pal8"), burn_settings("bottom", []))
    askew = index_of(320, 180, display_matrix=(46341, 46341, 0, -46341, 46341, 0, 0, 0, 1 << 30))
    with pytest.raises(UsageError, match="quarter turns"):
        burner(askew, burn_settings("bottom", []))


def test_a_font_of_ones_own_is_used_and_must_stay_as_it_was(tmp_path: Path) -> None:
    if not DEJAVU.is_file():
        pytest.skip("no DejaVu on this machine")
    font = tmp_path / "font.ttf"
    font.write_bytes(DEJAVU.read_bytes())
    index, burn = index_of(320, 180), burn_settings(None, ["\u0416 {frame}"], font=font)
    plain = luma(burner(index, burn_settings(None, ["Z {frame}"]))(still(320, 180), 1, 0))
    assert not np.array_equal(luma(burner(index, burn)(still(320, 180), 1, 0)), plain)
    font.write_bytes(font.read_bytes() + b"\0")
    with pytest.raises(UsageError, match="not the file that the run began with"):
        burner(index, burn)
    font.write_bytes(b"no font")
    with pytest.raises(UsageError, match="can't be used as a font"):
        burner(index, burn_settings("top", [], font=font))


def test_the_build_names_what_draws_only_where_something_is_drawn() -> None:
    assert "Pillow" not in build_identity() and build_identity(BurnSettings()) == build_identity()
    assert "Pillow-" in build_identity(burn_settings("top", []))
