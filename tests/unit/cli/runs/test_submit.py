"""`validate`, `schema`, `submit`: every fault located, distributo's shorthands, --set, nothing sent when refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import OUTPUT, RUN_ID, World, api_error, ended, refusal, run_view, tasks

SPEC = """\
version: 1
name: digits
container:
  image: argosy/digits
  command: ["--range", "${range}", "--output", "${part}"]
array: {range: "900:1797", shardSize: 50}
"""
FIVE_FAULTS = """\
version: 1
name: Digits
container:
  image: argosy/digits
  command: ["${rnge}"]
resources: {vcpus: -1, memory: 1024, gpu: 1}
array: {range: "10:5"}
name: again
"""


@pytest.fixture
def spec(tmp_path: Path) -> str:
    file = tmp_path / "run.yaml"
    file.write_text(SPEC)
    return str(file)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    file = tmp_path / "broken.yaml"
    file.write_text(FIVE_FAULTS)
    return str(file)


class NoStacks:
    """CloudFormation without a stack."""

    def describe_stacks(self, *, StackName: str) -> None:  # noqa: N803 - boto3's name
        raise refusal("ValidationError", f"Stack with id {StackName} does not exist")


def submitted(world: World) -> dict[str, object]:
    [request] = [each for each in world.functions.requests if each["action"] == "SubmitRun"]
    found: dict[str, object] = request["spec"]
    return found


def accepting() -> World:
    view = run_view(status="SUBMITTED", tasks=tasks(pending=18), created=True)
    return World().answers("SubmitRun", view).answers("DescribeRun", ended())


def test_a_valid_spec_is_summed_up(spec: str) -> None:
    result = World().argosy("validate", spec)
    summary, unchecked = result.stdout.splitlines()
    assert (result.exit_code, summary) == (0, f"{spec} is valid: digits, 18 tasks of 1 vCPU, 1,024 MiB")
    assert "instance sizes, buckets" in unchecked
    assert "argosy submit" in unchecked


def test_every_fault_is_listed_with_its_line(broken: str) -> None:
    result = World().argosy("validate", broken)
    faults = [line.strip() for line in result.stderr.splitlines()[1:]]
    assert result.exit_code == 2
    assert len(faults) >= 5
    assert all(line.startswith(f"{broken}:") for line in faults)
    assert any(f"{broken}:2:1: name: " in line for line in faults)
    assert any("did you mean gpus?" in line for line in faults)


def test_validate_json_lists_the_faults_and_still_exits_2(broken: str) -> None:
    result = World().argosy("validate", broken, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["valid"]) == (2, False)
    assert {"path", "message", "line", "column"} == set(document["faults"][0])


def test_validate_json_of_a_valid_spec(spec: str) -> None:
    assert World().document("validate", spec) == {"valid": True, "file": spec, "faults": []}


def test_a_file_that_is_not_there_names_examples() -> None:
    result = World().argosy("validate", "missing.yaml")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: Cannot read missing.yaml: No such file or directory.\nnext: ")


def test_the_schema_is_a_json_schema() -> None:
    document = json.loads(World().argosy("schema").stdout)
    assert document["properties"]["name"]["pattern"]
    assert document["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize("denied", [False, True], ids=["no deployment", "may not look"])
def test_without_a_deployment_the_local_faults_are_reported(broken: str, denied: bool) -> None:
    world = World(others={"cloudformation": NoStacks()})
    world.parameters.values.clear()
    world.parameters.denied = denied
    result = world.argosy("submit", broken)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1:] == World().argosy("validate", broken).stderr.splitlines()[1:]
    assert "nothing was submitted" in result.stderr
    assert not world.functions.requests


def test_the_deployments_faults_come_with_the_local_ones(broken: str) -> None:
    answer = api_error(
        400,
        "ValidationException",
        "2 fields are invalid",
        ("resources.vcpus", "must be greater than 0"),
        ("output", "bucket elsewhere is not one that this deployment may write to: own"),
    )
    world = World().answers("ValidateRun", answer)
    alone = World().argosy("validate", broken).stderr.splitlines()[1:]
    result = world.argosy("submit", broken)
    told = result.stderr.splitlines()
    assert result.exit_code == 2
    assert [line for line in alone if line not in told] == []
    assert [line for line in told if "bucket elsewhere" in line]
    assert [request["action"] for request in world.functions.requests] == ["ValidateRun"]


@pytest.mark.parametrize("answer", [api_error(500, "InternalError", "no"), {"name": "digits", "warnings": []}])
def test_whatever_else_a_deployment_says_of_a_faulty_spec_the_local_faults_stand(broken: str, answer: Any) -> None:
    result = World().answers("ValidateRun", answer).argosy("submit", broken)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1:] == World().argosy("validate", broken).stderr.splitlines()[1:]


def test_a_run_of_one_task_is_shown_with_one_task(spec: str) -> None:
    view = run_view(status="SUBMITTED", tasks=tasks(pending=1), created=True)
    result = World().answers("SubmitRun", view).argosy("submit", spec, "--detach")
    assert result.stdout.startswith(f"{RUN_ID} submitted: 1 task, ")


def test_detached_submit_prints_the_id_and_how_to_watch(spec: str) -> None:
    world = accepting()
    result = world.argosy("submit", spec, "--detach")
    assert result.exit_code == 0
    assert result.stdout == f"{RUN_ID} submitted: 18 tasks, results in {OUTPUT}\nnext: argosy watch {RUN_ID}\n"
    assert world.functions.requests[0]["clientToken"] == "token-1"


@pytest.mark.parametrize("words", [["--detach"], []])
def test_warnings_of_the_api_are_shown_with_the_id(spec: str, words: list[str]) -> None:
    sentence = "capacity.budgetUsd: $0.02 is less than an hour of the cheapest instance"
    world = World().answers("SubmitRun", {**ended(), "created": True, "warnings": [sentence]})
    result = world.answers("DescribeRun", ended()).argosy("submit", spec, *words)
    assert (result.exit_code, result.stderr) == (0, f"warning: {sentence}\n")


def test_what_is_sent_is_what_the_user_wrote(spec: str) -> None:
    world = accepting()
    world.argosy("submit", spec, "-d")
    assert submitted(world) == {
        "version": 1,
        "name": "digits",
        "container": {"image": "argosy/digits", "command": ["--range", "${range}", "--output", "${part}"]},
        "array": {"range": "900:1797", "shardSize": 50},
    }


def test_distributo_s_flags_become_range_shard_size_and_output(spec: str) -> None:
    """Counter-example 1: the original took --output's value for a switch and wrote to a prefix called "true"."""
    world = accepting()
    words = ("--batch-size", "100", "--num-batches", "10", "--output", "s3://bucket/prefix/")
    world.argosy("submit", spec, "--detach", *words)
    sent = submitted(world)
    assert sent["array"] == {"range": "0:1000", "shardSize": 100}
    assert sent["output"] == "s3://bucket/prefix/"


