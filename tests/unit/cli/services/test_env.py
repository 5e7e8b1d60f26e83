"""`argosy env`: the requests to the api, the output, the exit codes, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import World, api_error
from tests.fakes.environments import ENDPOINT, RUN, SERVICE, created, deploying, deployment, environment, revision


@pytest.fixture
def spec(tmp_path: Path) -> str:
    (tmp_path / "web.yaml").write_text(SERVICE)
    return str(tmp_path / "web.yaml")


def lines(result: Any) -> list[str]:
    assert result.exit_code == 0, result.output
    return [line.rstrip() for line in result.stdout.splitlines()]


def test_create_says_that_nothing_runs_yet_and_what_to_type(spec: str) -> None:
    world = World().answers("CreateEnvironment", {"name": "web", "revision": 1, "warnings": ["mind this"]})
    result = world.argosy("env", "create", spec)
    assert lines(result) == ["web created, revision 1; nothing runs yet.", "next: argosy env deploy web"]
    assert "mind this" in result.stderr
    (request,) = world.functions.requests
    assert (request["action"], request["spec"]["service"]) == ("CreateEnvironment", {"desired": 3})


def test_create_of_a_name_that_is_taken_is_refused_without_advice_about_tokens(spec: str) -> None:
    taken = api_error(409, "ConflictException", "the environment 'web' already")
    result = World().answers("CreateEnvironment", taken).argosy("env", "create", spec)
    assert (result.exit_code, result.stderr) == (2, "error: the environment 'web' already\n")


def test_a_fault_that_the_deployment_finds_is_shown_in_the_file(spec: str) -> None:
    refused = api_error(400, "ValidationException", "1 fault", ("container.image", "is not there"))
    result = World().answers("CreateEnvironment", refused).argosy("env", "create", spec)
    assert result.exit_code == 2
    assert "web.yaml:4:13: container.image: is not there" in result.stderr


def test_update_takes_the_newest_revision_for_its_base(spec: str) -> None:
    world = World().answers("DescribeEnvironment", environment(latestRevision=4))
    world.answers("UpdateEnvironment", {"name": "web", "revision": 5, "created": True, "warnings": []})
    assert lines(world.argosy("env", "update", spec)) == [
        "web now has revision 5; it is not deployed yet.",
        "next: argosy env deploy web",
    ]
    assert world.functions.requests[-1]["baseRevision"] == 4


def test_update_with_a_base_makes_one_request_and_reports_a_conflict(spec: str) -> None:
    world = World().answers("UpdateEnvironment", api_error(409, "ConflictException", "3 is newer"))
    result = world.argosy("env", "update", spec, "--base", "2")
    assert (result.exit_code, result.stderr) == (2, "error: 3 is newer\n")
    assert [each["action"] for each in world.functions.requests] == ["UpdateEnvironment"]


def test_update_that_changes_nothing_says_so(spec: str) -> None:
    world = World().answers("DescribeEnvironment", environment())
    world.answers("UpdateEnvironment", {"name": "web", "revision": 1, "created": False, "warnings": []})
    assert lines(world.argosy("env", "update", spec)) == [
        "web: revision 1 is identical; no new revision was created.",
        "next: argosy env status web",
    ]


def test_deploy_sends_a_token_and_comes_back_at_once() -> None:
    world = World().answers("StartDeployment", deploying(2))
    assert lines(world.argosy("env", "deploy", "web", "--revision", "2")) == [
        "Revision 2 of web is being deployed.",
        "next: argosy env status web",
    ]
    asked = {"action": "StartDeployment", "name": "web", "clientToken": "token-1", "revision": 2}
    assert world.functions.requests == [asked]


def test_deploy_with_a_token_that_has_done_so_says_so() -> None:
    world = World().answers("StartDeployment", deploying(2, created=False))
    said = lines(world.argosy("env", "deploy", "web", "--client-token", "mine"))[0]
    assert said == "Revision 2 of web was already deployed with this token; nothing is done twice."
    assert world.functions.requests[0]["clientToken"] == "mine"


def test_deploy_of_what_a_user_has_frozen_says_that_it_waits() -> None:
    world = World().answers("StartDeployment", deploying(2, frozenByUser=True, statusReason="looking at it"))
    assert lines(world.argosy("env", "deploy", "web")) == [
        "Revision 2 of web is next; the environment is frozen, so this waits until it is thawed: looking at it.",
        "next: argosy env thaw web",
    ]
    world.answers("DescribeEnvironment", seen(deployment(2, 2)))
    assert lines(world.argosy("env", "deploy", "web", "--wait"))[2:] == ["deployment 2 to revision 2: COMPLETED"]


def seen(*latest: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The environment with these deployments behind its first one."""
    return environment(deployments=[deployment(1), *latest], **changes)


