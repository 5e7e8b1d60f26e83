"""Schedules in local mode, through the command: the clock of this machine replaces EventBridge Scheduler."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from argosy.local.clients import LocalClients
from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws
from tests.fakes.signing import KEY
from tests.fakes.waiting import until

pytestmark = pytest.mark.e2e

SPEC = {"version": 1, "name": "tick", "run": ["python", "-c", "print(1)"], "result": "stdout", "array": {"size": 1}}
PATIENCE_S = 120.0
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "schedules.md"


def options(**fields: Any) -> LocalOptions:
    return LocalOptions(boot_s=0.2, tick_s=0.3, **fields)


@cache
def clients(endpoint: str) -> LocalClients:
    return LocalClients(endpoint, "us-east-1", KEY)


def ask(aws: LocalAws, action: str, **request: Any) -> dict[str, Any]:
    """As `aws lambda invoke` does."""
    payload = json.dumps({"action": action, **request}).encode()
    reply = clients(aws.endpoint_url)("lambda").invoke(FunctionName="argosy-api", Payload=payload)
    answer = json.loads(reply["Payload"].read())
    assert answer["statusCode"] == 200, answer
    return dict(answer["body"])


def in_a_moment(seconds: float = 15.0) -> str:
    return f"at({datetime.fromtimestamp(time.time() + seconds, UTC):%Y-%m-%dT%H:%M:%S})"


def verdicts(aws: LocalAws, name: str) -> list[str]:
    return [each["verdict"] for each in ask(aws, "DescribeSchedule", name=name)["fires"]]


def ended_well(aws: LocalAws, name: str) -> bool:
    fires = ask(aws, "DescribeSchedule", name=name)["fires"]
    return bool(fires) and ask(aws, "DescribeRun", runId=fires[0]["runId"])["status"] == "SUCCEEDED"


def test_a_schedule_fires_and_its_run_ends() -> None:
    with local_aws(options()) as aws:
        view = ask(aws, "CreateSchedule", name="once", expression=in_a_moment(), spec=SPEC)
        assert view["armed"]
        stored = clients(aws.endpoint_url)("scheduler").get_schedule(GroupName="argosy", Name="once")
        assert stored["Target"]["Arn"].endswith(":function:argosy-api")
        until(lambda: ended_well(aws, "once"), PATIENCE_S)
        assert verdicts(aws, "once") == ["ran"]
        ask(aws, "RunScheduleNow", name="once")
        assert verdicts(aws, "once") == ["ran", "ran"]
        ask(aws, "DeleteSchedule", name="once")
        assert ask(aws, "ListSchedules")["schedules"] == []


@pytest.mark.deep
def test_what_waits_starts_when_the_run_before_it_has_ended() -> None:
    slow = {**SPEC, "run": ["python", "-c", "import time; time.sleep(20)"]}
    with local_aws(options()) as aws:
        ask(aws, "CreateSchedule", name="queued", expression=in_a_moment(15), spec=slow, overlap="queue")
        ask(aws, "RunScheduleNow", name="queued")
        until(lambda: ask(aws, "DescribeSchedule", name="queued")["waiting"], PATIENCE_S)
        until(lambda: verdicts(aws, "queued").count("ran") == 2, PATIENCE_S)


def test_a_schedule_survives_a_restart_and_is_made_up_for(tmp_path: Path) -> None:
    with local_aws(options(keep=tmp_path)) as aws:
        ask(aws, "CreateSchedule", name="nightly", expression=in_a_moment(), spec=SPEC)
        ask(aws, "CreateSchedule", name="paused", expression="rate(1 minute)", spec=SPEC)
        ask(aws, "PauseSchedule", name="paused")
    until(lambda: True, 5)
    with local_aws(options(keep=tmp_path)) as aws:
        until(lambda: ended_well(aws, "nightly"), PATIENCE_S)
        assert verdicts(aws, "nightly") == ["ran"]
        assert ask(aws, "DescribeSchedule", name="paused")["state"] == "PAUSED"


@pytest.mark.deep
def test_every_command_of_the_page_works_as_it_is_typed(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    with local_aws(options()) as aws:
        for language, text in blocks:
            if language == "yaml":
                (tmp_path / "nightly.yaml").write_text(text)
                continue
            words = ["python", "-c", text] if language == "python" else text
            done = outcome_of(words, tmp_path, ARGOSY_ENDPOINT_URL=aws.endpoint_url)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        names = [each["name"] for each in ask(aws, "ListSchedules")["schedules"]]
    assert names == ["nightly"]
