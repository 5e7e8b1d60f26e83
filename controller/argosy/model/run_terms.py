"""What does the spec of a run ask for? Read once, from the JSON form that `spec` has validated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from argosy.model.dependencies import Dependency
from argosy.model.exit_codes import WRONG_REQUEST
from argosy.model.ports import TCP, TaskPort
from argosy.model.purchases import PurchaseMode
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources

T = TypeVar("T")

DEFAULT_QUEUE = "default"  # of runs that name none, and of those whose queue is there no more
FALLBACK_WAIT_S = 600.0  # the default for a run without a deadline
FALLBACK_LOSSES = 3
# Of the runner that is every container's init (containers/runner). An instance whose runner speaks the protocol has the
# attribute with its number.
RUNNER_PROTOCOL = 1
RUNNER_ATTRIBUTE = "argosy.runner"
# The entry point of a container that the runner is to run a program in. Elsewhere there is no such file, so that the
# task fails at once and does not run half.
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


_RUNNER_RULES = (ExitRule("EXIT", str(WRONG_REQUEST)),)  # after the spec's own: trying again cannot help


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment, or a time from the submission of the run. Seconds; exactly one of the two is set."""

    at: float | None = None  # epoch seconds
    after_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> Deadline:
        """Raises ValueError with a sentence: an unknown form, no offset from UTC, or out of range."""
        duration_s = duration_of(text)
        if duration_s is not None:
            if not 0 < duration_s <= LONGEST_DEADLINE_S:
                raise ValueError("must be longer than nothing and at most 366 days")
            return cls(after_s=duration_s)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as fault:
            raise ValueError(f"is neither a time nor a duration: {_EXAMPLES}") from fault
        if moment.tzinfo is None:
            raise ValueError("is a time without its offset from UTC: end it with Z, or with +02:00")
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
    """8080 and "8080/tcp" are (8080, "tcp"). Raises ValueError with what is wrong with the value."""
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


def needs_of(spec: Mapping[str, Any]) -> Resources:
    """What one task takes, for a spec with a `container`."""
    resources = spec.get("resources", {})
    return Resources(
        round(float(resources.get("vcpus", 1)) * CPU_UNITS_PER_VCPU),
        int(resources.get("memory", 1024)),
        int(resources.get("gpus", 0)),
    )


@dataclass(frozen=True, slots=True)
class HealthTerms:
    """How a container's health command is run, by ECS's agent. Seconds."""

    interval_s: float
    retries: int  # failures in a row, until the container is unhealthy

    @property
    def patience_s(self) -> float:
        """How long a task may be unhealthy before it is replaced."""
        return self.interval_s * self.retries

    @classmethod
    def of(cls, health: Mapping[str, Any]) -> HealthTerms:
        """From the validated JSON form."""
        return cls(float(health.get("intervalSeconds", 30)), int(health.get("retries", 3)))


START_FIRST: Final = "start-first"
STOP_FIRST: Final = "stop-first"
DAEMON_MIN_HEALTHY = 80  # percent of the instances that match, unless the spec says otherwise
SERVICE_GROUP = "env:"  # and the environment's name: the ECS task group of a service's tasks, of all revisions


@dataclass(frozen=True, slots=True)
class ServiceTerms:
    """How a service is kept up and updated. Percentages are of the desired tasks, and are rounded up."""

    desired: int
    min_healthy_percent: int  # our own acts leave so many healthy tasks
    max_over_percent: int  # an update may start so many more
    healthy_s: float  # a task that has run for so long is healthy
    progress_s: float  # a deployment without progress for so long is stuck
    rolls_back: bool  # whether a deployment that fails goes back to the revision before
    target_group: str = ""  # of a load balancer, as the settings name it; "" = none
    drain_s: float = 0.0  # from when a task is out of the group until it is told to stop

    @classmethod
    def of_daemon(cls, daemon: Mapping[str, Any]) -> ServiceTerms:
        """From the validated JSON form. Percentages are of the instances that match."""
        update = {"minHealthyPercent": DAEMON_MIN_HEALTHY, **daemon.get("update", {}), "maxOverPercent": 0}
        return cls.of({"desired": 0, "update": update})

    @classmethod
    def of(cls, service: Mapping[str, Any]) -> ServiceTerms:
        """From the validated JSON form."""
        update = service.get("update", {})
        return cls(
            desired=int(service["desired"]),
            min_healthy_percent=int(update.get("minHealthyPercent", 100)),
            max_over_percent=int(update.get("maxOverPercent", 25)),
            healthy_s=float(update.get("healthySeconds", 15)),
            progress_s=float(update.get("progressSeconds", 600)),
            rolls_back=bool(update.get("rollback", True)),
            target_group=str(service.get("targetGroup") or ""),
            drain_s=float(service.get("drainSeconds", 30)) if service.get("targetGroup") else 0.0,
        )