def test_waiting_tells_each_step_once_and_ends_with_the_deployment() -> None:
    world = World().answers("StartDeployment", deploying(2))
    ran = [revision(1, RUN, healthy=2), revision(2, "web-2", healthy=1)]
    half = seen(deployment(2, 2, "IN_PROGRESS"), revisions=ran, outdated=2)
    world.answers("DescribeEnvironment", seen(), half, half, seen(deployment(2, 2)))
    assert lines(world.argosy("env", "deploy", "web", "--wait")) == [
        "deployment 2 to revision 2: IN_PROGRESS (1 of 3 healthy, 2 of other revisions)",
        "deployment 2 to revision 2: COMPLETED",
    ]
    assert len(world.slept) == 3


def test_the_deployment_before_of_the_same_revision_is_not_taken_for_the_one_that_was_begun() -> None:
    world = World().answers("StartDeployment", deploying(1))
    world.answers("DescribeEnvironment", seen(), seen(deployment(2, 1)))
    assert lines(world.argosy("env", "deploy", "web", "--wait")) == ["deployment 2 to revision 1: COMPLETED"]


def test_a_deployment_that_fails_exits_1_once_its_roll_back_has_ended() -> None:
    failed = deployment(2, 2, "FAILED", reason="3 of its tasks failed")
    back = {"reason": "deployment 2 failed", "isRollback": True}
    world = World().answers("StartDeployment", deploying(2))
    world.answers("DescribeEnvironment", seen(failed, deployment(3, 1, "IN_PROGRESS", **back)),
                  seen(failed, deployment(3, 1, isRollback=True)))  # fmt: skip
    result = world.argosy("env", "deploy", "web", "--wait")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "deployment 2 to revision 2: FAILED: 3 of its tasks failed",
        "deployment 3 to revision 1 (the roll-back): IN_PROGRESS: deployment 2 failed (3 of 3 healthy)",
        "deployment 3 to revision 1 (the roll-back): COMPLETED",
    ]


@pytest.mark.parametrize("status", ["FAILED", "STOPPED"])
def test_a_deployment_that_does_not_complete_exits_1(status: str) -> None:
    world = World().answers("StartDeployment", deploying(2))
    world.answers("DescribeEnvironment", seen(deployment(2, 2, status)))
    assert world.argosy("env", "deploy", "web", "--wait").exit_code == 1


def test_waiting_for_a_roll_back_that_was_asked_for_exits_0() -> None:
    world = World().answers("RollBackDeployment", deploying(1))
    world.answers("DescribeEnvironment", seen(deployment(2, 1)))
    assert lines(world.argosy("env", "rollback", "web", "--wait")) == ["deployment 2 to revision 1: COMPLETED"]


def test_a_wait_that_is_too_long_exits_4_and_says_that_the_deployment_continues() -> None:
    world = World().answers("StartDeployment", deploying(2))
    world.answers("DescribeEnvironment", seen(deployment(2, 2, "IN_PROGRESS")))
    result = world.argosy("env", "deploy", "web", "--wait-timeout", "5")
    assert result.exit_code == 4
    assert result.stderr.splitlines() == [
        "error: Revision 2 of web was still being deployed after 5.0 s; the deployment continues.",
        "next: argosy env status web",
    ]


def test_waiting_again_with_the_same_token_looks_at_the_deployment_that_it_began() -> None:
    world = World().answers("StartDeployment", deploying(2, created=False))
    world.answers("DescribeEnvironment", seen(deployment(2, 2)))
    assert lines(world.argosy("env", "deploy", "web", "--wait", "--client-token", "mine")) == [
        "deployment 2 to revision 2: COMPLETED"
    ]


def test_status_shows_what_there_is_and_its_revisions() -> None:
    assert lines(World().answers("DescribeEnvironment", environment()).argosy("env", "status", "web")) == [
        "web  COMPLETED  revision 1",
        "3 of 3 healthy, 3 running",
        "deployment 1 to revision 1: COMPLETED",
        "cost so far $0.250",
        "",
        "REVISION  CREATED                  RUN                     HEALTHY  RUNNING",
        f"       1  2026-11-21 06:26:33 UTC  {RUN}        3        3",
        f"next: argosy tasks {RUN}",
    ]


