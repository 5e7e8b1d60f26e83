"""What may a request do that came through the entrance of a queue?

A request through the alias of a queue changes only what belongs to that queue. A spec without a queue gets this one.
Reading is allowed everywhere: queues are for colleagues. Changes that concern all queues need the function without an
alias. An action that is in none of the tables is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.api import requests
from argosy.api.environments import requests as environment_requests
from argosy.api.environments import store as environment_store
from argosy.api.queues import actions as sharing_requests
from argosy.api.queues.in_force import in_force
from argosy.api.refusals import RequestRefused
from argosy.api.request_context import RequestContext
from argosy.api.schedules import requests as schedule_requests
from argosy.api.schedules import store as schedules
from argosy.model.entrances import PREFIX, queue_of
from argosy.model.run_terms import DEFAULT_QUEUE
from argosy.model.schedules.record import ScheduleState
from argosy.model.shares.sharing import ShareQueue
from argosy.spec.fields import Strict

DENIED = "AccessDeniedException"
Queues = Mapping[str, ShareQueue]
Check = Callable[[RequestContext, Any, "Entrance"], None]

READS: frozenset[type[Strict]] = frozenset(
    {
        requests.DescribeRun,
        requests.ListRuns,
        requests.ExplainRun,
        requests.DescribeCluster,
        requests.ListChanges,
        requests.DescribeHistory,
        requests.DescribeTask,
        requests.ListAttempts,
        requests.ListTasks,
        requests.ListInstances,
        environment_requests.DescribeEnvironment,
        environment_requests.ListEnvironments,
        schedule_requests.DescribeSchedule,
        schedule_requests.ListSchedules,
        sharing_requests.DescribeSharing,
    }
)
_FOR_ALL = "it affects all queues"
WHOLE: Mapping[type[Strict], str] = {
    requests.ScaleCluster: _FOR_ALL,
    requests.DrainInstance: _FOR_ALL,
    sharing_requests.ApplySharing: _FOR_ALL,
    schedule_requests.FireSchedule: "only EventBridge Scheduler may call it",
    schedule_requests.ReleaseSchedules: "only EventBridge Scheduler may call it",
}
"""The actions that need the function without an alias, each with the reason."""


class Entrance:
    """The alias of a queue, for one request. queue: its name."""

    def __init__(self, queue: str, queues: Queues) -> None:
        self.queue, self._queues = queue, queues

    def holds(self, given: Any) -> bool:
        """Whether a thing that names this queue belongs here. If the named queue was removed, it belongs to the default
        one."""
        name = given or DEFAULT_QUEUE
        return bool((name if name in self._queues else DEFAULT_QUEUE) == self.queue)

    def check(self, what: str, given: Any) -> None:
        """Raises RequestRefused."""
        if not self.holds(given):
            raise self.refusal(f"{what} belongs to the queue {str(given or DEFAULT_QUEUE)[:63]}")

    def refusal(self, why: str) -> RequestRefused:
        """The refusal of a change to something of another queue."""
        return RequestRefused(
            DENIED, f"{why}; requests through the queue {self.queue} may only change what belongs to it"
        )


def confined(context: RequestContext, request: Strict, alias: str) -> tuple[Strict, str]:
    """The request, confined to the queue of the alias, and that queue. Raises RequestRefused."""
    entrance = _entrance(in_force(context).queues(), alias)
    kind = type(request)
    if kind in READS:
        return request, entrance.queue
    if kind not in _CHECKS and kind not in _OF_SPECS:
        why = WHOLE.get(kind, "it is unknown")
        sentence = f"{kind.__name__} is not allowed through the queue {entrance.queue}: {why}"
        raise RequestRefused(DENIED, sentence)
    if (check := _CHECKS.get(kind)) is not None:
        check(context, request, entrance)
    return _with_queue(request, entrance) if kind in _OF_SPECS else request, entrance.queue


def _entrance(queues: Queues, alias: str) -> Entrance:
    queue = queue_of(alias)
    names = ", ".join(sorted(queues))
    if queue is None:
        raise RequestRefused(
            DENIED, f"{alias[:128]} is not an alias of a queue: those are {PREFIX} and a queue's name ({names})"
        )
    if queue not in queues:
        raise RequestRefused(DENIED, f"the alias {alias[:128]} belongs to no queue; the queues are: {names}")
    return Entrance(queue, queues)


def _with_queue(request: Any, entrance: Entrance) -> Strict:
    """The request with the queue in its spec. Raises RequestRefused for a spec of another queue."""
    spec = request.spec
    if spec is None:  # of an update that leaves it as it is
        return request  # type: ignore[no-any-return]
    if (given := spec.get("queue")) not in (None, entrance.queue):
        raise entrance.refusal(f"the spec names the queue {str(given)[:63]}")
    if spec.get("kind") == "daemon":
        raise entrance.refusal("a daemon runs on the instances of all queues")
    return request.model_copy(update={"spec": {**spec, "queue": entrance.queue}})  # type: ignore[no-any-return]


def _of_run(context: RequestContext, request: Any, entrance: Entrance) -> None:
    entrance.check(f"the run {request.run_id[:100]}", context.record(request.run_id).queue)


def _updated(context: RequestContext, request: requests.UpdateRun, entrance: Entrance) -> None:
    _of_run(context, request, entrance)
    if (wanted := request.changes.get("queue")) not in (None, entrance.queue):
        raise entrance.refusal(f"the run would move to the queue {str(wanted)[:63]}")


def _of_environment(context: RequestContext, request: Any, entrance: Entrance) -> None:
    """Every revision that may run now or next has to belong to the queue."""
    name, asked = request.name, getattr(request, "revision", None)
    rolled_back = isinstance(request, environment_requests.RollBackDeployment)
    for form in environment_store.forms_at_work(context, name, asked, rolled_back=rolled_back):
        if form.get("kind") == "daemon":
            raise entrance.refusal(f"{name} is a daemon, which runs on the instances of all queues")
        entrance.check(f"the environment {name}", form.get("queue"))


def _created_environment(
    context: RequestContext, request: environment_requests.CreateEnvironment, entrance: Entrance
) -> None:
    """A new environment takes over the tasks of an earlier one of the same name, which has to belong to the queue."""
    for form in environment_store.forms_at_work(context, str(request.spec.get("name"))[:63]):
        entrance.check(f"the environment {request.spec['name']}", form.get("queue"))


def _of_schedule(context: RequestContext, request: Any, entrance: Entrance) -> None:
    known = schedules.read(context.store, request.name)
    if known is not None and known.state is not ScheduleState.DELETED:
        entrance.check(f"the schedule {request.name}", known.spec.get("queue"))


_OF_SPECS: frozenset[type[Strict]] = frozenset(
    {
        requests.SubmitRun,
        requests.ValidateRun,
        requests.PlanRun,
        environment_requests.CreateEnvironment,
        environment_requests.UpdateEnvironment,
        schedule_requests.CreateSchedule,
        schedule_requests.UpdateSchedule,
    }
)
_CHECKS: Mapping[type[Strict], Check] = {
    requests.CancelRun: _of_run,
    requests.RetryRun: _of_run,
    requests.UpdateRun: _updated,
    environment_requests.CreateEnvironment: _created_environment,
    **dict.fromkeys(
        (
            environment_requests.UpdateEnvironment,
            environment_requests.StartDeployment,
            environment_requests.RollBackDeployment,
            environment_requests.StopDeployment,
            environment_requests.ScaleEnvironment,
            environment_requests.FreezeEnvironment,
            environment_requests.ThawEnvironment,
            environment_requests.DeleteEnvironment,
        ),
        _of_environment,
    ),
    **dict.fromkeys(
        (
            schedule_requests.CreateSchedule,
            schedule_requests.UpdateSchedule,
            schedule_requests.PauseSchedule,
            schedule_requests.ResumeSchedule,
            schedule_requests.RunScheduleNow,
            schedule_requests.DeleteSchedule,
        ),
        _of_schedule,
    ),
}
