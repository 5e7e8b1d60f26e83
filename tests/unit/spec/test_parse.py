"""Which run specs are accepted, and the refusals of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.spec.file import check_text
from argosy.spec.parse import parse_spec, to_json
from tests.fakes.specs import GOOD, ROOT, container, faults, spec


def test_the_spec_of_the_issue_is_taken_whole() -> None:
    text = (ROOT / "tests/data/issue-run.yaml").read_text()
    form = to_json(check_text(text)[0])
    assert form["container"]["environment"] == {"BATCH_SIZE": "32"}
    assert form["array"] == {"range": "900:1797", "shardSize": 50, "partSuffix": ".jsonl"}
    assert form["placement"]["maxConcurrentTasks"] == 200
    assert form["retryStrategy"] == {"attempts": 3, "evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}]}
    assert form["timeout"] == {"attemptDurationSeconds": 1800}
    assert form["compat"] == "aws-batch"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "containers").glob("*/run*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_the_run_specs_of_the_containers_are_taken(path: Path) -> None:
    check_text(path.read_bytes())


def test_defaults_are_filled_in() -> None:
    assert to_json(parse_spec(spec(array={"range": "0:5"}))) == {
        "version": 1,
        "name": "digits",
        "container": {"image": "argosy/digits"},
        "resources": {"vcpus": 1.0, "memory": 1024, "gpus": 0},
        "array": {"range": "0:5", "shardSize": 1, "partSuffix": ".jsonl"},
        "placement": {"constraints": [], "strategy": []},
        "capacity": {"purchase": "spot"},
        "retryStrategy": {"attempts": 1, "evaluateOnExit": []},
        "tags": {},
    }


def test_the_form_of_a_spec_without_the_newer_fields_is_what_earlier_versions_stored() -> None:
    """Client tokens are compared by it, across versions."""
    form = to_json(parse_spec(spec()))
    assert form["placement"] == {"constraints": [], "strategy": []}
    assert "hostPorts" not in form["container"]


def test_ecs_list_of_variables_becomes_a_mapping() -> None:
    listed = [{"name": "A", "value": "1"}, {"name": "B", "value": "${index}"}]
    form = to_json(parse_spec(spec(container=container(environment=listed))))
    assert form["container"]["environment"] == {"A": "1", "B": "${index}"}


def test_null_members_of_items_survive() -> None:
    form = to_json(parse_spec(spec(array={"items": [{"a": None}, None]})))
    assert form["array"]["items"] == [{"a": None}, None]


def test_a_task_definition_replaces_the_image() -> None:
    form = to_json(parse_spec(spec(container=None, taskDefinition="tf-inference:3")))
    assert "container" not in form
    assert "resources" not in form
    parse_spec(spec(container={"command": ["--x"]}, taskDefinition="tf-inference"))


@pytest.mark.parametrize("fields", GOOD, ids=json.dumps)
def test_specs_within_the_limits_are_taken(fields: dict[str, Any]) -> None:
    parse_spec(spec(**fields))


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"version": 2}, ["version: must be 1, not the number 2"]),
    ({"version": True}, ["version: must be a whole number, not true"]),
    ({"name": "Digits"}, ["name: must match ^[a-z][a-z0-9-]{0,62}$; write digits"]),
    ({"name": "a" * 64}, [f"name: must match ^[a-z][a-z0-9-]{{0,62}}$; write {'a' * 63}"]),
    ({"name": "a\n"}, ["name: must match ^[a-z][a-z0-9-]{0,62}$; write a"]),
    (
        {"colour": 1},
        [
            "colour: unknown field; known: version, kind, name, container, taskDefinition, run, workdir, setup,"
            " packages, job, inputs, result, resources, array, gang, service, daemon,"
            " dependsOn, notBefore, output, placement, capacity, retryStrategy,"
            " timeout, queue, owner, priority, preemptible, checkpoint, compat, tags"
        ],
    ),
    (
        {"resources": {"gpuModel": "A100"}},
        ["resources.gpuModel: names a kind of GPU, but resources.gpus asks for none"],
    ),
    (
        {"resources": {"gpus": 0, "gpuMemoryMib": 40_000}},
        ["resources.gpuMemoryMib: names a kind of GPU, but resources.gpus asks for none"],
    ),
    (
        {"resources": {"gpus": 1, "gpuShare": {"memoryMib": 8000}}},
        ["resources.gpuShare: cannot be combined with resources.gpus: give one of them"],
    ),
    ({"resources": {"gpuShare": {"memoryMib": 0}}}, ["resources.gpuShare.memoryMib: must be at least 1"]),
    (
        {"resources": {"gpuShare": {"memoryMib": 8000, "maxComputePercent": 101}}},
        ["resources.gpuShare.maxComputePercent: must be at most 100"],
    ),
    (
        {"resources": {"gpuShare": {"memoryMib": 8000, "maxComputePercent": 0}}},
        ["resources.gpuShare.maxComputePercent: must be at least 1"],
    ),
    ({"resources": {"gpuShare": {}}}, ["resources.gpuShare.memoryMib: is required"]),
    ({"timeout": {"[key]": 1}}, ['timeout["[key]"]: unknown field; known: attemptDurationSeconds, runDurationSeconds']),
    ({"retrystrategy": {}}, ["retrystrategy: unknown field; did you mean retryStrategy?"]),
    (
        {"timeout": {"attemptDurationSecond": 5}},
        [
            "timeout.attemptDurationSecond: unknown field; did you mean attemptDurationSeconds?",
        ],
    ),
    ({"container": None}, ["container: is required, with an image, unless run or taskDefinition is given"]),
    (
        {"container": {"command": ["x"]}},
        ["container: is required, with an image, unless run or taskDefinition is given"],
    ),
    ({"container": "a"}, ['container: must be a mapping, not the text "a"']),
    ({"taskDefinition": "f"}, ["taskDefinition: cannot be combined with container.image: give one of them"]),
    (
        {"container": None, "taskDefinition": "f", "resources": {"gpus": 1}},
        ["resources: cannot be combined with taskDefinition, which already sets what a task needs"],
    ),
    (
        {"container": None, "taskDefinition": "f:0"},
        ["taskDefinition: must match ^[A-Za-z0-9_-]{1,255}(:[1-9][0-9]{0,9})?$"],
    ),
    (
        {"container": container(image="a b")},
        ["container.image: must be the name of an image: NAME, NAME:TAG or NAME@sha256:DIGEST, such as argosy/digits"],
    ),
    (
        {"container": container(image="a; rm -rf /")},
        ["container.image: must be the name of an image: NAME, NAME:TAG or NAME@sha256:DIGEST, such as argosy/digits"],
    ),
    (
        {"container": {"image": "a", "command": "echo hi"}},
        ['container.command: must be a list, not the text "echo hi"; write ["echo", "hi"]'],
    ),
    ({"container": {"image": "a", "command": []}}, ["container.command: must not be empty"]),
    (
        {"container": container("a", "b\0")},
        ["container.command[1]: must not contain a NUL character: a program cannot receive one"],
    ),
    (
        {"container": {"image": "a", "command": [1]}},
        ["container.command[0]: must be text (in quotes), not the number 1"],
    ),
    ({"container": container("\ud800")}, ["container.command[0]: must be valid Unicode text"]),
    (
        {"container": container(environment={"A": 32})},
        ["container.environment.A: must be text (in quotes), not the number 32"],
    ),
    (
        {"container": container(environment={"1A": ""})},
        [
            'container.environment["1A"]: is not the name of an environment variable: letters, digits and _, not'
            " beginning with a digit"
        ],
    ),
    (
        {
            "container": container(
                environment={"ARGOSY_RUN_ID": "x", "AWS_BATCH_X": "y", "NVIDIA_VISIBLE_DEVICES": "all"}
            )
        },
        [
            "container.environment.ARGOSY_RUN_ID: is reserved: Argosy itself sets the variables that begin with"
            " ARGOSY_",
            "container.environment.AWS_BATCH_X: is reserved: Argosy itself sets the variables that begin with"
            " AWS_BATCH_",
            "container.environment.NVIDIA_VISIBLE_DEVICES: is reserved: Argosy sets it to the GPUs of the task",
        ],
    ),
    (
        {"container": container(environment=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])},
        ["container.environment: names A twice"],
    ),
    (
        {"container": container(environment=[{"name": "ARGOSY_A", "value": "${x}", "type": "s"}])},
        [
            "container.environment[0].name: is reserved: Argosy itself sets the variables that begin with ARGOSY_",
            "container.environment[0].type: unknown field; known: name, value",
            "container.environment[0].value: unknown substitution ${x}; known: range, start, end, index,"
            " paddedIndex, count, item, output,"
            " part, runId, attempt, item.KEY, dependency.NAME.output; write $${ for a literal ${",
        ],
    ),
    (
        {
            "container": container(
                hostPorts=[0, 65536, 22, 2375, 2376, 51678, 51679, 51680, "22/udp", "53/sctp", 80.0, True, "8080"]
            )
        },
        [
            "container.hostPorts[0]: must be between 1 and 65535",
            "container.hostPorts[1]: must be between 1 and 65535",
            *(
                f"container.hostPorts[{number}]: is reserved on every instance: ECS's agent keeps 22, 2375, 2376,"
                " 51678, 51679, 51680"
                for number in range(2, 9)
            ),
            *(
                f'container.hostPorts[{number}]: must be a port such as 8080, "8080/tcp" or "53/udp"'
                for number in range(9, 13)
            ),
        ],
    ),
    ({"container": container(hostPorts=[80, "80/tcp"])}, ["container.hostPorts: asks for 80/tcp twice"]),
    ({"container": container(hostPorts=[])}, ["container.hostPorts: must not be empty"]),
    ({"container": container(hostPorts=80)}, ["container.hostPorts: must be a list, not the number 80"]),
    (
        {"container": container(hostPorts=list(range(8000, 8095)))},
        ["container.hostPorts: must have at most 94 entries, not 95"],
    ),
    (
        {"container": {"hostPorts": [80]}, "taskDefinition": "f"},
        ["container.hostPorts: cannot be combined with taskDefinition, which has its own port mappings"],
    ),
    (
        {"placement": {"group": "a b", "maxTasksPerInstance": 0, "affinity": ["g" * 256], "antiAffinity": "x"}},
        [
            "placement.group: must match ^[A-Za-z0-9_:./-]{1,255}$",
            "placement.maxTasksPerInstance: must be at least 1",
            "placement.affinity[0]: must match ^[A-Za-z0-9_:./-]{1,255}$",
            'placement.antiAffinity: must be a list, not the text "x"; write ["x"]',
        ],
    ),
    (
        {"placement": {"affinity": ["a", "b"], "antiAffinity": ["c", "b"]}},
        ["placement.antiAffinity[1]: b is also in affinity: no instance could satisfy both"],
    ),
    (
        {
            "placement": {
                "softConstraints": [
                    {"weight": 0},
                    {"expression": "distinctInstance", "weight": 1_000_001},
                    {"expression": "distinctInstance", "wieght": 2},
                    7,
                ]
            }
        },
        [
            "placement.softConstraints[0].expression: is required",
            "placement.softConstraints[0].weight: must be at least 1",
            "placement.softConstraints[1].weight: must be at most 1,000,000",
            "placement.softConstraints[2].wieght: unknown field; did you mean weight?",
            "placement.softConstraints[3]: must be a mapping, not the number 7",
        ],
    ),
    ({"container": container(environment="A=1")}, ['container.environment: must be a mapping, not the text "A=1"']),
    (
        {"resources": {"vcpus": 0, "memory": -5, "gpus": 1.5}},
        [
            "resources.vcpus: must be at least 1/1024",
            "resources.memory: must be at least 6",
            "resources.gpus: must be a whole number, not the number 1.5",
        ],
    ),
    (
        {"resources": {"memory": "1024"}},
        ['resources.memory: must be a whole number, not the text "1024"; write 1024 without quotes'],
    ),
    ({"resources": {"memory": True}}, ["resources.memory: must be a whole number, not true"]),
    ({"resources": {"vcpus": float("nan")}}, ["resources.vcpus: must be a finite number"]),
    ({"array": None}, ["array: is required, unless kind is service or daemon"]),
    ({"array": {}}, ["array: must have exactly one of range, size, items, itemsFrom; it has none of them"]),
    (
        {"array": {"range": "0:5", "size": 5}},
        ["array: must have exactly one of range, size, items, itemsFrom; it has range and size"],
    ),
    ({"array": {"size": -1}}, ["array.size: must be at least 1"]),
    ({"array": {"size": 1_000_001}}, ["array.size: must be at most 1,000,000"]),
    ({"array": {"size": 10**400}}, ["array.size: must be at most 1,000,000"]),
    ({"array": {"size": 5, "shardSize": 2}}, ["array.shardSize: is only possible with array.range"]),
    (
        {"array": {"range": "0-100", "shardSize": 0}},
        [
            "array.range: must be two whole numbers START:END such as 0:1000, not '0-100'",
            "array.shardSize: must be at least 1",
        ],
    ),
    ({"array": {"range": "10:5"}}, ["array.range: must not be empty: its end (5) must be greater than its start (10)"]),
    ({"array": {"range": 620}}, ["array.range: must be text (in quotes), not the number 620"]),
    (
        {"array": {"range": "0:100", "shardSize": 101}},
        ["array.shardSize: must be at most 100, the length of array.range"],
    ),
    (
        {"array": {"range": "0:5000000", "shardSize": 2}},
        ["array.shardSize: gives 2500000 tasks; the limit is 1000000, so it must be at least 5"],
    ),
    (
        {"array": {"range": "0:1000001"}},
        ["array.shardSize: gives 1000001 tasks; the limit is 1000000, so it must be at least 2"],
    ),
    ({"array": {"items": []}}, ["array.items: must not be empty"]),
    (
        {"array": {"items": [10**17]}},
        ["array.items[0]: must be a whole number between -9007199254740991 and 9007199254740991"],
    ),
    ({"array": {"items": [{"\ud800": 1}]}}, ["array.items[0]: has a name that is not valid Unicode text"]),
    (
        {"array": {"itemsFrom": "https://x/y"}},
        ["array.itemsFrom: must match ^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/.+[^/]$"],
    ),
    (
        {"array": {"size": 1, "expectedSeconds": 0}},
        ["array.expectedSeconds: must be at least 0.001"],
    ),
    ({"array": {"size": 1, "partSuffix": "/../x"}}, ["array.partSuffix: must match ^[A-Za-z0-9._-]{0,32}$"]),
    (
        {"container": container("${range}", "${item}", "${nope}", "${", "${item.}"), "array": {"size": 2}},
        [
            "container.command[0]: ${range} is only possible with array.range",
            "container.command[1]: ${item} is only possible with array.items or array.itemsFrom",
            "container.command[2]: unknown substitution ${nope}; known: range, start, end, index, paddedIndex, count,"
            " item, output, part,"
            " runId, attempt, item.KEY, dependency.NAME.output; write $${ for a literal ${",
            "container.command[3]: has a ${ that is never closed; write $${ for a literal ${",
            "container.command[4]: unknown substitution ${item.}; known: range, start, end, index, paddedIndex, count,"
            " item, output, part,"
            " runId, attempt, item.KEY, dependency.NAME.output; write $${ for a literal ${",
        ],
    ),
    (
        {"container": container("${item.a}"), "array": {"items": [{"a": 1}, {"b": 1}, 3]}},
        [
            "array.items[1]: has no a, which container.command[0] uses",
            "array.items[2]: must be a mapping with a, which container.command[0] uses",
        ],
    ),
    (
        {"output": "https://bucket/x"},
        ["output: must be s3://BUCKET/PREFIX/ of letters, digits and ! _ . * ' ( ) = + @ : , - without empty parts"],
    ),
    (
        {"output": "s3://bucket/a//b"},
        ["output: must be s3://BUCKET/PREFIX/ of letters, digits and ! _ . * ' ( ) = + @ : , - without empty parts"],
    ),
    ({"output": "s3://bucket/../x"}, ["output: must not have . or .. as a part"]),
    ({"output": "s3://bucket/x/./"}, ["output: must not have . or .. as a part"]),
    ({"placement": {"maxConcurrentTasks": 0}}, ["placement.maxConcurrentTasks: must be at least 1"]),
    ({"placement": {"constraints": ["x"] * 11}}, ["placement.constraints: must have at most 10 entries, not 11"]),
    (
        {"capacity": {"purchase": "free"}},
        ["capacity.purchase: must be 'spot', 'spot-then-on-demand' or 'on-demand', not the text \"free\""],
    ),
    (
        {"capacity": {"budgetUsd": 0, "maxHourlyCost": -0.5, "onCap": "stop"}},
        [
            "capacity.maxHourlyCost: must be greater than 0",
            "capacity.budgetUsd: must be greater than 0",
            "capacity.onCap: must be 'drain' or 'finish', not the text \"stop\"",
        ],
    ),
    (
        {"capacity": {"budgetUsd": float("inf"), "maxHourlyCost": "5", "onCap": "finish"}},
        [
            'capacity.maxHourlyCost: must be a number, not the text "5"; write 5 without quotes',
            "capacity.budgetUsd: must be a finite number",
        ],
    ),
    (
        {"capacity": {"budgetUsd": True, "maxHourlyCost": float("nan")}},
        ["capacity.maxHourlyCost: must be a finite number", "capacity.budgetUsd: must be a number, not true"],
    ),
    ({"capacity": {"onCap": "drain"}}, ["capacity.onCap: is only possible with capacity.budgetUsd"]),
    ({"capacity": {"budgetUsd": 1e12}}, ["capacity.budgetUsd: must be at most 1,000,000,000"]),
    (
        {"capacity": {"maxHourlyCost": 1, "onCap": "drain"}},
        ["capacity.onCap: is only possible with capacity.budgetUsd"],
    ),
    (
        {"capacity": {"purchase": "spot", "deadline": "2h", "fallback": {"afterInterruptions": 0}}},
        [
            "capacity.fallback.afterInterruptions: must be at least 1",
            "capacity.deadline: needs on-demand instances as well: set capacity.purchase to spot-then-on-demand"
            " or on-demand",
            "capacity.fallback: is only possible with capacity.purchase spot-then-on-demand",
        ],
    ),
    (
        {"capacity": {"purchase": "on-demand", "deadline": "soon", "fallback": {}, "cells": []}},
        [
            "capacity.deadline: is neither a time nor a duration: give a time such as 2026-11-21T18:00:00Z or a"
            " duration such as 90m, 2h, 1h30m or PT2H",
            "capacity.cells: must not be empty",
            "capacity.fallback: is only possible with capacity.purchase spot-then-on-demand",
        ],
    ),
    (
        {"capacity": {"deadline": "2026-11-21T18:00:00", "cells": ["us-east-1", "us-east-1"]}},
        [
            "capacity.deadline: has no offset from UTC: append Z or an offset such as +02:00",
            "capacity.cells: names us-east-1 twice",
        ],
    ),
    (
        {"capacity": {"deadline": "0h", "cells": ["mars", 7]}},
        [
            "capacity.deadline: must be longer than 0 and at most 366 days",
            "capacity.cells[0]: must match ^[a-z]{2}(-[a-z]+)+-[0-9]$",
            "capacity.cells[1]: must be text (in quotes), not the number 7",
        ],
    ),
    (
        {"capacity": {"deadline": "9999-12-31T00:00:00Z"}},
        ["capacity.deadline: must lie between the years 2000 and 2100"],
    ),
    ({"timeout": {}}, ["timeout: must have attemptDurationSeconds or runDurationSeconds"]),
    ({"timeout": {"runDurationSeconds": 0}}, ["timeout.runDurationSeconds: must be at least 1"]),
    ({"retryStrategy": {"attempts": 11}}, ["retryStrategy.attempts: must be at most 10"]),
    (
        {"retryStrategy": {"evaluateOnExit": [{"action": "EXIT"}] * 6}},
        ["retryStrategy.evaluateOnExit: must have at most 5 entries, not 6"],
    ),
    (
        {"retryStrategy": {"evaluateOnExit": [{"onExitCode": 64, "action": "exit"}]}},
        [
            "retryStrategy.evaluateOnExit[0].onExitCode: must be text (in quotes), not the number 64",
            "retryStrategy.evaluateOnExit[0].action: must be 'RETRY' or 'EXIT', not the text \"exit\"; did you mean"
            " EXIT?",
        ],
    ),
    ({"timeout": {"attemptDurationSeconds": 0}}, ["timeout.attemptDurationSeconds: must be at least 1"]),
    (
        {"timeout": {"attemptDurationSeconds": 14 * 86_400 + 1}},
        ["timeout.attemptDurationSeconds: must be at most 1,209,600 (14 days)"],
    ),
    (
        {"checkpoint": {"everySeconds": 9, "sizeGiB": 2}},
        ["checkpoint.sizeGiB: is only possible with run: only a program has the folder of checkpoints"],
    ),
    ({"checkpoint": {"everySeconds": 0}}, ["checkpoint.everySeconds: must be at least 1"]),
    (
        {"checkpoint": {}},
        ["checkpoint.everySeconds: is required without run: only a program has the folder of checkpoints"],
    ),
    (
        {"checkpoint": {"everySeconds": 600}, "timeout": {"attemptDurationSeconds": 600}},
        [
            "checkpoint.everySeconds: must be less than timeout.attemptDurationSeconds, or no attempt reaches a"
            " checkpoint"
        ],
    ),
    ({"compat": "slurm"}, ["compat: must be 'aws-batch', not the text \"slurm\""]),
    (
        {"tags": {"aws:x": "1", "Argosy:x": "1", "": "", "k": "v" * 257, "x;": "1"}},
        [
            'tags["aws:x"]: is reserved: tags may not begin with aws: or argosy:',
            'tags["Argosy:x"]: is reserved: tags may not begin with aws: or argosy:',
            'tags[""]: a tag\'s key has 1 to 128 letters, digits, spaces and . : / = + - @ _',
            "tags.k: a tag's value has at most 256 letters, digits, spaces and . : / = + - @ _",
            'tags["x;"]: a tag\'s key has 1 to 128 letters, digits, spaces and . : / = + - @ _',
        ],
    ),
    ({"tags": {f"k{number}": "" for number in range(46)}}, ["tags: must have at most 45 entries, not 46"]),
]


@pytest.mark.parametrize(("fields", "expected"), BAD, ids=lambda value: json.dumps(value)[:60])
def test_a_bad_spec_gets_every_fault(fields: dict[str, Any], expected: list[str]) -> None:
    assert sorted(faults(spec(**fields))) == sorted(expected)


def test_faults_of_every_kind_come_together() -> None:
    found = faults(
        spec(
            outptu="x",
            resources={"memory": 1},
            array={"range": "0:10", "shardSize": 11},
            container=container("${bogus}" + "x" * 8100, environment={"ARGOSY_A": ""}),
        )
    )
    assert [text.split(": ")[0] for text in found] == [
        "container.environment.ARGOSY_A",
        "resources.memory",
        "outptu",
        "array.shardSize",
        "container.command[0]",
        "container.command",
    ]
