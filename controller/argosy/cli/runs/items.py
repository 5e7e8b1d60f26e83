"""The items of `argosy run`: lines, JSON lines, or the rows of a table by the names of its heading."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

from argosy.cli.problems import CliError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def items_of(file: Path) -> list[Any]:
    """A text per line, a JSON value per line of a .jsonl, or a mapping per row of a .csv or .tsv. Raises CliError."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise CliError(f"Cannot read {file}: {getattr(fault, 'strerror', None) or 'it is not UTF-8 text'}.") from fault
    if file.suffix.lower() in _DELIMITERS:
        items = _rows(file, text)
    else:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        items = [_json(file, number, line) if file.suffix == ".jsonl" else line for number, line in lines]
    if not items:
        raise CliError(f"{file} has no items.", next_step="write one item per line")
    return items


def _rows(file: Path, text: str) -> list[Any]:
    table = csv.reader(io.StringIO(text, newline=""), delimiter=_DELIMITERS[file.suffix.lower()], strict=True)
    names: list[str] = []
    rows = []
    try:
        for row in table:
            if not names:
                names = [name.strip() for name in row]
                _check_heading(file, names)
            elif row and len(row) != len(names):
                raise CliError(f"{file}:{table.line_num}: {len(row)} values, but the heading has {len(names)} names.")
            elif row:
                rows.append(dict(zip(names, row, strict=True)))
    except csv.Error as fault:
        raise CliError(f"{file}:{table.line_num}: not CSV: {fault}.") from fault
    return rows


def _check_heading(file: Path, names: list[str]) -> None:
    if "" in names or len(set(names)) < len(names):
        raise CliError(
            f"{file}:1: the heading needs a different name for each column: {', '.join(names)}.",
            next_step="name each column for ${item.NAME}; for a task per line, give the file another suffix",
        )


def _json(file: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as fault:
        raise CliError(f"{file}:{number}: not JSON: {fault}.", next_step="in a .jsonl each line is a value") from fault
