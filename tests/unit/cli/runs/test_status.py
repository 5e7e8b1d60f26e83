"""`status`, `runs`, `cancel`, `cluster`: what they print when piped, their JSON, and what they say when refused."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import (
    EndpointConnectionError,
    LoginRefreshRequired,
    NoCredentialsError,
    ProfileNotFound,
    SSOTokenLoadError,
    UnauthorizedSSOTokenError,
)

from argosy.client.failures import NO_RIGHT
from tests.fakes import cli as fakes
from tests.fakes.cli import (
    FAILURE,
    RUN_ID,
    World,
    api_error,
    ended,
    failure_kind,
    golden,
    instance,
    run_view,
    task_row,
    tasks,
)

CLUSTER = {
    "cluster": "argosy",
    "cells": ["us-east-1"],
    "instances": [
        instance(
            instanceId="i-0ffffffffffffffff",
            instanceType="p3.8xlarge",
            purchase="on-demand",
            status="DRAINING",
            cpu={"total": 32.0, "used": 8.0},
            memory={"total": 237_056, "used": 8192},
            gpus={"total": 4, "used": 4},
            tasks=4,
            priceUsdPerHour=12.24,
        ),
        instance(),
        instance(instanceId="i-0gone", status="GONE", stoppedAt="2026-11-21T06:27:13.000Z", tasks=0),
    ],
    "fleets": [
        {
            "instanceType": "c5.xlarge",
            "availabilityZone": "us-east-1a",
            "cell": "us-east-1",
            "spotTarget": 1,
            "onDemandTarget": 0,
        },
        {
            "instanceType": "c5.large",
            "availabilityZone": "us-east-1b",
            "cell": "us-east-1",
            "spotTarget": 0,
            "onDemandTarget": 0,
        },
    ],
    "usdPerHour": 12.3112,
    "spentUsd": 0.21,
    "onDemandUsd": 0.42,
    "peakUtilisation": {"cpu": 0.75, "memory": 0.4, "gpus": None},
}


def test_status_of_a_running_run() -> None:
    result = World().answers("DescribeRun", run_view()).argosy("status", RUN_ID)
    assert (result.exit_code, result.stderr) == (0, "")
    golden("status-running", result.stdout)


def test_status_splits_the_start_up_once_a_task_has_started() -> None:
    parts = {"bootSeconds": 93.0, "pullSeconds": None, "startSeconds": 2.0, "starts": 9, "usd": 1.5}
    said = World().answers("DescribeRun", run_view(startUp=parts)).argosy("status", RUN_ID).stdout
    assert "start-up     boot 1m 33s, start 2.0 s: $1.50 of the cost" in said
    none = World().answers("DescribeRun", run_view(startUp={**parts, "starts": 0})).argosy("status", RUN_ID).stdout
    assert "start-up" not in none


def test_status_of_a_failed_run_names_the_failures_and_their_log() -> None:
    view = ended(
        "PARTIAL", tasks=tasks(succeeded=17, failed=1), failures=[FAILURE], statusReason="1 task failed", gpus=1
    )
    golden("status-partial", World().answers("DescribeRun", view).argosy("status", RUN_ID).stdout)


class TaskLogs:
    """CloudWatch Logs: stream -> its last lines."""

    def __init__(self, **lines: list[str]) -> None:
        self.lines = lines
        self.asked: list[str] = []

    def get_log_events(self, **asked: Any) -> Any:
        stream = asked["logStreamName"]
        self.asked.append(stream)
        if stream == "denied":
            raise fakes.refusal("AccessDeniedException", operation="GetLogEvents")
        if stream not in self.lines:
            raise fakes.refusal("ResourceNotFoundException", operation="GetLogEvents")
        assert (asked["startFromHead"], asked["limit"]) == (False, 5)
        return {"events": [{"timestamp": 1, "message": line} for line in self.lines[stream]]}


def status_of(kinds: list[dict[str, Any]], stderr: str = "", **lines: list[str]) -> str:
    """Task N's last attempt ended like the kind that begins with it, and its stream is called `tN`."""
    logs = TaskLogs(**lines)

    def attempts(request: Any) -> Any:
        kind = next(each for each in kinds if each["firstIndex"] == request["index"])
        stream = kind.get("stream", f"t{request['index']}")
        own = {"reason": kind["reason"], "exitCode": kind["exitCode"]}
        log = {"region": "us-east-1", "logGroup": None}
        other = {"reason": "other", "exitCode": 1, "logStream": "other", **log}
        return {"attempts": [other, {**own, "logStream": stream, **log}, other]}

    view = ended("FAILED", failureGroups=kinds, memoryMib=1024)
    world = World(others={"logs": logs}).answers("DescribeRun", view).answers("DescribeTask", attempts)
    result = world.argosy("status", RUN_ID)
    assert (result.exit_code, result.stderr) == (0, stderr)
    return str(result.stdout)


