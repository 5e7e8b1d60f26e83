"""Do the templates' rules match what local mode and the simulation take them to match, by AWS's own rule engine?

The engine is event-ruler, which EventBridge is built on; `make test-engines` fetches it where Maven and Java are there.
The events are AWS's samples, those of an emulated cluster's life, and each of them with one member changed.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.messages.eventbridge import MESSAGE_KINDS, to_event
from argosy.messages.urgent import URGENT_KINDS
from tests.fakes.worlds import grown, run, world
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.stacks.templates import Template, text

JSON = dict[str, Any]
ENGINE = Path(__file__).parents[1] / "evaluators/event_rules"
JARS = ENGINE.parents[2] / "build/event-rules"
PUBLISHED = json.loads((ENGINE.parents[1] / "data/eventbridge.json").read_text())
REAL = {"<Partition>": "aws", "<Region>": "us-east-1", "<AccountId>": "123456789012"}
CLUSTER = "arn:aws:ecs:us-east-1:123456789012:cluster/argosy"
QUEUED = {kind.rule: (kind.source, kind.detail_type) for kind in MESSAGE_KINDS}
OTHERS: tuple[Any, ...] = ("", "x", 7, None, "env:web", "STOPPED", "terminated", ["STOPPED", "x"], "arn:aws:ecs:other")

pytestmark = [
    pytest.mark.stacks,
    pytest.mark.engine,
    pytest.mark.skipif(
        not (shutil.which("java") and (JARS / ".installed").exists()), reason="there is no event-ruler: needs mvn, java"
    ),
]


def resolved(value: Any) -> Any:
    """A pattern of a template with the deployment's account and Region."""
    if isinstance(value, dict) and set(value) <= {"Ref", "Fn::Join", "Fn::GetAtt", "Fn::Sub"}:
        return functools.reduce(lambda found, name: found.replace(name, REAL[name]), REAL, text(value))
    if isinstance(value, dict):
        return {name: resolved(each) for name, each in value.items()}
    return [resolved(each) for each in value] if isinstance(value, list) else value


def rules_of(template: Template) -> dict[str, JSON]:
    """Name without the deployment's prefix -> pattern, of every rule that has one."""
    rules = template.of_type("AWS::Events::Rule").values()
    return {
        rule["Name"].removeprefix("argosy-"): resolved(rule["EventPattern"]) for rule in rules if "EventPattern" in rule
    }


def matching(rules: dict[str, JSON], events: list[JSON]) -> list[list[str]]:
    """The names of the rules that event-ruler finds for each event. A pattern that it does not take makes it fail."""
    command = ["java", "-cp", f"{JARS}{os.sep}*", str(ENGINE / "Matches.java")]
    asked = "\n".join(json.dumps(each) for each in (rules, *events))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def lived() -> list[JSON]:
    """The events of an emulated cluster: orders that fail, ends of each kind, an interruption, a host that is lost."""
    made = world(TaskBehaviour(duration_s=30.0, exit_code=3))
    made.ec2.set_shortage("c5.large/us-east-1a", 0)
    made.add_fleet("c5.large", "us-east-1a", spot=1)
    first, *_ = grown(made, "p3.2xlarge")
    run(made, "gpu", startedBy="plan-1")
    run(made, group="env:web:1")
    made.run_for(120)
    made.interrupt(first["ec2InstanceId"])
    made.run_for(600)
    return json.loads(json.dumps(made.events))  # type: ignore[no-any-return]


def changed(event: JSON) -> Iterator[JSON]:
    """The event with each of its members removed, or with another value."""
    members = [(event, name) for name in ("source", "detail-type")] + [(event["detail"], n) for n in event["detail"]]
    for owner, name in members:
        for other in OTHERS:
            other_event = copy.deepcopy(event)
            (other_event if owner is event else other_event["detail"])[name] = other
            yield other_event
        without = copy.deepcopy(event)
        del (without if owner is event else without["detail"])[name]
        yield without


def queued(event: JSON) -> list[str]:
    """The rules onto the queue that our own code takes the event to match."""
    kind = (event.get("source"), event.get("detail-type"))
    return [rule for rule, names in QUEUED.items() if names == kind and is_ours(event)]


def is_ours(event: JSON) -> bool:
    return event.get("source") != "aws.ecs" or event["detail"].get("clusterArn") == CLUSTER


def expected(event: JSON) -> list[str]:
    return sorted(queued(event) + [kind.rule for kind in URGENT_KINDS if kind.matches(event) and is_ours(event)])


def test_each_event_reaches_the_rules_that_our_own_delivery_takes_it_to(home: Template) -> None:
    samples = [each["message"] for each in PUBLISHED["samples"]]
    cluster = json.loads(json.dumps(samples).replace(samples[0]["detail"]["clusterArn"], CLUSTER))
    whole = [*samples, *cluster, *lived()]
    events = [*whole, *(each for event in {e["detail-type"]: e for e in whole}.values() for each in changed(event))]
    found = matching(rules_of(home), events)
    assert len(found) == len(events) > 500
    assert [(event, names) for event, names in zip(events, found, strict=True) if names != expected(event)] == []
    assert {name for names in found for name in names} >= QUEUED.keys() | {kind.rule for kind in URGENT_KINDS}


def test_an_event_that_a_rule_lets_through_states_a_fact_that_can_be_read(home: Template) -> None:
    events = lived()
    read = [to_event(event) for event, names in zip(events, matching(rules_of(home), events), strict=True) if names]
    assert len(read) > 10


def test_the_end_of_a_run_reaches_its_rule_and_another_programs_does_not(home: Template) -> None:
    ended = {"source": "argosy", "detail-type": "Run State Change", "detail": {"runId": "r-1"}}
    foreign = {**ended, "source": "other"}
    assert matching(rules_of(home), [ended, foreign]) == [["ends-of-runs"], []]


def test_what_a_further_cell_forwards_reaches_homes_bus(wide: dict[str, Template]) -> None:
    events = lived()
    there = json.loads(
        json.dumps(events).replace("us-east-1", "eu-west-1").replace("cluster/argosy", "cluster/argosy-dev")
    )
    further = json.loads(json.dumps(rules_of(wide["argosy-dev-eu-west-1"])).replace("us-east-1", "eu-west-1"))
    found = matching(further, there)
    assert found == [[f"dev-{name}" for name in queued(event)] for event in events]
    forwarded = [event for event, names in zip(there, found, strict=True) if names]
    assert all("dev-forwarded" in names for names in matching(rules_of(wide["argosy-dev"]), forwarded))
