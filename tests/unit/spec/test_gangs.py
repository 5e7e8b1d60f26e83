"""Gangs in a spec: what is refused, and what each member gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.api.admission.gangs import NOT_ALLOWED
from argosy.api.admission.specs import DeploymentLimits, check_spec
from argosy.model.attempts import AttemptKey
from argosy.model.policy import Policy, VcpuQuota
from argosy.model.resources import Resources
from argosy.model.run_terms import RunTerms
from argosy.spec.faults import SpecError
from argosy.spec.gangs import REFUSED
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.shards import task_count, task_overrides
from argosy.spec.terms import terms_of

SPEC: dict[str, Any] = {
    "version": 1, "name": "train", "run": ["x"], "array": {"items": ["a", "b"]}, "gang": {"size": 3},
}  # fmt: skip
VALUES: dict[str, Any] = {
    "container.hostPorts": [8080], "resources.gpuShare": {"memoryMib": 1000}, "placement.strategy": ["binpack:memory"],
    "placement.softConstraints": [{"expression": "distinctInstance"}], "placement.maxTasksPerInstance": 1,
    "placement.affinity": ["a"], "placement.antiAffinity": ["a"], "capacity.deadline": "2h", "capacity.fallback": {},
    "capacity.budgetUsd": 5, "capacity.onCap": "finish", "capacity.maxHourlyCost": 5, "preemptible": True,
    "dependsOn": [{"run": "a", "type": "N_TO_N"}], "capacity.purchase": "spot-then-on-demand",
    "placement.maxConcurrentTasks": 2, "capacity.maxInstances": 2, "resources.gpus": 0.25,
    "container.environment": {"MASTER_ADDR": "x"}, "gang.size": 1, "gang.processes": "gpu",
}  # fmt: skip


def paths(data: dict[str, Any], limits: DeploymentLimits | None = None) -> dict[str, str]:
    """The faults of a spec."""
    try:
        check_spec(data, limits)
    except SpecError as refusal:
        return {fault.path: fault.message for fault in refusal.faults}
    return {}


@pytest.mark.parametrize("path", [*VALUES])
def test_what_cannot_stand_with_a_gang_is_refused_with_its_reason(path: str) -> None:
    part, _, field = path.rpartition(".")
    data = {**SPEC, part: {**SPEC.get(part, {}), field: VALUES[path]}} if part else {**SPEC, field: VALUES[path]}
    assert any(each.startswith(path) for each in paths(data)), paths(data)
    assert REFUSED.keys() <= VALUES.keys()


@pytest.mark.parametrize(
    ("policy", "size", "numbers"),
    [
        (Policy(max_instances=2), 3, ("3", "2")),
        (Policy(machine_programs=2), 3, ("3", "2")),
        (Policy(vcpu_quotas=(VcpuQuota("us-east-1", "spot", "standard", 8),)), 3, ("12", "8")),
        (Policy(gangs=False), 3, (NOT_ALLOWED,)),
        (Policy(vcpu_quotas=(VcpuQuota("us-east-1", "spot", "standard", 12),)), 3, ()),
        (Policy(), 65, ("64",)),
    ],
)
def test_a_gang_larger_than_a_limit_is_refused_at_submission_with_both_numbers(
    policy: Policy, size: int, numbers: tuple[str, ...]
) -> None:
    limits = DeploymentLimits("s3://own/", frozenset({"own"}), {"c5.xlarge": Resources(4096, 7500)}, policy=policy)
    found = paths({**SPEC, "gang": {"size": size}}, limits)
    said = " ".join(message for path, message in found.items() if path.startswith("gang"))
    assert all(number in said for number in numbers)
    assert bool(found) == bool(numbers)


def test_each_member_gets_the_piece_of_its_gang_and_rank_0_alone_leaves_its_result_and_checkpoint() -> None:
    form = to_json(parse_spec({**SPEC, "run": ["x", "${index}", "${item}", "${count}"], "checkpoint": {}}))
    assert task_count(form) == 6
    told = []
    for index in (3, 4):
        overrides = task_overrides(form, "s3://own/r/", AttemptKey("r", index, 2, 0))
        assert overrides["command"] == ["x", "1", "b", "2"]
        told.append({each["name"]: each["value"] for each in overrides["environment"]})
    first, second = told
    assert (first["ARGOSY_TASK_INDEX"], second["ARGOSY_TASK_INDEX"], second["ARGOSY_TASK_COUNT"]) == ("3", "4", "6")
    assert (first["ARGOSY_RESULT"], second["ARGOSY_RESULT"]) == ("folder", "none")
    assert "ARGOSY_CHECKPOINT_URI" in first.keys() - second.keys()
    assert first["ARGOSY_OUTPUT_URI"] == "s3://own/r/attempts/0000001/2/"
    assert second["ARGOSY_OUTPUT_URI"] == "s3://own/r/attempts/0000001/2/rank-1/"


def test_an_earlier_version_sets_a_run_with_gangs_aside_instead_of_starting_members_alone() -> None:
    terms = terms_of(parse_spec(SPEC))
    stored = json.loads(json.dumps(terms.to_dict()))
    assert RunTerms.from_dict(stored) == terms
    assert "preemptible" not in stored, "it requires every term that it knows"