def test_status_groups_failures_by_cause_with_the_last_line_of_each() -> None:
    kinds = [
        failure_kind(12, 3, 139, "SIGSEGV: a segmentation fault"),
        failure_kind(4, 40, 137, "OutOfMemoryError: Container killed due to memory usage"),
        failure_kind(1, 7, 3, "the program ended with an error"),
        failure_kind(2, 60, None, "CannotPullContainerError: no such image"),
        failure_kind(1, 70, 143, "the attempt took longer than 5 s"),
        failure_kind(1, 80, 137, "Essential container in task exited"),
    ]
    shown = status_of(kinds, t3=["began", "core dumped\n", "\n"], t40=["x" * 400], t7=["\x1b[2Jall gone"])
    wanted = f"""
12 attempts of tasks 3 to 14: exit 139: SIGSEGV: a segmentation fault
  its last line: core dumped
4 attempts of tasks 40 to 43: out of memory: killed at its limit of 1,024 MiB (OutOfMemoryError)
  its last line: {"x" * 300}…
2 attempts of tasks 60 to 61: CannotPullContainerError: no such image
task 7: exit 3
  its last line: ␛[2Jall gone
task 70: the attempt took longer than 5 s
task 80: exit 137: SIGKILL: killed from outside, often because memory ran out, of which it may use 1,024 MiB
"""
    assert wanted in shown


def test_what_ecs_says_of_every_ordinary_end_is_never_shown_alone() -> None:
    shown = status_of(
        [failure_kind(1, k, code, "Essential container in task exited") for k, code in enumerate((134, 5))]
    )
    assert "Essential" not in shown
    assert "task 0: exit 134: SIGABRT" in shown
    assert "task 1: exit 5\n" in shown


def test_failures_without_groups_are_grouped_and_one_that_was_given_up_is_not_repeated() -> None:
    pull = {**FAILURE, "exitCode": None, "reason": "given up after 3 losses: CannotPull: no", "index": 4}
    gone = {**pull, "reason": "given up after 9 losses: Host EC2 terminated", "index": 5}
    view = ended("FAILED", failureGroups=[failure_kind(3, 4, None, "CannotPull: no")], failures=[pull, gone, gone])
    shown = World().answers("DescribeRun", view).argosy("status", RUN_ID).stdout
    assert "3 attempts of tasks 4 to 6: CannotPull: no\n2 attempts of task 5: given up after 9 losses: Host" in shown


def test_status_says_what_exit_codes_of_our_images_mean() -> None:
    shown = status_of([failure_kind(1, 1, 64, "x"), failure_kind(1, 2, 75, "y")])
    assert "64: invalid input, never retried; 75: temporary fault, retried\n" in shown
    assert "exit codes" not in status_of([failure_kind(1, 1, 1, "x")])


def test_status_does_without_logs_that_cannot_be_read() -> None:
    """Forgotten, never written, of a program that printed nothing, or refused; one that never ran is not asked for."""
    assert "last line" not in status_of([failure_kind(1, 0, 64, "x"), failure_kind(1, 4, None, "y")], t4=["x"])
    assert "said it" in status_of([failure_kind(1, 0, 64, "x"), failure_kind(1, 4, 64, "y")], t4=["said it"])
    assert "last line" not in status_of([failure_kind(1, 0, 64, "x")], t0=["\n"])
    assert "last line" not in status_of([failure_kind(1, 0, 64, "x", stream=None)])
    refused = [failure_kind(1, k, 64, f"x{k}", stream="denied") for k in range(2)]
    assert "x1" in status_of(refused, stderr=f"warning: {NO_RIGHT}\n")


def test_status_reads_the_logs_of_the_five_most_frequent_kinds_only() -> None:
    kinds = [failure_kind(9 - k, 100 * k, 1, f"r{k}") for k in range(7)]
    shown = status_of(kinds, **{f"t{100 * k}": [f"said {k}"] for k in range(7)})
    assert [k for k in range(7) if f"said {k}" in shown] == [0, 1, 2, 3, 4]


