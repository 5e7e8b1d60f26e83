"""The stored record of a run, besides its spec and its tasks. Users see the same record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from argosy.model.costs import Costs
from argosy.model.failure_groups import FailureGroup
from argosy.model.gangs import Gang
from argosy.model.history_parts import HistoryPart
from argosy.model.inbox import SubmitRequest
from argosy.model.policy import Policy
from argosy.model.program_versions import ProgramVersion, submitted_version
from argosy.model.purchases import INITIAL_CHOICE, PurchaseChoice, PurchaseMode
from argosy.model.resources import NOTHING, Resources, as_stored
from argosy.model.run_terms import Changes, Dependency, Port, RunTerms, changed
from argosy.model.runs import (
    CANCELLING,
    TERMINAL_RUN,
    Failure,
    ManifestBound,
    Run,
    RunStatus,
    TaskStretch,
)
from argosy.model.services.ports import TaskPort
from argosy.model.start_ups import NO_START, StartUps
from argosy.model.tasks import TaskStatus, TaskTable

NO_COUNTS = (0,) * len(TaskStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run. Times are epoch seconds, 0 = not yet; money is USD. Fields without a comment have the same meaning as in
    `Run` and `RunTerms`. Fields with a default may be missing in a stored record."""

    id: str
    name: str
    status: RunStatus
    submitted_at: float
    task_count: int
    output: str
    number: int = 0  # 0 = the controller has not taken it in yet, or cannot read it
    image: str | None = None  # None = only the id is known: the run cannot be restored
    expects_result: bool = False
    status_reason: str = ""
    task_definition: str = ""
    takes_exec: bool = False
    container: str = "main"
    needs: Resources = NOTHING
    host_ports: tuple[Port, ...] = ()
    definition_architecture: str = ""
    prepare_after: float = 0.0
    cancelled: bool = False
    halted: bool = False
    started_at: float = 0.0
    stopped_at: float = 0.0
    counts: tuple[int, ...] = NO_COUNTS  # tasks by TaskStatus
    attempts: int = 0
    interruptions: int = 0
    preemptions: int = 0
    cost_usd: float = 0.0
    on_demand_cost_usd: float = 0.0
    costs: Mapping[str, Costs] = field(default_factory=dict)
    capped_at: float = 0.0
    budget_usd: float | None = None
    max_hourly_usd: float | None = None
    drains_at_cap: bool = True
    attempt_timeout_s: float = 0.0
    start_ups: StartUps = NO_START
    ended: int = 0
    ended_seconds: float = 0.0
    shortest_s: float = 0.0
    longest_s: float = 0.0
    expected_s: float = 0.0  # expected duration of an attempt; 0 = not known
    shard_size: int | None = None  # the size of task that the seconds above are for
    instances: tuple[str, ...] = ()  # sorted
    used_instances: int = 0
    reasons: tuple[str, ...] = ("",)
    failures: tuple[Failure, ...] = ()
    failure_groups: tuple[FailureGroup, ...] = ()
    history: tuple[HistoryPart, ...] = ()
    history_rows: int = 0
    unfolded_since: float = 0.0
    waiting: str = ""
    unaffordable_since: float = 0.0
    purchase: PurchaseMode = PurchaseMode.SPOT
    deadline_at: float | None = None
    steering: PurchaseChoice = INITIAL_CHOICE
    reopened_at: float = 0.0
    retries: int = 0
    changes: Changes = field(default_factory=dict)
    change_reason: str = ""
    retried: tuple[int, ...] = ()
    chosen: tuple[TaskStretch, ...] = ()
    revives: tuple[int, ...] = ()
    failed_before: int = 0
    revived_to: int = 0
    manifest_bounds: tuple[ManifestBound, ...] = ()
    manifest_after: str = ""
    healthy_s: float | None = None  # of a service: a task counts as healthy after this time; None = it is not a service
    is_daemon: bool = False  # whether its tasks run on every instance that matches
    has_health: bool = False  # of a service: whether its health command decides that
    ports: tuple[TaskPort, ...] = ()  # of a service: ports at which its tasks are reached
    suspended_at: float = 0.0  # when the controller first failed at it (`waiting` says why); 0 = it did not
    depends_on: tuple[Dependency, ...] = ()
    unmet: tuple[str, ...] = ()
    not_before: float = 0.0
    held_until: float = 0.0
    proven_owner: str = ""
    programs: tuple[ProgramVersion, ...] = ()
    gang_size: int = 1
    gangs: Mapping[int, Gang] = field(default_factory=dict)
    owner: str = ""  # the owner that its spec names
    queue: str = ""  # "" = not known: an earlier version stored it
    priority: int = 0
    max_instances: int | None = None
    max_concurrent: int | None = None
    gpu_part: str = ""

    # Added by a reader (api), and never stored.
    retry_at: float = 0.0  # when a pending retry was requested; 0 = none
    reserved_usd: float = 0.0  # expected cost of live attempts and booting instances
    usd_per_hour: float = 0.0  # what the run pays for now

    @property
    def has_ended(self) -> bool:
        return self.status in TERMINAL_RUN

    @property
    def shown_status(self) -> str:
        """As shown to users: from the request to cancel it to its end, a run is CANCELLING."""
        return CANCELLING if self.cancelled and not self.has_ended else self.status

    @property
    def instance_count(self) -> int:
        """How many instances it has ever used, named or not."""
        return max(self.used_instances, len(self.instances))

    def with_changes(self, submitted: RunTerms, changes: Changes, reason: str) -> RunRecord:
        """The record once the controller has taken the changes in."""
        now = {**self.changes, **changes}
        terms = changed(submitted, now)
        at = None if terms.deadline is None else terms.deadline.for_run(self.reopened_at or self.submitted_at)
        return replace(self, changes=now, change_reason=reason, deadline_at=at, **_terms_of(terms))

    @classmethod
    def of(cls, run: Run) -> RunRecord:
        """The record of the run."""
        terms = run.terms
        values = {name: getattr(run, name) for name in _SHARED}
        for name in _LISTS:
            values[name] = tuple(values[name])
        values |= {
            "instances": tuple(sorted(run.instances)),
            "costs": dict(run.costs),
            "changes": dict(run.changes),
            "gangs": dict(run.gangs),
            "counts": tuple(run.tasks.counts().tolist()),
            "expected_s": run.expected_seconds(Policy().attempt_s),
        }
        return cls(name=run.name, halted=run.halted, deadline_at=run.deadline_at, **values, **_terms_of(terms))

    @classmethod
    def of_request(cls, request: SubmitRequest) -> RunRecord:
        """The record of a run that the controller has not taken in yet."""
        terms = request.terms
        return cls(
            id=request.run_id,
            name=terms.name,
            status=RunStatus.SUBMITTED,
            submitted_at=request.submitted_at,
            task_count=request.task_count,
            output=request.output,
            image=request.image,
            expects_result=request.expects_result,
            proven_owner=request.proven_owner,
            programs=tuple(submitted_version(request.spec, request.submitted_at)),
            needs=terms.needs,
            counts=(request.task_count, *NO_COUNTS[1:]),
            deadline_at=None if terms.deadline is None else terms.deadline.for_run(request.submitted_at),
            unmet=tuple(each.run_id for each in terms.depends_on),
            not_before=terms.starts_at(request.submitted_at),
            **_terms_of(terms),
        )

    @classmethod
    def of_unreadable(cls, run_id: str) -> RunRecord:
        """The record of a run whose id alone can be read."""
        name = run_id.rsplit("-", 3)[0]
        return cls(
            id=run_id, name=name, status=RunStatus.FAILED, submitted_at=0.0, task_count=0, output="", halted=True
        )

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> RunRecord:
        """Unknown members are ignored. Raises KeyError, TypeError or ValueError for damaged data."""
        values = {name: record[name] for name in _STORED if name in record}
        if record.get(_NEW_BUDGET):
            values.setdefault("changes", {"budgetUsd": record[_NEW_BUDGET]})
        return cls(**{name: _READERS[name](value) if name in _READERS else value for name, value in values.items()})

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            **as_stored((name, getattr(self, name)) for name in _STORED),
            "changes": dict(self.changes),
            "gangs": [[number, *gang] for number, gang in self.gangs.items()],
            "costs": {market: costs.to_list() for market, costs in self.costs.items()},
            "steering": asdict(self.steering),
            "failures": [asdict(failure) for failure in self.failures],
        }

    def to_run(self, spec: Mapping[str, Any], terms: RunTerms, tasks: TaskTable) -> Run:
        """The run as it was stored. Raises ValueError when only its id is known."""
        if self.image is None:
            raise ValueError("its record names nothing but the run")
        values = {name: getattr(self, name) for name in _SHARED}
        for name in _LISTS:
            values[name] = list(values[name])
        values |= {"instances": set(self.instances), "costs": dict(self.costs), "changes": dict(self.changes)}
        values["gangs"] = dict(self.gangs)
        run = Run(spec=spec, submitted_terms=terms, tasks=tasks, **values)
        run.committed = run.facts()._replace(was_suspended=bool(self.suspended_at))
        return run


