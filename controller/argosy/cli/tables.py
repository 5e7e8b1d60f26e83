"""Tables in a terminal of any width: no id and no number is ever cut.

If the width is too small, texts are wrapped first, then the least important columns are dropped, with a note
below. If that is not enough, every row becomes a block with a line for each of its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rich.cells import cell_len
from rich.table import Table

from argosy.cli.console import PlainText

GAP = 2  # blanks between columns
TEXT_WIDTH = 24  # columns that a text keeps before other columns go in its favour
BLOCK_WIDTH = 12  # columns of a value in a block, at least
_NOTHING = ("", "-")


@dataclass(frozen=True)
class Column:
    """One heading. is_text: a sentence, which may be wrapped; ids and numbers may not."""

    heading: str
    is_right: bool = False
    is_text: bool = False

    @classmethod
    def of(cls, heading: str) -> Column:
        """`>COST` is aligned on the right, `~REASON` is a text."""
        return cls(heading.lstrip(">~"), heading.startswith(">"), heading.startswith("~"))


class PlainTable:
    """Columns without rules. least: headings of the columns to drop where the width is short, the first one first."""

    def __init__(self, *headings: str, least: Sequence[str] = ()) -> None:
        self.columns = [Column.of(each) for each in headings]
        names = [each.heading for each in self.columns]
        self._least = [names.index(each) for each in least]
        self._rows: list[list[PlainText]] = []

    def add_row(self, *cells: str | PlainText) -> None:
        """One cell for each column."""
        row = [PlainText(_one_line(each)) if isinstance(each, str) else each for each in cells]
        assert len(row) == len(self.columns), "a cell for each column"
        self._rows.append(row)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[PlainText]:
        chosen = fitting(self._widths(), self._texts(), self._that_may_go(), options.max_width)
        room = options.max_width
        for line in self._blocks(console, room) if chosen is None else self._lines(console, chosen, room):
            line.no_wrap, line.overflow = True, "ignore"
            yield line

    def _widths(self) -> list[int]:
        """The width that each column needs to be shown whole."""
        return [
            max([cell_len(column.heading), *(cell_len(row[place].plain) for row in self._rows)])
            for place, column in enumerate(self.columns)
        ]

    def _texts(self) -> list[int]:
        return [place for place, column in enumerate(self.columns) if column.is_text]

    def _that_may_go(self) -> list[int]:
        """Empty columns are dropped before all others."""
        empty = [place for place in self._least if self._is_empty(place)]
        return [*empty, *(place for place in self._least if place not in empty)]

    def _is_empty(self, place: int) -> bool:
        return all(row[place].plain in _NOTHING for row in self._rows)

    def _lines(self, console: Any, widths: Mapping[int, int], room: int) -> Iterator[PlainText]:
        headings = [PlainText(each.heading, "dim") for each in self.columns]
        for row in (headings, *self._rows):
            yield from self._row(console, row, widths)
        missing = [place for place in range(len(self.columns)) if place not in widths and not self._is_empty(place)]
        if missing:
            names = ", ".join(self.columns[place].heading for place in missing)
            yield from _wrapped(console, PlainText(f"not shown, to fit the width: {names}", "dim"), room)

    def _row(self, console: Any, row: Sequence[PlainText], widths: Mapping[int, int]) -> Iterator[PlainText]:
        cells = {place: _wrapped(console, row[place], width) for place, width in widths.items()}
        last = max(widths)
        for number in range(max(len(lines) for lines in cells.values())):
            line = PlainText()
            for place, lines in cells.items():
                part = lines[number] if number < len(lines) else PlainText()
                blanks = " " * (widths[place] - cell_len(part.plain))
                is_right = self.columns[place].is_right
                line.append(blanks if is_right else "").append(part)
                if place != last:
                    line.append(("" if is_right else blanks) + " " * GAP)
            yield line

    def _blocks(self, console: Any, room: int) -> Iterator[PlainText]:
        label = max(cell_len(each.heading) for each in self.columns) + GAP
        for number, row in enumerate(self._rows):
            if number:
                yield PlainText()
            for column, cell in zip(self.columns, row, strict=True):
                if cell.plain in _NOTHING:
                    continue
                for place, part in enumerate(_wrapped(console, cell, max(BLOCK_WIDTH, room - label))):
                    heading = (column.heading if place == 0 else "").ljust(label)
                    yield PlainText().append(heading, "dim").append(part)


def fitting(widths: Sequence[int], texts: Sequence[int], may_go: Sequence[int], room: int) -> dict[int, int] | None:
    """Column -> its width, of the columns shown, in their order; None if there is no room for the columns that must
    stay.

    widths: the needs of each column. texts: columns that may be narrower than that. may_go: the first one is dropped
    first.
    """
    shown = list(range(len(widths)))
    for going in (None, *may_go):
        shown = [place for place in shown if place != going]
        spare = room - GAP * (len(shown) - 1) - sum(widths[place] for place in shown)
        narrowest = {place: min(widths[place], TEXT_WIDTH) for place in shown if place in texts}
        if spare >= 0:
            return {place: widths[place] for place in shown}
        if spare + sum(widths[place] - least for place, least in narrowest.items()) >= 0:
            return _narrowed({place: widths[place] for place in shown}, narrowest, -spare)
    return None


def _narrowed(widths: dict[int, int], narrowest: Mapping[int, int], excess: int) -> dict[int, int]:
    """Narrow the widest texts first. narrowest: the least width of each text."""
    for place in sorted(narrowest, key=lambda each: widths[each] - narrowest[each], reverse=True):
        given = min(excess, widths[place] - narrowest[place])
        widths[place] -= given
        excess -= given
    return widths


def facts_grid(rows: Sequence[tuple[str, str | PlainText]], label_width: int = 0) -> Table:
    """Names on the left and their meanings on the right: wrapped where necessary, and never cut."""
    grid = Table.grid(padding=(0, GAP))
    grid.add_column(style="dim", no_wrap=True, min_width=label_width or None)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value)
    return grid


def _one_line(text: str) -> str:
    return text.translate({ord("\n"): " ", ord("\t"): " "})


def _wrapped(console: Any, cell: PlainText, width: int) -> list[PlainText]:
    """Break at blanks if there are any; a longer word continues on the next line."""
    if cell_len(cell.plain) <= width:
        return [cell]
    return cast("list[PlainText]", list(cell.wrap(console, width, overflow="fold")))
