"""An encoder whose bytes differ is refused by the plan, unless it was said that they may."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from farm import events as ev
from farm import plan
from farm.errors import UsageError
from farm.facts import Probed
from farm.fleet import uniform_fleet
from farm.media.clip import make_clip
from farm.media.tasks import probe_job
from farm.media.twice import Difference
from farm.settings import JobSettings, VideoSettings

SETTINGS = JobSettings(video=VideoSettings(preset="ultrafast"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    make_clip(tmp_path / "in.mp4", frames=30, audio=False)
    return tmp_path / "in.mp4"


def planned(source: Path, *, allowed: bool) -> plan.Plan:
    return plan.make_plan(
        plan.JobRequest(
            source=source,
            output=source.with_name("out.mp4"),
            settings=SETTINGS,
            options=ev.RelayOptions(allow_nondeterministic=allowed),
            fleet=uniform_fleet(1),
        )
    )


def test_it_is_refused_in_a_sentence_that_says_what_to_do_and_leaves_nothing(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = replace(probe_job(source, SETTINGS), not_alike=Difference(24, 7).words("libx264"))

    def probe(*asked: object) -> Probed:
        return found

    monkeypatch.setattr(plan, "_probe", probe)
    with pytest.raises(UsageError) as refusal:
        planned(source, allowed=False)
    sentence = str(refusal.value)
    assert sentence.startswith("libx264 was given the same 24 frames twice, and packet 7 came out otherwise")
    assert "--allow-nondeterministic" in sentence and "\n" not in sentence
    assert [path.name for path in source.parent.iterdir()] == ["in.mp4"]
    assert planned(source, allowed=True).probed.not_alike == found.not_alike


def test_a_header_that_differs_can_not_be_allowed(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that can't be joined are of no use to anybody."""
    monkeypatch.setattr("farm.media.tasks.encode_twice", lambda *args: Difference(2, -1))
    with pytest.raises(UsageError, match="can't be joined"):
        probe_job(source, SETTINGS)


def test_an_encoder_that_keeps_its_bytes_needs_no_leave(source: Path) -> None:
    assert planned(source, allowed=False).probed.not_alike == ""
