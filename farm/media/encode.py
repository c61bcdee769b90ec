"""The encoder of a job, set up in one place, so that every part and the stitch's template are opened alike.

Rules of this file:
- what an encoder is given is a function of the source index and the video settings alone; whatever FFmpeg
  would take from the machine (the number of cores, the processor's name in a comment) is pinned;
- the time base is the source's, so that a frame's pts goes in and comes out unchanged;
- nothing an encoder doesn't know is passed over in silence: PyAV leaves unknown options behind in
  ``options`` after opening, and that is an error here.
"""

from __future__ import annotations

import difflib
import functools
import platform
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

import av
from av.codec.codec import find_best_pix_fmt_of_list
from av.codec.context import Flags, ThreadType
from av.video.format import VideoFormatComponent
from av.video.reformatter import ColorRange, Colorspace, Interpolation

from farm.errors import UsageError
from farm.media.encoder_rules import LIST_OPTIONS
from farm.media.encoderclock import EncoderClock
from farm.media.hdr import hdr_options
from farm.media.hearing import heard, words
from farm.settings import BurnSettings, VideoSettings
from farm.source import SourceIndex

_FULL_RANGE = 2
_LIMITED_RANGE = 1
_UNSPECIFIED = 2
_MATRIX_RGB = 0
_MATRIX_BT709 = 1
_MATRIX_BT601 = 6
_MATRICES_BT601 = (5, 6)
#: From this height on, RGB becomes BT.709 rather than BT.601, as players assume.
_HD_HEIGHT = 720
#: Formats these encoders list and then refuse to open with, in this build or without "experimental".
_REFUSED_FORMATS = {
    # Few programs read a TIFF that isn't RGB or grey.
    "tiff": ("yuv420p", "yuv422p", "yuv440p", "yuv444p", "yuv410p", "yuv411p"),
    "ffv1": ("yaf16le", "grayf16le", "gbrpf16le", "gbrpf32le"),
    "libx265": ("yuva420p", "yuva420p10le"),
    # Transparency would be a stream of its own beside the packets' bytes, and be lost unsaid.
    "libvpx-vp9": ("gbrap", "yuva420p", "yuva422p", "yuva444p"),
    "libvpx": ("yuva420p",),
}
#: Encoders whose RGB becomes 4:2:0 unasked: of what they make few players show anything else.
PLAYED_AS_420 = ("libx264", "libx265", "libvpx-vp9")
#: The highest frame rate an encoder takes as its hint, where it minds.
_FRAME_RATE_MAX = {"libsvtav1": 240}
#: swscale's numbers for the matrices it can convert between, by H.273 code point.
_SWSCALE_MATRIX = {1: Colorspace.ITU709, 4: Colorspace.FCC, 7: Colorspace.SMPTE240M, 9: Colorspace.BT2020}
#: Else JPEGs are given a bitrate (of 200 kbit/s), and their quality depends on the images before.
_JPEG_QUALITY = frozenset({"b", "qmin", "qmax", "global_quality", "flags"})
_JPEG_QUANTISER = "2"
#: Encoders of formats that have no word for the full range of colours: it is turned into the limited one.
_LIMITED_ONLY = frozenset(
    {"mpeg1video", "mpeg2video", "prores", "prores_ks", "prores_aw", "cfhd", "libvpx", "dvvideo"}
)
#: FFmpeg's numbers for the order of fields; the latter for whole pictures, top or bottom lines first.
_PROGRESSIVE, _TOP_FIRST, _BOTTOM_FIRST = 1, 4, 5
_TOP_FIRST_ORDERS = (2, 4)
#: Encoders that mark interlaced pictures in what they write.
_INTERLACING = frozenset({"libx264", "mpeg2video", "mpeg4", "prores_ks", "prores", "prores_aw", "ffv1"})
_DNXHD_PROFILE = frozenset({"b", "profile"})
EXACT_SCALING = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT


class Picture(NamedTuple):
    """What every picture is turned into before it is encoded; colours by H.273 code point."""

    width: int
    height: int
    pix_fmt: str
    color_range: int
    colorspace: int
    source_range: int = 0  #: of pictures that don't say their range, where it matters


def open_encoder(index: SourceIndex, settings: VideoSettings) -> av.VideoCodecContext:
    """A freshly opened encoder for one part. Raises UsageError if it can't be had as asked."""

    def opened() -> av.VideoCodecContext:
        context = codec_of(settings.encoder).create("video")
        configure_encoder(context, index, settings)
        context.open()
        return context

    try:
        context = opened()
    except av.error.FFmpegError as error:
        raise UsageError(refusal(settings, words(opened, error))) from error
    _check_opened(context, settings)
    return context


def configure_encoder(context: av.VideoCodecContext, index: SourceIndex, settings: VideoSettings) -> None:
    """Set everything on an encoder that isn't open yet, also one that ``add_stream`` made.

    Raises UsageError for a pixel format, crf or preset the encoder doesn't take.
    """
    picture = choose_picture(index, settings)
    context.width = picture.width
    context.height = picture.height
    context.pix_fmt = picture.pix_fmt
    clock = EncoderClock(index, settings)
    context.time_base = clock.time_base
    context.framerate = 1 / clock.time_base if clock.is_numbered else frame_rate(index, settings)
    if index.sample_aspect_ratio is not None:
        context.sample_aspect_ratio = Fraction(*index.sample_aspect_ratio)
    context.color_range = picture.color_range
    context.colorspace = picture.colorspace
    context.color_primaries = index.color_primaries
    context.color_trc = index.color_trc
    context.bit_rate = codec_of(settings.encoder).create("video").bit_rate or 0
    context.thread_count = settings.threads
    context.thread_type = ThreadType.AUTO
    context.flags |= Flags.global_header
    _keep_fields(context, index)
    context.options = _options(context, index, settings)


def offered_formats(encoder: str) -> list[str]:
    """The pixel formats an encoder is given; none if it doesn't say which it takes. Raises UsageError."""
    return [
        entry.name
        for entry in codec_of(encoder).video_formats or ()
        if not entry.name.startswith("yuvj")
        and entry.name not in _REFUSED_FORMATS.get(encoder, ())
        and entry.components  # hardware formats have none
    ]


def choose_picture(index: SourceIndex, settings: VideoSettings) -> Picture:
    """The pixel format asked for, or the closest to the source's that the encoder takes.

    The old full-range formats (``yuvj…``) become the plain ones with a full-range tag. Raises UsageError.
    """
    offered = offered_formats(settings.encoder)
    source, source_range = _without_j(index.pix_fmt, index.color_range)
    if settings.pix_fmt is not None:
        target, color_range = _without_j(settings.pix_fmt, source_range)
        if offered and target not in offered:
            raise UsageError(
                f"{settings.encoder} can't encode the pixel format {settings.pix_fmt}; "
                f"it takes {', '.join(offered)}"
            )
    elif is_rgb(source) and _for_players(index, settings):
        deep = settings.encoder == "libx265" and max(part.bits for part in _components(source)) > 8
        target, color_range = "yuv420p10le" if deep else "yuv420p", source_range
    elif not offered or source in offered:
        target, color_range = source, source_range
    else:
        # Grey pictures are as near to RGB as to YUV, which more players show.
        grey = len(_components(source)) < 3 and not is_rgb(source)
        near = [name for name in offered if not is_rgb(name)] if grey else offered
        best, _ = find_best_pix_fmt_of_list(near or offered, source, has_alpha=has_alpha(source))
        if best is None:
            raise UsageError(f"{settings.encoder} takes no pixel format that {index.pix_fmt} can become")
        target, color_range = best.name, source_range
    colorspace = index.colorspace
    if is_rgb(target):
        color_range, colorspace = _FULL_RANGE, _MATRIX_RGB
    elif is_rgb(source):
        color_range = _LIMITED_RANGE
        colorspace = _MATRIX_BT709 if index.height >= _HD_HEIGHT else _MATRIX_BT601
    if settings.encoder == "mjpeg":  # JPEG knows no other kind of YUV
        taken_for = source_range or _LIMITED_RANGE
        return Picture(index.width, index.height, target, _FULL_RANGE, _MATRIX_BT601, taken_for)
    if settings.encoder in _LIMITED_ONLY:
        color_range = min(color_range, _LIMITED_RANGE)
    if settings.encoder == "libvpx":  # VP8 knows no other
        colorspace = _MATRIX_BT601
    return Picture(index.width, index.height, target, color_range, colorspace)


