"""`logs`: the stream of a live attempt, of one that has ended, several at once, following to the end."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.cli import RUN_ID, Pages, World, ended, refusal, run_view, task_row, tasks

ARN = "arn:aws:ecs:us-east-1:1:task/argosy/"


def line(second: int, text: str) -> dict[str, Any]:
    return {"timestamp": 1_795_242_453_000 + 1000 * second, "message": text}


class Logs:
    """CloudWatch Logs; a page holds two events, and the token of an exhausted stream is answered again."""

    def __init__(self, **streams: list[dict[str, Any]]) -> None:
        self.streams = streams
        self.denied = False
        self.calls = 0
        self.place = ("/ecs/argosy/tasks", "argosy", "main")

    def get_log_events(
        self,
        *,
        logGroupName: str,
        logStreamName: str,
        startFromHead: bool,
        nextToken: str = "f/0",
        startTime: int = 0,
        limit: int = 2,
    ) -> Any:
        self.calls += 1
        assert startFromHead or nextToken == "f/0", "the token of a page leads forward only"
        if self.denied:
            raise refusal("AccessDeniedException", operation="GetLogEvents")
        prefix, container, task_id = logStreamName.split("/")
        assert (logGroupName, prefix, container) == self.place
        if task_id not in self.streams:
            raise refusal("ResourceNotFoundException", operation="GetLogEvents")
        written = self.streams[task_id]
        begin = int(nextToken.removeprefix("f/")) if startFromHead else max(0, len(written) - limit)
        while begin < len(written) and written[begin]["timestamp"] < startTime:
            begin += 1
        events = written[begin : begin + limit]
        return {"events": events, "nextForwardToken": f"f/{begin + len(events)}"}


class Ecs:
    """The tasks that have stopped lately: id -> (run, index, attempt)."""

    def __init__(self, **stopped: tuple[str, int, int]) -> None:
        self._stopped = stopped
        self.container = "main"
        self.options = {"awslogs-group": "/ecs/argosy/tasks", "awslogs-stream-prefix": "argosy"}
        self.denied = False

    def get_paginator(self, operation: str) -> Pages:
        assert operation == "list_tasks"
        return Pages(self._listed)

    def _listed(self, cluster: str, desiredStatus: str) -> list[Any]:
        if self.denied:
            raise refusal("AccessDeniedException", operation="ListTasks")
        assert (cluster, desiredStatus) == ("argosy", "STOPPED")
        return [{"taskArns": []}, {"taskArns": [ARN + each for each in self._stopped]}]

    def describe_tasks(self, *, cluster: str, tasks: list[str]) -> Any:
        assert len(tasks) <= 100
        if self.denied:
            raise refusal("AccessDeniedException", operation="DescribeTasks")
        assert tasks, "ECS refuses an empty list"
        return {"tasks": [self._task(arn) for arn in tasks if arn.removeprefix(ARN) in self._stopped]}

    def describe_task_definition(self, *, taskDefinition: str) -> Any:
        assert taskDefinition == "arn:definition"
        container = {"name": self.container, "logConfiguration": {"logDriver": "awslogs", "options": self.options}}
        return {"taskDefinition": {"containerDefinitions": [{"name": "sidecar"}, container]}}

    def _task(self, arn: str) -> Any:
        run, index, attempt = self._stopped[arn.removeprefix(ARN)]
        values = {
            "ARGOSY_RUN_ID": run,
            "ARGOSY_TASK_INDEX": str(index),
            "ARGOSY_TASK_ATTEMPT": str(attempt),
            "ARGOSY_LAUNCH": "1",
        }
        environment = [{"name": name, "value": value} for name, value in values.items()]
        overrides = {"containerOverrides": [{"name": self.container, "environment": environment}]}
        return {"taskArn": arn, "taskDefinitionArn": "arn:definition", "overrides": overrides}


def world(view: dict[str, Any], logs: Logs, ecs: Ecs | None = None) -> World:
    made = World(others={"logs": logs, "ecs": ecs or Ecs()})
    return shows(made, view)


def shows(made: World, *views: dict[str, Any]) -> World:
    """A run with these views, one poll after the other: ListTasks answers as of the poll before it."""
    coming, seen = list(views), list[dict[str, Any]]()

    def look(request: Any) -> dict[str, Any]:
        seen.append(coming.pop(0) if len(coming) > 1 else coming[0])
        return {name: value for name, value in seen[-1].items() if name != "taskList"}

    def listed(request: Any) -> dict[str, Any]:
        rows = [each for each in seen[-1]["taskList"] if each["status"] in request["status"]]
        more = "more" if len(rows) > request["maxResults"] else None
        return {"tasks": rows[: request["maxResults"]], "asOf": 7, "nextToken": more}

    return made.answers("DescribeRun", look).answers("ListTasks", listed)


def attempt(number: int, task_id: str, outcome: str | None = "SUCCEEDED", **changes: Any) -> dict[str, Any]:
    """One of DescribeTask's attempts."""
    return {
        "attempt": number,
        "outcome": outcome,
        "stoppedAt": None if outcome is None else "2026-11-21T06:27:45.000Z",
        "region": "us-east-1",
        "logGroup": None,
        "logStream": f"argosy/main/{task_id}",
        **changes,
    }


