"""The options of the filters that are offered, in FFmpeg's order, an alias behind its option and a ``/``:
which one a value without a name is for, and what each is called in full.

From the option tables of FFmpeg 8.1's libavfilter.
"""

OPTION_NAMES = {
    "alphaextract": "",
    "alphamerge": "eof_action shortest repeatlast ts_sync_mode",
    "amplify": "radius factor threshold tolerance low high planes",
    "atadenoise": "0a 0b 1a 1b 2a 2b s p a 0s 1s 2s",
    "avgblur": "sizeX planes sizeY",
    "backgroundkey": "threshold similarity blend",
    "bilateral": "sigmaS sigmaR planes",
    "bitplanenoise": "bitplane filter",
    "blend": (
        "c0_mode c1_mode c2_mode c3_mode all_mode c0_expr c1_expr c2_expr c3_expr all_expr "
        "c0_opacity c1_opacity c2_opacity c3_opacity all_opacity eof_action shortest repeatlast "
        "ts_sync_mode"
    ),
    "bm3d": "sigma block bstep group range mstep thmse hdthr estim ref planes",
    "bwdif": "mode parity deint",
    "cas": "strength planes",
    "chromahold": "color similarity blend yuv",
    "chromakey": "color similarity blend yuv",
    "chromanr": "thres sizew sizeh stepw steph threy threu threv distance",
    "chromashift": "cbh cbv crh crv edge",
    "ciescope": "system cie gamuts size/s intensity/i contrast corrgamma showwhite gamma fill",
    "colorbalance": "rs gs bs rm gm bm rh gh bh pl",
    "colorchannelmixer": "rr rg rb ra gr gg gb ga br bg bb ba ar ag ab aa pc pa",
    "colorcontrast": "rc gm by rcw gmw byw pl",
    "colorcorrect": "rl bl rh bh saturation analyze",
    "colorhold": "color similarity blend",
    "colorize": "hue saturation lightness mix",
    "colorkey": "color similarity blend",
    "colorlevels": (
        "rimin gimin bimin aimin rimax gimax bimax aimax romin gomin bomin aomin romax gomax bomax "
        "aomax preserve"
    ),
    "colorspace": (
        "all space range primaries trc format fast dither wpadapt clipgamut iall ispace irange "
        "iprimaries itrc"
    ),
    "colortemperature": "temperature mix pl",
    "convolution": "0m 1m 2m 3m 0rdiv 1rdiv 2rdiv 3rdiv 0bias 1bias 2bias 3bias 0mode 1mode 2mode 3mode",
    "copy": "",
    "crop": "out_w/w out_h/h x y keep_aspect exact",
    "curves": "preset master/m red/r green/g blue/b all psfile plot interp",
    "datascope": "size/s x y mode axis opacity format components",
    "dblur": "angle radius planes",
    "dctdnoiz": "sigma/s overlap expr/e n",
    "deband": "1thr 2thr 3thr 4thr range/r direction/d blur/b coupling/c",
    "deblock": "filter block alpha beta gamma delta planes",
    "decimate": "cycle dupthresh scthresh blockx blocky ppsrc chroma mixed",
    "dedot": "m lt tl tc ct",
    "deflate": "threshold0 threshold1 threshold2 threshold3",
    "deflicker": "size/s mode/m bypass",
    "dejudder": "cycle",
    "deshake": "x y w h rx ry edge blocksize contrast search filename opencl",
    "despill": "type mix expand red green blue brightness alpha",
    "detelecine": "first_field pattern start_frame",
    "dilation": "coordinates threshold0 threshold1 threshold2 threshold3",
    "displace": "edge eof_action shortest repeatlast ts_sync_mode",
    "doubleweave": "first_field",
    "drawbox": "x y width/w height/h color/c thickness/t replace box_source",
    "drawgrid": "x y width/w height/h color/c thickness/t replace",
    "edgedetect": "high low mode planes",
    "elbg": "codebook_length/l nb_steps/n seed/s pal8 use_alpha",
    "epx": "n",
    "erosion": "coordinates threshold0 threshold1 threshold2 threshold3",
    "estdif": "mode parity deint rslope redge ecost mcost dcost interp",
    "exposure": "exposure black",
    "fade": "type/t start_frame/s nb_frames/n alpha start_time/st duration/d color/c",
    "fftdnoiz": "sigma amount block overlap method prev next planes window",
    "fftfilt": "dc_Y dc_U dc_V weight_Y weight_U weight_V eval",
    "field": "type",
    "fieldmatch": (
        "order mode ppsrc field mchroma y0 y1 scthresh combmatch combdbg cthresh chroma blockx blocky combpel"
    ),
    "fieldorder": "order",
    "fillborders": "left right top bottom mode color",
    "floodfill": "x y s0 s1 s2 s3 d0 d1 d2 d3",
    "format": "pix_fmts color_spaces color_ranges alpha_modes",
    "fps": "fps start_time round eof_action",
    "framerate": "fps interp_start interp_end scene flags",
    "framestep": "step",
    "gblur": "sigma steps planes sigmaV",
    "geq": (
        "lum_expr/lum cb_expr/cb cr_expr/cr alpha_expr/a red_expr/r green_expr/g blue_expr/b interpolation/i"
    ),
    "gradfun": "strength radius",
    "grayworld": "",
    "greyedge": "difford minknorm sigma",
    "guided": "radius eps mode sub guidance planes",
    "haldclut": "clut interp eof_action shortest repeatlast ts_sync_mode",
    "hflip": "",
    "histogram": (
        "level_height scale_height display_mode/d levels_mode/m components/c fgopacity/f "
        "bgopacity/b colors_mode/l"
    ),
    "hqx": "n",
    "hstack": "inputs shortest",
    "hsvhold": "hue sat val similarity blend",
    "hsvkey": "hue sat val similarity blend",
    "hue": "h s H b",
    "huesaturation": "hue saturation intensity colors strength rw gw bw lightness",
    "il": "luma_mode/l chroma_mode/c alpha_mode/a luma_swap/ls chroma_swap/cs alpha_swap/as",
    "inflate": "threshold0 threshold1 threshold2 threshold3",
    "kirsch": "planes scale delta",
    "lagfun": "decay planes",
    "lenscorrection": "cx cy k1 k2 i fc",
    "limiter": "min max planes",
    "loop": "loop size start time",
    "lumakey": "threshold tolerance softness",
    "lut": "c0/y/r c1/u/g c2/v/b c3/a",
    "lut1d": "file interp",
    "lut2": "c0 c1 c2 c3 d eof_action shortest repeatlast ts_sync_mode",
    "lut3d": "file clut interp",
    "lutrgb": "c0/y/r c1/u/g c2/v/b c3/a",
    "lutyuv": "c0/y/r c1/u/g c2/v/b c3/a",
    "maskedclamp": "undershoot overshoot planes eof_action shortest repeatlast ts_sync_mode",
    "maskedmax": "planes eof_action shortest repeatlast ts_sync_mode",
    "maskedmerge": "planes eof_action shortest repeatlast ts_sync_mode",
    "maskedmin": "planes eof_action shortest repeatlast ts_sync_mode",
    "maskfun": "low high planes fill sum",
    "median": "radius planes radiusV percentile",
    "midequalizer": "planes eof_action shortest repeatlast ts_sync_mode",
    "minterpolate": "fps mi_mode mc_mode me_mode me mb_size search_param vsbmc scd scd_threshold",
    "mix": "inputs weights scale planes duration",
    "monochrome": "cb cr size high",
    "movie": (
        "filename format_name/f stream_index/si seek_point/sp streams/s loop discontinuity "
        "dec_threads format_opts"
    ),
    "multiply": "scale offset planes eof_action shortest repeatlast ts_sync_mode",
    "negate": "components negate_alpha",
    "nlmeans": "s p pc r rc",
    "noformat": "pix_fmts color_spaces color_ranges alpha_modes",
    "noise": (
        "all_seed all_strength/alls all_flags/allf c0_seed c0_strength/c0s c0_flags/c0f c1_seed "
        "c1_strength/c1s c1_flags/c1f c2_seed c2_strength/c2s c2_flags/c2f c3_seed c3_strength/c3s "
        "c3_flags/c3f"
    ),
    "normalize": "blackpt whitept smoothing independence strength",
    "null": "",
    "oscilloscope": "x y s t o tx ty tw th c g st sc",
    "overlay": "x y eof_action eval shortest format repeatlast alpha ts_sync_mode",
    "pad": "width/w height/h x y color eval aspect",
    "photosensitivity": "frames/f threshold/t skip bypass",
    "pixelize": "width/w height/h mode/m planes/p",
    "premultiply": "planes inplace",
    "prewitt": "planes scale delta",
    "pseudocolor": "c0 c1 c2 c3 index/i preset/p opacity",
    "random": "frames seed",
    "removegrain": "m0 m1 m2 m3",
    "removelogo": "filename/f",
    "rgbashift": "rh rv gh gv bh bv ah av edge",
    "roberts": "planes scale delta",
    "rotate": "angle/a out_w/ow out_h/oh fillcolor/c bilinear",
    "scale": (
        "w/width h/height flags interl size/s in_color_matrix out_color_matrix in_range out_range "
        "in_chroma_loc out_chroma_loc in_primaries out_primaries in_transfer out_transfer "
        "in_v_chr_pos in_h_chr_pos out_v_chr_pos out_h_chr_pos force_original_aspect_ratio "
        "force_divisible_by reset_sar param0 param1 eval"
    ),
    "scharr": "planes scale delta",
    "scroll": "horizontal/h vertical/v hpos vpos",
    "select": "expr/e outputs/n",
    "selectivecolor": (
        "correction_method reds yellows greens cyans blues magentas whites neutrals blacks psfile"
    ),
    "separatefields": "",
    "setdar": "dar/ratio/r max",
    "setfield": "mode",
    "setparams": "field_mode range color_primaries color_trc colorspace chroma_location alpha_mode",
    "setpts": "expr strip_fps",
    "setrange": "range",
    "setsar": "sar/ratio/r max",
    "shear": "shx shy fillcolor/c interp",
    "shuffleframes": "mapping",
    "shufflepixels": "direction/d mode/m width/w height/h seed/s",
    "shuffleplanes": "map0 map1 map2 map3",
    "sobel": "planes scale delta",
    "split": "outputs",
    "swaprect": "w h x1 y1 x2 y2",
    "swapuv": "",
    "tblend": (
        "c0_mode c1_mode c2_mode c3_mode all_mode c0_expr c1_expr c2_expr c3_expr all_expr "
        "c0_opacity c1_opacity c2_opacity c3_opacity all_opacity"
    ),
    "telecine": "first_field pattern",
    "thistogram": (
        "width/w display_mode/d levels_mode/m components/c bgopacity/b envelope/e ecolor/ec slide"
    ),
    "thumbnail": "n log",
    "tile": "layout nb_frames margin padding color overlap init_padding",
    "tiltandshift": "tilt start end hold pad",
    "tlut2": "c0 c1 c2 c3",
    "tmedian": "radius planes percentile",
    "tmidequalizer": "radius sigma planes",
    "tmix": "frames weights scale planes",
    "tonemap": "tonemap param desat peak",
    "tpad": "start stop start_mode stop_mode start_duration stop_duration color",
    "transpose": "dir passthrough",
    "trim": "start/starti end/endi start_pts end_pts duration/durationi start_frame end_frame",
    "unpremultiply": "planes inplace",
    "unsharp": (
        "luma_msize_x/lx luma_msize_y/ly luma_amount/la chroma_msize_x/cx chroma_msize_y/cy "
        "chroma_amount/ca alpha_msize_x/ax alpha_msize_y/ay alpha_amount/aa"
    ),
    "untile": "layout",
    "v360": (
        "input output interp w h in_stereo out_stereo in_forder out_forder in_frot out_frot in_pad "
        "out_pad fin_pad fout_pad yaw pitch roll rorder h_fov v_fov d_fov h_flip v_flip d_flip "
        "ih_flip iv_flip in_trans out_trans ih_fov iv_fov id_fov h_offset v_offset alpha_mask "
        "reset_rot"
    ),
    "varblur": "min_r max_r planes eof_action shortest repeatlast ts_sync_mode",
    "vectorscope": (
        "mode/m x y intensity/i envelope/e graticule/g opacity/o flags/f bgopacity/b lthreshold/l "
        "hthreshold/h colorspace/c tint0/t0 tint1/t1"
    ),
    "vflip": "",
    "vibrance": "intensity rbal gbal bbal rlum glum blum alternate",
    "vignette": "angle/a x0 y0 mode eval dither aspect",
    "vstack": "inputs shortest",
    "w3fdif": "filter mode parity deint",
    "waveform": (
        "mode/m intensity/i mirror/r display/d components/c envelope/e filter/f graticule/g "
        "opacity/o flags/fl scale/s bgopacity/b tint0/t0 tint1/t1 fitmode/fm input"
    ),
    "weave": "first_field",
    "xbr": "n",
    "xmedian": "inputs planes percentile eof_action shortest repeatlast ts_sync_mode",
    "xstack": "inputs layout grid shortest fill",
    "yadif": "mode parity deint",
    "yaepblur": "radius/r planes/p sigma/s",
    "zoompan": "zoom/z x y d s fps",
}