def whole_picture(index: SourceIndex) -> Picture:
    """Pictures as the index says that they are."""
    return Picture(index.width, index.height, index.pix_fmt, index.color_range, index.colorspace)


def _for_players(index: SourceIndex, settings: VideoSettings) -> bool:
    """Whether RGB becomes 4:2:0 unasked. Not where the size is odd, and not where nothing is to be lost."""
    lossless = settings.crf == 0 and settings.encoder != "libvpx-vp9"
    lossless = lossless or settings.options.get("qp") == "0" or settings.options.get("lossless") == "1"
    listed = ":".join(settings.options.get(name, "") for name in LIST_OPTIONS).split(":")
    lossless = lossless or "lossless=1" in listed or "qp=0" in listed
    even = index.width % 2 == 0 and index.height % 2 == 0
    return settings.encoder in PLAYED_AS_420 and even and not lossless


def conform(frame: av.VideoFrame, picture: Picture) -> av.VideoFrame:
    """The frame as ``picture`` wants it; the same object if it fits already. One thread, exact rounding."""
    source, source_range = _without_j(frame.format.name, frame.color_range)
    source_range = source_range or picture.source_range
    same_size = (frame.width, frame.height) == (picture.width, picture.height)
    same_range = (
        source_range == picture.color_range or is_rgb(source) or 0 in (source_range, picture.color_range)
    )
    same_matrix = is_rgb(source) or _is_same_matrix(frame.colorspace, picture.colorspace)
    if same_size and frame.format.name == picture.pix_fmt and same_range and same_matrix:
        return frame
    rgb_in, rgb_out = is_rgb(source), is_rgb(picture.pix_fmt)
    matrix_in = picture.colorspace if rgb_in else frame.colorspace
    matrix_out = frame.colorspace if rgb_out else picture.colorspace
    return frame.reformat(
        width=picture.width,
        height=picture.height,
        format=picture.pix_fmt,
        src_colorspace=_SWSCALE_MATRIX.get(matrix_in, Colorspace.ITU601),
        dst_colorspace=_SWSCALE_MATRIX.get(matrix_out, Colorspace.ITU601),
        src_color_range=_range(source_range, rgb_in),
        dst_color_range=_range(picture.color_range or source_range, rgb_out),
        interpolation=EXACT_SCALING,
        threads=1,
    )


def tag(frame: av.VideoFrame, picture: Picture, index: SourceIndex) -> None:
    """Say of a frame what the encoder was told of all, for encoders that go by each (ProRes)."""
    frame.color_range = picture.color_range
    frame.colorspace = picture.colorspace
    frame.color_primaries = index.color_primaries
    frame.color_trc = index.color_trc


def _keep_fields(context: av.VideoCodecContext, index: SourceIndex) -> None:
    """Have the pictures of an interlaced source marked as such, by an encoder that can."""
    if index.field_order <= _PROGRESSIVE or context.codec.name not in _INTERLACING:
        return
    if context.codec.name == "libx264" and context.height % 4:
        return  # which it refuses; the mark is lost, and that is said
    context.field_order = _TOP_FIRST if index.field_order in _TOP_FIRST_ORDERS else _BOTTOM_FIRST
    if context.codec.name != "ffv1":
        context.flags |= Flags.interlaced_dct
    if context.codec.name in ("libx264", "mpeg2video", "mpeg4"):
        context.flags |= Flags.interlaced_me


