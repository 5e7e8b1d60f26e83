"""What a spec may say about GPUs, and the one sentence for each mistake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.admission.specs import admit, check_spec
from argosy.aws.ecs_requests import UnusableDefinition, needs_of_definition
from argosy.model.resources import Resources
from tests.fakes.admission import LIMITS, SOURCES, faults, spec

TYPES = {
    "g4dn.xlarge": Resources(4096, 15_000, 1),
    "g5.xlarge": Resources(4096, 15_000, 1),
    "g5.12xlarge": Resources(49_152, 180_000, 4),
}
OF_ALL = replace(LIMITS, shapes=TYPES)
SHARE = {"memoryMib": 8000}


@pytest.mark.parametrize(
    ("resources", "sentence"),
    [
        ({"gpus": 1, "gpuShare": SHARE}, "gpuShare: cannot be combined with resources.gpus: give one of them"),
        ({"gpus": "ALL", "gpuShare": SHARE}, "gpuShare: cannot be combined with resources.gpus: give one of them"),
        ({"gpuShare": {"memoryMib": 0}}, "gpuShare.memoryMib: must be at least 1"),
        (
            {"gpuShare": {"memoryMib": 90_000}},
            "gpuShare: asks for 90000 MiB of a GPU, but this deployment's GPUs have 21457 MiB at most to share",
        ),
        ({"gpuShare": {**SHARE, "maxComputePercent": 101}}, "gpuShare.maxComputePercent: must be at most 100"),
        (
            {"gpuShare": {"memoryMib": "8G"}},
            'gpuShare.memoryMib: must be a whole number, not the text "8G"; write 8192 (MiB)',
        ),
        (
            {"gpuShare": 8000},
            "gpuShare: must be a mapping, not the number 8000; write {memoryMib: 8000}: it is MiB of one GPU's memory",
        ),
        (
            {"gpus": 0.25},
            "gpus: asks for 0.25 of a GPU, but the instance types of this deployment have whole GPUs only",
        ),
        (
            {"gpus": 0.3},
            "gpus: 0.3 is no part of a GPU that EC2 offers: 0.125, 0.25 or 0.5; or write gpuShare: {memoryMib: 8000}"
            " for a part of any",
        ),
        (
            {"gpus": "A10G:0.25"},
            'gpus: must be a whole number, not the text "A10G:0.25"; write gpuModel: A10G and gpuShare: {memoryMib:'
            " 8000}",
        ),
        (
            {"gpus": "L4:0.25"},
            'gpus: must be a whole number, not the text "L4:0.25"; write gpuModel: L4 and gpus: 0.25',
        ),
        (
            {"gpus": "A10G:2"},
            'gpus: must be a whole number, not the text "A10G:2"; write gpuModel: A10G and gpus: 2',
        ),
        ({"gpus": "all"}, 'gpus: must be a whole number, not the text "all"; write ALL'),
        ({"gpus": "some"}, 'gpus: must be a whole number, not the text "some"'),
        ({"gpus": -1}, "gpus: must be at least 0"),
        ({"gpus": 17}, "gpus: must be at most 16"),
        ({"accelerators": "A10G:1"}, "accelerators: unknown field; did you mean gpus?"),
        (
            {"gpus": "ALL"},
            "gpus: ALL needs instance types with one number of GPUs, but this deployment's have 1 GPU (g4dn.xlarge),"
            " 4 GPUs (g5.12xlarge): give a number, or choose among them by gpuModel, gpuMemoryMib, vcpus or memory",
        ),
        ({"gpus": "ALL", "vcpus": 500}, "gpus: no instance type of this deployment has GPUs for such a task"),
        ({"gpus": "ALL", "vcpus": "x"}, 'vcpus: must be a number, not the text "x"'),
        (
            {"gpus": "ALL", "gpuModel": "H100"},
            "gpuModel: no instance type of this deployment has H100 GPUs: it has A10G, T4",
        ),
    ],
)
def test_each_mistake_about_gpus_is_told_in_one_sentence(resources: dict[str, Any], sentence: str) -> None:
    found = faults(spec(resources=resources), OF_ALL)
    assert found[:1] == [f"resources.{sentence}"]
    assert [each for each in found[1:] if not each.startswith("resources.vcpus: asks")] == []


@pytest.mark.parametrize(("kind", "its"), [("p3.2xlarge", "V100"), ("g6f.2xlarge", "parts of L4")])
def test_a_share_of_gpus_that_cannot_be_shared_is_refused_with_their_model(kind: str, its: str) -> None:
    limits = replace(LIMITS, shapes={kind: Resources(8192, 30_000, 1)})
    sentence = f"no instance type of this deployment shares GPUs: its GPUs are {its}, which cannot be shared"
    assert faults(spec(resources={"gpuShare": SHARE}), limits) == [f"resources.gpuShare: {sentence}"]


def test_whole_gpus_and_parts_of_one_are_told_apart() -> None:
    types = {"g6f.2xlarge": Resources(8192, 30_000, 1), "c5.xlarge": Resources(4096, 7500, 0)}
    only_parts, has = replace(LIMITS, shapes=types), "but the instance types of this deployment have 0.25"
    assert faults(spec(resources={"gpus": 1}), only_parts) == [f"resources.gpus: asks for whole GPUs, {has}"]
    assert faults(spec(resources={"gpus": 0.5}), only_parts) == [f"resources.gpus: asks for 0.5 of a GPU, {has}"]
    terms = admit(spec(resources={"gpus": 0.25}), only_parts, SOURCES).terms
    assert (terms.needs.gpus, terms.gpu_part) == (1, "0.25")


@pytest.mark.parametrize(("resources", "gpus"), [({"vcpus": 8}, 4), ({"memory": 100_000}, 4), ({"gpuModel": "T4"}, 1)])
def test_all_is_the_number_of_gpus_of_the_types_that_hold_the_task(resources: dict[str, Any], gpus: int) -> None:
    admitted = admit(spec(resources={"gpus": "ALL", **resources}), OF_ALL, SOURCES)
    assert admitted.terms.needs.gpus == gpus
    assert admitted.form["resources"]["gpus"] == gpus


def test_a_spec_that_is_checked_without_a_deployment_keeps_all() -> None:
    found = check_spec(spec(resources={"gpus": "ALL"})).resources
    assert found is not None
    assert found.gpus == "ALL"


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        ([{"sharingStrategy": {"nvidiaMps": {"memory": 4000}}}, {"sharingStrategy": {"nvidiaMps": {"memory": 8000}}}],
         "container c0 shares a GPU: name its image and resources.gpuShare"),
        ([{"value": "ALL"}], "container c0 asks for GPU 'ALL': give a whole number"),
        ([{"value": "0.25"}], "container c0 asks for GPU '0.25': give a whole number"),
    ],
)  # fmt: skip
def test_a_task_definition_with_other_forms_of_gpus_is_refused_with_its_container(
    needs: list[dict[str, Any]], sentence: str
) -> None:
    containers = [
        {"name": f"c{number}", "memory": 100, "resourceRequirements": [{"type": "GPU", **need}]}
        for number, need in enumerate(needs)
    ]
    with pytest.raises(UnusableDefinition, match=sentence):
        needs_of_definition({"containerDefinitions": containers})
