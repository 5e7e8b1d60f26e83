"""Messages that matter to a service's users call the controller; those that can wait a minute do not."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.messages.eventbridge import CAPACITY_INTERRUPTED_BEFORE, MESSAGE_KINDS
from argosy.messages.urgent import URGENT_KINDS, rule_of

TASK, HOST = "ECS Task State Change", "EC2 Instance State-change Notification"


def message(source: str, detail_type: str, **detail: Any) -> dict[str, Any]:
    return {"source": source, "detail-type": detail_type, "detail": detail}


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (message("aws.ecs", TASK, lastStatus="STOPPED", group="env:web"), "urgent-ends-of-tasks"),
        (message("aws.ecs", TASK, lastStatus="RUNNING", group="env:web"), ""),
        (message("aws.ecs", TASK, lastStatus="STOPPED", group="digits-261121-062733-k3f9"), ""),
        (message("aws.ecs", TASK, lastStatus="STOPPED"), ""),
        (message("aws.ecs", TASK, lastStatus="STOPPED", group=["env:web"]), "urgent-ends-of-tasks"),  # as event-ruler
        (message("aws.ec2", HOST, state="terminated"), "urgent-ends-of-instances"),
        (message("aws.ec2", HOST, state="shutting-down"), "urgent-ends-of-instances"),
        (message("aws.ec2", HOST, state="running"), ""),
        (message("aws.ec2", "EC2 Spot Instance Interruption Warning"), "urgent-interruptions"),
        (message("aws.ec2", CAPACITY_INTERRUPTED_BEFORE), "urgent-capacity-interruptions"),
        (message("aws.ec2", "EC2 Instance Rebalance Recommendation"), ""),
        (message("aws.other", HOST, state="terminated"), ""),
        ({"source": "aws.ec2", "detail-type": HOST}, ""),
    ],
)
def test_which_rule_a_message_matches(said: dict[str, Any], rule: str) -> None:
    assert rule_of(said) == rule


def test_all_that_is_urgent_goes_into_the_queue_as_well() -> None:
    listened_to = {(kind.source, kind.detail_type) for kind in MESSAGE_KINDS}
    assert {(kind.source, kind.detail_type) for kind in URGENT_KINDS} <= listened_to


def test_of_ecs_only_our_clusters_tasks_call() -> None:
    patterns = {kind.rule: kind.pattern(["arn:cluster"]) for kind in URGENT_KINDS}
    assert patterns["urgent-ends-of-tasks"]["detail"]["clusterArn"] == ["arn:cluster"]
    assert patterns["urgent-ends-of-tasks"]["detail"]["group"] == [{"prefix": "env:"}]
    assert "detail" not in patterns["urgent-interruptions"]