def build_identity(burn: BurnSettings | None = None) -> str:
    """PyAV, FFmpeg's libraries and the processor's architecture: what a part's bytes depend on beside the
    input and the settings; and Pillow, where text is to be burnt in."""
    libraries = " ".join(
        f"{name}-{'.'.join(map(str, version))}"
        for name, version in sorted(av.library_versions.items())
        if name in ("libavcodec", "libavformat", "libavutil", "libswscale")
    )
    build = f"PyAV-{av.__version__} FFmpeg-{av.ffmpeg_version_info} {libraries} {platform.machine().lower()}"
    if burn is None or not burn.lines:
        return build
    from farm.media.letters import drawing_identity  # only then is Pillow loaded

    return f"{build} {drawing_identity()}"


def codec_of(name: str) -> av.Codec:
    try:
        codec = av.Codec(name, "w")
    except (av.codec.codec.UnknownCodecError, av.error.FFmpegError, ValueError):
        close = difflib.get_close_matches(name, _video_encoders(), n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise UsageError(f"there is no encoder {name!r} in this build{hint}") from None
    if codec.type != "video":
        raise UsageError(f"{name} encodes {codec.type}, not video")
    return codec


def _video_encoders() -> list[str]:
    found = []
    for name in sorted(av.codecs_available):
        with suppress(av.codec.codec.UnknownCodecError, av.error.FFmpegError, ValueError):
            if av.Codec(name, "w").type == "video":
                found.append(name)
    return found


def _options(context: av.VideoCodecContext, index: SourceIndex, settings: VideoSettings) -> dict[str, str]:
    known = {option.name for option in context.supported_options.private}
    options: dict[str, str] = {}
    if settings.crf is not None:
        if "crf" not in known:
            lossless = codec_of(settings.encoder).lossless and not codec_of(settings.encoder).lossy
            advice = "it loses nothing" if lossless else "set its quality with --option name=value"
            if settings.encoder == "mjpeg":
                advice = (
                    "--option qmin=N --option qmax=N sets its quality, 2 (the best, and the default) to 31"
                )
            raise UsageError(f"{settings.encoder} has no --crf; {advice}")
        options["crf"] = f"{settings.crf:g}"
    if settings.preset is not None:
        if "preset" not in known:
            raise UsageError(f"{settings.encoder} has no --preset; set its speed with --option name=value")
        options["preset"] = settings.preset
    if settings.encoder == "mjpeg" and not settings.options.keys() & _JPEG_QUALITY:
        options |= dict.fromkeys(("qmin", "qmax"), _JPEG_QUANTISER)
    if settings.encoder == "dnxhd" and not settings.options.keys() & _DNXHD_PROFILE:
        options["profile"] = _dnxhr_profile(choose_picture(index, settings).pix_fmt)
    for name in LIST_OPTIONS:
        if name in known:
            options[name] = ":".join([*pinned(name, settings.threads), *hdr_options(name, index)])
    for name, value in settings.options.items():
        ours = options.get(name) if name in LIST_OPTIONS else None
        options[name] = f"{ours}:{value}" if ours else value
    return {name: value for name, value in options.items() if value}


def _dnxhr_profile(pix_fmt: str) -> str:
    """DNxHR, which takes any size and rate; DNxHD proper takes few, and asks for a bitrate with each."""
    if "444" in pix_fmt or pix_fmt.startswith("gbr"):
        return "dnxhr_444"
    return "dnxhr_hqx" if "10" in pix_fmt else "dnxhr_hq"


def pinned(name: str, threads: int) -> list[str]:
    """What an encoder would take from the machine, and with it change the bytes."""
    if name == "x264-params":
        # Measured: its AVX-512 code for macroblock trees reads memory nobody wrote, so that one run in forty
        # gave other bytes. With AVX2 it gives what SSE4.2 and AVX give, whatever the memory holds.
        return ["asm=AVX2"] if _x264_uses_avx512() else []
    if name == "x265-params":
        # Frame threads follow the cores, and a comment in the stream tells the processor's features.
        return [f"frame-threads={min(threads, 16)}", f"pools={threads}", "info=0", "log-level=warning"]
    if name == "svtav1-params":
        return [f"lp={min(threads, 6)}"]
    return []


@functools.cache
def _x264_uses_avx512() -> bool:
    """x264 itself is asked: it alone knows what it finds in the processor and has code for."""

    def open_smallest() -> None:
        context = av.Codec("libx264", "w").create("video")
        context.width = context.height = 16
        context.pix_fmt, context.time_base, context.thread_count = "yuv420p", Fraction(1, 25), 1
        context.open()

    return any("AVX512" in line for line in heard(open_smallest, av.logging.INFO))


def _check_opened(context: av.VideoCodecContext, settings: VideoSettings) -> None:
    if context.options:
        raise UsageError(f"{settings.encoder} has no option {', '.join(sorted(context.options))}")
    if not context.flags & Flags.global_header:
        raise UsageError("--option flags=… must begin with + or -, for it would drop flags that are needed")


def refusal(settings: VideoSettings, words: str) -> str:
    """The sentence for what an encoder refuses, with all that was asked of it."""
    asked = [f"--crf {settings.crf:g}"] if settings.crf is not None else []
    asked += [f"--preset {settings.preset}"] if settings.preset is not None else []
    asked += [f"--pix-fmt {settings.pix_fmt}"] if settings.pix_fmt is not None else []
    asked += [f"--option {name}={value}" for name, value in settings.options.items()]
    hint = "; --pix-fmt yuv444p takes any size" if "not divisible" in words else ""
    return f"{settings.encoder} refuses {' '.join(asked) or 'this video'}: {words}{hint}"


def frame_rate(index: SourceIndex, settings: VideoSettings) -> Fraction:
    """A hint for rate control and for encoders that need one; frames carry their own times."""
    span = (index.pts[-1] - index.pts[0]) * Fraction(*index.time_base)
    rate = Fraction(index.frames - 1) / span if span > 0 else Fraction(25)
    if index.frame_rate is not None and index.frame_rate[0] > 0:
        rate = Fraction(*index.frame_rate)
    return min(rate, Fraction(_FRAME_RATE_MAX.get(settings.encoder, 1_000_000)))


def _is_same_matrix(first: int, second: int) -> bool:
    """Whether there is nothing to convert, or nothing known to convert by."""
    known = (*_SWSCALE_MATRIX, *_MATRICES_BT601)
    if first not in known or second not in known:
        return True
    return _SWSCALE_MATRIX.get(first) == _SWSCALE_MATRIX.get(second)


def _without_j(pix_fmt: str, color_range: int) -> tuple[str, int]:
    return (f"yuv{pix_fmt[4:]}", _FULL_RANGE) if pix_fmt.startswith("yuvj") else (pix_fmt, color_range)


def _range(color_range: int, is_rgb: bool) -> int:
    if is_rgb:
        return ColorRange.JPEG
    return color_range or ColorRange.MPEG


def is_rgb(pix_fmt: str) -> bool:
    return av.VideoFormat(pix_fmt).is_rgb or pix_fmt == "pal8"


def has_alpha(pix_fmt: str) -> bool:
    return pix_fmt == "pal8" or any(part.is_alpha for part in _components(pix_fmt))


def _components(pix_fmt: str) -> tuple[VideoFormatComponent, ...]:
    return av.VideoFormat(pix_fmt).components
