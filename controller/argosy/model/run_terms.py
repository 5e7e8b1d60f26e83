"""The terms of a run: the values of its spec.

`spec.terms` reads them from the spec once, when the run is admitted. They are stored with the run. Every decision of
the controller about the run uses a field of them, and no field here has a default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from argosy.model.purchases import PurchaseMode
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources, as_stored
from argosy.model.services.ports import TaskPort

ONE_TO_ONE_LIMIT = 8  # N_TO_N dependencies of a run: each is a bit of the column `met`


class Dependency(NamedTuple):
    """A run that another one waits for. one_to_one: task by task (N_TO_N); on_end: for its end, whatever its status."""

    run_id: str
    one_to_one: bool = False
    on_end: bool = False


class DependencyBit(NamedTuple):
    """A dependency task by task, and its bit of the column `met`."""

    dependency: Dependency
    bit: int


DEFAULT_QUEUE = "default"  # of runs that name none, and of those whose queue no longer exists
FALLBACK_WAIT_S = 600.0  # the default for a run without a deadline
# Of the runner that is every container's init (containers/runner). An instance whose runner speaks the protocol has the
# attribute with its number.
RUNNER_PROTOCOL = 1
RUNNER_ATTRIBUTE = "argosy.runner"
OVERRIDES_VARIABLE = "ARGOSY_OVERRIDES"  # the object with a command and variables that are too long for ECS
# The entry point of a container in which the runner runs a program. Elsewhere this file does not exist, so that the
# task fails at once instead of running halfway.
PROGRAM_ENTRY_POINT = "argosy:program"
LONGEST_DEADLINE_S = 366 * 86_400.0  # our choice: a deadline more than a year away is a typing error

Port = tuple[int, str]  # (1-65535, "tcp" | "udp")
MAX_PORT = 65_535
X86_64, ARM64 = "x86_64", "arm64"  # as ECS's agent names them in the attribute ecs.cpu-architecture
# ssh, docker and the agent: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_PortMapping.html
RESERVED_PORTS = (22, 2375, 2376, 51678, 51679, 51680)

_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_NUMBER = r"(\d{1,9}(?:\.\d{1,3})?)"
_SHORT = re.compile("".join(rf"(?:{_NUMBER}{unit})?" for unit in _UNITS_S), re.ASCII)
_ISO = re.compile(rf"P(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.ASCII)
_EXAMPLES = "give a time such as 2026-11-21T18:00:00Z or a duration such as 90m, 2h, 1h30m or PT2H"


@dataclass(frozen=True, slots=True)
class ExitRule:
    """One rule of `evaluateOnExit`. Patterns are globs; None matches everything."""

    action: str  # RETRY | EXIT
    on_exit_code: str | None = None
    on_reason: str | None = None
    on_status_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time, or a time from the submission of the run. Seconds; exactly one of the two is set."""

    at: float | None = None  # epoch seconds
    after_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> Deadline:
        """Raises ValueError with a sentence: an unknown form, no offset from UTC, or out of range."""
        duration_s = duration_of(text)
        if duration_s is not None:
            if not 0 < duration_s <= LONGEST_DEADLINE_S:
                raise ValueError("must be longer than 0 and at most 366 days")
            return cls(after_s=duration_s)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as fault:
            raise ValueError(f"is neither a time nor a duration: {_EXAMPLES}") from fault
        if moment.tzinfo is None:
            raise ValueError("has no offset from UTC: append Z or an offset such as +02:00")
        if not 2000 <= moment.year <= 2100:
            raise ValueError("must lie between the years 2000 and 2100")
        return cls(at=moment.timestamp())

    def for_run(self, opened_at: float) -> float:
        """Epoch seconds, for a run that was submitted or reopened at `opened_at`."""
        return opened_at + self.after_s if self.after_s is not None else float(self.at or 0.0)


def deadline_at(text: str, submitted_at: float) -> float:
    """Epoch seconds of a deadline as a spec gives it. Raises ValueError with a sentence (`Deadline.parse`)."""
    return Deadline.parse(text).for_run(submitted_at)


