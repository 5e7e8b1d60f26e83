"""ExplainRun names the true reason, from the same supply and offers that the scheduler sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.api.waiting.explanation import explain_run
from argosy.cli.runs.explain import lines_of
from argosy.model.events import PoolShort
from argosy.model.state import State
from argosy.scheduler.decide import decide
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    begun,
    fleet,
    host,
    launched,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task,
    told,
)


def explained(state: State, index: int | None = None) -> dict[str, Any]:
    return explain_run(moment_of(state), state.runs[RUN_ID], index)


def test_a_task_that_fits_is_reported_to_start_soon() -> None:
    assert explained(state_with_instance())["verdict"] == "placed"


def test_a_full_cluster_names_what_is_short_and_the_least_that_would_help() -> None:
    state = state_with_instance(tasks=10)
    for index in range(4):
        launched(state, index, index + 1)
    reply = explained(state)
    assert reply["verdict"] == "waiting"
    (reason,) = reply["cluster"]["reasons"]
    assert (reason["kind"], reason["asked"], reason["best"]) == ("cpu", 1024, 0)


def test_a_shape_that_nothing_can_hold_is_never_placed() -> None:
    gpus = {"vcpus": 1, "memory": 1024, "gpus": 3}
    state = state_with(submitted(resources=gpus), prepared(resources=gpus), fleet("p3.2xlarge"), fleet("c5.xlarge"))
    reply = explained(state)
    assert reply["verdict"] == "never"
    assert "3 GPUs" in reply["sentence"]
    assert reply["market"]["relaxation"]


def test_ordered_instances_are_reported_to_be_on_their_way() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    begun(state, decide(moment_of(state)))
    reply = explained(state)
    assert (reply["verdict"], reply["coming"]["fits"]) == ("waiting", 1)
    assert reply["sentence"] == "1 instance that could take it is on its way"


def test_a_shortage_leaves_the_reason_visible() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    told(state, PoolShort("fleet-c5.xlarge-us-east-1a", "none"))
    reply = explained(state)
    assert reply["verdict"] == "waiting"
    assert "short of capacity" in reply["sentence"]


def test_the_state_of_one_task_is_shown() -> None:
    state = state_with_instance(tasks=2)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=7, reason="no such flag"))
    assert explained(state, 0)["task"] == {
        "index": 0,
        "status": "PENDING",
        "attempts": 1,
        "reason": "no such flag",
        "backOffSeconds": 1.0,
    }


def test_a_run_without_waiting_tasks_says_so() -> None:
    state = state_with_instance(tasks=1)
    launched(state)
    assert explained(state)["verdict"] == "done"
    assert explained(state)["sentence"] == "no task of this run is waiting for a place"


def test_a_run_at_its_own_cap_is_reported_as_capped() -> None:
    state = state_with_instance(tasks=4, placement={"maxConcurrentTasks": 1})
    launched(state)
    reply = explained(state)
    assert (reply["verdict"], "maxConcurrentTasks is reached: 1 of" in reply["sentence"]) == ("capped", True)


def test_a_run_behind_another_one_is_reported_as_behind() -> None:
    later = "zebra-261121-062734-aaaa"
    state = state_with_instance(tasks=8)
    told(state, submitted(later, name="zebra"), prepared(later))
    assert explain_run(moment_of(state), state.runs[later])["verdict"] == "behind"


def test_the_kill_switch_is_named_as_the_reason() -> None:
    state = state_with_instance()
    reply = explain_run(moment_of(state), state.runs[RUN_ID], switched_off="being destroyed")
    assert reply["verdict"] == "off"
    assert reply["sentence"] == "launching is switched off for the whole deployment: being destroyed"


def test_the_market_shows_only_what_the_run_may_buy() -> None:
    spot = state_with(submitted(), prepared(), fleet())
    on_demand = state_with(submitted(capacity={"purchase": "on-demand"}), prepared(), fleet())
    assert [explained(state)["market"]["instances"] for state in (spot, on_demand)] == [1, 1]
    assert explained(on_demand)["market"]["fits"] == 1


def test_it_says_which_source_moved_the_price_of_the_next_instance() -> None:
    def price_of(**known: float) -> dict[str, Any]:
        state = state_with(submitted(tasks=4), prepared(), fleet())
        (pool,) = state.pools.values()
        state.pools[pool.key] = replace(pool, **known)  # type: ignore[arg-type]
        return explained(state)["nextPrice"]  # type: ignore[no-any-return]

    quiet = price_of()
    assert quiet["interruptionsFrom"] == "advisor"
    assert quiet["countedUsdPerHour"] > quiet["usdPerHour"]
    hit = price_of(account_interruptions=20.0, account_hours=100.0)
    assert (hit["usdPerHour"], hit["interruptionsFrom"]) == (quiet["usdPerHour"], "account")
    assert hit["countedUsdPerHour"] > quiet["countedUsdPerHour"]
    (line,) = [each for each in lines_of(explained(state_with(submitted(), prepared(), fleet()))) if "cheapest" in each]
    assert line.endswith("interruptions an hour, by AWS's Spot Instance Advisor)")
    own = price_of(instance_hours=400.0, rate_at=NOW)
    assert own["interruptionsFrom"] == "own"
    assert own["countedUsdPerHour"] < quiet["countedUsdPerHour"]
    on_demand = state_with(submitted(capacity={"purchase": "on-demand"}), prepared(), fleet())
    assert explained(on_demand)["nextPrice"] is None


def test_the_deployments_own_patience_decides_what_is_still_coming() -> None:
    state = state_with(submitted(tasks=4), prepared(), fleet())
    told(state, host())
    run = state.runs[RUN_ID]
    hasty = replace(POLICY, register_patience_s=-1.0)
    assert explain_run(moment_of(state), run)["coming"]["fits"] == 1
    assert explain_run(moment_of(state, NOW, hasty), run)["coming"]["fits"] == 0


def test_a_run_that_waits_for_money_says_so_although_there_is_room() -> None:
    state = state_with_instance(tasks=10, capacity={"budgetUsd": 5})
    run = state.runs[RUN_ID]
    run.waiting = "held back by its budget of $5.00: the rest is reserved for what already runs or boots"
    found = explain_run(moment_of(state), run)
    assert (found["verdict"], found["sentence"]) == ("capped", run.waiting)
