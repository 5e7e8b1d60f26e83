"""Every field of a spec has an effect with each kind and next to a task definition, or is refused there."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.attempts import AttemptKey
from argosy.spec.allowed_fields import ALLOWED, KINDS, OWN, may_stand
from argosy.spec.examples import EXAMPLES
from argosy.spec.faults import SpecError
from argosy.spec.models import model_at
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.program import UNPACKED
from argosy.spec.shards import expects_result, task_overrides
from argosy.spec.terms import terms_of

PARTS = sorted({path.split(".")[0] for path in ALLOWED if "." in path})
OF_KIND: dict[str, dict[str, Any]] = {
    "b": {"array": {"size": 3}},
    "s": {"kind": "service", "service": {"desired": 4}},
    "d": {"kind": "daemon"},
}
IMAGE = {"image": "argosy/digits"}
WHAT_RUNS: dict[str, dict[str, Any]] = {"image": {"container": IMAGE}, OWN: {"taskDefinition": "train:3"}}
# The fields that a field requires, and values in place of examples that equal the default.
PROGRAM = {"run": ["x"], "container": None}
WITH: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("workdir", "setup", "packages", "job", "inputs", "checkpoint.sizeGiB"), PROGRAM),
    "result": PROGRAM,
    "run": {"container": None},
    "array.shardSize": {"array": {"range": "0:100"}},
    "array.expectedSeconds": {"array": {"size": 3}},
    "array.partSuffix": {"array": {"size": 3}},
    "resources.gpuModel": {"resources": {"gpus": 1}},
    "resources.gpuShare": {"resources": {"gpuModel": "T4", "gpuShare": {"memoryMib": 1}}},
    "resources.gpuMemoryMib": {"resources": {"gpus": 1}},
    "capacity.fallback": {"capacity": {"purchase": "spot-then-on-demand"}},
    "capacity.onCap": {"capacity": {"budgetUsd": 5}},
    "gang.processes": {"gang": {"size": 2}, "resources": {"gpus": 1}},
    "gang.startWithinSeconds": {"gang": {"size": 2}},
    "service.targetGroup": {"container": {**IMAGE, "ports": [{"container": 80}]}},
    "service.drainSeconds": {
        "container": {**IMAGE, "ports": [{"container": 80}]},
        "service": {"desired": 4, "targetGroup": "web"},
    },
}
VALUES: dict[str, Any] = {
    "version": 1,
    "array.range": "0:50",
    "resources.gpus": 2,
    "result": "none",
    "run": ["other"],
    "placement.maxConcurrentTasks": 2,
    "array.partSuffix": ".csv",
    "container.image": "argosy/other",
    "container.command": ["x"],
    "daemon.update": {"order": "start-first"},
}
FIELDS = [*(each for each in EXAMPLES["RunSpec"] if each not in PARTS)]
FIELDS += [f"{part}.{name}" for part in PARTS for name in EXAMPLES[model_at(part).__name__]]
ALWAYS = {"version", "kind", "name", "taskDefinition"}


def built(path: str, kind: str, runs: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A spec without the field, and the same with it."""
    base = {"version": 1, "name": "digits", **OF_KIND[kind], **WHAT_RUNS[runs], **WITH.get(path, {})}
    if kind != "b" and path != "result" and "run" in {path, *base}:
        base["result"] = "none"
    base = {name: value for name, value in base.items() if value is not None}
    part, _, field = path.rpartition(".")
    value = VALUES.get(path, EXAMPLES[model_at(part).__name__][field])
    if not part:
        return base, {**base, field: value}
    inside = {} if part == "array" and path not in WITH else base.get(part, {})
    return base, {**base, part: {**inside, field: value}}


def seen(data: dict[str, Any]) -> list[Any] | None:
    """All that a run does by its spec; None if that is refused."""
    try:
        spec = parse_spec(data)
    except SpecError:
        return None
    form = to_json(spec)
    told = task_overrides(form, "s3://own/x/", AttemptKey("x", 0, 1, 0), item="i", count=3)
    image = form.get("container", {}).get("image")
    return [terms_of(spec), told, image, expects_result(form), *map(form.get, UNPACKED)]


@pytest.mark.parametrize("runs", WHAT_RUNS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", [path for path in FIELDS if path not in ALWAYS])
def test_a_field_has_an_effect_or_is_refused(path: str, kind: str, runs: str) -> None:
    without, data = built(path, kind, runs)
    may = may_stand(path, kind) and (runs != OWN or may_stand(path, OWN))
    assert (seen(data) is not None) is may, "spec/allowed_fields.py says otherwise"
    assert not may or seen(data) != seen(without), "it has no effect"


def test_every_field_of_the_schema_is_listed_or_refused_everywhere() -> None:
    assert set(FIELDS) == set(ALLOWED), "list a new field in spec/allowed_fields.py with what it has an effect with"
