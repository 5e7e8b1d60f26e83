"""What was submitted, and how far has it progressed?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from argosy.model.costs import Costs
from argosy.model.failure_groups import FailureGroup
from argosy.model.gangs import Gang
from argosy.model.history_parts import HistoryPart
from argosy.model.inbox import SubmitRequest
from argosy.model.instances import Instance
from argosy.model.program_versions import ProgramVersion, submitted_version
from argosy.model.purchases import INITIAL_CHOICE, PurchaseChoice
from argosy.model.resources import NOTHING, Resources
from argosy.model.run_terms import SERVICE_GROUP, Changes, Port, RunTerms, all_bits, changed
from argosy.model.series import Series
from argosy.model.start_ups import NO_START, StartUps
from argosy.model.tasks import TERMINAL, TaskStatus, TaskTable


class RunStatus(StrEnum):
    SUBMITTED = "SUBMITTED"  # taken in; definition and results folder are being prepared
    PROVISIONING = "PROVISIONING"  # nothing has run yet
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"  # every task succeeded
    PARTIAL = "PARTIAL"  # some tasks succeeded
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


CANCELLING = "CANCELLING"  # shown instead of a status while a cancelled run has not ended; never stored
MOST_NAMED = 20_000  # instances, in a run's record: 12 bytes each as stored, and an item holds 400 KB
SHORTEST_S = 0.1  # the least expected duration of an attempt
TERMINAL_RUN = frozenset({RunStatus.SUCCEEDED, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt, as shown to users."""

    index: int
    attempt: int
    exit_code: int | None
    reason: str
    instance: str | None
    task_arn: str | None = None  # finds its log


class RunFacts(NamedTuple):
    """The facts of a run in the journal, as last committed."""

    status: RunStatus
    task_definition: str
    waiting: str
    halted: bool
    cancelled: bool
    is_capped: bool
    steering: PurchaseChoice
    retries: int
    task_count: int
    was_suspended: bool = False
    changes: tuple[tuple[str, Any], ...] = ()  # by the name of the field


class TaskStretch(NamedTuple):
    """Tasks with consecutive indexes."""

    first: int
    last: int


class ManifestBound(NamedTuple):
    """Where a part of the manifest ends and the next one begins: before a task, or in the middle of its objects."""

    task: int = 0
    objects: int = 0  # of this task, in earlier parts


