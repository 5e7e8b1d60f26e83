"""What EC2 offers when a deployment is made: it is read, and no fleet is of a type that the Region has withdrawn."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from pathlib import Path

import aws_cdk as cdk
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

import app as cdk_app
from argosy.settings.live_offers import LiveOffers
from argosy.settings.settings import Settings, load_settings
from stacks import preflight
from stacks.arguments import LIVE_OFFERS, settings_of
from stacks.offers import ACCOUNT, BUNDLED, ask_ec2, offers_for, refresh, refreshed
from stacks.stays import context_of

pytestmark = pytest.mark.stacks
TYPES = {"cpu": ["c5.large"], "gpu": ["p3dn.24xlarge", "g5.xlarge"]}
MOTO_ACCOUNT = "123456789012"


def live(region: str, names: Iterable[str], without: str = "p3dn.24xlarge") -> LiveOffers:
    """A Region of today: it has withdrawn `without`."""
    asked = frozenset(names)
    return LiveOffers(asked, {f"{region}{zone}": asked - {without} for zone in "abc"})


def silent(region: str, names: Iterable[str]) -> LiveOffers:
    raise EndpointConnectionError(endpoint_url=f"https://ec2.{region}.amazonaws.com/")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    context = {**json.loads(Path("cdk.json").read_text())["context"], "bundle": "source"}
    context["argosy"] = {"instanceTypes": TYPES}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(ACCOUNT, raising=False)
    (tmp_path / "cdk.json").write_text(json.dumps({"context": context}))
    (tmp_path / "cdk.context.json").write_text(json.dumps({"other": 1}))
    return tmp_path


def app_of(command: str) -> cdk.App:
    """As the CDK's command starts it: it bundles assets for commands that may deploy, and adds cdk.context.json."""
    bundled = [] if command in ("ls", "destroy") else ["**"]
    kept = json.loads(Path("cdk.context.json").read_text())
    return cdk.App(context={**context_of([]), **kept, BUNDLED: bundled}, outdir=str(Path("cdk.out").resolve()))


def fleets_of(settings: Settings) -> set[str]:
    return {name for name, _ in settings.pools("us-east-1")}


def test_a_deployment_reads_the_list_keeps_it_and_leaves_out_what_is_withdrawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ACCOUNT, MOTO_ACCOUNT)
    app = app_of("deploy")
    assert fleets_of(settings_of(app, offers_for(app, live))) == {"c5.large", "g5.xlarge"}
    stored = json.loads((folder / "cdk.context.json").read_text())
    assert stored["other"] == 1
    assert stored[LIVE_OFFERS]["us-east-1"]["lacking"]["us-east-1a"] == ["p3dn.24xlarge"]
    assert fleets_of(settings_of(app_of("synth"))) == {"c5.large", "g5.xlarge"}, "without an account, what is kept"
    assert capsys.readouterr().err == ""


def test_a_deployment_that_cannot_read_the_list_says_so_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ACCOUNT, MOTO_ACCOUNT)
    app = app_of("deploy")
    assert fleets_of(settings_of(app, offers_for(app, silent))) == {"c5.large", "g5.xlarge", "p3dn.24xlarge"}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("EC2's list of offered types was not read (us-east-1: Could not connect to the endpoint URL")
    assert json.loads((folder / "cdk.context.json").read_text()) == {"other": 1}


@pytest.mark.parametrize(("command", "account"), [("synth", None), ("ls", None), ("ls", MOTO_ACCOUNT)])
def test_templates_and_lists_of_stacks_ask_no_account(
    command: str,
    account: str | None,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if account:
        monkeypatch.setenv(ACCOUNT, account)

    def fail(region: str, names: Iterable[str]) -> LiveOffers:
        raise AssertionError("asked")

    app = app_of(command)
    assert fleets_of(settings_of(app, offers_for(app, fail))) == {"c5.large", "g5.xlarge", "p3dn.24xlarge"}
    assert capsys.readouterr().err == ""


def test_nothing_waits_longer_than_the_limit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One cell answers, the other does not."""
    never = threading.Event()

    def ask(region: str, names: Iterable[str]) -> LiveOffers:
        if region == "eu-west-1":
            never.wait()
        return live(region, names)

    settings = load_settings({"cells": ["us-east-1", "eu-west-1"], "instanceTypes": TYPES})
    assert refreshed(settings, ask, 0.05).keys() == {"us-east-1"}
    never.set()
    assert "(eu-west-1: no answer within 0.05 s)" in capsys.readouterr().err


@mock_aws
def test_the_list_is_that_of_the_account_that_is_deployed_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Moto's copy was recorded by others from a live account. Zones have other names in another account."""
    found = ask_ec2("us-east-1", ["p3.2xlarge", "p3dn.24xlarge"], MOTO_ACCOUNT)
    assert found.offered == {"p3dn.24xlarge"}
    monkeypatch.setenv(ACCOUNT, "210987654321")
    app = app_of("deploy")
    settings_of(app, offers_for(app))
    assert "these credentials are of 123456789012, the CDK's of 210987654321" in capsys.readouterr().err


def test_the_template_has_no_fleet_of_a_withdrawn_type(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of plain `cdk deploy`, from the credentials that the CDK has found to the template."""
    refresh(load_settings({"instanceTypes": TYPES}), None, live)
    assert cdk_app.main(app_of("ls")) == 0
    template = json.loads((folder / "cdk.out/argosy.template.json").read_text())
    offered = template["Mappings"]["Offered"]["us-east-1"]
    assert offered == {"C5Large": "true", "P3dn24xlarge": "false", "G5Xlarge": "true"}
    for id, resource in template["Resources"].items():
        if resource["Type"] == "AWS::EC2::EC2Fleet":
            assert resource["Condition"] == f"Offers{re.split('(?i)useast1', id.removeprefix('Fleet'))[0]}"


def test_the_doctors_leave_keeps_the_list_that_it_has_quoted(
    folder: Path, without_credentials: None, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without credentials the doctor stops, and nothing is kept."""
    assert preflight.main(["--ask=yes", "-c", "engine="]) == 3
    assert LIVE_OFFERS not in json.loads((folder / "cdk.context.json").read_text())
