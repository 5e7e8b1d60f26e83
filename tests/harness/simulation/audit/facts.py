"""The facts that every checker of a trial shares, the trail of events, and a checker's interface."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Set
from dataclasses import dataclass, field
from typing import Any

from argosy.engine.report import TickReport
from argosy.model.policy import Policy
from argosy.spec.terms import changed_form
from tests.harness.simulation.audit.stored_state import StoredAttempt, StoredState
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.members import Arrival
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.s3 import StoredObject
from tests.harness.simulation.world.saving import SavingAttempt
from tests.harness.simulation.world.workload import Programs, SimulatedJob
from tests.harness.simulation.world.world import World

JSON = dict[str, Any]


KEPT = 50_000  # entries
LINE_WIDTH = 400  # characters of a line that are shown
_SHOWN = (
    "instance-id",
    "state",
    "taskArn",
    "lastStatus",
    "desiredStatus",
    "stopCode",
    "stoppedReason",
    "ec2InstanceId",
    "status",
    "agentConnected",
    "version",
    "containerInstanceArn",
    "sub-type",
)


class AuditTrail:
    """The latest events and calls. It keeps references: text is produced only on request."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, str, Any]] = deque(maxlen=KEPT)

    def add(self, at: float, what: str, about: Any) -> None:
        self._kept.append((at, what, about))

    def about(self, names: Collection[str], start: float) -> list[str]:
        """The lines that mention one of the names (an ARN, an instance id, a run's index); times count from `start`."""
        return list(self._lines(frozenset(names), start))

    def _lines(self, names: frozenset[str], start: float) -> Iterator[str]:
        for at, what, about in self._kept:
            text = about if isinstance(about, str) else json.dumps(about, default=str)
            if any(name in text for name in names):
                yield f"{at - start:9.2f} s  {what}: {text[:LINE_WIDTH]}"


def short(message: JSON) -> JSON:
    """The members of an event that describe what happened."""
    detail = message["detail"]
    return {name: detail[name] for name in _SHOWN if name in detail}


Operation = tuple[str, str]
"""Service and operation, e.g. ("ecs", "run_task")."""
EffectCheck = Callable[[JSON, JSON], None]
"""Reads the request and the reply of a call that took effect."""


@dataclass(frozen=True, slots=True)
class Violation:
    """names: terms to search the trail for."""

    invariant: str
    sentence: str
    at: float
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """One stored transaction. The stored state is already the one after it."""

    version_before: int
    tables_before: Mapping[str, list[tuple[int, ...]]]
    intents: list[StoredAttempt]
    """The new intents."""
    retried: frozenset[str]
    """Ids of runs that a user has retried, while their tasks become pending again."""


@dataclass(frozen=True, slots=True)
class TrialResults:
    """The results of a trial."""

    objects: Mapping[tuple[str, str], StoredObject]
    bill: Bill
    unattended_s: float
    """How long no controller worked at all."""
    controllers: int = 1
    """How many work until the end. Several have no lease, so that each may lose what the others have been answered."""


