"""AMIs change when their owner says so: pinned once at the first deployment, and again by `make roll`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from argosy.settings.settings import load_settings
from stacks import amis
from stacks.given import PINNED_AMIS, settings_of

pytestmark = pytest.mark.stacks
TYPES = {"cpu": ["c5.large"], "gpu": ["g5.xlarge"]}


def numbered(number: int) -> amis.Newest:
    """AMI ids that tell their Region's length, their kind and `number`."""
    return lambda region, parameter: f"ami-{len(region):02d}{'/gpu/' in parameter:d}{number:08d}"


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
    assert amis.main([], numbered(1)) == 0
    first = {
        "us-east-1": {"cpu": "ami-09000000001", "gpu": "ami-09100000001"},
        "eu-west-1": {"cpu": "ami-09000000001", "gpu": "ami-09100000001"},
    }
    assert stored(folder) == {"other": 1, PINNED_AMIS: first}
    assert "us-east-1 cpu: ami-09000000001 (new)" in capsys.readouterr().out
    assert amis.main([], numbered(2)) == 0
    assert stored(folder)[PINNED_AMIS] == first
    assert amis.main(["--newest", "-c", "cells=eu-west-1"], numbered(3)) == 0
    assert stored(folder)[PINNED_AMIS] == {
        "us-east-1": first["us-east-1"],
        "eu-west-1": {"cpu": "ami-09000000003", "gpu": "ami-09100000003"},
    }
    assert "eu-west-1 cpu: ami-09000000003 (was ami-09000000001)" in capsys.readouterr().out
    assert amis.main(["--newest", "-c", "cells=eu-west-1"], numbered(3)) == 0
    assert "pinned already" in capsys.readouterr().out


def test_what_the_settings_name_is_not_asked_for() -> None:
    settings = load_settings({"instanceTypes": TYPES, "amis": {"us-east-1": {"gpu": "ami-12345678"}}})
    assert amis.pin(settings, {}, False, numbered(1)) == {"us-east-1": {"cpu": "ami-09000000001"}}


def test_faulty_settings_pin_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert amis.main(["-c", "results=maybe"], numbered(1)) == 2
    assert "results" in capsys.readouterr().err
    assert stored(folder) == {"other": 1}


def test_the_stacks_take_the_pins_of_their_cells_under_what_the_settings_name() -> None:
    pins = {"us-east-1": {"cpu": "ami-00000001", "gpu": "ami-00000002"}, "eu-west-1": {"cpu": "ami-00000003"}}
    context = {"argosy": {"amis": {"us-east-1": {"gpu": "ami-00000009"}}}, PINNED_AMIS: pins}
    settings = settings_of(cdk.App(context=context))
    assert list(settings.amis) == ["us-east-1"]
    assert (settings.amis["us-east-1"].cpu, settings.amis["us-east-1"].gpu) == ("ami-00000001", "ami-00000009")
    assert settings_of(cdk.App(context={})).amis == {}
