"""The parts of a deployment: the same that the stacks create, made by plain API calls.

The task definitions of the images come from each image's task-definitions.json, by family. On AWS the examples stack
makes them from the same files, so `taskDefinition: tensorflow-4-gpu` means the same here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.layout import OWN_CONTAINER
from argosy.local.containers.images import GPU_SUFFIX, source_of
from argosy.local.containers.runtime import Runtime
from argosy.messages.eventbridge import RULE_PATTERNS
from argosy.messages.urgent import URGENT_KINDS
from argosy.model.arns import arn_of
from argosy.settings.settings import Settings
from argosy.spec.program import STOCK_PYTHON

Client = Callable[..., Any]  # a boto3 client by service name and, for another than the home Region, that
MAX_RECEIVES = 5  # then a message goes to the dead queue
VISIBILITY_S = 60.0  # of a message that was received and is not deleted
LOCAL_TYPES = {
    "cpu": ["c5.large", "c5.xlarge", "c5.2xlarge", "c5.4xlarge"],
    "gpu": ["g5.2xlarge", "g5.12xlarge", "g5.48xlarge"],  # 1, 4 and 8 GPUs, as the examples need them
}


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one deployment's parts."""

    prefix: str
    account: str
    region: str

    @property
    def api_function(self) -> str:
        return f"{self.prefix}-api"

    @property
    def controller_function(self) -> str:
        return f"{self.prefix}-controller"

    @property
    def tick_rule(self) -> str:
        return f"{self.prefix}-tick"

    @property
    def table(self) -> str:
        return f"{self.prefix}-state"

    @property
    def queue(self) -> str:
        return f"{self.prefix}-events"

    @property
    def dead_queue(self) -> str:
        return f"{self.queue}-dead"

    @property
    def bucket(self) -> str:
        return f"{self.prefix}-results"

    @property
    def log_group(self) -> str:
        return f"/ecs/{self.prefix}/tasks"

    def function_arn(self, name: str) -> str:
        """The ARN of a function."""
        return arn_of("lambda", self.region, self.account, f"function:{name}")

    def role_arn(self, name: str) -> str:
        """The ARN of a role; nothing checks rights locally."""
        return arn_of("iam", "", self.account, f"role/{self.prefix}-{name}")


def local_settings(gpu_types: Sequence[str] = (), **changes: Any) -> Settings:
    """The settings of local mode: c5 and g5 in three zones, and short waits. `changes` in cdk.json's spelling.

    gpu_types: in place of g5. Raises ValidationError.
    """
    cells = changes.get("cells", ["us-east-1"])
    types = {**LOCAL_TYPES, "gpu": [*gpu_types]} if gpu_types else LOCAL_TYPES
    # Its Regions offer them all, wherever AWS does.
    offered = {str(cell): {"add": [*types["cpu"], *types["gpu"]]} for cell in cells}
    context = {
        "cells": cells,
        "instanceTypes": types,
        "offered": offered,
        "lingerSeconds": 10,
        "stopTimeoutSeconds": 10,
        "gangs": True,
        "allowExec": True,  # its tasks are this user's own
        **changes,
    }
    return Settings.model_validate(context)


def create(
    client: Client, settings: Settings, names: Names, images: Iterable[str], python: str = STOCK_PYTHON
) -> dict[str, Any]:
    """Creates everything; returns the body of the parameter with which users find it.

    python: the version of argosy/python here.
    """
    client("s3").create_bucket(Bucket=names.bucket)
    _create_table(client("dynamodb"), names.table)
    queue_url = _create_queue(client("sqs"), names)
    _create_rules(client("events"), names)
    client("scheduler").create_schedule_group(Name=names.prefix)
    if settings.cells[1:]:
        _create_bus(client("events"), names)
    for cell in settings.cells:
        _create_cell(client, settings, names, cell)
    deployment = {
        "stage": settings.stage,
        "region": settings.region,
        "cells": list(settings.cells),
        "cluster": names.prefix,
        "apiFunction": names.api_function,
        "controllerFunction": names.controller_function,
        "bucket": names.bucket,
        "logGroup": names.log_group,
        "table": names.table,
        "queueUrl": queue_url,
        "python": python,
        "allowExec": settings.allow_exec,
    }
    _create_parameters(client("ssm"), names.prefix, deployment, images)
    return deployment


