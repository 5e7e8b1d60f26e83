"""When does the watchdog end the instances of a dead controller, and when does it do nothing?"""

# ruff: noqa: N803 - the fakes take boto3's own argument names

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.aws import cell_records, watchdog
from argosy.aws.shutdown import TEMPLATE_TAG
from tests.fakes.aws import refusal
from tests.fakes.ending import (
    NOW,
    FakeEc2,
    FakeTable,
    Unreachable,
    beaten_at,
    busy_ec2,
    never_beaten,
    target,
)


def look(table: FakeTable, **regions: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    records = cell_records.read(table, "t")
    assert records is not None
    answer = watchdog.look(watchdog.WatchTurn(NOW, "main", said.append), records.heartbeat, regions)
    return answer, said


def test_a_living_controller_is_left_in_peace() -> None:
    ec2 = busy_ec2()
    answer, said = look(beaten_at(NOW - watchdog.DEAD_AFTER_S), home=ec2)
    assert answer == {"acted": False, "silentSeconds": 3600}
    assert (said, ec2.calls) == ([], [])


def test_a_controller_that_is_between_two_invocations_is_left_in_peace() -> None:
    table = beaten_at(NOW - 60)
    del table.items["LEASE"]  # given back at the end of the time of the one before
    ec2 = busy_ec2()
    assert not look(table, home=ec2)[0]["acted"]
    assert ec2.calls == []


def test_before_the_first_tick_is_through_silence_counts_from_the_oldest_instance_of_any_cell() -> None:
    young, away = FakeEc2(templates={"lt-ours": "main"}), FakeEc2(templates={"lt-ours": "main"})
    ours = {"argosy:stage": "main", TEMPLATE_TAG: "lt-ours"}
    young.add_instance("i-1", age_s=600.0, **ours)
    young.add_instance("i-strange", age_s=1e6, **{"argosy:stage": "main"})  # whose age does not matter
    answer, _ = look(never_beaten(), home=young, away=away)
    assert answer == {"acted": False, "silentSeconds": 600}
    away.add_instance("i-2", age_s=watchdog.DEAD_AFTER_S + 1, **ours)
    assert look(never_beaten(), home=young, away=away)[0] == {"acted": True, "freed": 2}


def test_an_unreachable_cell_is_reported_when_nothing_old_is_seen_elsewhere() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=2)
    with pytest.raises(watchdog.WatchdogFailed, match="away: Could not connect"):
        look(never_beaten(), home=ec2, away=Unreachable())
    assert ec2.calls == []


@pytest.mark.parametrize("table", [beaten_at(NOW - watchdog.DEAD_AFTER_S - 1), never_beaten()], ids=["old", "never"])
def test_instances_of_a_dead_controller_are_ended_in_every_cell(table: FakeTable) -> None:
    home, away = busy_ec2(), busy_ec2()
    answer, said = look(table, home=home, away=away)
    assert answer == {"acted": True, "freed": 6}
    assert [record["region"] for record in said] == ["home", "away"]
    assert said[0]["InstancesFreedByWatchdog"] == 3
    assert said[0]["foreign"] == ["i-foreign"]


def test_at_rest_the_watchdog_finds_nothing_to_do_and_says_nothing() -> None:
    assert look(never_beaten(), home=FakeEc2()) == ({"acted": False, "silentSeconds": 0}, [])
    assert look(beaten_at(NOW - 1e6), home=FakeEc2()) == ({"acted": False, "freed": 0}, [])


def test_an_unreachable_cell_is_reported_after_the_others_were_freed() -> None:
    away = busy_ec2()
    with pytest.raises(watchdog.WatchdogFailed, match=r"home: Could not connect"):
        look(FakeTable(), home=Unreachable(), away=away)
    assert target(away, "fleet-1") == 0


def test_an_instance_that_cannot_be_terminated_is_reported() -> None:
    ec2 = busy_ec2()
    ec2.refuses = {"i-1"}
    with pytest.raises(watchdog.WatchdogFailed, match="i-1"):
        look(FakeTable(), home=ec2)


def look_at_cell(table: FakeTable, ec2: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    records = cell_records.read(table, "t")
    answer = watchdog.look_at_cell(watchdog.WatchTurn(NOW, "main", said.append), "eu-west-1", records, ec2)
    return answer, said


def test_a_cell_that_home_names_and_works_with_is_left_in_peace() -> None:
    ec2 = busy_ec2()
    assert not look_at_cell(beaten_at(NOW - 60).open("us-east-1", "eu-west-1"), ec2)[0]["acted"]
    assert ec2.calls == []


def closed() -> FakeTable:
    table = beaten_at(NOW - 60)
    table.close("eu-west-1", cell_records.LEFT_OUT)
    return table


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (FakeTable(gone=True), "the home Region's table is gone"),
        (beaten_at(NOW - 60).open("us-east-1"), "the home Region does not have this cell"),
        (closed(), f"the cell is closed: {cell_records.LEFT_OUT}"),
        (beaten_at(NOW - watchdog.DEAD_AFTER_S - 1).open("eu-west-1"), watchdog.DEAD),
    ],
    ids=["no-home", "unknown", "closed", "dead-controller"],
)
def test_an_orphaned_cell_is_freed_by_its_own_watchdog(table: FakeTable, why: str) -> None:
    ec2 = busy_ec2()
    answer, (said,) = look_at_cell(table, ec2)
    assert answer == {"acted": True, "freed": 3}
    assert (said["region"], said["message"]) == ("eu-west-1", why)
    assert target(ec2, "fleet-1") == 0


def test_a_table_that_cannot_be_read_proves_nothing() -> None:
    class Denied(FakeTable):
        def query(self, TableName: str, ConsistentRead: bool, **condition: Any) -> dict[str, Any]:
            raise refusal("AccessDeniedException")

    ec2 = busy_ec2()
    with pytest.raises(ClientError, match="AccessDenied"):
        look_at_cell(Denied(), ec2)
    assert ec2.calls == []
