"""`interrupt`: on AWS by an experiment, and refusals; tests/e2e/test_checkpoints.py interrupts in local mode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.client.aws_clients import Connection
from argosy.client.local_requests import LocalRequestRefused, local_reply
from tests.fakes.cli import DEPLOYMENT, RUN_ID, World, run_view, task_row
from tests.fakes.fis import Fis

TASK = "arn:aws:ecs:eu-west-1:123456789012:task/argosy/f00"
ROWS = [
    task_row(0, status="PENDING", instance=None),
    task_row(1, status="RUNNING", instance="i-0busy", taskArn=TASK),
    task_row(2, status="RUNNING", instance="i-0busy", taskArn=TASK),
]


def world(fis: Fis, **allowed: Any) -> World:
    made = World().answers("DescribeRun", run_view(taskList=ROWS, nextToken=None))
    made.parameters.values["/argosy/deployment"] = json.dumps({**DEPLOYMENT, "allowInterrupt": True, **allowed})
    made.others["fis"] = fis
    return made


def test_on_aws_an_experiment_sends_the_notice_to_the_instance_of_a_running_task() -> None:
    fis = Fis("initiating", "pending", "running")
    assert world(fis).document("interrupt", RUN_ID) == {
        "runId": RUN_ID, "instance": "i-0busy", "noticeSeconds": 120.0, "tasks": [1, 2],
    }  # fmt: skip
    assert [name for name, _ in fis.calls] == [
        "CreateExperimentTemplate", "StartExperiment", "GetExperiment", "GetExperiment", "DeleteExperimentTemplate",
    ]  # fmt: skip
    asked = fis.calls[0][1]
    assert asked["roleArn"] == "arn:aws:iam::123456789012:role/argosy-interrupt"
    assert asked["targets"]["one"]["resourceArns"] == ["arn:aws:ec2:eu-west-1:123456789012:instance/i-0busy"]
    assert [each["tags"] for _, each in fis.calls[:2]] == [{"argosy:stage": "main"}] * 2


def test_an_experiment_that_fails_says_why_and_leaves_no_template() -> None:
    fis = Fis("initiating", "failed")
    result = world(fis).argosy("interrupt", RUN_ID)
    assert result.exit_code == 3
    assert "i-0busy was not interrupted: Target resolution returned empty set." in " ".join(result.stderr.split())
    assert fis.calls[-1] == ("DeleteExperimentTemplate", {"id": "EXT1"})


def test_on_aws_the_owner_has_to_allow_it_and_the_notice_has_its_length() -> None:
    result = world(Fis(), allowInterrupt=False).argosy("interrupt", RUN_ID)
    assert result.exit_code == 2
    assert "deploy with allowInterrupt set to true" in result.stderr
    result = world(Fis()).argosy("interrupt", RUN_ID, "--warn", "5")
    assert "an instance ends 120 s after its notice" in " ".join(result.stderr.split())


def test_where_no_local_mode_answers_that_is_said() -> None:
    with pytest.raises(LocalRequestRefused, match=r"no local mode answers at http://127\.0\.0\.1:9: "):
        local_reply(Connection(endpoint_url="http://127.0.0.1:9"), "interrupt", {"instanceId": "i-1"})
