"""The task definitions that local mode registers, read from the files next to the images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.local.containers.engine import EngineRuntime
from argosy.local.containers.images import ImageStore
from argosy.local.deployment import Names, definitions

NAMES = Names("argosy", "123456789012", "us-east-1")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Two images with a definition for CPUs and one for two GPUs each: `tf` comes in flavours, `plain` does not."""
    for name, text in (("tf", "FROM x AS packages\nARG FLAVOUR=cpu\n"), ("plain", "FROM x\n")):
        described = {"image": f"argosy/{name}", "cpu": 1, "memory": 4096, "environment": {}}
        forms = {f"{name}-cpu": {**described, "gpus": 0}, f"{name}-2": {**described, "gpus": 2, "sharedMemory": 1024}}
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(text)
        (tmp_path / name / "task-definitions.json").write_text(json.dumps(forms))
    return tmp_path


def containers(images: Path, *, gpu_flavour: bool) -> dict[str, dict[str, Any]]:
    made = definitions(images, NAMES, 90, gpu_flavour=gpu_flavour)
    return {each["family"]: each["containerDefinitions"][0] for each in made}


def test_where_gpus_are_pretended_everything_is_the_cpu_flavour(images: Path) -> None:
    found = {family: each["image"] for family, each in containers(images, gpu_flavour=False).items()}
    assert found == dict.fromkeys(("tf-cpu", "tf-2"), "argosy/tf") | dict.fromkeys(
        ("plain-cpu", "plain-2"), "argosy/plain"
    )


def test_where_they_are_real_their_definitions_name_the_gpu_flavour(images: Path) -> None:
    found = {family: each["image"] for family, each in containers(images, gpu_flavour=True).items()}
    assert found == {
        "tf-cpu": "argosy/tf",
        "tf-2": "argosy/tf-gpu",
        "plain-cpu": "argosy/plain",
        "plain-2": "argosy/plain",
    }


def test_shared_memory_is_asked_for_where_it_is_described(images: Path) -> None:
    found = containers(images, gpu_flavour=False)
    assert found["tf-2"]["linuxParameters"] == {"sharedMemorySize": 1024}
    assert "linuxParameters" not in found["tf-cpu"]


def test_only_an_engine_on_a_machine_with_gpus_gives_real_ones(tmp_path: Path) -> None:
    runtimes = ImageStore(tmp_path), EngineRuntime("podman", tmp_path), EngineRuntime("podman", tmp_path, has_gpus=True)
    assert [runtime.has_gpus for runtime in runtimes] == [False, False, True]
