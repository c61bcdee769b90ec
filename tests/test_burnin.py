"""What is burnt in, in words: the input's own numbers and times, and what is refused before work."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from console.burnoptions import with_places
from farm.burnin import Wording, burn_settings
from farm.errors import UsageError
from farm.media.constant import make_constant
from farm.settings import BurnSettings, BurnText, JobSettings, TrimSettings, settings_hash
from farm.source import ImageFile, SourceIndex
from farm.trim import parse_trim, trim_index
from tests.test_cuts import film

ALL = parse_trim(None, None, None, 1)


def said(
    index: SourceIndex, text: str, *frames: int, trim: TrimSettings = ALL, start: str | None = None
) -> list[str]:
    burn = burn_settings(None, [text], start=start)
    wording = Wording(trim_index(index, trim), JobSettings(burn=burn, trim=trim))
    return [wording.text(0, frame, 3) for frame in frames]


def test_fields_are_filled_in() -> None:
    text = "{file} {frame} {time} {timecode} {part} {{}}"
    assert said(film(480), text, 30) == ["in.mkv 030 00:00:01.250 00:00:01:06 3 {}"]


@pytest.mark.parametrize(
    ("typed", "frames"), [(("100:200", 1), (100, 101)), (("100:", 7), (100, 107)), ((None, 2), (0, 2))]
)
def test_numbers_and_times_are_the_inputs_whatever_is_taken(
    typed: tuple[str | None, int], frames: tuple[int, int]
) -> None:
    trim = parse_trim(None, None, *typed)
    late = msgspec.structs.replace(film(480), pts=tuple(range(1000, 1480)), timecode="01:00:00:00")
    wanted = [
        f"{n:03} {n // 24:02}.{round(n % 24 * 1000 / 24):03} 01:00:{n // 24:02}:{n % 24:02}" for n in frames
    ]
    made = said(late, "{frame} {time} {timecode}", 0, 1, trim=trim)
    assert [words.replace("00:00:", "", 1) for words in made] == wanted


def test_at_a_constant_rate_the_number_is_of_the_frame_shown_and_labels_are_counted_at_the_rate() -> None:
    doubled = make_constant(msgspec.structs.replace(film(48), timecode="10:00:00:06"), Fraction(48))
    assert said(doubled, "{frame} {timecode}", 0, 1, 2, 95) == [
        "00 10:00:00:12",
        "00 10:00:00:13",
        "01 10:00:00:14",
        "47 10:00:02:11",
    ]
    trimmed = said(doubled, "{frame} {timecode}", 0, trim=parse_trim(None, None, "40:60", 1))
    assert trimmed == ["20 10:00:01:04"]


def test_images_have_their_own_numbers_and_names() -> None:
    images = tuple(ImageFile(1001 + n, f"f.{1001 + n}.png", 1, 0) for n in range(10, 40, 2))
    every_other = film(15, step=2)
    index = msgspec.structs.replace(
        every_other, images=images, origin=-10, input_frames=60, frame_rate=(12, 1)
    )
    burn = burn_settings(None, ["{file} {frame} {timecode}"])
    wording = Wording(index, JobSettings(burn=burn, trim=parse_trim(None, None, "10:40", 2)))
    assert wording.text(0, 0, 0) == "f.1011.png 1011 00:00:00:10"
    assert wording.text(0, 14, 0) == "f.1039.png 1039 00:00:01:14"


def test_a_timecode_that_makes_no_sense_is_said() -> None:
    odd = msgspec.structs.replace(film(48), timecode="00:00:00:99")
    settings = JobSettings(burn=burn_settings("bottom", []))
    (words,) = Wording(odd, settings).warnings
    assert "00:00:00:99" in words and "begins at 00:00:00:00" in words
    assert not Wording(film(48), settings).warnings
    assert not Wording(odd, JobSettings(burn=burn_settings(None, ["{frame}"]))).warnings


def test_every_text_has_its_place_and_lines_of_their_own() -> None:
    burn = burn_settings("top", ["a|b", "bottom-right|c|d", "one\ntwo"])
    assert burn.lines == (
        BurnText("top-left", "a|b"),
        BurnText("bottom-right", "c|d"),
        BurnText("top-left", "one"),
        BurnText("top-left", "two"),
        BurnText("top", "{timecode}"),
    )


def test_composed_and_decomposed_letters_are_one() -> None:
    assert burn_settings(None, ["e\u0301"]).lines[0].text == "\u00e9"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"texts": ["{foo}"]}, "no field {foo}; there are {frame}, {time}"),
        ({"texts": ["{}"]}, "no field {}"),
        ({"texts": ["{0}"]}, "no field {0}"),
        ({"texts": ["{frame.real}"]}, "no field {frame.real}"),
        ({"texts": ["{frame:05}"]}, "{frame} takes nothing"),
        ({"texts": ["{frame!r}"]}, "{frame} takes nothing"),
        ({"texts": ["{frame"]}, "write {{ or }}"),
        ({"texts": ["frame}"]}, "write {{ or }}"),
        ({"texts": [""]}, "no text"),
        ({"texts": ["top| "]}, "no text"),
        ({"texts": ["a\n\nb"]}, "no text"),
        ({"texts": ["\u05d0"]}, "right to left"),
        ({"texts": ["\u0627"]}, "right to left"),
        ({"texts": ["a\u200d"]}, "U+200D is no character"),
        ({"texts": ["a\tb"]}, "U+0009 is no character"),
        ({"texts": ["\u0915\u093f"]}, "joins the character before"),
        ({"texts": ["bottom_left|{file}"]}, "did you mean bottom-left?"),
        ({"texts": ["Top|{file}"]}, "name a place before it: top-left|Top|{file}"),
        ({"timecode": "upstairs"}, "choose top-left, top,"),
        ({"size": "5%"}, "add --burn-timecode or --burn-text"),
        ({"box": "none"}, "add --burn-timecode or --burn-text"),
        ({"texts": ["{frame}"], "start": "01:00:00:00"}, "--timecode-start is for text"),
        ({"timecode": "top", "start": "01:00"}, "give hh:mm:ss:ff"),
        ({"timecode": "top", "size": "0.1%"}, "0.5% to 50%"),
        ({"timecode": "top", "size": "20"}, "0.5% to 50%"),
        ({"timecode": "top", "color": "pink"}, "#rrggbb"),
        ({"timecode": "top", "color": "#12345"}, "#rrggbb"),
        ({"timecode": "top", "box": "black@0%"}, "opacity"),
        ({"timecode": "top", "box": "black@101%"}, "opacity"),
        ({"timecode": "top", "font": Path("/nowhere/font.ttf")}, "can't be read"),
        ({"timecode": "top", "font": Path("/")}, "can't be read"),
        ({"timecode": "top", "font": Path("/\udcff.ttf")}, "not valid UTF-8"),
    ],
)
def test_what_can_not_be_burnt_in_is_refused_in_a_sentence(typed: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"timecode": None, "texts": []} | typed
    with pytest.raises(UsageError) as refused:
        burn_settings(**given)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value) and "\t" not in str(refused.value)


def test_a_file_name_that_can_not_be_drawn_is_refused_where_it_is_asked_for() -> None:
    named = msgspec.structs.replace(film(48), path="/films/\u05d0.mkv")
    with pytest.raises(UsageError, match="right to left"):
        said(named, "{file}", 0)
    assert said(named, "{frame}", 0) == ["00"]


def test_a_part_depends_on_a_fonts_content_and_not_on_its_name(tmp_path: Path) -> None:
    one, copy, other = tmp_path / "one.ttf", tmp_path / "copy.ttf", tmp_path / "other.ttf"
    one.write_bytes(b"font")
    copy.write_bytes(b"font")
    other.write_bytes(b"another")

    def hashed(burn: BurnSettings) -> str:
        return settings_hash(JobSettings(burn=burn), "build", "fingerprint")

    settings = [burn_settings("top", [], font=font) for font in (one, copy, other, None)]
    first, second, third, none = map(hashed, settings)
    assert first == second and len({first, third, none, hashed(BurnSettings())}) == 4
    assert settings[0].font_sha256 == hashlib.sha256(b"font").hexdigest()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["--burn-timecode", "in.mkv"], ["--burn-timecode=bottom", "in.mkv"]),
        (["--burn-timecode", "top-left", "in.mkv"], ["--burn-timecode", "top-left", "in.mkv"]),
        (["in.mkv", "--burn-timecode"], ["in.mkv", "--burn-timecode=bottom"]),
        (["--burn-timecode", "-o", "x"], ["--burn-timecode=bottom", "-o", "x"]),
        (["--burn-timecode=top", "in.mkv"], ["--burn-timecode=top", "in.mkv"]),
        (
            ["in.mkv", "--burn-timecode", "middle"],
            ["in.mkv", "--burn-timecode", "middle"],
        ),  # refused as a place
        (["--burn-timecode", "tests"], ["--burn-timecode=bottom", "tests"]),  # a folder of images
        (["--", "--burn-timecode"], ["--", "--burn-timecode"]),
    ],
)
def test_a_place_may_follow_the_timecode(
    typed: list[str], meant: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    assert with_places(typed) == meant
