"""No deployment removes images that an earlier one published, unless its owner says so."""

from __future__ import annotations

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk.assertions import Template
from moto import mock_aws

from argosy.settings.settings import Settings, load_settings
from stacks import published_images
from stacks.arguments import settings_of
from stacks.images import ImagesStack
from stacks.stays import context_of

pytestmark = pytest.mark.stacks
ENGINE = ("-c", "engine=docker")


def there(*names: str) -> published_images.Ask:
    return lambda settings: list(names)


def never_asked(settings: Settings) -> list[str]:
    raise AssertionError("the deployment must not be asked")


def deployed(said: str, *arguments: str) -> set[str]:
    """Names of the parameters in the template of a deployment with what `stacks.published_images` said."""
    settings = settings_of(cdk.App(context=context_of(["-c", f"published={said.strip()}", *arguments])))
    found = Template.from_stack(ImagesStack(cdk.App(), "argosy-images", settings=settings))
    parameters = found.find_resources("AWS::SSM::Parameter").values()
    return {each["Properties"]["Name"].rpartition("/")[2] for each in parameters}


@pytest.mark.parametrize("images", [(), ("-c", "images=sweep")])
def test_what_was_published_stays_published(images: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    before = {"digits", "sweep", "tensorflow-inference", "tensorflow-inference-gpu"}
    assert published_images.main([*ENGINE, *images], there(*before)) == 0
    said = capsys.readouterr()
    assert said.out == "digits,sweep,tensorflow-inference\n"
    assert "argosy/tensorflow-inference" in said.err
    assert deployed(said.out, *ENGINE, *images) == before


def test_one_more_image_is_published_in_addition_to_the_published_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """The command in the refusal of a run that names argosy/sweep."""
    assert published_images.main([*ENGINE, "-c", "images=sweep"], there("digits")) == 0
    assert deployed(capsys.readouterr().out, *ENGINE, "-c", "images=sweep") == {"digits", "sweep"}


@pytest.mark.parametrize("arguments", [("-c", "engine="), (*ENGINE, "-c", "images=false"), ("-c", "images=true")])
def test_nothing_is_asked_where_nothing_can_be_taken_back(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert published_images.main(arguments, never_asked) == 0
    assert capsys.readouterr().out == "\n"


def test_every_image_is_every_image_and_none_is_none() -> None:
    for images in ("true", "false"):
        context = context_of(["-c", "published=digits", "-c", f"images={images}"])
        assert settings_of(cdk.App(context=context)).images == load_settings({"images": images}).images


def test_a_list_of_published_images_unpublishes_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (*ENGINE, "-c", "published=", "-c", "images=sweep")
    assert published_images.main(arguments, never_asked) == 0
    assert deployed(capsys.readouterr().out, *arguments) == {"sweep"}


def test_an_image_whose_folder_is_gone_does_not_stop_a_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    assert published_images.main(ENGINE, there("digits", "older")) == 0
    said = capsys.readouterr()
    assert said.out == "digits\n"
    assert "no longer has them: older" in said.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((), "Unable to locate credentials"), (("--profile", "work"), "The config profile (work) could not be found")],
)
def test_an_account_that_does_not_say_stops_the_deployment(
    without_credentials: None, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    assert published_images.main([*ENGINE, *arguments]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert "-c published=digits,sweep" in said.err


def test_faulty_settings_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert published_images.main(["-c", "maxInstances=0"], never_asked) == 2
    assert "maxInstances" in capsys.readouterr().err


@mock_aws
def test_the_parameters_of_this_deployment_in_its_home_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    client = boto3.client("ssm", region_name="eu-west-1")
    for name in ("/argosy-dev/images/digits", "/argosy/images/sweep", "/argosy-dev/other/x"):
        client.put_parameter(Name=name, Value="x", Type="String")
    settings = load_settings({"stage": "dev", "cells": "eu-west-1"})
    assert published_images.parameters(settings, None) == ["digits"]
