"""`exec`: access to tasks, refusals, and the start of AWS's plugin; its exit code is the command's."""

# ruff: noqa: N803 - boto3's names

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from argosy.client.entering.way_in import WayIn
from argosy.client.extras import installing
from tests.fakes.cli import DEPLOYMENT, RUN_ID, World, api_error, refusal

ARN = "arn:aws:ecs:us-east-1:123456789012:task/argosy/0123"
SESSION = {"sessionId": "ecs-execute-command-1", "streamUrl": "wss://there", "tokenValue": "secret"}
LOCAL = ("--endpoint-url", "http://127.0.0.1:4566")
LABEL = {"ARGOSY_RUN_ID": RUN_ID, "ARGOSY_TASK_INDEX": "17", "ARGOSY_TASK_ATTEMPT": "2"}
# Says what the real one says around a session, and runs the command as the agent in a container does: split, no shell.
PLUGIN = """#!{python}
import json, os, shlex, subprocess, sys
open({told!r}, "w").write(json.dumps(sys.argv[1:]))
print("\\r\\nStarting session with SessionId: ecs-execute-command-1\\r", flush=True)
words = shlex.split(open({command!r}).read())
said = subprocess.run(words, stdout=subprocess.PIPE, check=False).stdout
sys.stdout.buffer.write(said.replace(b"\\n", b"\\r\\n"))
print("\\r\\n\\r\\nExiting session with sessionId: ecs-execute-command-1.\\r\\n", flush=True)
"""


class Ecs:
    """One task with two containers; the second gets a command."""

    meta = SimpleNamespace(endpoint_url="https://ecs.us-east-1.amazonaws.com")

    def __init__(self, folder: Path, **task: Any) -> None:
        self.command = folder / "command"
        self.session: dict[str, Any] = SESSION
        self.fault: Exception | None = None
        self.asked: dict[str, Any] = {}
        self.definition: dict[str, Any] = {"taskRoleArn": "arn:role", "containerDefinitions": [{"name": "main"}]}
        told = [{"name": "ARGOSY_LAUNCH", "value": "1"}]
        self.task = {
            "taskArn": ARN,
            "taskDefinitionArn": "arn:definition",
            "lastStatus": "RUNNING",
            "enableExecuteCommand": True,
            "containers": [{"name": "beside", "runtimeId": "r-0"}, {"name": "main", "runtimeId": "r-1"}],
            "overrides": {"containerOverrides": [{"name": "beside"}, {"name": "main", "environment": told}]},
            **task,
        }

    def describe_tasks(self, *, cluster: str, tasks: list[str]) -> Any:
        assert (cluster, tasks) == ("argosy", [ARN])
        return {"tasks": [self.task] if self.task["lastStatus"] else []}

    def describe_task_definition(self, *, taskDefinition: str) -> Any:
        assert taskDefinition == "arn:definition"
        return {"taskDefinition": self.definition}

    def execute_command(self, **request: Any) -> Any:
        if self.fault is not None:
            raise self.fault
        self.asked = request
        self.command.write_text(request["command"])
        return {"session": self.session}


def attempt(number: int, **changes: Any) -> dict[str, Any]:
    return {"attempt": number, "taskArn": ARN, "outcome": None, **changes}


def world(ecs: Ecs, status: str = "RUNNING", attempts: Any = None, **deployment: Any) -> World:
    made = World(others={"ecs": ecs})
    made.parameters.values["/argosy/deployment"] = json.dumps({**DEPLOYMENT, "allowExec": True, **deployment})
    rows = [attempt(1, outcome="INTERRUPTED"), attempt(2)] if attempts is None else attempts
    return made.answers("DescribeTask", {"runId": RUN_ID, "index": 17, "status": status, "attempts": rows})


def way_of(pid: int) -> dict[str, Any]:
    stream, token = WayIn(pid=pid).as_session()
    return {**SESSION, "streamUrl": stream, "tokenValue": token}


