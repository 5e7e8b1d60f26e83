"""How do several keys become one number that sorts like them?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.placement.arrays import IntArray

_MAX_PACKED: Final = 1 << 62


def combine(columns: Sequence[IntArray]) -> IntArray:
    """(n,) int64 that orders rows as the tuples of `columns` do, equal tuples alike.

    Comparable within this call only.
    """
    if len(columns) == 1:
        return columns[0]
    lows = [int(column.min(initial=0)) for column in columns]
    spans = [int(column.max(initial=0)) - low + 1 for column, low in zip(columns, lows, strict=True)]
    packed, size = columns[0] - lows[0], spans[0]
    for column, low, span in zip(columns[1:], lows[1:], spans[1:], strict=True):
        size *= span
        if size > _MAX_PACKED:
            return _ranks(columns)
        packed = packed * span + (column - low)
    return packed


def with_rows(key: IntArray) -> IntArray | None:
    """(n,) int64: the key with its position as last digit, so that no two are equal; None where that does not fit 62
    bits.
    """
    low, high = int(key.min()), int(key.max())
    if (high - low + 1) * len(key) > _MAX_PACKED:
        return None
    return (key - low) * len(key) + np.arange(len(key))


def _ranks(columns: Sequence[IntArray]) -> IntArray:
    """Dense ranks of the tuples."""
    order = np.lexsort(columns[::-1])
    changes = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        sorted_column = column[order]
        changes[1:] |= sorted_column[1:] != sorted_column[:-1]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(changes)
    return ranks
