"""Rule 13 of DESIGN.md §4 with everything real but the encoder: workers that make other bytes, part files,
the store, the delivery desk, the host."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from farm import events as ev
from farm.errors import VerificationError
from farm.host import End
from tests.worker.farm import FRAME_BYTES, Farm
from tests.worker.harness import PATIENCE_SECONDS, FakeRenderers

#: Two workers have the whole job each; the third gets what they can't agree on.
OPTIONS = {"policy": "fixed,40", "tail": "duplicate-oldest,from=start"}


def farm_with(folder: Path, **fillers: bytes) -> Farm:
    """Workers whose bytes differ; whoever is at the last part stays there until copies have differed, so that
    nobody is done with everything before."""
    farm = Farm(folder, parts=4, **OPTIONS)
    for name, filler in fillers.items():
        farm.renderers_of[name] = renderers = FakeRenderers(FRAME_BYTES)
        renderers.filler = filler
        renderers.hold_at = {35}

    def let_go() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not farm.events(ev.PartDiverged) and time.monotonic() < deadline:
            time.sleep(0.005)
        for renderers in farm.renderers_of.values():
            for _ in range(20):
                renderers.go_on()

    threading.Thread(target=let_go, daemon=True).start()
    return farm


def test_a_worker_that_makes_other_bytes_is_found_out_and_none_of_them_is_left(tmp_path: Path) -> None:
    farm = farm_with(tmp_path, w1=b".", w2=b"!", w3=b".")
    assert farm.work_on("w1", "w2", "w3") is End.FINISHED
    assert {event.odd for event in farm.events(ev.PartSettled)} == {"w2"}
    kept: dict[int, ev.PartCredited] = {}
    for record in farm.records:
        if isinstance(record.event, ev.PartCredited):
            kept[record.event.part] = record.event
        elif isinstance(record.event, ev.PartVoided):
            del kept[record.event.part]
    assert sorted(kept) == [0, 1, 2, 3]
    assert "w2" not in {credit.worker for credit in kept.values()}
    for credit in kept.values():
        assert b"!!!!" not in (farm.store / credit.file).read_bytes()


def test_three_workers_that_make_three_kinds_of_bytes_end_the_run(tmp_path: Path) -> None:
    farm = farm_with(tmp_path, w1=b".", w2=b"!", w3=b"?")
    with pytest.raises(VerificationError, match="the same frames don't give the same bytes"):
        farm.work_on("w1", "w2", "w3")
    assert farm.events(ev.PartUnsettled)