def test_kinds_beyond_the_tenth_are_counted() -> None:
    shown = status_of([failure_kind(2, 10 * k, 1, f"r{k}") for k in range(12)])
    assert "and 4 attempts that failed in other ways\n" in shown


def test_status_says_why_nothing_starts() -> None:
    view = run_view(status="PROVISIONING", tasks=tasks(pending=18), waiting="no pool has capacity: 3 of 3 refuse")
    assert "no pool has capacity" in World().answers("DescribeRun", view).argosy("status", RUN_ID).stdout


def test_what_waits_for_its_turn_on_this_machine_is_not_said_to_start() -> None:
    turn = "waits for a core of this machine, which runs 4 programs at once"
    said = [
        World()
        .answers("DescribeRun", run_view(tasks=tasks(starting=8, running=4), waiting=waiting))
        .argosy("status", RUN_ID)
        for waiting in (turn, None)
    ]
    assert "8 waiting for a core, 4 running" in said[0].stdout
    assert "8 starting, 4 running" in said[1].stdout


def test_status_shows_a_runs_place_in_line() -> None:
    standing = {"inLine": True, "sentences": ["2nd of 7 queues.", "12 waiting tasks of 1 run are ahead of it."]}
    world = World().answers("DescribeRun", run_view(status="PROVISIONING", standing=standing))
    shown = [line.strip() for line in world.argosy("status", RUN_ID).stdout.splitlines()]
    assert shown[1:3] == ["in line      2nd of 7 queues.", "12 waiting tasks of 1 run are ahead of it."]
    standing = {"inLine": False, "sentences": ["It has no place in line: it waits for others."]}
    world = World().answers("DescribeRun", run_view(status="PROVISIONING", standing=standing))
    assert "in line" not in world.argosy("status", RUN_ID).stdout


def test_status_with_tasks_reads_every_page() -> None:
    world = World().answers(
        "DescribeRun",
        run_view(taskList=[task_row(0), task_row(1, gpuIds=["GPU-a", "GPU-b"])], nextToken="page-2"),
        run_view(
            taskList=[
                task_row(
                    2,
                    status="PENDING",
                    attempts=2,
                    exitCode=143,
                    reason="Host EC2 terminated.",
                    seconds=None,
                    instance=None,
                )
            ],
            nextToken=None,
        ),
    )
    golden("status-tasks", world.argosy("status", RUN_ID, "--tasks").stdout)
    assert world.functions.requests[1]["nextToken"] == "page-2"


def test_status_with_tasks_says_from_which_checkpoint_a_next_attempt_resumes() -> None:
    world = World().answers("DescribeRun", run_view(taskList=[task_row(0)], nextToken=None))
    record = {"at": fakes.NOW - 41.0, "bytes": 12_300_000, "seconds": 2.1, "cause": "time"}
    saved = f"s3://argosy-results/argosy/checkpoints/{RUN_ID}/"
    world.objects.put(f"{saved}0000000/1/000009.json", record)
    world.objects.put(f"{saved}0000000/2/000001.json", {**record, "cause": "stop"})
    [row] = [line for line in world.argosy("status", RUN_ID, "--tasks").stdout.splitlines() if "attempt 2" in line]
    assert row.split() == ["0", "attempt", "2", "(stop)", "41", "s", "12.3", "MB"]


def test_status_says_what_interruptions_cost_and_which_pool_is_tried_next() -> None:
    pool = {"instanceType": "c5.2xlarge", "availabilityZone": "us-east-1b", "purchase": "spot"}
    view = run_view(attempts=30, interruptions=12, redoneUsd=0.84, redoneHours=3.1, nextPool=pool)
    [line] = [each for each in World().answers("DescribeRun", view).argosy("status", RUN_ID).stdout.splitlines()
              if "interrupted" in each]  # fmt: skip
    assert line.split(maxsplit=1)[1] == (
        "30, 12 interrupted: 3.100 instance-hours, $0.840 redone; next tried: c5.2xlarge in us-east-1b (spot)"
    )


def test_runs_table() -> None:
    listed = {"runs": [run_view(), ended("FAILED", tasks=tasks(failed=18), costUsd=12.5)], "nextToken": "more"}
    result = World().answers("ListRuns", listed).argosy("runs", "--limit", "2")
    golden("runs", result.stdout)


def test_runs_follows_pages_up_to_the_limit() -> None:
    page = {"runs": [run_view()], "nextToken": "next"}
    world = World().answers("ListRuns", page, page, {"runs": [run_view()], "nextToken": None})
    assert len(world.document("runs", "--limit", "150")["runs"]) == 3
    assert [request["maxResults"] for request in world.functions.requests] == [100, 100, 100]


