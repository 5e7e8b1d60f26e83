"""Definition, overrides, image and host make one container's program, as the ECS agent puts it together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.local.agents.agent import Host
from argosy.local.containers.container import HostSettings, container_of
from argosy.local.containers.images import Image
from argosy.local.containers.process import MARK
from argosy.local.gpus import Gpu

IMAGE = Image(("run",), ("--default",), {"FROM_IMAGE": "1", "A": "image"}, Path("/images/tool"))
AROUND = HostSettings({"AWS_REGION": "us-east-1", "A": "host"}, ("GPU-a", "GPU-b", "GPU-c"))
TASK = "arn:aws:ecs:us-east-1:123456789012:task/argosy/0123"


def _task(gpu_ids: list[str] | None = None, **override: Any) -> dict[str, Any]:
    containers = [{"name": "main", "gpuIds": gpu_ids or []}]
    overrides = {"containerOverrides": [{"name": "main", **override}]} if override else {}
    return {"taskArn": TASK, "containers": containers, "overrides": overrides, "memory": "2048"}


def test_overrides_win_over_the_definition_which_wins_over_the_image() -> None:
    definition = {
        "name": "main",
        "command": ["--defined"],
        "memory": 512,
        "environment": [{"name": "A", "value": "definition"}, {"name": "B", "value": "definition"}],
    }
    task = _task(command=["--overridden"], environment=[{"name": "B", "value": "override"}], memory=256)
    program = container_of(definition, task, IMAGE, AROUND).program
    assert list(program.arguments) == ["run", "--overridden"]
    assert program.memory_mib == 256
    assert {name: value for name, value in program.environment.items() if name != MARK} == {
        "AWS_REGION": "us-east-1",
        "FROM_IMAGE": "1",
        "A": "definition",
        "B": "override",
        "CUDA_VISIBLE_DEVICES": "",
    }


def test_without_own_limit_the_tasks_memory_is_the_limit() -> None:
    assert container_of({"name": "main"}, _task(), IMAGE, AROUND).program.memory_mib == 2048


def test_pinned_gpus_are_named_and_numbered_as_on_the_host() -> None:
    environment = container_of({"name": "main"}, _task(["GPU-c", "GPU-a"]), IMAGE, AROUND).program.environment
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "GPU-c,GPU-a"
    assert environment["CUDA_VISIBLE_DEVICES"] == "2,0"


def test_gpus_of_this_machine_are_shown_by_their_ids_alone() -> None:
    own = Gpu("GPU-c", "2", "NVIDIA L4", 23_034), Gpu("GPU-a", "0", "NVIDIA L4", 23_034)
    around = replace(AROUND, gpu_ids=("GPU-c", "GPU-a"), gpus=own)
    environment = container_of({"name": "main"}, _task(["GPU-a"]), IMAGE, around).program.environment
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert container_of({"name": "main"}, _task(), IMAGE, around).program.environment["CUDA_VISIBLE_DEVICES"] == ""
    image = replace(IMAGE, reference="argosy/tool")
    box = container_of({"name": "main"}, _task(["GPU-a"]), image, around).program.isolation
    assert box is not None
    assert box.gpus == own[1:]


def test_an_engine_gets_the_shared_memory_of_the_definition() -> None:
    image = replace(IMAGE, reference="argosy/tool")
    definition = {"name": "main", "linuxParameters": {"sharedMemorySize": 8192}}
    for described, wanted in ((definition, 8192), ({"name": "main"}, None)):
        box = container_of(described, _task(), image, AROUND).program.isolation
        assert box is not None
        assert box.shared_memory_mib == wanted


def test_the_log_stream_is_named_as_awslogs_names_it() -> None:
    options = {"awslogs-group": "/ecs/argosy/tasks", "awslogs-stream-prefix": "argosy"}
    configuration = {"logDriver": "awslogs", "options": options}
    made = container_of({"name": "main", "logConfiguration": configuration}, _task(), IMAGE, AROUND)
    assert made.log == ("/ecs/argosy/tasks", "argosy/main/0123")
    assert container_of({"name": "main"}, _task(), IMAGE, AROUND).log is None


def test_the_grace_period_is_the_containers_unless_the_host_is_in_a_hurry() -> None:
    definition = {"name": "main", "stopTimeout": 90}
    assert container_of({"name": "main"}, _task(), IMAGE, AROUND).program.stop_timeout_s == 30
    assert container_of(definition, _task(), IMAGE, AROUND).program.stop_timeout_s == 90
    assert container_of(definition, _task(), IMAGE, HostSettings({}, (), 0.5)).program.stop_timeout_s == 0.5


def test_a_host_registers_the_real_size_of_its_type_and_the_same_gpus_each_time() -> None:
    host = Host("i-0123", load_catalogue()["p3.8xlarge"], "us-east-1b")
    resources = {each["name"]: each for each in host.registration("argosy", "ami-1")["totalResources"]}
    assert resources["CPU"]["integerValue"] == 32 * 1024
    assert resources["MEMORY"]["integerValue"] == load_catalogue()["p3.8xlarge"].registered_memory_mib
    assert len(set(resources["GPU"]["stringSetValue"])) == 4
    assert host.gpu_ids == Host("i-0123", load_catalogue()["p3.8xlarge"], "us-east-1c").gpu_ids
    assert set(host.gpu_ids).isdisjoint(Host("i-0124", load_catalogue()["p3.8xlarge"], "us-east-1b").gpu_ids)


def test_a_host_without_gpus_registers_none() -> None:
    names = [
        each["name"]
        for each in Host("i-1", load_catalogue()["c5.large"], "z").registration("c", None)["totalResources"]
    ]
    assert names == ["CPU", "MEMORY"]
