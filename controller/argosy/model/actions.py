"""What can the controller do?

Actions are inert data: deciding is separate from doing (DESIGN D1). Each action is either marked in the state before it
is done (a launch is an intent first) or safe to do twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.failure_texts import ReadFailures
from argosy.model.host_care import ReadConsole, SetHostStatus
from argosy.model.pools import OrderNote
from argosy.model.purchases import PurchaseChoice
from argosy.model.services.environments import DeploymentStatus
from argosy.model.services.targets import TargetPlace


@dataclass(frozen=True, slots=True)
class PrepareRun:
    """Register the task definition (once per distinct content), write spec.json."""

    run_id: str


@dataclass(frozen=True, slots=True)
class DeregisterDefinition:
    """In every cell, deregister the task definition of closed runs that no open run uses."""

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
    """Settle the attempts of a wave whose replies were lost: list, adopt, and send again while young enough."""

    wave: int
    started_by: str
    launches: tuple[Launch, ...]
    intended_at: float
    resend: bool  # False: too old to send again (DESIGN D4)
    is_contended: bool = False  # another controller may still send it, so a refusal proves nothing


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
    """Keep the instance for one run until this many of its tasks have arrived or time is up. No effect outside."""

    instance_id: str
    run_id: str
    tasks: int
    until: float  # epoch seconds
    lost_usd: float = 0.0  # value of the work that is stopped for it
    is_emptied: bool = False  # whether all work there is stopped, not only what the tasks displace


@dataclass(frozen=True, slots=True)
class NoteHeld:
    """The runs that may take room from others but find none. No effect outside."""

    run_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookUpHosts:
    """Ask EC2 whether these instances still run. Attempts ended there, and it is not yet known whether they are charged
    to the user."""

    cell: str
    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookAtTasks:
    """Ask ECS for the state of these tasks: no event reports the health of their containers."""

    cell: str
    arns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegisterTargets:
    """Register these tasks of an environment as targets of a load balancer. One target group an action."""

    environment: str
    places: tuple[TargetPlace, ...]


@dataclass(frozen=True, slots=True)
class DeregisterTargets:
    """Deregister these targets: their tasks are about to be stopped, or have ended."""

    environment: str
    places: tuple[TargetPlace, ...]


@dataclass(frozen=True, slots=True)
class StopOrphan:
    """Stop an ECS task of ours that has no live attempt, or whose suspended run no longer permits it to continue."""

    arn: str
    cell: str
    reason: str = "belongs to no live attempt"


@dataclass(frozen=True, slots=True)
class SetTarget:
    """The instances that a pool should hold: the target of its spot fleet, and on-demand instances, which EC2 does not
    replace.

    On-demand instances beyond the existing ones are an order, which `lifecycle.begin` numbers.
    """

    pool: str
    spot_target: int
    on_demand_target: int
    gives_up: bool = False  # the pool has owed instances for too long: avoid it for a while
    fleet_id: str = ""  # a surplus fleet's; "" = the pool's own


@dataclass(frozen=True, slots=True)
class Terminate:
    """Terminate our instances once the targets of their pools are lowered."""

    cell: str
    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Ask EC2 for the history of a fleet that ran short again. It only yields a reason."""

    pool: str


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Look up the result of a task whose program exited with code 0."""

    run_id: str
    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class CloseRun:
    """Write the next part of the manifest. After the last part, write the index, the marker and the Run State Change
    event, in this order."""

    run_id: str


@dataclass(frozen=True, slots=True)
class FoldHistory:
    """Write the next part of a run's history next to its results. Closing a run includes this."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Tell the user why a run's tasks wait. No effect outside."""

    run_id: str
    sentence: str
    unaffordable: bool = False  # whether they wait for a lower price: no suitable offer is within the run's cap


@dataclass(frozen=True, slots=True)
class HaltRun:
    """Start no more tasks of the run, for a reason that only the controller can see. No effect outside."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Steer:
    """Buy spot or on-demand for the run from now on, for the reason given. No effect outside."""

    run_id: str
    steering: PurchaseChoice


@dataclass(frozen=True, slots=True)
class ReviveTasks:
    """Make the next tasks of a reopened run pending again, as many as a commit can hold. No effect outside."""

    run_id: str


@dataclass(frozen=True, slots=True)
class MendState:
    """Continue the repairs after a lost document. No effect outside."""


@dataclass(frozen=True, slots=True)
class CapRun:
    """Start nothing more of the run: its budget is used up. The run's own rule decides whether running tasks are
    stopped. No effect outside."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The run now counts on these instances, as the first run to do so. It pays for them until an attempt works there.
    No effect outside."""

    run_id: str
    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetireRun:
    """Detach this run from its environment: no roll-back returns to it. No effect outside."""

    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SetSlots:
    """The tasks of a service's run that should run from now on. No effect outside."""

    run_id: str
    wanted: tuple[int, ...] = ()  # indexes
    parked: tuple[int, ...] = ()
    rows: int = 0  # least number of tasks in the run


@dataclass(frozen=True, slots=True)
class NoteDeployment:
    """Progress of the latest deployment of an environment. No effect outside."""

    name: str
    status: DeploymentStatus
    reason: str
    healthy: int  # tasks of its revision
    outdated: int  # other tasks that are alive
    is_progress: bool = False
    rolls_back_to: int = 0  # revision; 0 = none


@dataclass(frozen=True, slots=True)
class NoteRecovered:
    """The tasks of a failing environment have been healthy for a while. No effect outside."""

    name: str


@dataclass(frozen=True, slots=True)
class NoteDesired:
    """The number of instances on which a daemon should run. No effect outside."""

    name: str
    desired: int


@dataclass(frozen=True, slots=True)
class LetGo:
    """These instances are terminated once their daemons have ended. No effect outside."""

    instance_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnvironmentFailed:
    """Our own code failed on this environment, which stays as it is. No effect outside."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ForgetEnvironment:
    """The environment was deleted, and none of its tasks run any more. No effect outside."""

    name: str


@dataclass(frozen=True, slots=True)
class DrainTask:
    """The task is stopped for this cause once its target group sends it no more requests. No effect outside."""

    key: AttemptKey
    cause: StopCause


@dataclass(frozen=True, slots=True)
class NoteOrder:
    """Store this tick's purchases and their distance from the cheapest purchase. No effect outside."""

    note: OrderNote


@dataclass(frozen=True, slots=True)
class NoteFloor:
    """Store the reasons why there are fewer instances than the floor, and less room for further tasks than the settings
    want; "" = there are enough. No effect outside."""

    waiting: str
    headroom_waiting: str = ""


# Their only effect is on the state.
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
    | SetHostStatus
    | ReadConsole
    | ReadFailures
    | Terminate
    | ReadHistory
    | VerifyResult
    | CloseRun
    | FoldHistory
    | Inside
)