@pytest.fixture
def ecs(tmp_path: Path) -> Ecs:
    return Ecs(tmp_path)


@pytest.fixture
def told(tmp_path: Path, ecs: Ecs, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin on PATH; the file contains the arguments that it was started with."""
    folder, told = tmp_path / "bin", tmp_path / "told"
    folder.mkdir()
    plugin = folder / "session-manager-plugin"
    plugin.write_text(PLUGIN.format(python=sys.executable, told=str(told), command=str(ecs.command)))
    plugin.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return told


def test_a_command_shows_its_output_alone_and_ends_with_its_exit_code(ecs: Ecs, told: Path) -> None:
    result = world(ecs).argosy("exec", RUN_ID, "17", "--", "sh", "-c", "echo 'a b'; printf '%s' \"$0\"; exit 7", "x y")
    assert (result.exit_code, result.stdout, result.stderr) == (7, "a b\nx y", "")
    where = {"cluster": "argosy", "task": ARN, "container": "main", "interactive": True}
    assert {name: value for name, value in ecs.asked.items() if name != "command"} == where
    assert shlex.split(ecs.asked["command"])[:2] == ["sh", "-c"]


def test_the_plugin_is_started_as_the_aws_cli_starts_it(ecs: Ecs, told: Path) -> None:
    result = world(ecs).argosy("exec", RUN_ID, "17", "--profile", "lab", "true")
    assert result.exit_code == 0, result.output
    session, region, operation, profile, parameters, endpoint = json.loads(told.read_text())
    assert json.loads(session) == SESSION
    assert (region, operation, profile) == ("us-east-1", "StartSession", "lab")
    assert json.loads(parameters) == {"Target": "ecs:argosy_0123_r-1"}
    assert endpoint == "https://ecs.us-east-1.amazonaws.com"


def test_without_a_command_a_shell_is_opened(ecs: Ecs, told: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its output and the plugin's are passed through; the shell's exit code is unknown."""
    result = world(ecs).argosy("exec", RUN_ID, "17")
    assert (result.exit_code, ecs.asked["command"]) == (0, "/bin/sh")
    assert "Starting session" in capfd.readouterr().out


def test_a_session_that_tells_no_exit_code_is_no_success(ecs: Ecs, told: Path) -> None:
    (told.parent / "bin" / "session-manager-plugin").write_text("#!/bin/sh\necho 'sh: not found'\n")
    result = world(ecs).argosy("exec", RUN_ID, "17", "ls")
    assert (result.exit_code, result.stdout) == (3, "sh: not found\n")
    assert "without an exit code" in result.stderr
    assert f"next: argosy exec {RUN_ID} 17" in result.stderr


def test_without_the_plugin_nothing_is_opened(ecs: Ecs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = world(ecs).argosy("exec", RUN_ID, "17", "ls")
    assert (result.exit_code, ecs.asked) == (2, {})
    assert "session-manager-plugin is not on PATH" in result.stderr
    assert "next: install it: https://docs.aws.amazon.com/systems-manager/" in result.stderr


@pytest.mark.parametrize(
    ("status", "attempts", "said", "then"),
    [
        ("PENDING", [], "Task 17 is waiting", "explain {} --task 17"),
        ("STARTING", [attempt(1)], "is being started", "watch {}"),
        ("RUNNING", [attempt(1, taskArn=None)], "is being started", "watch {}"),
        ("VERIFYING", [attempt(1, outcome="SUCCEEDED")], "its program has ended", "logs {} --task 17"),
        ("SUCCEEDED", [attempt(1, outcome="SUCCEEDED")], "it has ended (SUCCEEDED)", "logs {} --task 17"),
        ("CANCELLED", [], "it has ended (CANCELLED)", "logs {} --task 17"),
    ],
)
def test_a_task_that_does_not_run_is_refused_with_what_to_look_at(
    ecs: Ecs, status: str, attempts: Any, said: str, then: str
) -> None:
    result = world(ecs, status, attempts).argosy("exec", RUN_ID, "17")
    assert (result.exit_code, ecs.asked) == (2, {})
    assert said in result.stderr
    assert f"next: argosy {then.format(RUN_ID)}\n" in result.stderr


@pytest.mark.parametrize("status", ["PENDING", ""])
def test_a_task_that_ecs_does_not_show_running_is_refused(ecs: Ecs, status: str) -> None:
    ecs.task["lastStatus"] = status
    result = world(ecs).argosy("exec", RUN_ID, "17")
    assert result.exit_code == 2
    assert "just starting or ending" in result.stderr
    assert f"next: argosy tasks {RUN_ID} --status running" in result.stderr


def test_a_task_or_run_that_does_not_exist_is_refused(ecs: Ecs) -> None:
    no_task = api_error(400, "ValidationException", "1 field is invalid", ("index", "the run has 5 tasks"))
    result = world(ecs).answers("DescribeTask", no_task).argosy("exec", RUN_ID, "17")
    assert result.exit_code == 2
    assert "There is no task 17: the run has 5 tasks." in result.stderr
    assert "next: argosy tasks" in result.stderr
    no_run = api_error(404, "ResourceNotFoundException", f"there is no run '{RUN_ID}'")
    result = world(ecs).answers("DescribeTask", no_run).argosy("exec", RUN_ID, "17")
    assert result.exit_code == 2
    assert "there is no run" in result.stderr
    assert "next: type `argosy runs`" in result.stderr


def test_where_the_owner_has_not_allowed_it_the_setting_is_named(ecs: Ecs, told: Path) -> None:
    result = world(ecs, allowExec=False).argosy("exec", RUN_ID, "17")
    assert (result.exit_code, ecs.asked) == (2, {})
    assert "allowExec" in result.stderr
    assert len(result.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({}, "prepared while it was off: deploy with allowExec"),
        ({"taskRoleArn": None}, "no task role"),
        ({"containerDefinitions": [{"name": "main", "readonlyRootFilesystem": True}]}, "read-only root file system"),
    ],
)
def test_a_task_that_was_started_without_a_way_in_says_why(ecs: Ecs, told: Path, definition: Any, said: str) -> None:
    ecs.task["enableExecuteCommand"] = False
    ecs.definition |= definition
    result = world(ecs, allowExec=None).argosy("exec", RUN_ID, "17")
    assert (result.exit_code, ecs.asked) == (2, {})
    assert said in result.stderr


@pytest.mark.parametrize("code", ["TargetNotConnectedException", "InvalidParameterException"])
def test_an_agent_that_is_not_connected_is_a_matter_of_seconds(ecs: Ecs, told: Path, code: str) -> None:
    ecs.fault = refusal(code, operation="ExecuteCommand")
    result = world(ecs).argosy("exec", RUN_ID, "17")
    assert result.exit_code == 3
    assert "its ECS Exec agent is not connected" in result.stderr
    assert "next: try again in a few seconds" in result.stderr


def test_a_missing_right_is_reported_as_elsewhere(ecs: Ecs, told: Path) -> None:
    ecs.fault = refusal("AccessDeniedException", operation="ExecuteCommand")
    result = world(ecs).argosy("exec", RUN_ID, "17")
    assert result.exit_code == 3
    assert "next: ask for the deployment's managed policy argosy-submitter" in result.stderr


def test_in_local_mode_the_users_own_shell_starts_the_command_where_the_program_is(
    ecs: Ecs, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "work"
    where.mkdir()
    with running(where, LABEL | {"MODEL": "small"}) as program:
        ecs.session = way_of(program.pid)
        result = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "--", "sh", "-c", 'pwd; echo "$MODEL"; exit 5')
    assert result.exit_code == 5, result.output
    assert capfd.readouterr().out == f"{where}\nsmall\n"


def test_a_program_that_is_not_there_ends_as_in_a_shell(ecs: Ecs, tmp_path: Path) -> None:
    with running(tmp_path, LABEL) as program:
        ecs.session = way_of(program.pid)
        missing = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "no-such-program")
        folder = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, str(tmp_path))
        killed = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "--", "sh", "-c", "kill -9 $$")
    assert (missing.exit_code, folder.exit_code, killed.exit_code) == (127, 126, 137)
    assert "There is no program no-such-program here." in missing.stderr