def duration_of(text: str) -> float | None:
    """Seconds of `2h`, `1h30m`, `PT2H`; None for anything else."""
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    return sum(float(given or 0) * unit_s for given, unit_s in zip(found.groups(), _UNITS_S.values(), strict=True))


def port_of(given: Any) -> Port:
    """8080 and "8080/tcp" are (8080, "tcp"). Raises ValueError with the fault of the value."""
    found = re.fullmatch(r"([0-9]{1,5})/(tcp|udp)", given, re.ASCII) if isinstance(given, str) else None
    if found is not None:
        number, protocol = int(found[1]), found[2]
    elif isinstance(given, int) and not isinstance(given, bool):
        number, protocol = given, "tcp"
    else:
        raise ValueError('must be a port such as 8080, "8080/tcp" or "53/udp"')
    if not 1 <= number <= MAX_PORT:
        raise ValueError(f"must be between 1 and {MAX_PORT}")
    if number in RESERVED_PORTS:
        raise ValueError(f"is reserved on every instance: ECS's agent keeps {', '.join(map(str, RESERVED_PORTS))}")
    return number, protocol


@dataclass(frozen=True, slots=True)
class HealthTerms:
    """How ECS's agent runs a container's health command. Seconds."""

    command: tuple[str, ...]
    interval_s: int
    timeout_s: int  # of one run of the command
    retries: int  # failures in a row, until the container is unhealthy
    start_s: int  # from the container's start, in which failures do not count

    @property
    def patience_s(self) -> float:
        """How long a task may be unhealthy before it is replaced."""
        return float(self.interval_s * self.retries)


START_FIRST: Final = "start-first"
STOP_FIRST: Final = "stop-first"
SERVICE_GROUP = "env:"  # with the environment's name: the ECS task group of a service's tasks, of all revisions


@dataclass(frozen=True, slots=True)
class ServiceTerms:
    """How a service is kept up and updated. Percentages refer to the desired tasks, for a daemon to the matching
    instances, and are rounded up."""

    desired: int
    min_healthy_percent: int  # least healthy tasks that our own actions leave
    max_over_percent: int  # most extra tasks that an update may start
    healthy_s: float  # a task that has run this long is healthy
    progress_s: float  # a deployment without progress for this long is stuck
    rolls_back: bool  # whether a failed deployment returns to the previous revision
    target_group: str  # load balancer's, as named in the settings; "" = none
    drain_s: float  # from a task's removal from the group to its stop
    content: str  # digest of what defines its tasks: a revision with the same digest adopts them


@dataclass(frozen=True, slots=True)
class DaemonTerms:
    """Where the tasks of a daemon run: one on each instance that matches."""

    instances: str  # a cluster query; "" = all
    starts_first: bool  # an update starts the new task on an instance before it stops the old one there


@dataclass(frozen=True, slots=True)
class GangTerms:
    """Tasks that start, run and restart together. The tasks of gang g are g x size to g x size + size - 1."""

    size: int
    start_within_s: float  # in which all members run, or all are stopped and start again
    per_gpu: bool  # whether a member has a process for each of its GPUs; otherwise it has one


