"""The filters that are offered, and what is said of the others. Tested, not guessed: scripts/filters_doc.py
renders every one of them by parts and compares it with one pass, and tests/filters/ does so for some.

A filter that isn't here is refused: that nobody has tried it says nothing good of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from farm.filters.offer import Offer, Options, Rule, number, only, unless_absent

_SEED = {"seed": "without seed= it gives other pictures every time"}
_BEFORE = "it goes by all frames before"
_OTHER_FRAMES = "other frames come out than go in"
_FIELDS = "a frame becomes two"

#: A frame by itself decides what becomes of it.
_ALONE = """
    alphaextract avgblur bilateral bitplanenoise bm3d cas chromahold chromakey chromanr chromashift ciescope
    colorbalance colorchannelmixer colorcontrast colorcorrect colorhold colorize colorkey colorlevels
    colorspace colortemperature convolution copy crop datascope dblur dctdnoiz deband deblock deflate despill
    dilation drawbox drawgrid edgedetect epx erosion exposure fftfilt field fieldorder fillborders floodfill
    format gblur geq gradfun grayworld greyedge hflip histogram hqx hsvhold hsvkey hue huesaturation il
    inflate kirsch lenscorrection limiter lumakey lut lutrgb lutyuv maskfun median monochrome negate nlmeans
    noformat null pixelize prewitt pseudocolor removegrain rgbashift roberts rotate scharr selectivecolor
    setdar setfield setparams setrange setsar shear shuffleplanes sobel swaprect swapuv tonemap transpose
    unsharp v360 vflip vibrance xbr yaepblur
