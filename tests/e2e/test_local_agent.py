"""Tasks really run on the local instances, as they would under an ECS agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.local_cloud import Cloud, cloud
from tests.fakes.waiting import is_gone, until

pytestmark = pytest.mark.e2e

IGNORES_SIGTERM = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready'); time.sleep(3600)"
LISTENS = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
    "print('ready'); time.sleep(3600)"
)


@pytest.fixture(scope="module")
def sky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud(tmp_path_factory.mktemp("cloud")) as made:
        made.buy("c5.2xlarge", 1)
        yield made


@pytest.fixture(scope="module")
def tool(sky: Cloud) -> str:
    return sky.define("tool")


def _main(task: dict[str, Any]) -> dict[str, Any]:
    return dict(task["containers"][0])


@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_of_the_program_is_the_containers(sky: Cloud, tool: str, code: int) -> None:
    task = sky.reaches(sky.run(tool, f"raise SystemExit({code})"), "STOPPED")
    assert _main(task)["exitCode"] == code
    assert task["stopCode"] == "EssentialContainerExited"
    assert task["startedAt"] <= task["stoppedAt"]


def test_all_log_lines_are_there_when_the_task_is_stopped(sky: Cloud, tool: str) -> None:
    arn = sky.run(tool, "import sys\nfor n in range(200): print('line', n)\nprint('oops', file=sys.stderr)")
    sky.reaches(arn, "STOPPED")
    assert sky.log(arn) == [*(f"line {number}" for number in range(200)), "oops"]


def test_the_environment_is_that_of_a_container_and_leads_to_the_embedded_aws(sky: Cloud, tool: str) -> None:
    code = """
