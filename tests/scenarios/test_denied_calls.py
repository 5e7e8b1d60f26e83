"""A policy of the organisation that denies one call, each in turn.

AWS's words are shown, and nothing that costs stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from botocore.exceptions import ClientError

from argosy.aws.account_rates import AccountRates
from argosy.aws.cell import Cell
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.failure_logs import FailureLogs
from argosy.aws.items import S3ItemsReader
from argosy.aws.on_demand_prices import OnDemandPrices
from argosy.aws.placement_scores import PlacementScores
from argosy.aws.reservations import reservations
from argosy.aws.sqs import SqsQueue
from argosy.aws.target_groups import TargetGroups
from argosy.aws.wake import AwsWake
from argosy.emulator.ec2.service import LaunchObstacle
from argosy.model.actions import DeregisterTargets, RegisterTargets
from argosy.model.failure_texts import ReadFailures
from argosy.model.host_care import DrainRequest
from argosy.model.services.targets import TargetPlace
from argosy.ports import ItemsUnreadable
from tests.builders import CELL, NOW
from tests.fakes.aws import Clock, ScriptedClient, cell, operations, refusal
from tests.fakes.refusing import DENIED, refusing
from tests.harness.simulation.world.agent import AgentBehaviour
from tests.scenarios.controlled import Controlled

CODE, SENTENCE = DENIED
WORDS = "explicit deny in a service control policy"
AWS = Path(__file__).parents[2] / "controller" / "argosy" / "aws"
OBSTACLE = LaunchObstacle("spotFleetRequestConfigurationInvalid", "There are not enough free addresses in subnet-1.")
# Functions of their own, which act for a deployment that is taken down or whose controller is silent.
OTHERS = {"teardown.py", "watchdog.py", "cell_guard.py", "cell_records.py", "shutdown.py", "schedule_clock.py"}


def batch(cluster: Controlled) -> None:
    cluster.submit(4)
    cluster.run_for(900.0)


def on_demand(cluster: Controlled) -> None:
    cluster.submit(4, capacity={"purchase": "on-demand"})
    cluster.run_for(300.0)


def cancelled(cluster: Controlled) -> None:
    cluster.submit(4)
    cluster.run_for(120.0)
    cluster.cancel()
    cluster.run_for(240.0)


def silent(cluster: Controlled) -> None:
    """No event of a task arrives."""
    cluster.events.lose = lambda message: message["detail-type"] == "ECS Task State Change"
    batch(cluster)


def drained(cluster: Controlled) -> None:
    cluster.submit(4)
    cluster.run_for(120.0)
    (instance,) = cluster.world.ec2.ledger.instances
    now = cluster.world.now
    cluster.put(DrainRequest(now, instance, now + 600.0), "drain")
    cluster.run_for(600.0)


def unjoined(cluster: Controlled) -> None:
    cluster.world.agent_behaviour = lambda instance: AgentBehaviour(registers=False)
    cluster.submit(4)
    cluster.run_for(1500.0)


def short(cluster: Controlled) -> None:
    """A fleet launches nothing, and no event says why."""
    cluster.events.lose = lambda message: message["detail-type"].startswith("EC2 Fleet")
    cluster.world.ec2.set_obstacle("c5.xlarge/us-east-1a", OBSTACLE)
    cluster.submit(4)
    cluster.run_for(1500.0)


class Denied(NamedTuple):
    service: str
    call: str
    story: Callable[[Controlled], None] = batch
    stay: int = 0  # instances that stay while it is denied


TABLE = [
    *(
        Denied("ec2", call)
        for call in (
            "describe_fleets",
            "describe_instance_status",
            "describe_instance_type_offerings",
            "describe_instances",
            "describe_launch_templates",
            "describe_spot_price_history",
            "modify_fleet",
        )
    ),
    Denied("ec2", "create_fleet", on_demand),
    Denied("ec2", "describe_fleet_history", short),
    Denied("ec2", "get_console_output", unjoined),
    Denied("ec2", "terminate_instances", stay=1),
    *(
        Denied("ecs", call)
        for call in (
            "deregister_task_definition",
            "describe_container_instances",
            "describe_task_definition",
            "list_container_instances",
            "list_tasks",
            "register_task_definition",
            "run_task",
        )
    ),
    Denied("ecs", "describe_tasks", silent),
    Denied("ecs", "stop_task", cancelled),
    Denied("ecs", "update_container_instances_state", drained),
    *(Denied("s3", call) for call in ("delete_object", "head_object", "list_objects_v2", "put_object")),
]


def shown(cluster: Controlled, logged: str) -> str:
    """What users and the owner can read: of the run, of instances that never joined, and in the controller's log."""
    state = cluster.controllers[0].state
    consoles = [each.console for each in state.instances.values()] if state else []
    record = cluster.record()
    return " ".join([record.waiting, record.status_reason or "", *consoles, logged])


