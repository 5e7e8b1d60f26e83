"""Whole gangs go where the loop that places one gang at a time puts them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.gangs.whole_gangs import whole_gangs


def one_at_a_time(room: list[int], zone: list[int], size: int, most: int) -> list[list[int]]:
    """The rule as a loop: the first zone that can take a whole gang, there the rows with most room left."""
    left, found = list(room), list[list[int]]()
    for code in sorted(set(zone)):
        while len(found) < most:
            rows = [row for row in range(len(left)) if zone[row] == code and left[row] > 0]
            if len(rows) < size:
                break
            chosen = sorted(sorted(rows, key=lambda row: (-left[row], row))[:size])
            for row in chosen:
                left[row] -= 1
            found.append(chosen)
    return found


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=12), st.integers(2, 5), st.integers(0, 9),
    st.booleans(),
)  # fmt: skip
def test_gangs_go_where_the_loop_puts_them(rows: list[tuple[int, int]], size: int, most: int, equal_room: bool) -> None:
    room, zone = [min(each, 2) and 2 if equal_room else each for each, _ in rows], [each for _, each in rows]
    found = whole_gangs(np.array(room, dtype=np.int64), np.array(zone, dtype=np.int64), size, most)
    assert found.tolist() == one_at_a_time(room, zone, size, most)
    for gang in found.tolist():
        assert len({*gang}) == size
        assert len({zone[row] for row in gang}) == 1
    used = Counter(found.ravel().tolist())
    assert all(count <= room[row] for row, count in used.items())


@pytest.mark.parametrize("most", [5, 1])
def test_instances_with_room_for_several_members_take_those_of_different_gangs(most: int) -> None:
    found = whole_gangs(np.array([3, 3, 3]), np.zeros(3, dtype=np.int64), 2, most)
    assert found.tolist() == [[0, 1], [0, 2], [1, 2], [0, 1]][:most]
