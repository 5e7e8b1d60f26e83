"""The images that are built: the flavours, the model that the owner includes, and their published names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy.settings.settings import SettingsError, load_settings
from tests.stacks.conftest import ROOT, synthesised
from tests.stacks.templates import Template

pytestmark = pytest.mark.stacks
BASE = {"BASE": "python@sha256:" + "0" * 64}  # the owner's own, by digest
GPU = {"FLAVOUR": "gpu"} | BASE
CPU = {"FLAVOUR": "cpu"} | BASE
MODEL = {"MODEL": "ResNet50"}


@pytest.fixture(scope="session")
def templates() -> dict[str, Template]:
    """Images and examples with a model in the image; cdk-nag's findings make this raise."""
    return synthesised(images=True, examples=True, inferenceModel="ResNet50", baseImage=BASE["BASE"])


def built(template: Template, image: Any) -> dict[str, str]:
    """The build arguments of the asset that an image's address names."""
    (tag,) = re.findall(r":([0-9a-f]{64})", str(image))
    assets = next(path for path in template.folder.glob("*.assets.json") if tag in path.read_text())
    source = json.loads(assets.read_text())["dockerImages"][tag]["source"]
    return dict(source.get("dockerBuildArgs") or {})


def published(template: Template) -> dict[str, dict[str, str]]:
    parameters = template.of_type("AWS::SSM::Parameter").values()
    return {each["Name"].removeprefix("/argosy/images/"): built(template, each["Value"]) for each in parameters}


def test_an_image_is_built_from_its_own_files_and_the_shared_ones(templates: dict[str, Template]) -> None:
    """So that a change of one image's program leaves the others as they are."""
    folder = templates["argosy-images"].folder
    assets = json.loads((folder / "argosy-images.assets.json").read_text())["dockerImages"].values()
    (source,) = [each["source"] for each in assets if each["source"].get("dockerFile") == "digits/Dockerfile"]
    staged = folder / source["directory"]
    assert {str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file()} == {
        "digits/Dockerfile",
        "digits/requirements.txt",
        *(f"digits/digits/{path.name}" for path in (ROOT / "containers" / "digits" / "digits").glob("*.py")),
        "shared/argosy_storage.py",
    }


def test_images_that_come_in_flavours_are_published_once_for_each(templates: dict[str, Template]) -> None:
    assert published(templates["argosy-images"]) == {
        "digits": BASE,
        "python": BASE | {"VERSION": "3.12"},
        "recommender": CPU,
        "recommender-gpu": GPU,
        "sweep": BASE,
        "pytorch-inference": CPU,
        "pytorch-inference-gpu": GPU,
        "pytorch-training": CPU,
        "pytorch-training-gpu": GPU,
        "tensorflow-benchmark": CPU,
        "tensorflow-benchmark-gpu": GPU,
        "tensorflow-inference": CPU | MODEL,
        "tensorflow-inference-gpu": GPU | MODEL,
    }


def test_definitions_with_gpus_run_the_gpu_flavour_and_the_others_do_not(templates: dict[str, Template]) -> None:
    template, found = templates["argosy-examples"], {}
    for definition in template.of_type("AWS::ECS::TaskDefinition").values():
        (container,) = definition["ContainerDefinitions"]
        image = container["Image"]
        image = image["Fn::If"][2] if "Fn::If" in image else image  # without an original DSSTNE image
        found[definition["Family"]] = built(template, image)
        assert (found[definition["Family"]].get("FLAVOUR") == "gpu") == ("ResourceRequirements" in container)
    assert found == {
        "inference": GPU | MODEL,
        "recommender": GPU,
        "tensorflow-cpu": CPU,
        **{f"tensorflow-{gpus}-gpu": GPU for gpus in (1, 4, 8)},
        **{f"pytorch-{gpus}-gpu": GPU for gpus in (4, 8)},
    }


def test_the_models_that_may_be_asked_for_are_those_that_the_image_can_bake() -> None:
    code = "import bake; print(*bake.NETWORKS)"
    folder = ROOT / "containers" / "tensorflow-inference"
    known = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    for name in known.stdout.split():
        assert load_settings({"inferenceModel": name}).inference_model == name
    with pytest.raises(SettingsError) as refused:
        load_settings({"inferenceModel": "ResNet5O"})
    ((path, sentence),) = refused.value.faults
    assert path == "inferenceModel"
    assert all(name in sentence for name in known.stdout.split())


def test_the_templates_are_clean_for_cfn_lint(templates: dict[str, Template]) -> None:
    folder = templates["argosy-images"].folder
    paths = [str(folder / f"argosy-{name}.template.json") for name in ("images", "examples")]
    linter = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([str(linter), "--", *paths], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
