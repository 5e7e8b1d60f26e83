"""Are the events of ECS and EC2 as AWS publishes them, and do we read AWS's samples correctly?

`tests/data/eventbridge.json` has the members and types of each kind of event, a sample of each, and the agent's words,
with their sources.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session

from argosy.lifecycle.accounts import HOST_CODES, Account, account_for
from argosy.messages.eventbridge import MESSAGE_KINDS, to_event
from argosy.messages.fleet_faults import OBSTACLES
from argosy.model.attempts import StopCause
from argosy.model.events import TaskSeen
from tests.fakes.worlds import grown, run, world
from tests.harness.simulation.world.virtual_task import TaskBehaviour

JSON = dict[str, Any]
PUBLISHED: JSON = json.loads((Path(__file__).parents[1] / "data" / "eventbridge.json").read_text())
KINDS, AGENT = PUBLISHED["kinds"], PUBLISHED["agentErrors"]
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "list": list, "object": dict}


def faults(where: str, values: JSON, published: JSON) -> list[str]:
    """Members that AWS's events do not have, and those of another type."""
    unknown = [f"{where}: {name} is not there" for name in values.keys() - published.keys()]
    wrong = [
        f"{where}: {name} is {value!r}, not a {published[name]}"
        for name, value in values.items()
        if name in published and not is_a(published[name], value)
    ]
    return unknown + wrong


def is_a(kind: str, value: Any) -> bool:
    if kind == "time":
        return isinstance(value, str) and value.endswith("Z") and bool(datetime.fromisoformat(value))
    if kind.endswith(" or null"):
        return value is None or is_a(kind.removesuffix(" or null"), value)
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def faults_of(message: JSON) -> list[str]:
    kind = message["detail-type"]
    published, detail = KINDS[kind], message["detail"]
    found = faults(kind, message, PUBLISHED["envelope"]) + faults(kind, detail, published["detail"])
    found += [f"{kind}: {name} is missing" for name in PUBLISHED["envelope"].keys() - message.keys()]
    for name, members in published.get("members", {}).items():
        for each in detail.get(name, ()):
            found += faults(f"{kind}: {name}", each, members)
    if message["source"] != published["source"] or published["resource"] not in message["resources"][0]:
        found.append(f"{kind}: {message['source']} {message['resources']}")
    return found


@pytest.mark.parametrize("sample", PUBLISHED["samples"], ids=lambda sample: sample["message"]["detail-type"])
def test_a_sample_is_read_as_what_it_says(sample: JSON) -> None:
    assert faults_of(sample["message"]) == []
    event = to_event(sample["message"])
    assert (type(event).__name__ if event else None) == sample["event"]
    if event is not None:
        said = json.loads(json.dumps(asdict(event)))  # type: ignore[call-overload]
        assert {name: said[name] for name in sample["says"]} == sample["says"]


def test_every_kind_that_we_listen_to_has_a_sample() -> None:
    sampled = {(each["message"]["source"], each["message"]["detail-type"]) for each in PUBLISHED["samples"]}
    assert {(kind.source, kind.detail_type) for kind in MESSAGE_KINDS} <= sampled


def test_what_the_emulator_sends_has_members_and_types_of_awss_events_only() -> None:
    """A cluster's life: orders that fail, tasks that end in each way, an interruption, a host that is lost."""
    made = world(TaskBehaviour(duration_s=30.0, exit_code=3))
    made.ec2.set_shortage("c5.large/us-east-1a", 0)
    made.add_fleet("c5.large", "us-east-1a", spot=1)
    first, *_ = grown(made, "p3.2xlarge")
    run(made, "gpu", startedBy="plan-1")
    made.run_for(120)
    ending = run(made)
    made.run_for(5)
    made.ecs_client().stop_task(cluster=made.cluster, task=ending, reason="cancelled")
    made.ecs.check_health(first["containerInstanceArn"], "CONTAINER_RUNTIME", "IMPAIRED", "Docker does not answer")
    made.ec2.recommend_rebalance(first["ec2InstanceId"])
    made.interrupt(first["ec2InstanceId"])
    made.run_for(600)
    assert {each["detail-type"] for each in made.events} >= KINDS.keys() - {
        "EC2 Fleet Information",
        "EC2 Capacity Reservation Instance Interruption Warning",  # tests/unit/emulator/ec2/test_reservations.py
    }
    assert sorted({fault for message in made.events for fault in faults_of(message)}) == []


def test_the_sub_types_of_fleets_are_awss_and_those_that_block_a_launch_are_reported() -> None:
    published = {name for names in PUBLISHED["fleetSubTypes"].values() for name in names}
    assert published - {"registerWithLoadBalancersFailed"} == OBSTACLES  # ours have none


def stopped(code: str, reason: str = "", exit_code: int | None = None) -> TaskSeen:
    detail = {"taskArn": "arn:aws:ecs:us-east-1:123456789012:task/one/7", "lastStatus": "STOPPED", "stopCode": code}
    container = {"name": "main", "lastStatus": "STOPPED", "reason": reason}
    container |= {} if exit_code is None else {"exitCode": exit_code}  # type: ignore[dict-item]
    message = {
        "source": "aws.ecs",
        "detail-type": "ECS Task State Change",
        "detail": {**detail, "containers": [container]},
    }
    seen = to_event(message)
    assert isinstance(seen, TaskSeen)
    return seen


def test_every_stop_code_of_ecs_is_charged_to_the_right_party() -> None:
    """An exit code of 1 is the user's, unless ECS says that the host ended."""
    codes = set(get_session().get_service_model("ecs").shape_for("TaskStopCode").enum)
    charged = {code: account_for(stopped(code, exit_code=1), StopCause.NONE, None) for code in codes}
    assert {code for code, account in charged.items() if account is Account.LOST} == HOST_CODES
    assert {account for code, account in charged.items() if code not in HOST_CODES} == {Account.USER}


@pytest.mark.parametrize("name", AGENT["neverStarted"])
def test_what_the_agent_says_of_a_container_that_can_never_start_is_no_users_attempt_and_rarely_heals(
    name: str,
) -> None:
    assert account_for(stopped("TaskFailedToStart", f"{name}: no"), StopCause.NONE, None) is Account.START


@pytest.mark.parametrize("name", AGENT["passing"])
def test_what_the_agent_says_of_a_docker_that_is_in_trouble_is_a_loss(name: str) -> None:
    assert account_for(stopped("TaskFailedToStart", f"{name}: no"), StopCause.NONE, None) is Account.LOST


def test_a_container_that_ran_out_of_memory_is_the_users() -> None:
    seen = stopped("EssentialContainerExited", AGENT["outOfMemory"], exit_code=137)
    assert account_for(seen, StopCause.NONE, None) is Account.USER
    assert seen.container_reason == AGENT["outOfMemory"]
