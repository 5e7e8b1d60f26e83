"""Which images and task definitions a deployment takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.api.admission.specs import Sources, admit, limits_of
from argosy.settings.settings import load_settings
from argosy.spec.faults import SpecError
from tests.fakes.admission import LIMITS, SOURCES, Images, Items, faults, spec
from tests.fakes.api import Definitions


class NoNamespace:
    """Every image is an address already."""

    def resolve(self, image: str) -> str | None:
        return image


def test_an_image_that_does_not_exist_is_refused() -> None:
    assert faults(spec(container={"image": "argosy/unknown"})) == [
        'container.image: this deployment has no image argosy/unknown: `make deploy ARGS="-c images=unknown"` '
        "publishes containers/unknown (with Docker or podman), or name an image of a registry"
    ]


def test_the_flavour_for_gpus_is_published_with_its_folder() -> None:
    [fault] = faults(spec(container={"image": "argosy/digits-gpu"}))
    assert '"-c images=digits"' in fault


def test_a_name_that_no_folder_can_have_gets_no_command() -> None:
    [fault] = faults(spec(container={"image": "argosy/a:3"}))
    assert fault.endswith("none can be published under that name")


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


def test_what_local_mode_ignores_of_a_definition_is_noted() -> None:
    sources = replace(SOURCES, local_notes=lambda form: [f"ignores fields of {form['taskDefinition']}"])
    assert "ignores fields of train:7" in admit(OWN, LIMITS, sources).notes


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
        assert fault.endswith("train-*, serve); its owner can add others to the setting taskDefinitions")


def test_a_definition_that_reaches_the_host_is_refused_with_every_reason() -> None:
    volume = {"name": "v", "host": {"sourcePath": "/"}}
    found = faults(OWN, train={"networkMode": "host", "volumes": [volume], "containerDefinitions": [{"name": "main"}]})
    assert found == [
        "taskDefinition: train:7 shares a namespace with its host (networkMode host), which runs may not",
        "taskDefinition: train:7 mounts a path of its host (volume v: /), which runs may not",
    ]


def test_an_unregistered_definition_is_refused() -> None:
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
        with pytest.raises(SpecError, match="reach only ECR in us-east-1: copy the image there"):
            admit(data, closed, given)


def test_an_invalid_definition_name_is_not_looked_up() -> None:
    [fault] = faults({**OWN, "taskDefinition": "a b"}, train=None)
    assert fault.startswith("taskDefinition: ")
