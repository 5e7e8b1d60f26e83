"""Ending all of our resources, against small fakes of EC2: those that end, and those that survive."""

from __future__ import annotations

import pytest

from argosy.aws.shutdown import free
from tests.fakes.ending import (
    FakeEc2,
    busy_ec2,
    target,
)


def test_ours_are_ended_and_strangers_survive() -> None:
    ec2 = busy_ec2()
    result = free(ec2, "main")
    assert sorted(result.terminated) == ["i-1", "i-2", "i-orphan"]
    assert result.foreign == ["i-foreign"]
    assert (target(ec2, "fleet-1"), target(ec2, "fleet-dev")) == (0, 5)
    assert ec2.instances["i-dev"]["State"]["Name"] == "running"


def test_the_fleets_are_lowered_before_anything_is_ended_or_they_would_refill() -> None:
    ec2 = busy_ec2()
    free(ec2, "main")
    assert ec2.calls[0] == "modify fleet-1"
    assert ec2.calls[1].startswith("terminate")


def test_the_next_pass_is_clean_once_all_are_gone() -> None:
    ec2 = busy_ec2()
    assert not free(ec2, "main").clean
    assert not free(ec2, "main").clean  # still shutting down
    ec2.settle()
    assert free(ec2, "main").clean


def test_one_fleet_and_one_instance_that_refuse_do_not_save_the_others() -> None:
    ec2 = busy_ec2()
    ec2.refuses = {"fleet-1", "i-1"}
    result = free(ec2, "main")
    assert sorted(result.terminated) == ["i-2", "i-orphan"]
    assert len(result.problems) == 2
    assert not result.clean


def test_the_fleet_of_an_earlier_version_that_has_an_on_demand_target_is_lowered_too() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=3)
    ec2.fleets["fleet-1"]["TargetCapacitySpecification"]["OnDemandTargetCapacity"] = 3
    assert free(ec2, "main").lowered == ["fleet-1"]
    assert target(ec2, "fleet-1") == 0


@pytest.mark.parametrize("state", ["submitted", "active", "modifying"])
def test_a_fleet_that_can_launch_is_lowered_even_while_it_is_being_changed(state: str) -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=3, state=state)
    free(ec2, "main")
    assert target(ec2, "fleet-1") == 0


def test_a_fleet_that_is_left_to_settle_is_not_lowered_and_holds_up_the_end() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=3, state="modifying")
    ec2.add_fleet("fleet-2", target=3)
    result = free(ec2, "main", settle=True)
    assert (result.settling, result.lowered) == (["fleet-1"], ["fleet-2"])
    assert (target(ec2, "fleet-1"), target(ec2, "fleet-2")) == (3, 0)
    ec2.fleets.pop("fleet-2")
    assert not free(ec2, "main", settle=True).clean


def test_a_deleted_fleet_is_left_alone() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=3, state="deleted_running")
    assert free(ec2, "main").clean
    assert ec2.calls == []