def test_short_flags_mean_the_same(spec: str) -> None:
    world = accepting()
    world.argosy("submit", spec, "-d", "-s", "100", "-b", "10", "-o", "s3://bucket/prefix/")
    assert submitted(world)["array"] == {"range": "0:1000", "shardSize": 100}


def test_a_batch_size_alone_keeps_the_range(spec: str) -> None:
    world = accepting()
    world.argosy("submit", spec, "-d", "--batch-size", "100")
    assert submitted(world)["array"] == {"range": "900:1797", "shardSize": 100}


def test_a_number_of_batches_takes_the_size_from_the_file(spec: str) -> None:
    world = accepting()
    world.argosy("submit", spec, "-d", "--num-batches", "3")
    assert submitted(world)["array"] == {"range": "0:150", "shardSize": 50}


def test_a_number_of_batches_without_any_size_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(SPEC.replace(", shardSize: 50", ""))
    result = accepting().argosy("submit", str(file), "--num-batches", "3")
    assert result.exit_code == 2
    assert "--num-batches needs --batch-size" in result.stderr


def test_set_changes_fields_by_path(spec: str) -> None:
    world = accepting()
    world.argosy("submit", spec, "-d", "--set", "resources.vcpus=2", "--set", "name=other", "--set", "tags.team=vision")
    sent = submitted(world)
    assert (sent["resources"], sent["name"], sent["tags"]) == ({"vcpus": 2}, "other", {"team": "vision"})


def test_a_change_that_makes_the_spec_invalid_is_refused(spec: str) -> None:
    result = accepting().answers("ValidateRun", {"warnings": []}).argosy("submit", spec, "--set", "resources.vcpus=-2")
    assert result.exit_code == 2
    assert "resources.vcpus" in result.stderr


@pytest.mark.parametrize("change", ["resources", "=3", "a..b=1", "name=[1, 2"])
def test_a_change_that_cannot_be_read_is_refused(spec: str, change: str) -> None:
    result = accepting().argosy("submit", spec, "--set", change)
    assert result.exit_code == 2
    assert "--set" in result.stderr


def test_faults_only_the_deployment_can_find_are_placed_in_the_file(spec: str) -> None:
    answer = api_error(400, "ValidationException", "1 field is invalid", ("container.image", "is not published"))
    result = World().answers("SubmitRun", answer).argosy("submit", spec)
    assert result.exit_code == 2
    assert f"  {spec}:4:3: container.image: is not published" in result.stderr


def test_a_refusal_without_fields_is_shown_as_it_is(spec: str) -> None:
    answer = api_error(409, "ConflictException", "the token belongs to another spec")
    result = World().answers("SubmitRun", answer).argosy("submit", spec, "--client-token", "c-1")
    assert result.exit_code == 2
    assert "the token belongs to another spec" in result.stderr


def test_the_same_token_again_says_that_nothing_started_twice(spec: str) -> None:
    world = World().answers("SubmitRun", run_view(created=False))
    result = world.argosy("submit", spec, "-d", "--client-token", "c-1")
    assert "nothing was started twice" in result.stdout
    assert world.functions.requests[0]["clientToken"] == "c-1"


