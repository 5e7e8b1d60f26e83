"""An embedded AWS with one tiny image, for tests that launch ECS tasks themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from argosy.local.clients import LocalClients
from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions
from tests.fakes.local_mode import local_aws
from tests.fakes.waiting import until

ECHO = "tests.fakes.lambda_handlers.echo"
# Runs its first argument as Python: each test says in the command what its task does.
DOCKERFILE = 'FROM python:3.12-slim\nRUN pip install boto3\nENV OF_IMAGE=1\nENTRYPOINT ["python", "-u", "-c"]\n'


@dataclass(frozen=True)
class Cloud:
    """The embedded AWS, and the commands of a user of its APIs."""

    aws: LocalAws
    clients: LocalClients

    @property
    def cluster(self) -> str:
        return self.aws.names.prefix

    def buy(self, instance_type: str, count: int = 1, zone: str = "us-east-1a") -> list[str]:
        """Raise the pool's target and wait for that many container instances of the type; their ARNs."""
        ec2, target = self.clients("ec2"), {"TotalTargetCapacity": count, "SpotTargetCapacity": count}
        ec2.modify_fleet(FleetId=self.fleet(f"{instance_type}/{zone}"), TargetCapacitySpecification=target)

        def registered() -> list[str] | None:
            found = self.instances(f"attribute:ecs.instance-type == {instance_type}")
            return found if len(found) >= count else None

        return until(registered)

    def fleet(self, pool: str) -> str:
        """The id of the pool's fleet."""
        tag = {"Key": "argosy:pool", "Value": pool}
        return next(
            str(fleet["FleetId"]) for fleet in self.clients("ec2").describe_fleets()["Fleets"] if tag in fleet["Tags"]
        )

    def instances(self, expression: str) -> list[str]:
        """ARNs of the active container instances that a query finds."""
        ecs = self.clients("ecs")
        found = ecs.list_container_instances(cluster=self.cluster, filter=expression, status="ACTIVE")
        return list(found["containerInstanceArns"])

    def define(self, family: str, **container: Any) -> str:
        """Register a one-container definition that logs to the deployment's group."""
        options = {"awslogs-group": self.aws.names.log_group, "awslogs-region": "us-east-1"}
        defaults = {
            "name": "main",
            "image": "argosy/tool",
            "cpu": 256,
            "memory": 512,
            "logConfiguration": {"logDriver": "awslogs", "options": {**options, "awslogs-stream-prefix": "test"}},
        }
        definition = {**defaults, **container}
        reply = self.clients("ecs").register_task_definition(family=family, containerDefinitions=[definition])
        return str(reply["taskDefinition"]["taskDefinitionArn"])

    def run(self, definition: str, *command: str, instance: str = "", **environment: str) -> str:
        """Launch one task (on the named container instance); its ARN."""
        override = {
            "name": "main",
            "environment": [{"name": name, "value": value} for name, value in environment.items()],
            **({"command": list(command)} if command else {}),
        }
        request = {"cluster": self.cluster, "taskDefinition": definition, "launchType": "EC2"}
        ecs = self.clients("ecs")
        if instance:
            reply = ecs.start_task(
                cluster=self.cluster,
                taskDefinition=definition,
                containerInstances=[instance],
                overrides={"containerOverrides": [override]},
            )
        else:
            reply = ecs.run_task(**request, overrides={"containerOverrides": [override]})
        assert reply["failures"] == []
        return str(reply["tasks"][0]["taskArn"])

    def task(self, arn: str) -> dict[str, Any]:
        """DescribeTasks of one."""
        return dict(self.clients("ecs").describe_tasks(cluster=self.cluster, tasks=[arn])["tasks"][0])

    def reaches(self, arn: str, status: str) -> dict[str, Any]:
        """Wait until the task has this last status."""

        def there() -> dict[str, Any] | None:
            task = self.task(arn)
            return task if task["lastStatus"] == status else None

        return until(there)

    def log(self, arn: str) -> list[str]:
        """The task's log lines."""
        stream = f"test/main/{arn.rpartition('/')[2]}"
        found = self.clients("logs").get_log_events(
            logGroupName=self.aws.names.log_group, logStreamName=stream, startFromHead=True
        )
        return [event["message"] for event in found["events"]]

    def says(self, arn: str, line: str) -> bool:
        """Wait until the task has written this line."""
        logs = self.clients("logs")
        return until(lambda: _has_stream(logs, self.aws.names.log_group, arn) and line in self.log(arn))

    def events(self) -> list[dict[str, Any]]:
        """The messages that have reached the queue since the last call."""
        sqs = self.clients("sqs")
        url = sqs.get_queue_url(QueueName=self.aws.names.queue)["QueueUrl"]
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in messages]


def _has_stream(logs: Any, group: str, arn: str) -> bool:
    prefix = f"test/main/{arn.rpartition('/')[2]}"
    return bool(logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=prefix)["logStreams"])


@contextmanager
def cloud(folder: Path, *, is_alone: bool = False, **options: Any) -> Iterator[Cloud]:
    """Quick boots, short grace, a controller that does nothing: these tests are the controller. is_alone: whether it
    shares nothing with others, so that nothing is left afterwards."""
    tool = folder / "containers" / "tool"
    tool.mkdir(parents=True)
    (tool / "Dockerfile").write_text(DOCKERFILE)
    quick = LocalOptions(
        images_root=tool.parent,
        state_dir=folder / "state",
        boot_s=0.05,
        stop_timeout_s=1.0,
        api_handler=ECHO,
        controller_handler=ECHO,
        processes=8,
    )
    made = replace(quick, **options)
    with LocalAws(options=made) if is_alone else local_aws(made) as aws:
        clients = LocalClients(aws.endpoint_url, aws.region, aws.key)
        try:
            yield Cloud(aws, clients)
        finally:
            clients.close()