def _create_cell(client: Client, settings: Settings, names: Names, cell: str) -> None:
    """The parts of each Region. Its events need no rules there: the models send them to buses of the home Region."""
    tags = [{"key": "argosy:stage", "value": settings.stage}]
    client("logs", cell).create_log_group(logGroupName=names.log_group)
    client("ecs", cell).create_cluster(clusterName=names.prefix, tags=tags)
    for instance_type, zone in settings.pools(cell):
        create_fleet(client("ec2", cell), settings, instance_type, zone)


def function_environment(settings: Settings, names: Names, queue_url: str) -> dict[str, str]:
    """The functions' environment, the same as on AWS; the endpoint and credentials are added to it."""
    return {
        "ARGOSY_STAGE": settings.stage,
        "ARGOSY_TABLE": names.table,
        "ARGOSY_QUEUE_URL": queue_url,
        "ARGOSY_CLUSTER": names.prefix,
        "ARGOSY_BUCKET": names.bucket,
        "ARGOSY_LOG_GROUP": names.log_group,
        "ARGOSY_CONTROLLER_FUNCTION": names.controller_function,
        "ARGOSY_TICK_RULE": names.tick_rule,
        "ARGOSY_EXECUTION_ROLE_ARN": names.role_arn("execution"),
        "ARGOSY_TASK_ROLE_ARN": names.role_arn("task"),
        "ARGOSY_API_FUNCTION_ARN": names.function_arn(names.api_function),
        "ARGOSY_SCHEDULES_ROLE_ARN": names.role_arn("schedules"),
        "ARGOSY_SETTINGS": settings.to_json(),
    }


def create_fleet(ec2: Any, settings: Settings, instance_type: str, zone: str) -> str:
    """Creates the fleet of one pool, empty until the controller orders from it; returns its id."""
    tags = [
        {"Key": "argosy:stage", "Value": settings.stage},
        {"Key": "argosy:pool", "Value": f"{instance_type}/{zone}"},
    ]
    template = {"LaunchTemplateName": f"{settings.prefix}-{instance_type}", "Version": "1"}
    created = ec2.create_fleet(
        Type="maintain",
        TargetCapacitySpecification={
            "TotalTargetCapacity": 0,
            "SpotTargetCapacity": 0,
            "OnDemandTargetCapacity": 0,
            "DefaultTargetCapacityType": "spot",
        },
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": template,
                "Overrides": [{"InstanceType": instance_type, "AvailabilityZone": zone}],
            }
        ],
        SpotOptions={"AllocationStrategy": "price-capacity-optimized"},
        ExcessCapacityTerminationPolicy="no-termination",
        TagSpecifications=[{"ResourceType": "fleet", "Tags": tags}],
    )
    return str(created["FleetId"])


def _create_table(dynamodb: Any, name: str) -> None:
    keys = {"pk": "HASH", "sk": "RANGE"}
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
    )
    dynamodb.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"}
    )


def _create_queue(sqs: Any, names: Names) -> str:
    dead_url = sqs.create_queue(QueueName=names.dead_queue)["QueueUrl"]
    dead = sqs.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": MAX_RECEIVES})
    attributes = {"RedrivePolicy": redrive, "VisibilityTimeout": f"{VISIBILITY_S:.0f}"}
    return str(sqs.create_queue(QueueName=names.queue, Attributes=attributes)["QueueUrl"])


