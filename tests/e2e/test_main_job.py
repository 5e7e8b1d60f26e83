"""From a run spec to results on the embedded AWS, through the deployed handlers."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, cluster
from tests.fakes.commands import outcome_of

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
WRITE = ["write", "${part}"]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("local"), linger_s=5.0) as running:
        yield running


def copies_of_attempts(local: Cluster, run_id: str) -> Counter[tuple[str, str]]:
    """How often each (index, attempt) was really started."""
    counted: Counter[tuple[str, str]] = Counter()
    for task in local.ecs_tasks(run_id):
        environment = {e["name"]: e["value"] for e in task["overrides"]["containerOverrides"][0]["environment"]}
        counted[environment["ARGOSY_TASK_INDEX"], environment["ARGOSY_TASK_ATTEMPT"]] += 1
    return counted


def test_where_a_finished_runs_task_went_is_explained_from_the_record(local: Cluster) -> None:
    """The record has reached the bucket when the run's end has. This test is the first, for a replay begins at the
    controller's start."""
    run_id = local.submit(WRITE, 3)
    local.finished(run_id)
    command = ["argosy", "explain", run_id, "2", "--at", "0s", "--json"]
    refusals = [""]

    def explained() -> dict[str, Any] | None:
        done = outcome_of(command, ARGOSY_ENDPOINT_URL=local.aws.endpoint_url)
        refusals.append(done.stderr)
        return dict(json.loads(done.stdout)) if not done.returncode else None

    try:
        reply = local.until(lambda: (found := explained()) and found["placement"] and found)
    except AssertionError as late:
        raise AssertionError(refusals[-1]) from late
    assert (reply["exact"], reply["differences"]) == (True, [])
    [attempt] = local.ask("DescribeTask", runId=run_id, index=2)["attempts"]
    assert reply["placement"]["instance"]["id"] == attempt["instance"]


def test_a_run_ends_with_one_part_for_each_task_a_manifest_and_the_marker(local: Cluster) -> None:
    run_id = local.submit(WRITE, 12)
    view = local.finished(run_id)
    assert (view["status"], view["tasks"]["succeeded"], view["attempts"]) == ("SUCCEEDED", 12, 12)
    parts = [f"parts/part-{index:07d}.jsonl" for index in range(12)]
    keys = [key for key in local.keys(run_id) if not key.startswith(("history/", "attempts/use/"))]
    assert sorted(keys) == sorted(["_SUCCESS", "manifest.json", "spec.json", *parts])
    assert [local.read(f"{run_id}/{part}").split()[0] for part in parts] == [str(i).encode() for i in range(12)]
    manifest = json.loads(local.read(f"{run_id}/manifest.json"))
    assert [(entry["index"], entry["attempt"], entry["status"]) for entry in manifest["entries"]] == [
        (index, 1, "SUCCEEDED") for index in range(12)
    ]
    assert all(entry["bytes"] > 0 and entry["instance"].startswith("i-") for entry in manifest["entries"])


def test_tasks_on_one_instance_never_share_a_gpu_and_see_the_one_they_are_given(local: Cluster) -> None:
    run_id = local.submit(WRITE, 6, resources={"vcpus": 1, "memory": 256, "gpus": 1})
    view = local.finished(run_id)
    pinned = {task["index"]: task["gpuIds"] for task in view["taskList"]}
    assert all(len(gpus) == 1 for gpus in pinned.values())
    for index, (gpu,) in pinned.items():
        assert local.read(f"{run_id}/parts/part-{index:07d}.jsonl").decode().split()[1] == gpu
    both_at_once = Counter((task["instance"], gpu) for task in view["taskList"] for gpu in task["gpuIds"])
    assert max(both_at_once.values()) == 1


def test_an_interrupted_instances_tasks_are_done_again_without_using_up_a_user_attempt(local: Cluster) -> None:
    run_id = local.submit(["write", "${part}", "4"], 6, retryStrategy={"attempts": 1})
    busy = local.until(
        lambda: Counter(t["instance"] for t in local.run(run_id)["taskList"] if t["status"] == "RUNNING")
    )
    victim = busy.most_common(1)[0][0]
    local.aws.interrupt(victim, notice_s=1.0)
    view = local.finished(run_id)
    assert view["status"] == "SUCCEEDED"
    assert view["interruptions"] >= 1
    assert view["attempts"] == 6 + view["interruptions"]


def test_killing_the_controller_three_times_loses_nothing_and_starts_nothing_twice(local: Cluster) -> None:
    run_id = local.submit(["write", "${part}", "1"], 24, placement={"maxConcurrentTasks": 8})
    for started in (1, 8, 16):
        local.until(lambda started=started: local.ask("DescribeRun", runId=run_id)["attempts"] >= started)
        local.kill_controller()
    view = local.finished(run_id)
    assert (view["status"], view["attempts"]) == ("SUCCEEDED", 24)
    assert copies_of_attempts(local, run_id) == {(str(index), "1"): 1 for index in range(24)}
    assert sum(key.startswith("parts/") for key in local.keys(run_id)) == 24


