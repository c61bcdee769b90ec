"""Options that are refused before any work, each in one sentence that quotes who refuses; rates that are
warned about; and encoders that give other bytes the second time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from farm.clock import MonotonicClock
from farm.errors import UsageError
from farm.media.clip import make_clip
from farm.media.constant import make_constant
from farm.media.encoder_check import check_encoder
from farm.media.encoder_rules import rate_warnings, refuse_options
from farm.media.index import index_source
from farm.media.twice import encode_twice
from farm.settings import JobSettings, SourceSettings, VideoSettings
from tests.media.test_encode import an_index


def video(encoder: str, *options: str, **fields: object) -> VideoSettings:
    pairs = dict(option.split("=", 1) for option in options)
    return VideoSettings(encoder=encoder, options=pairs, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        # Names, values, presets, tunes and profiles: what FFmpeg or the encoder itself says.
        (video("libx264", "x264-params=me=banana"), "Error parsing option 'me = banana'"),
        (video("libx264", "x264-params=noequals"), "Error setting option x264-params"),
        (video("libx264", "tune=banana"), "invalid tune 'banana'"),
        (video("libx264", "coder=7"), "Value 7.000000 for parameter 'coder' out of range [-1 - 1]"),
        (video("libx264", "level=99"), "invalid level_idc: 99"),
        (video("libx264", "profile=high", pix_fmt="yuv444p"), "high profile doesn't support 4:4:4"),
        (video("libx265", "x265-params=foo=1"), "Unknown option: foo"),
        (video("libx265", "x265-params=crf=abc"), "Invalid value for crf: abc"),
        (video("libx265", "x265-params=aq-mode=99"), "Aq-Mode is out of range"),
        (video("libx265", "x265-params=master-display=x"), "unable to parse mastering display"),
        (video("libx265", "profile=main", pix_fmt="yuv420p10le"), "main profile not supported"),
        (video("libsvtav1", "svtav1-params=foo=1"), "Error parsing option foo: 1"),
        (video("libsvtav1", "svtav1-params=tune=99"), "Invalid tune flag"),
        (video("libvpx-vp9", "cpu-used=99"), "out of range [-8 - 8]"),
        (video("prores_ks", "vendor=toolong9"), "vendor ID should be 4 bytes"),
        (video("ffv1", "slicecrc=9"), "out of range [-1 - 2]"),
    ],
)
def test_an_encoder_s_own_words_are_quoted(settings: VideoSettings, words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        check_encoder(an_index(width=320, height=180), settings)
    assert words in str(refusal.value) and settings.encoder in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("pass=1", "use --crf"),
        ("flags=+pass1", "use --crf"),
        ("flags=pass2", "use --crf"),
        ("flags=-psnr+qscale+pass1", "use --crf"),
        ("x264-params=ref=3:pass=2", "use --crf"),
        ("x265-params=pass=1", "use --crf"),
        ("svtav1-params=passes=2", "use --crf"),
        ("stats=film.log", "names a file"),
        ("x265-params=csv=x.csv", "names a file"),
        ("x265-params=analysis_save=x", "names a file"),
        ("svtav1-params=fgs-table=x", "names a file"),
        ("threads=4", "use --threads"),
        ("x264-params=threads=auto", "use --threads"),
        ("x265-params=no-pools", "use --threads"),
        ("x265-params=frame-threads=3", "use --threads"),
        ("svtav1-params=lp=4", "use --threads"),
        ("x264-params=zones=0,9,q=20", "from the start of every part"),
        ("x264-params=asm=AVX512", "depend on the machine"),
        ("x264opts=ref=3", "write it as --option x264-params"),
        ("video_size=10x10", "follows from the input"),
        ("flags=+copy_opaque", "hang"),
    ],
)
def test_what_parts_cannot_have_is_refused_with_what_to_use(option: str, words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        refuse_options(video("libx264", option))
    assert words in str(refusal.value) and str(refusal.value).startswith("--option ")


@pytest.mark.parametrize(
    ("settings", "both"),
    [
        (video("libx264", "crf=30", crf=20.0), "--crf 20 and --option crf=30"),
        (video("libx264", "qp=30", crf=20.0), "--crf 20 and --option qp=30"),
        (video("libx264", "b=2M", crf=20.0), "--crf 20 and --option b=2M"),
        (video("libx265", "x265-params=ref=2:crf=30", crf=20.0), "--crf 20 and --option x265-params=crf=30"),
        (
            video("libx264", "x264-params=qp=3:bitrate=9"),
            "x264-params=qp=3 and --option x264-params=bitrate=9",
        ),
        (video("libsvtav1", "qp=30", crf=20.0), "--crf 20 and --option qp=30"),
        (video("libvpx-vp9", "crf=30", crf=20.0), "--crf 20 and --option crf=30"),
        (video("libx264", "preset=slow", preset="fast"), "--preset fast and --option preset=slow"),
    ],
)
def test_two_that_say_the_same_are_refused_for_the_encoder_goes_by_one(
    settings: VideoSettings, both: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        refuse_options(settings)
    assert f"{both} are both given, and {settings.encoder} goes by one" in str(refusal.value)


def test_a_rate_beside_a_quality_is_left_where_it_means_something() -> None:
    for settings in (
        video("libvpx-vp9", "b=2M", crf=30.0),  # which limits it
        video("libx264", "b=0", "maxrate=2M", "bufsize=4M", "qp=-1", crf=20.0),
        video("libsvtav1", "svtav1-params=rc=1:tbr=500"),
    ):
        refuse_options(settings)


@pytest.mark.parametrize(
    "option",
    [
        "flags=+cgop-pass1",
        "x264-params=rc-lookahead=250:keyint=999:bframes=8:sliced-threads=1",
        "x265-params=rc-lookahead=60:keyint=500:no-sao",
        "g=1000",
        "profile=high",
        "x264-params=stats-file-that-is-none=1",
    ],
)
def test_what_works_within_a_part_is_left_to_the_encoder(option: str) -> None:
    refuse_options(video("libx264", option))


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        (video("libx264", "b=2M"), True),
        (video("libx264", "b=0"), False),
        (video("libvpx-vp9", "b=2M", crf=30.0), False),  # a cap on constant quality
        (video("libx264", "x264-params=bitrate=2000"), True),
        (video("libx265", "x265-params=bitrate=2000"), True),
        (video("libsvtav1", "svtav1-params=rc=1:tbr=500"), True),
        (video("libsvtav1", "svtav1-params=rc=0"), False),
        (video("libx264", "x264-params=ref=3"), False),
    ],
)
def test_average_rates_are_warned_about_with_what_was_measured(settings: VideoSettings, warned: bool) -> None:
    found = [warning for warning in rate_warnings(settings) if "average rate" in warning]
    assert bool(found) == warned
    if warned:
        assert "8 % with parts of 120" in found[0]


def test_a_limit_of_the_rate_holds_within_a_part() -> None:
    (warning,) = rate_warnings(video("libx264", "bufsize=2M", "maxrate=2M", crf=20.0))
    assert "where two parts meet" in warning


def test_what_an_encoder_warns_of_is_passed_on_and_nothing_that_it_always_says() -> None:
    index = an_index(width=320, height=180)
    assert any("VBV" in w for w in check_encoder(index, video("libx264", "nal-hrd=cbr")))
    # x265 always says that it turns off something for so small a picture.
    assert check_encoder(index, video("libx265", "x265-params=ref=2")) == []


def test_every_encoder_of_video_keeps_its_bytes_and_one_that_races_is_found_out(tmp_path: Path) -> None:
    """x264 itself calls the option non-deterministic: its threads look at as much of the picture before as
    happens to be done."""
    make_clip(tmp_path / "clip.mp4", frames=30, width=1280, height=720, gop=30, audio=False)
    index = index_source(tmp_path / "clip.mp4")

    def twice(settings: VideoSettings) -> object:
        return encode_twice(index, JobSettings(video=settings), MonotonicClock(), budget_seconds=60.0)

    quick = {"preset": "ultrafast", "threads": 8}
    assert twice(video("libx264", **quick)) is None
    racing = video("libx264", "x264-params=non-deterministic=1:me=umh:merange=64:ref=3", **quick)
    found = next(filter(None, (twice(racing) for _ in range(5))), None)
    assert found is not None and found.frames in (2, 8, 24) and not found.of_header  # type: ignore[attr-defined]
    assert "the same" in found.words("libx264")  # type: ignore[attr-defined]


def test_a_source_that_cannot_be_read_says_nothing_of_the_encoder(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    make_clip(clip, frames=30, audio=False)
    index = index_source(clip)
    clip.write_bytes(clip.read_bytes()[:2000])
    assert encode_twice(index, JobSettings(), MonotonicClock()) is None


@pytest.mark.parametrize("encoder", ["libx264", "mpeg2video"])
def test_frames_that_are_shown_again_are_encoded_twice_as_any(tmp_path: Path, encoder: str) -> None:
    """They are one object, of which each showing has a time of its own."""
    make_clip(tmp_path / "clip.mp4", frames=30, audio=False)
    index = index_source(tmp_path / "clip.mp4")
    held = make_constant(index, 4 * Fraction(*index.frame_rate or (25, 1)))
    settings = JobSettings(video=video(encoder), source=SourceSettings(fps=(120, 1)))
    looked_at: list[int] = []

    class Counting:
        def now(self) -> float:
            looked_at.append(len(looked_at))
            return 0.0

    assert encode_twice(held, settings, Counting()) is None
    assert len(looked_at) == 1 + 3 * 3, "all three tries were made"


def test_no_time_is_spent_beyond_the_budget(tmp_path: Path) -> None:
    """A slow encoder is asked for few frames: here no time is left after the first two."""
    make_clip(tmp_path / "clip.mp4", frames=30, audio=False)
    index = index_source(tmp_path / "clip.mp4")

    class Ticking:
        """Every look at it costs a second."""

        def __init__(self) -> None:
            self.looks = 0

        def now(self) -> float:
            self.looks += 1
            return float(self.looks)

    clock = Ticking()
    assert encode_twice(index, JobSettings(video=video("libx264", preset="ultrafast")), clock, 1.5) is None
    assert clock.looks <= 6
