"""The fields allowed in the spec of each kind of run, and next to a task definition of the user's own.

An allow-list: a field that is listed for no kind is refused, so that no new field is silently ignored. A field of a
part, such as `capacity.cells`, covers everything below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from argosy.spec.faults import Fault
from argosy.spec.models import fields_at
from argosy.spec.program import BESIDE

KINDS = {"b": "batch", "s": "service", "d": "daemon"}
OWN = "t"  # next to taskDefinition
_LISTED = {
    "bsdt": "version kind name taskDefinition container.command container.environment owner compat tags",
    "bsd": "container.image container.hostPorts run workdir setup packages job result"
    " resources.vcpus resources.memory resources.diskGiB resources.architecture",
    "bs": "resources.gpus resources.gpuShare resources.gpuModel resources.gpuMemoryMib",
    "bst": "queue priority placement.constraints placement.strategy placement.maxConcurrentTasks placement.group"
    " placement.maxTasksPerInstance placement.softConstraints placement.affinity placement.antiAffinity"
    " capacity.purchase capacity.cells capacity.maxInstances capacity.maxHourlyCost",
    "bt": "array.range array.shardSize array.size array.items array.itemsFrom array.expectedSeconds array.partSuffix"
    " output dependsOn notBefore preemptible checkpoint.everySeconds retryStrategy.attempts"
    " retryStrategy.stopAfterAlike retryStrategy.evaluateOnExit"
    " timeout.attemptDurationSeconds timeout.runDurationSeconds"
    " capacity.deadline capacity.fallback capacity.budgetUsd capacity.onCap capacity.transferGbPerTask",
    "b": "inputs checkpoint.sizeGiB gang.size gang.processes gang.startWithinSeconds",
    "s": "container.health container.ports service.targetGroup service.drainSeconds",
    "st": "service.desired service.update capacity.onDemandBase",
    "dt": "daemon.instances daemon.update",
}
ALLOWED: Mapping[str, str] = MappingProxyType({path: who for who, paths in _LISTED.items() for path in paths.split()})
"""By path, the letters of KINDS and OWN that allow the field."""

_WHY: Mapping[tuple[str, str], str] = {
    ("s", "array"): "a service has service.desired identical tasks",
    ("s", "output"): "tasks of a service leave no results",
    ("s", "inputs"): "tasks of a service get no inputs",
    ("s", "retryStrategy"): "a task of a service that ends is always replaced",
    ("s", "dependsOn"): "a service is deployed, and waits for no run",
    ("s", "notBefore"): "a service is started by its deployment",
    ("s", "timeout"): "tasks of a service run until they are no longer needed",
    ("s", "checkpoint"): "tasks of a service are never stopped for other queues",
    ("s", "preemptible"): "tasks of a service are never stopped for other queues",
    ("s", "capacity.deadline"): "a service never ends",
    ("s", "capacity.fallback"): "it needs a deadline or a wait that ends",
    ("s", "capacity.budgetUsd"): "a service has no total: maxHourlyCost limits what it costs",
    ("s", "capacity.onCap"): "it belongs to budgetUsd",
    ("s", "capacity.transferGbPerTask"): "a service has no total",
    ("s", "gang"): "the tasks of a service are replaced one by one",
    ("d", "gang"): "one task runs on each instance that matches",
    ("d", "dependsOn"): "a daemon is deployed, and waits for no run",
    ("d", "notBefore"): "a daemon is started by its deployment",
    ("d", "array"): "one task runs on each instance that matches",
    ("d", "output"): "tasks of a daemon leave no results",
    ("d", "inputs"): "tasks of a daemon get no inputs",
    ("d", "placement"): "daemon.instances says on which instances it runs",
    ("d", "capacity"): "nothing is bought for a daemon: it runs on instances bought for other runs",
    ("d", "retryStrategy"): "a task of a daemon that ends is always replaced",
    ("d", "timeout"): "tasks of a daemon run as long as their instances",
    ("d", "checkpoint"): "tasks of a daemon are never stopped for other queues",
    ("d", "preemptible"): "tasks of a daemon are never stopped for other queues",
    ("d", "queue"): "a daemon runs on the instances of all queues",
    ("d", "priority"): "a daemon runs on every instance that matches, and waits in no queue",
    ("d", "resources.gpus"): "it would take GPUs from all other runs",
    ("d", "resources.gpuShare"): "no run could use a whole GPU where it runs",
    ("d", "resources.gpuModel"): "it would take GPUs from all other runs",
    ("d", "resources.gpuMemoryMib"): "it would take GPUs from all other runs",
    (OWN, "gang"): "whose network mode its members cannot change",
    (OWN, "resources"): "which already sets what a task needs",
    (OWN, "container.hostPorts"): "which has its own port mappings",
    (OWN, "service.targetGroup"): "whose ports Argosy does not know",
}
# The fields of other kinds in place of a field that only one kind may have.
_INSTEAD = {
    "capacity.onDemandBase": "; a run has capacity.fallback",
    "container.health": "; a task of a batch ends, and its exit code shows the outcome",
    "container.ports": "; use hostPorts for ports of the instance",
}
_SAID_OF_THE_DEFINITION = ("container.image", "run", *BESIDE)  # by `checks` and `program`


def allowed_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Every field that cannot stand with the spec's kind, or next to its task definition."""
    kind = next((letter for letter, name in KINDS.items() if name == data.get("kind")), "b")
    has_own = data.get("taskDefinition") is not None
    for path in _given(data, f"{kind}{OWN}" if has_own else kind):
        if not may_stand(path, kind):
            yield Fault(path, _sentence(path, kind))
        elif has_own and not may_stand(path, OWN) and path not in _SAID_OF_THE_DEFINITION:
            why = _WHY.get((OWN, path), "with which it has no effect")
            yield Fault(path, f"cannot be combined with taskDefinition, {why}")


def may_stand(path: str, who: str) -> bool:
    """Whether a field, or anything of a part, may stand with a kind or a task definition."""
    return any(who in listed for listed in _listed(path))


def _listed(path: str) -> list[str]:
    return [who for each, who in ALLOWED.items() if each == path or each.startswith(f"{path}.")]


def _given(data: Mapping[str, Any], wanted: str) -> Iterator[str]:
    """Paths of the fields that are given. A part that allows no field at all counts as one path."""
    for name in fields_at(""):
        value = data.get(name)
        is_part = name not in ALLOWED and bool(_listed(name))
        if is_part and isinstance(value, Mapping) and all(may_stand(name, who) for who in wanted):
            given = [f"{name}.{each}" for each in fields_at(name) if value.get(each) is not None]
            yield from (path for path in given if path != "resources.gpus" or value["gpus"])  # 0 requests no GPU
        elif value is not None:
            yield name


def _sentence(path: str, kind: str) -> str:
    kinds = {letter for listed in _listed(path) for letter in listed} & KINDS.keys()
    if kinds in ({"s"}, {"d"}):
        return f"is only possible with kind: {KINDS[kinds.pop()]}{_INSTEAD.get(path, '')}"
    why = _WHY.get((kind, path))
    return f"is not possible with kind: {KINDS[kind]}" + (f": {why}" if why else "")