def _terms_of(terms: RunTerms) -> dict[str, Any]:
    names = (
        "budget_usd",
        "max_hourly_usd",
        "drains_at_cap",
        "attempt_timeout_s",
        "purchase",
        "shard_size",
        "depends_on",
        "queue",
        "owner",
        "priority",
        "max_instances",
        "max_concurrent",
    )
    healthy_s = terms.service.healthy_s if terms.service else None
    own: dict[str, Any] = {"healthy_s": healthy_s, "is_daemon": terms.daemon is not None, "gpu_part": terms.gpu_part}
    own["gang_size"] = terms.gang.size if terms.gang else 1
    own |= {"has_health": terms.health is not None, "ports": terms.ports}
    return {**own, **{name: getattr(terms, name) for name in names}}


def _costs(rows: Mapping[str, list[float]]) -> dict[str, Costs]:
    return {market: Costs(*row) for market, row in rows.items()}


def _failures(rows: list[dict[str, Any]]) -> tuple[Failure, ...]:
    known = [field.name for field in fields(Failure)]
    return tuple(Failure(**{name: row[name] for name in known if name in row}) for row in rows)


_NEW_BUDGET = "new_budget_usd"  # the one change that earlier versions allowed
_LISTS = (
    "reasons",
    "failures",
    "failure_groups",
    "history",
    "retried",
    "chosen",
    "revives",
    "manifest_bounds",
    "unmet",
    "programs",
)  # of a Run; tuples in its record
_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("counts", "instances", "reasons", "retried", "revives", "unmet"), tuple),
    "depends_on": lambda rows: tuple(Dependency(*row) for row in rows),
    "status": RunStatus,
    "purchase": PurchaseMode,
    "needs": lambda amounts: Resources(*amounts),
    "ports": lambda ports: tuple(TaskPort(*each) for each in ports),
    "host_ports": lambda ports: tuple((number, protocol) for number, protocol in ports),
    "chosen": lambda rows: tuple(TaskStretch(*row) for row in rows),
    "manifest_bounds": lambda rows: tuple(ManifestBound(*row) for row in rows),
    "costs": _costs,
    "gangs": lambda rows: {number: Gang.from_json(row) for number, *row in rows},
    "steering": PurchaseChoice.from_json,
    "failures": _failures,
    "start_ups": lambda row: StartUps(*row[: len(StartUps._fields)]),
    "history": lambda rows: tuple(HistoryPart(*row) for row in rows),
    "programs": lambda rows: tuple(ProgramVersion(*row) for row in rows),
    "failure_groups": lambda rows: tuple(FailureGroup(*row) for row in rows),
}
_STORED = tuple(
    field.name for field in fields(RunRecord) if field.name not in ("retry_at", "reserved_usd", "usd_per_hour")
)
_SHARED = tuple(field.name for field in fields(Run) if field.init and field.name in _STORED)