def test_status_of_what_was_only_created_says_how_to_deploy_it() -> None:
    said = lines(World().answers("DescribeEnvironment", created()).argosy("env", "status", "web"))
    assert said[0] == "web  CREATED  revision 1 is not deployed yet"
    assert said[-1] == "next: argosy env deploy web"


def test_status_of_a_frozen_environment_says_why_once_and_how_to_thaw_it() -> None:
    frozen = environment(
        status="FROZEN",
        statusReason="deployment 2 failed: exit code 3",
        targetRevision=2,
        latestRevision=2,
        revisions=[revision(1, RUN), revision(2, "web-2")],
        deployments=[deployment(1), deployment(2, 2, "FAILED", reason="exit code 3")],
    )
    said = lines(World().answers("DescribeEnvironment", frozen).argosy("env", "status", "web"))
    assert "deployment 2 to revision 2: FAILED: exit code 3" in said
    assert "deployment 2 failed: exit code 3" in said
    assert said[-2:] == ["next: argosy env thaw web", "next: argosy attempts web-2"]


def test_status_says_what_waits_and_that_a_newer_revision_is_not_deployed() -> None:
    waiting = environment(
        healthy=1, running=2, pending=1, outdated=2, latestRevision=2, revisions=[revision(1, RUN), revision(2)],
        status="WAITING", statusReason="waits for c5.large", deployments=[deployment(1, 1, "WAITING")],
    )  # fmt: skip
    said = lines(World().answers("DescribeEnvironment", waiting).argosy("env", "status", "web"))
    assert said[:4] == [
        "web  WAITING  revision 1 (the newest is 2)",
        "1 of 3 healthy, 2 running, 1 waiting, 2 of other revisions",
        "deployment 1 to revision 1: WAITING (0 of 3 healthy, 2 of other revisions)",
        "waits for c5.large",
    ]
    assert said[-1] == "next: argosy env deploy web"


def test_status_says_how_many_tasks_are_in_target_groups() -> None:
    said = lines(
        World().answers("DescribeEnvironment", environment(registeredTargets=2)).argosy("env", "status", "web")
    )
    assert said[1] == "3 of 3 healthy, 3 running, 2 in target groups"


def test_an_environment_that_is_not_there_is_named_and_the_list_offered() -> None:
    gone = api_error(404, "ResourceNotFoundException", "the environment 'web' does not exist")
    result = World().answers("DescribeEnvironment", gone).argosy("env", "status", "web")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: the environment 'web' does not exist",
        "next: type `argosy env list` to see the environments",
    ]


def test_list_is_a_table() -> None:
    world = World().answers("ListEnvironments", {"environments": [environment(), {**created(), "name": "api"}]})
    assert [line.split() for line in lines(world.argosy("env", "list"))] == [
        ["ENVIRONMENT", "KIND", "STATUS", "REVISION", "DESIRED", "HEALTHY", "RUNNING", "OUTDATED", "REASON"],
        ["web", "service", "COMPLETED", "1", "3", "3", "3", "0"],
        ["api", "service", "CREATED", "-", "3", "0", "0", "0"],
    ]


def test_an_empty_list_says_how_to_begin() -> None:
    said = lines(World().answers("ListEnvironments", {"environments": []}).argosy("env", "list"))
    assert said == ["No environments yet. next: argosy env create service.yaml"]


def test_a_list_may_be_of_names_that_begin_alike() -> None:
    world = World().answers("ListEnvironments", {"environments": []})
    said = lines(world.argosy("env", "list", "--prefix", "web"))
    assert said == ["No environment's name begins with web. next: argosy env list"]
    assert world.functions.requests == [{"action": "ListEnvironments", "prefix": "web"}]


def test_deployments_are_a_table_with_their_reasons() -> None:
    view = seen(deployment(2, 2, "IN_PROGRESS", failures=2), deployment(3, 1, "FAILED", reason="exit code 3"))
    said = lines(World().answers("DescribeEnvironment", view).argosy("env", "deployments", "web", COLUMNS="200"))
    assert [line.split()[:3] for line in said[1:]] == [
        ["1", "1", "COMPLETED"], ["2", "2", "IN_PROGRESS"], ["3", "1", "FAILED"],
    ]  # fmt: skip
    assert said[3].endswith("exit code 3")


