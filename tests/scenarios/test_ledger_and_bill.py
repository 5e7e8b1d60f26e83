"""Do the ledgers of all runs agree with the bill of the simulated EC2, whatever runs and instances go through?"""

from __future__ import annotations

from dataclasses import asdict

import pytest

from argosy.api.runs import costs
from argosy.model.costs import Costs, summed
from tests.builders import RUN_ID, whole
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

OTHER_ID, THIRD_ID = "other-261121-062733-k3f9", "third-261121-062733-k3f9"
PRICES = {"us-east-1a": 0.9, "us-east-1b": 0.93, "us-east-1c": 0.96}


def ledger(controlled: Controlled, run_id: str) -> Costs:
    return summed(controlled.record(run_id).costs.values())


def test_all_ledgers_add_up_to_the_bill_through_failures_interruptions_and_a_cancel() -> None:
    controlled = Controlled(linger_s=90.0, prices=lambda kind, zone, at: PRICES[zone])
    world, bill = controlled.world, Bill(controlled.world)

    def course(task: object, instance: object) -> TaskBehaviour:
        luck = world.share("work", str(task))
        return TaskBehaviour(duration_s=30 + 200 * luck, exit_code=1 if luck > 0.8 else 0)

    world.workload = course
    controlled.submit(60, retryStrategy={"attempts": 4})
    controlled.submit(30, run_id=OTHER_ID, resources={"vcpus": 2, "memory": 3000})
    for number in range(60):
        controlled.tick()
        if number % 12 == 11:
            running = [i["InstanceId"] for i in controlled.live_instances() if i["State"]["Name"] == "running"]
            for instance_id in sorted(running)[:2]:
                world.interrupt(instance_id, notice_s=0.0 if number % 2 else 60.0)
        if number == 30:
            controlled.submit(200, run_id=THIRD_ID)
        if number == 50:
            controlled.cancel(THIRD_ID)
    controlled.run_to_rest()
    state = controlled.controllers[0].state
    assert state is not None
    ledgers = [ledger(controlled, run_id) for run_id in (RUN_ID, OTHER_ID, THIRD_ID)]
    paid = summed([*ledgers, state.unattributed])
    assert paid.total == pytest.approx(state.spent_usd)
    assert paid.on_demand == pytest.approx(state.spent_on_demand_usd)
    assert paid.total == pytest.approx(bill.usd(), rel=0.005)  # EC2 reports an end a little late
    assert paid.instance_seconds == pytest.approx(bill.hours() * 3600, rel=0.005)
    spent_on = asdict(summed(ledgers))
    assert spent_on.pop("displaced") == 0.0  # nothing was stopped to make room
    assert all(value > 0 for value in spent_on.values())
    assert ledgers[2].failed > 0  # what was cancelled is of no use
    assert state.unattributed.total > 0  # the linger of all instances at the end
    for run_id, charged in zip((RUN_ID, OTHER_ID, THIRD_ID), ledgers, strict=True):
        assert controlled.record(run_id).cost_usd == pytest.approx(charged.total)


def test_hours_in_which_the_controller_was_frozen_after_closing_a_run_are_not_the_runs() -> None:
    controlled = Controlled(work_s=60.0, prices=lambda kind, zone, at: PRICES[zone])
    controlled.submit(4)
    while not any(name.endswith("_SUCCESS") for name in controlled.s3.objects):
        controlled.step()
    closed_at = controlled.world.now
    controlled.world.run_for(3 * 3600.0)
    controlled.run_to_rest()
    record = controlled.record(RUN_ID)
    assert record.stopped_at <= closed_at
    assert ledger(controlled, RUN_ID).instance_seconds < 1800
    state = controlled.controllers[0].state
    assert state is not None
    assert state.unattributed.instance_seconds > 3 * 3600


def test_users_see_money_while_it_is_being_spent() -> None:
    controlled = Controlled(work_s=300.0, prices=lambda kind, zone, at: PRICES[zone])
    bill = Bill(controlled.world)
    controlled.submit(40)
    controlled.run_for(150.0)
    seen = []
    for _ in range(3):
        record = controlled.record()
        assert record.cost_usd == 0  # nothing has ended yet
        shown = costs.of_run(controlled.store, record, controlled.world.now, controlled.policy)
        assert shown.cost_usd == pytest.approx(bill.usd(), rel=0.05)
        assert sum(costs.useful for costs in shown.costs.values()) > 0.2 * shown.cost_usd
        assert shown.usd_per_hour == pytest.approx(
            sum(whole(PRICES[i["Placement"]["AvailabilityZone"]]) for i in controlled.live_instances())
        )
        assert shown.reserved_usd > 0
        seen.append(shown.cost_usd)
        controlled.run_for(60.0)
    assert seen == sorted(seen)
    assert seen[0] < seen[-1]


def test_a_charge_between_two_samples_is_counted_once() -> None:
    """The controller charges an instance after the record was read and before the cluster is."""
    controlled = Controlled(work_s=300.0, prices=lambda kind, zone, at: PRICES[zone])
    controlled.submit(8)
    controlled.run_for(150.0)
    before = controlled.record()
    for instance in controlled.live_instances()[:1]:
        controlled.world.interrupt(instance["InstanceId"], notice_s=0.0)
    controlled.run_for(30.0)
    now = controlled.world.now
    fresh = costs.of_run(controlled.store, controlled.record(), now, controlled.policy)
    assert fresh.cost_usd > before.cost_usd == 0
    assert costs.of_run(controlled.store, before, now, controlled.policy).cost_usd == fresh.cost_usd


def test_a_run_that_is_over_is_shown_as_it_was_stored() -> None:
    controlled = Controlled()
    controlled.submit(4)
    controlled.run_to_rest()
    record = controlled.record()
    assert costs.of_run(controlled.store, record, controlled.world.now, controlled.policy) == record
