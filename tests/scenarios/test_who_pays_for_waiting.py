"""The time in which a warm instance waits is paid by the runs before it, never by a later run."""

from __future__ import annotations

import pytest

from argosy.model.costs import Costs, summed
from tests.builders import RUN_ID
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled, index_of

OTHER_ID = "other-261121-062733-k3f9"
PRICE = 0.1  # USD an hour: 0.05 USD are half an hour of the instance
ZONE = ("us-east-1a",)


def warm(idles_s: float, work_s: float = 10.0) -> tuple[Controlled, Bill]:
    """An instance on which a run has worked, and which has idled for so long since."""
    controlled = Controlled(zones=ZONE, work_s=work_s, prices=lambda kind, zone, at: PRICE, linger_s=4000.0)
    bill = Bill(controlled.world)
    controlled.submit(1, run_id=OTHER_ID)
    while not any(name.endswith("_SUCCESS") for name in controlled.s3.objects):
        controlled.step()
    controlled.run_for(idles_s)
    assert len(controlled.live_instances()) == 1
    return controlled, bill


def ledger(controlled: Controlled, run_id: str = RUN_ID) -> Costs:
    return summed(controlled.record(run_id).costs.values())


def until_it_ends(controlled: Controlled, run_id: str = RUN_ID) -> float:
    """How long it took."""
    began = controlled.world.now
    while not any(name in (f"{run_id}/_SUCCESS", f"{run_id}/_FAILED") for name in controlled.s3.objects):
        controlled.step()
    controlled.tick()
    return controlled.world.now - began


@pytest.mark.parametrize("idles_s", [0.0, 240.0, 3000.0])
@pytest.mark.parametrize("capacity", [{}, {"budgetUsd": 0.05}])
def test_a_run_on_a_warm_instance_pays_from_when_it_came(idles_s: float, capacity: dict[str, float]) -> None:
    controlled, bill = warm(idles_s)
    controlled.submit(1, capacity=capacity)
    took_s = until_it_ends(controlled)
    record = controlled.record()
    assert (record.status, record.counts[4]) == ("SUCCEEDED", 1)
    assert 2.5 <= ledger(controlled).instance_seconds <= took_s  # a quarter of ten seconds, and its own waiting time
    controlled.run_to_rest(5 * 3600.0)
    state = controlled.controllers[0].state
    assert state is not None
    assert state.unattributed.idle >= idles_s * PRICE / 3600
    paid = controlled.record().cost_usd + controlled.record(OTHER_ID).cost_usd + state.unattributed.total
    assert paid == pytest.approx(state.spent_usd)
    assert paid == pytest.approx(bill.usd(), rel=0.01)


def test_what_waited_while_another_run_was_open_there_is_that_runs() -> None:
    """The other run waits for its last task, on another instance; this one's instance idles for 240 s in the
    meantime."""
    controlled = Controlled(zones=ZONE, work_s=10.0, prices=lambda kind, zone, at: PRICE, linger_s=4000.0)
    controlled.submit(5, run_id=OTHER_ID)
    controlled.world.workload = lambda task, instance: TaskBehaviour(5000.0 if index_of(task) == 4 else 10.0)
    controlled.run_for(400.0)
    assert controlled.record(OTHER_ID).counts[4] == 4
    came = controlled.world.now
    controlled.submit(4)
    until_it_ends(controlled)
    assert ledger(controlled).instance_seconds <= controlled.world.now - came
    assert ledger(controlled).boot == 0
