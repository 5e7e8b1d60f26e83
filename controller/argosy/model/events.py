"""The facts that the lifecycle applies. Each of them may arrive late, twice or never."""

from __future__ import annotations

from dataclasses import dataclass, field

from argosy.model import inbox
from argosy.model.attempts import AttemptKey
from argosy.model.failure_texts import FailuresRead
from argosy.model.history_parts import HistoryPart
from argosy.model.host_care import ConsoleRead, DrainAsked, HostHealthChanged
from argosy.model.instances import GpuDevice, Purchase
from argosy.model.pools import OrderAnswered, ReservationSeen, SpotRecord
from argosy.model.run_terms import Port
from argosy.model.runs import ManifestBound, Run, RunStatus
from argosy.model.services.ports import PortBinding
from argosy.model.services.targets import TargetFact
from argosy.model.setbacks import Subject


@dataclass(frozen=True, slots=True)
class RunSubmitted:
    request: inbox.SubmitRequest


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """stored: the run in the store, unless it counts as ended or is open. Each retry of the request reads it again."""

    request: inbox.CancelRequest
    stored: Run | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TasksCancelled:
    request: inbox.CancelTasksRequest


@dataclass(frozen=True, slots=True)
class RunRetried:
    """stored: the run in the store, unless it is open; as in RunCancelled."""

    request: inbox.RetryRequest
    stored: Run | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RunUpdated:
    request: inbox.UpdateRequest


@dataclass(frozen=True, slots=True)
class EnvironmentAsked:
    """A user's request to change an environment."""

    request: inbox.EnvironmentRequest


@dataclass(frozen=True, slots=True)
class ClusterScaled:
    """A user sets the least number of instances to keep."""

    request: inbox.ScaleRequest


@dataclass(frozen=True, slots=True)
class SharingAsked:
    """A user changes how the cluster is shared."""

    request: inbox.SharingRequest


@dataclass(frozen=True, slots=True)
class RunResumed:
    """A suspended run is to be tried again. stored: the run in the store; as in RunCancelled."""

    run_id: str
    stored: Run = field(compare=False)


@dataclass(frozen=True, slots=True)
class RunNotResumed:
    """A suspended run cannot be tried again. reason: why it is unreadable; "" = a person has closed its record."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class DependencyEnded:
    """A run that others depend on, and that is not open, has ended. statuses: the `TaskStatus` of each of its tasks, in
    index order, if runs depend on it task by task: bytes, compressed by zlib, as base64."""

    run_id: str
    status: RunStatus
    counts: tuple[int, ...]  # of its tasks, by TaskStatus
    statuses: str = ""


@dataclass(frozen=True, slots=True)
class ActionFailed:
    """The controller's own code failed in an action for this run; "" = for no run. trace: for the log."""

    run_id: str
    reason: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class RunPrepared:
    """The task definition is registered and spec.json is in the results folder."""

    run_id: str
    task_definition: str
    container: str
    cpu_units: int
    memory_mib: int
    gpus: int
    host_ports: tuple[Port, ...] = ()
    architecture: str = ""  # of a user's own task definition; "" = as the spec says
    takes_exec: bool = False  # whether its tasks are started so that commands can be run in them


@dataclass(frozen=True, slots=True)
class RunNotPrepared:
    run_id: str
    reason: str
    final: bool  # False: worth another try
    passing: bool = False  # AWS throttled or did not answer: that says nothing about the run
    queued: bool = False  # AWS was not called, because our own rate limit allows no call yet


@dataclass(frozen=True, slots=True)
class DefinitionDeregistered:
    """No cell has an active revision of this family any more; or the family is not ours and is left alone."""

    family: str


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """An ECS task as an event, a reply or a listing showed it. Empty strings and None: unknown."""

    arn: str
    version: int
    last_status: str
    desired_status: str = ""
    started_by: str = ""
    key: AttemptKey | None = None  # from the environment in its overrides
    exit_code: int | None = None
    stop_code: str = ""
    reason: str = ""  # both reasons below in one line, as shown to users
    started_at: float = 0.0
    stopped_at: float = 0.0
    gpu_ids: tuple[str, ...] = ()
    status_reason: str = ""  # stoppedReason alone, which `onStatusReason` matches
    container_reason: str = ""  # the container's own reason alone, which `onReason` matches
    health: str = ""  # of the main container; counts only if it was polled from ECS, since no event reports it
    looked_at: float = 0.0  # when it was polled; 0 = it was not
    ports: tuple[PortBinding, ...] = ()  # of the main container, by TCP
    pull_started_at: float = 0.0  # of its images; 0 = ECS does not say
    pull_stopped_at: float = 0.0


