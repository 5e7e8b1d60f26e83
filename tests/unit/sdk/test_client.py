"""Submitting runs and finding them, from a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

import argosy
from tests.fakes.cli import RUN_ID, World, api_error, refusal, run_view
from tests.fakes.reader import PLAN, Api
from tests.fakes.sdk import client_of

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "digits",
    "container": {"image": "argosy/digits", "command": ["${range}", "${part}"]},
    "array": {"range": "0:100", "shardSize": 10},
}
TEXT = """
version: 1
name: digits
container: {image: argosy/digits, command: ["${range}", "${part}"]}
array: {range: "0:100", shardSize: 10}
"""


def sent(world: World) -> dict[str, Any]:
    return world.functions.requests[-1]


def test_a_mapping_is_submitted_as_it_was_written() -> None:
    world = World().answers("SubmitRun", run_view())
    run = client_of(world).submit(SPEC)
    assert (run.id, run.status, run.tasks["total"]) == (RUN_ID, "RUNNING", 18)
    assert sent(world)["spec"] == SPEC
    assert repr(run) == f"<argosy.Run {RUN_ID} RUNNING 12/18 succeeded>"


def test_a_mapping_may_have_what_programs_have_where_a_file_has_json(tmp_path: Path) -> None:
    world = World().answers("SubmitRun", run_view())
    command = ("${range}", "${part}")
    container = {"image": "argosy/digits", "command": command, "environment": {"WHERE": tmp_path}}
    client_of(world).submit({**SPEC, "container": container, "array": {"range": "0:100", "shardSize": numpy.int64(10)}})
    wanted = {**SPEC["container"], "environment": {"WHERE": str(tmp_path)}}
    assert sent(world)["spec"] == {**SPEC, "container": wanted}


@pytest.mark.parametrize("is_file", [False, True])
def test_a_run_that_is_submitted_after_another_one_may_name_its_results(tmp_path: Path, is_file: bool) -> None:
    first = client_of(World().answers("DescribeRun", run_view())).run(RUN_ID)
    command = ["${dependency.digits.output}", "${part}"]
    second = {**SPEC, "name": "report", "container": {"image": "argosy/digits", "command": command}}
    file = tmp_path / "report.json"
    file.write_text(json.dumps(second))
    world = World().answers("SubmitRun", run_view(name="report")).answers("DescribeRun", run_view())
    client_of(world).submit(file if is_file else second, after=first)
    assert sent(world)["spec"] == {**second, "dependsOn": [{"run": RUN_ID}]}
    with pytest.raises(argosy.InvalidSpec, match="no dependsOn"):
        client_of(world).submit(second)


def test_what_no_file_could_hold_is_refused_however_deep_it_is() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (object(), endless):
        with pytest.raises(argosy.InvalidSpec):
            client_of(World()).submit({**SPEC, "tags": value})


def test_a_file_is_submitted_with_the_token_that_was_given(tmp_path: Path) -> None:
    world, file = World().answers("SubmitRun", run_view()), tmp_path / "run.yaml"
    file.write_text(TEXT)
    client_of(world).submit(file, client_token="nightly-1")
    assert sent(world) == {"action": "SubmitRun", "spec": SPEC, "clientToken": "nightly-1"}


def test_what_the_deployment_warns_of_is_kept_with_the_run() -> None:
    world = World().answers("SubmitRun", run_view(warnings=["it has no limit"]))
    assert client_of(world).submit(SPEC).warnings == ["it has no limit"]


def test_two_submissions_are_two_runs() -> None:
    world = World().answers("SubmitRun", run_view())
    client = client_of(world)
    client.submit(SPEC)
    client.submit(SPEC)
    first, second = (request["clientToken"] for request in world.functions.requests)
    assert first != second


def test_all_faults_of_a_file_are_named_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TEXT.replace("digits\n", "Digits\n").replace("array:", "arrray:"))
    with pytest.raises(argosy.InvalidSpec) as refused:
        client_of(World()).submit(str(file))
    assert {(fault.path, fault.line) for fault in refused.value.faults} == {("name", 3), ("arrray", 5), ("array", 1)}
    assert f"{file}:3:1: name: must match" in str(refused.value)
    assert refused.value.is_users_fault


def test_all_faults_of_a_mapping_are_named() -> None:
    with pytest.raises(argosy.InvalidSpec) as refused:
        client_of(World()).submit({"version": 1})
    assert str(refused.value).splitlines()[0].startswith("the spec has 3 faults; nothing was submitted.")


def test_faults_that_only_the_deployment_finds_are_faults_of_the_spec_too() -> None:
    world = World().answers("SubmitRun", api_error(400, "ValidationException", "no", ("output", "not our bucket")))
    with pytest.raises(argosy.InvalidSpec, match=r"1 fault.*\n  output: not our bucket"):
        client_of(world).submit(SPEC)


def test_another_refusal_is_passed_on_with_what_would_help() -> None:
    world = World().answers("SubmitRun", api_error(409, "ConflictException", "the token has another spec"))
    with pytest.raises(argosy.ArgosyError, match="the token has another spec") as refused:
        client_of(world).submit(SPEC)
    assert refused.value.__notes__ == ["next: use another --client-token, or leave it out"]


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(argosy.ArgosyError, match=r"Cannot read nowhere\.yaml: No such file"):
        client_of(World()).submit("nowhere.yaml")


def test_what_aws_refuses_is_a_sentence_with_its_cause() -> None:
    world = World().answers("ListRuns", refusal("AccessDeniedException"))
    with pytest.raises(argosy.ArgosyError, match="AWS refused the call") as refused:
        client_of(world).runs()
    assert type(refused.value.__cause__).__name__ == "ClientError"


def test_a_fault_of_our_own_stays_what_it_is() -> None:
    world = World().answers("ListRuns", ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        client_of(world).runs()


def test_the_newest_runs_come_first() -> None:
    world = World().answers("ListRuns", {"runs": [run_view(), run_view(runId="other")], "nextToken": None})
    assert [run.id for run in client_of(world).runs(5)] == [RUN_ID, "other"]
    assert sent(world)["maxResults"] == 5


def test_the_last_run_is_found_without_its_id() -> None:
    world = World().answers("ListRuns", {"runs": [run_view()], "nextToken": None}).answers("DescribeRun", run_view())
    assert client_of(world).run("last").id == RUN_ID
    assert client_of(world).run().id == RUN_ID


def test_there_is_no_last_run_before_the_first() -> None:
    world = World().answers("ListRuns", {"runs": [], "nextToken": None})
    with pytest.raises(argosy.ArgosyError, match="No run has been submitted"):
        client_of(world).run("last")


UNKNOWN = api_error(404, "ResourceNotFoundException", "there is no such run")


def world_with(*ids: str) -> World:
    """Its runs are known by their whole ids."""

    def described(request: dict[str, Any]) -> dict[str, Any]:
        return run_view(runId=request["runId"]) if request["runId"] in ids else UNKNOWN

    runs = [run_view(runId=each) for each in ids]
    return World().answers("ListRuns", {"runs": runs, "nextToken": None}).answers("DescribeRun", described)


def test_a_run_is_found_by_its_id_or_the_beginning_of_it() -> None:
    client = client_of(world_with("digits-1-aa", "digits-2-bb"))
    assert client.run("digits-2-bb").id == "digits-2-bb"
    assert client.run("digits-2").id == "digits-2-bb"


def test_a_beginning_of_several_ids_names_them() -> None:
    client = client_of(world_with(*(f"digits-{number}" for number in range(7))))
    with pytest.raises(argosy.ArgosyError, match=r"'dig' matches the ids of 7 runs: digits-0, .*, and 2 more"):
        client.run("dig")


@pytest.mark.parametrize("name", ["nothing", ""])
def test_a_missing_run_is_reported(name: str) -> None:
    with pytest.raises(argosy.ArgosyError, match="There is no run"):
        client_of(world_with("digits-1")).run(name)


def test_another_refusal_of_a_run_is_no_reason_to_search() -> None:
    world = World().answers("DescribeRun", api_error(429, "ThrottlingException", "slower"))
    with pytest.raises(argosy.ArgosyError, match="slower"):
        client_of(world).run(RUN_ID)


def test_a_plan_says_cost_and_time_and_starts_nothing() -> None:
    world = World().answers("PlanRun", PLAN)
    plan = client_of(world).plan(SPEC)
    assert (plan.is_possible, plan.tasks, plan.warnings) == (True, 500, ["the run may miss its deadline"])
    assert plan.cost is not None
    assert plan.seconds is not None
    assert (plan.cost["expected"], plan.seconds["high"]) == (1.2, 3100.0)
    assert repr(plan) == "<argosy.Plan digits: 500 tasks, $1.20, 31m 40s>"


def test_an_impossible_plan_has_no_forecast() -> None:
    world = World().answers("PlanRun", {**PLAN, "possible": False, "costUsd": None, "seconds": None})
    plan = client_of(world).plan(SPEC)
    assert (plan.cost, plan.seconds) == (None, None)
    assert repr(plan) == "<argosy.Plan digits: 500 tasks, impossible here>"


def test_the_cluster_says_what_lives_and_what_was_spent() -> None:
    cluster = client_of(World().answers("DescribeCluster", Api(20, 300).cluster_columns())).cluster()
    assert (cluster.cells, cluster.spent) == (["us-east-1"], 12.3)
    assert repr(cluster) == f"<argosy.Cluster argosy: {len(cluster.instances())} instances>"
    assert set(cluster.instances()[0]) == {"type", "zone", "purchase", "tasks", "usdPerHour"}


def test_environment_variables_choose_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ARGOSY_ENDPOINT_URL", "http://127.0.0.1:2")
    monkeypatch.setenv("ARGOSY_STAGE", "night")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    connection = argosy.Client().access.connection
    assert (connection.endpoint_url, connection.stage, connection.region) == (
        "http://127.0.0.1:2",
        "night",
        "eu-west-1",
    )
    given = argosy.Client("http://127.0.0.1:3", stage="day", region="us-east-1", profile="me").access.connection
    assert (given.endpoint_url, given.stage, given.region, given.profile) == (
        "http://127.0.0.1:3",
        "day",
        "us-east-1",
        "me",
    )
    assert repr(argosy.Client()) == "<argosy.Client http://127.0.0.1:2 night>"


def test_every_field_that_the_deployment_refuses_is_in_the_text_of_the_exception() -> None:
    refused = api_error(400, "ValidationException", "1 field is invalid", ("maxResults", "must be at least 1"))
    with pytest.raises(argosy.ArgosyError, match=r"^1 field is invalid\n  maxResults: must be at least 1$"):
        client_of(World().answers("ListRuns", refused)).runs(0)


def test_a_client_uses_the_entrance_of_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARGOSY_QUEUE", raising=False)
    assert argosy.Client().access.connection.entrance == ""
    assert argosy.Client(queue="research").access.connection.entrance == "research"
    monkeypatch.setenv("ARGOSY_QUEUE", "night")
    assert argosy.Client().access.connection.entrance == "night"
    assert argosy.Client(queue="").access.connection.entrance == ""


def test_a_client_signs_unless_the_shell_says_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert argosy.Client().access.connection.signs
    monkeypatch.setenv("ARGOSY_UNSIGNED", "1")
    assert not argosy.Client().access.connection.signs
