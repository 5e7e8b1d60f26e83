"""Command lines for the harness, built like those of `argosy`: `python -m tests.harness.simulate --json`."""

from __future__ import annotations

import typer

from argosy.cli.command import Body, command


def program(*bodies: Body, about: str | None = None) -> typer.Typer:
    """One function is the program; several are its subcommands. about: the first line of help for several."""
    app = typer.Typer(
        help=about,
        no_args_is_help=len(bodies) > 1,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for body in bodies:
        command(app, body.__name__, panel="Commands", connected=False)(body)
    return app