import boto3, os
assert "ECS_CONTAINER_METADATA_URI_V4" not in os.environ
boto3.client("s3").put_object(Bucket="argosy-results", Key=os.environ["WHERE"], Body=os.environ["OF_IMAGE"].encode())
print(os.getcwd())
"""
    arn = sky.run(tool, code, WHERE="made/by/task")
    assert _main(sky.reaches(arn, "STOPPED"))["exitCode"] == 0, sky.log(arn)
    made = sky.clients("s3").get_object(Bucket="argosy-results", Key="made/by/task")["Body"].read()
    assert made == b"1"
    assert sky.log(arn) == [str(sky.aws.options.images_root / "tool")]


def test_a_task_over_its_memory_is_killed_and_says_why(sky: Cloud) -> None:
    greedy = sky.define("greedy", memory=100)
    code = "x = bytearray(300 << 20); x[::4096] = b'x' * len(x[::4096])\nimport time; time.sleep(3600)"
    main = _main(sky.reaches(sky.run(greedy, code), "STOPPED"))
    assert (main["exitCode"], main["reason"]) == (137, "OutOfMemoryError: Container killed due to memory usage")


def test_stop_task_asks_with_sigterm(sky: Cloud, tool: str) -> None:
    arn = sky.run(tool, LISTENS)
    assert sky.says(arn, "ready")
    sky.clients("ecs").stop_task(cluster=sky.cluster, task=arn, reason="enough")
    task = sky.reaches(arn, "STOPPED")
    assert (_main(task)["exitCode"], task["stopCode"], task["stoppedReason"]) == (143, "UserInitiated", "enough")


def test_stop_task_kills_after_the_grace_period(sky: Cloud, tool: str) -> None:
    arn = sky.run(tool, IGNORES_SIGTERM)
    assert sky.says(arn, "ready")
    sky.clients("ecs").stop_task(cluster=sky.cluster, task=arn)
    task = sky.reaches(arn, "STOPPED")
    assert _main(task)["exitCode"] == 137
    assert (task["stoppedAt"] - task["stoppingAt"]).total_seconds() >= 0.9


def test_a_program_that_does_not_exist_is_127_with_its_reason(sky: Cloud) -> None:
    task = sky.reaches(sky.run(sky.define("absent", entryPoint=["/no/such/program"])), "STOPPED")
    assert task["stopCode"] == "TaskFailedToStart"
    assert _main(task)["exitCode"] == 127
    assert "CannotStartContainerError" in _main(task)["reason"]
    assert "/no/such/program" in task["stoppedReason"]


@pytest.mark.parametrize("image", ["nginx:latest", "argosy/unknown"])
def test_an_unknown_image_cannot_be_pulled(sky: Cloud, image: str) -> None:
    task = sky.reaches(sky.run(sky.define("unknown", image=image)), "STOPPED")
    assert task["stopCode"] == "TaskFailedToStart"
    assert task["stoppedReason"].startswith("CannotPullContainerError")
    assert "exitCode" not in _main(task)


def test_a_missing_log_group_keeps_the_container_from_starting(sky: Cloud) -> None:
    options = {"awslogs-group": "/no/such/group", "awslogs-region": "us-east-1", "awslogs-stream-prefix": "x"}
    lost = sky.define("lost", logConfiguration={"logDriver": "awslogs", "options": options})
    task = sky.reaches(sky.run(lost, "pass"), "STOPPED")
    assert "ResourceInitializationError" in task["stoppedReason"]


def test_tasks_on_one_instance_hold_disjoint_gpus_and_see_only_theirs(sky: Cloud) -> None:
    sky.buy("g5.12xlarge")
    needs = [{"type": "GPU", "value": "2"}]
    gpu = sky.define("gpu", resourceRequirements=needs)
    code = "import os; print(os.environ['NVIDIA_VISIBLE_DEVICES'], os.environ['CUDA_VISIBLE_DEVICES'])\n"
    arns = [sky.run(gpu, code + LISTENS) for _ in range(2)]
    assert all(sky.says(arn, "ready") for arn in arns)  # both run at once
    for arn in arns:
        sky.clients("ecs").stop_task(cluster=sky.cluster, task=arn)
    tasks = [sky.reaches(arn, "STOPPED") for arn in arns]
    held = [set(_main(task)["gpuIds"]) for task in tasks]
    assert len(held[0] | held[1]) == 4
    seen = [sky.log(task["taskArn"])[0].split() for task in tasks]
    assert [set(ids.split(",")) for ids, _ in seen] == held
    assert sorted(",".join(ordinals for _, ordinals in seen).split(",")) == ["0", "1", "2", "3"]


def test_state_changes_arrive_on_the_queue_in_order(sky: Cloud, tool: str) -> None:
    arn = sky.run(tool, "pass")
    sky.reaches(arn, "STOPPED")
    mine: list[dict[str, Any]] = []

    def stopped() -> bool:
        mine.extend(event["detail"] for event in sky.events() if event["detail"].get("taskArn") == arn)
        return any(detail["lastStatus"] == "STOPPED" for detail in mine)

    until(stopped)
    versions = [detail["version"] for detail in mine]
    assert versions == sorted(set(versions))
    assert [detail["lastStatus"] for detail in mine if detail["lastStatus"] == "RUNNING"]


def test_an_essential_container_that_ends_takes_the_others_along(sky: Cloud) -> None:
    def container(name: str, essential: bool, code: str) -> dict[str, Any]:
        return {"name": name, "image": "argosy/tool", "memory": 128, "essential": essential, "command": [code]}

    registered = sky.clients("ecs").register_task_definition(
        family="pair", containerDefinitions=[container("main", True, "pass"), container("side", False, LISTENS)]
    )
    reply = sky.clients("ecs").run_task(
        cluster=sky.cluster, taskDefinition=registered["taskDefinition"]["taskDefinitionArn"]
    )
    task = sky.reaches(reply["tasks"][0]["taskArn"], "STOPPED")
    codes = {each["name"]: each["exitCode"] for each in task["containers"]}
    assert codes["main"] == 0
    assert codes["side"] in (143, 137)


def test_an_interruption_drains_at_once_and_ends_the_tasks_with_their_instance(sky: Cloud, tool: str) -> None:
    (instance,) = sky.buy("c5.xlarge")
    arn = sky.run(tool, "import os, time; print(os.getpid()); time.sleep(3600)", instance=instance)
    sky.reaches(arn, "RUNNING")
    pid = int(until(lambda: (sky.log(arn) or [""])[0]))
    ecs = sky.clients("ecs")
    described = ecs.describe_container_instances(cluster=sky.cluster, containerInstances=[instance])
    ec2_id = described["containerInstances"][0]["ec2InstanceId"]
    target = {"TotalTargetCapacity": 0, "SpotTargetCapacity": 0}
    sky.clients("ec2").modify_fleet(
        FleetId=sky.fleet("c5.xlarge/us-east-1a"),
        TargetCapacitySpecification=target,
        ExcessCapacityTerminationPolicy="no-termination",
    )
    sky.aws.interrupt(ec2_id, notice_s=1.0)

    def status() -> str:
        found = ecs.describe_container_instances(cluster=sky.cluster, containerInstances=[instance])
        return str(found["containerInstances"][0]["status"])

    until(lambda: status() == "DRAINING")
    task = sky.reaches(arn, "STOPPED")
    assert task["stopCode"] == "TerminationNotice"
    assert ec2_id in task["stoppedReason"]
    assert "exitCode" not in _main(task)
    assert status() == "INACTIVE"
    until(lambda: is_gone(pid))
