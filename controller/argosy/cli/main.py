"""The commands of `argosy`. Each has its own module; heavy imports are inside their functions.

Commands whose modules are slow to import, or absent, are listed by topic like the others. A module is imported when its
command is used. Help is plain text: typer's rich help imports a Markdown parser and takes 0.15 s (measured) of the 0.3
s that `--help` may take.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from argosy.cli import panels
from argosy.cli.cluster import instances, prices, queues
from argosy.cli.deployment import access, doctor
from argosy.cli.here import local
from argosy.cli.here.demo import command as demo
from argosy.cli.outside_text import say
from argosy.cli.problems import AWS_FAULT, USAGE, print_traceback
from argosy.cli.runs import (
    attempts,
    cost,
    events,
    exec,
    explain,
    interrupt,
    logs,
    plan,
    results,
    retry,
    run,
    status,
    submit,
    tasks,
    ui,
    update,
    validate,
    watch,
)
from argosy.cli.start import lacking

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
        """For listing: a placeholder with the help line."""
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


_ENV = "Services and daemons: create, deploy, update, scale, roll back."
_QUERY = "Show which instances a placement expression matches."
_PUT = "Upload a folder under a name, for later runs."
_DATA = "Uploaded folders: list them, delete their names."
_SCHEDULE = "Start runs on a schedule."
_CATALOGUE = "Instance types: their sizes and prices."
_DUMP = "Write one file for a bug report, without secrets."


class Commands(LateGroup):
    """All of them. Modules that are slow to import are only named here, with the first line of their help."""

    late: ClassVar[Mapping[str, Late]] = {
        "env": Late("argosy.cli.services.command", _ENV, panels.SERVICES),
        "query": Late("argosy.cli.cluster.query", _QUERY, panels.CLUSTER),
        "report": Late("argosy.cli.runs.report", "Runs as a page; benchmarks side by side.", panels.RUNS),
        "put": Late("argosy.cli.runs.data", _PUT, panels.RUNS),
        "data": Late("argosy.cli.runs.data", _DATA, panels.RUNS),
        "schedule": Late("argosy.cli.schedules.command", _SCHEDULE, panels.SCHEDULES),
        "catalogue": Late("argosy.cli.cluster.catalogue.command", _CATALOGUE, panels.CLUSTER),
        "debug-dump": Late("argosy.cli.deployment.debug_dump", _DUMP, panels.SETUP),
    }


def help_of(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="The command's name.", show_default=False)
    ] = None,
) -> None:
    """The help of a command, and its options."""
    assert ctx.parent is not None, "help is a command of a group"
    context: Any = ctx.parent
    for word in words or ():
        if not hasattr(context.command, "resolve_command"):
            ctx.fail(f"{context.command_path} has no subcommands.")
        _, found, _ = context.command.resolve_command(context, [word])
        context = type(ctx)(found, info_name=word, parent=context)
    say(context.get_help())


_RUNS = (
    run,
    submit,
    plan,
    watch,
    status,
    tasks,
    attempts,
    ui,
    retry,
    update,
    explain,
    cost,
    results,
    logs,
    exec,
    interrupt,
    events,
    validate,
)
app = typer.Typer(
    name="argosy",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (*_RUNS, instances, queues, prices, doctor, access, local, demo):
    part.register(app)
app.command("help", rich_help_panel=panels.HERE)(help_of)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"argosy {version('argosy')}")
        raise typer.Exit


@app.callback(
    epilog="Start here: `argosy demo` needs no AWS account. Exit codes: 0 ok, 1 the run has failures, "
    "2 usage or invalid spec, 3 AWS error, 4 wait timed out, 130 interrupted."
)
def argosy(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Massive batch computations in containers on Amazon ECS over EC2 Spot."""


def main(program: Callable[[], object] = app) -> None:
    """The entry point. Argosy's own faults exit with 3, so that 1 keeps its meaning: the run has failures."""
    try:
        program()
    except Exception as fault:
        if said := lacking(fault):
            say(said, err=True)
            raise SystemExit(USAGE) from fault
        print_traceback(fault)
        raise SystemExit(AWS_FAULT) from fault
