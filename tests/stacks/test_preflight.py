"""What `make deploy` checks and prints before it begins, for its arguments."""

from __future__ import annotations

import subprocess
from pathlib import Path

import aws_cdk as cdk
import pytest

from argosy.settings.settings import Settings, SettingsError, load_settings
from stacks import preflight
from stacks.arguments import settings_of
from stacks.images import ImagesStack
from stacks.stays import context_of

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.stacks


def test_the_doctor_is_asked_about_all_settings_and_the_profile_of_the_deployment() -> None:
    settings = load_settings({"stage": "dev", "cells": "us-east-1,eu-west-1", "maxInstances": 7})
    words = preflight.command(settings, "work")
    assert words[1:4] == ["doctor", "--account", "--fix"]
    assert [*words[4:7], *words[8:]] == ["--stage", "dev", "--settings", "--profile", "work"]
    assert Settings.from_json(words[7]) == settings


def test_without_leave_of_the_doctor_only_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert preflight.main(["--ask=no", "-c", "engine=podman", "--require-approval", "never"]) == 0
    assert capsys.readouterr().out.startswith("Publishes argosy/digits, built by podman.")


def test_what_the_doctor_says_decides(without_credentials: None, capfd: pytest.CaptureFixture[str]) -> None:
    """Without credentials it stops."""
    assert preflight.main(["--ask=yes", "-c", "engine="]) == 3
    said = capfd.readouterr()
    assert "No AWS credentials were found" in said.out
    assert "CHECKED_ACCOUNT=no" in said.err


def test_faulty_settings_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert preflight.main(["-c", "maxInstances=0"]) == 2
    assert "maxInstances" in capsys.readouterr().err


def test_one_instance_type_is_named_as_in_the_stack_that_people_know() -> None:
    given = ("-c", "gpuInstanceType=p3.16xlarge", "-c", "cpuInstanceType=c5.9xlarge")
    types = settings_of(cdk.App(context=context_of(given))).instance_types
    assert (types.cpu, types.gpu) == (("c5.9xlarge",), ("p3.16xlarge",))
    assert settings_of(cdk.App(context=context_of(given[:2]))).instance_types.cpu == Settings().instance_types.cpu
    with pytest.raises(SettingsError, match=r"instanceTypes\.gpu.*c5\.large' has no GPU"):
        settings_of(cdk.App(context=context_of(("-c", "gpuInstanceType=c5.large"))))


def test_the_cdks_own_name_of_the_qualifier_is_the_setting() -> None:
    given = context_of(("-c", "@aws-cdk/core:bootstrapQualifier=company"))
    assert settings_of(cdk.App(context=given)).bootstrap_qualifier == "company"
    assert settings_of(cdk.App(context=given | {"bootstrapQualifier": "own"})).bootstrap_qualifier == "own"


def images_of(*arguments: str) -> tuple[str, ...]:
    return settings_of(cdk.App(context=context_of(arguments))).images


def test_by_default_the_readmes_image_is_published_if_an_engine_answers() -> None:
    assert images_of("-c", "engine=docker") == ("digits",)
    assert images_of("-c", "engine=") == ()
    assert images_of("-c", "engine=docker", "-c", "images=sweep,digits") == ("sweep", "digits")
    assert images_of("-c", "engine=docker", "-c", "images=false") == ()


@pytest.mark.parametrize(
    ("images", "engine", "says"),
    [
        ("true", "docker", "Publishes every image, built by docker."),
        ("digits", "", "Publishes argosy/digits, built by docker."),
        ("false", "docker", "Publishes no image, as the settings say."),
        ("false", "", 'make deploy ARGS="-c images=digits"'),
    ],
)
def test_it_says_which_images_runs_will_find(images: str, engine: str, says: str) -> None:
    assert says in preflight.images_note(load_settings({"images": images}), engine)


def test_an_image_without_a_folder_stops_synth() -> None:
    with pytest.raises(LookupError, match="digest is not a folder of containers/; known: digits"):
        ImagesStack(cdk.App(), "argosy-images", settings=load_settings({"images": "digest"}))


def test_the_deployment_and_its_end_see_the_same_images() -> None:
    """Destroy needs no engine, but the stack that one made."""
    makefile = (ROOT / "Makefile").read_text()
    for target, engine in (("deploy", "$(ENGINE)"), ("destroy", "any")):
        recipe = makefile.partition(f"\n{target}:")[2].partition("\n\n")[0].splitlines()[1:]
        assert [line for line in recipe if f"-c engine={engine}" not in line and line != "\t$(DEPLOY)"] == []


@pytest.mark.parametrize("target", ["deploy", "roll"])
def test_a_deployment_prints_what_it_publishes_or_does_not_begin(target: str) -> None:
    words = ["make", "--dry-run", target, "STAGE=dev", "ENGINE=podman", "ARGS=-c images=sweep"]
    recipe = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = [each for each in recipe.replace("\\\n", "").splitlines() if "cdk deploy" in each]
    given = "-c stage=dev -c engine=podman"
    assert f"python -m stacks.published_images {given} -c images=sweep) && CDK_DOCKER=podman " in line
    assert line.endswith(f'{given} -c "published=$published" -c images=sweep')
