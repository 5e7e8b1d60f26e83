"""Is the first of a ranking the instance on which the next task is placed, for any input?"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from argosy.placement.candidates import mix_of
from argosy.placement.demand import Batch, Queue
from argosy.placement.pass_state import PassState
from argosy.placement.place import place
from argosy.placement.ranking import ranking
from argosy.placement.supply import InstanceRow, Supply
from tests.placement_cases import FUNCTIONS, cases


@given(cases)
@settings(max_examples=100, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_first_of_a_ranking_is_where_the_next_task_goes(case: tuple[list[InstanceRow], list[Batch]]) -> None:
    rows, queue = case
    supply = Supply.of(rows)
    for batch in queue:
        one = replace(batch, count=1)
        if any(step.startswith("random") for step in one.strategy):
            continue
        placed = place([one], supply, fitness=FUNCTIONS)
        ranked = ranking(one, PassState(supply), mix_of(Queue.of([one])), FUNCTIONS)
        assert ranked.rows.tolist()[:1] == placed.row.tolist()
        assert [tuple(row) for row in ranked.figures.tolist()] == sorted(tuple(row) for row in ranked.figures.tolist())
        assert ranked.figures.shape == (len(ranked.rows), len(ranked.steps))
