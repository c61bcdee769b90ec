"""How an image file says that it is to be shown: the orientation in its EXIF data, as a display matrix.

FFmpeg's decoders tell it, but PyAV 18.1 hands out nothing of what a picture carries once EXIF data is among
it; then Pillow reads it from the file.
"""

from __future__ import annotations

import io

import av
from PIL import Image

from farm.media.hdr import display_matrix

_ORIENTATION = 0x0112
#: By EXIF's number: signs of the display matrix' first two rows and columns.
_SIGNS = {
    2: (-1, 0, 0, 1),
    3: (-1, 0, 0, -1),
    4: (1, 0, 0, -1),
    5: (0, 1, 1, 0),
    6: (0, 1, -1, 0),
    7: (0, -1, -1, 0),
    8: (0, -1, 1, 0),
}


def image_matrix(frame: av.VideoFrame, data: bytes) -> tuple[int, ...]:
    """The display matrix of the image in ``data``, which was decoded to ``frame``, as in
    ``SourceIndex.display_matrix``; empty if it is upright or says nothing."""
    try:
        len(frame.side_data)
    except ValueError:  # there is EXIF data
        return _matrix(_orientation(data))
    return display_matrix(frame)


def _orientation(data: bytes) -> int:
    try:
        with Image.open(io.BytesIO(data)) as image:
            value = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # Pillow raises many kinds at what is broken, and the picture itself was decoded
        return 1
    return value if isinstance(value, int) else 1


def _matrix(orientation: int) -> tuple[int, ...]:
    signs = _SIGNS.get(orientation)
    if signs is None:
        return ()
    a, b, c, d = (sign << 16 for sign in signs)
    return (a, b, 0, c, d, 0, 0, 0, 1 << 30)
