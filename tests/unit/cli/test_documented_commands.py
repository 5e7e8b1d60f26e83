"""Every documented command is parsed. In an original, an option with a value was parsed as a switch."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command_lines import COMMANDS, parsed

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("containers/*/README.md"))]
# A command begins a line of a block, or a piece of `code` in a sentence; a comment, a pipe or a redirection ends it.
_START = r"^ *(?:\$ )?(?:\.venv/bin/)?(?:argosy |(?=python -m tests\.harness\.))"
_COMMAND = re.compile(_START + r"([a-z]+(?![a-z:])[^#|&;>\n]*)", re.MULTILINE)


def documented() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for block in re.findall(r"```(?:bash|sh|console)?\n(.*?)```|`([^`\n]+)`", text, flags=re.DOTALL):
            for part in block:
                for found in _COMMAND.finditer(part):
                    yield document.name, re.sub(r"\bN\b", "7", found[1].strip())


FOUND = sorted({line for _, line in documented() if " / " not in line})  # the diagram's alternatives are no command
LINES = [line for line in FOUND if " " in line]


@pytest.mark.parametrize("line", LINES)
def test_every_documented_command_is_understood(line: str) -> None:
    assert parsed(shlex.split(line)) is not None


def test_every_command_mentioned_exists() -> None:
    assert FOUND
    assert {line.split()[0] for line in FOUND} <= {*COMMANDS, "python"}


CASES: list[tuple[str, dict[str, Any]]] = [
    ("validate run.yaml", {"file": Path("run.yaml")}),
    (
        "validate run.yaml -s 1 -b 2 -o s3://b/ --set a[0]=1",
        {"batch_size": 1, "num_batches": 2, "output": "s3://b/", "changes": ["a[0]=1"]},
    ),
    (
        "run primes.py '${start}' --range 0:1000 --shard-size 50 --with pandas,torch --budget 5 --attempts 3",
        {
            "program": "primes.py",
            "arguments": ["${start}"],
            "span": "0:1000",
            "shard_size": 50,
            "packages": ["pandas,torch"],
            "budget": 5.0,
            "attempts": 3,
        },
    ),
    (
        "run ./simulate --size 7 --gpus 1 --gpu-model T4 --vcpus 2 --memory 4096 --deadline 2h --name sim -- -v --x",
        {
            "size": 7,
            "gpus": "1",
            "gpu_model": "T4",
            "vcpus": 2.0,
            "memory": "4096",
            "deadline": "2h",
            "name": "sim",
            "arguments": ["-v", "--x"],
        },
    ),
    ("run ./infer --size 7 --gpu-share 8000", {"size": 7, "gpu_share": 8000}),
    ("put DIR clips", {}),
    ("data list", {}),
    ("data delete clips", {}),
    (
        "run x --input-each clips/*.mp4",
        {"each": "clips/*.mp4"},
    ),
    (
        "run x --items I --image IMG --upload D --setup make --input s3://a/b --input s3://c --env A=1 --result none",
        {
            "items": Path("I"),
            "image": "IMG",
            "upload": Path("D"),
            "setup": "make",
            "inputs": ["s3://a/b", "s3://c"],
            "environment": ["A=1"],
            "result": "none",
        },
    ),
    ("run x.py --detach --client-token c-1 --dry-run", {"detach": True, "client_token": "c-1", "dry_run": True}),
    ("run x.py --merge all.jsonl --wait-timeout 9", {"merge": "all.jsonl", "wait_timeout": 9.0}),
    ("run x.py --out DIR --json", {"out": Path("DIR"), "wants_json": True}),
    ("run x.py --json-lines", {"wants_lines": True}),
    ("submit run.yaml --detach --client-token c-1", {"detach": True, "client_token": "c-1"}),
    ("submit run.yaml --wait-timeout 90", {"wait_timeout": 90.0, "detach": False}),
    (
        "submit run.yaml --batch-size 100 --num-batches 10 --output s3://bucket/prefix/",
        {"batch_size": 100, "num_batches": 10, "output": "s3://bucket/prefix/"},
    ),
    ("submit run.yaml -s 100 -b 10 -o s3://b/", {"batch_size": 100, "num_batches": 10, "output": "s3://b/"}),
    ("submit run.yaml --set a.b=1 --set c=2", {"changes": ["a.b=1", "c=2"]}),
    (
        "plan run.yaml --batch-size 100 --num-batches 10 --output s3://b/ --set c=2",
        {"batch_size": 100, "num_batches": 10, "output": "s3://b/", "changes": ["c=2"]},
    ),
    ("report run RUN --html run.html", {}),
    ("plan run.yaml --html plan.html", {"html": Path("plan.html")}),
    ("cost RUN --html cost.html", {"html": Path("cost.html")}),
    ("ui RUN --port 8000 --no-open", {"run": "RUN", "port": 8000, "no_open": True}),
    ("status RUN --tasks", {"run": "RUN", "tasks": True}),
    (
        "tasks RUN --status failed --status running --instance i-0abc --cell eu-west-1 --exit-code 3 --limit 7",
        {"status": ["failed", "running"], "instance": "i-0abc", "cell": "eu-west-1", "exit_code": 3, "limit": 7},
    ),
    (
        "attempts RUN --task 3 --outcome failed --outcome lost --instance i-0abc --since 2h --limit 7",
        {"task": 3, "outcome": ["failed", "lost"], "instance": "i-0abc", "since": "2h", "limit": 7},
    ),
    (
        "instances --where 'attribute:stack == prod' --type g5.* --status active --purchase spot --cell C",
        {"where": "attribute:stack == prod", "pattern": "g5.*", "status": ["active"], "purchase": "spot", "cell": "C"},
    ),
    ("instances --limit 3", {"limit": 3}),
    ("watch RUN --json-lines", {"wants_lines": True, "wants_json": False}),
    ("runs --limit 50 --json", {"limit": 50, "wants_json": True}),
    ("runs --status cancelling --status failed", {"status": ["cancelling", "failed"]}),
    ("watch RUN --wait-timeout 1.5", {"wait_timeout": 1.5}),
    ("results RUN --out DIR --flat", {"out": Path("DIR"), "flat": True}),
    ("results RUN --download DIR --partial", {"download": Path("DIR"), "partial": True}),
    (
        "results RUN --merge --format csv --output table.csv",
        {"merge": True, "form": "csv", "output": "table.csv", "partial": False},
    ),
    ("logs RUN --task 3 --follow", {"task": 3, "follow": True}),
    ("logs RUN --task 3 --attempt 2 --tail 50", {"attempt": 2, "tail": 50}),
    ("logs RUN --failed --since 10m --grep Error", {"failed": True, "since": "10m", "grep": "Error"}),
    (
        "events RUN --since 10m --follow --type task.ended --type instance --instance i-0abc",
        {"run": "RUN", "since": "10m", "follow": True, "kinds": ["task.ended", "instance"], "instance": "i-0abc"},
    ),
    ("cancel RUN --reason wrong --dependents", {"reason": "wrong", "dependents": True}),
    ("cancel RUN --tasks 3,7-8", {"tasks": "3,7-8"}),
    ("explain RUN --task 7", {"run": "RUN", "task": 7}),
    ("explain RUN 7 --at 17:03", {"run": "RUN", "index": 7, "at": "17:03"}),
    (
        "retry RUN --failed --cancelled --client-token c-1",
        {"run": "RUN", "failed": True, "cancelled": True, "client_token": "c-1"},
    ),
    ("retry RUN --failed --with-program fixed", {"failed": True, "with_program": Path("fixed")}),
    ("retry RUN --cancelled --budget 2", {"cancelled": True, "budget": 2.0}),
    ("retry RUN --tasks 3,7-12 --memory 8192 --vcpus 2", {"tasks": "3,7-12", "memory": 8192, "vcpus": 2.0}),
    (
        "update RUN --priority 5 --queue prod --budget-usd 20 --max-hourly-cost 2 --unset deadline",
        {"priority": 5, "queue": "prod", "budget_usd": 20.0, "max_hourly_cost": 2.0, "unset": ["deadline"]},
    ),
    (
        "update RUN --deadline 2h --max-instances 4 --max-concurrent-tasks 9 --reason late --client-token c-1",
        {
            "deadline": "2h",
            "max_instances": 4,
            "max_concurrent_tasks": 9,
            "reason": "late",
            "client_token": "c-1",
        },
    ),
    ("cost RUN --by pool", {"run": "RUN", "by": "pool"}),
    ("cluster --all --stage dev --region eu-west-1", {"show_gone": True, "stage": "dev", "region": "eu-west-1"}),
    ("cluster --since 2d", {"since": "2d"}),
    ("cluster scale 3 --type c5.xlarge --for 2h", {}),
    ("prices --type g5.* --limit 3", {"pattern": "g5.*", "limit": 3}),
    ("doctor --profile work --endpoint-url http://h:1", {"profile": "work", "endpoint_url": "http://h:1"}),
    ("doctor --cells eu-west-1 --fix --account", {"cells": "eu-west-1", "fix": True, "account": True}),
    ("access research --remove", {"queue": "research", "remove": True}),
    ("submit run.yaml --as-queue research", {"entrance": "research"}),
    ("doctor --probe", {"probe": True}),
    ("doctor --settings {}", {"settings": "{}"}),
    ("local --port 4567 --settings mine.json", {"port": 4567, "settings": Path("mine.json")}),
    ("local --cells us-east-1,eu-west-1 --runtime podman", {"cells": "us-east-1,eu-west-1", "runtime": "podman"}),
    ("local --state mine --fresh", {"state": Path("mine"), "fresh": True}),
    ("local --no-state --key mine:a-long-secret", {"no_state": True, "key": "mine:a-long-secret"}),
    ("local --pretend-gpus", {"pretend_gpus": True}),
    ("local --processes 6", {"processes": 6}),
    ("local --reading all", {"reading": ["all"]}),
    ("local --python x=python --python y=python3", {"python": ["x=python", "y=python3"]}),
    ("local --runtime docker --base-image mine:1", {"runtime": "docker", "base_image": "mine:1"}),
    ("exec last 17", {"run": "last", "task": 17}),
    ("interrupt last", {"run": "last", "task": None, "warn": 120.0}),
    ("interrupt last --task 3 --warn 5", {"task": 3, "warn": 5.0}),
    ("exec last 17 -- ls -l", {"task": 17, "words": ["ls", "-l"]}),
    ("env deploy web --wait", {}),
    ("queues apply FILE --revision 3", {}),
    ("queues restore 2", {}),
    ("query 'memory > 1' --instances F", {"expression": "memory > 1", "instances": Path("F")}),
    ("catalogue --type 'm7*'", {"pattern": "m7*"}),
    ("help status", {"words": ["status"]}),
    ("demo --out DIR", {"out": Path("DIR")}),
    ("demo --tour 10", {"tour": 10}),
    ("demo --runtime podman --base-image B", {"runtime": "podman", "base_image": "B"}),
]


@pytest.mark.parametrize(("line", "values"), CASES)
def test_every_option_takes_its_value(line: str, values: dict[str, Any]) -> None:
    found = parsed(shlex.split(line))
    assert {name: found[name] for name in values} == values


def test_every_command_has_a_case_and_every_one_of_its_options_too() -> None:
    """A new option without a case here fails."""
    covered: dict[str, set[str]] = {"schema": set()}
    for line, values in CASES:
        covered.setdefault(line.split()[0], set()).update(values)
    everywhere = {
        "endpoint_url",
        "region",
        "profile",
        "stage",
        "entrance",
        "unsigned",
        "wants_json",
        "wants_lines",
        "help",
    }
    for name, found in COMMANDS.items():
        own = {each.name for each in found.params if each.param_type_name == "option"} - everywhere
        assert own <= covered.get(name, set()), name


@pytest.mark.parametrize(
    "line",
    ["status", "submit run.yaml --batch-size many", "submit run.yaml --output", "runs --limit 0", "local --port 70000"],
)
def test_a_line_that_is_not_understood_exits_2_and_does_nothing(line: str) -> None:
    from tests.fakes.cli import World

    world = World()
    result = world.argosy(*shlex.split(line))
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert not world.connections
