"""Going to and fro in a recording or a simulation, stopping at moments, captions, and beginning anew.

Rules of this file:
- ``take`` is the one place that brings the model to what the source shows, forwards or back (console.rewind);
- a halt says what it halted at; what can't be done is said in a sentence;
- a key that a screen has a use of its own for is the screen's: these are the app's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from console.consolebase import ConsoleBase, Outcome
from console.presentation import Presentation
from console.rewind import Rewinder
from console.text import duration
from console.widgets.replay_bar import ReplayRow, Ticks, replay_row, ticks_of
from console.wording import describe
from farm.captions import Reel
from farm.clock import Clock, MonotonicClock
from farm.commands import Pause, StopNow
from farm.events import JobResumed, Record
from farm.moments import KINDS, NEWS, Kind, moment_of
from farm.playback import Playback

#: What n and N jump to; K goes from one to the next.
LOOKED_FOR: Final[tuple[tuple[str, frozenset[Kind]], ...]] = (
    ("any", NEWS),
    ("lapse", frozenset(("lapse",))),
    ("duplicate", frozenset(("duplicate",))),
    ("split", frozenset(("split",))),
    ("refusal", frozenset(("refusal",))),
    ("kill or loss", frozenset(("kill", "loss"))),
    ("failure", frozenset(("failure",))),
)
#: A step of h and l: that share of the time there is, and no less than that.
_SCRUB_SHARE, _SCRUB_SECONDS_MIN = 0.02, 0.5
_NOT_KEPT: Final = "The run has grown too long to be kept: there is no way back."

_PLAYBACK_ACTIONS: Final = frozenset(("step_back", "scrub", "seek_end", "moment", "look_for"))


class Presenting(ConsoleBase):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("comma", "step_back", "to the event before"),
        Binding("l,right", "scrub(1)", "forward in time"),
        Binding("h,left", "scrub(-1)", "back in time"),
        Binding("g,home", "seek_end(0)", "to the beginning"),
        Binding("G,end", "seek_end(1)", "to the end, or the present"),
        Binding("n", "moment(1)", "to the next lapse, kill, split, …"),
        Binding("N", "moment(-1)", "to the one before"),
        Binding("K", "look_for", "what n and N look for"),
        Binding("L", "to_present", "to the present"),
        Binding("R", "restart", "begin anew"),
        Binding("enter,escape", "skip_caption", "skip the caption", priority=True, show=False),
    ]

    presentation = Presentation()
    real: Clock = MonotonicClock()  #: for who reads captions when the run is over
    reel: Reel | None = None
    _rewinder: Rewinder | None = None
    _seen = 0  #: records of the log that the reel has seen
    _starts = 1
    _looking_for = 0
    _halted_at: Record | None = None  #: the moment that was said last
    _jumped = False  #: elsewhere than where it was played to
    _pausing = False  #: a live job was asked to pause, and has not gone on since
    _ended_at: float | None = None  #: real time
    _ticks: tuple[int, Ticks] | None = None  #: of a log of so many records

    def present(self, presentation: Presentation) -> None:
        """Before anything is shown."""
        self.presentation = presentation
        self.reel = Reel(presentation.captions) if presentation.captions else None

    @property
    def playback(self) -> Playback | None:
        """The source, if one can go to and fro in it."""
        return self.source if isinstance(self.source, Playback) else None

    def presents(self, action: str) -> bool | None:
        """Whether one of the actions of this file can be used now."""
        playback = self.playback
        if action in _PLAYBACK_ACTIONS:
            return playback is not None
        if action == "to_present":
            return playback is not None and playback.in_past
        if action == "restart":
            return self.presentation.can_restart or (playback is not None and playback.can_restart)
        if action == "skip_caption":
            return self.caption is not None and self.takes_keys
        return True

    @property
    def takes_keys(self) -> bool:
        """Whether keys are for the screen of the run, with no box or prompt above it."""
        raise NotImplementedError

    # --- what is shown -----------------------------------------------------------------------------------

    def take(self) -> Sequence[Record]:
        """Bring the model to what the source shows; what is new since, or since where it went back to."""
        playback = self.playback
        if playback is None:
            records = self.source.take()
            for record in records:
                self.model.fold(record)
            self._see(records)
            self._pause_live(records)
            return records
        rewinder = self._rewinder
        if rewinder is None:
            rewinder = self._rewinder = Rewinder(self.model)
        if playback.starts != self._starts:
            self._starts, self._seen = playback.starts, 0
            self.present(self.presentation)
            rewinder.restart()
        elif playback.position < rewinder.folded:
            rewinder.back_to(playback.position, playback.log.records)
        records = playback.take()
        fresh = rewinder.folded + len(records) - self._seen
        rewinder.fold(records)
        if fresh > 0:
            self._see(records[-fresh:])
        if self._jumped and playback.settled:
            self._jumped = False
            if self.reel is not None:
                self.reel.jump(self.now())
        self._say_stop(playback)
        return records

    def _see(self, records: Sequence[Record]) -> None:
        self._seen += len(records)
        if self.reel is not None:
            for record in records:
                self.reel.see(record)

    def _say_stop(self, playback: Playback) -> None:
        """It halted by itself, or at what was looked for."""
        stopped_by = playback.stopped_by
        if stopped_by is not self._halted_at:
            self._halted_at = stopped_by
            if stopped_by is not None:
                self.say(f"Halted: {self._words(stopped_by)}. Space goes on.", seconds=None)

    def _pause_live(self, records: Sequence[Record]) -> None:
        """Ask a live job to pause at the first moment that is waited for; parts in progress are finished."""
        pause_on = self.presentation.pause_on
        if not pause_on or not self.can_control or self.source.world != "live":
            return
        if self._pausing:
            # Paused, and gone on since: from here on the next one counts.
            self._pausing = self.model.paused or not any(
                isinstance(record.event, JobResumed) for record in records
            )
            return
        for record in records:
            moment = moment_of(record.event)
            told = record.seq < getattr(self.source, "history", 0)
            if moment is not None and moment.kind in pause_on and not told:
                self._pausing = True
                refusal = self.source.send(Pause(by="--pause-on"))
                words = self._words(record)
                self.say(refusal or f"Paused: {words}. Space goes on.", seconds=None)
                return

    @staticmethod
    def _words(record: Record) -> str:
        line = describe(record.at, record.event)
        if line is None:
            worker = getattr(record.event, "worker", "") or ""
            return f"{worker} {record.event.__struct_config__.tag}".replace("_", " ").strip()
        return f"{line.worker} {line.text}".strip().rstrip(".")

    # --- captions ----------------------------------------------------------------------------------------

    @property
    def caption(self) -> str | None:
        """What is to be read now."""
        if self.reel is None:
            return None
        shown = self.reel.shown(self.reading_at(), self.rate)
        return None if shown is None else shown.caption.text

    @property
    def rate(self) -> float:
        clock = self.virtual_time
        return 1.0 if clock is None else clock.rate

    def reading_at(self) -> float:
        """The present; when the run is over, its clock stands still, and reading goes on."""
        if self._ended_at is None:
            return self.now()
        return self.now() + (self.real.now() - self._ended_at) * self.rate

    def note_end(self, ended: bool) -> None:
        """Whether the run is over now; one that went back isn't."""
        self._ended_at = self.real.now() if ended else None

    def action_skip_caption(self) -> None:
        if self.reel is not None and self.reel.skip(self.reading_at(), self.rate):
            self.repaint()

    # --- the bar of a recording --------------------------------------------------------------------------

    @property
    def looking_for(self) -> str:
        return LOOKED_FOR[self._looking_for][0]

    def replay_bar(self, now: float) -> ReplayRow | None:
        """In place of the progress of a recording; None where there is none."""
        playback = self.playback
        if playback is None or playback.world != "recording":
            return None
        log = playback.log
        if self._ticks is None or self._ticks[0] != len(log):
            self._ticks = len(log), ticks_of(log)
        return replay_row(log, playback.position, now, self._ticks[1], self.looking_for)

    def replay_facts(self) -> tuple[str, ...]:
        """For the title row of a simulation whose past is shown."""
        playback = self.playback
        if playback is None or not playback.in_past:
            return ()
        return (f"PAST: event {playback.position:,} of {playback.total:,}",)

    # --- keys --------------------------------------------------------------------------------------------

    def say_where(self) -> None:
        """Which event is shown last, and when it was."""
        playback = self.playback
        assert playback is not None
        position = playback.position
        last = self._words(playback.log.records[position - 1]) if 0 < position <= len(playback.log) else ""
        self.say(f"{self.now():.2f} s, event {position:,} of {playback.total:,}: {last}.", seconds=None)

    def action_step_back(self) -> None:
        playback = self.playback
        if playback is None:
            return
        if playback.step_back():
            self._jumped = True
            self.tick()
            self.say_where()
        else:
            self.say("This is the beginning." if playback.position <= 1 else _NOT_KEPT, alert=True)

    def action_scrub(self, steps: int) -> None:
        playback = self.playback
        if playback is None:
            return
        begins, ends = playback.span
        step = max((ends - begins) * _SCRUB_SHARE, _SCRUB_SECONDS_MIN)
        self._went(playback.seek(playback.now() + steps * step))

    def action_seek_end(self, last: int) -> None:
        playback = self.playback
        if playback is not None and last:
            playback.to_end()
            self._went(True)
        elif playback is not None:
            self._went(playback.to_start())

    def action_to_present(self) -> None:
        self.action_seek_end(1)

    def _went(self, possible: bool) -> None:
        self._jumped = True
        self.tick()
        if not possible:
            self.say(_NOT_KEPT, alert=True)
        elif self.playback is not None and self.playback.halted:
            self.say_where()

    def action_moment(self, steps: int) -> None:
        playback = self.playback
        if playback is None:
            return
        name, kinds = LOOKED_FOR[self._looking_for]
        self._halted_at = None
        self._jumped = True
        found = playback.next_moment(kinds) if steps > 0 else playback.last_moment(kinds)
        self.tick()
        if found:
            return  # said by ``take``
        what = "lapse, duplicate, split, refusal, kill, loss or failure" if kinds == NEWS else name
        if steps > 0 and playback.world == "simulated" and not playback.ended:
            self.say(f"No {what} until {duration(self.now())}; n looks further.", alert=True)
        else:
            self.say(f"No {what} {'after' if steps > 0 else 'before'} this.", alert=True)

    def action_look_for(self) -> None:
        self._looking_for = (self._looking_for + 1) % len(LOOKED_FOR)
        name, kinds = LOOKED_FOR[self._looking_for]
        words = ", ".join(KINDS[kind] for kind in KINDS if kind in kinds) if len(kinds) <= 2 else "any news"
        self.say(f"n and N look for {name}: {words}.")

    def action_restart(self) -> None:
        playback = self.playback
        if playback is not None:
            if playback.restart():
                self.tick()
                self.say("From the beginning.")
        elif self.presentation.can_restart:
            if not self.ended:
                self.source.send(StopNow(reason="begun anew"))
            self.exit(Outcome("restart"))