@dataclass(frozen=True, slots=True)
class LaunchAccepted:
    key: AttemptKey
    arn: str
    gpu_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchRefused:
    """ECS refused and started nothing (a definite refusal: checked with the same token)."""

    key: AttemptKey
    reason: str  # RESOURCE:GPU, AGENT, ... or an error code
    detail: str = ""
    final: bool = False  # True: no launch of this run can ever succeed (invalid parameters)
    denied: bool = False  # True: AWS refuses every launch of this run for now, as far as is known (AccessDenied)

    @property
    def whole_run(self) -> bool:
        """Whether the refusal concerns more than this launch."""
        return self.final or self.denied


@dataclass(frozen=True, slots=True)
class LaunchInDoubt:
    """No reply, or an inconclusive one."""

    key: AttemptKey
    reason: str
    is_answer: bool = True  # whether the reason comes from the call, not from a listing


@dataclass(frozen=True, slots=True)
class LaunchMissed:
    """One complete listing did not show an intent that was too old to send again; this is not proof yet."""

    key: AttemptKey


@dataclass(frozen=True, slots=True)
class LaunchDisproved:
    """Two complete listings did not show an intent that was too old to send again."""

    key: AttemptKey


@dataclass(frozen=True, slots=True)
class ContainerInstanceSeen:
    arn: str
    version: int
    instance_id: str
    cell: str
    status: str
    agent_connected: bool
    cpu_units: int = 0
    memory_mib: int = 0
    gpu_ids: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict, hash=False)
    registered_at: float = 0.0
    remaining: tuple[int, int, int] | None = None  # cpu units, MiB and GPUs that ECS has free; None = unknown
    listed: bool = False  # by ECS, as a member of our cluster; not claimed by a message
    impaired: str | None = None  # what ECS finds wrong with it; "" = nothing, None = ECS was not asked
    gpu_devices: tuple[GpuDevice, ...] = ()  # empty: it has none, or ECS does not say


@dataclass(frozen=True, slots=True)
class HostSeen:
    """An EC2 instance of ours as DescribeInstances showed it."""

    instance_id: str
    cell: str
    instance_type: str
    zone: str
    purchase: str  # spot | on-demand | reserved
    state: str  # pending | running | shutting-down | terminated | stopping | stopped
    launched_at: float = 0.0
    fleet_id: str = ""  # the fleet that launched it, by EC2's own tag
    private_ip: str = ""
    public_ip: str = ""
    at: float = 0.0  # when EC2 was queried; 0 = unknown
    impaired: str | None = None  # the checks of EC2 that it fails; "" = none, None = EC2 was not asked
    reservation: str = ""  # the Capacity Reservation from the settings in which it occupies a place


@dataclass(frozen=True, slots=True)
class HostStateChanged:
    instance_id: str
    state: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class InterruptionWarned:
    instance_id: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class RebalanceAdvised:
    instance_id: str
    at: float = 0.0


HostChange = HostStateChanged | HostHealthChanged | ConsoleRead | InterruptionWarned | RebalanceAdvised


@dataclass(frozen=True, slots=True)
class FleetSeen:
    """A fleet of ours, as DescribeFleets showed it, with the pool's spot price when it is known."""

    cell: str
    instance_type: str
    zone: str
    fleet_id: str
    spot_target: int
    spot_usd_per_hour: float | None = None
    priced_at: float = 0.0  # when EC2 said so; 0 = now
    listed_usd_per_hour: float | None = None  # on demand, by AWS's price list; None = not read
    placement_score: int | None = None  # 1 to 10, 0 = EC2 gives none; None: not asked
    record: SpotRecord | None = None  # None: EC2 gave none
    is_modifying: bool = False  # then the targets may be the earlier ones
    is_behind: bool = False  # whether it launches from an outdated version of its launch template
    version: str = ""  # newest version of its launch template, used by its next instances; "" = not known
    is_offered: bool | None = None  # whether EC2 offers the type in the zone; None = not known
    stays_behind: str | None = None  # EC2's refusal to move it; "" = none is known, None = it has the newest version


