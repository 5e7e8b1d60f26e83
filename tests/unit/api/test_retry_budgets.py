"""The cost that a retry's budget has to cover, by the offers that the scheduler would buy from for that run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from argosy.api.runs.retries import typed
from argosy.engine.loading import load_run
from argosy.lifecycle.apply import apply
from argosy.lifecycle.revival import revive
from argosy.model import inbox
from argosy.model.actions import CapRun, HaltRun
from argosy.model.costs import Costs
from argosy.model.events import RunRetried
from argosy.model.pools import Pool
from argosy.model.resources import NOTHING
from argosy.model.runs import RunStatus
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.spec.fields import USD_LIMIT
from tests.builders import NOW, POLICY, RUN_ID, moment_of, prepared, state_with, submitted
from tests.fakes.api import Desk, error_of

PRICES = {"c5.xlarge": 0.05, "c5.4xlarge": 0.3, "c6g.xlarge": 0.04, "g4dn.xlarge": 0.2, "g5.xlarge": 0.5}
SHAPE = {"vcpus": 1, "memory": 1024, "gpus": 0}
CELLS = {"us-east-1": 1.0, "eu-west-1": 3.0}  # their price
asked = st.fixed_dictionaries(
    {
        "resources": st.sampled_from(
            [
                SHAPE,
                {**SHAPE, "vcpus": 8},
                {**SHAPE, "architecture": "arm64"},
                {**SHAPE, "gpus": 1},
                {**SHAPE, "gpus": 1, "gpuModel": "A10G"},
                {**SHAPE, "gpus": 1, "gpuMemoryMib": 20_000},
                {**SHAPE, "gpus": 8},  # no type has that many
            ]
        ),
        "placement": st.sampled_from([{}, {"constraints": ["attribute:ecs.instance-type =~ .*5.*"]}]),
        "purchase": st.sampled_from(["spot", "on-demand", "spot-then-on-demand"]),
        "cells": st.sampled_from([[], ["eu-west-1"]]),
        "deadline": st.sampled_from([None, "5m", "30m", "2h"]),
        "expected_s": st.sampled_from([30.0, 600.0, 7200.0]),
    }
)


SMALL = {"resources": SHAPE, "placement": {}, "purchase": "spot", "cells": [], "deadline": None, "expected_s": 60.0}
LATE = {**SMALL, "purchase": "spot-then-on-demand", "deadline": "30m", "expected_s": 7200.0}


def desk_with(wish: dict[str, Any], spent_usd: float, budget_usd: float | None, prices: dict[str, float]) -> Desk:
    """An ended run of ten tasks, nine of which failed, and pools of those spot prices in two cells."""
    capacity = {key: wish[key] for key in ("purchase", "cells", "deadline") if wish[key]}
    capacity |= {} if budget_usd is None else {"budgetUsd": budget_usd}
    more = {"resources": wish["resources"], "placement": wish["placement"], "capacity": capacity}
    desk, array = Desk(), {"range": "0:10", "shardSize": 1, "expectedSeconds": wish["expected_s"]}
    desk.api.policy, desk.api.fleets = POLICY, ()
    desk.state = state_with(submitted(array=array, **more), prepared(resources=wish["resources"]))
    for cell, factor in CELLS.items():
        for name, usd in prices.items():
            pool = Pool(cell, name, f"{cell}a", f"fleet-{name}", spot_usd_per_hour=usd * factor)
            desk.state.pools[pool.key] = pool
    (run,) = desk.state.runs.values()
    for index in range(10):
        run.tasks.set(index, status=TaskStatus.FAILED if index else TaskStatus.SUCCEEDED, attempts=1)
    run.status, run.stopped_at, run.cost_usd = RunStatus.PARTIAL, NOW + 60, spent_usd
    run.costs = {"a pool": Costs(useful=spent_usd)}
    desk.state.changed_runs.add(run.id)
    desk.state.changed_pools = True
    desk.commit()
    desk.time += 100
    return desk


def decided(desk: Desk, request: inbox.RetryRequest) -> bool:
    """Whether the controller's own decision lets the run live on, once it is reopened and prepared."""
    stored = load_run(desk.store, request.run_id)
    state = State(pools=dict(desk.state.pools))
    apply(state, RunRetried(request, stored), desk.time, POLICY)
    run = state.runs[request.run_id]
    while run.revives:
        revive(state, run, POLICY)
    run.task_definition = "arn:aws:ecs:us-east-1:123456789012:task-definition/argosy-0a1b2c3d4e5f:1"
    actions = decide(moment_of(state, desk.time))
    return not any(isinstance(action, CapRun | HaltRun) for action in actions)


def retried(desk: Desk, **fields: Any) -> str:
    """The objection to it; "" when it was granted."""
    answer = desk.ask("RetryRun", runId=RUN_ID, **fields)
    return "" if answer["statusCode"] == 200 else str(error_of(answer)["message"])


@pytest.mark.slow
@example(LATE, 0.1, 0.35, None)  # more than an attempt on spot costs, which the deadline does not allow
@settings(max_examples=40)
@given(asked, st.floats(0, 0.5), st.floats(0.001, 3), st.none() | st.floats(0.001, 3))
def test_a_retry_is_refused_if_and_only_if_the_controller_would_end_it_at_once(
    wish: dict[str, Any], spent_usd: float, budget_usd: float, more_usd: float | None
) -> None:
    desk = desk_with(wish, spent_usd, budget_usd, PRICES)
    said = retried(desk, clientToken="a", **({} if more_usd is None else {"budgetUsd": more_usd}))
    assert bool(said) is not decided(desk, inbox.RetryRequest(RUN_ID, desk.time, budget_usd=more_usd)), said
    if said:
        (budget,) = re.findall(r"--budget (\S+)$", said)
        assert decided(desk, inbox.RetryRequest(RUN_ID, desk.time, budget_usd=float(budget))), said
        assert retried(desk, clientToken="b", budgetUsd=float(budget)) == ""


@given(st.floats(0, 1e9))
def test_an_amount_to_type_is_never_less_and_at_most_a_cent_more(usd: float) -> None:
    text = typed(usd)
    assert re.fullmatch(r"\d+(\.\d\d)?", text)
    assert usd - 1e-6 <= float(text) < usd + 0.010001
    assert float(text) <= USD_LIMIT


def test_large_budgets_are_suggested_to_the_cent() -> None:
    desk = desk_with(SMALL, 1_234_567.85, 1_234_567.85, PRICES)
    assert retried(desk).endswith("--budget 2469135.70")
    assert retried(desk, budgetUsd=2469135.70) == ""


def test_a_run_that_only_has_to_be_closed_needs_no_money() -> None:
    desk = desk_with(SMALL, 5.0, 5.0, PRICES)
    run = load_run(desk.store, RUN_ID)
    assert run is not None
    for index in range(10):
        run.tasks.set(index, status=TaskStatus.SUCCEEDED)
    run.status, desk.state.runs[RUN_ID] = RunStatus.FAILED, run
    desk.state.changed_runs.add(RUN_ID)
    desk.commit()
    assert retried(desk) == ""


def test_where_the_size_of_a_task_was_never_known_only_what_is_left_counts() -> None:
    desk = desk_with(SMALL, 5.0, 6.0, PRICES)
    run = load_run(desk.store, RUN_ID)
    assert run is not None
    run.needs, desk.state.runs[RUN_ID] = NOTHING, run
    desk.state.changed_runs.add(RUN_ID)
    desk.commit()
    assert "$5.00 of a budget of $5.00" in retried(desk, budgetUsd=5.0)
    assert retried(desk) == ""
