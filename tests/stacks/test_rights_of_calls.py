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
from botocore import xform_name

from argosy.local.clients import child_environment
from argosy.local.forks import Forks
from tests.e2e.cluster import Cluster, cluster
from tests.fakes import recorded_calls
from tests.fakes.signing import KEY
from tests.stacks.calls import Reached
from tests.stacks.evaluated_rights import ACCOUNT, NEEDED, ROOT, Asked, managed, policies_of, results
from tests.stacks.templates import Template

JSON = dict[str, Any]
CLUSTER = f"arn:aws:ecs:us-east-1:{ACCOUNT}:cluster/argosy"
OURS = {"aws:ResourceTag/argosy:stage": "main"}
CONTROLLER, API, WATCHDOG = "argosy-controller", "argosy-api", "argosy-watchdog"

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


INSTANCE_ROLE = arn("iam", "role/argosy-instance-us-east-1", "")


TEMPLATE, IMAGE, SUBNET = (
    arn("ec2", "launch-template/lt-1"),
    "arn:aws:ec2:us-east-1::image/ami-1",
    arn("ec2", "subnet/s"),
)


def fleet(said: JSON) -> list[Asked]:
    """A change of what a fleet launches needs the rights on that, too."""
    owned, others = [arn("ec2", f"fleet/{said['FleetId']}"), TEMPLATE], [IMAGE, SUBNET]
    modified = [Asked("ec2:ModifyFleet", each, OURS if each in owned else {}) for each in [*owned, *others]]
    return [*modified, *passed([INSTANCE_ROLE], "ec2.amazonaws.com")]


def bought(said: JSON) -> list[Asked]:
    """On demand: EC2 asks for the rights of the fleet and for those of the launch."""
    requested = {"aws:RequestTag/argosy:stage": said["TagSpecifications"][0]["Tags"][0]["Value"]}
    launched = [arn("ec2", f"{kind}/x-1") for kind in ("network-interface", "security-group", "volume")]
    with_template = {"ec2:LaunchTemplate": TEMPLATE}
    return [
        *passed([INSTANCE_ROLE], "ec2.amazonaws.com"),
        Asked("ec2:CreateFleet", arn("ec2", "fleet/*"), requested),
        *(Asked("ec2:CreateFleet", each, OURS) for each in (TEMPLATE, IMAGE, SUBNET, arn("ec2", "instance/*"))),
        Asked("ec2:RunInstances", arn("ec2", "instance/*"), with_template),
        *(Asked("ec2:RunInstances", each, {**OURS, **with_template}) for each in (TEMPLATE, IMAGE, SUBNET, *launched)),
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
    "ecs UpdateContainerInstancesState": lambda said: in_our_cluster(
        "ecs:UpdateContainerInstancesState", *said["containerInstances"]
    ),
    "ecs RegisterTaskDefinition": lambda said: definition(said, "RegisterTaskDefinition"),
    "ecs DescribeTaskDefinition": lambda said: [Asked("ecs:DescribeTaskDefinition")],
    "ecs DeregisterTaskDefinition": lambda said: [Asked("ecs:DeregisterTaskDefinition")],
    "ec2 ModifyFleet": fleet,
    "ec2 CreateFleet": bought,
    "ec2 TerminateInstances": lambda said: [
        Asked("ec2:TerminateInstances", arn("ec2", f"instance/{each}"), OURS) for each in said["InstanceIds"]
    ],
    "ec2 GetConsoleOutput": lambda said: [
        Asked("ec2:GetConsoleOutput", arn("ec2", f"instance/{said['InstanceId']}"), OURS)
    ],
    "ec2 DescribeFleetHistory": lambda said: [
        Asked("ec2:DescribeFleetHistory", arn("ec2", f"fleet/{said['FleetId']}"))
    ],
    "events EnableRule": lambda said: rule(said, "events:EnableRule"),
    "events DisableRule": lambda said: rule(said, "events:DisableRule"),
    "events PutEvents": events,
    "lambda Invoke": lambda said: [Asked("lambda:InvokeFunction", arn("lambda", f"function:{said['FunctionName']}"))],
    "logs GetLogEvents": lambda said: [
        Asked("logs:GetLogEvents", arn("logs", f"log-group:{said['logGroupName']}:log-stream:{said['logStreamName']}"))
    ],
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
    "pricing GetProducts": lambda said: [Asked("pricing:GetProducts")],
    "ecr DescribeImages": lambda said: [
        Asked("ecr:DescribeImages", arn("ecr", f"repository/{said['repositoryName']}"))
    ],
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
    environment = {**child_environment("http://127.0.0.1", "us-east-1", KEY), "PYTHONPATH": str(ROOT)}
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
        for function, service, operation, said in [*recorded, *OTHER_CALLS]
        for each in asked_of(service, operation, said)
    }
    found = dict(zip(asked, results(list(asked.values())), strict=True))
    assert {request: result for request, result in found.items() if result != "Allowed"} == {}
    assert len({(function, service, operation) for function, service, operation, _ in recorded}) > 30


