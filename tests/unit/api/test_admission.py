"""Which runs a deployment takes: its buckets, types, images, items and the placement language."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from argosy.api.admission import DeploymentLimits, Sources, admit, check_spec, fingerprint, limits_of
from argosy.model.resources import Resources
from argosy.ports import ItemsUnreadable
from argosy.settings.settings import load_settings
from argosy.spec.faults import SpecError
from argosy.spec.parse import parse_spec, to_json
from tests.fakes.api import Definitions

SHAPES = {
    "c5.xlarge": Resources(4096, 7500, 0),
    "m5.4xlarge": Resources(16384, 62000, 0),
    "p3.2xlarge": Resources(8192, 60000, 1),
}
LIMITS = DeploymentLimits("s3://own/", frozenset({"own", "shared"}), SHAPES)


class Images:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve(self, image: str) -> str | None:
        self.asked.append(image)
        return None if image in ("argosy/unknown", "argosy/digits-gpu", "argosy/a:3") else f"registry/{image}@sha256:1"


class NoNamespace:
    """Every image is an address already."""

    def resolve(self, image: str) -> str | None:
        return image


class Items:
    def __init__(self, items: list[Any] | None = None) -> None:
        self.items = items

    def read_items(self, uri: str) -> list[Any]:
        if self.items is None:
            raise ItemsUnreadable(f"{uri} does not exist")
        return self.items


def spec(**fields: Any) -> dict[str, Any]:
    return {"version": 1, "name": "n", "container": {"image": "argosy/digits"}, "array": {"size": 2}, **fields}


def sources(items: Items | None = None, **definitions: Any) -> Sources:
    return Sources(Images(), items or Items(), Definitions(**definitions))


SOURCES = sources()


def faults(data: Any, limits: DeploymentLimits = LIMITS, items: Items | None = None, **definitions: Any) -> list[str]:
    with pytest.raises(SpecError) as refusal:
        admit(data, limits, sources(items, **definitions))
    return [fault.text() for fault in refusal.value.faults]


def test_a_run_within_the_limits_is_taken() -> None:
    data = spec(
        output="s3://shared/x/", placement={"constraints": ["distinctInstance"], "strategy": ["binpack:memory"]}
    )
    admission = admit(data, LIMITS, SOURCES)
    assert admission.image == "registry/argosy/digits@sha256:1"
    assert admission.task_count == 2
    assert admission.form == to_json(parse_spec(data))


@pytest.mark.parametrize(
    ("image", "gpus", "said"),
    [
        ("argosy/classify", 1, True),
        ("argosy/classify", 0, False),
        ("argosy/classify-gpu", 1, False),
        ("argosy/digits", 1, False),  # it has no flavours
        ("elsewhere/classify", 1, False),
    ],
)
def test_an_image_for_cpus_on_gpus_is_taken_with_a_note(image: str, gpus: int, said: bool) -> None:
    data = spec(container={"image": image}, resources={"vcpus": 1, "memory": 1024, "gpus": gpus})
    notes = admit(data, LIMITS, SOURCES).notes
    assert [note.split(":")[0] for note in notes] == ["container.image"] * said
    if said:
        assert "cannot use the 1 GPU of each task: use argosy/classify-gpu" in notes[0]


def test_results_go_to_allowed_buckets_only() -> None:
    assert faults(spec(output="s3://foreign/x/")) == [
        "output: bucket foreign is not one that this deployment may write to: own, shared"
    ]
    assert faults(spec(output="no address"))[0].startswith("output: must be s3://BUCKET/PREFIX/")


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
            ["resources: no instance type of this deployment has this much of all resources at once"],
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
        ({"gpus": 1, "gpuMemoryMib": "1"}, ['resources.gpuMemoryMib: must be a whole number, not the text "1"']),
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
        ({"diskGiB": "1"}, ['resources.diskGiB: must be a whole number, not the text "1"']),
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


def test_a_model_without_any_gpu_type_says_that_there_is_none() -> None:
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), {"c5.xlarge": SHAPES["c5.xlarge"]})
    assert faults(spec(resources={"gpus": 1, "gpuModel": "T4"}), limits) == [
        "resources.gpuModel: no instance type of this deployment has T4 GPUs: it has none at all"
    ]
    assert faults(spec(resources={"gpus": 1, "gpuMemoryMib": 1}), limits) == [
        "resources.gpuMemoryMib: no instance type of this deployment has any"
    ]


def test_a_task_as_large_as_the_largest_is_taken() -> None:
    admit(spec(resources={"vcpus": 8, "memory": 60000, "gpus": 1}), LIMITS, SOURCES)


def test_resources_that_are_none_are_not_compared() -> None:
    assert faults(spec(resources={"gpus": "two"})) == ['resources.gpus: must be a whole number, not the text "two"']
    assert faults(spec(resources=[1])) == ["resources: must be a mapping, not a list"]
    assert faults(spec(resources={"vcpus": float("inf")})) == ["resources.vcpus: must be a finite number"]


HERE = limits_of(load_settings({"attributes": {"c5.*": {"team": "vision"}}}), "own")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"placement": {"constraints": ["attribute:ecs.instance-type == m9.large"]}}, "placement.constraints[0]"),
        ({"placement": {"constraints": ["attribute:ecs.availability-zone == eu-west-1a"]}}, "placement.constraints[0]"),
        ({"placement": {"constraints": ["distinctInstance", "attribute:team == audio"]}}, "placement.constraints[1]"),
        ({"placement": {"constraints": ["attribute:argosy.purchase == on-demand"]}}, "placement.constraints"),
        (
            {
                "placement": {"constraints": ["attribute:ecs.instance-type =~ c5.*"]},
                "resources": {"gpus": 1, "gpuModel": "T4"},
            },
            "placement.constraints",
        ),
    ],
)
def test_a_constraint_that_nothing_can_ever_meet_is_refused(fields: Any, path: str) -> None:
    (found,) = faults(spec(**fields), HERE)
    assert found.startswith(f"{path}: no instance that this deployment could buy meets ")


@pytest.mark.parametrize(
    ("constraints", "capacity", "notes"),
    [
        (["attribute:team == vision", "attribute:ecs.instance-type =~ c5.*"], {}, 0),
        (["attribute:argosy.purchase == on-demand"], {"purchase": "on-demand"}, 0),
        (["attribute:argosy.purchase == on-demand"], {"purchase": "spot-then-on-demand"}, 0),
        (["task:group == database", "runningTasksCount < 3", "agentVersion > 9.9"], {}, 0),
        (["attribute:stack == prod"], {}, 1),
    ],
)
def test_a_constraint_that_something_may_meet_is_taken(constraints: Any, capacity: Any, notes: int) -> None:
    found = admit(spec(placement={"constraints": constraints}, capacity=capacity), HERE, SOURCES)
    assert len(found.notes) == notes
    assert all("attribute:stack" in note for note in found.notes)


def test_where_the_pools_are_not_known_no_constraint_is_judged() -> None:
    admit(spec(placement={"constraints": ["attribute:ecs.instance-type == m9.large"]}), LIMITS, SOURCES)


def test_placement_is_checked_by_the_placement_module_and_located() -> None:
    found = faults(spec(placement={"constraints": ["attribute:ecs.instance-type =~ c5.*", "((("]}))
    assert len(found) == 1
    assert found[0].startswith("placement.constraints[1]: ")
    found = faults(spec(placement={"strategy": ["binpack:colour"]}))
    assert len(found) == 1
    assert found[0].startswith("placement.strategy[0]: ")
    assert faults(spec(placement={"constraints": "x"})) == ['placement.constraints: must be a list, not the text "x"']
    assert faults(spec(placement=1)) == ["placement: must be a mapping, not the number 1"]


def test_soft_constraints_are_checked_and_located_like_hard_ones() -> None:
    soft = [{"expression": "distinctInstance"}, {"expression": "(((", "weight": 2}, {"expression": 3}, 4]
    found = faults(spec(placement={"softConstraints": soft}))
    assert [text.split(": ")[0] for text in found] == [
        "placement.softConstraints[2].expression",
        "placement.softConstraints[3]",
        "placement.softConstraints[1].expression",
    ]
    assert "is not a cluster query" in found[2]
    assert faults(spec(placement={"softConstraints": 1})) == [
        "placement.softConstraints: must be a list, not the number 1"
    ]


def test_a_fitness_function_is_taken_where_the_settings_list_it_and_nowhere_else() -> None:
    chain = {"strategy": ["ours.scores:warm", "binpack:memory"]}
    allowing = limits_of(load_settings({"fitnessFunctions": ["ours.scores:warm"]}), "own")
    assert admit(spec(placement=chain), allowing, SOURCES).form["placement"]["strategy"] == chain["strategy"]
    assert faults(spec(placement=chain)) == [
        "placement.strategy[0]: 'ours.scores:warm' is neither a strategy nor an allowed fitness function."
    ]
    assert faults(spec(placement={"strategy": ["ours.scores:cold"]}), allowing)


def test_far_from_a_deployment_any_name_of_a_function_will_do() -> None:
    check_spec(spec(placement={"strategy": ["ours.scores:warm"]}))
    for name in ("binpack:colour", "spread:colour", "os.system()", "a b:c"):
        with pytest.raises(SpecError):
            check_spec(spec(placement={"strategy": [name]}))


def test_the_example_of_the_placement_page_is_taken() -> None:
    page = (Path(__file__).parents[3] / "docs/placement.md").read_text(encoding="utf-8")
    data = YAML(typ="safe").load(page.split("```yaml\n")[1].split("```")[0])
    admission = admit(data, LIMITS, SOURCES)
    assert admission.form["container"]["hostPorts"] == [8080, "53/udp"]
    assert [each["weight"] for each in admission.form["placement"]["softConstraints"]] == [10, 1]


def test_an_image_that_nothing_stands_behind_is_refused() -> None:
    assert faults(spec(container={"image": "argosy/unknown"})) == [
        'container.image: argosy/unknown is not known to this deployment: `make deploy ARGS="-c images=unknown"` '
        "publishes containers/unknown (with Docker or podman), or name an image of a registry"
    ]


def test_the_flavour_for_gpus_is_published_with_its_folder() -> None:
    [fault] = faults(spec(container={"image": "argosy/digits-gpu"}))
    assert '"-c images=digits"' in fault


def test_a_name_that_no_folder_can_have_gets_no_command() -> None:
    [fault] = faults(spec(container={"image": "argosy/a:3"}))
    assert fault.endswith("no image can be published under that name")


def test_only_names_that_can_be_images_are_looked_up() -> None:
    images = Images()
    for container in ({"image": "a b"}, {}, "x"):
        with pytest.raises(SpecError):
            admit(spec(container=container), LIMITS, Sources(images, Items(), Definitions()))
    assert images.asked == []


def test_a_task_definition_needs_no_image() -> None:
    data = {"version": 1, "name": "n", "taskDefinition": "f", "array": {"size": 2}}
    assert admit(data, LIMITS, SOURCES).image == ""
    assert admit({**data, "container": {"command": ["x"]}}, LIMITS, SOURCES).image == ""


OWN = {"version": 1, "name": "n", "taskDefinition": "train:7", "array": {"size": 2}}


def test_a_family_that_the_owner_does_not_list_is_refused() -> None:
    families = limits_of(load_settings({"taskDefinitions": ["train-*", "serve"]}), "own").families
    assert families[0] == "argosy-*"
    limits = replace(LIMITS, families=families)
    for allowed in ("serve:3", "train-big", "argosy-4-gpu", "recommender"):
        admit({**OWN, "taskDefinition": allowed}, limits, SOURCES)
    for refused in ("train:7", "serve2", "payroll"):
        [fault] = faults({**OWN, "taskDefinition": refused}, limits)
        assert fault.startswith("taskDefinition: ")
        assert "is not a family that this deployment runs (argosy-*, " in fault
        assert fault.endswith("train-*, serve): its owner lists others in the setting taskDefinitions")


def test_a_definition_that_reaches_the_host_is_refused_with_every_reason() -> None:
    volume = {"name": "v", "host": {"sourcePath": "/"}}
    found = faults(OWN, train={"networkMode": "host", "volumes": [volume], "containerDefinitions": [{"name": "main"}]})
    assert found == [
        "taskDefinition: train:7 shares a namespace with its host (networkMode host), which runs may not",
        "taskDefinition: train:7 mounts a path of its host (volume v: /), which runs may not",
    ]


def test_a_definition_that_nobody_registered_is_refused() -> None:
    assert faults(OWN, train=None) == ["taskDefinition: train:7 is not registered in this account and Region"]


ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/digits:1"


@pytest.mark.parametrize(
    ("image", "reached"),
    [
        (ECR, True),
        (ECR.replace("us-east-1", "eu-west-1"), False),
        ("public.ecr.aws/amazonlinux/amazonlinux:2023", False),
        ("python:3.12", False),
    ],
)
def test_from_private_subnets_an_image_is_pulled_from_ecr_in_its_region_or_refused(image: str, reached: bool) -> None:
    closed = replace(LIMITS, registry_region="us-east-1", families=("*",))
    definition = {"train": {"containerDefinitions": [{"name": "main", "image": image}]}}
    runs = [(spec(container={"image": image}), {}), ({**OWN, "taskDefinition": "train:7"}, definition)]
    for data, registered in runs:
        given = Sources(NoNamespace(), Items(), Definitions(**registered))
        admit(data, LIMITS, given)
        if reached:
            admit(data, closed, given)
            continue
        with pytest.raises(SpecError, match="reach ECR in us-east-1 and no other registry; copy it there"):
            admit(data, closed, given)


def test_a_definition_is_not_looked_up_by_a_name_that_is_none() -> None:
    [fault] = faults({**OWN, "taskDefinition": "a b"}, train=None)
    assert fault.startswith("taskDefinition: ")


def test_the_items_of_a_file_are_counted_and_checked() -> None:
    data = spec(array={"itemsFrom": "s3://bucket/items"}, container={"image": "a", "command": ["${item.k}"]})
    assert admit(data, LIMITS, sources(Items([{"k": 1}, {"k": 2}, {"k": 3}]))).task_count == 3
    assert faults(data, items=Items([{"k": 1}, {}, 7])) == [
        "array.itemsFrom[1]: has no k, which container.command[0] uses",
        "array.itemsFrom[2]: must be a mapping with k, which container.command[0] uses",
    ]
    assert faults(data, items=Items([{"k": float("nan")}])) == ["array.itemsFrom[0].k: must be a finite number"]
    assert faults(data, items=Items([])) == ["array.itemsFrom: has 0 items; a run has 1 to 1000000 tasks"]
    assert faults(data, items=Items(None)) == ["array.itemsFrom: s3://bucket/items does not exist"]
    assert faults(data, items=Items([{"k": "x" * 9000}]))[0].startswith(
        "container.command: leads to overrides of up to"
    )


def test_faults_of_the_spec_the_deployment_and_the_image_come_together() -> None:
    data = spec(
        nmae="x",
        container={"image": "argosy/unknown"},
        output="s3://foreign/",
        resources={"gpus": 9},
        array={"size": 0},
    )
    assert [text.split(": ")[0] for text in faults(data)] == [
        "array.size",
        "nmae",
        "output",
        "resources.gpus",
        "container.image",
    ]


def test_far_from_any_deployment_only_the_spec_is_checked() -> None:
    check_spec(spec(output="s3://foreign/", resources={"gpus": 16}))
    with pytest.raises(SpecError):
        check_spec(spec(placement={"constraints": ["((("]}))
    with pytest.raises(SpecError):
        check_spec(spec(output="s3://foreign/"), LIMITS)


def test_the_limits_of_a_deployment_are_its_offered_types_and_buckets() -> None:
    settings = load_settings(
        {"instanceTypes": {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]}, "outputBuckets": ["shared"]}
    )
    limits = limits_of(settings, "own")
    assert limits.default_output == "s3://own/"
    assert limits.buckets == {"own", "shared"}
    assert set(limits.shapes) == {"c5.large", "g5.xlarge"}
    assert limits.shapes["g5.xlarge"].gpus == 1
    assert 0 < limits.shapes["c5.large"].memory_mib < 4096


def test_a_fingerprint_does_not_depend_on_order_and_does_on_content() -> None:
    one, other = to_json(parse_spec(spec())), to_json(parse_spec(dict(reversed(list(spec().items())))))
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint({**one, "name": "m"})


def test_cells_that_the_deployment_does_not_have_are_all_named() -> None:
    limits = replace(LIMITS, cells=("us-east-1", "eu-west-1"))
    with pytest.raises(SpecError) as refusal:
        check_spec(spec(capacity={"cells": ["eu-west-1", "us-west-2", "ap-south-1"]}), limits)
    assert [fault.text() for fault in refusal.value.faults] == [
        "capacity.cells[1]: us-west-2 is not a cell of this deployment (us-east-1, eu-west-1)",
        "capacity.cells[2]: ap-south-1 is not a cell of this deployment (us-east-1, eu-west-1)",
    ]


@pytest.mark.parametrize(
    ("deadline", "fault"),
    [
        ("2026-11-21T18:00:00Z", "2026-11-21T18:00:00Z is in the past"),
        ("2029-01-01T00:00:00+01:00", "2029-01-01T00:00:00+01:00 is more than 366 days from now"),
    ],
)
def test_a_deadline_that_is_over_or_years_away_is_refused(deadline: str, fault: str) -> None:
    now = 1_800_000_000.0  # January 2027
    with pytest.raises(SpecError) as refusal:
        check_spec(spec(capacity={"deadline": deadline}), LIMITS, now)
    assert [each.text() for each in refusal.value.faults] == [f"capacity.deadline: {fault}"]
    assert check_spec(spec(capacity={"deadline": deadline}), LIMITS).capacity.deadline == deadline
    assert check_spec(spec(capacity={"deadline": "2027-01-15T12:00:00Z"}), LIMITS, now)


def test_a_deadline_without_a_purchase_means_spot_then_on_demand() -> None:
    given = {"deadline": "2h"}
    assert to_json(check_spec(spec(capacity=given)))["capacity"]["purchase"] == "spot-then-on-demand"
    given = {"deadline": "2h", "purchase": "on-demand"}
    assert to_json(check_spec(spec(capacity=given)))["capacity"]["purchase"] == "on-demand"
