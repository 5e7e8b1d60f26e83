"""What is expected of instances reaches placement, and only where a strategy asks for it."""

from __future__ import annotations

import pytest

from argosy.catalogue.lookup import load_catalogue
from argosy.market.cover import hypothetical, less
from argosy.market.offers import offers_of, rate_of
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptKey
from argosy.model.events import LaunchAccepted
from argosy.model.moment import Moment
from argosy.model.state import State
from argosy.placement.demand import Batch
from argosy.scheduler.placing.places import assign
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.supply.rows import Expectations, expected_end
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    RUN_ID,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    moment_of,
    prepared,
    state_with,
    submitted,
    task,
    task_arn,
    told,
)

CATALOGUE = load_catalogue()
OFTEN, SELDOM = "c6i.xlarge", "c5.xlarge"  # interruption bands 15-20% and <5%


def ready(state: State, run_id: str, *strategy: str, expected_s: float | None = None) -> State:
    """A prepared run of one task and a chain."""
    array = {"size": 1} | ({} if expected_s is None else {"expectedSeconds": expected_s})
    return told(
        state, submitted(run_id, tasks=1, placement={"strategy": list(strategy)}, array=array), prepared(run_id)
    )


def two_types() -> State:
    """One idle instance of each, of the same size; the one that is interrupted often registered first."""
    state = state_with(fleet(OFTEN), fleet(SELDOM))
    for number, name in ((1, OFTEN), (2, SELDOM)):
        told(state, host(number, name), container_instance(number, registered_at=NOW + number))
    return state


def moment(state: State, now: float = NOW) -> Moment:
    return Moment(state, CATALOGUE, now, POLICY)


def outlook(state: State, now: float = NOW) -> Expectations:
    return Expectations.of(moment(state, now), list(state.runs.values()))


def goes_to(state: State) -> list[str]:
    """The instances of the launches of the last run."""
    last = list(state.runs)[-1]
    launches = assign(moment_of(state, NOW + 100), Roster()).launches
    return [launch.instance_id for launch in launches if launch.key.run_id == last]


@pytest.mark.parametrize(("step", "number"), [("best-fit", 1), ("least-interrupted", 2)])
def test_the_band_of_the_type_decides(step: str, number: int) -> None:
    assert goes_to(ready(two_types(), RUN_ID, step)) == [instance_id(number)]


def test_interruptions_that_were_seen_outweigh_the_band() -> None:
    state = two_types()
    pool = state.pools[state.instances[instance_id(2)].pool]
    pool.interruptions, pool.instance_hours, pool.rate_at = 3.0, 10.0, NOW
    assert goes_to(ready(state, RUN_ID, "least-interrupted")) == [instance_id(1)]


def test_on_demand_is_never_interrupted() -> None:
    state = ready(two_types(), RUN_ID, "least-interrupted")
    rates = outlook(state).rates
    pool = state.instances[instance_id(1)].pool
    assert rates[pool, "on-demand"] == 0.0
    assert rates[pool, "spot"] == rate_of(state.pools[pool], NOW, POLICY) > 0.0


def busy_for(*seconds: float) -> State:
    """One c5.xlarge for each number, with a task of that expected length; the first one registered first."""
    state = state_with(fleet())
    for number, expected_s in enumerate(seconds, start=1):
        told(state, host(number), container_instance(number, registered_at=NOW + number))
        run_id = f"busy{number}-261121-062733-k3f9"
        ready(state, run_id, expected_s=expected_s)
        key = AttemptKey(run_id, 0, 1, 0)
        begun(state, [Launch(key, state.next_wave, state.started_by(state.next_wave), instance_id(number), CELL)])
        told(state, LaunchAccepted(key, task_arn(number)), task(number))
    return state


@pytest.mark.parametrize(("step", "number"), [("best-fit", 1), ("finish-together", 2)])
def test_the_work_that_ends_with_the_task_decides(step: str, number: int) -> None:
    assert goes_to(ready(busy_for(7200, 1200), RUN_ID, step, expected_s=600)) == [instance_id(number)]


def test_a_task_of_unknown_length_goes_where_work_ends_last() -> None:
    assert goes_to(ready(busy_for(1200, 7200, 600), RUN_ID, "finish-together")) == [instance_id(2)]


def test_an_end_is_that_of_the_last_attempt_and_never_past() -> None:
    state = ready(busy_for(100, 1000), RUN_ID, "finish-together")
    assert outlook(state).ends == {instance_id(1): NOW + 100, instance_id(2): NOW + 1000}
    assert outlook(state, NOW + 300).ends == {instance_id(1): NOW + 300, instance_id(2): NOW + 1000}


def test_an_attempt_that_has_not_started_ends_its_whole_length_from_now() -> None:
    state = ready(state_with(fleet(), host(1), container_instance(1)), RUN_ID, "finish-together", expected_s=50)
    launched(state)
    assert outlook(state, NOW + 7).ends == {instance_id(1): NOW + 57}


def test_nothing_is_worked_out_unless_a_strategy_asks() -> None:
    state = ready(busy_for(100), RUN_ID, "best-fit", "busy-first", expected_s=600)
    assert outlook(state) == Expectations()
    supply = Roster().at(moment_of(state)).supply
    assert Expectations().on(supply, lambda name: "") is supply
    assert expected_end(state.runs[RUN_ID], NOW) == 0.0


def test_a_users_function_may_look_at_both() -> None:
    state = ready(busy_for(100), RUN_ID, "our_scores:warm", expected_s=600)
    assert outlook(state).rates
    assert outlook(state).ends
    assert expected_end(state.runs[RUN_ID], NOW) == NOW + 600


def test_tasks_of_one_batch_count_for_the_next_round() -> None:
    """What is placed on an instance in one round of a tick keeps it until the task's end in the next round."""
    row = Roster().at(moment_of(state_with(fleet(), host(1), container_instance(1)))).here.row(0)
    assert less(row, Batch(1, 1, 0, 1, finish_at=NOW + 9), 1).finish_at == NOW + 9


def test_what_could_be_bought_carries_its_rate() -> None:
    offers = offers_of(two_types().pools.values(), CATALOGUE, NOW)
    rates = {(offer.instance_type, offer.purchase.value): hypothetical(offer, 0).interruption_rate for offer in offers}
    assert rates[OFTEN, "spot"] > rates[SELDOM, "spot"] > rates[OFTEN, "on-demand"] == 0.0
