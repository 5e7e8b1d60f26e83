"""The price at which an instance is booked: EC2's at its launch, with its disk and its address."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import POLICY, fleet, host, instance_id, state_with, told


def test_an_instance_notes_what_its_disk_and_address_cost_when_it_is_met() -> None:
    """A later price list or setting does not affect running instances."""
    policy = replace(POLICY, disk_gib_by_type=(("c5.*", 730),))
    state = state_with(fleet(spot_target=1, spot_usd_per_hour=0.06))
    told(state, host(1), policy=policy)
    told(state, host(1, state="running"), policy=POLICY)
    met = state.instances[instance_id(1)]
    assert (met.disk_usd_per_hour, met.address_usd_per_hour) == (pytest.approx(0.08), 0.005)
    assert met.price_usd_per_hour == pytest.approx(0.06 + 0.085)
    assert met.on_demand_usd_per_hour == pytest.approx(0.17 + 0.085)
    private = state_with(fleet(spot_target=1, spot_usd_per_hour=0.06))
    told(private, host(1), policy=replace(policy, public_addresses=False))
    assert private.instances[instance_id(1)].price_usd_per_hour == pytest.approx(0.06 + 0.08)


def test_an_instance_of_an_unknown_type_costs_only_its_address() -> None:
    state = state_with(fleet())
    told(state, host(1, "z9.large"))
    met = state.instances[instance_id(1)]
    assert (met.disk_usd_per_hour, met.price_usd_per_hour) == (0, met.address_usd_per_hour)
