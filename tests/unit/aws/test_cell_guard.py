"""A deployment that leaves a cell out: refused while something there costs money, and otherwise recorded."""

# ruff: noqa: N803 - the fakes take boto3's own argument names

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from argosy.aws import cell_guard, cell_records
from argosy.aws.cell_guard import CellInUse, Home, take_over
from tests.fakes.ending import FakeEc2, FakeTable, Unreachable, busy_ec2

HOME, AWAY, NOT_RECORDED = "us-east-1", "eu-west-1", "ap-southeast-2"


def home(table: FakeTable, away: Any) -> Home:
    """Only the cells that are left out are looked at."""
    return Home(stage="main", table="t", dynamodb=table, ec2={AWAY: away}.__getitem__)


def test_every_cell_that_the_deployment_names_is_recorded() -> None:
    table = FakeTable()
    take_over(home(table, FakeEc2()), [HOME, AWAY])
    assert table.cells() == {HOME: None, AWAY: None}


def test_a_cell_with_instances_or_targets_cannot_be_left_out_and_stays_open() -> None:
    table, ec2 = FakeTable().open(HOME, AWAY), busy_ec2()
    with pytest.raises(CellInUse) as refused:
        take_over(home(table, ec2), [HOME])
    assert "the settings no longer name the cell eu-west-1" in str(refused.value)
    assert "3 instances (i-1, i-2, i-orphan) and 1 fleet (fleet-1)" in str(refused.value)
    assert "make destroy-cell CELL=eu-west-1" in str(refused.value)
    assert table.cells() == {HOME: None, AWAY: None}
    assert ec2.calls == []


def test_a_target_alone_is_reason_enough_and_so_are_many_instances() -> None:
    ec2 = FakeEc2()
    ec2.add_fleet("fleet-1", target=1)
    with pytest.raises(CellInUse, match=r"0 instances and 1 fleet \(fleet-1\)"):
        take_over(home(FakeTable().open(AWAY), ec2), [HOME])
    many = FakeEc2(templates={"lt-ours": "main"})
    for number in range(4):
        many.add_instance(f"i-{number}", **{"argosy:stage": "main", "aws:ec2launchtemplate:id": "lt-ours"})
    with pytest.raises(CellInUse, match=r"4 instances \(i-0, i-1, i-2, \.\.\.\) and 0 fleets with"):
        take_over(home(FakeTable().open(AWAY), many), [HOME])


def test_an_empty_cell_may_be_left_out_and_is_closed_until_it_is_named_again() -> None:
    table = FakeTable().open(HOME, AWAY)
    take_over(home(table, FakeEc2()), [HOME])
    assert table.cells() == {HOME: None, AWAY: cell_records.LEFT_OUT}
    take_over(home(table, FakeEc2()), [HOME, AWAY])
    assert table.cells() == {HOME: None, AWAY: None}


def test_a_cell_that_was_never_recorded_is_known_from_the_template_before() -> None:
    with pytest.raises(CellInUse, match="eu-west-1"):
        take_over(home(FakeTable(), busy_ec2()), [HOME], before=[HOME, AWAY])


def test_what_a_controller_launches_between_the_looks_is_seen_and_the_cell_opened_again() -> None:
    class Racing(FakeEc2):
        """A target is raised after the first check."""

        looks = 0

        def describe_fleets(self, NextToken: str | None = None) -> dict[str, Any]:
            self.looks += 1
            if self.looks == 2:
                self.add_fleet("fleet-1", target=1)
            return super().describe_fleets(NextToken)

    table = FakeTable().open(HOME, AWAY)
    with pytest.raises(CellInUse):
        take_over(home(table, Racing()), [HOME])
    assert table.cells() == {HOME: None, AWAY: None}


def test_a_cell_that_cannot_be_checked_is_not_left_out() -> None:
    table = FakeTable().open(HOME, AWAY)
    with pytest.raises(EndpointConnectionError):
        take_over(home(table, Unreachable()), [HOME])
    assert table.cells() == {HOME: None, AWAY: None}


@pytest.mark.parametrize("named", [[HOME], [HOME, AWAY]])
def test_a_cell_whose_stack_is_destroyed_is_forgotten_or_waits_for_its_stack(named: list[str]) -> None:
    """The controller must not take it for open before its stack is there again: that opens it. Its Region may have been
    switched off since.
    """
    table = FakeTable().open(HOME)
    table.close(AWAY, cell_records.DESTROYED)
    take_over(home(table, Unreachable()), named, before=[HOME, AWAY])
    assert table.cells() == ({HOME: None} if AWAY not in named else {HOME: None, AWAY: cell_records.DESTROYED})


def test_the_documented_command_lets_a_deployment_leave_out_a_region_that_never_answers_again() -> None:
    document = (Path(__file__).parents[3] / "docs" / "guides" / "operations.md").read_text()
    (command,) = re.findall(r"^aws dynamodb put-item (?:.*\\\n)*.*$", document, re.MULTILINE)
    words = shlex.split(command.replace("\\\n", ""))[3:]
    request = dict(zip(words[::2], words[1::2], strict=True))
    assert request.keys() == {"--table-name", "--item"}  # botocore's PutItem: TableName, Item
    table = FakeTable().open(HOME, AWAY)
    table.put_item(TableName=request["--table-name"], Item=json.loads(request["--item"]))
    assert table.cells() == {HOME: None, AWAY: cell_records.DESTROYED}
    take_over(home(table, Unreachable()), [HOME], before=[HOME, AWAY])
    assert table.cells() == {HOME: None}


@pytest.mark.slow
def test_the_function_works_over_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_STAGE", "main")
    monkeypatch.setenv("ARGOSY_TABLE", "argosy-state")
    keys = {"pk": "HASH", "sk": "RANGE"}
    with mock_aws():
        dynamodb = boto3.client("dynamodb")
        dynamodb.create_table(
            TableName="argosy-state",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
            BillingMode="PAY_PER_REQUEST",
        )

        def told(request: str, cells: list[str], **more: Any) -> dict[str, Any]:
            event = {"RequestType": request, "ResourceProperties": {"Cells": cells}, **more}
            return cell_guard.on_event(event, None)

        assert told("Create", [HOME, AWAY]) == {"PhysicalResourceId": "cells-main"}
        before = {"OldResourceProperties": {"Cells": [HOME, AWAY]}, "PhysicalResourceId": "as-it-was"}
        assert told("Update", [HOME], **before) == {"PhysicalResourceId": "as-it-was"}
        records = cell_records.read(dynamodb, "argosy-state")
        assert told("Delete", [HOME])
        assert records == cell_records.read(dynamodb, "argosy-state")
        assert records is not None
        assert records.cells == {HOME: None, AWAY: cell_records.LEFT_OUT}
        told("Update", [HOME], OldResourceProperties={"Cells": [HOME, NOT_RECORDED]})  # by a version without records
        assert NOT_RECORDED in cell_records.read(dynamodb, "argosy-state").cells  # type: ignore[union-attr]
