"""Why does a task find no place?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from argosy.placement.arrays import BoolArray, IntArray
from argosy.placement.demand import Batch
from argosy.placement.fitness import AXES, GPU
from argosy.placement.pass_state import PassState, Port
from argosy.placement.query import DISTINCT_INSTANCE, matching, parse
from argosy.placement.supply import MOST_HOST_PORTS, Supply

_UNITS: Final = {"cpu": "cpu units", "memory": "MiB of memory", "gpu": "GPUs"}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why instances refuse a task. An instance may count under several."""

    kind: str
    """cpu, memory, gpu, tasks, health, constraint, distinctInstance, disk, ports, limit, affinity, antiAffinity."""
    detail: str
    """The request in words: "needs 2 GPUs", or the constraint itself."""
    refused: int
    """Instances that refuse for this reason."""
    only: int
    """Those of them that refuse for this reason alone and would take the task without it."""
    asked: int | None = None
    best: int | None = None
    """The most that is free on one instance, for resources."""
    best_instance: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one task of a batch. fits: how many instances would take it now."""

    instances: int
    fits: int
    never: bool
    """No instance of this supply could take it, even when empty."""
    reasons: tuple[Reason, ...]
    """The reason of most instances first."""
    relaxation: str
    """The smallest change that gives it a place at once; "" if it has a place, or if no single change does."""

    def sentence(self) -> str:
        """The whole answer in one line, for a run's `waiting`."""
        if self.fits:
            return f"{self.fits} of {self.instances} instances would take it now"
        if not self.instances:
            return "there are no instances"
        head = "can never run here" if self.never else "waiting"
        tail = f"; it would fit if {self.relaxation}" if self.relaxation else ""
        return f"{head}: {self.reasons_in_words()}{tail}"

    def reasons_in_words(self) -> str:
        return "; ".join(_phrase(reason) for reason in self.reasons)

    def to_json(self) -> dict[str, Any]:
        """Plain values, camelCase keys."""
        return {
            "instances": self.instances,
            "fits": self.fits,
            "never": self.never,
            "relaxation": self.relaxation,
            "sentence": self.sentence(),
            "reasons": [_camel(asdict(reason)) for reason in self.reasons],
        }


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """One rule: the rows it passes now, and those it passes on the same instances when empty."""

    kind: str
    detail: str
    passes: BoolArray
    ever: BoolArray
    relaxed: Callable[[BoolArray], str]
    """The words for relaxing this rule alone, given the rows that pass all other rules."""
    asked: int | None = None
    free: IntArray | None = None


def explain(batch: Batch, supply: Supply) -> Explanation:
    """The answer of `supply` as it is now to one more task of `batch`. QuerySyntaxError for an invalid constraint."""
    checks = _checks(batch, PassState(supply))
    passes = np.array([check.passes for check in checks], dtype=np.bool_).reshape(len(checks), len(supply))
    failed = (~passes).sum(axis=0)
    fits = int(np.count_nonzero(failed == 0))
    alone = [~row & (failed == 1) for row in passes]
    reasons = [
        _reason(check, only, supply) for check, only in zip(checks, alone, strict=True) if not check.passes.all()
    ]
    relaxation = "" if fits else _smallest(checks, alone)
    ever = np.logical_and.reduce([check.ever for check in checks])
    return Explanation(
        instances=len(supply),
        fits=fits,
        never=not bool(ever.any()),
        reasons=tuple(sorted(reasons, key=lambda reason: -reason.refused)),
        relaxation=relaxation,
    )


def ever_fits(batch: Batch, supply: Supply) -> BoolArray:
    """(m,) which instances could take a task of `batch` if they were empty. QuerySyntaxError as of `explain`."""
    checks = _checks(batch, PassState(supply))
    found: BoolArray = np.logical_and.reduce([check.ever for check in checks])
    return found


