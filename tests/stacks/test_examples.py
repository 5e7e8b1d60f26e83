"""The examples' task definitions as CloudFormation makes them, and an original DSSTNE image behind one of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy.settings.settings import load_settings
from stacks import dsstne
from stacks.deployment import stack_names
from tests.stacks.conftest import ROOT, synthesised
from tests.stacks.templates import Template

pytestmark = pytest.mark.stacks
GPUS = {
    "inference": 1,
    "pytorch-4-gpu": 4,
    "pytorch-8-gpu": 8,
    "recommender": 4,
    "tensorflow-1-gpu": 1,
    "tensorflow-4-gpu": 4,
    "tensorflow-8-gpu": 8,
    "tensorflow-cpu": 0,
}


@pytest.fixture(scope="session")
def templates() -> dict[str, Template]:
    """Two cells with the examples; cdk-nag's findings make this raise."""
    return synthesised(stage="dev", cells=["us-east-1", "eu-west-1"], examples=True)


@pytest.fixture(scope="session")
def examples(templates: dict[str, Template]) -> Template:
    return templates["argosy-dev-examples"]


def definitions(template: Template) -> dict[str, dict[str, Any]]:
    found = template.of_type("AWS::ECS::TaskDefinition").values()
    return {str(properties["Family"]).removeprefix("argosy-dev-"): properties for properties in found}


def container(template: Template, name: str) -> dict[str, Any]:
    (found,) = definitions(template)[name]["ContainerDefinitions"]
    return dict(found)


def chosen(value: Any, *, original: bool) -> Any:
    """The value of an Fn::If with and without an image in DsstneImageUri."""
    if isinstance(value, dict) and "Fn::If" in value:
        condition, theirs, ours = value["Fn::If"]
        assert condition == "RunsOriginalDsstne"
        return theirs if original else ours
    return value


def test_each_definition_has_its_gpus_and_an_output(examples: Template) -> None:
    found = {}
    for name in definitions(examples):
        wanted = container(examples, name).get("ResourceRequirements", [{"Type": "GPU", "Value": "0"}])
        found[name] = int(wanted[0]["Value"])
    assert found == GPUS
    outputs = {name.removeprefix("TaskDefinition") for name in examples.body["Outputs"]}
    assert outputs == {"".join(part.capitalize() for part in name.split("-")) for name in GPUS}


def test_families_carry_the_stage_unless_it_is_main(templates: dict[str, Template]) -> None:
    from stacks.examples import family

    assert family(load_settings({}), "tensorflow-1-gpu") == "tensorflow-1-gpu"
    assert family(load_settings({"stage": "dev"}), "tensorflow-1-gpu") == "argosy-dev-tensorflow-1-gpu"


def test_every_region_has_its_own_after_the_stack_that_makes_roles_and_log_group(
    templates: dict[str, Template],
) -> None:
    assert {name for name in templates if name.endswith("-examples")} == {
        "argosy-dev-examples",
        "argosy-dev-eu-west-1-examples",
    }
    assert definitions(templates["argosy-dev-eu-west-1-examples"]).keys() == GPUS.keys()
    manifest = json.loads((templates["argosy-dev"].folder / "manifest.json").read_text())["artifacts"]
    assert "argosy-dev" in manifest["argosy-dev-examples"]["dependencies"]
    assert {"argosy-dev", "argosy-dev-eu-west-1"} <= set(manifest["argosy-dev-eu-west-1-examples"]["dependencies"])