def with_task(logs: Logs, *attempts: dict[str, Any], status: str = "SUCCEEDED") -> World:
    reply = {"runId": RUN_ID, "asOf": 7, "index": 1, "status": status, "attempts": list(attempts)}
    return World(others={"logs": logs, "ecs": Ecs()}).answers("DescribeTask", reply)


THREE = [line(0, "one"), line(1, "two"), line(2, "three\n")]


def test_the_latest_attempt_of_a_task_is_shown_after_two_kinds_of_calls() -> None:
    logs = Logs(aa=THREE, bb=[line(9, "again")])
    shell = with_task(logs, attempt(1, "bb", "FAILED"), attempt(2, "aa"))
    result = shell.argosy("logs", RUN_ID, "--task", "1")
    assert result.stdout.splitlines() == ["06:27:33 one", "06:27:34 two", "06:27:35 three"]
    assert [each["action"] for each in shell.functions.requests] == ["DescribeTask"]


def test_the_last_lines_of_a_task_take_two_calls_however_long_ago_it_ended() -> None:
    logs = Logs(aa=THREE)
    shell = with_task(logs, attempt(1, "aa"))
    assert shell.argosy("logs", RUN_ID, "--task", "1", "--tail", "1").stdout == "06:27:35 three\n"
    assert (len(shell.functions.requests), logs.calls) == (1, 1)


def test_an_earlier_attempt_and_the_one_that_failed_last_can_be_asked_for() -> None:
    logs = Logs(aa=[line(0, "a")], bb=[line(1, "b")], cc=[line(2, "c")])
    shell = with_task(logs, attempt(1, "aa", "INTERRUPTED"), attempt(2, "bb", "FAILED"), attempt(3, "cc"))
    assert shell.argosy("logs", RUN_ID, "--task", "1", "--attempt", "1").stdout == "06:27:33 a\n"
    assert shell.argosy("logs", RUN_ID, "--task", "1", "--failed").stdout == "06:27:34 b\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--attempt", "1"), "--attempt needs a task"),
        (("--task", "1", "--attempt", "9"), "Task 1 has no attempt 9; its attempts: 1."),
        (("--task", "1", "--failed"), "No attempt of task 1 has failed."),
        (("--task", "1", "--since", "yesterday"), "--since: 'yesterday' is not a time"),
        (("--task", "1", "--grep", "("), "is not a regular expression"),
        (("--task", "1", "--grep", "(?=a)"), "is not a regular expression of RE2: invalid perl operator: (?="),
    ],
)
def test_output_that_cannot_be_shown_is_reported(words: tuple[str, ...], sentence: str) -> None:
    result = with_task(Logs(aa=[line(0, "x")]), attempt(1, "aa")).argosy("logs", RUN_ID, *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--grep", "o"), ["one", "two"]),
        (("--grep", "^t", "--tail", "1"), ["three"]),
        (("--since", "2026-11-21T06:27:34Z"), ["two", "three"]),
        (("--since", "2026-11-21T06:27:35"), ["three"]),
        (("--since", "1m"), ["one", "two", "three"]),
    ],
)
def test_lines_can_be_chosen(words: tuple[str, ...], shown: list[str]) -> None:
    shell = with_task(Logs(aa=THREE), attempt(1, "aa"))
    shell.now += 60
    printed = shell.argosy("logs", RUN_ID, "--task", "1", *words).stdout
    assert [each.split()[-1] for each in printed.splitlines()] == shown


def test_no_line_keeps_a_pattern_at_work_for_ever() -> None:
    """A10: with a backtracking engine this takes longer than the universe is old."""
    hostile, surrogate = line(0, "a" * 200 + "!"), line(1, "\ud800 aaa")
    shell = with_task(Logs(aa=[hostile, surrogate]), attempt(1, "aa"))
    printed = shell.argosy("logs", RUN_ID, "--task", "1", "--grep", "(a+)+$").stdout
    assert [each.split()[-1] for each in printed.splitlines()] == ["aaa"]


