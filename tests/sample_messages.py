"""One message of each kind that the controller listens to, as EventBridge sends it."""

from __future__ import annotations

from typing import Any

from argosy.messages.eventbridge import MESSAGE_KINDS
from tests.builders import RUN_ID, task_arn

ACCOUNT = "123456789012"
TASK: dict[str, Any] = {
    "taskArn": task_arn(1),
    "clusterArn": f"arn:aws:ecs:us-east-1:{ACCOUNT}:cluster/argosy",
    "containerInstanceArn": f"arn:aws:ecs:us-east-1:{ACCOUNT}:container-instance/argosy/{1:032x}",
    "version": 7,
    "lastStatus": "STOPPED",
    "desiredStatus": "STOPPED",
    "stopCode": "EssentialContainerExited",
    "stoppedReason": "Essential container in task exited",
    "startedBy": "argosy-testtest-1",
    "startedAt": "2027-01-15T08:00:00Z",
    "stoppedAt": "2027-01-15T08:01:00Z",
    "containers": [{"name": "main", "exitCode": 1, "reason": "no", "gpuIds": ["GPU-1-0"]}],
    "overrides": {
        "containerOverrides": [
            {
                "name": "main",
                "environment": [
                    {"name": "ARGOSY_RUN_ID", "value": RUN_ID},
                    {"name": "ARGOSY_TASK_INDEX", "value": "0"},
                    {"name": "ARGOSY_TASK_ATTEMPT", "value": "1"},
                    {"name": "ARGOSY_LAUNCH", "value": "0"},
                ],
            }
        ]
    },
}
INSTANCE: dict[str, Any] = {
    "containerInstanceArn": f"arn:aws:ecs:us-east-1:{ACCOUNT}:container-instance/argosy/{1:032x}",
    "ec2InstanceId": f"i-{1:017x}",
    "version": 9,
    "status": "ACTIVE",
    "agentConnected": True,
    "registeredAt": "2027-01-15T08:00:00Z",
    "registeredResources": [
        {"name": "CPU", "type": "INTEGER", "integerValue": 4096},
        {"name": "MEMORY", "type": "INTEGER", "integerValue": 7000},
        {"name": "GPU", "type": "STRINGSET", "stringSetValue": ["GPU-1-0"]},
    ],
    "remainingResources": [
        {"name": "CPU", "type": "INTEGER", "integerValue": 4096},
        {"name": "MEMORY", "type": "INTEGER", "integerValue": 7000},
    ],
    "attributes": [{"name": "ecs.instance-type", "value": "c5.xlarge"}],
}
HOST = {"instance-id": f"i-{1:017x}", "state": "running", "instance-action": "terminate"}
DETAILS = {
    "task-state": TASK,
    "container-instance-health": {**INSTANCE, "overallStatus": "IMPAIRED"},
    "container-instance-state": INSTANCE,
    "fleet-error": {"sub-type": "x"},
    "fleet-information": {"sub-type": "launchSpecUnusable", "description": "The image id does not exist"},
}
MESSAGES = [
    {
        "source": kind.source,
        "detail-type": kind.detail_type,
        "region": "us-east-1",
        "time": "2027-01-15T08:00:00Z",
        "resources": ["arn:aws:ec2:us-east-1:123456789012:fleet/fleet-1"],
        "detail": DETAILS.get(kind.rule, HOST),
    }
    for kind in MESSAGE_KINDS
]
