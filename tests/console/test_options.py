"""Limits as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console import options as opt
from console import sourceoptions as src
from farm.errors import UsageError
from farm.events import RelayOptions
from farm.settings import JobSettings, VideoSettings


def options(**changes: Any) -> RelayOptions:
    return opt.Scheduling(**changes).options()


def test_limits_become_options_of_the_run() -> None:
    found = options(timeout="300%", backoff=0.5, halt="soon,fail=3", memfree="2G", nice=5)
    assert (found.part_timeout_share, found.backoff_seconds, found.halt) == (3.0, 0.5, "soon,fail=3")
    assert (found.memfree_bytes, found.nice) == (2_000_000_000, 5)
    plain = options()
    assert (plain.backoff_seconds, plain.halt, plain.memfree_bytes, plain.nice) == (1.0, "", 0, 0)


@pytest.mark.parametrize(
    ("typed", "size"),
    [("0", 0), ("700", 700), ("500M", 5 * 10**8), ("1.5G", 15 * 10**8), ("2GiB", 2 << 30), ("64ki", 65536)],
)
def test_sizes(typed: str, size: int) -> None:
    assert options(memfree=typed).memfree_bytes == size


def test_a_resume_changes_only_what_is_given() -> None:
    before = options(halt="now,fail=1", memfree="1G", nice=3)
    assert opt.with_limits(before, None, None, None) == before
    after = opt.with_limits(before, "never", "0", 0)
    assert (after.halt, after.memfree_bytes, after.nice) == ("", 0, 0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"halt": "later"}, "--halt 'later': give soon,fail=N"),
        ({"memfree": "much"}, "--memfree much: give a size such as 500M or 2G"),
        ({"memfree": "900T"}, "--memfree 900T: nothing would ever begin, for this machine has"),
        ({"memfree": "2i"}, "--memfree 2i: give a size"),
        ({"backoff": -1.0}, "--backoff -1: give seconds from 0 to 3600"),
        ({"backoff": float("nan")}, "--backoff nan: give seconds from 0 to 3600"),
        ({"timeout": "90"}, "--timeout 90: give seconds (90s)"),
        ({"timeout": "50%"}, "--timeout 50%: give seconds (90s), or more than 100 %"),
    ],
)
def test_a_limit_that_means_nothing_is_refused_with_what_would_be_right(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        options(**changes)
    assert str(refused.value).startswith(said)


def test_sound_asked_for_in_images_is_refused() -> None:
    def made(audio: str) -> JobSettings:
        source = src.source_settings(None, None, "keep", "scale", "skip")
        output, encoder = Path("o_%d.png"), src.DEFAULT_ENCODER
        return src.job_settings(output, encoder, None, None, None, [], 1, audio, None, source)

    assert made("auto").audio == "auto" and made("none").audio == "none"
    with pytest.raises(UsageError, match="--audio flac: images hold no sound"):
        made("flac")


def test_a_codec_s_name_is_that_of_its_encoder_and_an_option_has_one_value() -> None:
    def made(encoder: str, *options: str) -> VideoSettings:
        source = src.source_settings(None, None, "keep", "scale", "skip")
        none = (None, None, None)
        return src.job_settings(Path("o.mkv"), encoder, *none, options, 1, "auto", None, source).video

    assert [made(name).encoder for name in ("h264", "x265", "AV1", "prores", "ffv1")] == [
        "libx264",
        "libx265",
        "libsvtav1",
        "prores_ks",
        "ffv1",
    ]
    assert made("x264", "bf=2", "bf=2").options == {"bf": "2"}
    with pytest.raises(UsageError, match="--option bf=2 and --option bf=3 are both given"):
        made("x264", "bf=2", "bf=3")
    with pytest.raises(UsageError, match=r"--option x=.* is not valid UTF-8"):
        made("x264", "x=\udcff")