# Calls for which `use` gives no occasion.
HOST, DEFINITION = arn("ecs", "container-instance/argosy/0"), {"taskDefinition": "argosy-x:1"}
TO_BUY = {"TagSpecifications": [{"Tags": [{"Key": "argosy:stage", "Value": "main"}]}]}
OTHER_CALLS: list[tuple[str, str, str, JSON]] = [
    (CONTROLLER, "ecs", "UpdateContainerInstancesState", {"containerInstances": [HOST]}),
    (CONTROLLER, "ecs", "DescribeTasks", {"tasks": ["0"]}),
    (CONTROLLER, "ec2", "GetConsoleOutput", {"InstanceId": "i-1"}),
    (CONTROLLER, "ec2", "CreateFleet", TO_BUY),
    (CONTROLLER, "ec2", "DescribeFleetHistory", {"FleetId": "fleet-1"}),
    (CONTROLLER, "ec2", "DescribeInstanceTypeOfferings", {}),
    (CONTROLLER, "logs", "GetLogEvents", {"logGroupName": "/ecs/argosy/tasks", "logStreamName": "argosy/main/0"}),
    (CONTROLLER, "pricing", "GetProducts", {}),
    (CONTROLLER, "events", "DisableRule", {"Name": "argosy-tick"}),
    (CONTROLLER, "dynamodb", "BatchGetItem", {}),
    (API, "ecs", "DescribeTaskDefinition", DEFINITION),
    (API, "ssm", "GetParameter", {"Name": "/argosy/images/digits"}),
    (API, "ecr", "DescribeImages", {"repositoryName": "digits"}),
    (API, "events", "PutEvents", {"Entries": [{"Source": "argosy"}]}),
    (API, "s3", "GetObject", {"Bucket": "argosy-results", "Key": "run/spec.json"}),
]
# Rights that an owner gives by a setting, and a name that is no call of the api (`test_rights_and_calls`).
NOT_HERE = {"ec2:get_spot_placement_scores", "ec2:get_capacity_manager_metric_data", "ec2:describe_availability_zones"}
NOT_HERE |= {"ec2:describe_capacity_reservations", "ec2:get_groups_for_capacity_reservation"}
NOT_HERE |= {"elbv2:register_targets", "elbv2:deregister_targets"}
NO_CALLS = {API: {"events:disable_rule"}, CONTROLLER: set[str]()}


@pytest.mark.parametrize("function", [API, CONTROLLER])
def test_every_call_that_a_function_can_make_is_among_those_that_are_judged(
    function: str, recorded: list[tuple[str, str, str, JSON]]
) -> None:
    judged = {
        f"{service}:{xform_name(operation)}"
        for name, service, operation, _ in [*recorded, *OTHER_CALLS]
        if name == function
    }
    made = Reached([("argosy.handlers", function.removeprefix("argosy-"))]).operations()
    assert made - NOT_HERE - NO_CALLS[function] - judged == set()


STATE = arn("dynamodb", "table/argosy-state")
RESULTS = "arn:aws:s3:::argosy-results"
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
    *((TASK, Asked("s3:DeleteObject", f"{RESULTS}/{key}")) for key in ("run/checkpoints/1", "run/parts/part-0")),
    *((TASK, Asked("s3:PutObject", f"{RESULTS}/{key}")) for key in ("run/checkpoints/1", "run/spec.json")),
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
