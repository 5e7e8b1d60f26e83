"""One table: every kind of message is parsed, unused ones are skipped, unreadable ones are poison."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.messages.eventbridge import (
    CAPACITY_INTERRUPTED,
    CAPACITY_INTERRUPTED_BEFORE,
    MESSAGE_KINDS,
    RULE_PATTERNS,
    PoisonMessage,
    to_event,
)
from argosy.messages.fleet_faults import shortage
from argosy.model.events import ContainerInstanceSeen, HostStateChanged, InterruptionWarned, RebalanceAdvised


def message(detail_type: str, detail: Any, source: str = "aws.ec2", **outer: Any) -> dict[str, Any]:
    return {"source": source, "detail-type": detail_type, "detail": detail, "time": "2027-01-15T08:00:00Z", **outer}


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        (
            message("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1", "instance-action": "terminate"}),
            InterruptionWarned("i-1", 1_800_000_000.0),
        ),
        (
            message("EC2 Instance Rebalance Recommendation", {"instance-id": "i-1", "new": "field"}),
            RebalanceAdvised("i-1", 1_800_000_000.0),
        ),
        (
            message("EC2 Instance State-change Notification", {"instance-id": "i-1", "state": "terminated"}),
            HostStateChanged("i-1", "terminated", 1_800_000_000.0),
        ),
        (
            message(
                "EC2 Fleet Error",
                {"sub-type": "allLaunchSpecsTemporarilyBlacklisted"},
                "aws.ec2fleet",
                resources=["arn:aws:ec2:us-east-1:1:fleet/fleet-1"],
            ),
            shortage("fleet-1", "allLaunchSpecsTemporarilyBlacklisted"),
        ),
        (
            message(
                "EC2 Fleet Information",
                {"sub-type": "launchSpecUnusable", "description": "The image id '[ami-1]' does not exist"},
                "aws.ec2fleet",
                resources=["arn:aws:ec2:us-east-1:1:fleet/fleet-1"],
            ),
            shortage("fleet-1", "launchSpecUnusable", "The image id '[ami-1]' does not exist"),
        ),
        (message("EC2 Fleet Error", {"sub-type": "iamFleetRoleInvalid"}, "aws.ec2fleet"), None),  # of no fleet
        (
            message(
                "EC2 Fleet Information",
                {"sub-type": "registerWithLoadBalancersFailed"},
                "aws.ec2fleet",
                resources=["arn:aws:ec2:us-east-1:1:fleet/fleet-1"],
            ),
            None,
        ),
        (message("ECS Container Instance Health Change", {"overallStatus": "IMPAIRED"}, "aws.ecs"), None),  # of no host
        (message("Something New", {}), None),
    ],
)
def test_a_message_states_its_fact(given: dict[str, Any], fact: object) -> None:
    assert to_event(given) == fact


@pytest.mark.parametrize("time", ["", None, "yesterday", {}])
def test_a_warning_counts_whatever_its_date_looks_like(time: Any) -> None:
    warning = message("EC2 Spot Instance Interruption Warning", {"instance-id": "i-1"}, time=time)
    assert to_event(warning) == InterruptionWarned("i-1", 0.0)


@pytest.mark.parametrize(
    "poison",
    [
        None,
        {},
        message("EC2 Instance Rebalance Recommendation", "text"),
        message("EC2 Spot Instance Interruption Warning", {}),
        message("ECS Task State Change", {"taskArn": 5}, "aws.ecs"),
        message("ECS Container Instance State Change", {"containerInstanceArn": None}, "aws.ecs"),
    ],
)
def test_what_cannot_be_read_is_poison(poison: dict[str, Any] | None) -> None:
    with pytest.raises(PoisonMessage):
        to_event(poison)


def test_the_warning_of_an_interruptible_reservation_is_read_under_both_of_its_names() -> None:
    names = dict(RULE_PATTERNS)["capacity-interruption"]["detail-type"]
    assert names == [CAPACITY_INTERRUPTED, CAPACITY_INTERRUPTED_BEFORE]
    read = [to_event(message(name, {"instance-id": "i-1"})) for name in names]
    assert [type(each) for each in read] == [InterruptionWarned, InterruptionWarned]


def test_every_kind_yields_its_own_rule() -> None:
    assert len({name for name, _ in RULE_PATTERNS}) == len(MESSAGE_KINDS)
    assert all(set(pattern) == {"source", "detail-type"} for _, pattern in RULE_PATTERNS)


def test_a_container_instance_is_of_the_region_in_its_arn_whatever_bus_the_message_came_by() -> None:
    arn = "arn:aws:ecs:eu-west-1:123456789012:container-instance/argosy/0123"
    detail = {"containerInstanceArn": arn, "ec2InstanceId": "i-0123456789abcdef0", "status": "ACTIVE", "version": 3}
    event = to_event(message("ECS Container Instance State Change", detail, "aws.ecs", region="us-east-1"))
    assert isinstance(event, ContainerInstanceSeen)
    assert event.cell == "eu-west-1"
