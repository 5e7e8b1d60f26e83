"""When an open run is changed, the next tick of any controller decides by the new terms, whatever is in progress."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.lifecycle.user_requests import update_run as update
from argosy.model.inbox import UpdateRequest
from argosy.model.purchases import PurchaseChoice, PurchaseStance
from argosy.model.runs import RunStatus
from argosy.model.state import State
from tests.builders import NOW, RUN_ID, prepared, state_with, submitted
from tests.scenarios.controlled import Controlled

WHOLE = {"vcpus": 4, "memory": 512}  # an instance
SMALL = "small-261121-070000-aaaa"


def change(cluster: Controlled, run_id: str = RUN_ID, **changes: Any) -> None:
    cluster.put(UpdateRequest(run_id, cluster.world.now, changes, "it is urgent"), f"{run_id}#update")


def state_of(cluster: Controlled) -> State:
    state = cluster.controllers[0].state
    assert state is not None
    return state


def alive(cluster: Controlled, run_id: str = RUN_ID) -> int:
    """Tasks of the run that are placed or run."""
    state = state_of(cluster)
    return len(state.attempts.of_run(state.runs[run_id].number))


def instances(cluster: Controlled) -> int:
    return sum(each.state in ("pending", "running") for each in cluster.world.ec2.ledger.instances.values())


def test_more_tasks_at_a_time_start_in_the_next_tick() -> None:
    cluster = Controlled(work_s=300.0)
    cluster.submit(8, placement={"maxConcurrentTasks": 1}, resources={"vcpus": 1, "memory": 512})
    cluster.run_for(150)
    assert alive(cluster) == 1
    change(cluster, maxConcurrentTasks=3)
    cluster.tick()
    assert alive(cluster) == 3
    change(cluster, maxConcurrentTasks=None)
    cluster.tick()
    assert alive(cluster) == 4, "as many as the instance holds"


def test_fewer_tasks_at_a_time_stop_nothing_and_start_nothing_above() -> None:
    cluster = Controlled(work_s=120.0)
    cluster.submit(12, resources={"vcpus": 1, "memory": 512}, capacity={"maxInstances": 1})
    cluster.run_for(150)
    assert alive(cluster) == 4
    change(cluster, maxConcurrentTasks=2)
    cluster.tick()
    assert alive(cluster) == 4
    cluster.run_for(110)
    for _ in range(10):
        cluster.tick()
        assert alive(cluster) <= 2
    cluster.run_to_rest()
    assert cluster.record().status is RunStatus.SUCCEEDED


def test_what_may_be_bought_follows_the_change() -> None:
    cluster = Controlled(work_s=600.0)
    cluster.submit(24, resources=WHOLE, capacity={"maxInstances": 2})
    cluster.run_for(200)
    assert instances(cluster) == 2
    change(cluster, maxInstances=4)
    cluster.run_for(200)
    assert instances(cluster) == 4
    change(cluster, maxInstances=1)
    cluster.run_for(1500)  # until those have ended that were started before
    assert instances(cluster) == 1


def test_a_higher_priority_comes_first_from_then_on() -> None:
    cluster = Controlled(work_s=60.0, max_instances=1)
    cluster.submit(60)
    cluster.run_for(150)
    cluster.submit(1, SMALL)
    cluster.run_for(150)
    assert cluster.record(SMALL).status is not RunStatus.RUNNING
    change(cluster, SMALL, priority=1)
    cluster.run_for(75)
    assert cluster.record(SMALL).started_at


def test_a_lowered_budget_ends_the_run_and_a_raised_one_lets_it_continue() -> None:
    cluster = Controlled(work_s=120.0, prices=lambda kind, zone, at: 2.0)
    array = {"size": 40, "expectedSeconds": 120}
    cluster.submit(40, array=array, resources=WHOLE, capacity={"budgetUsd": 0.3, "maxInstances": 1})
    cluster.run_for(200)
    change(cluster, budgetUsd=100.0)
    cluster.run_for(900)  # half a dollar
    assert (alive(cluster), cluster.record().halted) == (1, False)
    change(cluster, budgetUsd=0.4)
    cluster.tick()
    assert cluster.record().capped_at
    assert cluster.record().budget_usd == 0.4


def test_a_change_outlives_the_controller_that_took_it_in() -> None:
    cluster = Controlled(work_s=600.0)
    cluster.submit(8, resources=WHOLE)
    change(cluster, maxInstances=1, deadline="2027-01-15T12:00:00+00:00", priority=-3)
    cluster.tick()
    cluster.controllers = [cluster.controller()]
    cluster.run_for(400)
    run = state_of(cluster).runs[RUN_ID]
    assert (instances(cluster), run.terms.priority, run.change_reason) == (1, -3, "it is urgent")
    assert cluster.record().deadline_at == run.deadline_at is not None


@pytest.mark.parametrize("ended", [False, True])
def test_a_run_that_is_to_start_nothing_more_stays_as_it_is(ended: bool) -> None:
    cluster = Controlled(work_s=900.0)
    cluster.submit(2)
    cluster.run_for(150)
    cluster.cancel()
    if ended:
        cluster.run_to_rest()
    change(cluster, priority=5)
    cluster.tick()
    assert cluster.record().changes == {}
    assert cluster.record().cancelled


def test_by_another_deadline_a_run_that_was_late_may_be_in_time() -> None:
    for before, after in ((PurchaseStance.FIRM, PurchaseStance.ON_DEMAND), (PurchaseStance.SPOT, PurchaseStance.SPOT)):
        state = state_with(submitted(capacity={"deadline": "1h"}), prepared())
        run = state.runs[RUN_ID]
        run.steering = PurchaseChoice(before, NOW, "even so it is late", late=True)
        update(state, UpdateRequest(RUN_ID, NOW, {"priority": 1}))
        assert run.steering.late
        update(state, UpdateRequest(RUN_ID, NOW, {"deadline": "2027-01-15T18:00:00+00:00"}))
        assert (run.steering.late, run.steering.stance) == (False, after)