def test_where_a_definition_of_the_user_s_own_logs_is_read() -> None:
    logs = Logs(aa=[line(0, "x")])
    logs.place = ("/mine", "p", "app")
    shell = with_task(logs, attempt(1, "aa", logGroup="/mine", logStream="p/app/aa", region="eu-west-1"))
    assert shell.argosy("logs", RUN_ID, "--task", "1").stdout == "06:27:33 x\n"
    assert [each.region for each in shell.connections].count("eu-west-1") == 1


def test_a_task_that_never_got_an_ecs_task_says_so() -> None:
    shell = with_task(Logs(), attempt(1, "", "LOST", logStream=None))
    assert "No ECS task of that attempt is known" in shell.argosy("logs", RUN_ID, "--task", "1").stderr


def test_a_task_that_has_not_started_says_so() -> None:
    shell = with_task(Logs(), status="PENDING")
    assert "No task has started yet" in shell.argosy("logs", RUN_ID, "--task", "1").stderr


def test_the_latest_failures_of_a_run_are_shown() -> None:
    failure = {"index": 4, "attempt": 2, "exitCode": 1, "reason": "", "instance": "i-a", "taskArn": f"{ARN}aa"}
    shell = world(run_view(failures=[failure]), Logs(aa=[line(0, "boom")]))
    assert shell.argosy("logs", RUN_ID, "--failed").stdout == "06:27:33 [task 4] boom\n"
    none = world(run_view(), Logs()).argosy("logs", RUN_ID, "--failed")
    assert "No attempt has failed" in none.stderr


def test_of_several_tasks_an_ended_attempt_is_found_through_ecs_and_the_latest_one_counts() -> None:
    view = ended(taskList=[task_row(0, attempts=2)])
    ecs = Ecs(aa=(RUN_ID, 0, 1), bb=(RUN_ID, 0, 2), cc=("other-run", 0, 9))
    logs = Logs(aa=[line(0, "first try")], bb=[line(9, "second try")], cc=[line(0, "not ours")])
    assert world(view, logs, ecs).argosy("logs", RUN_ID).stdout == "06:27:42 [task 0] second try\n"


def test_of_very_many_tasks_a_hundred_are_shown_running_ones_first_and_the_rest_is_counted() -> None:
    rows = [task_row(number, status="SUCCEEDED") for number in range(500)]
    rows += [task_row(number, status="RUNNING", taskArn=f"{ARN}t{number}") for number in range(500, 570)]
    rows += [task_row(570, status="FAILED", taskArn=f"{ARN}t570")]
    logs = Logs(**{f"t{number}": [line(0, f"line {number}")] for number in range(500, 571)})
    shell = world(run_view(taskList=rows, tasks=tasks(pending=1000, running=70, succeeded=500, failed=1)), logs)
    result = shell.argosy("logs", RUN_ID)
    assert [each.split()[-1] for each in result.stdout.splitlines()] == [str(number) for number in range(500, 571)]
    assert "471 other tasks are left out: --task N shows one of them" in " ".join(result.stderr.split())
    assert len(shell.functions.requests) == 4


def test_without_a_task_every_line_names_its_task() -> None:
    view = run_view(
        taskList=[task_row(0, taskArn=f"{ARN}aa"), task_row(1, taskArn=f"{ARN}bb"), task_row(2, attempts=0)]
    )
    result = world(view, Logs(aa=[line(0, "x")], bb=[line(1, "y")])).argosy("logs", RUN_ID)
    assert result.stdout.splitlines() == ["06:27:33 [task 0] x", "06:27:34 [task 1] y"]


def test_json_is_one_document_of_all_lines_and_of_none() -> None:
    view = run_view(taskList=[task_row(0, status="RUNNING", taskArn=f"{ARN}aa")])
    found = json.loads(world(view, Logs(aa=[line(0, "x"), line(1, "y")])).argosy("logs", RUN_ID, "--json").stdout)
    assert [each["message"] for each in found["lines"]] == ["x", "y"]
    assert json.loads(world(view, Logs(aa=[])).argosy("logs", RUN_ID, "--json").stdout) == {"lines": []}


def test_what_comes_piece_by_piece_is_no_document() -> None:
    for words in (("logs", RUN_ID), ("events",)):
        refused = World().argosy(*words, "--follow", "--json")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "next: take --json-lines" in refused.stderr