@dataclass(frozen=True, slots=True)
class RunTerms:
    """The terms of a run's spec. They never change after submission. None: the spec does not say."""

    name: str
    needs: Resources  # of one task, where the spec has a `container`
    gpu_share_mib: int  # of one GPU that it shares with others; 0 = no share
    gpu_compute_percent: int  # the most of that GPU's compute capacity that it may use; 0 = no limit
    gpu_part: str  # the fraction of a GPU that a task gets, such as 0.25; "" = whole GPUs
    gpu_model: str | None  # the only acceptable model
    gpu_memory_mib: int  # least memory of each of its GPUs; 0 = any
    disk_gib: int  # of its instance's volume, for one task
    architecture: str  # of the image: x86_64 | arm64 | any
    host_ports: tuple[Port, ...]  # held by each task on its instance, sorted, so that equal sets are equal
    group: str | None  # the ECS task group
    needs_runner: bool  # to fetch the user's program and upload its result
    task_definition: str  # the user's own, FAMILY or FAMILY:REVISION; "" = Argosy makes one
    items_from: str  # S3 object with one item per task; "" = the items are in the spec, or there are none
    part_suffix: str  # how the names of part objects end
    output: str  # S3 folder to which the run's id is appended; "" = the deployment's own
    tags: tuple[tuple[str, str], ...]  # of its ECS tasks
    # placement
    max_concurrent: int | None
    max_tasks_per_instance: int | None  # counts the tasks of the whole group
    constraints: tuple[str, ...]
    strategy: tuple[str, ...]
    soft_constraints: tuple[tuple[str, int], ...]  # (expression, weight)
    affinity: tuple[str, ...]
    anti_affinity: tuple[str, ...]
    # capacity
    purchase: PurchaseMode
    cells: tuple[str, ...]  # the only ones allowed; empty = any
    max_instances: int | None
    deadline: Deadline | None
    on_demand_base: int  # of a service: number of its tasks that run on on-demand instances
    fallback_after_s: float | None  # how long tasks wait for spot that is short
    fallback_losses: int  # a task that was lost this often moves to on-demand; others stay
    fallback_redone_usd: float | None  # with this much repeated work, the run uses on-demand to its end
    budget_usd: float | None
    max_hourly_usd: float | None
    drains_at_cap: bool  # whether running tasks are stopped when the budget is used up; otherwise they may finish
    transfer_gb_per_task: float
    # array, retryStrategy, timeout
    expected_seconds: float | None  # of one task
    shard_size: int | None  # of a range
    attempt_limit: int
    alike_limit: int | None  # tasks that fail alike before the run stops; 0 = it never does so; None = the policy's
    exit_rules: tuple[ExitRule, ...]
    attempt_timeout_s: float  # 0 = none
    duration_limit_s: float  # of the whole run; 0 = none
    service: ServiceTerms | None  # of a service or a daemon. None: its tasks come to an end
    daemon: DaemonTerms | None  # None: it is not a daemon
    gang: GangTerms | None  # None: each of its tasks starts alone
    health: HealthTerms | None  # None: a task is healthy once it has run long enough
    ports: tuple[TaskPort, ...]  # at which a task is reached
    depends_on: tuple[Dependency, ...]  # nothing of the run starts before these
    not_before: Deadline | None  # nothing of the run starts earlier
    # how it shares the cluster with others
    queue: str
    owner: str  # "" = the queue's own
    priority: int  # within its queue, higher first
    preemptible: bool | None  # whether its tasks may be stopped for other queues; None = as its queue says
    checkpoint_s: float  # interval between saves of its programs; 0 = never

    @property
    def serves(self) -> bool:
        """Whether its tasks are a service's or a daemon's, and so never done."""
        return self.service is not None

    def starts_at(self, submitted_at: float) -> float:
        """Earliest start of the run. Epoch seconds; 0 = at once."""
        return 0.0 if self.not_before is None else self.not_before.for_run(submitted_at)

    @property
    def fallback_wait_s(self) -> float:
        """How long tasks wait for spot that is short; infinite if only the deadline counts."""
        if self.fallback_after_s is not None:
            return self.fallback_after_s
        return FALLBACK_WAIT_S if self.deadline is None else math.inf

    @property
    def has_caps(self) -> bool:
        """Whether a budget or an hourly cap limits the run."""
        return self.budget_usd is not None or self.max_hourly_usd is not None

    def to_dict(self) -> dict[str, Any]:
        """Read from JSON values, as stored. Earlier versions cannot read those of a run with gangs, whose members they
        would start one by one: they set it aside."""
        found = asdict(self, dict_factory=as_stored)
        if self.gang is not None:
            del found["preemptible"]  # no spec with gangs has it
        return found

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RunTerms:
        """Unknown members are ignored. Raises one of `damage.FAULTS` if one is missing or damaged."""
        stored = {"preemptible": None, **stored} if stored["gang"] is not None else stored
        values = {field.name: stored[field.name] for field in fields(cls)}
        return cls(**values | {name: read(values[name]) for name, read in _READERS.items() if values[name] is not None})


