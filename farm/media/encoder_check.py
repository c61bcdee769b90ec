"""The encoder and the container tried before any work: what they refuse, in their own words, and warnings.

Rules of this file:
- everything an encoder has to say against its options is heard here: it is opened as for a part, given a
  picture, and listened to (farm.media.hearing), for some only log what they don't take;
- what it says also without the user's options is of no use to the user, and is left out.
"""

from __future__ import annotations

import re
from contextlib import suppress

import av
import msgspec

from farm.errors import UsageError
from farm.media.encode import (
    PLAYED_AS_420,
    Picture,
    choose_picture,
    codec_of,
    conform,
    has_alpha,
    is_rgb,
    open_encoder,
    refusal,
)
from farm.media.encoder_rules import rate_warnings, refuse_options
from farm.media.encoderclock import EncoderClock
from farm.media.hearing import heard, words
from farm.settings import VideoSettings
from farm.source import SourceIndex

#: How encoders say that they left out an entry of a list.
_NOT_TAKEN = re.compile(
    r"parsing option|unknown option|invalid value|unable to parse|not recognized|bad (?:option|value)",
    re.IGNORECASE,
)


def check_encoder(index: SourceIndex, settings: VideoSettings) -> list[str]:
    """Try the encoder before any work. Returns warnings, each one sentence.

    Raises UsageError for an unknown encoder, an option, preset or pixel format it refuses (in its own words
    where it has any) or that parts can't have.
    """
    picture = choose_picture(index, settings)
    refuse_options(settings)

    def encode_one(settings: VideoSettings = settings) -> None:
        encoder = open_encoder(index, settings)
        frame = conform(av.VideoFrame(picture.width, picture.height, picture.pix_fmt), picture)
        EncoderClock(index, settings).stamp(frame, 0, 0)
        encoder.encode(frame)
        encoder.encode(None)

    try:
        encode_one()
    except av.error.FFmpegError as error:
        raise UsageError(refusal(settings, words(encode_one, error))) from error
    said = _said_of_options(index, settings)
    # Where no picture depends on another a rate is just a size; but JPEGs are given one that they share.
    alone = codec_of(settings.encoder).intra_only and settings.encoder != "mjpeg"
    rates = [] if alone else rate_warnings(settings)
    return [*_warnings(index, settings, picture), *rates, *said]


def _said_of_options(index: SourceIndex, settings: VideoSettings) -> list[str]:
    """What the encoder warns of and wouldn't without the user's options. Raises UsageError for an entry of a
    list that it only logs not to have taken."""
    if not settings.options:
        return []

    def open_with(settings: VideoSettings) -> None:
        with suppress(UsageError):  # without an option it may be that nothing fits
            open_encoder(index, settings)

    said = heard(lambda: open_with(settings), av.logging.WARNING)
    if not said:
        return []
    without = msgspec.structs.replace(settings, options={})
    anyway = heard(lambda: open_with(without), av.logging.WARNING)
    said = [line for line in said if line not in anyway]
    not_taken = [line for line in said if _NOT_TAKEN.search(line)]
    if not_taken:
        raise UsageError(refusal(settings, not_taken[0]))
    return [f"{settings.encoder} says: {line}" for line in said]


def _warnings(index: SourceIndex, settings: VideoSettings, picture: Picture) -> list[str]:
    warnings = []
    codec = codec_of(settings.encoder)
    known = {option.name for option in codec.create("video").supported_options.private}
    no_quality = codec.lossy and not codec.lossless and not codec.intra_only and "crf" not in known
    if no_quality and not settings.options.keys() & {"b", "qscale", "global_quality", "qmin"}:
        warnings.append(
            f"{settings.encoder} has no --crf, and its default bitrate may be low; --option flags=+qscale "
            "--option global_quality=472 gives one quality throughout (118 a step, 2 to 31 of them)"
        )
    if has_alpha(index.pix_fmt) and not has_alpha(picture.pix_fmt):
        warnings.append(f"transparency is lost: {picture.pix_fmt} has none")
    return [*warnings, *(_for_players(index, settings, picture) or _coarser(index, settings, picture))]


def _coarser(index: SourceIndex, settings: VideoSettings, picture: Picture) -> list[str]:
    """What is lost where an encoder takes no format as fine as the source's; not where one was asked for."""
    if settings.pix_fmt is not None:
        return []
    (bits, colour), (bits_left, colour_left) = _fineness(index.pix_fmt), _fineness(picture.pix_fmt)
    losses = []
    if bits > bits_left:
        losses.append(f"{bits} bits a colour become {bits_left}")
    if colour > colour_left:
        losses.append("colour loses resolution")
    taken = f"{settings.encoder} is given {picture.pix_fmt}, for it takes no {index.pix_fmt}"
    return [f"{taken}: {' and '.join(losses)}"] if losses else []


def _fineness(pix_fmt: str) -> tuple[int, int]:
    """Bits of a colour, and the places within 64x64 pixels that have a colour of their own."""
    components = av.VideoFormat(pix_fmt, 64, 64).components
    if is_rgb(pix_fmt):
        return max(part.bits for part in components), 64 * 64
    colours = [part.width * part.height for part in components if part.is_chroma and not part.is_alpha]
    # PyAV calls colour that isn't subsampled no chroma: it is what has all its places.
    full = 64 * 64 if len([part for part in components if not part.is_alpha]) == 3 else 0
    return max(part.bits for part in components), min(colours, default=full)


def _for_players(index: SourceIndex, settings: VideoSettings, picture: Picture) -> list[str]:
    """What is to be said where RGB, or a filter, makes a kind of H.264 or HEVC that few players know."""
    if settings.pix_fmt is not None or settings.encoder not in PLAYED_AS_420:
        return []
    from_rgb = is_rgb(index.pix_fmt)
    if picture.pix_fmt.startswith("yuv420p"):
        words = f"its RGB becomes {picture.pix_fmt}, for players; --pix-fmt yuv444p keeps all colour"
        return [words] if from_rgb else []
    of_filters = index.filtered is not None and "444" not in index.filtered.source.pix_fmt
    if from_rgb or (of_filters and "444" in picture.pix_fmt):
        return [f"the film has the pixel format {picture.pix_fmt}, which few players show: see --pix-fmt"]
    return []
