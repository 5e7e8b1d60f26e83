"""Which idle instances stay, and why?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.market.release import releasable
from argosy.model.actions import SetTarget
from argosy.model.events import InterruptionWarned
from argosy.model.state import State
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    container_instance,
    fleet,
    host,
    instance_id,
    launched,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    told,
    without_runs,
)


def idle_for(seconds: float, count: int = 1, state: State | None = None, **attributes: str) -> State:
    """Instances that idle since so long ago, the first the cheapest."""
    state = state or state_with(fleet(spot_target=count))
    for number in range(1, count + 1):
        told(state, host(number), container_instance(number, registered_at=NOW - seconds))
        state.instances[instance_id(number)].price_usd_per_hour = 0.01 * number
        state.instances[instance_id(number)].attributes |= attributes
    return state


def gone(state: State, now: float = NOW, **policy: Any) -> list[str]:
    return [instance.id for instance in releasable(moment_of(state, now, replace(POLICY, **policy)), ())]


def test_linger_is_that_of_the_first_glob_that_matches_the_type() -> None:
    state = idle_for(100)
    assert gone(state) == []
    assert gone(state, linger_by_type=(("c5.*", 90.0),)) == [instance_id(1)]
    assert gone(state, linger_by_type=(("p3.*", 10.0), ("c5.x*", 200.0), ("*", 10.0))) == []


def test_running_work_is_never_let_go_of_whatever_the_instance_costs() -> None:
    state = state_with_instance()
    launched(state)
    state.instances[instance_id(1)].price_usd_per_hour = 1e6
    assert gone(state, now=NOW + 1e6, linger_s=0.0) == []


@pytest.mark.parametrize("value", ["true", "", "yes", "please"])
def test_an_instance_that_is_to_be_kept_stays(value: str) -> None:
    assert gone(idle_for(1e6, **{"argosy.keep": value})) == []


@pytest.mark.parametrize("value", ["false", "False", "no", "0"])
def test_keep_false_is_no_reason_to_stay(value: str) -> None:
    assert gone(idle_for(1e6, **{"argosy.keep": value})) == [instance_id(1)]


def test_the_cheapest_idle_instances_are_the_least_number_that_is_kept() -> None:
    assert gone(idle_for(1e6, count=4), min_idle=2) == [instance_id(4), instance_id(3)]
    assert gone(idle_for(1e6, count=2), min_idle=2) == []


def test_instances_that_are_about_to_go_do_not_count_as_kept() -> None:
    state = idle_for(1e6, count=2)
    told(state, InterruptionWarned(instance_id(1), NOW))
    assert gone(state, min_idle=1) == [instance_id(1)]  # it goes at once; the other one is the one that is kept


def test_a_cluster_keeps_its_least_size_while_runs_are_open_and_no_longer() -> None:
    state = idle_for(1e6, count=3, state=state_with(submitted(tasks=0), prepared(), fleet(spot_target=3)))
    assert gone(state, min_instances=2) == [instance_id(3)]
    without_runs(state)
    assert len(gone(state, min_instances=2)) == 3


def test_nothing_of_a_type_goes_within_the_cool_down_after_more_of_it_was_ordered() -> None:
    state = idle_for(1e6)
    begun(state, [SetTarget(f"{CELL}/c5.xlarge/us-east-1a", 2, 0)])
    assert gone(state, now=NOW + 60) == []
    assert gone(state, now=NOW + 121) == [instance_id(1)]
    begun(state, [SetTarget(f"{CELL}/c5.xlarge/us-east-1a", 1, 0)], now=NOW + 121)  # lowering is no growth
    assert gone(state, now=NOW + 122) == [instance_id(1)]
