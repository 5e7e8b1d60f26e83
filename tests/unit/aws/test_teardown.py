"""What does a stack's deletion end, in which order, and when is it complete?"""

# ruff: noqa: N803 - the fakes take boto3's own argument names

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.aws import cell_records, teardown
from argosy.aws.shutdown import ec2_client
from tests.fakes.aws import refusal
from tests.fakes.ending import (
    NOW,
    FakeEc2,
    FakeEcs,
    FakeEvents,
    FakeS3,
    FakeTable,
    Regions,
    Unreachable,
    away,
    busy_ec2,
    cell,
    deleting,
    target,
)


def done(
    there: teardown.DeployedCell, now: float, *, deadline: float = 1.0, clock: Callable[[], float] = lambda: 0.0
) -> bool:
    return teardown.answer(deleting(), there, now, deadline=deadline, clock=clock)["IsComplete"]


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_creating_and_updating_touch_nothing(request_type: str) -> None:
    there, event = cell(), {"RequestType": request_type}
    assert teardown.begin(event, there, NOW) == {"PhysicalResourceId": "teardown-main-us-east-1"}
    assert teardown.complete(event, there, NOW, deadline=0.0, clock=lambda: 0.0)
    assert (there.dynamodb.items, there.events.disabled, there.ec2("us-east-1").calls) == ({}, [], [])


def test_deleting_throws_the_kill_switch_and_turns_the_tick_off() -> None:
    there = cell()
    answer = teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert answer == {"PhysicalResourceId": "teardown-main-us-east-1", "Data": {"KilledAt": str(NOW)}}
    assert "destroyed" in there.dynamodb.items["KILL"]["reason"]["S"]
    assert there.events.disabled == ["argosy-tick"]


def test_a_table_and_a_rule_that_are_gone_already_do_not_stop_it() -> None:
    there = cell(dynamodb=FakeTable(gone=True), events=FakeEvents(gone=True))
    assert "Data" in teardown.begin({"RequestType": "Delete"}, there, NOW)


def test_another_fault_of_aws_fails_the_deletion_at_its_start() -> None:
    class Refusing(FakeEvents):
        def disable_rule(self, Name: str) -> None:
            raise refusal("AccessDeniedException")

    with pytest.raises(ClientError, match="AccessDenied"):
        teardown.begin({"RequestType": "Delete"}, cell(events=Refusing()), NOW)


def test_it_is_through_only_when_nothing_is_left_and_the_controller_had_time_to_notice() -> None:
    there = cell(ecs=FakeEcs(["arn:1", "arn:2"]))
    assert not done(there, NOW)
    there.ec2("us-east-1").settle()
    assert there.ecs.registered == []
    assert not done(there, NOW + teardown.QUIET_S - 1)
    there.ec2("us-east-1").fleets["fleet-1"]["TargetCapacitySpecification"] = {
        "TotalTargetCapacity": 1
    }  # a late controller
    assert not done(there, NOW + teardown.QUIET_S)
    assert target(there.ec2("us-east-1"), "fleet-1") == 0
    assert done(there, NOW + teardown.QUIET_S)


def test_a_registered_container_instance_holds_it_up_for_one_more_look() -> None:
    there = cell(ec2=Regions(FakeEc2()), ecs=FakeEcs(["arn:1"]))
    assert not done(there, NOW + teardown.QUIET_S)
    assert done(there, NOW + teardown.QUIET_S)


def test_a_problem_is_printed_and_holds_it_up(capsys: pytest.CaptureFixture[str]) -> None:
    ec2 = busy_ec2()
    ec2.refuses = {"i-1"}
    assert not done(cell(ec2=Regions(ec2)), NOW + teardown.QUIET_S)
    assert "i-1" in capsys.readouterr().out


def test_a_cluster_that_is_gone_is_empty() -> None:
    there = cell(ec2=Regions(FakeEc2()), ecs=FakeEcs(error=refusal("ClusterNotFoundException")))
    assert done(there, NOW + teardown.QUIET_S)