TERMS = "terms"  # the only member of a stored spec that does not come from the spec


def with_terms(spec: Mapping[str, Any], terms: RunTerms) -> dict[str, Any]:
    """The stored form of a run's spec. An earlier version reads it as the spec alone."""
    return {**spec, TERMS: terms.to_dict()}


def spec_and_terms(stored: Mapping[str, Any]) -> tuple[dict[str, Any], RunTerms]:
    """Raises one of `damage.FAULTS`."""
    return {name: value for name, value in stored.items() if name != TERMS}, RunTerms.from_dict(stored[TERMS])


_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("constraints", "strategy", "affinity", "anti_affinity", "cells"), tuple),
    **dict.fromkeys(("host_ports", "soft_constraints", "tags"), lambda rows: tuple(map(tuple, rows))),
    **dict.fromkeys(("deadline", "not_before"), lambda row: Deadline(**row)),
    "needs": lambda amounts: Resources(*amounts),
    "purchase": PurchaseMode,
    "exit_rules": lambda rows: tuple(ExitRule(**row) for row in rows),
    "service": lambda row: ServiceTerms(**row),
    "daemon": lambda row: DaemonTerms(**row),
    "gang": lambda row: GangTerms(**row),
    "health": lambda row: HealthTerms(**{**row, "command": tuple(row["command"])}),
    "ports": lambda rows: tuple(TaskPort(*row) for row in rows),
    "depends_on": lambda rows: tuple(Dependency(*row) for row in rows),
}


def bits_of(dependencies: tuple[Dependency, ...]) -> list[DependencyBit]:
    """The dependencies that are task by task, in the order of the spec."""
    found = [each for each in dependencies if each.one_to_one]
    return [DependencyBit(each, 1 << place) for place, each in enumerate(found)]


def all_bits(dependencies: tuple[Dependency, ...]) -> int:
    """The value of `met` at which a task may start."""
    return sum(each.bit for each in bits_of(dependencies))


Changes = Mapping[str, Any]
"""What a user changed after the submission: new values by the spec's name of the field; None: the field is unset. They
are stored next to the submitted spec, which stays as it is, and the run's terms follow from both."""
# By the name of a field that may change: the terms that follow from its value.
_TERMS: Mapping[str, Callable[[RunTerms, Any], dict[str, Any]]] = {
    "priority": lambda terms, value: {"priority": int(value or 0)},
    "queue": lambda terms, value: {"queue": str(value or DEFAULT_QUEUE)},
    "budgetUsd": lambda terms, value: {"budget_usd": value, "drains_at_cap": terms.drains_at_cap or value is None},
    "maxHourlyCost": lambda terms, value: {"max_hourly_usd": value},
    "deadline": lambda terms, value: {"deadline": None if value is None else Deadline.parse(value)},
    "maxInstances": lambda terms, value: {"max_instances": value},
    "maxConcurrentTasks": lambda terms, value: {"max_concurrent": value},
    "memory": lambda terms, value: {"needs": terms.needs._replace(memory_mib=int(value))},
    "vcpus": lambda terms, value: {"needs": terms.needs._replace(cpu_units=round(value * CPU_UNITS_PER_VCPU))},
}
WHEN_RETRIED = frozenset({"memory", "vcpus"})  # no task of the run is alive then, and its definition is created again
OF_OPEN_RUNS = tuple(name for name in _TERMS if name not in WHEN_RETRIED)
NEVER_ABSENT = frozenset({"priority", "queue", *WHEN_RETRIED})


def changed(terms: RunTerms, changes: Changes) -> RunTerms:
    """The terms with the changes. Raises KeyError for a field that never changes."""
    for name, value in changes.items():
        terms = replace(terms, **_TERMS[name](terms, value))
    return terms
