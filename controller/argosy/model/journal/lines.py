"""What is a line of the journal, and which kinds exist?

A line says what one commit changed. It is the difference between two stored states, so that every change has its line
and every line its change. Members have the names that the api shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

Line = dict[str, Any]
"""`type` (a `LineType`) and its facts as JSON values. Unknown or unset facts are left out."""


class LineType(StrEnum):
    """What happened. Tasks are given by ranges of indexes: `tasks: [[first, last], ...]`."""

    RUN_SUBMITTED = "run.submitted"  # taken in by the controller
    RUN_PREPARED = "run.prepared"  # it has its task definition
    RUN_RUNNING = "run.running"
    RUN_WAITING = "run.waiting"  # why nothing starts; without a reason: the wait is over
    RUN_STEERED = "run.steered"  # between spot and on-demand
    RUN_HALTED = "run.halted"  # nothing more is started: pending tasks count as cancelled
    RUN_REOPENED = "run.reopened"  # by a retry; halted until its tasks are revived
    RUN_REVIVED = "run.revived"  # its tasks are revived
    RUN_SUSPENDED = "run.suspended"  # the controller's own code failed at it
    RUN_RESUMED = "run.resumed"
    RUN_GROWN = "run.grown"  # a service's run has more tasks than before
    RUN_UPDATED = "run.updated"  # a user has changed its terms
    RUN_CLOSED = "run.closed"
    TASK_PLACED = "task.placed"  # to be launched on an instance
    TASK_IN_DOUBT = "task.inDoubt"  # it may have been launched
    TASK_LAUNCHED = "task.launched"  # ECS has accepted it
    TASK_RUNNING = "task.running"
    TASK_STOPPING = "task.stopping"  # we have asked ECS to stop it
    TASK_LEFT = "task.left"  # it takes no room any more; its run, which is suspended, has not processed that
    TASK_RETURNED = "task.returned"  # it takes room again: it was launched after all
    TASK_REFUSED = "task.refused"  # the launch did not happen
    TASK_ENDED = "task.ended"  # an attempt ended; `status` is the task's new status
    TASK_DROPPED = "task.dropped"  # an attempt of a suspended or set-aside run is no longer known
    TASK_VERIFIED = "task.verified"  # its result exists
    TASK_SETTLED = "task.settled"  # a new status without the end of an attempt
    INSTANCE_BOOTING = "instance.booting"  # EC2 shows it
    INSTANCE_REGISTERED = "instance.registered"
    INSTANCE_ADVISED = "instance.advised"  # EC2 expects to take it back
    INSTANCE_WARNED = "instance.warned"  # EC2 takes it back, or its reservation ends
    INSTANCE_CORDONED = "instance.cordoned"  # no more work, and why; without a reason: the cordon is over
    INSTANCE_PAUSED = "instance.paused"  # it refused tasks
    INSTANCE_DISCONNECTED = "instance.disconnected"
    INSTANCE_CONNECTED = "instance.connected"
    INSTANCE_DRAINING = "instance.draining"
    INSTANCE_RELEASING = "instance.releasing"  # we let it go
    INSTANCE_GONE = "instance.gone"
    INSTANCE_FORGOTTEN = "instance.forgotten"  # it is no longer stored
    ENV_CREATED = "env.created"
    ENV_UPDATED = "env.updated"  # it has another revision
    ENV_SCALED = "env.scaled"
    ENV_FROZEN = "env.frozen"  # nothing of it is started, replaced or scaled
    ENV_THAWED = "env.thawed"
    ENV_FAILING = "env.failing"  # its tasks fail repeatedly without a deployment under way
    ENV_RECOVERED = "env.recovered"
    ENV_DELETING = "env.deleting"
    ENV_DELETED = "env.deleted"
    DEPLOYMENT_STARTED = "deployment.started"
    DEPLOYMENT_CHANGED = "deployment.changed"  # `status` is its progress or its outcome
    CLUSTER_SCALED = "cluster.scaled"  # a user wants at least this many instances; 0 = as many as the work needs
    CLUSTER_WAITING = "cluster.waiting"  # why there are fewer; without a reason: there are enough
    CLUSTER_HEADROOM = (
        "cluster.headroom"  # why some of the room for further tasks is missing; without a reason: none is
    )
    POOL_FOUND = "pool.found"  # a fleet to buy from
    POOL_TARGET = "pool.target"  # how many instances its fleet is to keep
    POOL_SHORT = "pool.short"  # nothing is ordered there for a while
    POOL_CLOSED = "pool.closed"  # its cell is closed, or open again: without a reason
    POOL_FORGOTTEN = "pool.forgotten"
    ORDER = "order"
    REQUEST_REFUSED = "request.refused"
    STATE_DAMAGED = "state.damaged"  # a stored document could not be read: list everything again


SUBJECTS: Mapping[str, str] = MappingProxyType(
    {
        "run": "runs",
        "task": "their tasks and attempts",
        "env": "environments",
        "deployment": "their deployments",
        "instance": "EC2 instances",
        "cluster": "how many instances are kept",
        "pool": "fleets",
        "order": "what is bought",
        "request": "requests of users",
        "state": "what is stored",
    }
)
"""The part of a type before the dot."""


def line(kind: LineType, **facts: Any) -> Line:
    """The facts that are neither None nor empty texts."""
    return {"type": str(kind), **{name: value for name, value in facts.items() if value is not None and value != ""}}
