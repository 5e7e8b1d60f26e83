"""Which run pays for which time of an instance, and under which use?"""

from __future__ import annotations

from typing import Any

import pytest

from argosy.lifecycle.begin import begin
from argosy.lifecycle.charges import MOST_MARKETS, OTHER_MARKETS, close_run, count_on
from argosy.model.actions import Claim, Launch
from argosy.model.attempts import AttemptKey
from argosy.model.costs import Costs, TimeSpent, costs_of, market_of, split, summed
from argosy.model.events import HostStateChanged, InterruptionWarned, ResultSeen, RunClosed
from argosy.model.instances import Instance, Purchase
from argosy.model.money.ledger import not_charged
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    prepared,
    state_with,
    submitted,
    task,
    told,
    whole,
)

OTHER_ID = "other-261121-062733-k3f9"
BOOT = 100.0
MARKET = "us-east-1/c5.xlarge/us-east-1a|spot"
EC2_PRICE = 0.36  # USD an hour
PRICE = whole(EC2_PRICE)


def cluster(*more: str, tasks: int = 10, expects_result: bool = False, **overrides: Any) -> State:
    """Runs, and one c5.xlarge of four vCPUs that registered a hundred seconds after they had been submitted and it had
    been launched, now."""
    state = state_with(
        submitted(tasks=tasks, expects_result=expects_result, **overrides),
        prepared(),
        *(event for run_id in more for event in (submitted(run_id), prepared(run_id))),
        fleet(spot_target=1, spot_usd_per_hour=EC2_PRICE),
        host(1, launched_at=NOW - BOOT),
        container_instance(1, registered_at=NOW),
    )
    for run in state.runs.values():
        run.submitted_at = NOW - BOOT
    return state


def the_run(state: State, run_id: str = RUN_ID) -> Run:
    return state.runs[run_id]


def the_instance(state: State) -> Instance:
    return state.instances[instance_id(1)]


def gone(state: State, after_s: float) -> Costs:
    """The instance ends; what the run's ledger then says of it, in seconds of the instance."""
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + after_s), now=NOW + after_s)
    return seconds(the_run(state).costs[MARKET])


def seconds(costs: Costs) -> Costs:
    usd_per_s = PRICE / 3600
    return Costs(*(pytest.approx(usd / usd_per_s, abs=1e-6) for usd in costs.to_list()[:5]))


def stopped(number: int, until_s: float, exit_code: int | None = 0, **values: object) -> object:
    return task(number, "STOPPED", 3, exit_code=exit_code, started_at=NOW, stopped_at=NOW + until_s, **values)  # type: ignore[arg-type]


def test_what_succeeded_is_useful_and_the_rest_of_the_instance_is_boot_and_idle() -> None:
    state = cluster()
    launched(state)
    told(state, stopped(1, 200))
    assert the_run(state).costs == {}  # nothing is charged before the run or the instance ends
    found = gone(state, 400)
    assert found == Costs(useful=200 / 4, boot=BOOT, idle=400 - 200 / 4)
    assert the_run(state).cost_usd == pytest.approx(500 * PRICE / 3600)
    assert the_run(state).on_demand_cost_usd == pytest.approx(500 * whole(0.17) / 3600)
    assert state.spent_usd == pytest.approx(the_run(state).cost_usd)


def test_an_attempt_that_failed_is_failed_although_it_is_tried_again() -> None:
    state = cluster()
    launched(state)
    told(state, stopped(1, 200, exit_code=3))
    assert the_run(state).tasks["status"][0] == TaskStatus.PENDING
    assert gone(state, 400).failed == 50


def test_an_attempt_that_is_lost_with_its_instance_is_redone() -> None:
    state = cluster()
    launched(state)
    told(state, task(1, "RUNNING", started_at=NOW), InterruptionWarned(instance_id(1), NOW + 100))
    assert gone(state, 200) == Costs(redone=50, boot=BOOT, idle=150)
    assert the_run(state).tasks["status"][0] == TaskStatus.PENDING


@pytest.mark.parametrize(("every_s", "saved_s"), [(60, 180), (300, 0), (200, 200)])
def test_what_a_lost_attempt_had_saved_was_useful_and_only_the_rest_is_redone(every_s: int, saved_s: int) -> None:
    state = cluster(checkpoint={"everySeconds": every_s})
    launched(state)
    told(state, task(1, "RUNNING", started_at=NOW), InterruptionWarned(instance_id(1), NOW + 100))
    assert gone(state, 200) == Costs(useful=saved_s / 4, redone=(200 - saved_s) / 4, boot=BOOT, idle=150)


