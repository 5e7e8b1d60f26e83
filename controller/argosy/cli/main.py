"""The commands of `argosy`, by topic. A command's module is imported when the command is used.

Help is plain text: typer's rich help imports a Markdown parser and takes 0.15 s (measured) of the 0.3 s that `--help`
may take.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from argosy.cli import panels
from argosy.cli.outside_text import say
from argosy.cli.problems import AWS_FAULT, USAGE, print_traceback
from argosy.cli.start import lacking

NAME_WIDTH = 20  # columns for a command's name in the list, at most
MARGIN = 4  # columns before and after it


@dataclass(frozen=True)
class LazyCommand:
    """A command that its module's `register(app)` adds under the name it is listed with."""

    module: str
    help: str
    panel: str


class LazyGroup(TyperGroup):
    """A group with `late` commands before its own."""

    late: ClassVar[Mapping[str, LazyCommand]] = {}

    def __init__(self, **options: Any) -> None:
        """Late commands are placeholders with the help line until they are used."""
        super().__init__(**options)
        late = {name: TyperCommand(name, help=x.help, rich_help_panel=x.panel) for name, x in self.late.items()}
        self.commands = {**late, **self.commands}

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


@cache
def load(name: str, late: LazyCommand) -> Any:
    """The command itself. Raises KeyError when the module's `register` does not add it."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    importlib.import_module(late.module).register(app)
    return get_group(app).commands[name]


# By panel: a command, the module below `argosy.cli` that registers it, and the first line of its help.
_TABLE = {
    panels.RUNS: {
        "run": ("runs.run", "Run your own program: it is uploaded, run and followed."),
        "submit": ("runs.submit", "Submit a run and follow it to its end; its id is printed at once."),
        "plan": ("runs.plan", "What a run would buy, cost and take."),
        "watch": ("runs.watch", "Follow a run until it ends."),
        "status": ("runs.status", "How a run is doing, at a glance."),
        "runs": ("runs.status", "The latest runs, newest first."),
        "cancel": ("runs.status", "Stop a run: what has finished stays, the rest is stopped."),
        "tasks": ("runs.tasks", "The tasks of a run that all filters choose."),
        "attempts": ("runs.attempts", "A run's attempts that all filters choose, the last to end last."),
        "ui": ("runs.ui", "Runs, cluster and prices in your browser, until Ctrl-C."),
        "retry": ("runs.retry", "Run again what did not succeed; what succeeded keeps its results."),
        "update": ("runs.update", "Change what an open run asks for, from the next tick on."),
        "explain": ("runs.explain", "Why a run's tasks wait, in numbers, and what would help."),
        "cost": ("runs.cost", "What a run or an environment has cost, where and for what."),
        "results": ("runs.results", "Where a run's results are; copies them here, or merges them."),
        "logs": ("runs.logs", "What the tasks of a run or an environment print."),
        "exec": ("runs.exec", "A shell, or one command, in the container of a task that runs."),
        "interrupt": ("runs.interrupt", "Give the instance of a task a spot notice."),
        "events": ("runs.events", "What happened in a run or anywhere, oldest first."),
        "report": ("runs.report", "Runs as a page; benchmarks side by side."),
        "put": ("runs.data", "Upload a folder under a name, for later runs."),
        "data": ("runs.data", "Uploaded folders: list them, delete their names."),
    },
    panels.SPECS: {
        "validate": ("runs.validate", "Check a run spec: every fault at once, with its line."),
        "schema": ("runs.validate", "Print the JSON Schema of run specs, for editors."),
    },
    panels.CLUSTER: {
        "prices": ("cluster.prices", "Spot prices now and in the last week, cheapest first."),
        "cluster": ("cluster.instances", "The instances: how full they are, their age and price."),
        "instances": ("cluster.instances", "The instances that all filters choose, ended ones too."),
        "queues": ("cluster.queues", "The queues and their usage."),
        "query": ("cluster.query", "Show which instances a placement expression matches."),
        "catalogue": ("cluster.catalogue.command", "Instance types: their sizes and prices."),
    },
    panels.SETUP: {
        "doctor": ("deployment.doctor", "What is missing for a deployment, and what to type."),
        "access": ("deployment.access", "Let people use a queue and no other: prints the policy."),
        "image": ("deployment.image", "AMIs that hold an image, so that instances boot with it."),
        "debug-dump": ("deployment.debug_dump", "Write one file for a bug report, without secrets."),
    },
    panels.SERVICES: {"env": ("services.command", "Services and daemons: create, deploy, update, scale, roll back.")},
    panels.SCHEDULES: {"schedule": ("schedules.command", "Start runs on a schedule.")},
    panels.HERE: {
        "demo": ("here.demo.command", "A real batch here, with GPUs and a spot interruption."),
        "local": ("here.local", "Start AWS on this machine and keep it running until Ctrl-C."),
    },
}


class Commands(LazyGroup):
    """All of them."""

    late: ClassVar[Mapping[str, LazyCommand]] = {
        name: LazyCommand(f"argosy.cli.{module}", help_line, panel)
        for panel, commands in _TABLE.items()
        for name, (module, help_line) in commands.items()
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


app = typer.Typer(
    name="argosy",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
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
