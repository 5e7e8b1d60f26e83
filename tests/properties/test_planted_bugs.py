"""Would the comparison with the reference loop notice a wrong kernel? Each bug below is planted in turn and must be
found.

1 the last instance is filled to the brim instead of in part · 2 ties go to the higher row · 3 a water level one too low
4 the rest of a level goes to the wrong end · 5 keys that rise and fall are sorted without their running maximum
6 a block is committed without its slack · 7 a changed row's key is not brought up to date · 8 a host port is not
remembered 9 the group's tasks are not counted · 10 one GPU more than there is · 11 constraints on running tasks see the
past only · 12 an interleaved queue does not see that a task was put on an idle instance
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from argosy.placement import feasibility, kernels, key_matrix, pass_state, place
from tests.placement_cases import busy_cases, cases, check, plain_cases, tall_cases

SEARCH = settings(
    max_examples=3_000, deadline=None, database=None, phases=[Phase.generate],
    report_multiple_bugs=False, suppress_health_check=list(HealthCheck),
)  # fmt: skip
real_fill, real_level, real_blocks, real_take = (
    kernels.fill_in_order,
    kernels.water_level,
    kernels.take_blocks,
    pass_state.PassState.take,
)
real_place_one, real_fitting = key_matrix._KeyMatrix.place_one, feasibility.fitting


def to_the_brim(key: Any, room: Any, n: int) -> Any:
    counts = real_fill(key, room, n)
    return np.where(counts > 0, room, 0)


def higher_row(key: Any, room: Any, n: int) -> Any:
    return real_fill(key[::-1], room[::-1], n)[::-1]


def level_too_low(existing: Any, room: Any, n: int) -> Any:
    counts, tied, rest = real_level(existing, room, n)
    return np.maximum(counts - 1, 0), tied, rest


def rest_to_the_end(existing: Any, room: Any, n: int) -> Any:
    counts, tied, rest = real_level(existing, room, n)
    counts[tied[len(tied) - rest :]] += 1
    return counts, tied[:0], 0


def no_running_maximum(keys: Any, room: Any, straight: Any, n: int) -> Any:
    usable = np.arange(keys.shape[1]) < room[:, None]
    owner, _ = np.nonzero(usable)
    counts = np.bincount(owner[keys[usable].argsort(kind="stable")[:n]], minlength=len(room))
    return counts, int(counts.sum())


def no_slack(last_keys: Any, sizes: Any, room: Any, n: int) -> Any:
    flat = sizes.ravel()
    order = last_keys.ravel().argsort(kind="stable")
    order = order[flat[order] > 0]
    taken = order[flat[order].cumsum() <= n]
    return np.bincount(taken // last_keys.shape[1], flat[taken], len(room)).astype(np.int64)


def stale_column(board: Any, kind: int, *drawn: Any) -> int:
    before = board.keys.copy()
    row = real_place_one(board, kind, *drawn)
    board.keys[:] = np.where(board.keys >= 1 << 62, board.keys, before)
    return row


def asleep(board: Any, kind: int, *drawn: Any) -> int:
    board._idle = [False] * len(board._idle)
    return real_place_one(board, kind, *drawn)


def forgets(what: str) -> Callable[..., None]:
    def take(self: Any, batch: Any, rows: Any, counts: Any) -> None:
        groups, ports = dict(self._groups), dict(self._ports)
        saved = {name: column.copy() for name, column in (groups if what == "groups" else ports).items()}
        real_take(self, batch, rows, counts)
        (self._groups if what == "groups" else self._ports).clear()
        (self._groups if what == "groups" else self._ports).update(saved)

    return take


def one_gpu_more(rules: Any, state_: Any) -> Any:
    state_.free[2] += 1
    found = real_fitting(rules, state_)
    state_.free[2] -= 1
    return found


def sees_the_past_only(query: Any, group: str, state_: Any) -> Any:
    accepted = feasibility.matching(query, state_.supply, state_)
    return np.where(accepted, feasibility.ENDLESS, 0)


@pytest.mark.parametrize(
    ("module", "name", "bug", "pool", "matrix_from", "found_early"),
    [
        (kernels, "fill_in_order", to_the_brim, cases, 10_000, 0),
        (kernels, "fill_in_order", higher_row, cases, 10_000, 1),
        (kernels, "water_level", level_too_low, cases, 10_000, 1),
        (kernels, "water_level", rest_to_the_end, cases, 10_000, 5),
        (kernels, "take_slots", no_running_maximum, cases, 10_000, 0),
        (kernels, "take_blocks", no_slack, tall_cases(), 10_000, 0),
        (key_matrix._KeyMatrix, "place_one", stale_column, plain_cases, 0, 11),
        (key_matrix._KeyMatrix, "place_one", asleep, busy_cases, 0, 24),
        (pass_state.PassState, "take", forgets("ports"), cases, 10_000, 4),
        (pass_state.PassState, "take", forgets("groups"), cases, 10_000, 8),
        (place, "fitting", one_gpu_more, cases, 10_000, 8),
        (feasibility, "_until_refused", sees_the_past_only, cases, 10_000, 24),
    ],
)
def test_a_planted_bug_is_found(
    module: Any,
    name: str,
    bug: Any,
    pool: st.SearchStrategy[Any],
    matrix_from: int,
    found_early: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """found_early: a seed with which a few cases show the bug; with some others it takes hundreds."""
    monkeypatch.setattr(module, name, bug)

    @seed(found_early)
    @SEARCH
    @given(pool)
    def search(case: Any) -> None:
        check(*case, matrix_from=matrix_from)

    with pytest.raises((AssertionError, ValueError, IndexError, BaseExceptionGroup)):
        search()
