"""AMIs change when their owner says so: pinned once at the first deployment, and again by `make roll`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from argosy.settings.amis import newest_ami_parameter
from argosy.settings.settings import Amis, Settings, load_settings
from stacks import amis
from stacks.arguments import PINNED_AMIS, settings_of

pytestmark = pytest.mark.stacks
TYPES = {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]}


class Numbered(amis.Account):
    """AMI ids that tell their Region's length, their kind and `number`. deployed: as the controller's settings."""

    def __init__(self, number: int, deployed: str = "{}") -> None:
        self._number, self._deployed = number, deployed

    def newest(self, region: str, parameter: str) -> str:
        return f"ami-{len(region):02d}{'/gpu/' in parameter:d}{self._number:08d}"

    def deployed(self, settings: Settings) -> Mapping[str, Amis]:
        return amis.amis_of(self._deployed)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    context = {"argosy": {"cells": ["us-east-1", "eu-west-1"], "instanceTypes": TYPES}}
    (tmp_path / "cdk.json").write_text(json.dumps({"context": context}))
    (tmp_path / "cdk.context.json").write_text(json.dumps({"other": 1}))
    return tmp_path


def stored(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "cdk.context.json").read_text()))


def test_a_deployment_pins_what_it_lacks_and_only_a_roll_changes_that(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert amis.main([], Numbered(1)) == 0
    first = {
        "us-east-1": {"cpu": "ami-09000000001", "gpu": "ami-09100000001"},
        "eu-west-1": {"cpu": "ami-09000000001", "gpu": "ami-09100000001"},
    }
    assert stored(folder) == {"other": 1, PINNED_AMIS: first}
    said = capsys.readouterr().out
    assert "us-east-1 cpu: ami-09000000001 (new)" in said
    assert said.endswith("Commit cdk.context.json, which holds these pins for every checkout that deploys.\n")
    assert amis.main([], Numbered(2)) == 0
    assert stored(folder)[PINNED_AMIS] == first
    assert amis.main(["--newest", "-c", "cells=eu-west-1"], Numbered(3)) == 0
    assert stored(folder)[PINNED_AMIS] == {
        "us-east-1": first["us-east-1"],
        "eu-west-1": {"cpu": "ami-09000000003", "gpu": "ami-09100000003"},
    }
    assert "eu-west-1 cpu: ami-09000000003 (was ami-09000000001)" in capsys.readouterr().out
    assert amis.main(["--newest", "-c", "cells=eu-west-1"], Numbered(3)) == 0
    assert "pinned already" in capsys.readouterr().out


def test_what_the_settings_name_is_not_asked_for() -> None:
    settings = load_settings({"instanceTypes": TYPES, "amis": {"us-east-1": {"gpu": "ami-12345678"}}})
    assert amis.pin(settings, {}, False, Numbered(1)) == {"us-east-1": {"cpu": "ami-09000000001"}}


def test_a_checkout_without_the_pins_takes_those_that_are_deployed(folder: Path) -> None:
    """Otherwise a plain deploy from a fresh clone would change the AMIs."""
    running = {"us-east-1": {"cpu": "ami-0000000a", "gpuArm64": "ami-0000000b"}}
    deployed = load_settings({"amis": running}).to_json()
    assert amis.main(["-c", "cells=us-east-1"], Numbered(1, deployed)) == 0
    assert stored(folder)[PINNED_AMIS] == {"us-east-1": {"cpu": "ami-0000000a", "gpu": "ami-09100000001"}}
    assert amis.main(["--newest", "-c", "cells=us-east-1"], Numbered(2, deployed)) == 0
    assert stored(folder)[PINNED_AMIS] == {"us-east-1": {"cpu": "ami-09000000002", "gpu": "ami-09100000002"}}


@mock_aws
def test_the_account_is_asked_for_what_is_deployed_and_for_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    account = amis.Account(None)
    assert account.deployed(load_settings({})) == {}
    assert account.newest("us-east-1", newest_ami_parameter("cpu")).startswith("ami-")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "The AMIs cannot be pinned: Unable to locate credentials"),
        (["--profile", "work"], "The AMIs cannot be pinned: The config profile (work) could not be found"),
    ],
)
def test_the_profile_decides_the_account_and_without_credentials_there_is_a_sentence(
    folder: Path, without_credentials: None, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert amis.main(arguments) == 3
    assert capsys.readouterr().err.startswith(says)
    assert stored(folder) == {"other": 1}


@pytest.mark.parametrize("call", ["newest", "deployed"])
def test_a_call_that_the_organization_denies_is_said_in_awss_words_and_pins_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    class Denied(Numbered):
        def __getattribute__(self, name: str) -> Any:
            return denied if name == call else super().__getattribute__(name)

    def denied(*_: Any) -> Any:
        error = {"Code": "AccessDeniedException", "Message": "explicit deny in a service control policy"}
        raise ClientError({"Error": error}, call)

    assert amis.main(["-c", "cells=us-east-1"], Denied(1)) == 3
    said = capsys.readouterr().err
    assert "explicit deny in a service control policy" in said
    assert said.endswith("Nothing was changed. Allow the call, or name the AMIs in the setting `amis`.\n")
    assert stored(folder) == {"other": 1}


def test_faulty_settings_pin_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert amis.main(["-c", "results=maybe"], Numbered(1)) == 2
    assert "results" in capsys.readouterr().err
    assert stored(folder) == {"other": 1}


def test_the_stacks_take_the_pins_of_their_cells_under_what_the_settings_name() -> None:
    pins = {"us-east-1": {"cpu": "ami-00000001", "gpu": "ami-00000002"}, "eu-west-1": {"cpu": "ami-00000003"}}
    context = {"argosy": {"amis": {"us-east-1": {"gpu": "ami-00000009"}}}, PINNED_AMIS: pins}
    settings = settings_of(cdk.App(context=context))
    assert list(settings.amis) == ["us-east-1"]
    assert (settings.amis["us-east-1"].cpu, settings.amis["us-east-1"].gpu) == ("ami-00000001", "ami-00000009")
    assert settings_of(cdk.App(context={})).amis == {}
