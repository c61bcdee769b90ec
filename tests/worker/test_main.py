"""A real worker process: real parts, of a clip made here, through the local engine."""

from __future__ import annotations

from pathlib import Path

import msgspec

from farm.engines.child import run_in_child_blocking
from farm.engines.local import LocalEngine
from farm.fleet import WorkerProfile
from farm.messages import (
    AnyAnswer,
    Beat,
    Bye,
    Claim,
    Complete,
    Completed,
    Deliver,
    Delivered,
    Finished,
    Granted,
    Heartbeat,
    Join,
    Leave,
    Welcome,
    decode_request,
    encode,
)
from farm.parts import check_part
from farm.settings import JobSettings, VideoSettings
from farm.source import SourceIndex, save_index
from farm.worker.spec import WorkerSpec

from ..engines.harness import Recorder, run, until

TOKEN = "c0#1@e1"


class Relay(Recorder):
    """Just enough of one: it grants everything once, and credits what comes."""

    def __init__(self, engine: LocalEngine, frames: int) -> None:
        super().__init__()
        self.engine = engine
        self.frames = frames
        self.granted = False
        self.join: Join | None = None
        self.delivered: list[Deliver] = []

    def message(self, worker: str, data: bytes) -> None:
        super().message(worker, data)
        request = decode_request(data)
        self.engine.send(worker, encode(msgspec.structs.replace(self.answer(request), seq=request.seq)))

    def answer(self, request: object) -> AnyAnswer:
        match request:
            case Join():
                self.join = request
                return Welcome(epoch=1, lease_seconds=20, heartbeat_seconds=0.1)
            case Claim() if not self.granted:
                self.granted = True
                return Granted(token=TOKEN, start=0, stop=self.frames, next=0, lease_seconds=20)
            case Claim():
                return Finished(why="all done")
            case Deliver():
                self.delivered.append(request)
                return Delivered(
                    token=TOKEN, part=request.part or 0, frames=request.frames, next=0, stop=self.frames
                )
            case Complete():
                return Completed(token=TOKEN, done=True, next=self.frames, stop=self.frames)
            case Leave():
                return Bye()
            case Heartbeat():
                return Beat()
        raise AssertionError(request)


def _clip(folder: Path, frames: int) -> SourceIndex:
    clip = folder / "clip.mp4"
    log = folder / "child.log"
    run_in_child_blocking("tests.worker.media:make", clip, frames, log=log)
    index = run_in_child_blocking("farm.media.index:index_source", clip, log=log)
    assert isinstance(index, SourceIndex) and index.frames == frames
    return index


def test_a_worker_process_renders_what_it_is_granted(tmp_path, capfd):
    index = _clip(tmp_path, 60)
    save_index(index, tmp_path / "index")
    for name in ("store", "spool", "logs"):
        (tmp_path / name).mkdir()
    spec = WorkerSpec(
        profile=WorkerProfile(name="w1"),
        index_path=tmp_path / "index",
        settings=JobSettings(video=VideoSettings(preset="ultrafast")),
        settings_hash="hash",
        cuts=(0, 24, 48, 60),
        store_dir=tmp_path / "store",
        spool_dir=tmp_path / "spool",
        log_dir=tmp_path / "logs",
    )

    async def body() -> None:
        engine = LocalEngine()
        relay = Relay(engine, 60)
        await engine.start([spec], relay)
        await until(lambda: relay.ends, "the worker to leave")
        await engine.stop(5.0)
        assert relay.ends == {"w1": ("exited", True)}, (tmp_path / "logs" / "w1.log").read_text()
        assert relay.join is not None and relay.join.build
        assert [deliver.part for deliver in relay.delivered] == [0, 1, 2]
        for deliver, start, stop in zip(relay.delivered, (0, 24, 48), (24, 48, 60), strict=True):
            part = deliver.part or 0
            check_part(spec.store_dir / deliver.file, part=part, start=start, stop=stop, settings_hash="hash")

    run(body())
    assert capfd.readouterr() == ("", "")
    assert "rendered [48, 60)" in (tmp_path / "logs" / "w1-c0.1.e1.log").read_text()
    assert list(spec.spool_dir.iterdir()) == []