@pytest.mark.parametrize(
    ("command", "exit_code", "reason"),
    [
        (["exit3", "-"], 3, "ended with an error"),
        (["hog", "-"], 137, "OutOfMemory"),
        (["nothing", "${part}"], 0, "wrote no result"),
    ],
)
def test_a_failed_tasks_state_code_and_reason_are_visible(
    local: Cluster, command: list[str], exit_code: int, reason: str
) -> None:
    view = local.finished(local.submit(command, 1))
    assert view["status"] == "FAILED"
    (task,) = view["taskList"]
    assert (task["status"], task["exitCode"]) == ("FAILED", exit_code)
    assert reason in task["reason"]
    assert view["failures"][0]["index"] == 0


def test_a_task_is_tried_again_as_its_rules_say(local: Cluster) -> None:
    rules = {"attempts": 3, "evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}]}
    assert local.finished(local.submit(["exit64", "-"], 1, retryStrategy=rules))["attempts"] == 1
    assert local.finished(local.submit(["exit1", "-"], 1, retryStrategy=rules))["attempts"] == 3


@pytest.mark.deep  # a minute is the shortest limit there is
def test_an_attempt_over_its_time_is_stopped(local: Cluster) -> None:
    view = local.finished(local.submit(["write", "${part}", "120"], 1, timeout={"attemptDurationSeconds": 60}))
    assert "longer than 60 s" in view["taskList"][0]["reason"]


def test_cancelling_stops_what_runs_and_leaves_nothing_behind(local: Cluster) -> None:
    run_id = local.submit(["write", "${part}", "60"], 8)
    local.until(lambda: local.ask("DescribeRun", runId=run_id)["tasks"]["running"])
    local.ask("CancelRun", runId=run_id, tasks=[[0, 0], [7, 7]])
    local.until(lambda: local.ask("DescribeRun", runId=run_id)["tasks"]["cancelled"] == 2)
    assert local.ask("DescribeRun", runId=run_id)["tasks"]["running"]
    local.ask("CancelRun", runId=run_id, reason="enough")
    view = local.finished(run_id)
    assert (view["status"], view["statusReason"]) == ("CANCELLED", "cancelled: enough")
    assert "the task was cancelled" in view["taskList"][0]["reason"]
    assert {task["lastStatus"] for task in local.ecs_tasks(run_id)} == {"STOPPED"}
    assert "_FAILED" in local.keys(run_id)


def test_a_run_that_cannot_be_placed_is_explained(local: Cluster) -> None:
    """An attribute that no instance has yet: submission cannot decide whether one ever will."""
    placement = {"constraints": ["attribute:stack == prod"]}
    run_id = local.submit(WRITE, 1, placement=placement)
    local.until(lambda: local.ask("DescribeRun", runId=run_id)["waiting"])
    reply = local.ask("ExplainRun", runId=run_id)
    assert reply["verdict"] == "never"
    assert "attribute:stack == prod" in reply["sentence"]
    assert "attribute:stack == prod" in reply["market"]["relaxation"]  # what would have to give
    local.ask("CancelRun", runId=run_id)
    local.finished(run_id)


def test_the_invocation_in_the_reference_submits_a_run_and_its_token_makes_it_once(
    local: Cluster, tmp_path: Path
) -> None:
    """Word for word, except the image (this cluster has no digits) and the address of the endpoint."""
    script = re.search(
        r"^(cat > request\.json.*?reply\.json)$", (ROOT / "docs/reference/api.md").read_text(), re.S | re.M
    )
    assert script
    command = script[1].replace("argosy/digits", "argosy/worker")
    replies = []
    for _ in range(2):
        done = outcome_of(command, tmp_path, AWS_ENDPOINT_URL=local.aws.endpoint_url)
        assert done.returncode == 0, done.stderr
        replies.append(json.loads((tmp_path / "reply.json").read_text()))
    assert [reply["body"]["created"] for reply in replies] == [True, False]
    assert replies[0]["body"]["runId"] == replies[1]["body"]["runId"]
    assert replies[0]["body"]["tasks"]["total"] == 18
    local.ask("CancelRun", runId=replies[0]["body"]["runId"])
    local.finished(replies[0]["body"]["runId"])


def test_when_nothing_is_left_to_do_everything_goes_back_to_zero(local: Cluster) -> None:
    local.until(lambda: not any(i["status"] != "GONE" for i in local.ask("DescribeCluster")["instances"]))
    fleets = local.clients("ec2").describe_fleets()["Fleets"]
    assert {fleet["TargetCapacitySpecification"]["TotalTargetCapacity"] for fleet in fleets} == {0}
    rule = local.until(
        lambda: (r := local.clients("events").describe_rule(Name="argosy-tick"))["State"] == "DISABLED" and r
    )
    assert re.fullmatch(r"argosy-tick", rule["Name"])


READING = """
import sys
from argosy.cli.main import app
for words in (["runs"], ["status", "last"], ["results", "last"], ["cluster"], ["queues"]):
    try: app(words)
    except SystemExit as ended: assert not ended.code, (ended.code, words)
print(*sys.modules, file=sys.stderr)
"""


def test_commands_that_read_load_neither_arrays_nor_the_settings(local: Cluster) -> None:
    """To load them takes as long as everything else that such a command does."""
    local.finished(local.submit(["exit0", "${part}"], 1))
    done = outcome_of([sys.executable, "-c", READING], ARGOSY_ENDPOINT_URL=local.aws.endpoint_url)
    assert done.returncode == 0, done.stderr.splitlines()
    assert {"numpy", "argosy.settings.settings", "argosy.spec.parse"}.isdisjoint(done.stderr.split())