def test_a_process_that_is_not_the_tasks_is_left_alone(ecs: Ecs, tmp_path: Path) -> None:
    """Its process id was reused, or another machine's local mode has answered."""
    with running(tmp_path, LABEL | {"ARGOSY_TASK_ATTEMPT": "3"}) as program:
        ecs.session = way_of(program.pid)
        result = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "true")
    assert result.exit_code == 2
    assert "has just ended, or runs on another machine" in result.stderr
    ended = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "true")
    assert "has just ended, or runs on another machine" in ended.stderr


def test_another_users_process_is_left_alone(ecs: Ecs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, LABEL) as program:
        ecs.session = way_of(program.pid)
        monkeypatch.setattr(os, "getuid", lambda: 4_294_000_000)
        readable = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "true")

        def denied(pid: int) -> None:
            raise psutil.AccessDenied(pid)

        monkeypatch.setattr(psutil, "Process", denied)
        hidden = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "true")
    for result in (readable, hidden):
        assert result.exit_code == 2
        assert "is another user's" in result.stderr


def test_a_client_without_local_mode_says_what_it_lacks(ecs: Ecs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    ecs.session = way_of(os.getpid())
    result = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "true")
    assert result.exit_code == 2
    assert f"next: {installing('local')}" in result.stderr


def test_a_container_is_entered_by_its_engine(
    ecs: Ecs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "podman").write_text('#!/bin/sh\necho "$@"\nexit 9\n')
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    name = f"argosy-{17:032x}"
    stream, token = WayIn(engine="podman", container=name).as_session()
    ecs.session = {**SESSION, "streamUrl": stream, "tokenValue": token}
    result = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "--", "ls", "-l")
    assert (result.exit_code, capfd.readouterr().out) == (9, f"exec --interactive {name} ls -l\n")


