"""Does each function's role allow the very calls that the function makes, and nothing that it must never do?

The functions of a local mode write down their calls (`tests.fakes.recorded_calls`); iam-simulate judges them by the
synthesised policies (`tests.stacks.evaluated_rights`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from argosy.local.clients import child_environment
from argosy.local.forks import Forks
from tests.e2e.cluster import Cluster, cluster
from tests.fakes import recorded_calls
from tests.stacks.evaluated_rights import ACCOUNT, NEEDED, ROOT, Asked, managed, policies_of, results
from tests.stacks.templates import Template

JSON = dict[str, Any]
CLUSTER = f"arn:aws:ecs:us-east-1:{ACCOUNT}:cluster/argosy"
OURS = {"aws:ResourceTag/argosy:stage": "main"}

pytestmark = [pytest.mark.e2e, pytest.mark.stacks, pytest.mark.engine, NEEDED]


def arn(service: str, resource: str, region: str = "us-east-1") -> str:
    return f"arn:aws:{service}:{region}:{ACCOUNT}:{resource}"


def in_our_cluster(action: str, *resources: str, **context: str) -> list[Asked]:
    return [Asked(action, resource, {"ecs:cluster": CLUSTER, **context}) for resource in resources]


def passed(roles: list[str | None], to: str) -> list[Asked]:
    return [Asked("iam:PassRole", role, {"iam:PassedToService": to}) for role in roles if role]


def table_calls(operation: str, said: JSON) -> list[Asked]:
    """A transaction needs the right of each of its writes; conditions on keys see the partition keys."""
    table = arn("dynamodb", "table/argosy-state")
    if operation == "TransactWriteItems":
        writes = [(kind, write) for item in said["TransactItems"] for kind, write in item.items()]
        return [_of_table(f"{kind}Item", write, table) for kind, write in writes]
    return [_of_table(operation, said, table)]


def _of_table(operation: str, said: JSON, table: str) -> Asked:
    item = said.get("Item") or said.get("Key") or {}
    keys = [str(next(iter(item["pk"].values())))] if "pk" in item else []
    return Asked(f"dynamodb:{operation}", table, {"dynamodb:LeadingKeys": keys} if keys else {})


def definition(said: JSON, operation: str) -> list[Asked]:
    family = arn("ecs", f"task-definition/{said.get('family')}:1")
    roles = passed([said.get("executionRoleArn"), said.get("taskRoleArn")], "ecs-tasks.amazonaws.com")
    tags = [Asked("ecs:TagResource", family, {"ecs:CreateAction": operation})] if "tags" in said else []
    return [Asked(f"ecs:{operation}"), *roles, *tags]


def started(said: JSON) -> list[Asked]:
    named = str(said["taskDefinition"])
    resource = named if named.startswith("arn:") else arn("ecs", f"task-definition/{named}")
    tag = Asked("ecs:TagResource", arn("ecs", "task/argosy/0"), {"ecs:CreateAction": "RunTask"})
    return [*in_our_cluster("ecs:RunTask", resource), *([tag] if "tags" in said else [])]


def fleet(said: JSON) -> list[Asked]:
    return [Asked("ec2:ModifyFleet", arn("ec2", f"fleet/{said['FleetId']}"), OURS)]


TEMPLATE = arn("ec2", "launch-template/lt-1")


def bought(said: JSON) -> list[Asked]:
    """On demand: EC2 asks for the rights of the fleet and for those of the launch."""
    image, subnet = "arn:aws:ec2:us-east-1::image/ami-1", arn("ec2", "subnet/subnet-1")
    requested = {"aws:RequestTag/argosy:stage": said["TagSpecifications"][0]["Tags"][0]["Value"]}
    launched = [arn("ec2", f"{kind}/x-1") for kind in ("network-interface", "security-group", "volume")]
    with_template = {"ec2:LaunchTemplate": TEMPLATE}
    return [
        Asked("ec2:CreateFleet", arn("ec2", "fleet/*"), requested),
        *(Asked("ec2:CreateFleet", each, OURS) for each in (TEMPLATE, image, subnet, arn("ec2", "instance/*"))),
        Asked("ec2:RunInstances", arn("ec2", "instance/*"), with_template),
        *(Asked("ec2:RunInstances", each, {**OURS, **with_template}) for each in (TEMPLATE, image, subnet, *launched)),
        *(
            Asked("ec2:CreateTags", arn("ec2", f"{kind}/*"), {"ec2:CreateAction": action})
            for kind, action in (("fleet", "CreateFleet"), ("instance", "RunInstances"), ("volume", "RunInstances"))
        ),
    ]


def bucket(action: str, said: JSON) -> list[Asked]:
    return [Asked(action, f"arn:aws:s3:::{said['Bucket']}/{said.get('Key', '')}")]


def listed(said: JSON) -> list[Asked]:
    return [Asked("s3:ListBucket", f"arn:aws:s3:::{said['Bucket']}")]


def rule(said: JSON, action: str) -> list[Asked]:
    return [Asked(action, arn("events", f"rule/{said['Name']}"))]


def schedule(said: JSON, action: str) -> list[Asked]:
    resource = arn("scheduler", f"schedule/{said.get('GroupName', 'default')}/{said['Name']}")
    return [Asked(action, resource), *passed([said.get("Target", {}).get("RoleArn")], "scheduler.amazonaws.com")]


def events(said: JSON) -> list[Asked]:
    """AWS lists the key `events:source` as one of several values."""
    sources = sorted({entry["Source"] for entry in said["Entries"]})
    return [Asked("events:PutEvents", arn("events", "event-bus/default"), {"events:source": sources})]


QUEUE = arn("sqs", "argosy-events")
BY_CALL: dict[str, Callable[[JSON], list[Asked]]] = {
    "ecs RunTask": started,
    "ecs StopTask": lambda said: in_our_cluster("ecs:StopTask", _task(said["task"])),
    "ecs DescribeTasks": lambda said: in_our_cluster("ecs:DescribeTasks", *map(_task, said["tasks"])),
    "ecs ListTasks": lambda said: in_our_cluster("ecs:ListTasks", "*"),
    "ecs ListContainerInstances": lambda said: [Asked("ecs:ListContainerInstances", CLUSTER)],
    "ecs DescribeContainerInstances": lambda said: in_our_cluster(
        "ecs:DescribeContainerInstances", *said["containerInstances"]
    ),
    "ecs RegisterTaskDefinition": lambda said: definition(said, "RegisterTaskDefinition"),
    "ecs DescribeTaskDefinition": lambda said: [Asked("ecs:DescribeTaskDefinition")],
    "ecs DeregisterTaskDefinition": lambda said: [Asked("ecs:DeregisterTaskDefinition")],
    "ec2 ModifyFleet": fleet,
    "ec2 CreateFleet": bought,
    "ec2 TerminateInstances": lambda said: [
        Asked("ec2:TerminateInstances", arn("ec2", f"instance/{each}"), OURS) for each in said["InstanceIds"]
    ],
    "ec2 DescribeFleetHistory": lambda said: [
        Asked("ec2:DescribeFleetHistory", arn("ec2", f"fleet/{said['FleetId']}"))
    ],
    "events EnableRule": lambda said: rule(said, "events:EnableRule"),
    "events DisableRule": lambda said: rule(said, "events:DisableRule"),
    "events PutEvents": events,
    "lambda Invoke": lambda said: [Asked("lambda:InvokeFunction", arn("lambda", f"function:{said['FunctionName']}"))],
    "s3 GetObject": lambda said: bucket("s3:GetObject", said),
    "s3 HeadObject": lambda said: bucket("s3:GetObject", said),
    "s3 PutObject": lambda said: bucket("s3:PutObject", said),
    "s3 DeleteObject": lambda said: bucket("s3:DeleteObject", said),
    "s3 ListObjectsV2": listed,
    "sqs ReceiveMessage": lambda said: [Asked("sqs:ReceiveMessage", QUEUE)],
    "sqs DeleteMessageBatch": lambda said: [Asked("sqs:DeleteMessage", QUEUE)],
    "scheduler CreateSchedule": lambda said: schedule(said, "scheduler:CreateSchedule"),
    "scheduler UpdateSchedule": lambda said: schedule(said, "scheduler:UpdateSchedule"),
    "scheduler DeleteSchedule": lambda said: schedule(said, "scheduler:DeleteSchedule"),
    "ssm GetParameter": lambda said: [Asked("ssm:GetParameter", arn("ssm", f"parameter{said['Name']}"))],
}


def _task(named: str) -> str:
    return named if named.startswith("arn:") else arn("ecs", f"task/argosy/{named}")


def asked_of(service: str, operation: str, said: JSON) -> list[Asked]:
    if service == "dynamodb":
        return table_calls(operation, said)
    if service == "ec2" and operation.startswith("Describe") and operation != "DescribeFleetHistory":
        return [Asked(f"ec2:{operation}")]
    return BY_CALL[f"{service} {operation}"](said)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str, JSON]]:
    calls = tmp_path_factory.mktemp("calls")
    environment = {**child_environment("http://127.0.0.1", "us-east-1"), "PYTHONPATH": str(ROOT)}
    forks = Forks("tests.fakes.recorded_calls.warm", {**environment, recorded_calls.FOLDER: str(calls)})
    with closing(forks), cluster(tmp_path_factory.mktemp("local"), forks=forks) as local:
        use(local)
    return recorded_calls.calls(calls)


def use(local: Cluster) -> None:
    """A run that fails and is tried again, one that succeeds, one that is cancelled, a service, and a schedule."""
    first = local.submit(["write", "${part}"], 3)
    failing = local.submit(["exit1", "x"], 1)
    cancelled = local.submit(["wait", "x", "600"], 2)
    service = {"version": 1, "kind": "service", "name": "kept", "run": "exec sleep 600", "result": "none"}
    local.ask(
        "CreateEnvironment", spec={**service, "service": {"desired": 1}, "resources": {"vcpus": 0.5, "memory": 128}}
    )
    local.ask("StartDeployment", name="kept", clientToken="once")
    assert local.finished(first)["status"] == "SUCCEEDED"
    assert local.finished(failing)["status"] == "FAILED"
    local.ask("RetryRun", runId=failing)
    local.until(lambda: local.run(cancelled)["status"] == "RUNNING")
    local.ask("CancelRun", runId=cancelled)
    local.finished(cancelled)
    hello = {"version": 1, "name": "tick", "run": "echo hello", "result": "stdout", "array": {"size": 1}}
    revision = local.ask("CreateSchedule", name="often", expression="rate(1 hours)", spec=hello)["revision"]
    local.ask("UpdateSchedule", name="often", expression="rate(2 hours)", revision=revision)
    local.ask("DeleteSchedule", name="often")
    local.until(lambda: local.ask("DescribeEnvironment", name="kept")["status"] == "COMPLETED")
    local.ask("DeleteEnvironment", name="kept")
    local.until(lambda: not local.ask("ListEnvironments")["environments"])
    local.finished(failing)


def test_every_call_of_a_function_is_allowed_by_its_role(
    recorded: list[tuple[str, str, str, JSON]], home: Template
) -> None:
    policies = {name: policies_of(home, home.function_role(name)) for name in ("argosy-api", "argosy-controller")}
    asked = {
        json.dumps([function, each.action, each.resource, each.context]): (policies[function], each)
        for function, service, operation, said in recorded
        for each in asked_of(service, operation, said)
    }
    found = dict(zip(asked, results(list(asked.values())), strict=True))
    assert {request: result for request, result in found.items() if result != "Allowed"} == {}
    assert len({(function, service, operation) for function, service, operation, _ in recorded}) > 30


STATE = arn("dynamodb", "table/argosy-state")
RESULTS = "arn:aws:s3:::argosy-results"
CONTROLLER, API, WATCHDOG = "argosy-controller", "argosy-api", "argosy-watchdog"
TASK, INSTANCE, SUBMITTER, MEMBER = "argosy-task", "argosy-instance-us-east-1", "argosy-submitter", "argosy-member"
OTHERS: JSON = {"ecs:cluster": arn("ecs", "cluster/other")}
NEVER: list[tuple[str, Asked]] = [
    *((who, Asked("iam:CreateUser", arn("iam", "user/x", ""))) for who in (CONTROLLER, API, TASK, INSTANCE, MEMBER)),
    *((who, Asked("iam:PassRole", arn("iam", "role/admin", ""))) for who in (CONTROLLER, API, MEMBER)),
    *((who, Asked("sts:AssumeRole", arn("iam", "role/admin", ""))) for who in (CONTROLLER, API, TASK, INSTANCE)),
    *((who, Asked("dynamodb:DeleteTable", STATE)) for who in (CONTROLLER, API, TASK)),
    *((who, Asked("s3:DeleteBucket", RESULTS)) for who in (CONTROLLER, API, TASK, SUBMITTER)),
    *((who, Asked("s3:GetObject", "arn:aws:s3:::other/key")) for who in (CONTROLLER, API, TASK, INSTANCE, SUBMITTER)),
    *((who, Asked("dynamodb:GetItem", arn("dynamodb", "table/other"))) for who in (CONTROLLER, API)),
    *((who, Asked("ec2:TerminateInstances", arn("ec2", "instance/i-1"))) for who in (CONTROLLER, WATCHDOG, API)),
    (
        CONTROLLER,
        Asked("iam:PassRole", arn("iam", "role/argosy-task", ""), {"iam:PassedToService": "lambda.amazonaws.com"}),
    ),
    (CONTROLLER, Asked("ecs:RunTask", arn("ecs", "task-definition/argosy-x:1"), OTHERS)),
    (CONTROLLER, Asked("ecs:RunTask", arn("ecs", "task-definition/theirs:1"), {"ecs:cluster": CLUSTER})),
    (CONTROLLER, Asked("ecs:StopTask", arn("ecs", "task/other/1"), OTHERS)),
    (CONTROLLER, Asked("ec2:ModifyFleet", arn("ec2", "fleet/fleet-1"), {"aws:ResourceTag/argosy:stage": "dev"})),
    (CONTROLLER, Asked("ec2:RunInstances", arn("ec2", "instance/*"))),
    (CONTROLLER, Asked("ec2:RunInstances", TEMPLATE, {"aws:ResourceTag/argosy:stage": "dev"})),
    (CONTROLLER, Asked("ec2:CreateFleet", arn("ec2", "fleet/*"))),
    (CONTROLLER, Asked("ec2:CreateTags", arn("ec2", "instance/i-1"))),
    (CONTROLLER, Asked("ec2:CreateVpc", arn("ec2", "vpc/*"))),
    (CONTROLLER, Asked("lambda:UpdateFunctionCode", arn("lambda", f"function:{API}"))),
    (CONTROLLER, Asked("s3:DeleteObject", f"{RESULTS}/run/part-0")),
    (CONTROLLER, Asked("events:PutEvents", arn("events", "event-bus/default"), {"events:source": ["theirs"]})),
    (CONTROLLER, Asked("events:PutEvents", arn("events", "event-bus/default"))),
    (API, Asked("dynamodb:PutItem", STATE, {"dynamodb:LeadingKeys": ["STATE"]})),
    (API, Asked("dynamodb:DeleteItem", STATE)),
    (API, Asked("ecs:RunTask", arn("ecs", "task-definition/argosy-x:1"), {"ecs:cluster": CLUSTER})),
    (API, Asked("ec2:ModifyFleet", arn("ec2", "fleet/fleet-1"), OURS)),
    (TASK, Asked("dynamodb:PutItem", STATE)),
    (TASK, Asked("ecs:StopTask", arn("ecs", "task/argosy/1"), {"ecs:cluster": CLUSTER})),
    (TASK, Asked("lambda:InvokeFunction", arn("lambda", f"function:{API}"))),
    (INSTANCE, Asked("ecs:RunTask", arn("ecs", "task-definition/argosy-x:1"), {"ecs:cluster": CLUSTER})),
    (INSTANCE, Asked("s3:PutObject", f"{RESULTS}/run/part-0")),
    (SUBMITTER, Asked("lambda:InvokeFunction", arn("lambda", f"function:{CONTROLLER}"))),
    (MEMBER, Asked("lambda:InvokeFunction", arn("lambda", f"function:{API}"))),
]


def rights(home: Template, who: str) -> list[JSON]:
    """Of a function, of a role with that name, or of the managed policy with that name."""
    roles = {each.get("RoleName"): id for id, each in home.of_type("AWS::IAM::Role").items()}
    if who in roles:
        return policies_of(home, roles[who])
    return managed(home, who) or policies_of(home, home.function_role(who))


def test_what_a_role_must_never_do_is_denied(home: Template) -> None:
    found = results([(rights(home, who), asked) for who, asked in NEVER])
    assert len(NEVER) >= 40
    assert [(ask, result) for ask, result in zip(NEVER, found, strict=True) if not result.endswith("Denied")] == []
