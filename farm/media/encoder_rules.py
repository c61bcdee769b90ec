"""Which options of encoders can't be had with parts that are encoded by themselves, and what to use instead.
Tables; nothing here asks FFmpeg.

Rules of this file:
- an option is refused where the film would come out other than asked (two passes, places counted in frames of
  a part), where the promise of equal bytes would break, or where it would undo what uneven sets itself;
- it is told by its name alone, as ``--option NAME=…`` or as an entry of a list (``x264-params=NAME=…``);
- what works within a part and not across parts (rates) is warned about, with what was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from farm.errors import UsageError
from farm.settings import VideoSettings

#: Options whose value is a list ``name=value:name=value``; ours come first, so the user's win.
LIST_OPTIONS: Final = ("x264-params", "x265-params", "svtav1-params")

_TWO_PASS: Final = (
    "a second pass needs the statistics of the whole film, and every part is encoded by itself; "
    "use --crf, which gives one quality throughout in one pass"
)
_FILE: Final = (
    "it names a file, which all workers would use at once and nobody would notice to have changed; "
    "leave it out"
)
_THREADS: Final = (
    "the number of threads changes the bytes and what a worker needs of the machine; use --threads"
)
_PLACE: Final = "it counts frames from the start of every part, not of the film; leave it out"
_OURS: Final = "it follows from the input and the other options; leave it out"
_BYTES: Final = "with it the bytes would depend on the machine; leave it out"

_PASSES = dict.fromkeys(("pass", "passes", "slow-firstpass", "multi-pass-opt-analysis",
                         "multi-pass-opt-distortion", "multi-pass-opt-rps"), _TWO_PASS)  # fmt: skip
#: By the option that holds the list; "" for options of their own. Written with dashes.
_REFUSED: Final[dict[str, dict[str, str]]] = {
    "": {
        **_PASSES,
        **dict.fromkeys(("passlogfile", "stats", "fpre"), _FILE),
        **dict.fromkeys(("threads", "thread-type"), _THREADS),
        **dict.fromkeys(
            ("time-base", "pkt-timebase", "video-size", "pixel-format", "gop-timecode", "timecode"), _OURS
        ),
        "x264opts": "write it as --option x264-params=…",
    },
    "x264-params": {
        **_PASSES,
        **dict.fromkeys(("stats", "cqmfile", "opencl-clbin", "dump-yuv"), _FILE),
        **dict.fromkeys(("threads", "lookahead-threads"), _THREADS),
        **dict.fromkeys(("zones", "qpfile"), _PLACE),
        **dict.fromkeys(("fps", "timebase", "force-cfr", "annexb", "frames", "seek"), _OURS),
        **dict.fromkeys(("asm", "cpu-independent", "opencl"), _BYTES),
    },
    "x265-params": {
        **_PASSES,
        **dict.fromkeys(
            (
                "abr-ladder",
                "analysis-load",
                "analysis-reuse-file",
                "analysis-save",
                "aom-film-grain",
                "csv",
                "dhdr10-info",
                "dolby-vision-rpu",
                "film-grain",
                "lambda-file",
                "nalu-file",
                "recon",
                "stats",
                "zonefile",
            ),
            _FILE,
        ),
        **dict.fromkeys(("pools", "numa-pools", "frame-threads", "threads"), _THREADS),
        **dict.fromkeys(("zones", "qpfile", "chunk-start", "chunk-end"), _PLACE),
        **dict.fromkeys(("fps", "input-res", "input-csp", "input-depth", "annexb", "frames", "seek"), _OURS),
        **dict.fromkeys(("asm", "info", "copy-pic"), _BYTES),
    },
    "svtav1-params": {
        **_PASSES,
        **dict.fromkeys(("stats", "fgs-table", "qpfile", "roi-map-file", "recon", "stat-file"), _FILE),
        **dict.fromkeys(("lp", "pin", "unpin", "ss", "threads"), _THREADS),
        **dict.fromkeys(("force-key-frames", "use-q-file", "use-fixed-qindex-offsets-file"), _PLACE),
        **dict.fromkeys(
            ("width", "height", "fps", "fps-num", "fps-denom", "input-depth", "color-format", "frames"), _OURS
        ),
    },
}
#: Flags of ``--option flags=+…`` that can't be had.
_REFUSED_FLAGS: Final = {
    "pass1": _TWO_PASS,
    "pass2": _TWO_PASS,
    "copy_opaque": "it can hang the encoder; leave it out",
}
_FLAG = re.compile(r"[+-]")

#: By the list, entries that ask for an average rate.
_RATES: Final = {
    "": ("b",),
    "x264-params": ("bitrate",),
    "x265-params": ("bitrate",),
    "svtav1-params": ("tbr", "rc"),
}
#: Entries that limit the rate.
_LIMITS: Final = {
    "": ("maxrate", "minrate", "bufsize", "nal-hrd"),
    "x264-params": ("vbv-maxrate", "vbv-bufsize", "nal-hrd"),
    "x265-params": ("vbv-maxrate", "vbv-bufsize", "hrd"),
    "svtav1-params": ("mbr", "buf-sz"),
}

#: By the list, entries each of which says alone how many bits a picture gets, and values that leave it open.
_SIZES: Final = {
    "": ("crf", "qp", "b"),
    "x264-params": ("crf", "qp", "bitrate"),
    "x265-params": ("crf", "qp", "bitrate"),
    "svtav1-params": ("crf", "qp", "tbr"),
}
_OPEN: Final = {"crf": ("", "-1"), "qp": ("", "-1")}
#: Encoders that go by one of these and pass over the others in silence; for VP9 a rate limits a quality.
_ONE_SIZE: Final = ("libx264", "libx264rgb", "libx265", "libsvtav1")

#: Measured with x264 at 1500 kbit/s (docs/encoders.md): frames in a part, and what the rate fell short by.
_AVERAGE_SHORTFALL: Final = ((24, 31), (60, 18), (120, 8), (240, 4))


class _Entry(NamedTuple):
    """One setting that a user gave."""

    where: str  #: the option that holds the list; empty: it is an option of its own
    name: str  #: with dashes
    value: str
    said: str  #: as it was given


def refuse_options(settings: VideoSettings) -> None:
    """Raises UsageError for an option that can't be had with parts, whatever its encoder makes of it."""
    for entry in _entries(settings):
        why = _REFUSED[entry.where].get(entry.name)
        if entry.name == "flags":
            signs = zip(_signs(entry.value), _FLAG.split(entry.value.lstrip("+-")), strict=False)
            why = next((_REFUSED_FLAGS[f] for sign, f in signs if sign != "-" and f in _REFUSED_FLAGS), None)
        if why is not None:
            raise UsageError(f"--option {entry.said} can't be used here: {why}")
    _refuse_contradictions(settings)


