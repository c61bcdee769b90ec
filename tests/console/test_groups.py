"""Options of a group are options of the command, in the group's place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from console.groups import grouped


@dataclass(frozen=True, kw_only=True)
class Size:
    width: Annotated[int, typer.Option("--width")] = 1
    height: Annotated[int, typer.Option("--height")] = 2


def test_a_group_is_filled_from_its_options_and_the_help_keeps_their_order() -> None:
    seen: list[tuple[str, Size, bool]] = []

    def draw(name: str, *, size: Size, fill: Annotated[bool, typer.Option("--fill")] = False) -> int:
        """Draw it."""
        seen.append((name, size, fill))
        return 7

    app = typer.Typer()
    app.command()(grouped(draw))
    assert app(args=["a", "--height", "5", "--fill"], standalone_mode=False) == 7
    assert seen == [("a", Size(width=1, height=5), True)]
    command = typer.main.get_command(app)
    assert [parameter.name for parameter in command.params][:4] == ["name", "width", "height", "fill"]
    assert command.help == "Draw it."
