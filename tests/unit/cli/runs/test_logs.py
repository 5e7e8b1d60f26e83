"""`logs`: the stream of a live attempt, of one that has ended, several at once, following to the end."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

import json
from typing import Any

from tests.fakes.cli import RUN_ID, Pages, World, ended, refusal, run_view, task_row

ARN = "arn:aws:ecs:us-east-1:1:task/argosy/"


def line(second: int, text: str) -> dict[str, Any]:
    return {"timestamp": 1_795_242_453_000 + 1000 * second, "message": text}


class Logs:
    """CloudWatch Logs; a page holds two events, and the token of an exhausted stream is answered again."""

    def __init__(self, **streams: list[dict[str, Any]]) -> None:
        self.streams = streams
        self.denied = False
        self.place = ("/ecs/argosy/tasks", "argosy", "main")

    def get_log_events(
        self, *, logGroupName: str, logStreamName: str, startFromHead: bool, nextToken: str = "f/0"
    ) -> Any:
        assert startFromHead
        if self.denied:
            raise refusal("AccessDeniedException", operation="GetLogEvents")
        prefix, container, task_id = logStreamName.split("/")
        assert (logGroupName, prefix, container) == self.place
        if task_id not in self.streams:
            raise refusal("ResourceNotFoundException", operation="GetLogEvents")
        begin = int(nextToken.removeprefix("f/"))
        events = self.streams[task_id][begin : begin + 2]
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
    return World(others={"logs": logs, "ecs": ecs or Ecs()}).answers("DescribeRun", view)


def test_a_live_task_s_log_is_found_by_its_arn() -> None:
    view = run_view(taskList=[task_row(0), task_row(1, status="RUNNING", taskArn=f"{ARN}aa")])
    logs = Logs(aa=[line(0, "one"), line(1, "two"), line(2, "three\n")])
    result = world(view, logs).argosy("logs", RUN_ID, "--task", "1")
    assert result.stdout.splitlines() == ["06:27:33 one", "06:27:34 two", "06:27:35 three"]


def test_an_ended_attempt_is_found_through_ecs_and_the_latest_one_counts() -> None:
    view = ended(taskList=[task_row(0, attempts=2)])
    ecs = Ecs(aa=(RUN_ID, 0, 1), bb=(RUN_ID, 0, 2), cc=("other-run", 0, 9))
    logs = Logs(aa=[line(0, "first try")], bb=[line(9, "second try")], cc=[line(0, "not ours")])
    assert world(view, logs, ecs).argosy("logs", RUN_ID, "--task", "0").stdout == "06:27:42 second try\n"


def test_without_a_task_every_line_says_whose_it_is() -> None:
    view = run_view(
        taskList=[task_row(0, taskArn=f"{ARN}aa"), task_row(1, taskArn=f"{ARN}bb"), task_row(2, attempts=0)]
    )
    result = world(view, Logs(aa=[line(0, "x")], bb=[line(1, "y")])).argosy("logs", RUN_ID)
    assert result.stdout.splitlines() == ["06:27:33 [task 0] x", "06:27:34 [task 1] y"]


def test_json_is_one_document_per_line() -> None:
    view = run_view(taskList=[task_row(0, taskArn=f"{ARN}aa")])
    result = world(view, Logs(aa=[line(0, "x")])).argosy("logs", RUN_ID, "--json")
    assert json.loads(result.stdout) == {"timestamp": "2026-11-21T06:27:33+00:00", "task": 0, "message": "x"}


def test_following_goes_on_until_the_task_has_ended_and_takes_late_lines() -> None:
    live = run_view(taskList=[task_row(0, status="RUNNING", taskArn=f"{ARN}aa")])
    logs = Logs(aa=[line(0, "one")])
    shell = world(live, logs)
    shell.functions.answers["DescribeRun"] = [live, ended(taskList=[task_row(0)])]
    shell.on_sleep = lambda _: logs.streams["aa"].append(line(len(logs.streams["aa"]), "more"))
    result = shell.argosy("logs", RUN_ID, "--task", "0", "--follow")
    assert result.stdout.splitlines() == ["06:27:33 one", "06:27:34 more", "06:27:35 more"]


def test_a_task_that_does_not_exist_is_refused() -> None:
    result = world(run_view(taskList=[task_row(0)]), Logs()).argosy("logs", RUN_ID, "--task", "7")
    assert result.exit_code == 2
    assert "there is no task 7" in result.stderr


def test_before_anything_has_started_it_says_so() -> None:
    result = world(run_view(taskList=[task_row(0, attempts=0)]), Logs()).argosy("logs", RUN_ID)
    assert result.exit_code == 2
    assert "Nothing has been started yet" in result.stderr


def test_a_program_that_has_printed_nothing_is_no_fault_of_the_log() -> None:
    view = run_view(taskList=[task_row(0, taskArn=f"{ARN}aa")])
    assert "printed nothing so far" in world(view, Logs()).argosy("logs", RUN_ID).stderr


def test_an_attempt_ecs_has_forgotten_names_the_log_group() -> None:
    result = world(ended(taskList=[task_row(0)]), Logs()).argosy("logs", RUN_ID)
    assert result.exit_code == 2
    assert "/ecs/argosy/tasks" in result.stderr


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
    shell.functions.answers["DescribeRun"] = [starting, live, ended(taskList=[task_row(0)])]
    assert shell.argosy("logs", RUN_ID, "--follow").stdout == "06:27:33 [task 0] x\n"


def test_without_the_right_to_list_tasks_live_logs_are_still_shown() -> None:
    ecs = Ecs()
    ecs.denied = True
    view = run_view(taskList=[task_row(0), task_row(1, status="RUNNING", taskArn=f"{ARN}aa")])
    result = world(view, Logs(aa=[line(0, "x")]), ecs).argosy("logs", RUN_ID)
    assert result.stdout == "06:27:33 [task 1] x\n"
    assert "ecs:ListTasks" in result.stderr


def test_a_failure_that_knows_its_task_needs_no_ecs() -> None:
    failure = {"index": 0, "attempt": 2, "exitCode": 1, "reason": "", "instance": "i-a", "taskArn": f"{ARN}aa"}
    view = ended("FAILED", taskList=[task_row(0, status="FAILED", attempts=2)], failures=[failure])
    assert world(view, Logs(aa=[line(0, "boom")])).argosy("logs", RUN_ID, "--task", "0").stdout == "06:27:33 boom\n"


def test_lines_of_several_tasks_come_in_the_order_of_time() -> None:
    view = run_view(taskList=[task_row(0, taskArn=f"{ARN}aa"), task_row(1, taskArn=f"{ARN}bb")])
    logs = Logs(aa=[line(0, "a"), line(2, "c")], bb=[line(1, "b")])
    printed = world(view, logs).argosy("logs", RUN_ID).stdout.splitlines()
    assert [each[-1] for each in printed] == ["a", "b", "c"]


def test_a_task_s_log_is_read_where_the_task_ran() -> None:
    arn = ARN.replace("us-east-1", "eu-west-1")
    view = run_view(taskList=[task_row(0, status="RUNNING", taskArn=f"{arn}aa")])
    shell = world(view, Logs(aa=[line(0, "one")]))
    assert shell.argosy("logs", RUN_ID, "--task", "0").stdout == "06:27:33 one\n"
    assert [each.region for each in shell.connections].count("eu-west-1") == 2, "ECS and CloudWatch Logs of that Region"
