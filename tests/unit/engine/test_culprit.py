"""A search finds a run without which the tick works, and no other run is left out."""

from __future__ import annotations

from collections.abc import Set

from hypothesis import given
from hypothesis import strategies as st

from argosy.engine.culprit import culprit

RUNS = [f"run{number}" for number in range(40)]


@given(st.sets(st.sampled_from(RUNS), max_size=6))
def test_repeated_searches_find_exactly_the_runs_that_fail_and_with_few_rehearsals(guilty: set[str]) -> None:
    found: set[str] = set()
    rehearsals = []

    def fails(without: Set[str]) -> bool:
        rehearsals.append(without)
        return bool(guilty - found - without)

    while run := culprit([each for each in RUNS if each not in found], fails):
        found.add(run)
    assert found == guilty
    assert len(rehearsals) <= 1 + 8 * len(guilty)


def test_of_two_runs_that_fail_together_one_is_left_out() -> None:
    assert culprit(RUNS, {"run3", "run4"}.isdisjoint) in ("run3", "run4")


def test_a_failure_without_all_runs_and_one_that_a_rehearsal_does_not_show_is_no_runs() -> None:
    assert culprit(RUNS, lambda without: True) is None
    assert culprit(RUNS, lambda without: False) is None
    assert culprit([], lambda without: True) is None


def test_a_search_that_runs_out_of_time_names_no_run() -> None:
    assert culprit(RUNS, lambda without: "run7" not in without, lambda: True) is None