@pytest.mark.parametrize(
    "token",
    [
        "{}",
        "[]",
        "no JSON",
        '{"pid": 1, "engine": "", "container": ""}',
        '{"pid": true, "engine": "", "container": ""}',
        '{"pid": 0, "engine": "rm", "container": "argosy-0123456789abcdef0123456789abcdef"}',
        '{"pid": 0, "engine": "podman", "container": "--privileged"}',
        '{"pid": 0, "engine": "podman", "container": "somebody-else"}',
    ],
)
def test_an_endpoint_cannot_name_what_is_started(ecs: Ecs, token: str) -> None:
    ecs.session = {**SESSION, "streamUrl": "argosy-local:", "tokenValue": token}
    result = world(ecs).argosy("exec", RUN_ID, "17", *LOCAL, "true")
    assert result.exit_code == 3
    assert "not a local mode of this version" in result.stderr


def test_only_an_endpoint_on_this_machine_may_lead_to_a_process(ecs: Ecs, told: Path) -> None:
    ecs.session = way_of(os.getpid())
    result = world(ecs).argosy("exec", RUN_ID, "17", "true")
    assert result.exit_code == 3
    assert "Only a local mode on this machine" in result.stderr


@contextmanager
def running(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a folder with an environment, for as long as the block."""
    here = {"PATH": os.environ["PATH"]}
    wait = ["sh", "-c", "echo; read line"]
    process = subprocess.Popen(wait, cwd=folder, env=here | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    try:
        with process.stdin, process.stdout:
            process.stdout.readline()  # Popen returns just before Linux shows the environment of the program
            yield process
    finally:
        process.kill()
        process.wait()
