"""A run's course stays whole and small, however long the run; and its kinds of failures stay few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.model import packing
from argosy.model.failure_groups import MOST_GROUPS, OTHERS, FailureGroup, note_failure
from argosy.model.series import MOST_SAMPLES, SERIES_BYTES, SHORTEST_S, Sample, Series

AT = 1_800_000_000.0


def test_the_series_of_a_run_of_a_week_has_its_whole_length_in_few_samples() -> None:
    series, now = Series(), AT
    while now < AT + 7 * 86_400:
        if series.is_due(now):
            share = (now - AT) / 1e5
            series.add(Sample(now, 10**6, 1, 2, 3, 4, 5, 6, *(share**power for power in (0.3, 0.5, 0.7, 1, 2, 3, 4))))
        now += 7.3
    assert MOST_SAMPLES / 2 <= len(series.samples) <= MOST_SAMPLES
    assert series.samples[0].at == AT
    gaps = [later.at - earlier.at for earlier, later in zip(series.samples, series.samples[1:], strict=False)]
    assert max(gaps) <= 2 * series.interval_s
    assert len(series.pack()) < SERIES_BYTES


def test_a_series_comes_back_from_its_bytes() -> None:
    series = Series([Sample(AT, 1, 2, 3, 4, 5, 6, 7, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)], 64.0)
    assert Series.unpack(series.pack()) == series
    assert Series.unpack(packing.pack({}, {}, 1)) == Series([Sample(0.0)], SHORTEST_S)


@given(st.lists(st.tuples(*[st.integers(0, 10**12)] * 15), min_size=1, max_size=20))
def test_every_series_comes_back_to_the_millisecond_and_the_millionth_of_a_dollar(
    rows: list[tuple[int, ...]],
) -> None:
    series = Series()
    for at, *values in sorted(rows):
        money = [value / 1e6 for value in values[7:]]
        series.add(Sample(at / 1000, *values[:7], *money))
    again = Series.unpack(series.pack())
    assert again.samples == series.samples
    assert again.pack() == series.pack()


def test_a_series_that_is_cut_short_is_unreadable() -> None:
    with pytest.raises(packing.Unreadable):
        Series.unpack(Series([Sample(AT)]).pack()[:-1])


def test_a_clock_that_goes_back_makes_no_sample_before_the_last_one() -> None:
    series = Series()
    series.add(Sample(AT))
    assert not series.is_due(AT - 100)
    series.add(Sample(AT - 100, 5))
    assert [sample.at for sample in series.samples] == [AT, AT]


def test_failures_of_one_kind_are_one_group() -> None:
    groups: list[FailureGroup] = []
    for index, at in ((7, AT + 5), (3, AT), (9, AT + 2)):
        note_failure(groups, 4, 1, index, at)
    note_failure(groups, 4, 2, 11, AT)
    assert groups == [FailureGroup(4, 1, 3, 3, 9, AT, AT + 5), FailureGroup(4, 2, 1, 11, 11, AT, AT)]


@pytest.mark.parametrize("kinds", [MOST_GROUPS - 1, MOST_GROUPS, 10_000])
def test_failures_of_very_many_kinds_stay_few_groups_and_none_is_lost(kinds: int) -> None:
    groups: list[FailureGroup] = []
    for kind in [*range(kinds), *range(kinds)]:
        note_failure(groups, kind % 200, kind, kind, AT)
    assert len(groups) <= MOST_GROUPS
    assert sum(group.count for group in groups) == 2 * kinds
    assert (groups[-1].reason == OTHERS) == (kinds >= MOST_GROUPS)


def test_the_tasks_of_a_group_lie_between_its_first_and_its_last_index_in_whatever_order_they_failed() -> None:
    groups: list[FailureGroup] = []
    for index in (4, 0, 5, 1):
        note_failure(groups, 4, 1, index, AT)
    assert [(group.first_index, group.last_index) for group in groups] == [(0, 5)]