@pytest.mark.parametrize("name", GPUS)
def test_programs_run_as_an_unprivileged_user_on_a_read_only_root(examples: Template, name: str) -> None:
    found = container(examples, name)
    assert chosen(found["User"], original=False) == "10001"
    assert chosen(found["ReadonlyRootFilesystem"], original=False) is True
    assert found["DockerSecurityOptions"] == ["no-new-privileges"]
    assert found["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
    assert "Privileged" not in found
    (scratch,) = found["LinuxParameters"]["Tmpfs"]
    assert (scratch["ContainerPath"], scratch["Size"]) == ("/tmp", max(64, found["Memory"] // 4))


@pytest.mark.parametrize("name", GPUS)
def test_gpus_that_work_together_have_shared_memory_to_meet_in(examples: Template, name: str) -> None:
    """NCCL keeps its buffers in /dev/shm, for which Docker allows 64 MiB. It counts towards the task's memory."""
    found = container(examples, name)
    size_mib = found["LinuxParameters"].get("SharedMemorySize")
    if GPUS[name] < 2:
        assert size_mib is None
    else:
        assert 512 * GPUS[name] <= size_mib <= found["Memory"] // 4


def test_every_log_group_that_a_definition_names_is_made_by_the_deployment(
    templates: dict[str, Template], examples: Template
) -> None:
    """In an original it was made by another template, which its README never deployed."""
    made = {
        properties["LogGroupName"] for properties in templates["argosy-dev"].of_type("AWS::Logs::LogGroup").values()
    }
    for name in GPUS:
        options = container(examples, name)["LogConfiguration"]["Options"]
        assert options["awslogs-group"] in made
        assert options["awslogs-region"] == "us-east-1"


def test_images_are_assets_built_once_for_each_flavour(templates: dict[str, Template], examples: Template) -> None:
    images = {name: str(chosen(container(examples, name)["Image"], original=False)) for name in GPUS}
    assert all("container-assets" in image for image in images.values())
    assert images["tensorflow-1-gpu"] == images["tensorflow-8-gpu"] != images["tensorflow-cpu"]
    assets = json.loads((examples.folder / "argosy-dev-examples.assets.json").read_text())["dockerImages"]
    built = {each["source"]["directory"]: each["source"].get("dockerBuildArgs") for each in assets.values()}
    assert len(built) == 5
    assert sorted(json.dumps(arguments) for arguments in built.values()) == sorted(
        ['{"FLAVOUR": "gpu"}'] * 4 + ['{"FLAVOUR": "cpu"}']
    )
    for folder in built:
        assert not list((examples.folder / folder).rglob("*.md"))  # what .dockerignore keeps out is not in the hash


def test_the_roles_are_the_deployments_own(examples: Template) -> None:
    from tests.stacks.templates import text

    for properties in definitions(examples).values():
        assert text(properties["TaskRoleArn"]).endswith(":role/argosy-dev-task")
        assert text(properties["ExecutionRoleArn"]).endswith(":role/argosy-dev-execution")
    assert not examples.of_type("AWS::IAM::Policy")


def test_no_definition_holds_a_secret(examples: Template) -> None:
    """An original put its operator's keys there."""
    for name in GPUS:
        names = {each["Name"] for each in container(examples, name).get("Environment", [])}
        assert not [each for each in names if "KEY" in each or "SECRET" in each or "TOKEN" in each or "AWS" in each]


def test_local_mode_has_the_same_definitions(examples: Template) -> None:
    from argosy.local.deployment import Names
    from argosy.local.deployment import definitions as local_definitions

    names = Names("argosy", "123456789012", "us-east-1")
    local = {each["family"]: each for each in local_definitions(ROOT / "containers", names, 90)}
    assert local.keys() == GPUS.keys()
    for name, request in local.items():
        (here,), there = request["containerDefinitions"], container(examples, name)
        assert (here["cpu"], here["memory"]) == (there["Cpu"], there["Memory"])
        shared_mib = there["LinuxParameters"].get("SharedMemorySize")
        assert here.get("linuxParameters", {}).get("sharedMemorySize") == shared_mib
        own = {each["name"]: each["value"] for each in here["environment"]}
        assert own.items() <= {each["Name"]: each["Value"] for each in there.get("Environment", [])}.items()


# --- the original behind the same definition --------------------------------------------------------------------------


def test_without_an_image_the_recommender_is_the_program_of_our_own(examples: Template) -> None:
    assert examples.body["Parameters"]["DsstneImageUri"]["Default"] == ""
    found = container(examples, "recommender")
    assert "container-assets" in str(chosen(found["Image"], original=False))
    assert chosen(found["EntryPoint"], original=False) == {"Ref": "AWS::NoValue"}
    assert chosen(found["Command"], original=False) == {"Ref": "AWS::NoValue"}


def test_an_original_image_runs_the_templates_chain_from_the_same_variables(examples: Template) -> None:
    found = container(examples, "recommender")
    assert chosen(found["Image"], original=True) == {"Ref": "DsstneImageUri"}
    assert chosen(found["EntryPoint"], original=True) == ["/bin/bash", "-c"]
    (chain,) = chosen(found["Command"], original=True)
    assert chain == dsstne.CHAIN
    assert chosen(found["ReadonlyRootFilesystem"], original=True) is False
    variables = {each["Name"] for each in found["Environment"]}
    assert {"GENERATEINPUTCMD", "GENERATEOUTPUTCMD", "TRAINCMD", "PREDICTCMD", "TRAININGCONFIGURL"} <= variables


def test_the_chain_really_runs_its_steps_and_writes_the_tasks_part(tmp_path: Path) -> None:
    """In bash, with fakes of the programs that an original image has on PATH."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("curl", "generateNetCDF", "train", "predict", "mpirun", "aws"):
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/calls"\n[ {name} != "$FAILS" ]\n')
        (tools / name).chmod(0o755)
    environment = {
        "PATH": f"{tools}:/usr/bin:/bin",
        "DATAURL": "https://host/a b",
        "TRAININGCONFIGURL": "https://host/config.json",
        "GENERATEINPUTCMD": "generateNetCDF -d gl_input",
        "GENERATEOUTPUTCMD": "generateNetCDF -d gl_output",
        "TRAINCMD": "mpirun -np 4 train -b 256",
        "PREDICTCMD": "predict -k 10",
        "ARGOSY_PART_URI": "s3://b/part",
        "ARGOSY_TASK_ATTEMPT": "2",
        "FAILS": "",
    }
    done = subprocess.run(
        ["/bin/bash", "-c", dsstne.CHAIN], env=environment, capture_output=True, text=True, check=True
    )
    assert "running mpirun -np 4 train -b 256" in done.stdout
    assert (tmp_path / "calls").read_text().splitlines() == [
        "curl -fsSLo data https://host/a b",
        "generateNetCDF -d gl_input",
        "generateNetCDF -d gl_output",
        "curl -fsSLo config https://host/config.json",
        "mpirun -np 4 train -b 256",
        "predict -k 10",
        "aws s3 cp results s3://b/part --metadata argosy-attempt=2",
    ]
    failing = subprocess.run(["/bin/bash", "-c", dsstne.CHAIN], env={**environment, "FAILS": "predict"}, check=False)
    assert failing.returncode == 1
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "predict -k 10"


def test_the_examples_are_stacks_that_destroy_names() -> None:
    settings = load_settings({"examples": True, "images": True, "cells": ["us-east-1", "eu-west-1"]})
    assert stack_names(settings) == [
        "argosy",
        "argosy-eu-west-1",
        "argosy-images",
        "argosy-examples",
        "argosy-eu-west-1-examples",
    ]
    assert stack_names(load_settings({})) == ["argosy"]  # the base deploys without Docker


def test_the_template_is_clean_for_cfn_lint(examples: Template) -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    path = examples.folder / "argosy-dev-examples.template.json"
    done = subprocess.run([str(linter), "--", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