def _refuse_contradictions(settings: VideoSettings) -> None:
    """Raises UsageError for two that say the same thing, of which the encoder would go by one unsaid."""
    sizes = [f"--crf {settings.crf:g}"] if settings.crf is not None else []
    sizes += [
        f"--option {entry.said}"
        for entry in _entries(settings)
        if entry.name in _SIZES[entry.where] and entry.value not in _OPEN.get(entry.name, ("", "0"))
    ]
    presets = [f"--preset {settings.preset}"] if settings.preset else []
    presets += [f"--option preset={value}" for name, value in settings.options.items() if name == "preset"]
    twice = settings.crf is not None and "crf" in settings.options
    for said in (sizes if twice or settings.encoder in _ONE_SIZE else [], presets):
        if len(said) > 1:
            raise UsageError(
                f"{said[0]} and {said[1]} are both given, and {settings.encoder} goes by one of them: "
                "leave the other out"
            )


def rate_warnings(settings: VideoSettings) -> list[str]:
    """What becomes of rates that are asked for, a sentence each."""
    asked = [entry for entry in _entries(settings) if entry.name in _RATES[entry.where]]
    asked = [entry for entry in asked if entry.value not in ("", "0")]
    quality = settings.crf is not None or any(e.name in ("crf", "qp") for e in _entries(settings))
    warnings = []
    if asked and (asked[0].where or not quality):
        shortfalls = ", ".join(f"{share} % with parts of {frames}" for frames, share in _AVERAGE_SHORTFALL)
        warnings.append(
            f"the average rate of --option {asked[0].said} is kept within each part only: measured, the film "
            f"comes out below it (by {shortfalls} frames) and its worst pictures are worse; --crf or a "
            "fixed quantiser has neither fault"
        )
    limits = [entry for entry in _entries(settings) if entry.name in _LIMITS[entry.where]]
    if limits:
        warnings.append(
            f"the limit of --option {limits[0].said} is kept within each part; where two parts meet, a "
            "player's buffer may be asked for more"
        )
    return warnings


def _signs(flags: str) -> list[str]:
    first = flags[:1] if flags[:1] in ("+", "-") else ""
    return [first, *_FLAG.findall(flags[1:])]


def _entries(settings: VideoSettings) -> Iterator[_Entry]:
    for option, text in settings.options.items():
        if option not in LIST_OPTIONS:
            yield _Entry("", option.replace("_", "-"), text, f"{option}={text}")
            continue
        for entry in text.split(":"):
            name, _, value = entry.partition("=")
            plain = name.strip().replace("_", "-").lower().removeprefix("no-")
            yield _Entry(option, plain, value, f"{option}={entry}")