def test_a_loss_that_is_not_repeated_counts_as_failed() -> None:
    state = cluster()
    the_run(state).tasks.set(0, losses=19)  # the last but one of twenty
    launched(state)
    told(state, task(1, "RUNNING", started_at=NOW))
    assert gone(state, 200) == Costs(failed=50, boot=BOOT, idle=150)
    assert the_run(state).tasks["status"][0] == TaskStatus.FAILED


def test_a_result_that_is_missing_makes_the_attempt_a_failure() -> None:
    state = cluster(expects_result=True)
    launched(state)
    told(state, stopped(1, 200), ResultSeen(RUN_ID, 0, 0))
    assert gone(state, 400).failed == 50


def test_a_result_that_is_missing_counts_when_its_instance_is_gone_already() -> None:
    state = cluster(expects_result=True)
    launched(state)
    told(state, stopped(1, 200))
    the_instance(state).released_at = NOW + 300
    assert gone(state, 400).useful == 50
    told(state, ResultSeen(RUN_ID, 0, 0))
    assert seconds(the_run(state).costs[MARKET]) == Costs(failed=50, boot=BOOT, idle=350)


@pytest.mark.parametrize("gone_first", [False, True])
def test_an_attempt_that_was_stopped_with_its_instance_before_it_wrote_is_redone(gone_first: bool) -> None:
    state = cluster(expects_result=True)
    launched(state)
    told(state, InterruptionWarned(instance_id(1), NOW + 100), stopped(1, 200))
    if gone_first:
        assert gone(state, 400).useful == 50
    told(state, ResultSeen(RUN_ID, 0, 0))
    found = seconds(the_run(state).costs[MARKET]) if gone_first else gone(state, 400)
    assert found == Costs(redone=50, boot=BOOT, idle=350)


def test_two_runs_share_boot_and_idle_time_by_what_they_worked() -> None:
    state = cluster(OTHER_ID)
    run, other = the_run(state), the_run(state, OTHER_ID)
    the_instance(state).work = {run.number: [300.0, 0.0, 0.0, 0.0], other.number: [0.0, 100.0, 0.0, 0.0]}
    assert gone(state, 500) == Costs(useful=300, boot=75, idle=75)
    assert seconds(other.costs[MARKET]) == Costs(redone=100, boot=25, idle=25)


def test_an_unused_instance_belongs_to_the_run_it_was_bought_for() -> None:
    state = cluster()
    count_on(state, the_run(state), the_instance(state), NOW)
    assert gone(state, 60) == Costs(boot=BOOT, idle=60)


def test_an_unrequested_instance_belongs_to_no_run() -> None:
    state = cluster()
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 60))
    assert the_run(state).costs == {}
    assert seconds(state.unattributed) == Costs(boot=BOOT, idle=60)


def test_idle_time_before_a_run_took_an_instance_is_charged_to_no_run() -> None:
    state = cluster()
    count_on(state, the_run(state), the_instance(state), NOW + 300)
    assert seconds(state.unattributed) == Costs(idle=300)
    assert gone(state, 400) == Costs(boot=BOOT, idle=100)


def test_the_boot_of_an_instance_that_was_there_before_the_run_is_not_the_run_s() -> None:
    state = cluster()
    the_run(state).submitted_at = NOW
    count_on(state, the_run(state), the_instance(state), NOW + 300)
    assert seconds(state.unattributed) == Costs(boot=BOOT, idle=300)
    assert gone(state, 400) == Costs(idle=100)


def test_a_run_that_is_reopened_counts_from_then() -> None:
    state = cluster()
    the_run(state).reopened_at = NOW
    count_on(state, the_run(state), the_instance(state), NOW + 300)
    assert seconds(state.unattributed) == Costs(boot=BOOT, idle=300)


def test_a_launch_charges_the_waiting_before_it_to_the_runs_present_then() -> None:
    """Whether or not a claim goes before it, and also where attempts of others are alive."""
    state = cluster(OTHER_ID)
    run, other = the_run(state), the_run(state, OTHER_ID)
    other.submitted_at = NOW + 100
    the_instance(state).work = {run.number: [0.0, 0.0, 20.0, 0.0]}
    launched(state)
    told(state, task(1, "RUNNING", started_at=NOW))
    launch = Launch(AttemptKey(OTHER_ID, 0, 1, 0), 1, "argosy-testtest-1", instance_id(1), CELL)
    begin(state, launch, NOW + 200, POLICY)
    waited = {run.number: [pytest.approx(BOOT), pytest.approx(200 - 20 - 200 / 4)]}  # a quarter of 200 s is work
    assert the_instance(state).waiting == waited
    begin(state, Claim(OTHER_ID, (instance_id(1),)), NOW + 250, POLICY)  # it has come already
    assert the_instance(state).waiting == waited
    told(state, stopped(1, 200))
    assert gone(state, 300) == Costs(boot=BOOT, failed=20, useful=50, idle=130 + 100)  # no run worked from 200 to 300
    assert not other.costs


