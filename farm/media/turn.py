"""Pictures turned or mirrored as their display matrix says, for players and encoders that don't heed it.

Only quarter turns and mirror images: those move pixels and change none. The job's index is then that of the
turned pictures; what the source itself says of its size is ``source_size``.
"""

from __future__ import annotations

import av
import msgspec
from av.filter import Graph

from farm.errors import UsageError
from farm.source import SourceIndex

_ONE = 1 << 16
#: Signs of the matrix's first two rows and columns, and what makes the picture upright.
_TURNS = {
    (0, 1, -1, 0): "transpose=clock",
    (0, -1, 1, 0): "transpose=cclock",
    (0, 1, 1, 0): "transpose=cclock_flip",
    (0, -1, -1, 0): "transpose=clock_flip",
    (-1, 0, 0, -1): "hflip,vflip",
    (-1, 0, 0, 1): "hflip",
    (1, 0, 0, -1): "vflip",
}


def turn_index(index: SourceIndex) -> SourceIndex:
    """The index of the upright pictures. Raises UsageError for a matrix that is no quarter turn."""
    if not index.display_matrix:
        return index
    turn = turn_of(index.display_matrix)
    if turn is None:
        raise UsageError(
            f"--rotate apply: {index.path} is to be shown turned or stretched by something else than quarter "
            "turns; --rotate keep leaves that to the player"
        )
    upright = msgspec.structs.replace(index, turn=turn, display_matrix=())
    if not turn.startswith("transpose"):
        return upright
    aspect = index.sample_aspect_ratio
    return msgspec.structs.replace(
        upright,
        width=index.height,
        height=index.width,
        field_order=0,  # what were lines are columns
        sample_aspect_ratio=None if aspect is None else (aspect[1], aspect[0]),
    )


def turn_of(matrix: tuple[int, ...]) -> str | None:
    """The filter that makes a picture with that display matrix upright, empty if it is; None if there is
    none, for it is no quarter turn and no mirror image."""
    if not matrix:
        return ""
    a, b, _, c, d, *_ = matrix
    signs = tuple(value // _ONE if value % _ONE == 0 else 2 for value in (a, b, c, d))
    return _TURNS.get(signs)  # type: ignore[arg-type]


def source_size(index: SourceIndex) -> tuple[int, int]:
    """Width and height of the pictures as they are decoded."""
    size = index.width, index.height
    return size[::-1] if index.turn.startswith("transpose") else size


class Turner:
    """Turns pictures one by one, as an index says or as it is told."""

    def __init__(self, index: SourceIndex | None = None) -> None:
        self._turn = "" if index is None else index.turn
        self._graph: Graph | None = None
        self._shape: tuple[int, int, str, str] | None = None

    def __call__(self, frame: av.VideoFrame) -> av.VideoFrame:
        """The same frame if it is upright."""
        return self.turn(frame, self._turn)

    def turn(self, frame: av.VideoFrame, turn: str) -> av.VideoFrame:
        """The frame turned by that filter; the same frame if there is none."""
        if not turn:
            return frame
        shape = frame.width, frame.height, frame.format.name, turn
        if self._graph is None or shape != self._shape:
            self._graph, self._shape = _graph(frame, turn), shape
        self._graph.push(frame)
        turned = self._graph.pull()
        assert isinstance(turned, av.VideoFrame)
        turned.pts, turned.time_base = frame.pts, frame.time_base
        return turned


def _graph(frame: av.VideoFrame, turn: str) -> Graph:
    graph = Graph()
    graph.threads = 1
    nodes = [
        graph.add(
            "buffer",
            f"video_size={frame.width}x{frame.height}:pix_fmt={frame.format.name}"
            f":time_base={frame.time_base}:pixel_aspect=1/1"
            f":colorspace={int(frame.colorspace)}:range={int(frame.color_range)}",
        )
    ]
    for step in turn.split(","):
        name, _, arguments = step.partition("=")
        nodes.append(graph.add(name, arguments or None))
    graph.link_nodes(*nodes, graph.add("buffersink")).configure()
    return graph
