"""What was charged of an instance that is forgotten is in the ledgers once, whether or not it is learned again."""

from __future__ import annotations

import pytest

from argosy.lifecycle.forgetting import charge_rest, forget, remember
from argosy.model.events import Observed
from argosy.model.instances import InstanceStatus
from argosy.model.state import State
from tests.builders import NOW, host, instance_id, state_with_instance, told


def with_charges() -> State:
    state = state_with_instance()
    instance = state.instances[instance_id(1)]
    instance.launched_at, instance.charged_s, instance.charged_boot_s = NOW - 3600, 1800.0, 60.0
    instance.price_usd_per_hour, instance.on_demand_usd_per_hour = 0.1, 0.3
    return state


def test_what_was_charged_counts_as_spent_until_the_instance_is_learned_again() -> None:
    state = with_charges()
    before = state.instances[instance_id(1)]
    forget(state, instance_id(1), NOW)
    assert (state.spent_usd, state.spent_on_demand_usd) == pytest.approx((0.05, 0.15))
    learned = before.__class__(before.id, before.cell, before.instance_type, before.zone, price_usd_per_hour=0.7)
    remember(state, learned)
    assert (state.spent_usd, state.spent_on_demand_usd) == pytest.approx((0.0, 0.0))
    assert (learned.charged_s, learned.charged_boot_s, learned.price_usd_per_hour) == (1800.0, 60.0, 0.1)
    assert not state.forgotten


def test_of_one_that_is_gone_the_rest_is_charged_to_nobody_and_one_that_is_settled_costs_nothing_more() -> None:
    state = with_charges()
    gone = state.instances[instance_id(1)]
    gone.status, gone.stopped_at, gone.losing = InstanceStatus.GONE, NOW, True
    forget(state, gone.id, NOW)
    assert (state.unattributed.total, state.spent_usd) == (pytest.approx(0.05), 0.0)
    state.instances[gone.id] = gone
    gone.losing = False
    forget(state, gone.id, NOW)
    forget(state, "i-never-known", NOW)
    assert state.unattributed.total == pytest.approx(0.05)
    assert not state.forgotten


def test_of_one_that_is_ended_unseen_its_time_so_far_is_spent_for_nobody_and_once() -> None:
    state = with_charges()
    forget(state, instance_id(1), NOW)
    for _ in range(2):
        charge_rest(state, instance_id(1), NOW - 3600, NOW)
        assert (state.spent_usd, state.spent_on_demand_usd) == pytest.approx((0.1, 0.3))
        assert state.unattributed.total == pytest.approx(0.05)
    charge_rest(state, "i-never-known", NOW - 3600, NOW)
    assert state.spent_usd == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("sweep", "stays"),
    [
        (Observed(NOW), False),
        (Observed(NOW, hosts_complete=False), True),
        (Observed(NOW, hosts=(host(1, state="terminated"),)), True),
        (Observed(NOW, left_out=frozenset({instance_id(1)})), True),
    ],
)
def test_what_is_known_of_its_money_goes_once_a_complete_listing_does_not_show_it(sweep: Observed, stays: bool) -> None:
    state = with_charges()
    forget(state, instance_id(1), NOW)
    told(state, sweep)
    assert (instance_id(1) in state.forgotten) is stays