def test_json_lines_are_one_document_per_line() -> None:
    view = run_view(taskList=[task_row(0, taskArn=f"{ARN}aa")])
    result = world(view, Logs(aa=[line(0, "x")])).argosy("logs", RUN_ID, "--json-lines")
    assert json.loads(result.stdout) == {"timestamp": "2026-11-21T06:27:33+00:00", "task": 0, "message": "x"}


def test_following_continues_until_the_task_has_ended_and_includes_late_lines() -> None:
    logs = Logs(aa=[line(0, "one")])
    shell = with_task(logs, attempt(1, "aa", None), status="RUNNING")
    over = {"runId": RUN_ID, "asOf": 8, "index": 1, "status": "SUCCEEDED", "attempts": [attempt(1, "aa")]}
    shell.functions.answers["DescribeTask"].append(over)
    shell.on_sleep = lambda _: logs.streams["aa"].append(line(len(logs.streams["aa"]), "more"))
    result = shell.argosy("logs", RUN_ID, "--task", "1", "--follow")
    assert result.stdout.splitlines() == ["06:27:33 one", "06:27:34 more", "06:27:35 more"]


def test_following_an_attempt_ends_with_it_even_if_its_task_continues() -> None:
    shell = with_task(Logs(aa=[line(0, "x")]), attempt(1, "aa", "FAILED"), attempt(2, "bb", None), status="RUNNING")
    assert shell.argosy("logs", RUN_ID, "--task", "1", "--attempt", "1", "-f").stdout == "06:27:33 x\n"


def test_before_anything_has_started_it_says_so() -> None:
    result = world(run_view(taskList=[task_row(0, attempts=0)]), Logs()).argosy("logs", RUN_ID)
    assert result.exit_code == 2
    assert "No task has started yet" in result.stderr


def test_a_program_that_has_printed_nothing_is_no_fault_of_the_log() -> None:
    view = run_view(taskList=[task_row(0, taskArn=f"{ARN}aa")])
    assert "No matching log lines yet" in world(view, Logs()).argosy("logs", RUN_ID).stderr


def test_for_several_forgotten_attempts_the_way_to_each_log_is_shown() -> None:
    result = world(ended(taskList=[task_row(0)]), Logs()).argosy("logs", RUN_ID)
    assert result.exit_code == 2
    assert f"argosy logs {RUN_ID} --task N" in result.stderr


def test_a_refusal_of_cloudwatch_is_not_taken_for_an_empty_log() -> None:
    logs = Logs()
    logs.denied = True
    view = run_view(taskList=[task_row(0, taskArn=f"{ARN}aa")])
    assert world(view, logs).argosy("logs", RUN_ID).exit_code == 3


def test_a_task_definition_of_the_user_s_own_says_where_it_logs() -> None:
    ecs = Ecs(aa=(RUN_ID, 0, 1))
    ecs.container, ecs.options = "app", {"awslogs-group": "/mine", "awslogs-stream-prefix": "p"}
    logs = Logs(aa=[line(0, "x")])
    logs.place = ("/mine", "p", "app")
    view = run_view(taskList=[task_row(0, status="RUNNING", taskArn=f"{ARN}aa")])
    assert world(view, logs, ecs).argosy("logs", RUN_ID).stdout == "06:27:33 [task 0] x\n"


def test_without_the_right_to_ask_ecs_the_deployment_s_own_group_is_read() -> None:
    ecs = Ecs()
    ecs.denied = True
    view = run_view(taskList=[task_row(0, status="RUNNING", taskArn=f"{ARN}aa")])
    assert world(view, Logs(aa=[line(0, "x")]), ecs).argosy("logs", RUN_ID).stdout == "06:27:33 [task 0] x\n"


def test_more_tasks_than_one_call_describes() -> None:
    rows = [task_row(index, status="RUNNING", taskArn=f"{ARN}t{index}") for index in range(101)]
    logs = Logs(**{f"t{index}": [line(0, "x")] for index in range(101)})
    lines = world(run_view(taskList=rows), logs).argosy("logs", RUN_ID).stdout.splitlines()
    assert len(lines) == 100  # without --task at most the first hundred


def test_following_finds_a_task_that_had_no_arn_at_first() -> None:
    starting = run_view(taskList=[task_row(0, status="STARTING")])
    live = run_view(taskList=[task_row(0, status="RUNNING", taskArn=f"{ARN}aa")])
    shell = world(starting, Logs(aa=[line(0, "x")]))
    shows(shell, starting, live, ended(taskList=[task_row(0)]))
    assert shell.argosy("logs", RUN_ID, "--follow").stdout == "06:27:33 [task 0] x\n"