_AROUND = ("array", "placement", "daemon")  # the size of the array is what was desired at first
_ROLLOUT = ("desired", "update")


def content_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What of a service's spec makes its tasks what they are. The rest (how many there are, how they are replaced,
    where further ones go) may change while they run. The group counts: RunTask is told of it, and a launch in doubt is
    repeated with the very same request (DESIGN D4)."""
    content = {name: value for name, value in spec.items() if name not in _AROUND}
    content["service"] = {name: value for name, value in spec.get("service", {}).items() if name not in _ROLLOUT}
    return {**content, "group": spec.get("placement", {}).get("group")}


@dataclass(frozen=True, slots=True)
class DaemonTerms:
    """Where the tasks of a daemon run: one on each instance that matches."""

    instances: str  # a cluster query; "" = all
    starts_first: bool  # an update starts the new task on an instance before it stops the old one there

    @classmethod
    def of(cls, daemon: Mapping[str, Any]) -> DaemonTerms:
        """From the validated JSON form."""
        return cls(str(daemon.get("instances") or ""), daemon.get("update", {}).get("order") == START_FIRST)


@dataclass(frozen=True, slots=True)
class RunTerms:
    """What the spec of a run asks for. Never changes after submission. None: the spec does not say."""

    name: str
    needs: Resources  # of one task, where the spec has a `container`
    gpu_model: str | None  # the only one that will do
    gpu_memory_mib: int  # that each of its GPUs has at least; 0 = any
    disk_gib: int  # of its instance's volume, for one task
    architecture: str  # of the image: x86_64 | arm64 | any
    host_ports: tuple[Port, ...]  # that each task holds on its instance, sorted, so that equal sets are equal
    group: str | None  # the ECS task group
    needs_runner: bool  # to fetch a program of the user's own, and to bring its result away
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
    cells: tuple[str, ...]  # the only ones that it may run in; empty = any
    max_instances: int | None
    deadline: Deadline | None
    on_demand_base: int  # of a service: so many of its tasks run on on-demand instances
    fallback_wait_s: float  # how long tasks wait for spot that is short; infinite where only the deadline counts
    fallback_losses: int  # a task that was lost this often goes to on-demand itself
    budget_usd: float | None
    max_hourly_usd: float | None
    drains_at_cap: bool  # whether running tasks are stopped when the budget is used up; otherwise they may finish
    transfer_gb_per_task: float
    # array, retryStrategy, timeout
    expected_seconds: float | None  # of one task
    shard_size: int | None
    attempt_limit: int
    exit_rules: tuple[ExitRule, ...]
    attempt_timeout_s: float  # 0 = none
    duration_limit_s: float  # of the whole run; 0 = none
    service: ServiceTerms | None  # of a service or a daemon. None: its tasks come to an end
    daemon: DaemonTerms | None  # None: it is none
    health: HealthTerms | None  # None: a task is healthy once it has run for long enough
    ports: tuple[TaskPort, ...]  # at which a task is reached
    depends_on: tuple[Dependency, ...]  # nothing of it starts before these
    not_before: Deadline | None  # nothing of it starts earlier
    # how it shares the cluster with others
    queue: str
    owner: str  # "" = the queue's own
    priority: int  # within its queue, higher first
    preemptible: bool | None  # whether its tasks may be stopped for other queues; None = as its queue says
    checkpoint_s: float  # its programs save their work every so many seconds of an attempt; 0 = never

    @property
    def serves(self) -> bool:
        """Whether its tasks are a service's or a daemon's, and never done."""
        return self.service is not None

    def starts_at(self, submitted_at: float) -> float:
        """Nothing of the run starts earlier. Epoch seconds; 0 = at once."""
        return 0.0 if self.not_before is None else self.not_before.for_run(submitted_at)

    @property
    def has_caps(self) -> bool:
        """Whether a budget or an hourly cap limits the run."""
        return self.budget_usd is not None or self.max_hourly_usd is not None

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> RunTerms:
        """From the validated JSON form. Raises KeyError for a spec without a name."""
        placement, capacity, array = spec.get("placement", {}), spec.get("capacity", {}), spec.get("array", {})
        container = spec.get("container", {})
        ports = tuple(
            TaskPort(int(each["container"]), int(each.get("host") or 0)) for each in container.get("ports", ())
        )
        retries, timeout, fallback = (
            spec.get("retryStrategy", {}),
            spec.get("timeout", {}),
            capacity.get("fallback", {}),
        )
        usual_wait_s = math.inf if "deadline" in capacity else FALLBACK_WAIT_S
        return cls(
            name=str(spec["name"]),
            needs=needs_of(spec),
            gpu_model=spec.get("resources", {}).get("gpuModel"),
            gpu_memory_mib=int(spec.get("resources", {}).get("gpuMemoryMib", 0)),
            disk_gib=int(spec.get("resources", {}).get("diskGiB", 0)),
            architecture=spec.get("resources", {}).get("architecture", X86_64),
            host_ports=tuple(sorted({*map(port_of, container.get("hostPorts", ())), *_pinned(ports)})),
            group=placement.get("group"),
            needs_runner="run" in spec,
            max_concurrent=_optional(int, placement.get("maxConcurrentTasks")),
            max_tasks_per_instance=_optional(int, placement.get("maxTasksPerInstance")),
            constraints=tuple(placement.get("constraints", ())),
            strategy=tuple(placement.get("strategy", ())),
            soft_constraints=tuple((e["expression"], int(e["weight"])) for e in placement.get("softConstraints", ())),
            affinity=tuple(placement.get("affinity", ())),
            anti_affinity=tuple(placement.get("antiAffinity", ())),
            purchase=PurchaseMode(capacity.get("purchase", PurchaseMode.SPOT)),
            cells=tuple(capacity.get("cells", ())),
            max_instances=_optional(int, capacity.get("maxInstances")),
            deadline=_optional(Deadline.parse, capacity.get("deadline")),
            on_demand_base=int(capacity.get("onDemandBase", 0)),
            fallback_wait_s=float(fallback.get("afterWaitSeconds", usual_wait_s)),
            fallback_losses=int(fallback.get("afterInterruptions", FALLBACK_LOSSES)),
            budget_usd=_optional(float, capacity.get("budgetUsd")),
            max_hourly_usd=_optional(float, capacity.get("maxHourlyCost")),
            drains_at_cap=capacity.get("onCap", "drain") == "drain",
            transfer_gb_per_task=float(capacity.get("transferGbPerTask") or 0.0),
            expected_seconds=_optional(float, array.get("expectedSeconds")),
            shard_size=array.get("shardSize"),
            attempt_limit=int(retries.get("attempts", 1)),
            exit_rules=(*map(_exit_rule, retries.get("evaluateOnExit", ())), *(_RUNNER_RULES if "run" in spec else ())),
            attempt_timeout_s=float(timeout.get("attemptDurationSeconds", 0)),
            duration_limit_s=float(timeout.get("runDurationSeconds", 0)),
            service=_optional(ServiceTerms.of_daemon, spec.get("daemon"))
            or _optional(ServiceTerms.of, spec.get("service")),
            daemon=_optional(DaemonTerms.of, spec.get("daemon")),
            health=_optional(HealthTerms.of, container.get("health")),
            ports=ports,
            depends_on=tuple(map(Dependency.of, spec.get("dependsOn", ()))),
            not_before=_optional(Deadline.parse, spec.get("notBefore")),
            queue=str(spec.get("queue") or DEFAULT_QUEUE),
            owner=str(spec.get("owner") or ""),
            priority=int(spec.get("priority") or 0),
            preemptible=spec.get("preemptible"),
            checkpoint_s=float(spec.get("checkpoint", {}).get("everySeconds", 0)),
        )


def _pinned(ports: Iterable[TaskPort]) -> Iterator[Port]:
    return ((each.host, TCP) for each in ports if each.host)


def _exit_rule(rule: Mapping[str, str]) -> ExitRule:
    return ExitRule(*map(rule.get, ("action", "onExitCode", "onReason", "onStatusReason")))  # type: ignore[arg-type]


def _optional(read: Callable[[Any], T], given: Any) -> T | None:
    return None if given is None else read(given)
