"""Two cells, one real engine: offers compete, tasks go where their instances are, and the rest moves when a pool runs
dry."""

from __future__ import annotations

from argosy.model.runs import RunStatus
from tests.builders import CELL
from tests.scenarios.two_cells import AWAY, POOLS, TwoCells

OTHER_RUN = "other-261121-062733-k3f9"


def test_the_cheaper_cell_is_bought_in_and_tasks_start_where_their_instances_are() -> None:
    cluster = TwoCells({CELL: 0.09, AWAY: 0.05})
    run_id = cluster.submit(24)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert cluster.ran_in(run_id) == {AWAY: 24}


def test_when_the_cheaper_cells_pool_dries_up_the_rest_goes_to_the_other() -> None:
    cluster = TwoCells({CELL: 0.09, AWAY: 0.05}, work_s=240.0)
    run_id = cluster.submit(24, placement={"maxConcurrentTasks": 12})
    cluster.run_for(400)
    assert cluster.ran_in(run_id) == {AWAY: 12}
    cluster.dry_up(AWAY)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.interruptions) == (RunStatus.SUCCEEDED, 12)
    assert cluster.ran_in(run_id) == {AWAY: 12, CELL: 12}
    assert max(cluster.starts().values()) == 1


def test_a_pinned_run_buys_in_its_cells_only_even_while_their_pools_are_short() -> None:
    cluster = TwoCells({CELL: 0.05, AWAY: 0.09})
    cluster.dry_up(AWAY)
    pinned = cluster.submit(8, capacity={"cells": [AWAY]})
    free = cluster.submit(8, run_id=OTHER_RUN)
    cluster.run_for(600)
    assert cluster.record(free).status == RunStatus.SUCCEEDED
    assert not cluster.ran_in(pinned)
    cluster.world_of(AWAY).ec2.set_shortage(POOLS[AWAY], None)
    cluster.run_to_rest()
    assert cluster.record(pinned).status == RunStatus.SUCCEEDED
    assert (cluster.ran_in(pinned), cluster.ran_in(free)) == ({AWAY: 8}, {CELL: 8})


def test_without_the_other_cells_events_its_sweeps_are_enough() -> None:
    cluster = TwoCells({CELL: 0.09, AWAY: 0.05})
    cluster.events.lose = lambda message: message["region"] == AWAY
    run_id = cluster.submit(8)
    cluster.run_to_rest()
    assert cluster.ran_in(run_id) == {AWAY: 8}