def test_without_runs_the_next_command_is_named() -> None:
    result = World().answers("ListRuns", {"runs": [], "nextToken": None}).argosy("runs")
    assert result.stdout == "No runs yet. next: argosy submit run.yaml\n"


def test_cluster_table() -> None:
    golden("cluster", World().answers("DescribeCluster", CLUSTER).argosy("cluster", "--all").stdout)


def test_instances_that_are_gone_are_only_counted() -> None:
    lines = World().answers("DescribeCluster", CLUSTER).argosy("cluster").stdout.splitlines()
    assert not any("i-0gone" in line for line in lines)
    assert "1 instance ended recently; --all shows them" in lines


def test_an_empty_cluster_is_one_line() -> None:
    empty = CLUSTER | {
        "instances": [],
        "fleets": [],
        "usdPerHour": 0,
        "spentUsd": 0,
        "onDemandUsd": 0,
        "peakUtilisation": {"cpu": None, "memory": None, "gpus": None},
    }
    result = World().answers("DescribeCluster", empty).argosy("cluster")
    assert result.stdout == "argosy: 0 instances, $0.00 per hour; spent $0.00 (on-demand $0.00)\n"


@pytest.mark.parametrize(
    ("words", "action", "body"),
    [
        (("status", RUN_ID), "DescribeRun", run_view()),
        (("runs",), "ListRuns", {"runs": [run_view()], "nextToken": None}),
        (("cluster",), "DescribeCluster", CLUSTER),
        (("cancel", RUN_ID), "CancelRun", run_view(status="CANCELLED")),
    ],
)
def test_json_is_the_api_s_body(words: tuple[str, ...], action: str, body: Any) -> None:
    assert World().answers(action, body).document(*words) == body


def test_cancel_says_what_stops() -> None:
    world = World().answers("CancelRun", run_view(status="CANCELLED"))
    result = world.argosy("cancel", RUN_ID, "--reason", "wrong input")
    assert result.stdout.startswith(f"{RUN_ID} is being cancelled: 4 live tasks are being stopped")
    assert world.functions.requests[0]["reason"] == "wrong input"


def test_cancel_of_tasks_names_them() -> None:
    world = World().answers("CancelRun", run_view())
    result = world.argosy("cancel", RUN_ID, "--tasks", "3,7-8")
    assert (
        result.stdout == f"Tasks 3,7-8 of {RUN_ID} are being cancelled unless they have ended; the others continue.\n"
    )
    assert world.functions.requests[0]["tasks"] == [[3, 3], [7, 8]]
    assert World().argosy("cancel", RUN_ID, "--tasks", "x").exit_code == 2


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (
            run_view(tasks=tasks(running=1, pending=3)),
            "is being cancelled: 1 live task is being stopped, and no others",
        ),
        (
            run_view(tasks=tasks(starting=1)),
            "is being cancelled: 1 live task is being stopped, pending tasks first; no others are launched.",
        ),
        (run_view(tasks=tasks(pending=3)), "is being cancelled: no task is running, and no others will start."),
        (run_view(status="CANCELLED", tasks=tasks(cancelled=3)), "is cancelled; no tasks are left to stop."),
    ],
)
def test_cancel_counts_the_tasks_being_stopped(view: Any, said: str) -> None:
    stdout = World().answers("CancelRun", view).argosy("cancel", RUN_ID).stdout
    assert stdout.startswith(f"{RUN_ID} {said}")
    assert "are told" not in stdout


def test_the_logs_of_an_attempt_that_never_started_are_not_offered() -> None:
    pull = {"index": 4, "attempt": 1, "exitCode": None, "reason": "CannotPullContainerError: denied", "instance": None}
    ran = {"index": 3, "attempt": 1, "exitCode": 1, "reason": "", "instance": None}
    world = World().answers("DescribeRun", ended(failures=[pull]))
    assert "argosy logs" not in world.argosy("status", RUN_ID).stdout
    world = World().answers("DescribeRun", ended(failures=[ran, pull]))
    assert f"argosy logs {RUN_ID} --task 3" in world.argosy("status", RUN_ID).stdout


def test_cancelling_a_run_that_has_ended_says_so() -> None:
    assert "had already ended: SUCCEEDED" in World().answers("CancelRun", ended()).argosy("cancel", RUN_ID).stdout


