"""The run as the console sees it: events folded into what a screen, a status line or a summary needs.

Rules of this file:
- ``fold`` is the only thing that changes a model; the same log gives the same model (``digest``), live,
  simulated or replayed;
- an event costs constant time, apart from the parts that a claim covers or gives back;
- an event of a kind we don't know is skipped, one that makes no sense (a credit outside the grid) too: a
  display must not fail where the books would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args

from console.chunks import HANDLERS as CHUNK_HANDLERS
from console.chunks import LAPSES
from console.partmap import CLAIMED, CREDITED, DUPLICATE, LAPSED, OPEN, SET_ASIDE, PartMap
from console.runstate import EVENTS_MAX, Credit, Header, RunState
from console.timeline import ClaimModel, PartDelivery, WorkerModel
from console.wording import NO_FAILURE, is_told
from farm import events as ev
from farm.frames import PartGrid

__all__ = [
    "CLAIMED",
    "CREDITED",
    "DUPLICATE",
    "EVENTS_MAX",
    "LAPSED",
    "OPEN",
    "SET_ASIDE",
    "Header",
    "Model",
]

#: The events of which there are most. None of them makes the whole job's progress smaller.
_STEADY: Final = frozenset({ev.LeaseRenewed, ev.PartCredited, ev.BlockStored, ev.ClaimGranted, ev.ClaimEnded})


class Model(RunState):
    """Everything the console knows of one run, folded from its events."""

    def fold(self, record: ev.Record) -> None:
        """Take in the next record of the log."""
        event, at = record.event, record.at
        if at > self.at:
            self.at = at
        self.records += 1
        steady, handler, keep, told = _ROUTES.get(type(event), _NO_ROUTE)
        if not steady:
            self.progress()  # before what may take it back
        if handler is not None:
            handler(self, at, event)
        if keep is not None:
            keep(self.book, record, event)
        if told:
            self.events.add(record)

    def _run_opened(self, at: float, event: ev.RunOpened) -> None:
        self.header = Header(
            event.run_id,
            event.input,
            event.output,
            event.frames,
            event.frame_rate,
            event.settings,
            event.fleet,
        )
        self.options = event.options
        self.map = PartMap(PartGrid(event.cuts))

    def _relay_started(self, at: float, event: ev.RelayStarted) -> None:
        self.epoch = event.epoch
        self.resumed_frames = self.credited_frames
        self.sample, self.deferred_frames = None, 0
        if self.finish is not None and self.finish.sample:
            self.restart_progress()  # which was that of the sample
        self.estimated = None
        self.drain_reason = self.paused_since = self.finish = self.work = self.steady_since = None
        self.drain_until = self.gauges = None
        self.held = ""
        self.never_came = []

    def _options_changed(self, at: float, event: ev.OptionsChanged) -> None:
        self.options = event.options

    def _phase_started(self, at: float, event: ev.PhaseStarted) -> None:
        self.phase, self.phase_fraction = event.phase, 0.0

    def _phase_progressed(self, at: float, event: ev.PhaseProgressed) -> None:
        if event.phase == self.phase:
            self.phase_fraction = min(max(self.phase_fraction, event.fraction), 1.0)

    def _finish_estimated(self, at: float, event: ev.FinishEstimated) -> None:
        self.estimated, self.estimated_at = event, at

    def _fleet_measured(self, at: float, event: ev.FleetMeasured) -> None:
        self.measured = event

    def _job_paused(self, at: float, event: ev.JobPaused) -> None:
        self.paused_since = at

    def _job_resumed(self, at: float, event: ev.JobResumed) -> None:
        self.paused_since = self.steady_since = None
        self.pause_seconds += event.seconds
        self.estimated_at += event.seconds

    def _drain_started(self, at: float, event: ev.DrainStarted) -> None:
        self.drain_reason = event.reason
        self.drain_until = None if event.limit_seconds is None else at + event.limit_seconds

    def _gauges(self, at: float, event: ev.Gauges) -> None:
        self.gauges = event

    def _loop_stalled(self, at: float, event: ev.LoopStalled) -> None:
        self.stood_still += 1
        self.stood_still_seconds = max(self.stood_still_seconds, event.seconds)

    def _loop_measured(self, at: float, event: ev.LoopMeasured) -> None:
        self.loop = event

    def _fault_never_came(self, at: float, event: ev.FaultNeverCame) -> None:
        self.never_came.append(event.fault)

    def _grants_held(self, at: float, event: ev.GrantsHeld) -> None:
        self.held = event.reason

    def _grants_freed(self, at: float, event: ev.GrantsFreed) -> None:
        self.held = ""

    def _worker_peaked(self, at: float, event: ev.WorkerPeaked) -> None:
        worker = self._worker(at, event.worker)
        worker.peak_bytes = max(worker.peak_bytes, event.peak_bytes)

    def _worker_added(self, at: float, event: ev.WorkerAdded) -> None:
        self.added[event.worker] = event.profile

    def _worker_throttled(self, at: float, event: ev.WorkerThrottled) -> None:
        self._worker(at, event.worker).fps_cap = event.fps_cap

    def _vitals_sampled(self, at: float, event: ev.VitalsSampled) -> None:
        self.vitals = {vitals.worker: vitals for vitals in event.workers}
        self.vitals_at = at

    def _work_finished(self, at: float, event: ev.WorkFinished) -> None:
        self.work = event

    def _sample_chosen(self, at: float, event: ev.SampleChosen) -> None:
        self.sample = frozenset(event.parts)
        waits = (OPEN, LAPSED)
        for part in range(self.parts):
            if self.part_state[part] in waits and part not in self.sample:
                self.deferred_frames += self.grid.size(part)

    def _sample_predicted(self, at: float, event: ev.SamplePredicted) -> None:
        self.predicted = event

    def _run_finished(self, at: float, event: ev.RunFinished) -> None:
        self.finish, self.last_finish_at = event, at

    def _operator_acted(self, at: float, event: ev.OperatorActed) -> None:
        worker = self.workers.get(event.worker or "")
        if worker is None or worker.is_gone:
            return
        if event.action == "stall":
            worker.freeze(at)
        elif event.action == "unstall":
            worker.revive(at)

    # --- workers -----------------------------------------------------------------------------------------

    def _worker_joined(self, at: float, event: ev.WorkerJoined) -> None:
        worker = self._worker(at, event.worker)
        worker.join(at, event.pid, event.host, event.fps_cap, event.overhead_seconds)

    def _worker_left(self, at: float, event: ev.WorkerLeft) -> None:
        worker = self._worker(at, event.worker)
        worker.leave(at, event.reason, event.lost)
        self.losses += event.lost

    def _worker_parked(self, at: float, event: ev.WorkerParked) -> None:
        self._worker(at, event.worker).rest("parked", at, event.why)

    def _worker_blocked(self, at: float, event: ev.WorkerBlocked) -> None:
        worker = self._worker(at, event.worker)
        worker.blocked_until = event.until
        worker.rest("blocked", at, f"{event.failures} failures in a row")

    def _worker_forgiven(self, at: float, event: ev.WorkerForgiven) -> None:
        worker = self._worker(at, event.worker)
        worker.blocked_until = None
        if worker.state == "blocked":
            worker.rest("idle", at)

    def _worker(self, at: float, name: str) -> WorkerModel:
        """The worker, even if its joining is not in the log (an old or cut recording)."""
        worker = self.workers.get(name)
        if worker is None:
            worker = self.workers[name] = WorkerModel(name, since=at, heard_at=at)
        return worker

    # --- claims ------------------------------------------------------------------------------------------

    def _claim_granted(self, at: float, event: ev.ClaimGranted) -> None:
        if not 0 <= event.start < event.stop <= self.frames:
            return
        claim = ClaimModel(
            event.token, event.worker, event.start, event.stop, at, event.duplicate, position=event.start
        )
        self.claims[claim.token] = claim
        holders = self.chunks.setdefault(claim.chunk, [])
        holders.append(claim)
        self.duplicated += len(holders) == 2
        self.granted += 1
        self.duplicates += event.duplicate
        self._worker(at, event.worker).take(at, claim)
        self.map.hold(claim)
        if self.first_grant_at is None:
            self.first_grant_at = at
        if self.steady_since is None:
            self.steady_since, self.steady_frames = at, self.throughput.total

    def _lease_renewed(self, at: float, event: ev.LeaseRenewed) -> None:
        worker = self._worker(at, event.worker)
        worker.heard(at)
        for progress in event.claims:
            claim = self.claims.get(progress.token)
            if claim is None:
                continue
            rendered = progress.rendered
            more = max(rendered - claim.rendered, 0)
            if claim is worker.claim:
                worker.sample(at, more, claim)
                if rendered or progress.decoded:
                    worker.start_rendering(at)
            claim.rendered += more
            if progress.position > claim.position:
                self.map.advance(claim, progress.position)

    def _claim_ended(self, at: float, event: ev.ClaimEnded) -> None:
        self.wasted_frames += event.wasted_frames
        lapsed = event.how in LAPSES
        self.lapses += lapsed
        worker = self._worker(at, event.worker)
        worker.wasted_frames += event.wasted_frames
        worker.lapses += lapsed
        claim = self.claims.pop(event.token, None)
        if claim is None:
            return
        holders = self.chunks[claim.chunk]
        holders.remove(claim)
        self.duplicated -= len(holders) == 1
        if not holders:
            del self.chunks[claim.chunk]
        self.map.let_go(claim, holders, lapsed=lapsed)
        worker.drop(at, claim, lapsed=lapsed)

    def _chunk_split(self, at: float, event: ev.ChunkSplit) -> None:
        self.splits += 1
        if event.at in self.grid.cuts:
            for claim in self.chunks.get(f"c{event.chunk}", ()):
                self.map.shrink(claim, event.at)
                holder = self._worker(at, claim.worker)
                if claim is holder.claim and not holder.is_gone:
                    holder.mark("split", at, claim.token)

    def _range_reopened(self, at: float, event: ev.RangeReopened) -> None:
        """Claims open their parts as they end; what is left are parts set aside, to be tried again."""
        if 0 <= event.start < event.stop <= self.frames:
            self.map.retry(event.start, event.stop)

    def _claim_refused(self, at: float, event: ev.ClaimRefused) -> None:
        self.refusals += 1
        worker = self._worker(at, event.worker)
        worker.refuse(at, event.token)

    def _message_refused(self, at: float, event: ev.MessageRefused) -> None:
        self.refusals += 1
        worker = self._worker(at, event.worker)
        worker.refuse(at, event.received)

    def _block_stored(self, at: float, event: ev.BlockStored) -> None:
        self._worker(at, event.worker).heard(at)
        if event.part not in self.map:
            return
        self.stored_blocks += max(event.done - self.blocks_of.get(event.part, 0), 0)
        self.blocks_of[event.part] = max(event.done, self.blocks_of.get(event.part, 0))
        claim = self.claims.get(event.token)
        if claim is not None:
            claim.delivering = PartDelivery(event.part, event.done, event.of, event.size_bytes)

    def _end_blocks(self, part: int, token: str) -> None:
        self.blocks_of.pop(part, None)
        claim = self.claims.get(token)
        if claim is not None and claim.delivering is not None and claim.delivering.part == part:
            claim.delivering = None

    # --- parts -------------------------------------------------------------------------------------------

    def _part_credited(self, at: float, event: ev.PartCredited) -> None:
        worker = self._worker(at, event.worker)
        worker.heard(at)
        part, token, seconds = event.part, event.token, event.render_seconds
        claim = self.claims.get(token)
        if self.blocks_of or (claim is not None and claim.delivering is not None):
            self._end_blocks(part, token)
        frames = self.map.credit(part)
        if claim is not None and part in self.map:
            cuts = self.map.grid.cuts
            start, stop = cuts[part], cuts[part + 1]
            if stop > claim.position:
                self._delivered(at, worker, claim, stop)
            claim.delivered += stop - start
            seconds = worker.believable(at, claim, seconds)
        if not frames:
            return
        # ``worker.name``: one text for all its parts, not one for each record.
        chunk = self.book.number_of(token) if event.chunk is None else event.chunk
        self.credits[part] = Credit(worker.name, self.epoch, event.size_bytes, event.lost_frames, chunk)
        worker.credit(frames, seconds)
        self.throughput.add(at, frames)
        self.lost_frames += event.lost_frames
        self.delivered_bytes += event.size_bytes
        self.last_credit_at = at

    def _delivered(self, at: float, worker: WorkerModel, claim: ClaimModel, stop: int) -> None:
        """A delivery tells that its claim is as far as ``stop``, ahead of the next heartbeat."""
        ahead = stop - claim.position
        claim.rendered += ahead
        if claim is worker.claim:
            worker.start_rendering(at)
            worker.sample(at, ahead, claim)
        self.map.advance(claim, stop)

    def _part_superseded(self, at: float, event: ev.PartSuperseded) -> None:
        self.wasted_frames += event.frames
        self._end_blocks(event.part, event.token)
        worker = self._worker(at, event.worker)
        worker.heard(at)
        worker.wasted_frames += event.frames
        if event.token in self.claims:
            self.claims[event.token].delivered += event.frames

    def _part_adopted(self, at: float, event: ev.PartAdopted) -> None:
        frames = self.map.credit(event.part)
        self.adopted_frames += frames
        self.resumed_frames += frames
        if frames:
            self.delivered_bytes += event.size_bytes
            self.credits[event.part] = Credit(None, self.epoch - 1, event.size_bytes)

    def _part_voided(self, at: float, event: ev.PartVoided) -> None:
        self.work = None
        frames = self.map.void(event.part)
        if not frames:
            return
        if self.sample is not None and event.part not in self.sample:
            self.deferred_frames += frames
        credit = self.credits.pop(event.part)
        self.book.void(at, event, credit.chunk, frames)
        self.voided_frames += frames
        self.delivered_bytes -= credit.size_bytes
        self.lost_frames -= credit.lost_frames
        if credit.epoch < self.epoch:
            self.resumed_frames -= frames
        if credit.worker is None:
            self.adopted_frames -= frames
        else:
            self.workers[credit.worker].uncredit(frames)

    def _part_failed(self, at: float, event: ev.PartFailed) -> None:
        if event.kind in NO_FAILURE:
            return
        self.failures += 1
        self._worker(at, event.worker).failures += 1

    def _part_retried(self, at: float, event: ev.PartRetried) -> None:
        if event.part in self.map:
            self.map.retry(self.grid.start(event.part), self.grid.stop(event.part))

    def _part_set_aside(self, at: float, event: ev.PartSetAside) -> None:
        self.map.set_aside(event.part)


#: The event type of each handler is its key, which mypy can't express.
_HANDLERS: Final[dict[type, Callable[[Model, float, Any], None]]] = {
    ev.RunOpened: Model._run_opened,
    ev.RelayStarted: Model._relay_started,
    ev.OptionsChanged: Model._options_changed,
    ev.PhaseStarted: Model._phase_started,
    ev.PhaseProgressed: Model._phase_progressed,
    ev.FinishEstimated: Model._finish_estimated,
    ev.FleetMeasured: Model._fleet_measured,
    ev.JobPaused: Model._job_paused,
    ev.JobResumed: Model._job_resumed,
    ev.DrainStarted: Model._drain_started,
    ev.Gauges: Model._gauges,
    ev.LoopStalled: Model._loop_stalled,
    ev.LoopMeasured: Model._loop_measured,
    ev.FaultNeverCame: Model._fault_never_came,
    ev.GrantsHeld: Model._grants_held,
    ev.GrantsFreed: Model._grants_freed,
    ev.WorkerPeaked: Model._worker_peaked,
    ev.WorkerAdded: Model._worker_added,
    ev.WorkerThrottled: Model._worker_throttled,
    ev.VitalsSampled: Model._vitals_sampled,
    ev.WorkFinished: Model._work_finished,
    ev.RunFinished: Model._run_finished,
    ev.SampleChosen: Model._sample_chosen,
    ev.SamplePredicted: Model._sample_predicted,
    ev.OperatorActed: Model._operator_acted,
    ev.WorkerJoined: Model._worker_joined,
    ev.WorkerLeft: Model._worker_left,
    ev.WorkerParked: Model._worker_parked,
    ev.WorkerBlocked: Model._worker_blocked,
    ev.WorkerForgiven: Model._worker_forgiven,
    ev.ClaimGranted: Model._claim_granted,
    ev.LeaseRenewed: Model._lease_renewed,
    ev.ClaimEnded: Model._claim_ended,
    ev.RangeReopened: Model._range_reopened,
    ev.ChunkSplit: Model._chunk_split,
    ev.ClaimRefused: Model._claim_refused,
    ev.MessageRefused: Model._message_refused,
    ev.BlockStored: Model._block_stored,
    ev.PartCredited: Model._part_credited,
    ev.PartSuperseded: Model._part_superseded,
    ev.PartAdopted: Model._part_adopted,
    ev.PartVoided: Model._part_voided,
    ev.PartFailed: Model._part_failed,
    ev.PartSetAside: Model._part_set_aside,
    ev.PartRetried: Model._part_retried,
}

#: Of each type of event: whether it never makes progress smaller, what the model and the chunk book make of
#: it, and whether it has words.
_ROUTES: Final = {
    kind: (kind in _STEADY, _HANDLERS.get(kind), CHUNK_HANDLERS.get(kind), is_told(kind))
    for kind in get_args(ev.AnyEvent)
}
_NO_ROUTE: Final = (False, None, None, False)
