"""Graphs to try: for every filter that is offered some with sensible options, and some that people write.

Names of files are those that ``make_files`` makes; the film is 64x48.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

#: Filters that are tried as they are.
_BARE = """
    avgblur bilateral bitplanenoise chromahold chromakey chromanr ciescope colorcontrast colorcorrect colorize
    convolution copy datascope dblur dctdnoiz deband deblock dedot deflate deflicker despill dilation drawgrid
    edgedetect epx erosion exposure fftfilt field fieldmatch fieldorder floodfill gradfun grayworld greyedge
    hflip histogram hqx hsvhold hsvkey inflate kirsch lagfun lenscorrection limiter lumakey lut lutrgb lutyuv
    maskfun median monochrome negate nlmeans noise null oscilloscope photosensitivity pixelize prewitt
    pseudocolor roberts scharr sobel swapuv thistogram tmidequalizer tonemap transpose unsharp vectorscope
    fade vflip vibrance vignette waveform xbr yadif yaepblur backgroundkey atadenoise fftdnoiz tmix normalize
    amplify decimate dejudder detelecine doubleweave framerate minterpolate separatefields tblend telecine
    tmedian weave guided bwdif w3fdif estdif tiltandshift deshake shear
"""

_WITH_OPTIONS = """
    alphaextract : format=yuva420p,alphaextract
    atadenoise : atadenoise=s=7
    bm3d : bm3d=sigma=4:block=16:bstep=8
    bwdif : bwdif=mode=send_frame ; bwdif=send_frame:tff
    cas : cas=0.5
    chromakey : chromakey=green:0.2:0.1,format=yuv420p
    chromashift : chromashift=cbh=3:crv=-2
    colorbalance : colorbalance=rs=.3:bh=-.2
    colorchannelmixer : colorchannelmixer=.3:.4:.3:0:.3:.4:.3:0:.3:.4:.3
    colorhold : colorhold=red:0.2
    colorkey : colorkey=blue:0.3:0.2
    colorlevels : colorlevels=rimin=0.1:gimin=0.1:bimin=0.1:rimax=0.9
    colorspace : colorspace=all=bt709:iall=bt601-6-625
    colortemperature : colortemperature=4000
    crop : crop=32:32 ; crop=32:32:x=2*t ; crop=32:32:x='16+8*sin(t)':y=0
    curves : curves=vintage ; curves=psfile=warm.acv ; curves=r='0/0 0.5/0.6 1/1'
    dejudder : dejudder=4
    drawbox : drawbox=10:10:20:20:red@0.5 ; drawbox=x=4*t:w=10:h=10:color=white:enable='between(t,1,6)'
    drawgrid : drawgrid=16:16:color=white@0.4
    elbg : elbg=16:seed=1
    estdif : estdif=mode=frame
    fade : fade=t=in:d=1 ; fade=t=out:st=9:d=2 ; fade=in:st=3:d=4:c=white ; fade=in:0:30
    fftdnoiz : fftdnoiz=prev=1:next=1
    fftfilt : fftfilt=dc_Y=0:weight_Y='1'
    fillborders : fillborders=4:4:4:4:mirror
    format : format=gray ; format=pix_fmts=yuv444p|yuv422p
    fps : fps=12 ; fps=30000/1001:round=near
    framerate : framerate=50
    framestep : framestep=3
    gblur : gblur=sigma=2
    geq : geq=lum='p(X,Y)+10*T' ; geq=r='r(X,Y)':g='g(X,Y)/2':b='255*X/W' ; geq=lum='p(X,Y)+N'
    guided : guided=radius=3
    hue : hue=h=90*t:s=1.2 ; hue=h=45
    huesaturation : huesaturation=30
    il : il=l=d:c=d
    loop : loop=2:5:start=10
    lut : lut=y=negval
    lut1d : lut1d=file=gamma.cube
    lut3d : lut3d=warm.cube ; lut3d=file=warm.cube:interp=tetrahedral
    lutrgb : lutrgb=r=negval:g=val
    lutyuv : lutyuv=y='val*0.9+5'
    minterpolate : minterpolate=fps=50:mi_mode=blend
    noformat : noformat=gray
    noise : noise=alls=20 ; noise=alls=20:allf=p ; noise=alls=20:allf=t+u
    normalize : normalize=smoothing=5 ; normalize=blackpt=black:whitept=white:smoothing=10
    overlay : movie=logo.png[logo];[in][logo]overlay=W-w-4:4 ; split[a][b];[b]hflip[c];[a][c]overlay=x=4*t
    pad : pad=80:60:8:6 ; pad=iw+8:ih:4:0:color=gray,setsar=1
    premultiply : format=yuva420p,premultiply=inplace=1
    pseudocolor : pseudocolor=preset=heat
    random : random=8:seed=1
    removegrain : removegrain=1
    removelogo : removelogo=mask.png
    rgbashift : rgbashift=rh=2:bv=-1
    rotate : rotate=0.3 ; rotate=t/10:c=black ; rotate=a='PI*t':ow=64:oh=64
    scale : scale=32:-2 ; scale=96:72:flags=lanczos ; scale=w=iw*2:h=ih*2:flags=neighbor ; scale=80x60
    scroll : scroll=0.01
    select : select='not(mod(n,3))' ; select='gt(scene,0.01)'
    selectivecolor : selectivecolor=reds='0 0 0 0.2'
    setdar : setdar=4/3
    setfield : setfield=tff
    setparams : setparams=range=tv:colorspace=bt709
    setpts : setpts=2*PTS ; setpts=PTS+1/TB ; setpts=N/(10*TB)
    setrange : setrange=tv
    setsar : setsar=4/3
    shear : shear=0.2
    shuffleframes : shuffleframes=1 0
    shufflepixels : shufflepixels=seed=3
    shuffleplanes : shuffleplanes=0:2:1
    split : split[a][b];[a][b]vstack ; split=3[a][b][c];[a][b][c]hstack=3
    swaprect : swaprect=16:16:0:0:32:16
    tblend : tblend=all_mode=average
    thumbnail : thumbnail=10
    tile : tile=2x2
    tlut2 : tlut2=c0='(x+y)/2'
    tmedian : tmedian=radius=2
    tmidequalizer : tmidequalizer=radius=2
    tmix : tmix=frames=8 ; tmix=frames=4:weights='1 2 3 4'
    tonemap : format=gbrpf32le,tonemap=hable,format=yuv420p
    tpad : tpad=start=2:stop=3:stop_mode=clone
    transpose : transpose=clock
    trim : trim=start=1:end=5 ; trim=start_frame=10:end_frame=40
    unpremultiply : format=yuva420p,unpremultiply=inplace=1
    untile : untile=2x1
    v360 : v360=e:flat:w=64:h=48
    vectorscope : vectorscope=envelope=peak+instant
    vibrance : vibrance=0.5
    vignette : vignette=dither=0 ; vignette=angle='PI/4+t/50':eval=frame:dither=0
    w3fdif : w3fdif=mode=frame ; w3fdif=filter=simple:mode=frame
    yadif : yadif=deint=interlaced ; yadif=1
    zoompan : zoompan=z='1+0.01*in':d=1:s=64x48:fps=25
    alphamerge : split[a][b];[b]format=gray[m];[a][m]alphamerge
    blend : split[a][b];[b]negate[c];[a][c]blend=all_mode=multiply ;
      split[a][b];[b]hflip[c];[a][c]blend=all_expr='A*min(T/4,1)+B*(1-min(T/4,1))'
    displace : split=3[a][b][c];[a][b][c]displace=edge=mirror
    haldclut : movie=hald.png[h];[in][h]haldclut
    hstack : split[a][b];[b]hflip[c];[a][c]hstack
    vstack : split[a][b];[b]vflip[c];[a][c]vstack
    waveform : waveform=envelope=instant ; waveform=envelope=peak
    xstack : split[a][b];[a][b]xstack=inputs=2:layout=0_0|w0_0
    xmedian : split=3[a][b][c];[b]hflip[d];[c]vflip[e];[a][d][e]xmedian
    mix : split[a][b];[b]hflip[c];[a][c]mix=inputs=2:weights='1 3'
    lut2 : split[a][b];[b]hflip[c];[a][c]lut2=c0='(x+y)/2'
    maskedclamp : split=3[a][b][c];[a][b][c]maskedclamp=undershoot=10
    maskedmax : split=3[a][b][c];[b]hflip[d];[c]vflip[e];[a][d][e]maskedmax
    maskedmerge : split=3[a][b][c];[b]negate[d];[c]hflip[e];[a][d][e]maskedmerge
    maskedmin : split=3[a][b][c];[b]hflip[d];[c]vflip[e];[a][d][e]maskedmin
    midequalizer : split[a][b];[b]negate[c];[a][c]midequalizer
    movie : movie=logo.png,scale=16:16[l];[in][l]overlay=x=4*t ;
      movie=full.png[f];[in][f]blend=all_mode=screen
    multiply : split[a][b];[b]hflip[c];[a][c]multiply
    varblur : split[a][b];[b]format=gray[c];[a]format=gray[d];[d][c]varblur
