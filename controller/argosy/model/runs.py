"""What was submitted, and how far has it come?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from argosy.model.costs import Costs
from argosy.model.deadlines import deadline_at
from argosy.model.host_ports import Port
from argosy.model.resources import CPU_UNITS_PER_VCPU, NOTHING, Resources
from argosy.model.stance import UNSTEERED, Steering
from argosy.model.tasks import TERMINAL, TaskStatus, TaskTable

FALLBACK_WAIT_S = 600.0  # of a run without a deadline
FALLBACK_LOSSES = 3


class RunStatus(StrEnum):
    SUBMITTED = "SUBMITTED"  # folded in; definition and results folder being prepared
    PROVISIONING = "PROVISIONING"  # nothing has run yet
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"  # every task did
    PARTIAL = "PARTIAL"  # some did
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


TERMINAL_RUN = frozenset({RunStatus.SUCCEEDED, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class ExitRule:
    """One rule of `evaluateOnExit`; patterns are globs, None matches anything."""

    action: str  # RETRY | EXIT
    on_exit_code: str | None = None
    on_reason: str | None = None
    on_status_reason: str | None = None


@dataclass(slots=True)
class Failure:
    """An attempt that failed, as users are shown it."""

    index: int
    attempt: int
    exit_code: int | None
    reason: str
    instance: str | None
    task_arn: str | None = None  # finds its log


@dataclass(slots=True)
class Run:
    """A run and its tasks. What its spec says is `spec`, validated JSON that never changes after submit."""

    id: str
    number: int  # small, unique in this deployment; how attempt rows name the run
    spec: Mapping[str, Any]
    submitted_at: float
    task_count: int
    image: str  # resolved; empty when the spec names a task definition
    output: str  # s3://bucket/prefix/<runId>/
    expects_result: bool
    tasks: TaskTable
    status: RunStatus = RunStatus.SUBMITTED
    status_reason: str = ""
    task_definition: str = ""  # ARN; empty until prepared
    container: str = "main"  # the container that gets the overrides
    needs: Resources = NOTHING
    host_ports: tuple[Port, ...] = ()  # that each of its tasks holds on its instance
    prepare_after: float = 0.0  # back-off after a failed preparation
    prepare_tries: int = 0
    cancelled: bool = False  # by the user
    started_at: float = 0.0
    stopped_at: float = 0.0
    attempts: int = 0
    interruptions: int = 0
    cost_usd: float = 0.0  # what has been charged; of instances that are alive that is done when either ends
    on_demand_cost_usd: float = 0.0
    costs: dict[str, Costs] = field(default_factory=dict)  # the same by market (`costs.market_of`)
    capped_at: float = 0.0  # when its budget was found to be used up; 0 = not
    ended: int = 0  # attempts that succeeded: how long they took is what the rest of the run is expected to take
    ended_seconds: float = 0.0  # of all of them together
    shortest_s: float = 0.0  # 0 = none has ended
    longest_s: float = 0.0
    instances: set[str] = field(default_factory=set)  # EC2 ids that ran an attempt
    reasons: list[str] = field(default_factory=lambda: [""])
    failures: list[Failure] = field(default_factory=list)
    waiting: str = ""
    steering: Steering = UNSTEERED  # between spot and on-demand
    reopened_at: float = 0.0  # durations of deadline and run count from here; 0 = from its submission
    retries: int = 0  # how often it was reopened
    retried: list[int] = field(default_factory=list)  # TaskStatus of what the last retry was asked for
    revives: list[int] = field(default_factory=list)  # TaskStatus of the tasks that a retry makes pending again
    revived_to: int = 0  # the first task that this has not reached yet

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def group(self) -> str:
        """The ECS task group: spread, distinctInstance and limits count within it. Runs may share one."""
        return str(self.spec.get("placement", {}).get("group", f"run:{self.id}"))

    @property
    def done(self) -> bool:
        return self.status in TERMINAL_RUN

    @property
    def ready(self) -> bool:
        """May be given places."""
        return bool(self.task_definition) and not (self.done or self.halted)

    @property
    def halted(self) -> bool:
        """No task is started any more: cancelled, or given up."""
        return self.tasks.halted

    @property
    def complete(self) -> bool:
        """No task is pending or live: what is left is to close out the results."""
        if self.revives:
            return False
        counts = self.tasks.counts()
        return int(counts[list(TERMINAL)].sum()) == self.task_count

    @property
    def attempt_limit(self) -> int:
        return int(self.spec.get("retryStrategy", {}).get("attempts", 1))

    @property
    def exit_rules(self) -> tuple[ExitRule, ...]:
        rules = self.spec.get("retryStrategy", {}).get("evaluateOnExit", ())
        names = ("action", "onExitCode", "onReason", "onStatusReason")
        return tuple(ExitRule(*map(rule.get, names)) for rule in rules)

    @property
    def attempt_timeout_s(self) -> float:
        """0 = none."""
        return float(self.spec.get("timeout", {}).get("attemptDurationSeconds", 0))

    @property
    def max_concurrent(self) -> int | None:
        return _optional_int(self.spec.get("placement", {}).get("maxConcurrentTasks"))

    @property
    def max_instances(self) -> int | None:
        return _optional_int(self.spec.get("capacity", {}).get("maxInstances"))

    @property
    def purchase(self) -> str:
        return str(self.spec.get("capacity", {}).get("purchase", "spot"))

    @property
    def constraints(self) -> tuple[str, ...]:
        return tuple(self.spec.get("placement", {}).get("constraints", ()))

    @property
    def strategy(self) -> tuple[str, ...]:
        return tuple(self.spec.get("placement", {}).get("strategy", ()))

    @property
    def max_tasks_per_instance(self) -> int | None:
        """Counts the tasks of the whole group."""
        return _optional_int(self.spec.get("placement", {}).get("maxTasksPerInstance"))

    @property
    def soft_constraints(self) -> tuple[tuple[str, int], ...]:
        """(expression, weight)."""
        given = self.spec.get("placement", {}).get("softConstraints", ())
        return tuple((each["expression"], int(each["weight"])) for each in given)

    @property
    def affinity(self) -> tuple[str, ...]:
        return tuple(self.spec.get("placement", {}).get("affinity", ()))

    @property
    def anti_affinity(self) -> tuple[str, ...]:
        return tuple(self.spec.get("placement", {}).get("antiAffinity", ()))

    @property
    def final_status(self) -> RunStatus:
        """What a complete run ends as."""
        succeeded = int(self.tasks.counts()[TaskStatus.SUCCEEDED])
        if succeeded == self.task_count:
            return RunStatus.SUCCEEDED
        if self.cancelled:
            return RunStatus.CANCELLED
        return RunStatus.PARTIAL if succeeded else RunStatus.FAILED

    def mean_seconds(self, default: float | None = None) -> float | None:
        """How long a successful attempt took on average; `default` while none has ended."""
        return self.ended_seconds / self.ended if self.ended else default

    def expected_seconds(self, guess_s: float) -> float:
        """How long an attempt will take: as long as earlier ones, else as the spec says; where neither is known, as
        long as it may if it is to finish whatever it costs, else `guess_s`. Never longer than it may."""
        longest_s = self.attempt_timeout_s or math.inf
        said = self.mean_seconds(self.spec.get("array", {}).get("expectedSeconds"))
        if said is None:
            said = guess_s if self.drains_at_cap or math.isinf(longest_s) else longest_s
        return min(float(said), longest_s)

    @property
    def deadline_at(self) -> float | None:
        """Epoch seconds."""
        given = self.spec.get("capacity", {}).get("deadline")
        return None if given is None else deadline_at(str(given), self.opened_at)

    @property
    def opened_at(self) -> float:
        """When it was submitted, or reopened."""
        return self.reopened_at or self.submitted_at

    @property
    def duration_limit_s(self) -> float:
        """Of the whole run; 0 = none."""
        return float(self.spec.get("timeout", {}).get("runDurationSeconds", 0))

    def is_over_time(self, now: float) -> bool:
        """Whether it has taken longer than it may."""
        return bool(self.duration_limit_s) and now - self.opened_at >= self.duration_limit_s

    @property
    def cells(self) -> tuple[str, ...]:
        """The only ones that it may run in; empty = any."""
        return tuple(self.spec.get("capacity", {}).get("cells", ()))

    @property
    def fallback_wait_s(self) -> float:
        """How long its tasks wait for spot that is short; infinite where only the deadline counts."""
        capacity = self.spec.get("capacity", {})
        usual_s = math.inf if "deadline" in capacity else FALLBACK_WAIT_S
        return float(capacity.get("fallback", {}).get("afterWaitSeconds", usual_s))

    @property
    def fallback_losses(self) -> int:
        """A task that was lost so often goes to on-demand itself."""
        fallback = self.spec.get("capacity", {}).get("fallback", {})
        return int(fallback.get("afterInterruptions", FALLBACK_LOSSES))

    @property
    def budget_usd(self) -> float | None:
        return _optional_float(self.spec.get("capacity", {}).get("budgetUsd"))

    @property
    def max_hourly_usd(self) -> float | None:
        return _optional_float(self.spec.get("capacity", {}).get("maxHourlyCost"))

    @property
    def drains_at_cap(self) -> bool:
        """Whether what runs is stopped when the budget is used up; otherwise it may end."""
        return str(self.spec.get("capacity", {}).get("onCap", "drain")) == "drain"

    def note_duration(self, seconds: float) -> None:
        """An attempt succeeded after so long."""
        self.shortest_s = min(self.shortest_s, seconds) if self.ended else seconds
        self.longest_s = max(self.longest_s, seconds)
        self.ended += 1
        self.ended_seconds += seconds

    def reason_row(self, reason: str) -> int:
        """The row of `reasons` that holds the text; the table is bounded, so a flood of texts ends in one."""
        text = reason[:300]
        if text not in self.reasons and len(self.reasons) >= 200:
            text = "(other reasons)"
        if text not in self.reasons:
            self.reasons.append(text)
        return self.reasons.index(text)


def _optional_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)


def needs_of(spec: Mapping[str, Any]) -> Resources:
    """What one task of a spec with a `container` takes."""
    resources = spec.get("resources", {})
    return Resources(
        round(float(resources.get("vcpus", 1)) * CPU_UNITS_PER_VCPU),
        int(resources.get("memory", 1024)),
        int(resources.get("gpus", 0)),
    )


def sort_key(run_id: str) -> str:
    """Orders runs by submission: the time part of the id first."""
    _, day, clock, tail = run_id.rsplit("-", 3)
    return f"{day}{clock}{tail}#{run_id}"
