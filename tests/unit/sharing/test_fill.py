"""Fair order over limits, by hand and by the thousand."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from argosy.sharing.bounds import LENT, NO_CAP, Guarantees, QueueBounds
from argosy.sharing.columns import Columns, Limits, Sharers
from argosy.sharing.fill import OPEN, TaskCounts, fill, tasks_ahead, turns
from tests.sharing_oracle import Case, Queues, dealt, done, drawn, drawn_queues

AT_A_TIME = 10_000


def filled(case: Case) -> TaskCounts:
    return fill(*arrays(case), *bounds(case))


def bounds(case: Case) -> tuple[QueueBounds, Guarantees] | tuple[()]:
    queues = case.queues
    if queues is None:
        return ()
    columns, _, _ = arrays(case)
    takes = np.array([each for each, _ in queues.runs], dtype=np.int64).reshape(-1, len(queues.caps[0]))
    left, whole = (
        [[NO_CAP if cap is None else cap for cap in caps] for caps in each]
        for each in (queues.caps, queues.whole or [[None] * len(caps) for caps in queues.caps])
    )
    promised = Guarantees.of(
        [amount for amount, _ in queues.guarantees],
        [used for _, used in queues.sharers],
        [each for _, each in queues.runs],
        [LENT if limit is None else limit for _, limit in queues.guarantees],
    )
    of_caps = QueueBounds.of(columns, [queue for queue, _ in queues.sharers], takes, left)
    return of_caps.less_never(columns, whole), promised


def arrays(case: Case) -> tuple[Columns, Sharers, Limits]:
    sharer, wants, takes = zip(*case.runs, strict=True) if case.runs else ((), (), ())
    weight, parts, used = zip(*case.sharers, strict=True)
    capacity, free = zip(*case.limits, strict=True)
    empty = np.zeros((0, len(case.limits)))
    columns = Columns.of(sharer, wants, takes if case.runs else empty)
    return columns, Sharers.of(weight, used, parts), Limits.of(capacity, free)


def in_turn(case: Case, counts: list[int], quantum: int = 1) -> list[int]:
    return turns(*arrays(case), np.array(counts, dtype=np.int64), quantum).tolist()


def sharing(weights: list[int], runs: list[tuple[int, int, tuple[int, ...]]], limits: list[tuple[int, int]]) -> Case:
    return Case(tuple((weight, 1, (0,) * len(limits)) for weight in weights), tuple(runs), tuple(limits))


def test_two_sharers_get_what_their_weights_say() -> None:
    case = sharing([1, 3], [(0, 1_000, (1,)), (1, 1_000, (1,))], [(100, 100)])
    assert filled(case).counts.tolist() == [25, 75]


def test_a_queue_that_wants_less_than_its_share_leaves_the_rest_to_the_others() -> None:
    case = sharing([1, 1, 1], [(0, 5, (1,)), (1, 1_000, (1,)), (2, 1_000, (1,))], [(100, 100)])
    assert filled(case).counts.tolist() == [5, 48, 47]


def test_a_queue_that_already_uses_much_waits_until_the_others_have_as_much() -> None:
    case = Case(((1, 1, (60,)), (1, 1, (0,))), ((0, 100, (1,)), (1, 100, (1,))), ((100, 40),))
    assert filled(case).counts.tolist() == [0, 40]


def test_a_large_task_is_not_overtaken_by_small_ones_in_its_limit() -> None:
    case = sharing([1, 1], [(0, 1, (8,)), (1, 100, (1,))], [(10, 7)])
    assert filled(case).counts.tolist() == [0, 0]
    assert filled(case).held_by.tolist() == [0, 0]


def test_no_run_waits_for_a_limit_that_it_does_not_need() -> None:
    case = sharing([1, 1], [(0, 10, (1, 1)), (0, 4, (1, 0)), (1, 3, (1, 0))], [(100, 100), (2, 2)])
    found = filled(case)
    assert found.counts.tolist() == [2, 4, 3]
    assert found.held_by.tolist() == [1, OPEN, OPEN]
    assert found.closed.tolist() == [False, True]
    assert found.free.tolist() == [91, 0]


def test_a_limit_is_shared_by_what_each_has_most_of() -> None:
    """The example of the paper on dominant resource fairness: 9 CPUs and 18 GB; (1 CPU, 4 GB) and (3 CPUs, 1 GB)."""
    case = sharing([1, 1], [(0, 99, (1, 4)), (1, 99, (3, 1))], [(9, 9), (18, 18)])
    assert filled(case).counts.tolist() == [3, 2]


def test_weight_0_gets_what_no_other_queue_wants() -> None:
    case = sharing([0, 1, 0], [(0, 9, (1,)), (1, 6, (1,)), (2, 9, (1,))], [(10, 10)])
    assert filled(case).counts.tolist() == [2, 6, 2]


def test_owners_divide_a_weight_among_them() -> None:
    case = Case(((2, 2, (0,)), (2, 2, (0,)), (2, 1, (0,))), tuple((n, 99, (1,)) for n in range(3)), ((8, 8),))
    assert filled(case).counts.tolist() == [2, 2, 4]


def test_within_one_sharer_the_first_run_comes_first() -> None:
    case = sharing([1], [(0, 7, (1,)), (0, 7, (1,))], [(10, 10)])
    assert filled(case).counts.tolist() == [7, 3]


def test_runs_that_are_not_sorted_are_refused() -> None:
    with pytest.raises(ValueError, match="sorted by sharer"):
        Columns.of([1, 0], [1, 1], [[1], [1]])


def test_no_demand_and_no_runs_give_no_places() -> None:
    assert filled(sharing([1], [], [(10, 10)])).counts.tolist() == []


def test_impossible_amounts_neither_overflow_nor_admit_a_run() -> None:
    case = Case(
        ((1, 1_000, (2**62,)), (1, 1, (0,))), ((0, 10**6, (2**62,)), *[(1, 10**6, (2**33,))] * 2_000), ((1, 2**62),)
    )
    assert filled(case).counts.sum() <= 2


def test_tasks_start_in_the_order_of_their_turns() -> None:
    case = sharing([1, 2], [(0, 9, (1,)), (1, 9, (1,))], [(6, 6)])
    assert in_turn(case, [2, 4]) == [0, 1, 1, 0, 1, 1]


def test_a_quantum_of_tasks_goes_together() -> None:
    case = sharing([1, 1], [(0, 9, (1,)), (1, 9, (1,))], [(8, 8)])
    assert in_turn(case, [4, 4], quantum=2) == [0, 0, 1, 1, 0, 0, 1, 1]


def test_tasks_ahead_of_a_run_are_those_that_the_order_of_turns_puts_before_it() -> None:
    random = Random(59)
    for _ in range(300):
        case = drawn(random)
        columns, sharers, limits = arrays(case)
        order = turns(columns, sharers, limits, columns.wants)
        for row in np.flatnonzero(columns.wants).tolist():
            before = order[: int((order == row).argmax())]
            expected = np.bincount(before, minlength=len(columns.wants)).tolist()
            assert tasks_ahead(columns, sharers, limits, row).tolist() == expected, (case, row)


def queues(caps: list[int | None], takes: list[int], sharers: list[int] | None = None) -> Queues:
    """Of one unit, without guarantees. sharers: the queue of each; its own unless said."""
    of = range(len(caps)) if sharers is None else sharers
    return Queues(
        tuple((cap,) for cap in caps),
        ((0, None),) * len(caps),
        tuple((queue, 0) for queue in of),
        tuple(((each,), 0) for each in takes),
    )


def test_what_a_queue_may_not_have_goes_to_the_others() -> None:
    case = sharing([1, 1], [(0, 99, (1,)), (1, 99, (1,))], [(100, 100)])
    assert filled(replace(case, queues=queues([10, None], [1, 1]))).counts.tolist() == [10, 90]


def test_a_run_that_needs_nothing_of_a_reached_cap_continues() -> None:
    case = sharing([1], [(0, 9, (1,)), (0, 9, (1,))], [(100, 100)])
    found = filled(replace(case, queues=queues([8], [3, 0])))
    assert found.counts.tolist() == [2, 9]
    assert found.capped is not None
    assert found.capped.tolist() == [[True]]


def test_a_run_that_waits_for_a_limit_keeps_nothing_of_the_cap_from_the_next() -> None:
    case = sharing([1], [(0, 9, (1, 1)), (0, 9, (1, 0))], [(100, 100), (2, 2)])
    assert filled(replace(case, queues=queues([6], [1, 1]))).counts.tolist() == [2, 4]


def test_owners_share_a_cap_by_their_levels() -> None:
    case = sharing([1, 1], [(0, 99, (1,)), (1, 99, (1,))], [(100, 100)])
    assert filled(replace(case, queues=queues([10], [1, 1], [0, 0]))).counts.tolist() == [5, 5]


def test_what_is_used_beyond_a_cap_is_no_room() -> None:
    case = sharing([1], [(0, 99, (1,))], [(100, 100)])
    assert filled(replace(case, queues=queues([-5], [1]))).counts.tolist() == [0]


def test_what_a_later_run_gets_as_guaranteed_counts_in_the_turns_of_the_earlier_run() -> None:
    """Otherwise the queue would get eight and five of twenty, more than its half."""
    case = sharing([1, 1], [(0, 99, (1,)), (0, 5, (1,)), (1, 99, (1,))], [(20, 20)])
    promised = ((5, None), (0, None))
    runs = (((0,), 0), ((0,), 1), ((0,), 0))
    case = replace(case, queues=Queues(((None,), (None,)), promised, ((0, 0), (1, 0)), runs))
    assert filled(case).counts.tolist() == [5, 5, 10]
    check_with_queues(case)


def check_with_queues(case: Case) -> None:
    loop, found = done(case), filled(case)
    assert found.counts.tolist() == loop.counts, case
    assert found.closed.tolist() == loop.closed, case
    assert found.capped is not None
    assert found.capped.tolist() == loop.capped, case
    if case.queues is not None and not any(amount for amount, _ in case.queues.guarantees):
        assert in_turn(case, loop.counts) == loop.order, case


def test_with_caps_and_guarantees_it_equals_that_as_well() -> None:
    random = Random(47)
    for _ in range(200):
        check_with_queues(drawn_queues(random))


@pytest.mark.deep
def test_with_caps_and_guarantees_it_equals_that_in_ten_thousand_cases() -> None:
    random = Random(48)
    for _ in range(AT_A_TIME):
        check_with_queues(drawn_queues(random))


def check(case: Case) -> None:
    order, counts, closed = dealt(case)
    found = filled(case)
    assert found.counts.tolist() == counts, case
    assert found.closed.tolist() == closed, case
    assert in_turn(case, counts) == order, case


@pytest.mark.slow
def test_the_closed_form_equals_dealing_out_one_task_at_a_time() -> None:
    random = Random(16)
    for _ in range(AT_A_TIME // 5):
        check(drawn(random))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_the_closed_form_equals_it_in_a_hundred_thousand_cases(seed: int) -> None:
    random = Random(seed)
    for _ in range(AT_A_TIME):
        check(drawn(random))
