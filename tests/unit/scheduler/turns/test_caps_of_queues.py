"""The most that a queue may use: cpu, GPUs, instances and dollars an hour, placed and bought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.lifecycle.suspension import suspend
from argosy.market.limits import OrderLimits
from argosy.market.offers import cost_of
from argosy.market.order import Backlog, Order
from argosy.model.actions import Action, HaltRun, Launch, Remark, SetTarget
from argosy.model.events import SharingAsked
from argosy.model.inbox import SharingRequest
from argosy.model.instances import Purchase
from argosy.model.resources import Resources
from argosy.model.run_record import RunRecord
from argosy.model.run_terms import ServiceTerms
from argosy.model.shares.sharing import Cap
from argosy.model.state import State
from argosy.scheduler.buying.budget import CappedRuns, run_budgets
from argosy.scheduler.buying.orders import MarketView
from argosy.scheduler.buying.orders import bought as bought_in_a_tick
from argosy.scheduler.buying.remarks import ORDERED
from argosy.scheduler.placing.places import placed
from argosy.scheduler.supply.present import what_is_there
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.turns.caps import at_cap, is_at_cap, units_of, use_by_run
from argosy.scheduler.turns.queue_views import use_of_queues
from argosy.scheduler.turns.turns import whose_turn
from tests import shared_clusters
from tests.builders import (
    NOW,
    POLICY,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    moment_of,
    state_with,
    told,
)
from tests.shared_clusters import decided, launches, run

PRICE = 0.17


def shared(state: State, limits: dict[str, float] | None = None, **queues: Any) -> State:
    document: dict[str, Any] = {"version": 1, "queues": queues}
    if limits is not None:
        document["limits"] = limits
    return told(state, SharingAsked(SharingRequest(document, state.sharing.revision, NOW)))


def cluster(instances: int) -> State:
    """Each costs the same."""
    state = shared_clusters.cluster(instances)
    for instance in state.instances.values():
        instance.price_usd_per_hour = PRICE
    return state


def sentences(actions: Iterable[Action]) -> dict[str, str]:
    return {each.run_id: each.sentence for each in actions if isinstance(each, Remark)}


def bought(actions: Iterable[Action]) -> int:
    return sum(each.spot_target for each in actions if isinstance(each, SetTarget))


@pytest.mark.parametrize(
    ("cap", "tasks", "said"),
    [
        ({"vcpus": 5}, 5, "queue research is at its cap of 5 vCPUs"),
        ({"instances": 1.5}, 6, "queue research is at its cap of 1.5 instances"),
        ({"usdPerHour": 2 * PRICE}, 8, "queue research is at its cap of 0.34 USD an hour"),
        ({"usdPerHour": 0}, 0, "a task needs an instance of $0.1048 an hour, the cap of queue research is $0.00"),
        ({"instances": 0.5}, 2, "a task needs one whole instance, the cap of queue research is 0.5 instances"),
        ({"vcpus": 9, "instances": 1}, 4, "queue research is at its cap of 1 instance"),
    ],
)
def test_a_queue_starts_no_more_than_its_cap_allows(cap: dict[str, float], tasks: int, said: str) -> None:
    state = shared(cluster(4), default={}, research={"cap": cap})
    first, second = run(state, 1, 1_000, queue="research"), run(state, 2, 4)
    actions = decided(state, max_instances=4)
    assert launches(actions) == Counter({first: tasks, second: 4}) - Counter()
    assert sentences(actions)[first] == said


def test_a_cap_on_gpus_holds_back_only_what_takes_gpus() -> None:
    state = shared(cluster(4), research={"cap": {"gpus": 0}})
    gpus = {"vcpus": 1, "memory": 1024, "gpus": 1}
    run(state, 1, 9, queue="research", resources=gpus)
    second = run(state, 2, 9, queue="research")
    assert launches(decided(state, max_instances=4)) == {second: 9}


def test_dollars_of_a_task_with_a_gpu_are_those_of_instances_with_gpus() -> None:
    state = shared(cluster(4), research={"cap": {"usdPerHour": 0.4}})
    told(state, fleet("g4dn.xlarge"), host(9, "g4dn.xlarge"), container_instance(9, gpus=1))
    state.instances[instance_id(9)].price_usd_per_hour = 0.5
    assert {each.use for each in use_of_queues(state)} == {0.0}
    run(state, 1, 9, queue="research", resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    assert not launches(decided(state, max_instances=5))
    state = shared(state, research={"cap": {"usdPerHour": 0.6}})
    assert launches(decided(state, max_instances=5)).total() == 1


def test_what_runs_already_counts() -> None:
    state = shared(cluster(4), research={"cap": {"vcpus": 6}})
    first = run(state, 1, 1_000, queue="research")
    begun(state, [each for each in decided(state, max_instances=4) if isinstance(each, Launch)][:4])
    again = [each for each in decided(state, max_instances=4) if isinstance(each, Launch)]
    assert len({each.key for each in again} - {None}) == 6
    assert launches(again) == {first: 6}


def test_tasks_of_a_suspended_run_continue_and_count() -> None:
    state = shared(cluster(4), default={}, research={"cap": {"vcpus": 6}})
    first = run(state, 1, 4, queue="research")
    begun(state, [each for each in decided(state, max_instances=4) if isinstance(each, Launch)])
    suspend(state, RunRecord.of(state.runs[first]), "it fails", NOW)
    second, third = run(state, 2, 1_000, queue="research"), run(state, 3, 1_000)
    assert launches(decided(state, max_instances=4)) == {second: 2, third: 10}
    (research,) = [each for each in use_of_queues(state) if each.name == "research"]
    assert research.used.vcpus == 4


def test_tasks_of_a_suspended_run_count_in_the_level_of_its_queue() -> None:
    state = shared(cluster(2), default={}, research={})
    first = run(state, 1, 4, queue="research")
    begun(state, [each for each in decided(state, max_instances=2) if isinstance(each, Launch)])
    suspend(state, RunRecord.of(state.runs[first]), "it fails", NOW)
    run(state, 2, 1_000, queue="research")
    third = run(state, 3, 1_000)
    assert launches(decided(state, max_instances=2)) == {third: 4}


def test_room_that_a_queue_may_not_use_goes_to_the_others() -> None:
    state = shared(cluster(4), default={}, research={"weight": 1_000, "cap": {"usdPerHour": PRICE}})
    first, second = run(state, 1, 1_000, queue="research"), run(state, 2, 1_000)
    assert launches(decided(state, max_instances=4)) == {first: 4, second: 12}


def test_no_instance_is_ordered_above_a_cap() -> None:
    for cap, most in (({"instances": 3}, 3), ({"vcpus": 8}, 2), ({"usdPerHour": 0.01}, 0)):
        state = shared(state_with(fleet(), fleet(zone="us-east-1b")), research={"cap": cap})
        first = run(state, 1, 1_000, queue="research")
        actions = decided(state)
        assert bought(actions) == most
        assert is_at_cap(sentences(actions)[first])


def test_a_guarantee_that_takes_every_instance_and_is_not_lent_leaves_none_to_the_others() -> None:
    keeps = {"guarantee": {"instances": 2}, "lend": False}
    state = shared(state_with(fleet()), research=keeps, default={})
    first = run(state, 1, 9)
    told = "a task needs one whole instance, maxInstances less the guarantees that are not lent is 0 instances"
    assert sentences(decided(state, max_instances=2))[first] == told
    assert bought(decided(state, max_instances=3)) == 1


def test_a_service_that_fits_no_cap_waits_for_another_document() -> None:
    state = shared(state_with(fleet()), research={"cap": {"vcpus": 0.5}})
    first = run(state, 1, 1, queue="research")
    state.runs[first].unaffordable_since = NOW - POLICY.unaffordable_patience_s
    assert [each.run_id for each in decided(state) if isinstance(each, HaltRun)] == [first]
    state.runs[first].terms = replace(
        state.runs[first].terms, service=ServiceTerms(1, 100, 100, 30.0, 300.0, False, "", 0.0, "")
    )
    assert not [each for each in decided(state) if isinstance(each, HaltRun)]


def test_what_was_ordered_counts_against_the_cap() -> None:
    state = shared(state_with(fleet()), research={"cap": {"instances": 3}})
    run(state, 1, 1_000, queue="research")
    for action in decided(state):
        if isinstance(action, SetTarget):
            begun(state, [action])
            told(state, fleet(spot_target=action.spot_target))
    assert bought(decided(state)) == 0


def test_other_queues_get_purchases_while_one_is_at_its_cap() -> None:
    state = shared(state_with(fleet()), research={"cap": {"instances": 1}})
    run(state, 1, 1_000, queue="research")
    second = run(state, 2, 8)
    actions = decided(state)
    assert bought(actions) == 3
    assert sentences(actions)[second] == ORDERED


def test_a_run_that_waits_for_gpus_keeps_nothing_of_the_cap_from_the_next_one() -> None:
    state = shared(cluster(1), research={"cap": {"vcpus": 2}})
    run(state, 1, 9, queue="research", resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    second = run(state, 2, 9, queue="research")
    assert launches(decided(state, max_instances=1)) == {second: 2}


def test_a_run_that_the_whole_cap_buys_nothing_for_keeps_nothing_of_it_from_the_next_one() -> None:
    state = state_with(fleet(spot_usd_per_hour=0.1), fleet("g4dn.xlarge", spot_usd_per_hour=0.5))
    state = shared(state, research={"cap": {"vcpus": 4, "usdPerHour": 0.2}})
    run(state, 1, 9, queue="research", resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    run(state, 2, 4, queue="research")
    assert bought(decided(state)) == 1


def test_a_run_that_cannot_pay_for_its_places_keeps_nothing_of_the_cap_from_the_next_one() -> None:
    state = shared(cluster(1), research={"cap": {"vcpus": 2}})
    poor = run(state, 1, 9, queue="research", capacity={"maxHourlyCost": PRICE / 2})
    second = run(state, 2, 9, queue="research")
    actions = decided(state, max_instances=1)
    assert launches(actions) == {second: 2}
    assert sentences(actions)[poor].startswith("capacity.maxHourlyCost of")


def test_owners_share_the_cap_of_their_queue() -> None:
    state = shared(cluster(4), team={"within": "owners", "cap": {"vcpus": 6}})
    alice, bob = (run(state, n, 900, queue="team", owner=owner) for n, owner in ((1, "alice"), (2, "bob")))
    assert launches(decided(state, max_instances=4)) == {alice: 3, bob: 3}


def test_a_document_without_caps_still_loads_and_caps_nothing() -> None:
    state = shared(cluster(1), research={})
    assert state.sharing.queues()["research"].cap == Cap()
    assert at_cap("a", Cap(gpus=1), 2) == "queue a is at its cap of 1 GPU"


def test_no_order_takes_the_deployment_above_its_dollars() -> None:
    state = shared(cluster(2), {"usdPerHour": 6 * PRICE})
    first = run(state, 1, 1_000)
    actions = decided(state)
    pool, kind = next(iter(state.pools.values())), load_catalogue()["c5.xlarge"]
    price = cost_of(pool, kind, Purchase.SPOT, NOW, POLICY)
    assert bought(actions) == 2 + int(4 * PRICE / price)
    told = sentences(actions)[first]
    assert told == "held back by the deployment's limit of 1.02 USD an hour (argosy queues)"


def test_dollars_that_do_not_suffice_are_shared_by_weight() -> None:
    state = shared(state_with(fleet()), {"usdPerHour": 1.0}, default={}, research={"weight": 3})
    first, second = run(state, 1, 1_000), run(state, 2, 1_000, queue="research")
    actions = decided(state)
    told = sentences(actions)
    assert bought(actions) > 4
    assert "1.00 USD an hour" in told[first]
    assert "1.00 USD an hour" in told[second]


def test_floors_keep_to_the_dollars_of_the_deployment() -> None:
    state = shared(state_with(fleet()), {"usdPerHour": 0.0}, default={})
    run(state, 1, 4)
    assert bought(decided(state, min_instances=2)) == 0


def test_a_guarantee_is_served_before_the_weights() -> None:
    state = shared(cluster(4), default={"weight": 1_000}, prod={"weight": 0, "guarantee": {"vcpus": 6}})
    first, second = run(state, 1, 1_000), run(state, 2, 1_000, queue="prod")
    assert launches(decided(state, max_instances=4)) == {first: 10, second: 6}


def test_an_instance_that_is_guaranteed_is_bought_first() -> None:
    state = shared(state_with(fleet()), default={"weight": 1_000}, prod={"guarantee": {"instances": 2}})
    run(state, 1, 1_000_000)
    second = run(state, 2, 4, queue="prod")
    actions = decided(state, max_instances=3)
    assert bought(actions) == 3
    assert sentences(actions)[second] == ORDERED


def test_a_guarantee_that_is_not_lent_is_kept_from_others_even_if_unused() -> None:
    for lend, most in ((True, 10), (False, 6)):
        state = shared(state_with(fleet()), legal={"guarantee": {"instances": 4}, "lend": lend})
        first = run(state, 1, 1_000)
        actions = decided(state, max_instances=10)
        assert bought(actions) == most
    assert sentences(actions)[first] == "held back by the guarantee of queue legal, which is not lent"


def test_a_queue_that_does_not_lend_may_buy_what_is_reserved_for_it() -> None:
    state = shared(state_with(fleet()), legal={"guarantee": {"instances": 4}, "lend": False})
    run(state, 1, 1_000)
    run(state, 2, 16, queue="legal")
    assert bought(decided(state, max_instances=10)) == 10


def test_dollars_that_are_not_lent_are_kept_as_well() -> None:
    legal = {"guarantee": {"usdPerHour": 0.5}, "lend": False}
    state = shared(state_with(fleet()), {"usdPerHour": 1.0}, legal=legal)
    run(state, 1, 1_000)
    kept = bought(decided(state))
    other = shared(state_with(fleet()), {"usdPerHour": 0.5}, default={})
    run(other, 1, 1_000)
    assert kept == bought(decided(other)) > 0


def test_what_many_attempts_use_is_the_sum_of_what_each_does() -> None:
    state = cluster(6)
    ids = [run(state, number, 9, resources={"vcpus": number + 0.5, "memory": 300 * (1 + number)}) for number in (0, 1)]
    begun(state, decided(state))
    first, second, *_ = state.instances.values()
    first.interrupted_at, second.price_usd_per_hour = NOW, 0.31
    unknown = state.instances.pop([*state.instances][-1])
    expected = {state.runs[run_id].number: [0] * 8 for run_id in ids}
    for row in state.attempts.placed().tolist():
        number, name = int(state.attempts["run"][row]), bytes(state.attempts["instance"][row]).decode()
        its, needs = state.instances.get(name), state.needs_by_number()[number]
        units = units_of(needs, its.total if its else Resources(), its.price_usd_per_hour if its else 0.0)
        for unit, each in enumerate(units):
            expected[number][unit] += each
            expected[number][4 + unit] += each if its and its.interrupted_at else 0
    assert sum(map(sum, expected.values())) > 0
    assert use_by_run(state, expected.keys()) == expected
    assert use_by_run(state, []) == {}
    state.instances[unknown.id] = unknown


def test_what_a_run_may_not_buy_within_its_own_limits_is_bought_for_the_others() -> None:
    """The only instance costs 0.1 USD an hour: the hourly limit of one run pays for a part, the other needs all."""
    state = shared(state_with(fleet(spot_usd_per_hour=0.1)), default={}, research={"weight": 9})
    poor = run(state, 1, 2, queue="research", capacity={"maxHourlyCost": 0.05})
    large = run(state, 2, 2, resources={"vcpus": 4, "memory": 1024})
    actions = decided(state, max_instances=1)
    assert bought(actions) == 1
    assert sentences(actions)[poor].startswith("capacity.maxHourlyCost of")
    assert "maxInstances of the deployment" in sentences(actions)[large]  # its second task


@dataclass(frozen=True)
class CountedMarket(MarketView):
    """Counts the orders that a tick allocates."""

    asked: list[int] = field(default_factory=list)

    def buy(self, backlog: Sequence[Backlog], limits: OrderLimits) -> Order:
        self.asked.append(len(backlog))
        return super().buy(backlog, limits)


def test_what_many_runs_may_not_buy_is_shared_once_in_a_tick_and_the_rest_in_the_next_ticks() -> None:
    """Twenty runs have hourly limits of 0.06 to 0.37 USD; c5.xlarge costs 0.11. Without the bound, four orders follow
    one another in the first tick."""
    state = shared(state_with(fleet(spot_usd_per_hour=0.1)), **{f"q{n}": {"weight": n + 1} for n in range(4)})
    for number in range(20):
        vcpus, memory = ((1, 1024), (2, 3000), (4, 5000), (1, 7000), (3, 5000))[number % 5]
        limit = {"maxHourlyCost": round(0.06 * 1.1**number, 3)}
        run(state, number, 100, queue=f"q{number % 4}", resources={"vcpus": vcpus, "memory": memory}, capacity=limit)
    moment = moment_of(state, policy=replace(POLICY, max_instances=20))
    market, money = CountedMarket(moment, {}), CappedRuns.of(moment, run_budgets(moment), set())
    turns = whose_turn(what_is_there(moment, Roster(), {}), money.at_most(market))
    bought_in_a_tick(market, money.allowed(placed(turns)))
    assert len(market.asked) == 3  # as if each run were alone, in shares, and what was left once more
    totals = []
    for _ in range(3):
        begun(state, [each for each in decided(state, max_instances=20) if isinstance(each, SetTarget)])
        totals.append(sum(pool.spot_target for pool in state.pools.values()))
    assert totals[1:] == [20, 20]