def test_deployments_of_what_was_never_deployed() -> None:
    said = lines(World().answers("DescribeEnvironment", created()).argosy("env", "deployments", "web"))
    assert said == ["web was never deployed. next: argosy env deploy web"]


def test_endpoints_are_a_table_of_addresses_and_ports() -> None:
    others = {**ENDPOINT, "task": 1, "privateIp": None, "publicIp": "3.4.5.6", "healthy": False}
    world = World().answers("DescribeEnvironment", environment(endpoints=[ENDPOINT, others]))
    said = lines(world.argosy("env", "endpoints", "web", COLUMNS="200"))
    assert [line.split() for line in said[1:]] == [
        ["10.0.0.7:32768", "8080", "yes", "2", "0", "i-0a", "-"],
        ["-:32768", "8080", "no", "2", "1", "i-0a", "3.4.5.6:32768"],
    ]
    assert world.functions.requests == [{"action": "DescribeEnvironment", "name": "web", "include": ["endpoints"]}]


def test_where_nothing_is_reached_it_says_why() -> None:
    world = World().answers("DescribeEnvironment", environment(endpoints=[]))
    said = lines(world.argosy("env", "endpoints", "web", COLUMNS="200"))
    assert said == [
        "No task of web has an endpoint: none runs, or its spec has no container.ports.",
        "next: argosy env status web",
    ]


@pytest.mark.parametrize(
    ("words", "action", "sent", "said"),
    [
        (["scale", "web", "7"], "ScaleEnvironment", {"desired": 7}, "web is scaled to 7."),
        (["freeze", "web", "--reason", "r"], "FreezeEnvironment", {"reason": "r"}, "web is frozen."),
        (["thaw", "web"], "ThawEnvironment", {}, "web is thawed."),
        (["stop", "web"], "StopDeployment", {"reason": ""}, "The deployment of web is stopped."),
    ],
)
def test_a_change_is_sent_and_confirmed(words: list[str], action: str, sent: dict[str, Any], said: str) -> None:
    world = World().answers(action, environment())
    assert lines(world.argosy("env", *words)) == [said, "next: argosy env status web"]
    assert world.functions.requests == [{"action": action, "name": "web", **sent}]


@pytest.mark.parametrize(
    ("running", "said"),
    [
        (0, "no task is running."),
        (1, "1 running task is being stopped."),
        (3, "3 running tasks are being stopped."),
    ],
)
def test_delete_says_what_becomes_of_the_tasks(running: int, said: str) -> None:
    world = World().answers("DeleteEnvironment", environment(running=running))
    assert lines(world.argosy("env", "delete", "web")) == [f"web is being deleted: {said}"]


def test_tasks_that_are_left_continue_and_the_way_to_stop_them_is_shown() -> None:
    world = World().answers("DeleteEnvironment", environment(running=3))
    said = lines(world.argosy("env", "delete", "web", "--leave-tasks"))
    assert said == [
        "web is deleted; 3 running tasks continue, and no others are started.",
        "stop them: argosy env delete web",
    ]
    assert world.functions.requests == [{"action": "DeleteEnvironment", "name": "web", "tasks": "leave"}]
    left = environment(status="LEFT", statusReason="the environment was deleted, and its tasks were kept")
    shown = lines(World().answers("DescribeEnvironment", left).argosy("env", "status", "web"))
    assert shown[0].startswith("web  LEFT")
    assert shown[-1] == "next: argosy env delete web"


@pytest.mark.parametrize(
    ("words", "what"), [(["env", "scale", "web", "-1"], "tasks"), (["cluster", "scale", "-1", "--json"], "instances")]
)
def test_a_count_below_zero_is_refused_in_one_sentence(words: list[str], what: str) -> None:
    world = World()
    result = world.argosy(*words)
    assert result.exit_code == 2
    assert result.stderr == f"error: -1 is not a number of {what}: give 0 or more; nothing was changed.\n"
    assert not world.functions.requests


@pytest.mark.parametrize("words", [["scale", "web", "-1"], ["scale", "web"], ["deploy"], ["deploy", "web", "-w"]])
def test_a_line_that_is_not_understood_exits_2_and_asks_for_nothing(words: list[str]) -> None:
    world = World()
    assert world.argosy("env", *words).exit_code == 2
    assert not world.functions.requests