def test_without_the_right_to_list_tasks_live_logs_are_still_shown() -> None:
    ecs = Ecs()
    ecs.denied = True
    view = run_view(taskList=[task_row(0), task_row(1, status="RUNNING", taskArn=f"{ARN}aa")])
    result = world(view, Logs(aa=[line(0, "x")]), ecs).argosy("logs", RUN_ID)
    assert result.stdout == "06:27:33 [task 1] x\n"
    assert "ecs:ListTasks" in result.stderr


def test_a_failure_with_its_task_arn_needs_no_ecs() -> None:
    failure = {"index": 0, "attempt": 2, "exitCode": 1, "reason": "", "instance": "i-a", "taskArn": f"{ARN}aa"}
    view = ended("FAILED", taskList=[task_row(0, status="FAILED", attempts=2)], failures=[failure])
    assert world(view, Logs(aa=[line(0, "boom")])).argosy("logs", RUN_ID).stdout == "06:27:33 [task 0] boom\n"


def test_lines_of_several_tasks_come_in_the_order_of_time() -> None:
    view = run_view(taskList=[task_row(0, taskArn=f"{ARN}aa"), task_row(1, taskArn=f"{ARN}bb")])
    logs = Logs(aa=[line(0, "a"), line(2, "c")], bb=[line(1, "b")])
    printed = world(view, logs).argosy("logs", RUN_ID).stdout.splitlines()
    assert [each[-1] for each in printed] == ["a", "b", "c"]


def test_a_task_s_log_is_read_where_the_task_ran() -> None:
    arn = ARN.replace("us-east-1", "eu-west-1")
    view = run_view(taskList=[task_row(0, status="RUNNING", taskArn=f"{arn}aa")])
    shell = world(view, Logs(aa=[line(0, "one")]))
    assert shell.argosy("logs", RUN_ID).stdout == "06:27:33 [task 0] one\n"
    assert [each.region for each in shell.connections].count("eu-west-1") == 2, "ECS and CloudWatch Logs of that Region"


def of_environment(*, failures: bool = False) -> World:
    """Its newest run has printed two lines, the one before it, which goes on, another one."""
    names = ["web-261122-062733-k3f9", "web-261121-062733-k3f9"]
    ids = {names[0]: "aa", names[1]: "bb"}
    failed = [{"index": 0, "attempt": 1, "taskArn": ARN + "bb"}]

    def described(request: Any) -> dict[str, Any]:
        of_run = {"name": "web", "environment": "web", "tasks": tasks(running=1), "runId": request["runId"]}
        return run_view(**of_run, failures=failed if failures and request["runId"] == names[1] else [])

    def listed(request: Any) -> dict[str, Any]:
        row = task_row(0, status="RUNNING", taskArn=ARN + ids[request["runId"]])
        return {"tasks": [row] if "RUNNING" in request["status"] else [], "asOf": 7, "nextToken": None}

    logs = Logs(aa=[line(0, "one"), line(2, "three")], bb=[line(1, "two")])
    ecs = Ecs(aa=(names[0], 0, 1), bb=(names[1], 0, 1))
    made = World(others={"logs": logs, "ecs": ecs}).answers("DescribeRun", described).answers("ListTasks", listed)
    runs = [{"runId": each, "name": "web", "environment": "web"} for each in names]
    return made.answers("ListRuns", {"runs": runs, "nextToken": None})


def test_lines_of_an_environment_are_those_of_all_its_runs_and_name_them() -> None:
    assert of_environment().argosy("logs", "web").stdout.splitlines() == [
        "06:27:33 [web-261122-062733-k3f9 task 0] one",
        "06:27:34 [web-261121-062733-k3f9 task 0] two",
        "06:27:35 [web-261122-062733-k3f9 task 0] three",
    ]
    told = of_environment().document("logs", "web")["lines"]
    assert [each["runId"][:10] for each in told] == ["web-261122", "web-261121", "web-261122"]


def test_failures_in_any_run_of_an_environment_are_found_and_their_absence_is_reported() -> None:
    shown = of_environment(failures=True).argosy("logs", "web", "--failed").stdout
    assert shown == "06:27:34 [web-261121-062733-k3f9 task 0] two\n"
    result = of_environment().argosy("logs", "web", "--failed")
    assert (result.exit_code, result.stderr) == (2, "error: No attempt has failed.\n")
