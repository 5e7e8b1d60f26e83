"""What can the controller do? Inert data: deciding is separate from doing (DESIGN D1).

Each action is either marked in the state before it is done (a launch is an intent first) or safe to do twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.environments import DeploymentStatus
from argosy.model.pools import OrderNote
from argosy.model.purchases import Steering
from argosy.model.targets import TargetPlace


@dataclass(frozen=True, slots=True)
class PrepareRun:
    """Register the task definition (once per distinct content), write spec.json."""

    run_id: str


@dataclass(frozen=True, slots=True)
class DeregisterDefinition:
    """Deregister, in every cell, the task definition that closed runs had and no open run has."""

    family: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Start one attempt on one instance. Every request parameter follows from this and the run's spec."""

    key: AttemptKey
    wave: int
    started_by: str  # the wave's id, at most 36 characters
    instance_id: str
    cell: str


@dataclass(frozen=True, slots=True)
class ResolveLaunches:
    """Settle the attempts of a wave whose replies were lost: list, adopt, send the same again while young enough."""

    wave: int
    started_by: str
    launches: tuple[Launch, ...]
    intended_at: float
    resend: bool  # False: too old to send again (DESIGN D4)
    is_contended: bool = False  # whether another controller may yet send the same: that we are refused is no proof then


@dataclass(frozen=True, slots=True)
class StopAttempt:
    arn: str
    cell: str
    key: AttemptKey
    cause: StopCause
    reason: str
    for_run: str = ""  # id of the run for which it is PREEMPTED


@dataclass(frozen=True, slots=True)
class YieldInstance:
    """The instance takes no work but that of one run, until so many of its tasks have come or the time is up. No effect
    outside."""

    instance_id: str
    run_id: str
    tasks: int
    until: float  # epoch seconds
    lost_usd: float = 0.0  # what the work is worth that is stopped for it
    is_emptied: bool = False  # whether all that is there goes, not only what the tasks need


@dataclass(frozen=True, slots=True)
class NoteHeld:
    """The runs that may take room from others, and find none. No effect outside."""

    run_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookUpHosts:
    """Ask EC2 whether these instances still run: attempts ended there, and it is open on whose account."""

    cell: str
    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookAtTasks:
    """Ask ECS how these tasks are: no event tells of the health of their containers."""

    cell: str
    arns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegisterTargets:
    """Let a load balancer send requests to these tasks of an environment. One target group an action."""

    environment: str
    places: tuple[TargetPlace, ...]


@dataclass(frozen=True, slots=True)
class DeregisterTargets:
    """Let it send none any more: these tasks are about to be stopped, or have ended."""

    environment: str
    places: tuple[TargetPlace, ...]


@dataclass(frozen=True, slots=True)
class StopOrphan:
    """Stop an ECS task that carries our mark but belongs to no live attempt, or to one that nobody watches over."""

    arn: str
    cell: str
    reason: str = "belongs to no live attempt"


@dataclass(frozen=True, slots=True)
class SetTarget:
    """Absolute targets of one fleet."""

    pool: str
    spot_target: int
    on_demand_target: int
    gives_up: bool = False  # the pool owed us instances for too long: shun it for a while
    fleet_id: str = ""  # a surplus fleet's; "" = the pool's own


@dataclass(frozen=True, slots=True)
class Terminate:
    """Terminate instances of ours, once their pools' targets were lowered."""

    cell: str
    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Ask EC2 for the history of a fleet that ran short once more. Only a reason comes of it."""

    pool: str


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Look up the result of a task whose program ended well."""

    run_id: str
    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class CloseRun:
    """Write the next part of the manifest; after the last one its index, the marker (last of all) and the Run State
    Change event."""

    run_id: str


@dataclass(frozen=True, slots=True)
class FoldHistory:
    """Put the next part of what a run's commits appended beside its results. Closing a run does so by itself."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Tell the user why a run's tasks wait. No effect outside."""

    run_id: str
    sentence: str
    unaffordable: bool = False  # for a lower price: nothing that could take them is within the run's hourly cap


@dataclass(frozen=True, slots=True)
class HaltRun:
    """Start no task of the run any more, for a reason that only the controller can see. No effect outside."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Steer:
    """From now on the run buys spot, or on-demand, for the reason given. No effect outside."""

    run_id: str
    steering: Steering


@dataclass(frozen=True, slots=True)
class ReviveTasks:
    """Make the next tasks of a reopened run pending again, as many as a commit can hold. No effect outside."""

    run_id: str


@dataclass(frozen=True, slots=True)
class MendState:
    """Go on with bringing order into what a lost document left behind. No effect outside."""


@dataclass(frozen=True, slots=True)
class CapRun:
    """The run's budget allows it to start nothing any more. What runs is stopped, or may end, by the run's own rule. No
    effect outside."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Claim:
    """No run has counted on these instances yet, and this one does: it pays for them until an attempt works there. No
    effect outside."""

    run_id: str
    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetireRun:
    """Nothing goes back to this run of an environment. No effect outside."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SetSlots:
    """Which tasks of a service's run are wanted from now on, and which are not. No effect outside."""

    run_id: str
    wanted: tuple[int, ...] = ()  # indexes
    parked: tuple[int, ...] = ()
    rows: int = 0  # that the run has at least


@dataclass(frozen=True, slots=True)
class NoteDeployment:
    """How the latest deployment of an environment comes along. No effect outside."""

    name: str
    status: DeploymentStatus
    reason: str
    healthy: int  # tasks of its revision
    outdated: int  # other tasks that are alive
    is_progress: bool = False
    rolls_back_to: int = 0  # revision; 0 = none


@dataclass(frozen=True, slots=True)
class NoteRecovered:
    """The tasks of an environment, which failed again and again, have been well for a while. No effect outside."""

    name: str


@dataclass(frozen=True, slots=True)
class NoteDesired:
    """On how many instances a daemon is to run. No effect outside."""

    name: str
    desired: int


@dataclass(frozen=True, slots=True)
class LetGo:
    """These instances will be terminated once their daemons have ended. No effect outside."""

    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnvironmentFailed:
    """Our own code failed at this environment, which is left as it is. No effect outside."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ForgetEnvironment:
    """It was deleted, and nothing of it runs any more. No effect outside."""

    name: str


@dataclass(frozen=True, slots=True)
class DrainTask:
    """It will be stopped for this cause once its target group sends it no requests any more. No effect outside."""

    key: AttemptKey
    cause: StopCause


@dataclass(frozen=True, slots=True)
class NoteOrder:
    """Remember what this tick buys and how near to the cheapest that is. No effect outside."""

    note: OrderNote


@dataclass(frozen=True, slots=True)
class NoteFloor:
    """Remember why there are fewer instances than a user wants kept; "" = there are not. No effect outside."""

    waiting: str


# All that happens is in the state.
Inside = (
    Remark
    | HaltRun
    | Steer
    | ReviveTasks
    | MendState
    | CapRun
    | Claim
    | NoteOrder
    | NoteFloor
    | YieldInstance
    | NoteHeld
    | RetireRun
    | SetSlots
    | NoteDeployment
    | NoteDesired
    | NoteRecovered
    | LetGo
    | DrainTask
    | ForgetEnvironment
    | EnvironmentFailed
)

Action = (
    PrepareRun
    | DeregisterDefinition
    | Launch
    | ResolveLaunches
    | StopAttempt
    | LookUpHosts
    | LookAtTasks
    | RegisterTargets
    | DeregisterTargets
    | StopOrphan
    | SetTarget
    | Terminate
    | ReadHistory
    | VerifyResult
    | CloseRun
    | FoldHistory
    | Inside
)
