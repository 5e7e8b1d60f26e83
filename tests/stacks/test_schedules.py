"""The needs of schedules at AWS: a group, a role that may call one function, and rights of the api on that group
only."""

from __future__ import annotations

import json

import pytest

from tests.stacks.templates import Template

pytestmark = pytest.mark.stacks


def test_there_is_one_group_named_like_the_deployment(home: Template) -> None:
    [group] = home.of_type("AWS::Scheduler::ScheduleGroup").values()
    assert group["Name"] == "argosy"


def test_the_role_of_schedules_may_invoke_the_api_and_nothing_else(home: Template) -> None:
    role = home.named("AWS::IAM::Role", "RoleName", "argosy-schedules")
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert "schedule-group/argosy" in json.dumps(trust["Condition"]["StringEquals"]["aws:SourceArn"])
    assert trust["Condition"]["StringEquals"]["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
    [statement] = [each for each in home.statements() if "SchedulesRole" in json.dumps(each.policy)]
    assert list(statement.actions) == ["lambda:InvokeFunction"]
    assert json.dumps(statement.resources).endswith('function:argosy-api"]]}]') or "function:argosy-api" in json.dumps(
        statement.resources
    )


def test_the_api_may_write_schedules_of_its_group_only_and_pass_that_role_only(home: Template) -> None:
    statements = home.role_statements(home.function_role("argosy-api"))
    [schedules] = [each for each in statements if any(action.startswith("scheduler:") for action in each.actions)]
    assert sorted(schedules.actions) == [
        "scheduler:CreateSchedule",
        "scheduler:DeleteSchedule",
        "scheduler:UpdateSchedule",
    ]
    assert "schedule/argosy/*" in json.dumps(schedules.resources)
    [passes] = [each for each in statements if "iam:PassRole" in each.actions]
    assert "role/argosy-schedules" in json.dumps(passes.resources)
    assert passes.conditions["StringEquals"] == {"iam:PassedToService": "scheduler.amazonaws.com"}


def test_the_end_of_a_run_releases_what_waits_for_it(home: Template) -> None:
    rule = home.named("AWS::Events::Rule", "Name", "argosy-ends-of-runs")
    assert rule["EventPattern"] == {"source": ["argosy"], "detail-type": ["Run State Change"]}
    [target] = rule["Targets"]
    assert json.loads(target["InputTransformer"]["InputTemplate"].replace("<detail-runId>", '"r"')) == {
        "action": "ReleaseSchedules",
        "runId": "r",
    }
    assert target["InputTransformer"]["InputPathsMap"] == {"detail-runId": "$.detail.runId"}


def test_an_unattended_request_that_fails_is_tried_again_and_then_a_dead_letter(home: Template) -> None:
    [config] = [
        each
        for each in home.of_type("AWS::Lambda::EventInvokeConfig").values()
        if "ApiFunction" in json.dumps(each["FunctionName"])
    ]
    assert config["MaximumRetryAttempts"] == 2
    assert "OnFailure" in config["DestinationConfig"]
