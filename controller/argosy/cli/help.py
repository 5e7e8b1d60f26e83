"""The command `help`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from argosy.cli.outside_text import say


def register(app: typer.Typer, panel: str) -> None:
    app.command("help", rich_help_panel=panel)(show)


def show(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="The command's name.", show_default=False)
    ] = None,
) -> None:
    """What a command does, and its options."""
    assert ctx.parent is not None, "help is a command of a group"
    context: Any = ctx.parent
    for word in words or ():
        if not hasattr(context.command, "resolve_command"):
            ctx.fail(f"{context.command_path} has no commands of its own.")
        _, found, _ = context.command.resolve_command(context, [word])
        context = type(ctx)(found, info_name=word, parent=context)
    say(context.get_help())
