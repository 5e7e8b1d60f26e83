"""One parser reads the API's answers and events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.messages.ecs import UNREADABLE, container_instance_seen, epoch_s, key_of_task, task_seen
from argosy.model.attempts import AttemptKey
from argosy.model.instances import GpuDevice
from tests.builders import CELL, RUN_ID

ARN = f"arn:aws:ecs:{CELL}:123456789012:task/argosy/0123456789abcdef0123456789abcdef"
INSTANCE_ARN = f"arn:aws:ecs:{CELL}:123456789012:container-instance/argosy/fedcba9876543210fedcba9876543210"


def environment(**values: str) -> list[dict[str, str]]:
    ours = {"ARGOSY_RUN_ID": RUN_ID, "ARGOSY_TASK_INDEX": "7", "ARGOSY_TASK_ATTEMPT": "2", "ARGOSY_LAUNCH": "1"}
    return [{"name": name, "value": value} for name, value in {**ours, **values}.items()]


def stopped_event(**changes: Any) -> dict[str, Any]:
    detail = {
        "taskArn": ARN,
        "version": 5,
        "lastStatus": "STOPPED",
        "desiredStatus": "STOPPED",
        "containerInstanceArn": INSTANCE_ARN,
        "startedBy": "argosy-testtest-1",
        "stopCode": "EssentialContainerExited",
        "stoppedReason": "Essential container in task exited",
        "startedAt": "2026-11-21T06:27:33.5Z",
        "stoppedAt": "2026-11-21T06:28:33.5+00:00",
        "overrides": {"containerOverrides": [{"name": "main", "environment": environment()}]},
        "containers": [{"name": "main", "exitCode": 3, "gpuIds": ["GPU-a", "GPU-b"]}],
        "somethingNew": {"of": "tomorrow"},
    }
    return {**detail, **changes}


def test_a_stopped_task_of_an_event_is_read_in_full() -> None:
    seen = task_seen(stopped_event())
    assert (seen.arn, seen.version, seen.last_status, seen.desired_status) == (ARN, 5, "STOPPED", "STOPPED")
    assert seen.started_by == "argosy-testtest-1"
    assert seen.key == AttemptKey(RUN_ID, 7, 2, 1)
    assert (seen.exit_code, seen.stop_code) == (3, "EssentialContainerExited")
    assert seen.stopped_at - seen.started_at == 60
    assert seen.gpu_ids == ("GPU-a", "GPU-b")


def test_the_apis_datetimes_the_events_texts_and_epochs_are_the_same_moment() -> None:
    moment = datetime(2026, 11, 21, 6, 27, 33, tzinfo=UTC)
    assert epoch_s(moment) == epoch_s("2026-11-21T06:27:33Z") == epoch_s(moment.timestamp()) == moment.timestamp()
    assert epoch_s(None) == epoch_s("") == 0.0


def test_everything_but_the_arn_may_be_missing() -> None:
    seen = task_seen({"taskArn": ARN})
    assert (seen.version, seen.last_status, seen.key, seen.exit_code, seen.gpu_ids) == (0, "", None, None, ())
    seen = task_seen({"taskArn": ARN, "containers": None, "overrides": None, "version": None, "stoppedAt": None})
    assert (seen.version, seen.stopped_at, seen.reason) == (0, 0.0, "")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"taskArn": None},
        {"taskArn": "task-1"},
        {"taskArn": ARN, "version": "new"},
        {"taskArn": ARN, "containers": [5]},
        {"taskArn": ARN, "overrides": "none"},
        {"taskArn": ARN, "startedAt": "yesterday"},
    ],
)
def test_fields_of_the_wrong_type_are_a_fault_that_the_table_of_messages_knows(wrong: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        task_seen(wrong)


@pytest.mark.parametrize(
    ("stopped", "container", "reason"),
    [
        ("Essential container in task exited", "", "Essential container in task exited"),
        ("Essential container in task exited", "OutOfMemoryError: killed", "OutOfMemoryError: killed"),
        (
            "CannotPullContainerError: no such image",
            "CannotPullContainerError: no such image",
            "CannotPullContainerError: no such image",
        ),
        ("Task failed to start", "CannotStartContainerError: x", "Task failed to start: CannotStartContainerError: x"),
        ("Host EC2 (instance i-1) terminated.", "", "Host EC2 (instance i-1) terminated."),
    ],
)
def test_the_reason_says_what_ecs_and_the_container_say_once(stopped: str, container: str, reason: str) -> None:
    task = stopped_event(stoppedReason=stopped, containers=[{"name": "main", "reason": container}])
    assert task_seen(task).reason == reason


def test_the_end_of_the_container_that_we_override_counts() -> None:
    sidecar = {"name": "proxy", "exitCode": 143, "reason": "stopped"}
    assert task_seen(stopped_event(containers=[sidecar, {"name": "main", "exitCode": 0}])).exit_code == 0
    assert task_seen(stopped_event(containers=[sidecar, {"name": "main"}])).exit_code is None
    assert task_seen(stopped_event(overrides={}, containers=[{"name": "a"}, sidecar])).exit_code == 143


@pytest.mark.parametrize("broken", [{"ARGOSY_RUN_ID": ""}, {"ARGOSY_LAUNCH": "x"}, {"ARGOSY_TASK_INDEX": "-1"}])
def test_a_task_whose_environment_is_not_ours_has_no_key(broken: dict[str, str]) -> None:
    override = {"name": "main", "environment": environment(**broken)}
    assert key_of_task({"overrides": {"containerOverrides": [override]}}) is None
    assert key_of_task({}) is None


def test_a_container_instance_is_read_with_its_gpus_and_attributes() -> None:
    detail = {
        "containerInstanceArn": INSTANCE_ARN,
        "ec2InstanceId": "i-0123456789abcdef0",
        "version": 3,
        "status": "ACTIVE",
        "agentConnected": True,
        "registeredAt": "2026-11-21T06:27:33Z",
        "attributes": [{"name": "ecs.instance-type", "value": "p3.8xlarge"}, {"name": "ecs.capability.x"}],
        "registeredResources": [
            {"name": "CPU", "type": "INTEGER", "integerValue": 32768},
            {"name": "MEMORY", "type": "INTEGER", "integerValue": 240000},
            {"name": "PORTS", "type": "STRINGSET", "stringSetValue": ["22"]},
            {"name": "GPU", "type": "STRINGSET", "stringSetValue": ["GPU-a", "GPU-b"]},
        ],
    }
    seen = container_instance_seen(json.loads(json.dumps(detail)), CELL)
    assert (seen.instance_id, seen.cell, seen.status, seen.agent_connected) == (
        "i-0123456789abcdef0",
        CELL,
        "ACTIVE",
        True,
    )
    assert (seen.cpu_units, seen.memory_mib, seen.gpu_ids) == (32768, 240000, ("GPU-a", "GPU-b"))
    assert seen.attributes == {"ecs.instance-type": "p3.8xlarge", "ecs.capability.x": ""}
    assert seen.registered_at == epoch_s("2026-11-21T06:27:33Z")


def test_the_gpus_of_an_instance_are_read_with_what_is_free_on_each() -> None:
    devices = [
        {"gpuId": "GPU-a", "sharingMode": "NVIDIA_MPS", "remainingMemoryInMiB": 7_034, "totalMemoryInMiB": 23_034},
        {"gpuId": "GPU-b", "sharingMode": "DEDICATED"},
    ]
    seen = container_instance_seen({"containerInstanceArn": INSTANCE_ARN, "gpuDevices": devices}, CELL)
    assert seen.gpu_devices == (GpuDevice("GPU-a", "NVIDIA_MPS", 7_034, 23_034), GpuDevice("GPU-b", "DEDICATED", 0))
    for wrong in ([{}], [{"gpuId": "a", "remainingMemoryInMiB": -1}], [{"gpuId": "a"}] * 33):
        with pytest.raises(UNREADABLE):
            container_instance_seen({"containerInstanceArn": INSTANCE_ARN, "gpuDevices": wrong}, CELL)


def test_an_agent_without_a_state_counts_as_disconnected() -> None:
    seen = container_instance_seen({"containerInstanceArn": INSTANCE_ARN}, CELL)
    assert not seen.agent_connected
    assert (seen.cpu_units, seen.gpu_ids, seen.registered_at) == (0, (), 0.0)
    with pytest.raises(ValueError, match="not an ARN"):
        container_instance_seen({"containerInstanceArn": 5}, CELL)