@pytest.mark.parametrize(
    ("fault", "said"),
    [({"ec2": Regions(Unreachable())}, "us-east-1 cannot be"), ({"ecs": FakeEcs(error=refusal("Down"))}, "not yet")],
    ids=["ec2", "ecs"],
)
def test_a_fault_of_aws_means_not_yet(fault: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The provider framework takes an exception for the end of the deletion."""
    assert not done(cell(**{"ec2": Regions(FakeEc2()), **fault}), NOW + teardown.QUIET_S)
    assert said in capsys.readouterr().out


def test_a_bucket_that_goes_too_is_emptied_page_by_page() -> None:
    there = cell(ec2=Regions(FakeEc2()), empty_bucket="results", s3=FakeS3(["a", "b", "c"]))
    assert done(there, NOW + teardown.QUIET_S)
    assert there.s3.keys == []


def test_emptying_stops_before_the_functions_time_limit_and_continues_next_time() -> None:
    ticks = iter([0.0, 2.0])
    there = cell(ec2=Regions(FakeEc2()), empty_bucket="results", s3=FakeS3(["a", "b", "c"]))
    assert not done(there, NOW + teardown.QUIET_S, clock=lambda: next(ticks))
    assert there.s3.keys == ["c"]
    assert done(there, NOW + teardown.QUIET_S)


def test_a_bucket_that_is_gone_is_empty() -> None:
    assert done(cell(ec2=Regions(FakeEc2()), empty_bucket="results", s3=FakeS3(gone=True)), NOW + teardown.QUIET_S)


def test_a_further_cell_closes_itself_alone_and_stays_closed_when_it_is_through() -> None:
    there = away(FakeTable().open("us-east-1", "eu-west-1"), busy_ec2())
    teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert there.dynamodb.cells() == {"us-east-1": None, "eu-west-1": there.reason}
    assert not done(there, NOW + teardown.QUIET_S)
    there.ec2("eu-west-1").settle()
    assert done(there, NOW + teardown.QUIET_S)
    assert there.dynamodb.cells() == {"us-east-1": None, "eu-west-1": cell_records.DESTROYED}
    assert "KILL" not in there.dynamodb.items  # a cell that cannot be emptied must not stop the others
    assert there.events.disabled == []


def test_a_cell_that_is_created_again_is_opened() -> None:
    table = FakeTable()
    table.close("eu-west-1", cell_records.DESTROYED)
    teardown.begin({"RequestType": "Create"}, away(table), NOW)
    assert table.cells() == {"eu-west-1": None}
    table.close("eu-west-1", cell_records.LEFT_OUT)
    teardown.begin({"RequestType": "Update"}, away(table), NOW)
    assert table.cells() == {"eu-west-1": cell_records.LEFT_OUT}


def test_the_end_of_home_frees_every_recorded_cell_too() -> None:
    """Nothing would manage their fleets any more: the table and the controller go next."""
    left_out = busy_ec2()
    there = cell(dynamodb=FakeTable().open("us-east-1"), ec2=Regions(FakeEc2(), eu_west_1=left_out))
    there.dynamodb.close("eu-west-1", cell_records.LEFT_OUT)
    assert not done(there, NOW + teardown.QUIET_S)
    assert target(left_out, "fleet-1") == 0
    left_out.settle()
    assert done(there, NOW + teardown.QUIET_S)


def test_a_region_that_is_out_of_reach_keeps_no_other_from_being_freed(capsys: pytest.CaptureFixture[str]) -> None:
    """It comes first in the alphabet, and after home in the records."""
    home, last = busy_ec2(), busy_ec2()
    there = cell(
        dynamodb=FakeTable().open("us-east-1", "ap-east-1", "eu-west-1"),
        ec2=Regions(home, ap_east_1=Unreachable(), eu_west_1=last),
        ecs=FakeEcs(["arn:1"]),
    )
    assert not done(there, NOW + teardown.QUIET_S)
    assert (target(home, "fleet-1"), target(last, "fleet-1"), there.ecs.registered) == (0, 0, [])
    home.settle()
    last.settle()
    assert not done(there, NOW + teardown.QUIET_S)  # what runs out there would go on forever
    assert "ap-east-1 cannot be checked" in capsys.readouterr().out
    there.dynamodb.close("ap-east-1", cell_records.DESTROYED)
    assert done(there, NOW + teardown.QUIET_S)


def test_what_a_destroyed_cell_still_has_is_freed_while_its_region_answers() -> None:
    left = busy_ec2()
    there = cell(ec2=Regions(FakeEc2(), eu_west_1=left))
    there.dynamodb.close("eu-west-1", cell_records.DESTROYED)
    assert not done(there, NOW + teardown.QUIET_S)
    assert target(left, "fleet-1") == 0


def test_a_region_that_does_not_answer_leaves_the_functions_time_for_the_others() -> None:
    """The watchdog and the guard have 300 s. botocore waits at most 20 s between two attempts."""
    config = ec2_client("eu-west-1").meta.config
    assert config.retries["total_max_attempts"] * config.connect_timeout + 2 * 20 < 300 / 4
    assert config.retries["total_max_attempts"] * config.read_timeout + 2 * 20 < 300 / 2


def test_the_resources_id_is_kept_whatever_it_was() -> None:
    """The provider framework refuses another one on Delete."""
    event = {"RequestType": "Delete", "PhysicalResourceId": "made-otherwise"}
    assert teardown.begin(event, cell(), NOW)["PhysicalResourceId"] == "made-otherwise"


def test_without_homes_table_a_cell_is_still_torn_down() -> None:
    there = away(FakeTable(gone=True))
    assert "Data" in teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert done(there, NOW + teardown.QUIET_S)


def test_a_fault_while_the_end_is_recorded_means_not_yet() -> None:
    class Throttled(FakeTable):
        def put_item(self, TableName: str, Item: Any) -> None:
            raise refusal("ThrottlingException")

    assert not done(away(Throttled()), NOW + teardown.QUIET_S)


def test_home_keeps_the_switch() -> None:
    there = cell(ec2=Regions(FakeEc2()))
    teardown.begin({"RequestType": "Delete"}, there, NOW)
    assert done(there, NOW + teardown.QUIET_S)
    assert "KILL" in there.dynamodb.items
