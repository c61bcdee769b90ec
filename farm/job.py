"""The life of one job, from its opened run folder to the verified output (DESIGN.md §3).

Phases: probe is over when this begins (farm.plan); then measure, work, stitch, verify. A part that the stitch
finds damaged is taken back and rendered again. The output gets its name only when it is verified; until then
what was there before is untouched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from farm import commands as cmd
from farm import events as ev
from farm.clock import LeaseClock
from farm.engines.base import Engine
from farm.errors import (
    ExitCode,
    IncompleteError,
    InterruptedRun,
    OutputError,
    UnevenError,
    UsageError,
    VerificationError,
)
from farm.eventlog import EventLog, Publish, publish_history
from farm.facts import VerifyFacts
from farm.faultdriver import FaultDriver, WallClock
from farm.fleet import WorkerProfile
from farm.forecast.live import forecasting
from farm.ground import Ground
from farm.guard import Watches
from farm.helpers import Helpers, all_of
from farm.host import End, RelayHost
from farm.joining import Joining
from farm.journal import JournalWriter
from farm.loopwatch import LoopWatch
from farm.machine import read_machine, usable_cores, worker_memory_bytes
from farm.manifest import manifest_path
from farm.parts import overhead_bytes
from farm.paths import printable, reason
from farm.plan import OpenedRun
from farm.recheck import recheck_store
from farm.relay.books import SET_ASIDE
from farm.relay.relay import Relay
from farm.salvage import finish, note_run
from farm.sampling import PART_FILE_BYTES, SAMPLED, predict, sample_parts
from farm.stage import Stage
from farm.store import Store
from farm.stories import told_ends
from farm.worker.spec import WorkerSpec
from farm.worker.spool import orphan_spools

MEASURE_SECONDS = 1.0
#: Of the measured speed, what a fitted fleet is given: measuring is kinder than the work.
_FIT_SHARE = 0.9
#: Damaged parts that may turn up at the stitch, one after the other, before it is given up.
_STITCH_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    exit_code: ExitCode
    message: str  #: one sentence; empty when all went well
    output_bytes: int = 0
    recording: Path | None = None
    sample: bool = False  #: a sample was rendered, as it was asked for; the rest is still to be done


class Job:
    """One job in one event loop. ``publish`` gets every record once it is durable."""

    def __init__(
        self,
        run: OpenedRun,
        *,
        run_id: str,
        engine: Engine,
        publish: Publish,
        wall_time: Callable[[], str],
        backlog: Callable[[], int] = lambda: 0,
        on_journal: Callable[[JournalWriter], None] = lambda journal: None,
    ) -> None:
        """``backlog``: how many records were published and not taken yet. ``on_journal`` is told of the
        journal as soon as all of it can be read."""
        self._run = run
        self._plan = run.plan
        self._request = run.plan.request
        self._engine = engine
        self._publish = publish
        self._backlog = backlog
        self._on_journal = on_journal
        self._wall_time = WallClock(wall_time)
        self._new_run_id = run_id
        self._faults = run.plan.request.faults
        self._relay = Relay(run.books, run.plan.request.options)
        self._store = Store(run.folder.store)
        self._ground = Ground(run.plan.request.source, run.plan.index, run.folder)
        self.clock = LeaseClock(origin_seconds=run.last_at)
        self._stage = Stage(self.clock)
        self._helpers = Helpers(run.folder.logs, self._ground.check, self._stage.note)
        self._host: RelayHost | None = None
        self._refusing: set[asyncio.Future[None]] = set()
        self._joining = Joining(run, self._stage, self._relay, self._store, self._helpers)
        self._loop_watch = LoopWatch(time.monotonic)

    async def run(self) -> JobResult:
        """Carry the job to its end, whatever it is; errors a user can cause come back as a result."""
        if self._run.history:
            await publish_history(self._run.journal, self._publish, self._backlog)
        self._journal = JournalWriter(self._run.journal)
        self._on_journal(self._journal)
        self._stage.log = EventLog(self._journal, self._run.history, self._publish)
        watching = asyncio.create_task(self._loop_watch.run())
        try:
            verified = await self._carry()
        except UnevenError as error:
            result = JobResult(exit_code=error.exit_code, message=str(error))
            outcome = "interrupted" if isinstance(error, InterruptedRun) else str(error)
            await self._finish_journal(result, outcome, None)
            self._run.folder.close()
            return result
        finally:
            watching.cancel()
        if verified is None:
            return await self._end_sample()
        result = JobResult(exit_code=ExitCode.DONE, message="", output_bytes=self._joining.output_bytes)
        try:
            recording = await self._finish_journal(result, "done and verified", verified)
        except OutputError as error:
            self._run.folder.close()
            done = f"{printable(self._request.output)} is in place and verified, but its run can't be closed"
            return replace(result, exit_code=error.exit_code, message=f"{done}: {error}")
        return replace(result, recording=recording)

    def command(self, command: cmd.AnyCommand) -> None:
        """An operator's command, in this loop."""
        if self._host is not None:
            self._host.post_command(command)
        elif isinstance(command, cmd.Drain | cmd.StopNow):
            self._stage.stop()
        else:
            self._refusing.add(task := asyncio.ensure_future(self._refuse(command)))
            task.add_done_callback(self._refusing.discard)

    async def _refuse(self, command: cmd.AnyCommand) -> None:
        reason = f"not now: no worker is at work (phase: {self._stage.phase})"
        refused = ev.CommandRefused(command=type(command).__name__, reason=reason, by=command.by)
        with suppress(OutputError):  # then the run ends of that
            await self._stage.log.commit(self.clock.now(), [refused])

    # --- phases ------------------------------------------------------------------------------------------

    async def _carry(self) -> VerifyFacts | None:
        """None: the sample that was asked for is rendered, and what it tells is written down."""
        await self._open_books()
        if (placed := await self._joining.find_placed()) is not None:
            return placed
        fleet = await self._measure()
        for _ in range(_STITCH_TRIES):
            await self._work(fleet)
            if self._request.sample is not None:
                await self._predict()
                return None
            stitched = await self._joining.stitch()
            if stitched is None:
                continue
            return await self._joining.verify(stitched)
        raise VerificationError(
            f"parts in {printable(self._run.folder.store)} keep changing on disk; check the disk"
        )

    async def _open_books(self) -> None:
        plan, relay = self._plan, self._relay
        if not self._run.history:
            opened = self._opened()
            await asyncio.to_thread(note_run, self._run.folder, opened)
            await self._stage.commit(relay.open(opened, self.clock.now()))
        await self._stage.commit(relay.start(self.clock.now(), self._wall_time()))
        books = relay.books
        if self._run.history and books.options != self._request.options:
            change = cmd.ChangeOptions(options=self._request.options, by="resume")
            changed = relay.command(change, self.clock.now())
            if changed.refusal is not None:
                raise UsageError(changed.refusal)
            await self._stage.commit(changed)
        if self._request.retry_failed:
            await self._stage.commit(relay.retry(self.clock.now()))
        for warning in filter(None, (*plan.probed.warnings, plan.memory_note)):
            await self._stage.note("warning", warning)
        if self._request.options.allow_nondeterministic:
            await self._stage.note("warning", _promise_taken_back(plan.probed.not_alike))
        for line in plan.probed.streams:
            await self._stage.note("info", line)
        if plan.index.linear:
            await self._stage.note("info", f"read from the start, not by seeking: {plan.index.linear_reason}")
        if self._run.history or self._run.damage:
            await recheck_store(
                relay, self._store, plan.settings_hash, self.clock.now, self._stage.commit, self._stage.note
            )
        if self._request.sample is not None:
            parts = sample_parts(plan.grid.parts, self._request.sample)
            await self._stage.commit(relay.choose_sample(parts, self.clock.now()))
        if self._run.damage:
            kept = len(relay.books.credits)
            await self._stage.note(
                "warning",
                f"{self._run.damage}; {kept} of {plan.grid.parts} parts are proved by the store and kept, "
                "the rest is rendered again",
            )

    def _opened(self) -> ev.RunOpened:
        plan, index = self._plan, self._plan.index
        rate = index.frame_rate
        return ev.RunOpened(
            run_id=self._run_id,
            input=str(self._request.source.absolute()),
            output=str(self._request.output.absolute()),
            frames=plan.grid.frames,
            cuts=plan.grid.cuts,
            settings_hash=plan.settings_hash,
            fingerprint=index.fingerprint,
            build=plan.probed.build,
            options=self._request.options,
            frame_rate=rate[0] / rate[1] if rate else None,
            settings=msgspec.json.encode(self._request.settings).decode(),
            fleet=tuple(msgspec.json.encode(profile).decode() for profile in self._request.fleet),
        )

    async def _measure(self) -> tuple[WorkerProfile, ...]:
        """With caps on the fleet, see whether the machine has that much to give."""
        fleet = self._request.fleet
        caps = [profile.fps_cap for profile in fleet if profile.fps_cap is not None]
        if not caps or self._relay.books.finished:
            return fleet
        await self._stage.enter("measure")
        folder = self._run.folder
        children = min(usable_cores(), len(fleet))
        speeds = await self._stage.guard(
            all_of(
                self._helpers.ask(
                    "measure",
                    folder.index,
                    self._request.settings,
                    MEASURE_SECONDS,
                    log=f"measure-{number}.log",
                )
                for number in range(children)
            )
        )
        possible = sum(frames / seconds for frames, seconds in speeds)
        if not possible:  # the first frame can't be read
            return fleet
        asked = sum(caps)
        fitted = self._request.fit_fleet and asked > possible * _FIT_SHARE
        if fitted:
            scale = possible * _FIT_SHARE / asked
            fleet = tuple(
                msgspec.structs.replace(profile, fps_cap=profile.fps_cap and profile.fps_cap * scale)
                for profile in fleet
            )
        event = ev.FleetMeasured(fps_asked=asked, fps_possible=possible, fitted=fitted)
        await self._stage.log.commit(self.clock.now(), [event])
        if asked > possible and not fitted:
            text = f"{_fps(asked)} fps asked, {_fps(possible)} possible here"
            text += ": the fleet will be slower than it says"
            await self._stage.note("warning", f"{text}; --fit-fleet keeps its ratios")
        return fleet

    async def _work(self, fleet: tuple[WorkerProfile, ...]) -> None:
        """Raises InterruptedRun, IncompleteError, OutputError or VerificationError unless all is credited."""
        books = self._relay.books
        if not books.work_left and not books.set_aside_frames:
            return
        if books.work_left:
            await self._stage.enter("work")
            self._stage.check_stop()
            orphans = await asyncio.to_thread(self._orphans, fleet)
            specs = [self._spec(profile, () if n else orphans) for n, profile in enumerate(fleet)]
            self._host = RelayHost(
                self._relay,
                self._stage.log,
                self._engine,
                self._store,
                self.clock,
                specs,
                self._plan.settings_hash,
                self._ground.check,
                await self._watches(),
                self._fault_driver(specs),
            )
            host = self._host
            try:
                async with forecasting(self._relay, self._stage.log, self.clock):
                    end = await host.run()
            except OutputError:
                await asyncio.to_thread(self._ground.check)  # if that is why, it is the better thing to tell
                raise
            finally:
                self._host = None
            if end in (End.DRAINED, End.STOPPED):
                raise InterruptedRun("stopped; what was finished is kept")
            if end is End.HALTED:
                raise IncompleteError(
                    f"halted: {host.halted}; see the logs in {printable(self._run.folder.logs)}"
                )
            if end is End.NO_WORKERS:
                ends = told_ends(host.crew.departures.reasons)
                raise IncompleteError(
                    f"no worker is left and there is work to do ({ends}); see "
                    f"the logs in {printable(self._run.folder.logs)}, then resume"
                )
        if books.set_aside_frames:
            parts = [part for part, place in enumerate(books.parts) if place == SET_ASIDE]
            named = ", ".join(str(part) for part in parts[:8]) + (", …" if len(parts) > 8 else "")
            raise IncompleteError(
                f"{books.set_aside_frames} frames could not be rendered (part {named}); see the logs in "
                f"{printable(self._run.folder.logs)}"
            )

    async def _watches(self) -> Watches:
        machine = await asyncio.to_thread(read_machine)
        needed = worker_memory_bytes(self._plan.index, self._request.settings.video)
        return Watches(self._loop_watch, machine.gate_bytes, worker_bytes=needed, cores=machine.cores)

    def _orphans(self, fleet: tuple[WorkerProfile, ...]) -> tuple[Path, ...]:
        """Spools of workers that are not in the fleet any more; the first worker sees to them."""
        spool = self._run.folder.spool.absolute()
        try:
            return orphan_spools(spool, [profile.name for profile in fleet])
        except OSError as error:
            raise OutputError(f"the spool {printable(spool)} can't be read: {reason(error)}") from error

    def _fault_driver(self, specs: Sequence[WorkerSpec]) -> FaultDriver:
        books = self._relay.books
        faults, self._faults = self._faults, ()  # once a run, also where the work is taken up again
        return FaultDriver(
            faults,
            workers=[spec.name for spec in specs],
            frames=books.grid.frames,
            credited=books.credited_frames,
            clock=self.clock,
            wall=self._wall_time,
            folder=self._run.folder.spool,
        )

    def _spec(self, profile: WorkerProfile, orphans: tuple[Path, ...]) -> WorkerSpec:
        folder = self._run.folder
        return WorkerSpec(
            profile=profile,
            index_path=folder.index.absolute(),
            settings=self._request.settings,
            settings_hash=self._plan.settings_hash,
            cuts=self._plan.grid.cuts,
            store_dir=folder.store.absolute(),
            spool_dir=folder.spool.absolute() / profile.name,
            orphan_spools=orphans,
            log_dir=folder.logs.absolute(),
            build=self._plan.probed.build,
            nice=self._relay.books.options.nice,
        )

    # --- the end -----------------------------------------------------------------------------------------

    async def _predict(self) -> None:
        books = self._relay.books
        fleet, possible = self._request.fleet, books.fps_possible
        if books.credits:
            one = self._store.path(next(iter(books.credits.values())).file)
            try:
                beside = await asyncio.to_thread(overhead_bytes, one)
            except OSError:  # its part is rendered again with the rest
                beside = PART_FILE_BYTES
            predicted = predict(books.grid, books.credits, fleet, possible, beside)
            assert predicted is not None
            await self._stage.log.commit(self.clock.now(), [predicted])

    async def _end_sample(self) -> JobResult:
        """The run folder stays, for the rest."""
        result = JobResult(exit_code=ExitCode.DONE, message="", sample=True)
        try:
            await self._finish_journal(result, SAMPLED, None)
        finally:
            self._run.folder.close()
        return result

    async def _finish_journal(
        self, result: JobResult, outcome: str, verified: VerifyFacts | None
    ) -> Path | None:
        """The last record; and after a good end the recording is kept and the run folder goes."""
        finished = ev.RunFinished(
            exit_code=int(result.exit_code),
            outcome=outcome,
            packets_sha256=verified.packets_sha256 if verified else "",
            output_bytes=result.output_bytes,
            stream_frames=verified.frames if verified else 0,
            kept=self._request.keep,
            sample=result.sample,
        )
        try:
            await self._stage.log.commit(self.clock.now(), [self._loop_measured(), finished])
        except OutputError:
            if verified is not None:
                raise  # else the error that ended the run is the one to tell
        finally:
            await self._journal.close()
        if verified is None:
            return None
        manifest = manifest_path(self._request.output) if self._request.manifest else None
        return await asyncio.to_thread(
            finish, self._run.folder, self._run_id, keep=self._request.keep, manifest=manifest
        )

    def _loop_measured(self) -> ev.LoopMeasured:
        watch = self._loop_watch
        return ev.LoopMeasured(stalls=watch.stalls, worst_seconds=watch.worst_seconds)

    @property
    def _run_id(self) -> str:
        return self._run.run_id or self._new_run_id


def _promise_taken_back(not_alike: str) -> str:
    found = f" ({not_alike})" if not_alike else ""
    return (
        f"no promise of equal bytes, by --allow-nondeterministic{found}: another run, or a part rendered "
        "again, may come out otherwise, and copies of a part that differ are not looked into"
    )


def _fps(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
