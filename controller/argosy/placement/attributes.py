"""How does a column of strings become something numpy can filter? By codes into a small table of distinct values.

An expression is judged once for every distinct value, never once for every instance, and the answers are gathered by
code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from argosy.placement.arrays import BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """`values`: the distinct values in order of first appearance; `codes`: (m,) int64 into it, `len(values)` =
    missing.
    """

    values: tuple[str, ...]
    codes: IntArray

    @classmethod
    def of(cls, column: Iterable[str | None]) -> Codes:
        """One code for every distinct value, in order of first appearance."""
        seen: dict[str | None, int] = {}
        codes = [seen.setdefault(value, len(seen)) for value in column]
        missing = seen.pop(None, None)
        array = np.array(codes, dtype=np.int64)
        if missing is not None:
            array[array == missing] = len(seen) + 1
            array[array > missing] -= 1
        return cls(tuple(value for value in seen if value is not None), array)

    def where(self, accepts: Callable[[str], bool], *, missing: bool = False) -> BoolArray:
        """(m,) bool: the rows whose value is accepted; a row without the value gets `missing`."""
        table = np.array([accepts(value) for value in self.values] + [missing], dtype=np.bool_)
        return table[self.codes]