def _checks(batch: Batch, state: PassState) -> list[_Check]:
    found = [_resource(axis, batch, state) for axis in AXES if batch.need[AXES[axis]]]
    found += _most_tasks(state)
    found.append(_health(state.supply))
    found += [_constraint(text, batch, state) for text in batch.constraints]
    found += _limits(batch, state)
    found += _gpu_share(batch, state)
    found += _disk(batch, state)
    found += _ports(batch, state)
    found += [_with_group(group, batch, state) for group in batch.affinity if group != batch.group]
    found += [_without_group(group, batch, state) for group in batch.anti_affinity]
    return found


def _resource(axis: str, batch: Batch, state: PassState) -> _Check:
    need, free, total = batch.need[AXES[axis]], state.free[AXES[axis]], state.supply.total[AXES[axis]]

    def relaxed(rows: BoolArray) -> str:
        best = int(free[rows].max())
        return (
            f"it asked for {best} {_unit(axis, best)} instead of {need}" if best else f"it asked for no {_UNITS[axis]}"
        )

    return _Check(axis, f"needs {need} {_unit(axis, need)}", free >= need, total >= need, relaxed, need, free)


def _most_tasks(state: PassState) -> list[_Check]:
    """How many tasks of all groups an instance may run, whatever they need."""
    if state.tasks_left is None:
        return []
    mosts = [row.most_tasks for row in state.supply.rows]
    lowest, highest = min(m for m in mosts if m is not None), max(m for m in mosts if m is not None)
    each = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    ever = np.array([most is None or most > 0 for most in mosts], dtype=np.bool_)
    words = f"more than {each} tasks were allowed per instance"
    return [_Check("tasks", f"at most {each} tasks per instance", state.tasks_left > 0, ever, lambda _: words)]


def _unit(axis: str, amount: int) -> str:
    return "GPU" if axis == "gpu" and amount == 1 else _UNITS[axis]


def _health(supply: Supply) -> _Check:
    always = np.ones(len(supply), dtype=np.bool_)
    words = "an instance that is draining, disconnected or about to be interrupted took tasks"
    return _Check(
        "health", "ACTIVE, agent connected, not about to be interrupted", supply.healthy, always, lambda _: words
    )


def _constraint(text: str, batch: Batch, state: PassState) -> _Check:
    supply = state.supply
    if text == DISTINCT_INSTANCE:
        alone = state.of_group(batch.group) == 0
        return _Check(text, "one task of the group per instance", alone, np.ones_like(alone), _dropped(text))
    query = parse(text)
    now = matching(query, supply)
    return _Check("constraint", text, now, query.root.rows(supply, _IdleState(len(supply))), _dropped(text))


def _limits(batch: Batch, state: PassState) -> list[_Check]:
    here = state.of_group(batch.group)
    found = []
    if (most := batch.max_per_instance) is not None:
        possible = np.full(len(here), most > 0)
        words = f"more than {most} tasks of the group were allowed per instance"
        found.append(
            _Check("limit", f"at most {most} tasks of the group per instance", here < most, possible, lambda _: words)
        )
    rules_limit = batch.max_instances if batch.group not in batch.affinity else max(1, int(np.count_nonzero(here)))
    if rules_limit is not None:
        passes = (here > 0) if np.count_nonzero(here) >= rules_limit else np.ones_like(here, dtype=np.bool_)
        what = f"at most {rules_limit} instances for the group"
        possible = np.full(len(here), rules_limit > 0)
        found.append(_Check("limit", what, passes, possible, lambda _: "more instances were allowed for the group"))
    return found


def _gpu_share(batch: Batch, state: PassState) -> list[_Check]:
    """Room counts if it is there whichever of its GPUs ECS has chosen for the tasks that share them already."""
    mib = batch.gpu_share_mib
    if not mib:
        return []
    shares, rows = state.gpu_shares(), np.arange(len(state.supply))
    passes = shares.room(rows, state.free[GPU], mib) > 0
    ever = (shares.memory >= mib) & (state.supply.total[GPU] > 0)
    words = f"no GPU is sure to have {mib:,} MiB free"
    own = shares.open_to(rows, batch.gpu_owner)
    apart, allowed = "tasks of another owner share its GPUs", "the setting gpuShareAcrossOwners allowed it"
    return [
        _Check("gpu", words, passes, ever, lambda _: "it asked for less memory of a GPU"),
        _Check("gpu", apart, own, np.ones_like(own), lambda _: allowed),
    ]


