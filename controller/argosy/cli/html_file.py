"""A command's answer as one file that a browser opens, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.problems import CliError
from argosy.cli.session import Session

if TYPE_CHECKING:
    from argosy.figures.document import Page

HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write a web page to this file; it loads nothing else.", show_default=False
    ),
]


def write(session: Session, page: Page, file: Path, command: str) -> None:
    """Write the page, and name its path on standard error. command: the line that made it. Raises CliError."""
    from datetime import UTC, datetime

    from argosy.cli.outside_text import say
    from argosy.figures.document import one_file
    from argosy.figures.numbers import size

    made = f"{datetime.fromtimestamp(session.tools.now(), UTC):%Y-%m-%d %H:%M} UTC · {command}"
    text = one_file(page, made)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise CliError(f"{file} cannot be written: {fault.strerror}.") from fault
    say(f"{file}: {size(len(text.encode()))}", err=True)