def _create_rules(events: Any, names: Names) -> None:
    queue_arn = arn_of("sqs", names.region, names.account, names.queue)
    for name, pattern in RULE_PATTERNS:
        rule = f"{names.prefix}-{name}"
        events.put_rule(Name=rule, EventPattern=json.dumps(pattern), State="ENABLED")
        events.put_targets(Rule=rule, Targets=[{"Id": "queue", "Arn": queue_arn}])
    for kind in URGENT_KINDS:  # without a target, like the tick: the delivery reads the rule's state
        events.put_rule(Name=f"{names.prefix}-{kind.rule}", EventPattern=json.dumps(kind.pattern()), State="ENABLED")
    # No target: moto can neither fire a schedule nor invoke a function. The ticker reads the rule's state.
    events.put_rule(Name=names.tick_rule, ScheduleExpression="rate(1 minute)", State="DISABLED")


def _create_bus(events: Any, names: Names) -> None:
    """Events of further cells come over a bus of the deployment's own."""
    events.create_event_bus(Name=names.prefix)
    rule = {"Name": f"{names.prefix}-forwarded", "EventBusName": names.prefix}
    sources = sorted({source for _, pattern in RULE_PATTERNS for source in pattern["source"]})
    events.put_rule(**rule, EventPattern=json.dumps({"account": [names.account], "source": sources}), State="ENABLED")
    queue_arn = arn_of("sqs", names.region, names.account, names.queue)
    events.put_targets(Rule=rule["Name"], EventBusName=names.prefix, Targets=[{"Id": "queue", "Arn": queue_arn}])


def _create_parameters(ssm: Any, prefix: str, deployment: dict[str, Any], images: Iterable[str]) -> None:
    # A slow machine's client asks twice if it takes the first answer for lost.
    ssm.put_parameter(Name=f"/{prefix}/deployment", Value=json.dumps(deployment), Type="String", Overwrite=True)
    values = {image: f"argosy/{image}" for image in images}
    if "python" in values:
        values[f"python/{deployment['python']}"] = values["python"]
    for name, value in values.items():
        ssm.put_parameter(Name=f"/{prefix}/images/{name}", Value=value, Type="String", Overwrite=True)


FILE = "task-definitions.json"


def definitions(
    images_root: Path, names: Names, stop_timeout_s: int, *, gpu_flavour: bool = False
) -> Iterator[dict[str, Any]]:
    """RegisterTaskDefinition requests. gpu_flavour: those with GPUs name that of their image, as on AWS."""
    for path in sorted(images_root.glob(f"*/{FILE}")):
        for family, described in json.loads(path.read_text(encoding="utf-8")).items():
            image = described["image"]
            flavoured = image + GPU_SUFFIX
            if gpu_flavour and described["gpus"] and source_of(images_root, flavoured):
                image = flavoured
            yield _request(family, {**described, "image": image}, names, stop_timeout_s)


def register(ecs: Any, images: Runtime, names: Names, stop_timeout_s: int) -> None:
    for request in definitions(images.root, names, stop_timeout_s, gpu_flavour=images.has_gpus):
        ecs.register_task_definition(**request)


def _request(family: str, described: Mapping[str, Any], names: Names, stop_timeout_s: int) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": OWN_CONTAINER,
        "image": described["image"],
        "cpu": described["cpu"],
        "memory": described["memory"],
        "essential": True,
        "stopTimeout": stop_timeout_s,
        "environment": [{"name": name, "value": value} for name, value in described["environment"].items()],
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": names.log_group,
                "awslogs-region": names.region,
                "awslogs-stream-prefix": "argosy",
            },
        },
    }
    if described["gpus"]:
        container["resourceRequirements"] = [{"type": "GPU", "value": str(described["gpus"])}]
    if "sharedMemory" in described:
        container["linuxParameters"] = {"sharedMemorySize": described["sharedMemory"]}
    return {
        "family": family,
        "networkMode": "bridge",
        "requiresCompatibilities": ["EC2"],
        "containerDefinitions": [container],
    }