def live(cluster: Controlled) -> int:
    return sum(each.alive for each in cluster.world.ec2.ledger.instances.values())


def check(denied: Denied, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=200.0, drain_patience_s=60.0)
    client = refusing(cluster, denied.service)
    client.answers[denied.call] = DENIED
    denied.story(cluster)
    assert client.refused
    assert WORDS in shown(cluster, caplog.text)
    if not cluster.record().has_ended:
        cluster.cancel()
    cluster.run_for(1800.0)
    assert live(cluster) == denied.stay
    client.answers.clear()
    cluster.run_to_rest()
    assert live(cluster) == 0


def reserved(ec2: Any) -> Cell:
    return replace(cell(Clock(), ec2=ec2), reservations=frozenset({f"arn:aws:resource-groups:{CELL}:1:group/g"}))


def targets(elbv2: Any, action: RegisterTargets | DeregisterTargets) -> Any:
    arn = f"arn:aws:elasticloadbalancing:{CELL}:123456789012:targetgroup/web/1"
    return [
        *TargetGroups({"web": arn}, {CELL: replace(cell(Clock()), elbv2=elbv2)}, Clock()).change(action, NOW + 60.0)
    ]


def logs(client: Any) -> Any:
    reading = FailureLogs({CELL: replace(cell(Clock()), logs=client)}, "/ecs/argosy/tasks", Clock())
    return [*reading.read(ReadFailures("r", (f"arn:aws:ecs:{CELL}:123456789012:task/argosy/f00",)), NOW + 60.0)]


def instantly() -> None:
    """There is time for another page."""


KEY, PLACES = ("partition", "name"), (TargetPlace("web", "i-0a", 80),)
ZONES = {"AvailabilityZones": [{"ZoneId": "use1-az1", "ZoneName": "us-east-1a"}]}
NAMES = ["c5.large", "c5.xlarge", "c5.2xlarge"]
# The calls that the simulated AWS answers otherwise: of its adapter alone. Nothing is bought by them.
ADAPTERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("dynamodb", "batch_get_item"): lambda client: DynamoStore(client, "t").read_many([KEY]),
    ("dynamodb", "delete_item"): lambda client: DynamoStore(client, "t").release_lease("me"),
    ("dynamodb", "get_item"): lambda client: DynamoStore(client, "t").read(KEY),
    ("dynamodb", "put_item"): lambda client: DynamoStore(client, "t").beat(NOW),
    ("dynamodb", "transact_write_items"): lambda client: DynamoStore(client, "t").create({KEY: b""}),
    ("dynamodb", "update_item"): lambda client: DynamoStore(client, "t").take_lease("me", NOW, 60.0),
    ("ec2", "describe_availability_zones"): lambda client: AccountRates().of(cell(Clock(), ec2=client), NOW, instantly),
    ("ec2", "describe_capacity_reservations"): lambda client: [*reservations(reserved(client))],
    ("ec2", "get_capacity_manager_metric_data"): (
        lambda client: AccountRates().of(cell(Clock(), ec2=client), NOW, instantly)
    ),
    ("ec2", "get_groups_for_capacity_reservation"): lambda client: [*reservations(reserved(client))],
    ("ec2", "get_spot_placement_scores"): (
        lambda client: PlacementScores().of(cell(Clock(), ec2=client), NAMES, NOW, instantly)
    ),
    ("elbv2", "deregister_targets"): lambda client: targets(client, DeregisterTargets("web", PLACES)),
    ("elbv2", "register_targets"): lambda client: targets(client, RegisterTargets("web", PLACES)),
    ("events", "disable_rule"): lambda client: AwsWake(None, client, "f", "r").rest(),
    ("events", "enable_rule"): lambda client: AwsWake(None, client, "f", "r").stay(),
    ("lambda", "invoke"): lambda client: AwsWake(
        client, ScriptedClient("events", enable_rule={}), "f", "r"
    ).controller(),
    ("logs", "get_log_events"): logs,
    ("pricing", "get_products"): lambda client: OnDemandPrices(lambda: client).of(cell(Clock()), NOW, instantly),
    ("s3", "get_object"): lambda client: S3ItemsReader(client).read_items("s3://results/items.json"),
    ("sqs", "delete_message_batch"): lambda client: SqsQueue(client, "q", Clock().sleep).delete(["r"]),
    ("sqs", "receive_message"): lambda client: SqsQueue(client, "q", Clock().sleep).receive(0.0),
}
RESERVATION = {"CapacityReservationId": "cr-1"}
ANSWERED: dict[str, Any] = {
    "get_item": {},
    "describe_availability_zones": ZONES,
    "describe_capacity_reservations": {"CapacityReservations": [RESERVATION]},
}


