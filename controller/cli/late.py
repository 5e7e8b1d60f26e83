"""How do commands of modules that are slow to import, or not there, show up without being imported?

`LateGroup` knows their names and one line of help each; the module is imported when the command is used, and its
`register(app)` is called with an empty typer app that then hands over the command.
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


@dataclass(frozen=True)
class Late:
    """A command that its module's `register(app)` adds under the name it is listed with."""

    module: str
    help: str
    panel: str


class LateGroup(TyperGroup):
    """A group with `late` commands besides its own; those whose module is not installed are not listed."""

    late: ClassVar[Mapping[str, Late]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *(name for name, late in self.late.items() if find_spec(late.module))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For listing: a stand-in with the help line."""
        late = self.late.get(cmd_name)
        if late is None or not find_spec(late.module):
            return super().get_command(ctx, cmd_name)
        return TyperCommand(cmd_name, help=late.help, rich_help_panel=late.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """For use: the real one."""
        name, found, rest = super().resolve_command(ctx, args)
        if name in self.late and found is not None:
            found = load(name, self.late[name])
        return name, found, rest


def load(name: str, late: Late) -> Any:
    """The command itself. Raises KeyError when the module's `register` does not add it."""
    app = typer.Typer()
    importlib.import_module(late.module).register(app)
    return get_group(app).commands[name]