def test_noted_waiting_is_redistributed_where_the_instance_had_ended_before() -> None:
    state = cluster(OTHER_ID)
    run, other = the_run(state), the_run(state, OTHER_ID)
    the_instance(state).work = {run.number: [20.0, 0.0, 0.0, 0.0]}
    count_on(state, other, the_instance(state), NOW + 200)
    assert the_instance(state).waiting == {run.number: [0.0, pytest.approx(180)]}  # both were there before the boot
    assert gone(state, 50) == Costs(boot=BOOT, idle=50)
    assert state.spent_usd == pytest.approx(run.cost_usd)


def test_a_run_that_comes_again_to_where_it_is_pays_what_waits_there() -> None:
    state = cluster()
    launched(state)
    the_run(state).submitted_at = NOW + 50
    the_instance(state).bought_for = 0
    count_on(state, the_run(state), the_instance(state), NOW + 100)  # it has a live attempt there
    assert state.unattributed == Costs()


def test_the_rest_of_the_least_minute_is_paid_by_the_run_that_takes_an_instance_at_once() -> None:
    state = state_with(
        submitted(),
        prepared(),
        fleet(spot_target=1, spot_usd_per_hour=EC2_PRICE),
        host(1, launched_at=NOW),
        container_instance(1, registered_at=NOW + 5),
    )
    count_on(state, the_run(state), the_instance(state), NOW + 7)
    assert seconds(state.unattributed) == Costs(idle=2)
    assert gone(state, 15) == Costs(boot=5, idle=53)


def test_a_run_that_ends_pays_its_part_and_the_instance_continues_for_others() -> None:
    state = cluster(OTHER_ID, tasks=1)
    run, other = the_run(state), the_run(state, OTHER_ID)
    launched(state)
    told(state, stopped(1, 200))
    the_instance(state).work[other.number] = [50.0, 0.0, 0.0, 0.0]
    told(state, RunClosed(RUN_ID), now=NOW + 300)
    assert seconds(run.costs[MARKET]) == Costs(useful=50, boot=50, idle=100)
    assert the_instance(state).work == {other.number: [50.0, 0.0, 0.0, 0.0]}
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 400))
    assert seconds(other.costs[MARKET]) == Costs(useful=50, boot=50, idle=200)
    assert run.cost_usd + other.cost_usd == pytest.approx(state.spent_usd)


def test_a_run_that_ends_pays_nothing_for_what_was_bought_for_it_and_used_by_another() -> None:
    state = cluster(OTHER_ID)
    run, other = the_run(state), the_run(state, OTHER_ID)
    the_instance(state).bought_for = run.number
    the_instance(state).work[other.number] = [50.0, 0.0, 0.0, 0.0]
    close_run(state, run, NOW + 100)
    assert (run.costs, the_instance(state).bought_for) == ({}, 0)


def test_live_attempts_of_others_count_when_a_run_ends() -> None:
    state = cluster(OTHER_ID)
    run, other = the_run(state), the_run(state, OTHER_ID)
    the_instance(state).work[other.number] = [50.0, 0.0, 0.0, 0.0]
    launched(state)
    told(state, task(1, "RUNNING", started_at=NOW))
    close_run(state, other, NOW + 200)  # the attempt of `run` has had a quarter of 200 seconds by then
    assert seconds(other.costs[MARKET]) == Costs(useful=50, boot=50, idle=50)
    told(state, stopped(1, 200))
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 200))
    assert seconds(run.costs[MARKET]) == Costs(useful=50, boot=50, idle=50)


def test_an_end_that_is_reported_late_takes_nothing_back() -> None:
    """EC2 ended it before the run ended, and reported it afterwards: the charges stay, and are billed."""
    state = cluster(tasks=1)
    launched(state)
    told(state, stopped(1, 100), RunClosed(RUN_ID), now=NOW + 300)
    charged = the_run(state).cost_usd
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 150), now=NOW + 310)
    assert the_run(state).cost_usd == charged == pytest.approx(400 * PRICE / 3600)
    assert state.spent_usd == pytest.approx(charged)
    assert state.unattributed.total == 0


