"""The models' events reach the deployment's queue while its rules are enabled, and the rules of users."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.local.clients import LocalClients
from argosy.local.delivery import EventDelivery
from argosy.local.moto.app import MotoApp
from argosy.local.moto.events import MotoRules
from tests.fakes.serving import front
from tests.fakes.waiting import until

pytestmark = pytest.mark.slow
ACCOUNT, REGION = "123456789012", "us-east-1"


@pytest.fixture(scope="module")
def clients() -> Iterator[LocalClients]:
    moto = MotoApp()
    with front(moto=moto) as made:
        made("events").create_event_bus(Name="argosy")
        rule(made, "argosy-task-state", "default")
        rule(made, "argosy-forwarded", "argosy")
        yield made
        moto.stop_waiting()
    moto.close()


def rule(clients: LocalClients, name: str, bus: str, source: str = "aws.ecs") -> None:
    clients("events").put_rule(Name=name, EventBusName=bus, EventPattern=json.dumps({"source": [source]}))


class Delivered:
    """The messages that one delivery put, and its complaints."""

    def __init__(self) -> None:
        self.put: list[str] = []
        self.complaints: list[str] = []
        self.calls: list[str] = []
        rules = MotoRules(ACCOUNT, REGION)
        complain = self.complaints.append
        self.deliver = EventDelivery(rules, REGION, "argosy", self.put.append, complain, self.calls.append)

    @property
    def numbers(self) -> list[int]:
        return [json.loads(body)["detail"]["version"] for body in self.put]


@pytest.fixture
def delivered() -> Iterator[Delivered]:
    made = Delivered()
    yield made
    made.deliver.close()


def message(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": f"{number}",
        "account": ACCOUNT,
        "source": "aws.ecs",
        "detail-type": "ECS Task State Change",
        "detail": {"version": number},
        "resources": [f"arn:{number}"],
        "time": "2026-11-21T06:40:17Z",
        "region": REGION,
        **changes,
    }


def test_events_reach_the_queue_in_order_and_whole(clients: LocalClients, delivered: Delivered) -> None:
    for number in range(25):
        delivered.deliver(message(number))
    delivered.deliver(message(99, source="aws.other"))
    assert delivered.numbers == list(range(25))
    assert json.loads(delivered.put[0]) == message(0)


def test_another_region_s_events_come_over_the_bus_of_the_deployment(clients: LocalClients) -> None:
    delivered = Delivered()
    clients("events").disable_rule(Name="argosy-task-state")
    delivered.deliver(message(1))
    delivered.deliver(message(2, region="eu-west-1"))
    clients("events").enable_rule(Name="argosy-task-state")
    clients("events").disable_rule(Name="argosy-forwarded", EventBusName="argosy")
    delivered.deliver(message(3))
    delivered.deliver(message(4, region="eu-west-1"))
    clients("events").enable_rule(Name="argosy-forwarded", EventBusName="argosy")
    delivered.deliver.close()
    assert delivered.numbers == [2, 3]


def test_what_is_urgent_calls_the_controller_while_its_rule_is_enabled(clients: LocalClients) -> None:
    delivered, stopped = Delivered(), {"version": 1, "lastStatus": "STOPPED", "group": "env:web"}
    rule(clients, "argosy-urgent-ends-of-tasks", "default")
    delivered.deliver(message(1, detail=stopped))
    delivered.deliver(message(2))
    delivered.deliver(message(3, detail=stopped, region="eu-west-1"))
    clients("events").disable_rule(Name="argosy-urgent-ends-of-tasks")
    delivered.deliver(message(4, detail=stopped))
    clients("events").delete_rule(Name="argosy-urgent-ends-of-tasks")
    delivered.deliver.close()
    assert [json.loads(body)["id"] for body in delivered.calls] == ["1", "3"]
    assert [json.loads(body)["id"] for body in delivered.put] == ["1", "2", "3", "4"]


def test_a_rule_of_a_user_gets_the_same_events_from_moto(clients: LocalClients) -> None:
    sqs = clients("sqs")
    url = sqs.create_queue(QueueName="of-user")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    rule(clients, "of-user", "default")
    clients("events").put_targets(Rule="of-user", Targets=[{"Id": "queue", "Arn": arn}])
    delivered = Delivered()
    delivered.deliver(message(7))
    delivered.deliver(message(8, source="aws.ec2"))
    delivered.deliver.close()
    received = until(lambda: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"))
    clients("events").remove_targets(Rule="of-user", Ids=["queue"])
    clients("events").delete_rule(Name="of-user")
    (found,) = [json.loads(each["Body"]) for each in received]
    told = ("source", "detail-type", "time", "region", "detail")  # moto leaves some of the rest out
    assert {name: found[name] for name in told} == {name: message(7)[name] for name in told}


def test_an_event_that_a_rule_of_a_user_loses_is_complained_about(clients: LocalClients, delivered: Delivered) -> None:
    rule(clients, "lost", "default")
    gone = [{"Id": "queue", "Arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:gone"}]
    clients("events").put_targets(Rule="lost", Targets=gone)
    delivered.deliver(message(7))
    until(lambda: delivered.complaints)
    clients("events").remove_targets(Rule="lost", Ids=["queue"])
    clients("events").delete_rule(Name="lost")
    assert "lost" in delivered.complaints[0]
    assert delivered.numbers == [7]


def test_a_bus_that_is_not_there_has_no_rules(clients: LocalClients) -> None:
    assert MotoRules(ACCOUNT, REGION).enabled("nobody's") == set()
