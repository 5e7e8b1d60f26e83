"""Help of a command in which a value is one word: typer's names of types and ranges are left out."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_WORDS = {"int": "N", "int range": "N", "float": "NUMBER", "float range": "NUMBER"}
_TYPE = re.compile(r" ?<([a-z\[\] ]+)>")
_BOUND = r"(?:[^;\]\s]+<=?)?x[<>]=?[^;\]]+"  # x>=1, or 0<=x<=65535
_RANGE = re.compile(rf"  \[{_BOUND}\]|; {_BOUND}|(?<=\[){_BOUND}; ")


class PlainCommand(TyperCommand):
    """`--limit N  At most this many.`, not `--limit <int range>  At most this many.  [x>=1]`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write = formatter.write_dl

        def plain(rows: Any, **layout: Any) -> None:
            write([(_named(name), _RANGE.sub("", text)) for name, text in rows], **layout)

        formatter.write_dl = plain
        super().format_options(ctx, formatter)


def _named(name: str) -> str:
    """An argument has its name already; an option is followed by a word for its value."""
    if not name.startswith("-"):
        return _TYPE.sub("", name)
    return _TYPE.sub(lambda found: f" {_WORDS.get(found[1], 'TEXT')}", name)