@pytest.mark.parametrize(
    ("status", "code", "exit_code", "next_step"),
    [
        (400, "ValidationException", 2, ""),
        (404, "ResourceNotFoundException", 2, "argosy runs"),
        (409, "ConflictException", 2, "--client-token"),
        (429, "ThrottlingException", 3, "wait a moment"),
        (500, "InternalError", 3, "request r-1"),
    ],
)
def test_each_refusal_of_the_api_has_an_exit_code_and_a_next_step(
    status: int, code: str, exit_code: int, next_step: str
) -> None:
    result = (
        World().answers("DescribeRun", api_error(status, code, "said so", ("runId", "is odd"))).argosy("status", RUN_ID)
    )
    assert result.exit_code == exit_code
    assert (result.stdout, result.stderr.splitlines()[:2]) == ("", ["error: said so", "  runId: is odd"])
    assert next_step in result.stderr


def test_a_crashed_function_is_detected_before_its_status() -> None:
    world = World()
    world.functions.error = "Task timed out"
    result = world.argosy("status", RUN_ID)
    assert result.exit_code == 3
    assert "The function argosy-api failed: Task timed out" in result.stderr
    assert "/aws/lambda/argosy-api" in result.stderr


def test_another_program_under_the_function_s_name_is_refused() -> None:
    result = World().answers("DescribeRun", "hello").argosy("status", RUN_ID)
    assert result.exit_code == 3
    assert "did not answer like Argosy's api" in result.stderr


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (NoCredentialsError(), "No AWS credentials were found."),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:4566/"), "Nothing answers at http://127.0.0.1:4566/."),
        (fakes.refusal("AccessDeniedException", "not you", "Invoke"), "argosy-submitter"),
        (fakes.refusal("ExpiredTokenException", "old", "Invoke"), "aws sso login"),
        (ProfileNotFound(profile="work"), "There is no profile work"),
        (ProfileNotFound(profile="work"), "`aws configure sso --profile work` makes it"),
        (SSOTokenLoadError(error_msg="no token"), "type `aws sso login`, with the --profile"),
        (UnauthorizedSSOTokenError(), "type `aws sso login`, with the --profile"),
        (LoginRefreshRequired(), "type `aws login`, with the --profile"),
        (fakes.refusal("Strange", "hm", "Invoke"), "argosy doctor"),
    ],
)
def test_what_aws_refuses_exits_3_with_a_next_step(fault: Exception, says: str) -> None:
    result = World().answers("DescribeRun", fault).argosy("status", RUN_ID)
    assert result.exit_code == 3
    assert says in result.stderr
    assert "next: " in result.stderr


def test_the_cluster_says_which_pools_cool_off_and_whose_prices_are_too_old() -> None:
    cooling = {"coolingOffUntil": "2026-11-21T06:30:33Z", "coolingOffAfter": "no capacity"}
    stale = {"pricedAt": "2026-11-18T06:00:00Z", "priceIsStale": True}
    first, second = CLUSTER["fleets"]
    view = {**CLUSTER, "fleets": [first | cooling, second | cooling | stale]}
    said = World().answers("DescribeCluster", view).argosy("cluster").stdout
    assert "2 pools cooling off: c5.xlarge in us-east-1a until 2026-11-21 06:30:33 UTC after no capacity, ..." in said
    assert "spot prices of 1 pool were last updated at 2026-11-18 06:00:00 UTC: too long ago" in said


def test_the_cluster_lists_fleets_with_a_fault_to_fix_each_reason_once() -> None:
    broken = {"coolingOffUntil": "2026-11-21T06:30:33Z", "coolingOffAfter": "no image", "needsMending": True}
    first, second = CLUSTER["fleets"]
    view = {**CLUSTER, "fleets": [first | broken, second | broken]}
    said = World().answers("DescribeCluster", view).argosy("cluster").stdout
    assert "2 fleets cannot launch until the cause is fixed: c5.xlarge in us-east-1a, ...: no image" in said
    assert "cooling off" not in said


def test_a_run_that_its_budget_stopped_is_offered_a_retry_with_more_money() -> None:
    money = {
        "budgetUsd": 0.5, "spentUsd": 0.471, "reservedUsd": 0.0, "maxHourlyCost": None, "usdPerHour": 0.0,
        "onCap": "drain", "usedUp": True,
    }  # fmt: skip
    view = ended("PARTIAL", tasks=tasks(succeeded=10, failed=2, cancelled=6), budget=money)
    said = World().answers("DescribeRun", view).argosy("status", RUN_ID).stdout
    assert f"next: argosy retry {RUN_ID} --failed --cancelled --budget 0.98" in said
    done = ended("PARTIAL", tasks=tasks(succeeded=17, failed=1), budget={**money, "usedUp": False})
    assert f"argosy retry {RUN_ID} --failed\n" in World().answers("DescribeRun", done).argosy("status", RUN_ID).stdout