def _disk(batch: Batch, state: PassState) -> list[_Check]:
    """Whether there will ever be enough is unknown, because the other tasks' use is unknown here."""
    if not batch.disk_gib:
        return []
    free, text = state.disk_gib(), f"needs {batch.disk_gib} GiB of disk"
    return [_Check("disk", text, free >= batch.disk_gib, np.ones(len(free), dtype=np.bool_), _dropped(text))]


def _ports(batch: Batch, state: PassState) -> list[_Check]:
    if not batch.host_ports:
        return []
    room = state.host_ports() + len(batch.host_ports) <= MOST_HOST_PORTS
    what = f"at most {MOST_HOST_PORTS} host ports of tasks per instance"
    return [
        _Check("ports", what, room, np.ones_like(room), _dropped(what)),
        *(_port(port, state) for port in batch.host_ports),
    ]


def _port(port: Port, state: PassState) -> _Check:
    text = f"host port {port[0]}/{port[1]}"
    return _Check("ports", text, ~state.port_used(port), np.ones(len(state.supply), dtype=np.bool_), _dropped(text))


def _with_group(group: str, batch: Batch, state: PassState) -> _Check:
    there = state.of_group(group) > 0
    return _Check(
        "affinity", f"next to a task of {group}", there, np.ones_like(there), _dropped(f"affinity to {group}")
    )


def _without_group(group: str, batch: Batch, state: PassState) -> _Check:
    free = state.of_group(group) == 0
    return _Check(
        "antiAffinity", f"away from tasks of {group}", free, np.ones_like(free), _dropped(f"anti-affinity to {group}")
    )


def _dropped(rule: str) -> Callable[[BoolArray], str]:
    return lambda _: f"the rule {rule!r} were dropped"


@dataclass(frozen=True, slots=True)
class _IdleState:
    """No task runs anywhere."""

    size: int

    @property
    def running_tasks(self) -> IntArray:
        return np.zeros(self.size, dtype=np.int64)

    @property
    def group_names(self) -> frozenset[str]:
        return frozenset()

    def of_group(self, name: str) -> IntArray:
        return np.zeros(self.size, dtype=np.int64)


def _reason(check: _Check, only: BoolArray, supply: Supply) -> Reason:
    best = int(check.free.argmax()) if check.free is not None else None
    return Reason(
        kind=check.kind,
        detail=check.detail,
        refused=int(np.count_nonzero(~check.passes)),
        only=int(np.count_nonzero(only)),
        asked=check.asked,
        best=None if best is None or check.free is None else int(check.free[best]),
        best_instance=None if best is None else supply.ids[best],
    )


def _smallest(checks: Sequence[_Check], alone: Sequence[BoolArray]) -> str:
    """The change to one rule that gives the task a place: the least share of a resource first, then rules in order."""
    options = [
        (_price(check, rows), index)
        for index, (check, rows) in enumerate(zip(checks, alone, strict=True))
        if rows.any()
    ]
    if not options:
        return ""
    _, index = min(options)
    return checks[index].relaxed(alone[index])


def _price(check: _Check, rows: BoolArray) -> float:
    """The cost of a change: the share of a resource, or 1 for a whole rule. Health cannot be relaxed: it comes last."""
    if check.free is not None and check.asked:
        return 1 - int(check.free[rows].max()) / check.asked
    return 2.0 if check.kind == "health" else 1.0


def _phrase(reason: Reason) -> str:
    if reason.best_instance is not None:
        fewer = f"{reason.refused} instances have fewer, most free is {reason.best} on {reason.best_instance}"
        return f"{reason.detail}: {fewer}"
    return f"{reason.detail}: {reason.refused} instances refuse"


def _camel(fields: dict[str, Any]) -> dict[str, Any]:
    return {("bestInstance" if name == "best_instance" else name): value for name, value in fields.items()}
