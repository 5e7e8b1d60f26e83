"""How large is the cluster kept, and which instances may go?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.market.floors import LeastSize, beyond, least_sizes, missing
from argosy.market.release import releasable
from argosy.model.events import ClusterScaled, InterruptionWarned, RebalanceAdvised
from argosy.model.inbox import ScaleRequest
from argosy.model.state import State
from tests.builders import (
    NOW,
    POLICY,
    container_instance,
    fleet,
    host,
    instance_id,
    moment_of,
    prepared,
    state_with,
    submitted,
    told,
)

SPEC_TYPES = ("c5.xlarge", "m5.xlarge")


def idle(*types: str, scaled: ScaleRequest | None = None) -> State:
    """One instance of each, idle for long, the first the cheapest."""
    state = state_with(fleet(spot_target=len(types)))
    for number, kind in enumerate(types, 1):
        told(state, host(number, instance_type=kind), container_instance(number, registered_at=NOW - 1e6))
        state.instances[instance_id(number)].price_usd_per_hour = 0.01 * number
    return told(state, ClusterScaled(scaled)) if scaled else state


def gone(state: State, **policy: Any) -> list[str]:
    return [each.id for each in releasable(moment_of(state, NOW, replace(POLICY, **policy)), ())]


def test_the_dearest_go_until_as_many_are_left_as_are_wanted() -> None:
    state = idle(*["c5.xlarge"] * 4, scaled=ScaleRequest(NOW, 3))
    assert gone(state) == [instance_id(4)]
    assert len(gone(told(state, ClusterScaled(ScaleRequest(NOW, 0))))) == 4


def test_instances_of_other_types_are_not_kept_by_a_wish_that_names_types() -> None:
    state = idle("c5.xlarge", "m5.xlarge", "m5.xlarge", scaled=ScaleRequest(NOW, 1, ("c5.xlarge",)))
    assert gone(state) == [instance_id(3), instance_id(2)]


def test_what_is_idle_for_the_setting_counts_towards_the_wish() -> None:
    state = idle(*["c5.xlarge"] * 4, scaled=ScaleRequest(NOW, 2))
    assert gone(state, min_idle=2) == [instance_id(4), instance_id(3)]
    assert gone(state, min_idle=3) == [instance_id(4)]


def test_an_instance_that_is_about_to_go_is_none_of_those_that_are_kept() -> None:
    state = idle(*["c5.xlarge"] * 3, scaled=ScaleRequest(NOW, 2))
    told(state, InterruptionWarned(instance_id(1), NOW), RebalanceAdvised(instance_id(2), NOW))
    (least,) = least_sizes(moment_of(state))
    assert missing(moment_of(state), least) == 1
    assert instance_id(3) not in gone(state)


def test_the_setting_counts_while_runs_are_open_and_the_wish_always() -> None:
    state = idle("c5.xlarge", scaled=ScaleRequest(NOW, 3, SPEC_TYPES))
    policy = replace(POLICY, min_instances=2)
    wish = LeastSize(3, SPEC_TYPES)
    assert least_sizes(moment_of(state, NOW, policy)) == [wish]
    told(state, submitted(tasks=1), prepared())
    assert least_sizes(moment_of(state, NOW, policy)) == [LeastSize(2, for_work=True), wish]
    assert not list(beyond(moment_of(state, NOW, policy), state.instances.values()))
