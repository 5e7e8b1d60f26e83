"""A supply kept up to date from pass to pass: rows are replaced, added and dropped; the others stay."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.placement.supply import InstanceRow, Supply

_MANY = 200  # rows added and dropped at once: above this, rebuilding all columns is quicker
Rank = tuple[Any, ...]
"""The position of a row: unique, and comparable with those of all others."""


class KeptSupply:
    """The rows by id, in the order of their ranks. `supply` always equals `Supply.of` of the rows, except that the
    codes of attributes may be in another order."""

    def __init__(self) -> None:
        self.supply = Supply.of([])
        self._rank_of: dict[str, Rank] = {}
        self._ranks: list[Rank] = []

    def __contains__(self, name: str) -> bool:
        return name in self._rank_of

    def below(self, rank: Rank) -> int:
        """The number of rows before a rank."""
        return bisect_left(self._ranks, rank)

    def change(self, rows: Mapping[str, tuple[Rank, InstanceRow] | None]) -> None:
        """By id, the rows that are new or different; None for rows that are gone."""
        moved: dict[str, tuple[Rank, InstanceRow] | None] = {}
        for name, new in rows.items():
            if (new[0] if new else None) != self._rank_of.get(name):
                moved[name] = new
            elif new:
                self.supply.put(bisect_left(self._ranks, new[0]), new[1])
        if moved:
            self._move(moved)

    def _move(self, moved: Mapping[str, tuple[Rank, InstanceRow] | None]) -> None:
        rows, ranks, source = list(self.supply.rows), self._ranks, list(range(len(self._ranks)))
        for name, new in moved.items():
            if (rank := self._rank_of.pop(name, None)) is not None:
                at = bisect_left(ranks, rank)
                del ranks[at], rows[at], source[at]
            if new:
                self._rank_of[name] = new[0]
                at = bisect_left(ranks, new[0])
                ranks.insert(at, new[0])
                rows.insert(at, new[1])
                source.insert(at, -1)
        if len(moved) > _MANY:
            self.supply = Supply.of(rows)
        else:
            self.supply = self.supply.rearranged(rows, np.array(source, dtype=np.int64))