def test_what_is_being_cancelled_is_not_to_be_cancelled_again() -> None:
    said = World().answers("DescribeRun", run_view(status="CANCELLING")).argosy("status", RUN_ID).stdout
    assert said.startswith("CANCELLING")
    assert f"next: argosy watch {RUN_ID}" in said
    assert "argosy cancel" not in said


def test_runs_of_a_status_are_looked_for_on_every_page() -> None:
    stopping = run_view(status="CANCELLING", runId="digits-261121-062733-aaaa")
    world = World().answers(
        "ListRuns",
        {"runs": [run_view(), stopping], "nextToken": "next"},
        {"runs": [run_view(), stopping, stopping], "nextToken": None},
    )
    found = world.document("runs", "--status", "cancelling", "--limit", "2")
    assert [each["status"] for each in found["runs"]] == ["CANCELLING"] * 2
    assert found["nextToken"]  # there is a third one
    assert [request["maxResults"] for request in world.functions.requests] == [100, 100]


def test_an_unused_or_unknown_status_is_reported() -> None:
    world = World().answers("ListRuns", {"runs": [run_view()], "nextToken": None})
    assert world.argosy("runs", "--status", "failed").stdout == "There is no such run.\n"
    refused = world.argosy("runs", "--status", "dead")
    assert refused.exit_code == 2
    assert "--status dead is unknown; known: submitted, provisioning, " in refused.stderr


@pytest.mark.parametrize("wanted", ["last", "digits", RUN_ID[:16]])
@pytest.mark.parametrize("command", ["status", "watch", "cancel", "events", "cost", "results"])
def test_commands_take_what_names_a_run_and_say_its_id(command: str, wanted: str) -> None:
    view = ended(cost={"byPool": [], "byWaste": {}, "instanceHours": 0.0})
    world = World().answers("ListRuns", {"runs": [view], "nextToken": None}).answers("CancelRun", view)
    world.answers("DescribeRun", view).answers("ListChanges", {"changes": [], "next": "1.0", "newest": "1.0"})
    world.argosy(command, wanted)
    assert {each["runId"] for each in world.functions.requests if each["action"] != "ListRuns"} == {RUN_ID}


def test_a_name_that_no_run_has_is_refused_before_anything_is_asked_of_one() -> None:
    world = World().answers("ListRuns", {"runs": [run_view()], "nextToken": None})
    refused = world.argosy("cancel", "digts")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: There is no run 'digts'. Did you mean digits?")
    assert [each["action"] for each in world.functions.requests] == ["ListRuns"]


def test_the_table_of_instances_counts_shared_gpus_and_the_memory_that_is_free_on_them() -> None:
    devices = [
        {"gpuId": "a", "mode": "NVIDIA_MPS", "freeMib": 6_144},
        {"gpuId": "b", "mode": "IDLE", "freeMib": 22_000},
    ]
    shown = instance(gpus={"total": 2, "used": 0}, gpuDevices=devices)
    result = World().answers("ListInstances", {"instances": [shown], "asOf": 7, "nextToken": None}).argosy("instances")
    assert "0/2, 1 shared, 6.0 GiB free" in result.stdout, result.stderr


def test_a_run_says_which_share_of_a_gpu_its_tasks_have() -> None:
    view = run_view(gpus=0, gpuShareMib=8_000)
    result = World().answers("DescribeRun", view).argosy("status", RUN_ID)
    assert "8,000 MiB of a GPU per task" in result.stdout, result.stderr
    result = World().answers("DescribeRun", run_view(gpus=1, gpuPart=0.25)).argosy("status", RUN_ID)
    assert "0.25 of a GPU per task" in result.stdout, result.stderr


def test_after_a_stop_by_equal_failures_the_tasks_that_were_never_tried_are_one_command_away() -> None:
    view = run_view(
        status="FAILED",
        statusReason="stopped early: the first 5 tasks failed alike (exit code 1): no such flag",
        tasks=tasks(failed=5, cancelled=45),
    )
    shown = World().answers("DescribeRun", view).argosy("status", RUN_ID).stdout
    assert f"next: argosy retry {RUN_ID} --cancelled" in shown