@dataclass(slots=True)
class TrialFacts:
    """The world's own truth, the stored state, and the findings."""

    regions: Regions
    jobs: MutableMapping[str, SimulatedJob]
    policy: Policy
    one_controller: bool = False
    """Then its calls are in the order of its commits."""
    nothing_goes_wrong: bool = False
    """Then the controller receives every event soon."""
    stands_still_s: float = 0.0
    """For how long a controller may stand still in the middle of a tick before it continues."""
    clocks_differ_s: float = 0.0
    """Largest difference between the clocks of two controllers, and largest jump of one."""
    offered: dict[str, SimulatedJob] = field(default_factory=dict)
    """By run id, the jobs of a service's deployments: they join `jobs` once there is such a run."""
    stored: StoredState = field(default_factory=StoredState)
    trail: AuditTrail = field(default_factory=AuditTrail)
    violations: list[Violation] = field(default_factory=list)
    arns: defaultdict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    """The ECS tasks that were started, by run and task index."""
    written: Set[tuple[str, int, int]] = frozenset()
    """(run id, index, attempt) of the results that programs wrote. Some come from instances that were cut off."""
    saving: list[SavingAttempt] = field(default_factory=list)
    """The attempts whose programs save checkpoints, in the order in which they began."""
    reset: Set[str] = frozenset()
    """Ids of the tasks that ended because a GPU was reset that they shared with others."""
    is_tearing_down: bool = False
    """Whether the kill switch is set: then no instance is kept, whatever size was requested before."""
    torn_down: bool = False
    """Then nothing may start any more."""
    torn_down_at: float = 0.0
    """Since when; 0 = it is not."""
    unattended_until: float = 0.0
    """Until then no controller worked at all."""
    faults_ended_at: float = 0.0
    """From when nothing fails any more; 0 = faults still strike."""
    is_quiet: Callable[[], bool] = lambda: False
    """Whether the controller has left and is to come back with the next minute."""
    closed: dict[str, float] = field(default_factory=dict)
    """Region of a cell that is closed -> since when."""

    thaws_asked: Counter[str] = field(default_factory=Counter)
    """By name of an environment, how often a user has asked for its thaw."""

    fires_answered: dict[str, str] = field(default_factory=dict)
    """Times of the schedule that were answered (ISO 8601), and the verdict that the caller received."""

    damaged: set[str] = field(default_factory=set)
    """Ids of runs of which a stored document was torn."""
    came: Mapping[str, Arrival] = field(default_factory=dict)
    """By run id, how it came in."""

    @property
    def spare_places(self) -> int:
        """That the settings keep while runs are open. An instance holds one or more."""
        return sum(each.places for each in self.policy.headroom)

    ledger_is_lost: bool = False
    """Whether one of them was a record, which holds the cost of its run."""

    @property
    def world(self) -> World:
        """Home's."""
        return self.regions.home

    def follow(self, programs: Programs, reset: Set[str]) -> None:
        """Take over what programs note, and the ids of tasks whose GPU was reset."""
        self.written, self.saving, self.reset = programs.written, programs.saving, reset

    def has_ended(self, each: StoredAttempt) -> bool:
        """Whether its task has ended in the world. It is stored as running until its end is charged."""
        task = self.regions.task_by_id(each.task_id)
        return task is not None and task.last_status == "STOPPED"

    def violated(self, invariant: str, sentence: str, *names: str) -> None:
        """Violations of a damaged run do not count."""
        if any(run_id in sentence or run_id in names for run_id in self.damaged):
            return
        self.violations.append(Violation(invariant, sentence, self.world.now, names))

    def take_jobs(self) -> None:
        """The jobs that were submitted and are stored as runs by now."""
        for run_id in self.offered.keys() & self.stored.records.keys():
            self.jobs[run_id] = self.offered.pop(run_id)

    def spec_of(self, run_id: str) -> Mapping[str, Any]:
        """The current terms of a run: the submitted ones, with the changes that its users have made since."""
        record = self.stored.records.get(run_id)
        return changed_form(self.jobs[run_id].spec, record.changes if record else {})

    def names(self, run_id: str, index: int) -> tuple[str, ...]:
        """Terms to search the trail for the story of a task."""
        return tuple(self.arns[run_id, index]) or (f'"ARGOSY_TASK_INDEX", "value": "{index}"',)


class Checker:
    """One family of invariants. A checker receives each kind of fact and reports to `facts.violated`."""

    def __init__(self, facts: TrialFacts) -> None:
        self.facts = facts

    def effects(self) -> Mapping[Operation, EffectCheck]:
        """The operations whose effects it checks, before the controller sees them."""
        return {}

    def heard(self, message: JSON) -> None:
        """An event of the world, before it can be lost on its way."""

    def committed(self, commit: Commit) -> None:
        """A transaction was stored: a controller's, which makes a new version, or one of the api."""

    def ticked(self, report: TickReport, version: int | None) -> None:
        """A controller has completed a tick. version: of the state that its report describes; None = it has dropped
        that since.
        """

    def time_passed(self) -> None:
        """Between two steps of the trial."""

    def at_rest(self, rest: TrialResults) -> None:
        """The trial has ended."""
