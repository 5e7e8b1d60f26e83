"""Does a run keep to its caps, on the bill of the simulated EC2, whatever happens to it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.api import reading
from argosy.emulator.ec2.service import Ec2Instance
from argosy.model.run_record import RunRecord
from tests.builders import RUN_ID, whole
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

TICK_S = 10.0
SLOW_TICK_S = 20.0  # where only sums count
IDLE_S = 60.0  # between ticks while hours pass: as often as the schedule has it
PRICE = 2.0  # USD an hour for every instance with its disk and address: 5 USD are 9,000 instance-seconds
OTHER_ID = "other-261121-062733-k3f9"
FIRST = "us-east-1a"


def cluster(work_s: float = 120.0, **policy: Any) -> Controlled:
    return Controlled(work_s=work_s, prices=lambda kind, zone, at: PRICE - whole(0.0), **policy)


class Watch:
    """Ticks a cluster and records its highest cost."""

    def __init__(self, controlled: Controlled) -> None:
        self.controlled, self.world = controlled, controlled.world
        self.bill = Bill(self.world)
        self.most_per_hour = 0.0
        self.sentences: list[str] = []

    def tick(self, seconds: float = TICK_S) -> bool:
        at_rest = self.controlled.controllers[0].tick().at_rest
        self.world.run_for(seconds)
        self.most_per_hour = max(self.most_per_hour, self.per_hour())
        record = self.record()
        sentence = record.waiting if record else ""
        if sentence and sentence not in self.sentences:
            self.sentences.append(sentence)
        return at_rest

    def per_hour(self) -> float:
        return PRICE * len(self.alive())

    def alive(self) -> list[Ec2Instance]:
        return [each for each in self.world.ec2.ledger.instances.values() if each.state in ("pending", "running")]

    def record(self) -> RunRecord | None:
        return reading.run(self.controlled.store, RUN_ID)

    def to_rest(self, tick_s: float = TICK_S) -> None:
        end = self.world.now + 6 * 3600.0
        while not self.tick(tick_s):
            assert self.world.now < end, "it does not come to rest"

    def until(self, condition: Callable[[], bool], limit_s: float = 3600.0, tick_s: float = TICK_S) -> None:
        end = self.world.now + limit_s
        while not condition():
            assert self.world.now < end, "it never comes true"
            self.tick(tick_s)

    def ids(self) -> list[str]:
        """The cost of running instances that are not about to end."""
        return sorted(each.instance_id for each in self.alive() if each.state == "running" and each.ends_at is None)


def succeeded(watch: Watch) -> int:
    record = watch.controlled.record()
    return int(record.counts[4])


@pytest.mark.parametrize("on_cap", ["drain", "finish"])
@pytest.mark.parametrize("expected_s", [None, 120])
def test_a_run_never_costs_more_than_its_budget(on_cap: str, expected_s: int | None) -> None:
    """Whether the spec says how long a task takes, or it is unknown."""
    watch = Watch(cluster())
    array: dict[str, Any] = {"size": 400} | ({"expectedSeconds": expected_s} if expected_s else {})
    watch.controlled.submit(400, array=array, capacity={"budgetUsd": 5, "onCap": on_cap})
    watch.to_rest(SLOW_TICK_S)
    record = watch.controlled.record()
    assert (
        watch.bill.usd() <= 5 + watch.most_per_hour * SLOW_TICK_S / 3600 + (on_cap == "finish") * 4 * PRICE * 120 / 3600
    )
    assert watch.bill.usd() > 4.5  # and makes use of it
    assert record.status == "PARTIAL"
    assert "its budget of $5.00" in record.status_reason
    assert succeeded(watch) > 150
    assert record.cost_usd == pytest.approx(watch.bill.usd(), rel=0.01)


@pytest.mark.parametrize("on_cap", ["drain", "finish"])
def test_a_spec_that_expects_far_too_little_does_not_cost_more_either(on_cap: str) -> None:
    watch = Watch(cluster())
    array = {"size": 400, "expectedSeconds": 10}
    watch.controlled.submit(400, array=array, capacity={"budgetUsd": 5, "onCap": on_cap})
    watch.to_rest()
    assert 3 < watch.bill.usd() <= 5
    assert watch.controlled.record().status_reason == "its budget of $5.00 is used up"


@pytest.mark.parametrize("capacity", [{"budgetUsd": 5}, {"maxHourlyCost": 8}])
def test_tasks_whose_start_and_end_are_one_moment_block_nothing(capacity: dict[str, float]) -> None:
    """Budgets divide by the expected duration of an attempt, and earlier ones took 0 s."""
    watch = Watch(cluster(work_s=0.0))
    watch.controlled.submit(200, capacity=capacity)
    watch.to_rest(SLOW_TICK_S)
    assert watch.controlled.record().status == "SUCCEEDED"


def test_tasks_that_never_end_are_stopped_when_the_budget_is_used_up() -> None:
    watch = Watch(cluster(work_s=float("inf")))
    watch.controlled.submit(50, capacity={"budgetUsd": 5})
    watch.to_rest()
    record = watch.controlled.record()
    assert watch.bill.usd() <= 5
    assert (record.status, record.status_reason) == ("FAILED", "its budget of $5.00 is used up")
    assert sum(costs.failed for costs in record.costs.values()) > 4  # all of it failed
    assert record.counts[6] == 50


def test_tasks_that_may_finish_do_so_and_cost_at_most_their_time_out_more() -> None:
    watch = Watch(cluster(work_s=1000.0))
    watch.controlled.submit(
        160,
        array={"size": 160, "expectedSeconds": 100},  # ten times too low
        timeout={"attemptDurationSeconds": 1200},
        capacity={"budgetUsd": 2, "onCap": "finish"},
    )
    watch.until(lambda: bool(watch.record() and watch.controlled.record().capped_at))
    running = watch.controlled.record().counts[2]
    fleet = watch.per_hour()
    watch.to_rest(SLOW_TICK_S)
    record = watch.controlled.record()
    assert running > 0
    assert succeeded(watch) == running  # nothing was stopped, nothing more was started
    assert record.status == "PARTIAL"
    assert 2 < watch.bill.usd() <= 2 + fleet * (1200 + SLOW_TICK_S) / 3600


def test_tasks_that_may_finish_and_never_do_are_stopped_anyway() -> None:
    """Without a time-out an attempt may take twice as long as could be expected."""
    watch = Watch(cluster(work_s=float("inf")))
    array = {"size": 40, "expectedSeconds": 300}
    watch.controlled.submit(40, array=array, capacity={"budgetUsd": 5, "onCap": "finish"})
    watch.to_rest()
    assert watch.controlled.record().status == "FAILED"
    assert watch.bill.usd() <= 5 + watch.most_per_hour * (2 * 300 + 60) / 3600


@pytest.mark.parametrize("seed", range(3))
def test_interruptions_are_paid_out_of_the_budget(seed: int) -> None:
    """An instance is taken away every minute or so, some while they boot, some without a warning."""
    watch = Watch(cluster())
    watch.controlled.submit(200, array={"size": 200, "expectedSeconds": 120}, capacity={"budgetUsd": 2.5})
    number = 0
    while not watch.tick():
        number += 1
        if number % (20 + 7 * seed) == 0:
            for instance_id in watch.ids()[seed % 3 : seed % 3 + 1]:
                watch.world.interrupt(instance_id, notice_s=0.0 if number % 2 else 120.0)
    record = watch.controlled.record()
    assert watch.bill.usd() <= 2.5 + watch.most_per_hour * TICK_S / 3600
    assert record.interruptions > 0
    assert sum(costs.redone for costs in record.costs.values()) > 0  # redone
    state = watch.controlled.controllers[0].state
    assert state is not None
    assert record.cost_usd + state.unattributed.total == pytest.approx(state.spent_usd)
    assert record.cost_usd + state.unattributed.total == pytest.approx(watch.bill.usd(), rel=0.01)


def test_a_controller_that_is_away_overshoots_by_what_the_fleet_costs_meanwhile() -> None:
    watch = Watch(cluster(work_s=float("inf")))
    watch.controlled.submit(50, array={"size": 50, "expectedSeconds": 10}, capacity={"budgetUsd": 5})
    watch.until(lambda: watch.bill.usd() > 4.5)
    fleet = watch.per_hour()
    watch.world.run_for(400.0)
    watch.to_rest()
    assert 5 < watch.bill.usd() <= 5 + fleet * (400 + TICK_S) / 3600


def test_instances_of_a_run_with_a_budget_do_not_linger() -> None:
    watch = Watch(cluster())
    watch.controlled.submit(40, array={"size": 40, "expectedSeconds": 120}, capacity={"budgetUsd": 5})
    watch.until(lambda: bool(watch.record() and watch.controlled.record().status == "SUCCEEDED"), tick_s=5.0)
    ended = watch.world.now
    watch.until(lambda: not watch.alive(), tick_s=5.0)
    assert watch.world.now - ended <= 25
    record = watch.controlled.record()
    assert sum(costs.idle for costs in record.costs.values()) < 0.05 * record.cost_usd  # idle


def test_a_budget_below_the_price_of_an_instance_hour_buys_what_fits() -> None:
    watch = Watch(cluster(work_s=60.0))
    watch.controlled.submit(400, array={"size": 400, "expectedSeconds": 60}, capacity={"budgetUsd": 0.5})
    watch.to_rest()
    record = watch.controlled.record()
    assert watch.bill.usd() <= 0.5
    assert record.status == "PARTIAL"
    assert succeeded(watch) >= 8
    assert "does not pay for another attempt" in record.status_reason


def test_a_budget_that_pays_for_no_attempt_starts_nothing_and_says_what_one_costs() -> None:
    watch = Watch(cluster())
    watch.controlled.submit(40, array={"size": 40, "expectedSeconds": 600}, capacity={"budgetUsd": 0.02})
    watch.to_rest()
    record = watch.controlled.record()
    assert watch.bill.usd() == 0
    assert record.status == "FAILED"
    assert record.status_reason == (
        "the rest of its budget of $0.02 ($0.02) does not pay for another attempt: starting the cheapest instance"
        " and working there for 600 s, the expected time of an attempt, costs $0.4667"
    )


@pytest.mark.parametrize("interrupting", [False, True])
def test_the_hourly_cost_stays_under_its_cap_at_every_tick(interrupting: bool) -> None:
    watch = Watch(cluster(work_s=60.0))
    watch.controlled.submit(100, capacity={"maxHourlyCost": 3 * PRICE + 0.5})
    number = 0
    while not watch.tick():
        number += 1
        assert watch.per_hour() <= 3 * PRICE + 0.5
        if interrupting and number % 40 == 0:
            for instance_id in watch.ids()[:1]:
                watch.world.interrupt(instance_id)
    assert watch.most_per_hour == 3 * PRICE
    assert watch.controlled.record().status == "SUCCEEDED"
    cap = "held back by capacity.maxHourlyCost of $6.50: what already runs or boots costs that much"
    assert cap in watch.sentences


BELOW = "capacity.maxHourlyCost of $0.50 allows no instance that could take its tasks: the cheapest costs $2.00 an hour"


def test_a_run_under_an_hourly_cap_that_no_instance_is_below_waits_for_an_hour_and_ends_with_that_reason() -> None:
    watch = Watch(cluster())
    watch.controlled.submit(10, capacity={"maxHourlyCost": 0.5})
    for _ in range(50):
        watch.tick()
    assert not watch.alive()
    assert watch.controlled.run.waiting == BELOW
    watch.to_rest(IDLE_S)
    record = watch.controlled.record()
    assert (record.status, record.counts[6]) == ("FAILED", 10)
    assert record.status_reason == f"{BELOW}. It has waited 60 minutes for a lower price"
    assert 3600 <= record.stopped_at - record.submitted_at < 3700
    assert record.capped_at == 0  # it had money


def test_a_price_that_falls_below_the_hourly_cap_in_time_lets_the_run_start() -> None:
    began = 1_800_000_000.0
    falls = lambda kind, zone, at: PRICE if at < began + 1800 else 0.4  # noqa: E731
    watch = Watch(Controlled(work_s=120.0, prices=falls))
    watch.controlled.submit(2, capacity={"maxHourlyCost": 0.5})
    watch.to_rest(IDLE_S)
    record = watch.controlled.record()
    assert (record.status, record.unaffordable_since) == ("SUCCEEDED", 0.0)


def test_prices_that_rise_above_the_hourly_cap_later_end_the_run_with_what_it_has() -> None:
    """Its instance goes on at the old price, and is taken away; no other can be bought."""
    began = 1_800_000_000.0
    rises = lambda kind, zone, at: 0.4 if at < began + 60 else PRICE - whole(0.0)  # noqa: E731
    watch = Watch(Controlled(work_s=120.0, prices=rises, linger_s=0.0))
    watch.controlled.submit(400, capacity={"maxHourlyCost": 0.5})
    watch.until(lambda: bool(watch.record() and watch.controlled.record().waiting == BELOW))
    watch.until(lambda: watch.world.now > began + 3700.0, 4500.0, IDLE_S)
    assert watch.controlled.record().status == "RUNNING"  # it is no hour without work
    watch.world.interrupt(watch.ids()[0])
    watch.to_rest(IDLE_S)
    record = watch.controlled.record()
    assert record.status == "PARTIAL"
    assert record.status_reason == f"{BELOW}. It has waited 60 minutes for a lower price"
    assert record.stopped_at > began + 3700 + 3600


def test_a_run_buys_what_its_hourly_cap_allows_although_a_larger_instance_has_room() -> None:
    def price(kind: str, zone: str, at: float) -> float:
        return 2.0 if kind == "c5.2xlarge" else 0.3

    cluster = Controlled(("c5.xlarge", "c5.2xlarge"), ("us-east-1a",), work_s=3600.0, prices=price)
    cluster.submit(1, placement={"constraints": ["attribute:ecs.instance-type == c5.2xlarge"]})
    cluster.run_for(300)
    cluster.submit(1, run_id="cheap-261121-062733-k3f9", capacity={"maxHourlyCost": 1.0})
    cluster.run_for(300)
    assert sorted(each["InstanceType"] for each in cluster.live_instances()) == ["c5.2xlarge", "c5.xlarge"]
    assert cluster.record("cheap-261121-062733-k3f9").status == "RUNNING"


def test_a_run_that_its_budget_stopped_continues_with_a_higher_one() -> None:
    watch = Watch(cluster())
    watch.controlled.submit(100, array={"size": 100, "expectedSeconds": 120}, capacity={"budgetUsd": 0.5})
    watch.to_rest()
    first = watch.controlled.record()
    assert (first.status, first.budget_usd) == ("PARTIAL", 0.5)
    watch.controlled.retry(cancelled=True, budget_usd=1.0)
    watch.to_rest()
    record = watch.controlled.record()
    assert record.budget_usd == 1
    assert first.counts[4] < record.counts[4] < 100
    assert "its budget of $1.00" in record.status_reason
    assert first.cost_usd + 0.25 < record.cost_usd <= 1
    watch.controlled.retry(cancelled=True, budget_usd=25.0)
    watch.to_rest()
    assert watch.controlled.record().status == "SUCCEEDED"


def test_idle_instances_of_others_are_used_within_the_hourly_cap_only() -> None:
    """Six instances linger that another run has paid for; the run may keep two of them busy."""
    watch = Watch(cluster(work_s=60.0, linger_s=3000.0, cool_down_s=0.0))
    watch.controlled.submit(24, run_id=OTHER_ID)
    watch.until(
        lambda: watch.controlled.record(OTHER_ID).status == "SUCCEEDED" if watch.world.now > 1_800_000_010 else False
    )
    assert len(watch.alive()) == 6
    watch.controlled.submit(40, capacity={"maxHourlyCost": 2 * PRICE + 0.01})  # EC2 tells prices to six digits
    busiest = 0
    while watch.controlled.record().status != "SUCCEEDED" if watch.record() else True:
        watch.tick()
        state = watch.controlled.controllers[0].state
        assert state is not None
        busiest = max(busiest, len(state.attempts.runs_on_instance))
    assert busiest == 2


def test_a_run_with_a_budget_ends_alone_and_others_continue() -> None:
    watch = Watch(cluster(linger_s=60.0))
    watch.controlled.submit(200, capacity={"budgetUsd": 0.5})
    watch.controlled.submit(40, run_id=OTHER_ID)
    watch.to_rest()
    mine, other = watch.controlled.record(), watch.controlled.record(OTHER_ID)
    assert mine.status == "PARTIAL"
    assert mine.cost_usd <= 0.5
    assert other.status == "SUCCEEDED"
    state = watch.controlled.controllers[0].state
    assert state is not None
    paid = mine.cost_usd + other.cost_usd + state.unattributed.total
    assert paid == pytest.approx(state.spent_usd)
    assert paid == pytest.approx(watch.bill.usd(), rel=0.01)


def test_a_capped_run_that_is_cancelled_ends_as_cancelled() -> None:
    watch = Watch(cluster())
    watch.controlled.submit(100, capacity={"budgetUsd": 5})
    watch.until(lambda: bool(watch.record() and watch.controlled.record().status == "RUNNING"))
    watch.controlled.cancel()
    watch.to_rest()
    assert watch.controlled.record().status == "CANCELLED"


def test_failing_tasks_use_the_budget_up_too() -> None:
    watch = Watch(cluster())
    watch.world.workload = lambda task, instance: TaskBehaviour(duration_s=100.0, exit_code=1)
    watch.controlled.submit(
        100, array={"size": 100, "expectedSeconds": 100}, retryStrategy={"attempts": 10}, capacity={"budgetUsd": 0.7}
    )
    watch.to_rest()
    record = watch.controlled.record()
    assert watch.bill.usd() <= 0.7
    assert record.status == "FAILED"
    assert sum(costs.failed for costs in record.costs.values()) > 0.5 * record.cost_usd
