"""Commands listed by topic in `argosy --help`, even those whose modules are slow to import or absent.

`LateGroup` holds the names of the late commands and one line of help for each. A module is imported when its command is
used: its `register(app)` then adds the command to an empty typer app, from which it is taken. Help is plain text:
typer's rich help imports a Markdown parser and takes 0.15 s (measured) of the 0.3 s that `--help` may take.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

NAME_WIDTH = 20  # columns for a command's name in the list, at most
MARGIN = 4  # columns before and after it


@dataclass(frozen=True)
class Late:
    """A command that its module's `register(app)` adds under the name it is listed with."""

    module: str
    help: str
    panel: str


class LateGroup(TyperGroup):
    """A group with `late` commands besides its own. Commands whose module is not installed are not listed."""

    late: ClassVar[Mapping[str, Late]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *(name for name, late in self.late.items() if find_spec(late.module))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For listing: a stand-in with the help line."""
        late = self.late.get(cmd_name)
        if late is None or not find_spec(late.module):
            return super().get_command(ctx, cmd_name)
        return TyperCommand(cmd_name, help=late.help, rich_help_panel=late.panel)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section per panel, in the order in which they first appear."""
        panels: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            found = self.get_command(ctx, name)
            panel = getattr(found, "rich_help_panel", None)
            panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append((name, found))
        for panel, commands in panels.items():
            left = formatter.width - max(len(name) for name, _ in commands) - MARGIN
            with formatter.section(panel):
                rows = [(name, found.get_short_help_str(limit=left)) for name, found in commands]
                formatter.write_dl(rows, col_max=NAME_WIDTH)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """For use: the real one."""
        name, found, rest = super().resolve_command(ctx, args)
        if name is not None and found is not None and name in self.late:
            found = load(name, self.late[name])
        return name, found, rest


def load(name: str, late: Late) -> Any:
    """The command itself. Raises KeyError when the module's `register` does not add it."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    importlib.import_module(late.module).register(app)
    return get_group(app).commands[name]
