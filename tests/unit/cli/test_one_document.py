"""With --json every command answers with one JSON document: whatever it finds, and however it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import RUN_ID, Pages, World, ended, instance, run_view, task_row
from tests.fakes.command_lines import COMMANDS
from tests.fakes.environments import SERVICE, deploying, environment
from tests.fakes.reader import PLAN
from tests.fakes.sharing import sharing

ROOT = Path(__file__).parents[3]
SPEC = str(ROOT / "containers" / "digits" / "run.yaml")
CLUSTER = {
    "cluster": "argosy", "cells": ["us-east-1"], "instances": [instance()], "fleets": [], "usdPerHour": 1.0,
    "spentUsd": 0.2, "onDemandUsd": 0.4, "peakUtilisation": {}, "floor": None,
}  # fmt: skip
SUBMITTED = run_view(status="SUBMITTED", created=True, warnings=["w"])
CASES: dict[str, list[list[str]]] = {
    "submit": [[SPEC], [SPEC, "--detach"], [SPEC, "--wait-timeout", "0"]],
    "run": [
        ["true", "--size", "2"], ["true", "--size", "2", "--detach"], ["true", "--size", "2", "--dry-run"],
        ["true", "--size", "2", "--out", "OUT"],
    ],
    "plan": [[SPEC]],
    "validate": [[SPEC], [str(ROOT / "tests" / "data" / "five-faults.yaml")]],
    "watch": [[RUN_ID], [RUN_ID, "--wait-timeout", "0"]],
    "status": [[RUN_ID], [RUN_ID, "--tasks"]],
    "runs": [[]],
    "cancel": [[RUN_ID]],
    "retry": [[RUN_ID, "--failed"]],
    "update": [[RUN_ID, "--priority", "5"]],
    "tasks": [[RUN_ID]],
    "attempts": [[RUN_ID, "--task", "3"]],
    "explain": [[RUN_ID]],
    "cost": [[RUN_ID]],
    "results": [[RUN_ID, "--partial"]],
    "logs": [[RUN_ID]],
    "events": [[]],
    "cluster": [[], ["--since", "1d"]],
    "cluster scale": [["3"]],
    "instances": [[]],
    "instances drain": [["i-1", "--for", "2h"]],
    "instances enable": [["i-1"]],
    "debug-dump": [[], [RUN_ID]],
    "access": [[], ["default"], ["default", "--remove"]],
    "queues": [[]],
    "queues apply": [["QUEUES"]],
    "queues restore": [["2"]],
    "query": [["attribute:x == y", "--instances", "INSTANCES"]],
    "catalogue": [["--type", "g4dn.*"]],
    "env create": [["SERVICE"]],
    "env update": [["SERVICE"], ["SERVICE", "--base", "2"]],
    "env deploy": [["web"], ["web", "--wait"], ["web", "--wait-timeout", "0"]],
    "env rollback": [["web"]],
    "env status": [["web"]],  # with --watch: tests/unit/cli/services/test_watching.py
    "env list": [[]],
    "env deployments": [["web"]],
    "env endpoints": [["web"]],
    "env scale": [["web", "7"]],
    "env freeze": [["web"]],
    "env thaw": [["web"]],
    "env stop": [["web"]],
    "env delete": [["web"]],
    "schedule create": [["nightly", "--spec", "BATCH", "--rate", "1 day"]],
    "schedule update": [["nightly", "--rate", "2 days"]],
    "schedule list": [[]],
    "schedule show": [["nightly"]],
    "schedule pause": [["nightly"]],
    "schedule resume": [["nightly"]],
    "schedule run-now": [["nightly"]],
    "schedule delete": [["nightly"]],
}  # fmt: skip
# These take long, or need another world: their own tests read what they print as one document.
ELSEWHERE = {
    "demo", "doctor", "prices", "report benchmark", "catalogue refresh", "put", "data list", "data delete", "interrupt",
    "image bake", "image list", "image delete",
}  # fmt: skip


BATCH = "version: 1\nname: digits\ncontainer: {image: argosy/digits, command: [x]}\narray: {size: 3}\n"
FIRED = {
    "name": "nightly", "scheduledTime": "2026-11-23T02:00:00Z", "verdict": "ran", "runId": RUN_ID, "reason": None,
    "decidedAt": "2026-11-23T02:00:01.000Z", "replaced": [], "byHand": True,
}  # fmt: skip
SCHEDULE = {
    "name": "nightly", "state": "ENABLED", "expression": "rate(1 day)", "zone": "UTC", "overlap": "skip",
    "startWithin": 1800.0, "revision": 3, "armed": True, "next": "2026-11-24T02:00:00Z", "overdue": None,
    "waiting": None, "last": FIRED, "nextTimes": ["2026-11-24T02:00:00Z"], "fires": [FIRED], "spec": {},
    "warnings": [], "created": True,
}  # fmt: skip


class Nothing:
    """CloudWatch Logs, ECS and S3 with nothing in them."""

    def get_paginator(self, operation: str) -> Pages:
        return Pages(lambda **_: [])

    def get_log_events(self, **_: Any) -> Any:
        return {"events": [], "nextForwardToken": "t"}


def world() -> World:
    made = World(others={"logs": Nothing(), "ecs": Nothing()})
    shown = ended(cost={"byPool": [], "byWaste": {}, "instanceHours": 0.0}, taskList=[task_row(0)], nextToken=None)
    rows = {"tasks": [task_row(0)], "asOf": 7, "nextToken": None}
    task = {"index": 3, "status": "FAILED", "attempts": [], "attemptsLeftOut": 0, "damaged": 0, "asOf": 7}
    replies = {
        "SubmitRun": SUBMITTED, "ValidateRun": {"warnings": []}, "PlanRun": PLAN, "CancelRun": shown,
        "DescribeRun": lambda request: shown if "include" in request else ended("PARTIAL"),
        "ListRuns": {"runs": [shown], "nextToken": None}, "RetryRun": {**shown, "created": True, "tasksToRetry": 1},
        "ListTasks": rows, "DescribeTask": task, "ExplainRun": {"runId": RUN_ID, "sentence": "nothing waits"},
        "ListChanges": {"changes": [{"sequence": "1.1"}, {"sequence": "1.2"}], "next": "1", "newest": "1"},
        "DescribeCluster": lambda request: {"history": {"at": []}} if "form" in request else CLUSTER,
        "ListInstances": {"instances": [instance()], "asOf": 7, "nextToken": None},
    }  # fmt: skip
    replies |= {"UpdateRun": {**shown, "created": True, "changes": {"priority": 5}}}
    stored = {"name": "web", "revision": 2, "created": True, "warnings": ["w"]}
    replies |= {f"{verb}Environment": environment() for verb in ("Describe", "Scale", "Freeze", "Thaw", "Delete")}
    replies |= {"DescribeEnvironment": environment(endpoints=[])}
    replies |= {"CreateEnvironment": stored, "UpdateEnvironment": stored, "StopDeployment": environment()}
    replies |= {"ListEnvironments": {"environments": [environment()]}, "StartDeployment": deploying(1, created=False)}
    replies |= {"RollBackDeployment": deploying(1)}
    replies |= {f"{verb}Schedule": SCHEDULE for verb in ("Create", "Update", "Describe", "Pause", "Resume", "Delete")}
    replies |= {"ScaleCluster": {"floor": None}, "DrainInstance": {"instanceId": "i-1", "drainUntil": None}}
    replies |= {"ListSchedules": {"schedules": [SCHEDULE], "nextToken": None}, "RunScheduleNow": FIRED}
    replies |= {"DescribeSharing": sharing(), "ApplySharing": {"revision": 4, "document": sharing()["document"]}}
    for action, reply in replies.items():
        made.answers(action, reply)
    return made


def with_json(name: str, found: Any) -> Iterator[str]:
    """The commands, those of groups too, that have --json."""
    if any("--json" in parameter.opts for parameter in found.params):
        yield name
    for inner, each in getattr(found, "commands", {}).items():
        yield from with_json(f"{name} {inner}", each)


def every_command() -> set[str]:
    return {each for name, found in COMMANDS.items() for each in with_json(name, found)}


def test_every_command_with_json_is_asked_here_or_elsewhere() -> None:
    assert every_command() == {*CASES} | ELSEWHERE


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, cases in CASES.items() for words in cases])
def test_the_answer_is_one_document(
    name: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "instances.json").write_text("[]")
    (tmp_path / "web.yaml").write_text(SERVICE)
    (tmp_path / "queues.yaml").write_text("version: 1\nqueues: {research: {}}\n")
    (tmp_path / "batch.yaml").write_text(BATCH)
    given = {
        "SERVICE": str(tmp_path / "web.yaml"),
        "BATCH": str(tmp_path / "batch.yaml"),
        "OUT": str(tmp_path / "out"),
        "QUEUES": str(tmp_path / "queues.yaml"),
        "INSTANCES": str(tmp_path / "instances.json"),
    }
    monkeypatch.chdir(tmp_path)
    result = world().argosy(*name.split(), *(given.get(word, word) for word in words), "--json")
    assert result.stdout, result.stderr
    assert isinstance(json.loads(result.stdout), dict)


def test_a_submitted_run_keeps_what_only_the_reply_to_submitting_says() -> None:
    found = json.loads(world().argosy("submit", SPEC, "--json").stdout)
    assert (found["status"], found["created"], found["warnings"]) == ("PARTIAL", True, ["w"])


@pytest.mark.parametrize("words", [["submit", SPEC], ["watch", RUN_ID], ["events"]])
def test_lines_of_json_are_one_document_each(words: list[str]) -> None:
    lines = world().argosy(*words, "--json-lines").stdout.splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)
