"""Do the events agree with the API, in the order of their versions?"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from argosy.messages.eventbridge import to_event
from argosy.model.events import ContainerInstanceSeen, TaskSeen
from tests.fakes.ecs_clouds import CLUSTER, EcsCloud

TASK = "ECS Task State Change"
INSTANCE = "ECS Container Instance State Change"


def of(cloud: EcsCloud, detail_type: str, arn: str) -> list[dict[str, Any]]:
    """Every event of one resource, in order."""
    assert cloud.events is not None
    return [each for each in cloud.events if each["detail-type"] == detail_type and each["resources"] == [arn]]


def lived(cloud: EcsCloud) -> tuple[str, str]:
    """A task's whole life on a GPU instance: (instance ARN, task ARN)."""
    instance = cloud.register("p3.2xlarge")["containerInstanceArn"]
    cloud.define(gpus=1)
    task = cloud.run(startedBy="plan-1")["tasks"][0]["taskArn"]
    cloud.report(task, "RUNNING")
    cloud.client.stop_task(cluster=CLUSTER, task=task, reason="cancelled")
    cloud.report(task, "STOPPED", exitCode=143)
    return instance, task


def test_every_change_of_a_task_is_an_event_with_a_higher_version(virtual: EcsCloud) -> None:
    _, task = lived(virtual)
    details = [each["detail"] for each in of(virtual, TASK, task)]
    states = [(each["lastStatus"], each["desiredStatus"]) for each in details]
    assert states == [("PENDING", "RUNNING"), ("RUNNING", "RUNNING"), ("RUNNING", "STOPPED"), ("STOPPED", "STOPPED")]
    assert [each["version"] for each in details] == [1, 2, 3, 4]


def test_the_last_event_agrees_with_the_api(virtual: EcsCloud) -> None:
    _, task = lived(virtual)
    detail, shown = of(virtual, TASK, task)[-1]["detail"], virtual.task(task)
    for name in ("version", "lastStatus", "stopCode", "stoppedReason", "startedBy", "group", "taskDefinitionArn"):
        assert detail[name] == shown[name], name
    assert detail["containers"][0]["exitCode"] == 143
    assert detail["containers"][0]["gpuIds"] == shown["containers"][0]["gpuIds"]
    assert datetime.fromisoformat(detail["stoppedAt"]) == shown["stoppedAt"]
    assert "tags" not in detail


def test_an_event_is_json_with_the_outer_fields_of_eventbridge(virtual: EcsCloud) -> None:
    _, task = lived(virtual)
    message = of(virtual, TASK, task)[0]
    assert json.loads(json.dumps(message)) == message
    assert {key: message[key] for key in ("version", "source", "region", "account")} == {
        "version": "0",
        "source": "aws.ecs",
        "region": "us-east-1",
        "account": "123456789012",
    }
    assert message["time"].endswith("Z")
    assert virtual.events is not None
    assert len({each["id"] for each in virtual.events}) == len(virtual.events)


def test_an_instance_tells_of_registration_placement_stop_and_end(virtual: EcsCloud) -> None:
    instance, _ = lived(virtual)
    virtual.client.update_container_instances_state(cluster=CLUSTER, containerInstances=[instance], status="DRAINING")
    virtual.client.deregister_container_instance(cluster=CLUSTER, containerInstance=instance)
    details = [each["detail"] for each in of(virtual, INSTANCE, instance)]
    assert [each["status"] for each in details][-2:] == ["DRAINING", "INACTIVE"]
    versions = [each["version"] for each in details]
    assert versions == sorted(set(versions))
    left = [{each["name"]: each for each in detail["remainingResources"]}["GPU"] for detail in details]
    assert [len(each["stringSetValue"]) for each in left][:2] == [1, 0]
    assert len(left[-1]["stringSetValue"]) == 1


def test_our_own_parsers_read_the_events(virtual: EcsCloud) -> None:
    instance, task = lived(virtual)
    seen = to_event(of(virtual, TASK, task)[-1])
    assert isinstance(seen, TaskSeen)
    assert (seen.last_status, seen.exit_code, len(seen.gpu_ids)) == ("STOPPED", 143, 1)
    host = to_event(of(virtual, INSTANCE, instance)[0])
    assert isinstance(host, ContainerInstanceSeen)
    assert (host.cpu_units, len(host.gpu_ids), host.agent_connected) == (8192, 1, True)


def test_a_refused_call_emits_no_event(virtual: EcsCloud) -> None:
    virtual.register("c5.large")
    virtual.define(container={"cpu": 4096})
    assert virtual.events is not None
    before = len(virtual.events)
    assert virtual.run()["tasks"] == []
    assert len(virtual.events) == before