def test_an_instance_is_paid_for_a_minute_at_least() -> None:
    instance = Instance("i-1", "us-east-1", "c5.xlarge", "us-east-1a", launched_at=NOW, stopped_at=NOW + 5)
    assert instance.billed_s(NOW + 5) == 60
    assert split(instance, NOW + 5) == {0: TimeSpent(boot=5, idle=55)}
    assert Instance("i-2", "us-east-1", "c5.xlarge", "us-east-1a").billed_s(NOW) == 0


def test_what_has_not_been_charged_yet_is_shown_by_run_and_market() -> None:
    state = cluster(OTHER_ID)
    launched(state)
    told(state, task(1, "RUNNING", started_at=NOW))
    needs = {run.number: run.needs for run in state.runs.values()}
    found = not_charged(state, needs, NOW + 200)
    assert {number: {market: seconds(costs) for market, costs in each.items()} for number, each in found.items()} == {
        the_run(state).number: {MARKET: Costs(useful=50, boot=BOOT, idle=150)}
    }
    assert not_charged(state, needs, NOW + 200, {the_run(state, OTHER_ID).number}) == {}
    assert the_run(state).costs == {}


def test_the_part_of_a_closed_run_is_charged_to_no_run() -> None:
    """Written by an older version, which charged by the attempt."""
    state = cluster()
    the_instance(state).work = {77: [10.0, 0.0, 0.0, 0.0]}
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 60))
    assert state.unattributed.total == pytest.approx(state.spent_usd)


def test_a_ledger_is_bounded_whatever_the_number_of_pools() -> None:
    state = cluster()
    run = the_run(state)
    for number in range(MOST_MARKETS):
        run.costs[f"cell/type/{number}|spot"] = Costs()
    launched(state)
    told(state, stopped(1, 200), HostStateChanged(instance_id(1), "terminated", NOW + 400))
    assert run.costs[OTHER_MARKETS].total == pytest.approx(run.cost_usd)
    assert len(run.costs) == MOST_MARKETS + 1
    assert len(documents.encode(RunRecord.of(run).to_json())) < 100_000


def test_ledgers_and_what_is_not_charged_yet_survive_the_store() -> None:
    state = cluster()
    launched(state)
    told(state, stopped(1, 200))
    run, instance = the_run(state), the_instance(state)
    count_on(state, run, instance, NOW + 200)
    run.costs[MARKET] = Costs(1, 2, 3, 4, 5, 6, 7)
    run.cost_usd = sum(costs.total for costs in run.costs.values())
    state.unattributed = Costs(boot=8)
    stored = documents.changed(state)
    states = {sk: body for (pk, sk), body in stored.items() if pk == documents.STATE}
    partition = {sk: body for (pk, sk), body in stored.items() if pk == documents.run_partition(RUN_ID)}
    record = next(body for (pk, _), body in stored.items() if pk == documents.RUNS)
    again = documents.restore(1, states, {RUN_ID: (record, partition)})
    assert again.runs[RUN_ID].costs == run.costs
    assert again.unattributed == state.unattributed
    assert again.instances[instance.id] == instance


def test_costs_are_priced_and_added_up_by_kind() -> None:
    instance = Instance("i-1", "us-east-1", "c5.xlarge", "us-east-1a", Purchase.ON_DEMAND)
    instance.price_usd_per_hour, instance.on_demand_usd_per_hour = 3.6, 7.2
    instance.disk_usd_per_hour, instance.address_usd_per_hour = 0.36, 0.036
    costs = costs_of(TimeSpent(useful=1, boot=2, idle=3, redone=4, failed=5, displaced=3), instance)
    assert costs.to_list() == pytest.approx([0.001, 0.002, 0.003, 0.004, 0.005, 0.036, 18, 0.0018, 0.00018, 0.003])
    assert costs.instances + costs.disks + costs.addresses == pytest.approx(costs.total)
    assert summed([costs, costs]).total == pytest.approx(0.036)
    assert market_of(instance) == "us-east-1/c5.xlarge/us-east-1a|on-demand"


def test_a_boot_that_is_paid_in_parts_is_paid_once() -> None:
    """Both runs end while the instance boots, and it continues for no run."""
    state = cluster(OTHER_ID)
    instance, costs = the_instance(state), Costs()
    for run_id, begins, ends in ((RUN_ID, -100, -60), (OTHER_ID, -60, -30)):
        count_on(state, the_run(state, run_id), instance, NOW + begins)
        close_run(state, the_run(state, run_id), NOW + ends)
        costs.add(the_run(state, run_id).costs[MARKET])
    told(state, HostStateChanged(instance_id(1), "terminated", NOW + 50), now=NOW + 50)
    costs.add(state.unattributed)
    assert seconds(costs) == Costs(boot=BOOT, idle=50)