"""

#: What people write.
_GRAPHS = """
    scale=32:-2,fade=t=in:d=1,fade=t=out:st=10:d=2
    bwdif=mode=send_frame,scale=48:36:flags=lanczos,unsharp
    deflicker,yadif,tmix=frames=3
    crop=48:48,split[a][b];[b]hflip[c];[a][c]hstack,scale=64:-2
    [in]split[bg][fg];[bg]scale=128:96,gblur=10[blurred];[fg]scale=-2:96[main];[blurred][main]overlay=(W-w)/2:0[out]
    format=gbrp,lut3d=warm.cube,format=yuv420p
    drawbox=t=fill:c=black:w=64:h=8,drawbox=t=fill:c=black:y=40:w=64:h=8
"""


def examples() -> dict[str, list[str]]:
    """By filter: graphs that show it."""
    found = {name: [name] for name in _BARE.split()}
    for line in _joined(_WITH_OPTIONS):
        name, _, graphs = line.partition(" : ")
        found[name.strip()] = [*found.get(name.strip(), []), *(g.strip() for g in graphs.split(" ; "))]
    return dict(sorted(found.items()))


def graphs() -> list[str]:
    return _joined(_GRAPHS)


def _joined(text: str) -> list[str]:
    return [line.strip() for line in text.replace(";\n      ", "; ").strip().splitlines()]


def make_files(folder: Path) -> None:
    """Write the files that the graphs name."""
    y, x = np.mgrid[0:48, 0:64]
    full = np.stack([x * 4, y * 5, 255 - x * 3], axis=-1).astype(np.uint8)
    _save(full, folder / "full.png")
    logo = np.zeros((12, 12, 4), np.uint8)
    logo[2:10, 2:10] = (255, 200, 0, 160)
    _save(logo, folder / "logo.png")
    mask = np.zeros((48, 64, 3), np.uint8)
    mask[4:12, 4:20] = 255
    _save(mask, folder / "mask.png")
    step = np.arange(16**3)  # a Hald CLUT of level 4
    hald = np.stack([step % 16 * 17, step // 16 % 16 * 17, step // 256 * 15], axis=-1).astype(np.uint8)
    _save(hald.reshape(64, 64, 3), folder / "hald.png")
    lines = ["LUT_3D_SIZE 2", *(f"{r} {g * 0.9} {b * 0.8}" for b in (0, 1) for g in (0, 1) for r in (0, 1))]
    (folder / "warm.cube").write_text("\n".join(lines) + "\n")
    lines = ["LUT_1D_SIZE 32", *(" ".join([f"{(n / 31) ** 0.8:.6f}"] * 3) for n in range(32))]
    (folder / "gamma.cube").write_text("\n".join(lines) + "\n")
    points = ((0, 0), (140, 128), (255, 255))  # output before input, as Photoshop writes them
    curve = b"".join(v.to_bytes(2, "big") for pair in points for v in pair)
    one = len(points).to_bytes(2, "big") + curve
    (folder / "warm.acv").write_bytes((4).to_bytes(2, "big") + (5).to_bytes(2, "big") + one * 5)


def _save(pixels: npt.NDArray[np.uint8], path: Path) -> None:
    Image.fromarray(pixels).save(path)
