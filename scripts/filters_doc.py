"""Makes docs/filters.md: every filter that is offered, by parts of 12, 48 and 250 frames and in one pass.

    python -m scripts.filters_doc                # all: some three minutes on two cores
    python -m scripts.filters_doc tmix scale     # look at these only; the document stays

Exits with 1 if a frame of a part is not, hash by hash, the frame of one pass.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from console.tables import markdown_table
from farm.errors import UsageError
from farm.filters.offers import MISSING, REFUSED
from farm.media.index import index_source
from farm.source import SourceIndex
from tests.filters.compare import differences, settings
from tests.filters.examples import examples, graphs, make_files
from tests.media.clips import make_clip

DOCUMENT = Path(__file__).parents[1] / "docs" / "filters.md"
FRAMES = 300
SIZES = (12, 48, 250)
HEAD = ["filter", "tried", "how", "frames in, out", "as one pass"]
RULES = """# Filters

`--filter "scale=640:-2,fade=t=in:d=1"` takes FFmpeg's filters in FFmpeg's own syntax: chains with `,` and
`;`, labels (`[in]split[a][b];…`), quotes and escapes. What a filter makes of a frame in a part is what one
pass over the whole film makes of it, hash by hash, or the filter is refused in one sentence. `--dry-run`
shows what would be done.

## Rules
- **Order**: the frames of the input, upright with `--rotate apply`, at the rate of `--fps`, those of
  `--start`, `--stop` and `--every`, then the filters, then the encoder. `--skip-existing` leaves out frames
  that come out of the filters.
- **Times**: `t` is 0 at the first frame of the output, in every part, whatever the input starts at.
- **What comes out decides** the size, shape, pixel format and colours of the output; `--pix-fmt` comes
  after it. RGB that a filter made of YUV becomes the nearest format of the encoder, as with ffmpeg
  (`curves` gives yuv444p: `--pix-fmt yuv420p`).
- **Exact alone**: a frame depends on itself and its time. **With neighbours**: every part is given as many
  frames before and after it as the filters look at, added up along the graph; where some of those are lost,
  those further away.
- **For the whole film**: filters that go by all frames before, count frames (`n`, `N`, `start_frame`), keep
  something from frame to frame (`random()`, `st()`, `ld()`), or give other frames than go in. They are
  refused, unless `--one-pass` asks for the film as one part on one worker. Where other frames come out, the
  film goes through the filters once before the work, so that their count and times are known, and verified.
  Sound stays where it is.
- Without `--rotate apply` filters see pictures as they are stored, and the mark of how they are to be turned
  stays with them.
- **Files** (`movie=`, `lut3d=`, `lut1d=`, `haldclut`'s image, `curves=psfile=`, `removelogo=`) start from
  the folder the command was given in. They must be there before the work, and belong to the run: one that
  was changed keeps it from going on. `movie=` takes an image, which stays for as long as the film lasts.
- **Damage**: filters see the frames that are there, as in one pass of the same reader. A damaged frame that
  neighbours are made from is said once, as its own.
- A deinterlacer (`bwdif=mode=send_frame`, `yadif`) makes the output progressive; nothing is said of
  interlacing then.
"""


def main() -> int:
    chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="uneven-filters-") as scratch:
        folder = Path(scratch)
        make_files(folder)
        os.chdir(folder)  # FFmpeg's own reading of a graph starts names of files here
        source = index_source(make_clip(folder / "clip.mp4", frames=FRAMES, gop=30))
        rows = []
        for name, graph in _tried():
            if not chosen or name in chosen:
                rows.append(_row(source, folder, name, graph))
                print(" | ".join(rows[-1]), flush=True)
    if not chosen:
        DOCUMENT.write_text(_document(rows))
    return any(row[4] != "yes" for row in rows)


def _tried() -> Iterator[tuple[str, str]]:
    for name, tried in examples().items():
        for graph in tried:
            yield name, graph
    for graph in graphs():
        yield "(together)", graph


def _row(source: SourceIndex, folder: Path, name: str, graph: str) -> list[str]:
    try:
        index, wrong = differences(source, settings(graph, folder), SIZES)
    except UsageError as error:
        if "--one-pass" not in str(error):
            raise
        index, wrong = differences(source, settings(graph, folder, one_pass=True), SIZES)
    filtered = index.filtered
    assert filtered is not None
    how = "exact alone"
    if filtered.before or filtered.after:
        how = f"with neighbours: {filtered.before} before, {filtered.after} after"
    if filtered.whole:
        how = f"one pass: {filtered.whole[0].partition(': ')[2]}"
    return [name, f"`{graph}`", how, f"{source.frames}, {index.frames}", "; ".join(wrong) or "yes"]


def _document(rows: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    refused = [[f"`{name}`", why] for name, why in sorted(REFUSED.items())]
    missing = [[f"`{name}`", what] for name, what in sorted(MISSING.items())]
    filters = len({row[0] for row in rows}) - 1
    good = sum(row[4] == "yes" for row in rows)
    return "\n".join(
        [
            RULES,
            "## Offered",
            f"""Made by `python -m scripts.filters_doc`: {filters} filters with {len(rows)} graphs over
{FRAMES} frames, by parts of 12, 48 and 250 frames (those of one pass in one part) against one pass, in which
FFmpeg itself reads the options of graphs of one filter. {good} of {len(rows)} are the same, frame by frame,
in hashes, times, size and pixel format.

Beyond these every option of the filters that are made by parts was given values of its kind by hand (two to
five of each, 2,428 graphs): what differed from one pass became a rule (`fade` without `d=`, `envelope=peak`),
and none differs since. 747 pairs of a graph and a source (odd sizes and 10 bits among them) gave the same
hashes in two processes with different values of `MALLOC_PERTURB_`.
""",
            *markdown_table(HEAD, cells),
            "",
            "## Not offered",
            "All that is not above: nobody has tested it. Of these it is known why:\n",
            *markdown_table(["filter", "why"], refused),
            "",
            "## Not in this build",
            "PyAV's FFmpeg is built without these:\n",
            *markdown_table(["filter", "what would do"], missing),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
