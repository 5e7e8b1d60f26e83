"""Text from outside on the terminal: it passes through `visible`, like all text.

A line that a task prints may hold escape sequences, which would run in the operator's terminal: they move the cursor,
set the clipboard, or repaint Argosy's own output. So all text goes through `visible`: here for plain lines, in
`console` for text that rich lays out. Only `logs` and `results` leave bytes as they are, and only into a pipe or file.
"""

from __future__ import annotations

import typer

from argosy.figures.markup import visible


def say(text: str, *, err: bool = False) -> None:
    """A line, without layout."""
    typer.echo(visible(text), err=err)
