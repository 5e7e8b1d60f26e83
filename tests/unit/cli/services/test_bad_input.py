"""Users' mistakes about environments and schedules: through the command and the real api, each refused in one
sentence, and nothing is changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.model import inbox
from argosy.model.resources import Resources
from tests.fakes.api import SPEC
from tests.fakes.cli import World
from tests.fakes.schedules import ScheduleDesk, nth

WEB: dict[str, Any] = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "resources": {"vcpus": 0.5, "memory": 256},
    "service": {"desired": 3},
}


@pytest.fixture
def desk() -> ScheduleDesk:
    return ScheduleDesk()


@pytest.fixture
def world(desk: ScheduleDesk) -> World:
    found = World()
    for action in ("CreateEnvironment", "UpdateEnvironment", "DescribeEnvironment", "CreateSchedule", "StopDeployment"):
        found.answers(action, lambda request: desk.api.handle(request, "request-1"))
    for action in ("StartDeployment", "ScaleEnvironment", "DeleteEnvironment"):
        found.answers(action, lambda request: desk.api.handle(request, "request-1"))
    return found


def written(folder: Path, spec: dict[str, Any]) -> str:
    path = folder / "spec.json"
    path.write_text(json.dumps(spec))
    return str(path)


def refused(world: World, desk: ScheduleDesk, *words: str) -> str:
    """What is said of a line that changes nothing."""
    before = dict(desk.store.items)
    result = world.argosy(*words)
    assert result.exit_code == 2, result.output
    assert desk.store.items == before
    return str(result.stderr)


def service(**fields: Any) -> dict[str, Any]:
    return {**WEB, **fields}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"service": {"desired": -1}}, "service.desired: must be at least 0"),
        (
            {"service": {"desired": 3, "update": {"maxOverPercent": 0, "minHealthyPercent": 100}}},
            "service.update: could never replace a task",
        ),
        ({"kind": "batch", "service": None, "array": {"size": 1}}, "must be service"),
        ({"service": {"desired": 3, "surge": 1}}, "service.surge"),
    ],
)
def test_a_spec_that_is_no_service_that_works_is_refused(
    world: World, desk: ScheduleDesk, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    spec = {name: value for name, value in service(**fields).items() if value is not None}
    told = refused(world, desk, "env", "create", written(tmp_path, spec))
    assert said in told
    assert "kind" in fields or "1 fault; nothing was changed." in " ".join(told.split())


def test_a_daemon_that_is_larger_than_every_instance_is_refused(
    world: World, desk: ScheduleDesk, tmp_path: Path
) -> None:
    desk.api.limits = replace(desk.api.limits, pools=(("us-east-1", "p3.8xlarge", "us-east-1a"),), shapes={})
    daemon = {name: value for name, value in WEB.items() if name != "service"} | {"kind": "daemon", "name": "watch"}
    told = refused(world, desk, "env", "create", written(tmp_path, {**daemon, "resources": {"memory": 900_000}}))
    assert "p3.8xlarge" in " ".join(told.split())
    assert world.argosy("env", "create", written(tmp_path, daemon)).exit_code == 0


def up(desk: ScheduleDesk) -> None:
    desk.body("CreateEnvironment", spec=WEB)
    desk.time += 1
    desk.body("StartDeployment", name="web", clientToken="first")
    desk.fold_in()
    desk.time += 1


def test_an_update_against_an_old_base_names_the_newest(world: World, desk: ScheduleDesk, tmp_path: Path) -> None:
    up(desk)
    desk.body("UpdateEnvironment", name="web", baseRevision=1, spec=service(resources={"vcpus": 1}))
    desk.time += 1
    again = written(tmp_path, service(resources={"vcpus": 2}))
    assert "web is 2" in refused(world, desk, "env", "update", again, "--base", "1")


def test_a_revision_that_the_deployment_does_not_allow_any_more_is_refused_in_the_words_of_its_field(
    world: World, desk: ScheduleDesk
) -> None:
    up(desk)
    desk.api.limits = replace(desk.api.limits, shapes={"t3.nano": Resources(128, 128, 0)})
    told = refused(world, desk, "env", "deploy", "web", "--client-token", "again")
    assert "resources.memory: asks for 256 MiB" in " ".join(told.split())


def test_of_two_simultaneous_deployments_the_later_one_continues(world: World, desk: ScheduleDesk) -> None:
    """Neither is refused: the first one is superseded, and says so."""
    up(desk)
    for token in ("one", "two"):
        assert world.argosy("env", "deploy", "web", "--client-token", token).exit_code == 0
        desk.time += 1
    desk.fold_in()
    first, second, third = desk.body("DescribeEnvironment", name="web")["deployments"]
    assert [each["status"] for each in (first, second, third)] == ["SUPERSEDED", "SUPERSEDED", "IN_PROGRESS"]
    assert second["reason"] == "by deployment 3"


def test_what_is_being_deleted_takes_no_change_and_says_why(world: World, desk: ScheduleDesk, tmp_path: Path) -> None:
    up(desk)
    desk.body("DeleteEnvironment", name="web")
    desk.fold_in()
    for words in (["scale", "web", "3"], ["deploy", "web"], ["stop", "web"]):
        assert "is being deleted" in refused(world, desk, "env", *words)
    said = refused(world, desk, "env", "create", written(tmp_path, WEB))
    assert "create it when" in said


def test_a_scale_of_what_is_frozen_waits_for_the_thaw_and_says_so(world: World, desk: ScheduleDesk) -> None:
    up(desk)
    desk.body("FreezeEnvironment", name="web")
    desk.fold_in()
    said = world.argosy("env", "scale", "web", "7").stdout.splitlines()
    assert said == [
        "web will have 7 tasks; the environment is frozen, so this waits until it is thawed.",
        "next: argosy env thaw web",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cron", "0 3 30 2 ? *"], "never"),
        (["--cron", "0 3 * * ? *", "--zone", "Europe/Atlantis"], "zone"),
        (["--cron", "0 3 * * *"], "six fields"),
        (["--rate", "0 hours"], "rate"),
    ],
)
def test_a_schedule_that_could_never_fire_is_refused(
    world: World, desk: ScheduleDesk, tmp_path: Path, words: list[str], said: str
) -> None:
    told = refused(world, desk, "schedule", "create", "nightly", "--spec", written(tmp_path, SPEC), *words)
    assert said in told


def test_a_schedule_whose_spec_became_invalid_starts_nothing_and_says_why(desk: ScheduleDesk) -> None:
    desk.every()
    desk.api.sources.images.resolve = lambda image: None  # type: ignore[attr-defined]
    fire = desk.fire("often", nth(1))
    assert (fire["verdict"], fire["runId"]) == ("refused", None)
    assert "container.image" in fire["reason"]
    assert desk.store.read_partition(inbox.INBOX) == {}
    assert [what for what, _ in desk.announced] == ["Schedule Missed"]