"""

#: Of several inputs, which an image that stays can be (movie=), or the film itself (split).
_JOINED = {
    "alphamerge": 2,
    "blend": 2,
    "displace": 3,
    "haldclut": 2,
    "maskedclamp": 3,
    "maskedmax": 3,
    "maskedmerge": 3,
    "maskedmin": 3,
    "midequalizer": 2,
    "multiply": 2,
    "overlay": 2,
    "varblur": 2,
}
_STACKS = ("hstack", "vstack", "xstack", "xmedian", "mix")

#: What happens where an input ends: with anything but the default, frames of parts would be others.
_ENDING = "the film is to end with one of its inputs"
_STAYING: tuple[Rule, ...] = (
    only("eof_action", "repeat 0", "repeat", "its second input is to end before the film"),
    only("shortest", "0 false", "0", _ENDING),
    only("repeatlast", "1 true", "1", "its second input is not to stay"),
    only("ts_sync_mode", "default 0", "default", "frames are paired by what comes next"),
)

#: For the whole film only: as many frames as before at the same times; or others.
_WHOLE = {
    "backgroundkey": _BEFORE,
    "fieldmatch": "it pairs fields by what went before",
    "lagfun": _BEFORE,
    "oscilloscope": _BEFORE,
    "photosensitivity": _BEFORE,
    "scroll": "how far it has scrolled hangs on the frames before",
    "thistogram": _BEFORE,
}
_RETIMING = {
    "amplify": "it gives none for the first and the last frames",
    "decimate": "it leaves frames out by what is in them",
    "dejudder": "it moves the times of frames",
    "detelecine": _OTHER_FRAMES,
    "doubleweave": "it gives none for the first frame",
    "framerate": _OTHER_FRAMES,
    "framestep": _OTHER_FRAMES,
    "loop": _OTHER_FRAMES,
    "minterpolate": _OTHER_FRAMES,
    "select": "it leaves frames out",
    "separatefields": _FIELDS,
    "setpts": "it moves the times of frames",
    "shuffleframes": "it moves frames",
    "tblend": "it gives none for the first frame",
    "telecine": _OTHER_FRAMES,
    "thumbnail": "it leaves frames out by what is in them",
    "tile": "it makes one frame of several",
    "tiltandshift": _BEFORE,
    "tlut2": "it gives none for the first frame",
    "tmedian": "it gives none for the first and the last frames",
    "tpad": _OTHER_FRAMES,
    "trim": _OTHER_FRAMES,
    "untile": "it makes several frames of one",
    "weave": "it makes one frame of two",
    "zoompan": "it counts frames",
}


def _doubles(name: str, default: str) -> tuple[Rule, Rule]:
    """For a deinterlacer: why it is for the whole film, and whether it changes frames."""
    single = "send_frame frame 0 send_frame_nospatial 2"
    return only("mode", single, default, _FIELDS), only("mode", single, default, _FIELDS)


def _deinterlacer(name: str, default: str, before: int, after: int) -> Offer:
    why, retimes = _doubles(name, default)
    return Offer(name, before=before, after=after, rules=(why,), retimes=retimes)


def _fade_counts(options: Options) -> str:
    return "" if "duration" in options else "without d= it counts frames"


def _dither(options: Options) -> str:
    return (
        ""
        if options.get("dither", "1") in ("0", "false")
        else "its dither goes on from frame to frame, which dither=0 ends"
    )


def _noise_moves(options: Options) -> str:
    for name, value in options.items():
        if name.endswith("_flags") and not set(value.split("+")) <= {"", "u", "p"}:
            return "its noise goes on from frame to frame"
    return ""


def _clock(options: Options) -> str:
    return "it reads the clock" if "RTC" in options.get("expr", "") else ""


def _offers() -> Iterator[Offer]:
    for name in _ALONE.split():
        yield Offer(name)
    for name, several in _JOINED.items():
        yield Offer(name, inputs=several, rules=_STAYING)
    for name in _STACKS:
        inputs = number("inputs", 3 if name == "xmedian" else 2)
        yield Offer(name, inputs=inputs, rules=(*_STAYING, only("duration", "longest 0", "longest", _ENDING)))
    for name, why in _WHOLE.items():
        yield Offer(name, whole=why)
    for name, why in _RETIMING.items():
        yield Offer(name, whole=why, retimes=True, never=(_clock,))
    yield _deinterlacer("yadif", "send_frame", 1, 1)
    yield _deinterlacer("bwdif", "send_field", 1, 1)
    yield _deinterlacer("w3fdif", "field", 1, 0)
    yield _deinterlacer("estdif", "field", 0, 0)
    around = number("s", 9)
    yield Offer("atadenoise", before=lambda o: around(o) // 2, after=lambda o: around(o) // 2)
    yield Offer("dedot", before=2, after=2)
    size = number("size", 5)
    yield Offer("deflicker", before=lambda o: size(o) - 1, after=lambda o: size(o) - 1)
    yield Offer("fftdnoiz", before=number("prev", 0), after=number("next", 0))
    yield Offer("normalize", before=number("smoothing", 0))
    yield Offer("tmidequalizer", before=number("radius", 5), after=number("radius", 5))
    frames = number("frames", 3)
    yield Offer("tmix", before=lambda o: frames(o) - 1)
    yield Offer("curves", files=("psfile",), forbidden={"plot": "it would write a file"})
    counting = unless_absent("start_frame nb_frames", "counts frames, which st= and d= don't")
    yield Offer("fade", rules=(counting, _fade_counts))
    peaks = only("envelope", "none 0 instant 1", "none", "it keeps the peaks of the frames before")
    yield Offer("vectorscope", rules=(peaks,))
    yield Offer("waveform", rules=(peaks,))
    depth = {"d": "FFmpeg ends itself over depths that it doesn't expect"}
    yield Offer("lut2", inputs=2, rules=_STAYING, forbidden=depth)
    yield Offer("guided", rules=(only("guidance", "off 0", "off", "it takes a second input"),))
    yield Offer("lut1d", files=("file",))
    yield Offer("lut3d", files=("file",))
    yield Offer("removelogo", files=("filename",))
    yield Offer("noise", rules=(_noise_moves,))
    yield Offer("vignette", rules=(_dither,))
    for name in ("premultiply", "unpremultiply"):
        yield Offer(name, required={"inplace": "give inplace=1"})
    changing = {"eval": "the pictures of a film have one size"}
    yield Offer("scale", forbidden=changing)
    yield Offer("pad", forbidden=changing)
    yield Offer("shufflepixels", required=_SEED)
    yield Offer("elbg", whole=_BEFORE, required=_SEED)
    yield Offer("random", whole="it draws from the frames before", retimes=True, required=_SEED)
    yield Offer("deshake", whole=_BEFORE, forbidden={"filename": "it would write a file"})
    yield Offer("fps", whole="other frames come out than go in, which --fps does by parts", retimes=True)
    yield Offer("split", outputs=number("outputs", 2))
    once = "an image is shown for as long as the film lasts"
    yield Offer(
        "movie",
        inputs=0,
        files=("filename",),
        required={"filename": "give the image's name"},
        forbidden=dict.fromkeys(("loop", "seek_point", "discontinuity", "streams"), once),
    )


OFFERS = {offer.name: offer for offer in _offers()}

_MEASURING = """
    bbox bench blackdetect blockdetect blurdetect colordetect corr entropy freezedetect identity idet metadata
    msad psnr readeia608 readvitc scdet showinfo sidedata signalstats siti ssim vfrdet vif vmafmotion xpsnr