@pytest.mark.parametrize(("service", "call"), ADAPTERS)
def test_a_denied_call_of_an_adapter_is_logged_raised_or_a_reason_in_awss_words(
    service: str, call: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is raised ends the invocation, whose log and alarm have it."""
    answered = {name: answer for name, answer in ANSWERED.items() if name in operations(service)}
    client = ScriptedClient(service, **{**answered, call: refusal(CODE, SENTENCE)})
    try:
        said = str(ADAPTERS[service, call](client))
    except (ClientError, ItemsUnreadable) as raised:
        said = str(raised)
    assert client.requests(call)
    assert WORDS in said + caplog.text


def test_a_controller_whose_commits_are_denied_raises_awss_words_and_buys_nothing() -> None:
    """What runs already is ended by the watchdog once the heartbeat is old."""
    cluster = Controlled(zones=("us-east-1a",))
    cluster.submit(4)

    def denied(*args: Any, **more: Any) -> None:
        raise refusal(CODE, SENTENCE)

    cluster.store.commit = denied  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(ClientError, match=WORDS):
            cluster.tick()
        cluster.pass_time(cluster.tick_s)
    assert not cluster.world.ec2.ledger.instances


def test_every_call_that_the_controller_makes_is_in_one_of_the_tables() -> None:
    """Those of the announcement of a run's end are in the tests of closing."""
    client = r"\b_?(?:client|ec2|ecs|elbv2|events|lambda|logs|s3|pricing\(\))\.([a-z]+(?:_[a-z0-9]+)+)\b"
    sources = [path.read_text(encoding="utf-8") for path in AWS.glob("*.py") if path.name not in OTHERS]
    made = {name for source in sources for name in re.findall(client, source)}
    made |= {name for source in sources for name in re.findall(r'"((?:list|describe)(?:_[a-z]+)+)"', source)}
    assert made - {"put_events"} == {each.call for each in TABLE} | {call for _, call in ADAPTERS} - {"invoke"}


SAMPLED = range(0, len(TABLE), 8)  # the others in `make test-deep`


@pytest.mark.parametrize("number", SAMPLED, ids=lambda number: TABLE[number].call)
def test_a_denied_call_is_shown_in_awss_words_and_nothing_that_costs_stays(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    check(TABLE[number], caplog)


@pytest.mark.deep
@pytest.mark.parametrize("denied", TABLE, ids=lambda denied: denied.call)
def test_each_denied_call_is_shown_in_awss_words_and_nothing_that_costs_stays(
    denied: Denied, caplog: pytest.LogCaptureFixture
) -> None:
    check(denied, caplog)
