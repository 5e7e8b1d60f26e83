"""What is an environment?

It holds the revisions of a service or daemon, which of them should run, and the progress of its deployments. A revision
is a spec that never changes. While it should have tasks, it has its own run, so its needs, definition, ledger and log
are those of a run (docs/maintainers/decisions/0036-services.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from argosy.model.services.targets import TargetEntry, TargetPlace

MOST_DEPLOYMENTS = 20  # that are remembered
MOST_REVISIONS = 50  # in the record; all are stored
LEAST_FAILURES, MOST_FAILURES = 3, 200  # of ECS's own breaker
CALM_S = 900.0  # failures further apart than the longest pause and a start do not add up


class DeploymentStatus(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    WAITING = "WAITING"  # waiting for instances: the progress clock is stopped
    STUCK = "STUCK"  # no progress for `progressSeconds`; it continues to try
    COMPLETED = "COMPLETED"  # every desired task is a healthy one of this revision, and no other is alive
    FAILED = "FAILED"  # the breaker has opened: its tasks keep failing
    SUPERSEDED = "SUPERSEDED"  # by a later deployment
    STOPPED = "STOPPED"  # by the user, or with the environment


ENDED = frozenset(
    {DeploymentStatus.COMPLETED, DeploymentStatus.FAILED, DeploymentStatus.SUPERSEDED, DeploymentStatus.STOPPED}
)


@dataclass(slots=True)
class Revision:
    """run_id: the run that has its tasks, or had them last; "" = it was never deployed."""

    number: int
    created_at: float  # epoch seconds
    run_id: str = ""


@dataclass(slots=True)
class ServiceDeployment:
    """One change to a revision. Times are epoch seconds, 0 = not yet."""

    number: int
    revision: int
    started_at: float
    token: str = ""  # of the request
    status: DeploymentStatus = DeploymentStatus.IN_PROGRESS
    reason: str = ""
    progress_at: float = 0.0  # when the last task became healthy or was released
    healthy: int = 0  # tasks of the revision, at that time
    outdated: int = 0  # other tasks alive at that time
    failures: int = 0  # charged to the user, since the highest number of healthy tasks of it last rose
    most_healthy: int = 0  # highest number of healthy tasks of the revision
    is_rollback: bool = False  # started by the controller because another one failed
    ended_at: float = 0.0

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


class EnvironmentFacts(NamedTuple):
    """The facts of an environment in the journal, as last committed."""

    latest: int
    desired: int
    frozen_reason: str
    deleting: bool
    is_failing: bool
    deployments: dict[int, DeploymentStatus]  # by number


@dataclass(slots=True)
class Environment:
    """A service or a daemon by name. Its tasks are those of the runs of its revisions."""

    name: str
    created_at: float
    desired: int
    spec_desired: int  # from the spec that was deployed last: it applies again only when it has changed
    revisions: list[Revision] = field(default_factory=list)  # by number, the latest last
    deployments: list[ServiceDeployment] = field(default_factory=list)  # the latest last
    completed: int = 0  # the revision of the last completed deployment; 0 = none
    frozen_reason: str = ""  # "" = it is not frozen
    frozen_by_user: bool = False  # only a thaw ends it; a failed or stopped revision may be deployed again
    deleting: bool = False
    left: bool = False  # deleted while its tasks continue: frozen until it is created again or deleted with them
    failures: int = 0  # charged to the user, outside of a deployment, since its tasks were last well for a while
    failed_at: float = 0.0  # epoch seconds of the last failure charged to the user, in a deployment or not; 0 = none
    failure: str = ""  # its reason
    past_usd: float = 0.0  # what its closed runs have cost
    replaced: list[str] = field(default_factory=list)  # runs that belong to no revision any more, until they close
    is_daemon: bool = False  # one task on each instance that matches; `desired` follows their number
    targets: dict[TargetPlace, TargetEntry] = field(default_factory=dict)  # what is, or may be, in target groups
    targets_reason: str = ""  # why AWS does not register or deregister them
    committed: EnvironmentFacts | None = field(default=None, compare=False)  # None = nothing was committed; not stored

    @classmethod
    def new(cls, name: str, first: Revision, desired: int, *, is_daemon: bool = False) -> Environment:
        """A new environment with its first revision."""
        return cls(name, first.created_at, desired, desired, [first], is_daemon=is_daemon)

    def facts(self) -> EnvironmentFacts:
        """The facts now. The number of a daemon's instances is left out: instances have separate lines."""
        desired = 0 if self.is_daemon else self.desired
        deployments = {each.number: each.status for each in self.deployments}
        now = (self.latest.number, desired, self.frozen_reason, self.deleting, self.is_failing)
        return EnvironmentFacts(*now, deployments)

    @property
    def is_failing(self) -> bool:
        """Whether its tasks fail repeatedly without a deployment under way."""
        return self.failures >= most_failures(self.desired)

    @property
    def is_in_trouble(self) -> bool:
        """Whether it needs a person: it fails, or its deployment has failed or is stuck."""
        latest = self.deployment.status if self.deployment else None
        is_wanted = not (self.left or self.deleting)
        return is_wanted and (self.is_failing or latest in (DeploymentStatus.FAILED, DeploymentStatus.STUCK))

    @property
    def deployment(self) -> ServiceDeployment | None:
        """The latest revision."""
        return self.deployments[-1] if self.deployments else None

    @property
    def target(self) -> Revision | None:
        """The revision that should run; None before the first deployment."""
        return self.revision(self.deployment.revision) if self.deployment else None

    @property
    def latest(self) -> Revision:
        return self.revisions[-1]

    def revision(self, number: int) -> Revision | None:
        return next((each for each in self.revisions if each.number == number), None)

    def runs(self) -> list[str]:
        """Ids of the runs that its revisions have, or had."""
        return [each.run_id for each in self.revisions if each.run_id]

    def all_runs(self) -> list[str]:
        """These ids, and those of runs that belong to no revision any more and have not closed yet."""
        return [*self.runs(), *self.replaced]

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        targets = {place.to_text(): asdict(target) for place, target in self.targets.items()}
        record = asdict(replace(self, targets={}))
        return {name: value for name, value in record.items() if name != "committed"} | {"targets": targets}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Environment:
        """Unknown members are ignored. Raises KeyError, TypeError or ValueError for damaged data."""
        values = {name: record[name] for name in cls.__slots__ if name in record}
        values["revisions"] = [_known(Revision, each) for each in record["revisions"]]
        values["deployments"] = [
            _known(ServiceDeployment, {**each, "status": DeploymentStatus(each["status"])})
            for each in record["deployments"]
        ]
        values["targets"] = {
            TargetPlace.from_text(text): _known(TargetEntry, each) for text, each in record.get("targets", {}).items()
        }
        values.pop("committed", None)
        found = cls(**values)
        found.committed = found.facts()
        return found


def most_failures(desired: int) -> int:
    """The number of failures in a row at which a revision counts as broken: ECS's own formula."""
    return min(MOST_FAILURES, max(LEAST_FAILURES, -(-desired // 2)))


def _known(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(**{name: values[name] for name in kind.__slots__ if name in values})
