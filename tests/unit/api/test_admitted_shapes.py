"""Does a type of the deployment meet a task's needs: size, GPUs, disk, architecture? And the message if not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.admission.instance_types import shape_faults
from argosy.api.admission.specs import DeploymentLimits, admit
from argosy.model.resources import Resources
from tests.fakes.admission import LIMITS, SHAPES, SOURCES, faults, spec


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            {"gpus": 2},
            [
                "resources.gpus: asks for 2 GPUs, but the largest instance type of this deployment, p3.2xlarge,"
                " has 1 GPU for tasks"
            ],
        ),
        (
            {"vcpus": 17, "memory": 62001},
            [
                "resources.vcpus: asks for 17 vCPUs, but the largest instance type of this deployment, m5.4xlarge,"
                " has 16 vCPUs for tasks",
                "resources.memory: asks for 62001 MiB, but the largest instance type of this deployment,"
                " m5.4xlarge,"
                " has 62000 MiB for tasks",
            ],
        ),
        (
            {"vcpus": 16, "gpus": 1},
            ["resources: no instance type of this deployment has all of this at once"],
        ),
    ],
)
def test_a_task_that_fits_on_no_type_is_refused_naming_the_largest(resources: Any, expected: list[str]) -> None:
    assert faults(spec(resources=resources)) == expected


def test_gpus_without_any_gpu_type_say_so() -> None:
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), {"c5.xlarge": SHAPES["c5.xlarge"]})
    assert faults(spec(resources={"gpus": 1}), limits) == [
        "resources.gpus: asks for 1 GPU, but no instance type of this deployment has any"
    ]


GPU_TYPES = {
    "g4dn.xlarge": Resources(4096, 15000, 1),
    "p3.2xlarge": SHAPES["p3.2xlarge"],
    "p4d.24xlarge": Resources(98304, 1_100_000, 8),
}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            {"gpus": 1, "gpuModel": "H100"},
            ["resources.gpuModel: no instance type of this deployment has H100 GPUs: it has A100, T4, V100"],
        ),
        (
            {"gpus": 1, "gpuMemoryMib": 50_000},
            ["resources.gpuMemoryMib: asks for 50000 MiB a GPU, but this deployment's largest GPUs have 40960 MiB"],
        ),
        (
            {"gpus": 1, "gpuModel": "T4", "gpuMemoryMib": 20_000},
            ["resources.gpuMemoryMib: asks for 20000 MiB a GPU, but this deployment's T4 GPUs have 16384 MiB"],
        ),
        (
            {"gpus": 2, "gpuModel": "T4"},
            [
                "resources.gpus: asks for 2 GPUs, but the largest instance type of this deployment, g4dn.xlarge,"
                " has 1 GPU for tasks"
            ],
        ),
        ({"gpus": 1, "gpuModel": 5}, ["resources.gpuModel: must be text (in quotes), not the number 5"]),
        (
            {"gpus": 1, "gpuMemoryMib": "1"},
            ['resources.gpuMemoryMib: must be a whole number, not the text "1"; write 1 without quotes'],
        ),
    ],
)
def test_gpus_that_no_type_has_are_refused_with_what_there_is(resources: Any, expected: list[str]) -> None:
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), GPU_TYPES)
    assert faults(spec(resources=resources), limits) == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            {"diskGiB": 121},
            ["resources.diskGiB: asks for 121 GiB, but volumes leave tasks 120 GiB at most (setting diskGiB)"],
        ),
        (
            {"diskGiB": 100, "vcpus": 16},
            [
                "resources.vcpus: asks for 16 vCPUs, but the largest instance type of this deployment, p3.2xlarge,"
                " has 8 vCPUs for tasks"
            ],
        ),
        ({"diskGiB": "1"}, ['resources.diskGiB: must be a whole number, not the text "1"; write 1 without quotes']),
        ({"diskGiB": 120}, []),
        ({"architecture": "arm64"}, ["resources.architecture: no instance type of this deployment is arm64"]),
        ({"architecture": "any"}, []),
    ],
)
def test_disk_and_architecture_that_no_type_has_are_refused(resources: Any, expected: list[str]) -> None:
    limits = replace(LIMITS, disks_gib={"c5.xlarge": 30, "m5.4xlarge": 30, "p3.2xlarge": 120})
    data = spec(resources=resources, container={"image": "python:3.12"})
    if expected:
        assert faults(data, limits) == expected
    else:
        admit(data, limits, SOURCES)


def test_a_deployment_of_arm_asks_for_the_architecture() -> None:
    arm = replace(LIMITS, shapes={"c7g.xlarge": Resources(4096, 7500, 0)})
    assert faults(spec(), arm) == ["resources.architecture: no instance type of this deployment is x86_64, the default"]
    assert faults(spec(resources={"architecture": "arm64"}), arm) == [
        "resources.architecture: argosy/digits is built for x86_64"
    ]
    admit(spec(resources={"architecture": "arm64"}, container={"image": "python:3.12"}), arm, SOURCES)


def test_an_image_of_the_deployment_cannot_go_to_instances_of_any_architecture() -> None:
    arm = replace(LIMITS, shapes={**LIMITS.shapes, "c7g.xlarge": Resources(4096, 7500, 0)})
    refusal = ["resources.architecture: argosy/digits is built for x86_64"]
    assert faults(spec(resources={"architecture": "any"}), arm) == refusal
    admit(spec(resources={"architecture": "x86_64"}), arm, SOURCES)
    admit(spec(resources={"architecture": "any"}, container={"image": "python:3.12"}), arm, SOURCES)


def test_gpus_by_model_and_memory_are_taken() -> None:
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), GPU_TYPES)
    admit(spec(resources={"gpus": 8, "gpuModel": "A100", "gpuMemoryMib": 40_000}), limits, SOURCES)
    admit(spec(resources={"gpus": 1, "gpuMemoryMib": 16_384}), limits, SOURCES)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            {"gpuShare": {"memoryMib": 40_000}},
            [
                "resources.gpuShare: asks for 40000 MiB of a GPU, but this deployment's GPUs have 38400 MiB at most to"
                " share"
            ],
        ),
        (
            {"gpuShare": {"memoryMib": 20_000}, "gpuModel": "T4"},
            [
                "resources.gpuShare: asks for 20000 MiB of a GPU, but this deployment's GPUs have 15360 MiB at most to"
                " share"
            ],
        ),
        ({"gpuShare": {"memoryMib": 38_400}}, []),
        ({"gpuShare": {"memoryMib": 15_360}, "gpuModel": "T4"}, []),
        ({"gpuShare": 5}, []),
        ({"gpuShare": {"memoryMib": "1"}}, []),
    ],
)
def test_a_share_that_no_gpu_has_is_refused_with_what_there_is(resources: Any, expected: list[str]) -> None:
    assert [fault.text() for fault in shape_faults(resources, GPU_TYPES)] == expected


def test_a_share_where_no_gpu_is_shared_says_so() -> None:
    found = [fault.text() for fault in shape_faults({"gpuShare": {"memoryMib": 1}}, {"c5.xlarge": SHAPES["c5.xlarge"]})]
    assert found == ["resources.gpuShare: no instance type of this deployment shares GPUs"]


def test_a_share_that_a_gpu_has_is_taken() -> None:
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), GPU_TYPES)
    share = {"memoryMib": 8_000, "maxComputePercent": 25}
    terms = admit(spec(resources={"gpuShare": share}), limits, SOURCES).terms
    assert (terms.gpu_share_mib, terms.gpu_compute_percent, terms.needs.gpus) == (8_000, 25, 0)


def test_a_model_without_any_gpu_type_says_that_there_is_none() -> None:
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), {"c5.xlarge": SHAPES["c5.xlarge"]})
    assert faults(spec(resources={"gpus": 1, "gpuModel": "T4"}), limits) == [
        "resources.gpuModel: no instance type of this deployment has T4 GPUs: it has no GPUs"
    ]
    assert faults(spec(resources={"gpus": 1, "gpuMemoryMib": 1}), limits) == [
        "resources.gpuMemoryMib: no instance type of this deployment has any"
    ]


def test_a_task_as_large_as_the_largest_is_taken() -> None:
    admit(spec(resources={"vcpus": 8, "memory": 60000, "gpus": 1}), LIMITS, SOURCES)


def test_resources_that_are_none_are_not_compared() -> None:
    assert faults(spec(resources={"gpus": "two"})) == ['resources.gpus: must be a whole number, not the text "two"']
    assert faults(spec(resources=[1])) == ["resources: must be a mapping, not a list"]
    assert [each.partition(":")[0] for each in faults(spec(resources={"vcpus": float("inf")}))] == ["resources.vcpus"]