def test_submit_prints_the_id_first_and_waits_for_the_end(spec: str) -> None:
    result = accepting().argosy("submit", spec)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith(f"{RUN_ID} submitted")
    assert "SUCCEEDED" in result.stdout


def test_detached_submit_in_json_is_the_api_s_body(spec: str) -> None:
    assert accepting().document("submit", spec, "--detach")["created"] is True


def test_a_spec_may_come_from_standard_input() -> None:
    from typer.testing import CliRunner

    from argosy.cli.main import app

    result = CliRunner().invoke(app, ["validate", "-"], input=SPEC)
    assert result.stdout.startswith("- is valid: digits, 18 tasks")


LIMITED = SPEC + "capacity: {budgetUsd: 0.01}\n"


def limited(tmp_path: Path) -> str:
    (tmp_path / "limited.yaml").write_text(LIMITED)
    return str(tmp_path / "limited.yaml")


def plan(**changes: Any) -> dict[str, Any]:
    return {"possible": True, "warnings": ["the run will reach its budget", "w"], "rejected": [], **changes}


def test_submit_says_what_the_plan_warns_of_once_and_asks_for_it_first(tmp_path: Path) -> None:
    world = World().answers("PlanRun", plan())
    world.answers("SubmitRun", run_view(created=True, warnings=["w"])).answers("DescribeRun", ended())
    said = world.argosy("submit", limited(tmp_path), "--detach")
    assert said.stderr == "warning: w\nwarning: the run will reach its budget\n"
    assert [each["action"] for each in world.functions.requests] == ["PlanRun", "SubmitRun"]
    assert json.loads(world.argosy("submit", limited(tmp_path), "--json").stdout)["warnings"] == [
        "w",
        "the run will reach its budget",
    ]


def test_a_run_that_nothing_can_run_is_warned_of_with_the_reasons(tmp_path: Path) -> None:
    rejected = [{"reason": "needs 4 GPUs", "pools": 3, "instanceTypes": ["c5.large", "c5.xlarge", "m5.large"]}]
    world = World().answers("PlanRun", plan(possible=False, warnings=["nothing could", "x"], rejected=rejected))
    world.answers("SubmitRun", run_view(created=True, warnings=[]))
    assert world.argosy("submit", limited(tmp_path), "--detach").stderr.splitlines() == [
        "warning: nothing in this deployment can run its tasks, so they wait: "
        "needs 4 GPUs (c5.large, c5.xlarge, and 1 more)",
        "warning: x",
    ]


@pytest.mark.parametrize("trouble", [api_error(400, "ValidationException", "no"), refusal("AccessDeniedException")])
def test_a_plan_that_cannot_be_made_is_no_reason_not_to_submit(tmp_path: Path, trouble: Any) -> None:
    world = World().answers("PlanRun", trouble).answers("SubmitRun", run_view(created=True, warnings=[]))
    result = world.argosy("submit", limited(tmp_path), "--detach")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ("container.command[1]=0:5", ["--range", "0:5", "--output", "${part}"]),
        ("container.command[4]=--fast", ["--range", "${range}", "--output", "${part}", "--fast"]),
        ("container.command=[a, b]", ["a", "b"]),
    ],
)
def test_set_reaches_entries_of_lists(spec: str, change: str, command: list[str]) -> None:
    world = accepting()
    assert world.argosy("submit", spec, "--detach", "--set", change).exit_code == 0
    container = submitted(world)["container"]
    assert isinstance(container, dict)
    assert container["command"] == command


@pytest.mark.parametrize("change", ["container.command[9]=x", "container.[0]=x", "a[x]=1", "a..b=1", "[0]=1", "=1"])
def test_set_refuses_what_is_no_place(spec: str, change: str) -> None:
    result = World().argosy("submit", spec, "--set", change)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --set")


def test_a_list_in_a_list_of_mappings_can_be_set(spec: str) -> None:
    world = accepting()
    rule = "retryStrategy.evaluateOnExit[0].onExitCode='64'"
    set_ = ("--set", rule, "--set", "retryStrategy.evaluateOnExit[0].action=EXIT")
    assert world.argosy("submit", spec, "--detach", *set_).exit_code == 0
    assert submitted(world)["retryStrategy"] == {"evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}]}


def test_validate_takes_changes_and_a_fault_of_theirs_has_no_line_of_the_file(spec: str) -> None:
    result = World().argosy("validate", spec, "--set", "resources.memory=4GB", "--set", "array.range=9:1")
    assert result.exit_code == 2
    lines = [line.strip() for line in result.stderr.splitlines()]
    assert (
        f'{spec}: resources.memory: must be a whole number, not the text "4GB"; write 4096 (MiB) (from --set)' in lines
    )
    assert World().argosy("validate", spec, "--set", "resources.memory=4096").stdout.startswith(f"{spec} is valid: ")