@dataclass(frozen=True, slots=True)
class TargetAccepted:
    pool: str
    spot_target: int
    fleet_id: str = ""  # a surplus fleet's; "" = the pool's own


@dataclass(frozen=True, slots=True)
class PoolShort:
    """A pool could not deliver. `messages.fleet_faults` reads it from EC2's messages."""

    pool: str  # its key, or its fleet's id
    reason: str  # in words, with what to do where a person can act
    lasting: bool = False  # another query is useless before a person has acted
    over_quota: bool = False  # a vCPU quota is used up: other pools draw on it too
    only: Purchase | None = None  # the purchase option that it concerns; None = EC2 does not say
    refused: bool = False  # EC2 refused the call itself, so nothing is ordered, and repeating it costs nothing


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """The reason in the history of a short pool's fleet; None = it explains nothing."""

    pool: str  # its key
    shortage: PoolShort | None


@dataclass(frozen=True, slots=True)
class ResultSeen:
    """The look-up of a task's result: `attempt` 0 = there is none."""

    run_id: str
    index: int
    attempt: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ManifestPartWritten:
    """The entries between the bounds are in the results folder. Equal bounds: nothing was found that counts."""

    run_id: str
    retries: int  # number of the run's try
    begin: ManifestBound
    end: ManifestBound
    after: str = ""  # where the next part begins (`Run.manifest_after`)


@dataclass(frozen=True, slots=True)
class HistoryPartWritten:
    """The rows appended after `begin` (a sort key, "" = all) are next to the results, up to the part's end."""

    run_id: str
    begin: str
    part: HistoryPart


@dataclass(frozen=True, slots=True)
class RunClosed:
    """Manifest and marker are written."""

    run_id: str


@dataclass(frozen=True, slots=True)
class NotCarriedOut:
    """An action that was not begun (time was up) or failed without effect: it is decided again."""

    reason: str
    key: AttemptKey | None = None
    about: Subject | None = None  # what to retry after a pause
    passing: bool = False  # AWS throttled or did not answer: that says nothing about the action, and passes
    pause_s: float = 0.0  # the least pause before the next try


@dataclass(frozen=True, slots=True)
class Observed:
    """A full sweep. Absence from an incomplete listing says nothing."""

    at: float
    tasks: tuple[TaskSeen, ...] = ()
    container_instances: tuple[ContainerInstanceSeen, ...] = ()
    hosts: tuple[HostSeen, ...] = ()
    fleets: tuple[FleetSeen, ...] = ()
    tasks_complete: bool = True
    container_instances_complete: bool = True
    hosts_complete: bool = True
    whole_cells: frozenset[str] = frozenset()  # cells whose fleets and hosts were all listed
    cells: frozenset[str] = frozenset()  # all cells that the controller works in; empty = unknown
    reservations: tuple[ReservationSeen, ...] = ()
    reservations_read: frozenset[str] = frozenset()  # cells whose reservations were all listed
    unread: tuple[ActionFailed, ...] = ()  # items at which our own code failed: they are not among the above
    broken_off: tuple[NotCarriedOut, ...] = ()  # listings that AWS refused


@dataclass(frozen=True, slots=True)
class ControllerStarted:
    """A new invocation has loaded the state: intents of the previous one are in doubt."""


Event = (
    RunSubmitted | RunCancelled | TasksCancelled | RunRetried | RunUpdated | FailuresRead | RunResumed
    | RunNotResumed | EnvironmentAsked | DependencyEnded | ClusterScaled | DrainAsked | SharingAsked | ActionFailed
    | RunPrepared | RunNotPrepared | DefinitionDeregistered | TaskSeen | LaunchAccepted | LaunchRefused
    | LaunchInDoubt | LaunchMissed | LaunchDisproved | ContainerInstanceSeen | HostSeen | HostChange | FleetSeen
    | TargetAccepted | OrderAnswered | ReservationSeen | TargetFact | PoolShort | HistoryRead | ResultSeen
    | ManifestPartWritten | HistoryPartWritten | RunClosed | NotCarriedOut | Observed | ControllerStarted
)  # fmt: skip
