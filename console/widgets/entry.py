"""A line that one types into, which takes keys in the order in which they were typed.

Textual's takes a letter at once, and enter and backspace, which are bindings, only after they went all the
way up to the app: of keys that come in one read they are the last. And who types fast, or on a busy machine,
is there before the line has the focus: some keys come by what had it before, and others overtake them. So the
first moments' keys are gathered and put in order, and only then the line gets the focus.
"""

from __future__ import annotations

from textual import events
from textual.widgets import Input

SETTLE_SECONDS = 0.1


class Entry(Input):
    """``gather`` when it comes up; ``hear`` what comes by others; ``forget`` when it goes."""

    _early: list[events.Key] | None = None  #: typed since ``gather``; None: it has settled

    def gather(self) -> None:
        self._early = []
        self.set_timer(SETTLE_SECONDS, self._settle)

    def forget(self) -> None:
        self._early = None

    async def hear(self, event: events.Key) -> None:
        """A key that went to another widget but is meant for this one."""
        if event.key in ("enter", "backspace") or event.is_printable:
            event.stop()
            event.prevent_default()
            if self._early is None:
                await self.take(event)
            else:
                self._early.append(event)

    async def _settle(self) -> None:
        early, self._early = self._early, None
        if early is None:
            return
        self.screen.set_focus(self)
        for key in sorted(early, key=lambda key: key.time):
            await self.take(key)

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("enter", "backspace"):
            event.stop()
            event.prevent_default()
            await self.take(event)
        else:
            await super()._on_key(event)

    async def take(self, key: events.Key) -> None:
        """Do what a key says."""
        match key.key:
            case "enter":
                await self.action_submit()
            case "backspace":
                self.action_delete_left()
            case _:
                self.replace(key.character or "", *self.selection)