@dataclass(slots=True)
class Run:
    """A run and its tasks. `spec` and `submitted_terms` hold the submitted values; `terms` holds the current values.
    The fields of the spec that tasks receive never change."""

    id: str
    number: int  # small, unique in this deployment; attempt rows name the run by it
    spec: Mapping[str, Any]  # validated JSON, which users and tasks can read
    submitted_terms: RunTerms  # the terms of `spec`
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
    host_ports: tuple[Port, ...] = ()  # ports that each of its tasks holds on its instance
    definition_architecture: str = ""  # x86_64 | arm64, as its own task definition says; "" = as its spec says
    # Whether commands can be run in its tasks. It is fixed until the run is prepared again, as are clients' tokens.
    takes_exec: bool = False
    prepare_after: float = 0.0  # back-off after a failed preparation
    cancelled: bool = False  # by the user
    started_at: float = 0.0
    stopped_at: float = 0.0
    attempts: int = 0
    interruptions: int = 0
    preemptions: int = 0  # attempts that were stopped for runs of other queues
    cost_usd: float = 0.0  # charged so far; live instances are charged when they or the run end
    on_demand_cost_usd: float = 0.0
    costs: dict[str, Costs] = field(default_factory=dict)  # the same by market (`costs.market_of`)
    capped_at: float = 0.0  # when its budget was found to be used up; 0 = it is not
    start_ups: StartUps = NO_START
    ended: int = 0  # successful attempts: their durations give the expected duration of the rest
    ended_seconds: float = 0.0  # of all of them together
    shortest_s: float = 0.0  # 0 = none has ended
    longest_s: float = 0.0
    instances: set[str] = field(default_factory=set)  # EC2 ids that ran an attempt; at most MOST_NAMED
    used_instances: int = 0  # number of all instances that ran an attempt
    reasons: list[str] = field(default_factory=lambda: [""])
    failures: list[Failure] = field(default_factory=list)
    failure_groups: list[FailureGroup] = field(default_factory=list)  # of all tries
    history: list[HistoryPart] = field(default_factory=list)  # parts next to its results
    history_rows: int = 0  # rows appended so far
    unfolded_since: float = 0.0  # when the first row that is in no part was appended; 0 = there are none
    series: Series = field(default_factory=Series)  # stored as a separate document
    waiting: str = ""
    unaffordable_since: float = 0.0  # when its hourly cap fell below the cheapest instance; 0 = it is not below
    steering: PurchaseChoice = INITIAL_CHOICE  # between spot and on-demand
    reopened_at: float = 0.0  # durations of deadline and run count from here; 0 = from its submission
    retries: int = 0  # how often it was reopened
    changes: dict[str, Any] = field(default_factory=dict)  # the users' changes to the spec (`run_terms.Changes`)
    change_reason: str = ""  # of the last change
    retried: list[int] = field(default_factory=list)  # TaskStatus values that the last retry includes
    chosen: list[TaskStretch] = field(default_factory=list)  # the only tasks that the last retry includes; none = all
    revives: list[int] = field(default_factory=list)  # TaskStatus of the tasks that a retry makes pending again
    failed_before: int = 0  # tasks that had failed and stayed so when it was reopened
    revived_to: int = 0  # the first task that the retry has not reached yet
    manifest_bounds: list[ManifestBound] = field(default_factory=list)  # where each written part ends
    manifest_after: str = ""  # name in the run's folder after which the next part begins; "" = where its task does
    unmet: list[str] = field(default_factory=list)  # ids of runs whose end it still waits for
    not_before: float = 0.0  # epoch seconds: nothing of it starts earlier; 0 = that time has come
    held_until: float = 0.0  # when nothing held it back any more; durations count from here. 0 = nothing did
    proven_owner: str = ""  # its owner, as AWS said at submission; "" = the owner in its spec is unproven
    gangs: dict[int, Gang] = field(default_factory=dict)  # at work, by their number
    programs: list[ProgramVersion] = field(default_factory=list)  # the versions of its program, by their place
    terms: RunTerms = field(init=False)  # the terms that apply now, with the changes
    committed: RunFacts | None = field(default=None, init=False)  # None = nothing was committed yet

    def __post_init__(self) -> None:
        self.terms = changed(self.submitted_terms, self.changes)
        self.programs = self.programs or submitted_version(self.spec, self.submitted_at)
        self.tasks.must_meet = all_bits(self.terms.depends_on) if self.terms.depends_on else 0

    @classmethod
    def of_request(cls, request: SubmitRequest, number: int, rows: int, status: TaskStatus) -> Run:
        """A new run. rows: the number of its tasks, each with that status."""
        tasks = TaskTable(rows)
        if status is not TaskStatus.PENDING:
            tasks.set_many(np.arange(rows), status=status)
        run = cls(
            id=request.run_id,
            number=number,
            spec=request.spec,
            submitted_terms=request.terms,
            submitted_at=request.submitted_at,
            task_count=rows,
            image=request.image,
            output=request.output,
            expects_result=request.expects_result,
            proven_owner=request.proven_owner,
            tasks=tasks,
        )
        run.needs, run.host_ports = run.terms.needs, run.terms.host_ports
        return run

    def begin_waiting(self, asked_at: float) -> None:
        """Apply the waits in the spec to a run that was just submitted or retried. asked_at: when it was submitted."""
        self.unmet = [each.run_id for each in self.terms.depends_on]
        self.not_before, self.held_until = self.terms.starts_at(asked_at), 0.0

    def note_instance(self, name: str, known: Mapping[str, Instance]) -> None:
        """Note that an attempt was started on this instance. If the record is full, ended instances are dropped: far
        fewer can be alive at a time. known: the instances of the state."""
        if name not in self.instances:
            if len(self.instances) >= MOST_NAMED:
                self.instances = {each for each in self.instances if (there := known.get(each)) and there.alive}
            self.instances.add(name)
            self.used_instances += 1

    def spec_of(self, index: int) -> Mapping[str, Any]:
        """The spec as the task receives it: with the job of its version of the program."""
        version = int(self.tasks["program"][index])
        return {**self.spec, "job": self.programs[version].job} if version else self.spec

    def note_program(self, version: int, attempts: int = 0, seconds: float = 0.0, results: int = 0) -> None:
        """Count the outcome of attempts with this version of the program."""
        if version < len(self.programs):
            was = self.programs[version]
            self.programs[version] = was._replace(
                attempts=was.attempts + attempts, seconds=was.seconds + seconds, results=was.results + results
            )

    def change_spec(self, spec: Mapping[str, Any], terms: RunTerms) -> None:
        """Adopt a spec of the same content (`ServiceTerms.content`): a later revision of a service adopts its tasks."""
        self.spec, self.submitted_terms = spec, terms
        self.terms = changed(terms, self.changes)

    def facts(self) -> RunFacts:
        """The facts now."""
        return RunFacts(
            status=self.status,
            task_definition=self.task_definition,
            waiting=self.waiting,
            halted=self.halted,
            cancelled=self.cancelled,
            is_capped=bool(self.capped_at),
            steering=self.steering,
            retries=self.retries,
            task_count=self.task_count,
            changes=tuple(self.changes.items()),
        )

    def change(self, changes: Changes, reason: str = "") -> None:
        """Apply the changes, as though the run's spec had them."""
        self.changes |= changes
        self.change_reason = reason
        self.terms = changed(self.submitted_terms, self.changes)

    @property
    def name(self) -> str:
        return self.terms.name

    @property
    def group(self) -> str:
        """The ECS task group: spread, distinctInstance and limits count within it. Runs may share one."""
        return self.terms.group or (SERVICE_GROUP + self.name if self.terms.service else f"run:{self.id}")

    @property
    def gang_size(self) -> int:
        """How many tasks start and restart together: tasks n x size to n x size + size - 1. 1 = it has no gangs."""
        return 1 if self.terms.gang is None else self.terms.gang.size

    @property
    def piece_count(self) -> int:
        """The pieces of its array: each has a gang or a task, and one result."""
        return self.task_count // self.gang_size

    @property
    def architecture(self) -> str:
        """The architecture that its image is built for: x86_64, arm64, or any."""
        return self.definition_architecture or self.terms.architecture

    @property
    def done(self) -> bool:
        return self.status in TERMINAL_RUN

    @property
    def ready(self) -> bool:
        """Whether its tasks may be placed."""
        return bool(self.task_definition) and not (self.done or self.halted or self.held)

    @property
    def waits(self) -> bool:
        """Whether it, or any of its tasks, waits for a time or for another run."""
        return bool(self.unmet or self.not_before)

    @property
    def held(self) -> bool:
        """Whether none of its tasks may start yet: before its time, or before the end of a run that it depends on."""
        if not self.waits:
            return False
        return bool(self.not_before) or any(
            each.run_id in self.unmet for each in self.terms.depends_on if not each.one_to_one
        )

    @property
    def halted(self) -> bool:
        """Whether no more tasks are started: it was cancelled or given up."""
        return self.tasks.halted

    @property
    def is_daemon(self) -> bool:
        """Whether its tasks run on every matching instance, and never count as the instance's work."""
        return self.terms.daemon is not None

    @property
    def is_steered(self) -> bool:
        """Whether it may go from spot to on-demand and back, or may be late."""
        return self.terms.purchase.mixes or self.deadline_at is not None

    @property
    def may_wait(self) -> bool:
        """Whether the run may be waiting: not once it is halted, and for a service only with wanted tasks that have no
        place. A daemon may wait for instances that are large enough."""
        if self.terms.service is not None and not self.is_daemon and not int(self.tasks.counts()[TaskStatus.PENDING]):
            return False
        return not self.halted

    @property
    def complete(self) -> bool:
        """Whether no task is pending or live: only the results remain to be closed. A service ends on request only."""
        if self.revives or (self.terms.service and not self.halted):
            return False
        return not self.unfinished

    @property
    def unfinished(self) -> int:
        """Tasks that are pending or live."""
        return self.task_count - int(self.tasks.counts()[list(TERMINAL)].sum())

    @property
    def manifest_to(self) -> ManifestBound:
        """The progress of writing the parts of the manifest."""
        return self.manifest_bounds[-1] if self.manifest_bounds else ManifestBound()

    @property
    def history_to(self) -> str:
        """The last item of its history that is in a part; "" = none."""
        return self.history[-1].to if self.history else ""

    @property
    def unfolded_rows(self) -> int:
        """Estimated rows of its history that are in no part yet: a part folds amended rows into one."""
        return self.history_rows - sum(part.rows for part in self.history)

    @property
    def final_status(self) -> RunStatus:
        """The status with which a complete run ends."""
        succeeded = int(self.tasks.counts()[TaskStatus.SUCCEEDED])
        if succeeded == self.task_count:
            return RunStatus.SUCCEEDED
        if self.cancelled:
            return RunStatus.CANCELLED
        return RunStatus.PARTIAL if succeeded else RunStatus.FAILED

    def mean_seconds(self, default: float | None = None) -> float | None:
        """Mean duration of a successful attempt; `default` while none has ended."""
        return self.ended_seconds / self.ended if self.ended else default

    def expected_seconds(self, guess_s: float) -> float:
        """Expected duration of an attempt: the mean of earlier ones, otherwise the spec's. If neither is known: the
        longest allowed if the run is to finish at any cost, otherwise `guess_s`. At most what is allowed, and not 0."""
        longest_s = self.terms.attempt_timeout_s or math.inf
        said = self.mean_seconds(self.terms.expected_seconds)
        if said is None:
            said = guess_s if self.terms.drains_at_cap or math.isinf(longest_s) else longest_s
        return max(SHORTEST_S, min(float(said), longest_s))

    @property
    def deadline_at(self) -> float | None:
        """Epoch seconds."""
        deadline = self.terms.deadline
        return None if deadline is None else deadline.for_run(self.opened_at)

    @property
    def opened_at(self) -> float:
        """When it was submitted, or reopened."""
        return self.reopened_at or self.submitted_at

    def is_over_time(self, now: float) -> bool:
        """Whether the run has exceeded its longest duration. Time before its tasks could start does not count."""
        limit_s = self.terms.duration_limit_s
        return bool(limit_s) and not self.held and now - max(self.opened_at, self.held_until) >= limit_s

    def note_duration(self, seconds: float) -> None:
        """Record the duration of a successful attempt."""
        self.shortest_s = min(self.shortest_s, seconds) if self.ended else seconds
        self.longest_s = max(self.longest_s, seconds)
        self.ended += 1
        self.ended_seconds += seconds

    def reason_row(self, reason: str) -> int:
        """The row of `reasons` that holds the text. The table is bounded: once full, further texts share one row."""
        text = reason[:300]
        if text not in self.reasons and len(self.reasons) >= 200:
            text = "(other reasons)"
        if text not in self.reasons:
            self.reasons.append(text)
        return self.reasons.index(text)


def sort_key(run_id: str) -> str:
    """Orders runs by submission: the time part of the id first."""
    _, day, clock, tail = run_id.rsplit("-", 3)
    return f"{day}{clock}{tail}#{run_id}"