"""
_OF_A_MACHINE = "graphmonitor hwdownload hwmap hwupload hwupload_cuda realtime"
_SOURCES = """
    allrgb allyuv cellauto color colorspectrum gradients haldclutsrc life mandelbrot nullsrc pal100bars
    pal75bars rgbtestsrc sierpinski smptebars smptehdbars testsrc testsrc2 yuvtestsrc
"""

_SOUND = """
    acompressor adelay aecho afade aformat alimiter amerge amix anull apad aresample asetpts asetrate atempo
    atrim bass channelmap dynaudnorm equalizer highpass loudnorm lowpass pan silenceremove treble volume
"""

#: Why some of what FFmpeg has is not offered.
REFUSED = {
    **dict.fromkeys(_SOUND.split(), "it is for sound, and these filters are for pictures"),
    **dict.fromkeys(_MEASURING.split(), "it measures, and changes no picture"),
    **dict.fromkeys(_OF_A_MACHINE.split(), "it hangs on the machine it runs on"),
    **dict.fromkeys(
        _SOURCES.split(),
        "what it shows goes on without the film; movie= shows an image, pad and drawbox a colour",
    ),
    "reverse": "it holds the whole film in memory",
    "concat": "it joins films; give each a run of its own",
    "xfade": "it joins films; give each a run of its own",
    "sendcmd": "it changes filters in mid-film",
    "zmq": "it changes filters in mid-film",
    "palettegen": "it gives one frame for the whole film",
    "paletteuse": "it needs palettegen, which gives one frame for the whole film",
    "scale2ref": "use scale with expressions of the sizes",
}

#: What a build with all of FFmpeg's filters would have, and what would do here.
MISSING = {
    "drawtext": "--burn-text and --burn-timecode draw text",
    "subtitles": "--burn-text draws text; subtitles are taken along as a stream",
    "ass": "--burn-text draws text; subtitles are taken along as a stream",
    "eq": "lutyuv, colorlevels, exposure or hue do what it does",
    "hqdn3d": "nlmeans, atadenoise, bm3d or fftdnoiz take noise away",
    "boxblur": "avgblur or gblur blur",
    "smartblur": "bilateral or unsharp do what it does",
    "sab": "bilateral does what it does",
    "zscale": "scale, colorspace and tonemap do what it does",
    "libplacebo": "scale, colorspace and tonemap do what it does",
    "colormatrix": "colorspace, or scale with in_color_matrix= and out_color_matrix=, does what it does",
    "delogo": "removelogo takes a logo away, drawbox covers it",
    "cropdetect": "it only measures: give crop the figures",
    "blackframe": "it only measures, and changes no picture",
    "mpdecimate": "decimate with --one-pass leaves frames out",
    "perspective": "lenscorrection, shear and rotate move pixels",
    "pp": "deblock, deband and dedot do what it does",
    "spp": "deblock does what it does",
    "uspp": "deblock does what it does",
    "fspp": "deblock does what it does",
    "stereo3d": "crop with hstack or vstack moves the views",
    "kerndeint": "bwdif=mode=send_frame deinterlaces",
    "nnedi": "bwdif=mode=send_frame deinterlaces",
    "mcdeint": "bwdif=mode=send_frame deinterlaces",
    "pullup": "fieldmatch and decimate with --one-pass undo a telecine",
    "interlace": "weave with --one-pass makes fields into frames",
    "tinterlace": "weave with --one-pass makes fields into frames",
    "repeatfields": "nothing here does what it does",
    "phase": "setfield and fieldorder set the order of fields",
    "owdenoise": "nlmeans or bm3d take noise away",
    "vaguedenoiser": "nlmeans or bm3d take noise away",
    "vidstabdetect": "deshake with --one-pass steadies the picture",
    "vidstabtransform": "deshake with --one-pass steadies the picture",
    "histeq": "normalize or curves do what it does",
    "lensfun": "lenscorrection corrects lenses",
    "super2xsai": "xbr or hqx enlarge",
    "frei0r": "nothing here does what it does",
    "geq_vulkan": "geq does what it does",
}
