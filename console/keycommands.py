"""The command palette (ctrl+p): every key that can be used on this screen now, by what it does.

Rule of this file: the palette knows no command of its own. It lists the bindings that are active where it was
opened, so that nothing can be done in it that a key can't do, and keys that are grey are not in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode
from textual.screen import Screen

#: Names of keys that would be signs beyond ASCII, or longer than need be.
_NAMES = {"enter": "enter", "up": "up", "down": "down", "left": "left", "right": "right"}


#: Actions that are of no use in a list of commands.
_SILENT = {"command_palette", "app.focus_next", "app.focus_previous", "screen.copy_text"}


@dataclass(frozen=True, slots=True)
class KeyCommand:
    """An action with its words and all keys that lead to it."""

    words: str
    keys: tuple[str, ...]
    action: str
    node: DOMNode

    @property
    def title(self) -> str:
        return f"{self.words}  ({' '.join(self.keys)})"


def key_commands(screen: Screen[object]) -> list[KeyCommand]:
    """What can be done on ``screen`` now, its own commands first."""
    found: dict[tuple[DOMNode, str], KeyCommand] = {}
    for active in screen.active_bindings.values():
        binding, node = active.binding, active.node
        if not active.enabled or not binding.description or not isinstance(node, Screen | App):
            continue
        if binding.action in _SILENT:
            continue
        place = (node, binding.action)
        keys = found[place].keys if place in found else ()
        key = _NAMES.get(binding.key) or screen.app.get_key_display(binding)
        found[place] = KeyCommand(binding.description, (*keys, key), binding.action, node)
    return sorted(found.values(), key=lambda command: isinstance(command.node, App))


class KeyCommands(Provider):
    """``key_commands`` of the screen under the palette."""

    async def discover(self) -> Hits:
        for command, run in self._commands():
            yield DiscoveryHit(command.title, run, command.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command, run in self._commands():
            score = matcher.match(command.title)
            if score > 0:
                yield Hit(score, matcher.highlight(command.title), run, command.title)

    def _commands(self) -> Iterator[tuple[KeyCommand, Callable[[], Awaitable[object]]]]:
        for command in key_commands(self.screen):
            yield command, partial(self.app.run_action, command.action, command.node)
