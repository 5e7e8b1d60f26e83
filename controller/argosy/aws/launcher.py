"""The launch protocol: how one attempt becomes at most one ECS task, whatever fails in between (DESIGN D4).

Problem: RunTask may start the task and its reply may be lost, or the process may end between the call and the next
commit. A second call could then run an attempt twice, and giving up could leave a task that no state names.

Idea: the intent is committed before the call, and the call carries a token that follows from the attempt's key, for
which ECS starts one task at most. So an intent without a known outcome is in doubt and never wrong: repeat the call
with the same token, or list the tasks of ECS, until one of the two answers.

1. `lifecycle.begin` adds a row: run, task 7, attempt 1, launch 0, status INTENT. The tick commits it.
2. `executor` calls `launch` here: RunTask with the token of (run, 7, 1, 0).
3. The outcome is a fact of the next tick (`lifecycle.attempts`). Accepted: the row names its task and is LAUNCHED.
   Refused: nothing started, and the task is placed again as launch 1, with another token. No reply: IN_DOUBT. A
   controller that starts sets every INTENT to IN_DOUBT, because it cannot know whether the call was sent.
4. `resolve` here lists the tasks of a row in doubt. It is shown: accepted after all. It is not, and the row is
   younger than 10 minutes: the same call is sent again, and the same token answers with the task that it started, if it
   did. The row is older than 20 minutes, and two complete listings do not show it: the launch never happened, and
   launch 1 follows.

For example, the reply of launch 0 is lost at 12:00:00. At 12:00:05 the listing shows no task yet; the call is repeated,
and ECS answers with the task that the first call started. One task runs, and one attempt is charged. Only launch 1,
which follows a refusal or a proof that launch 0 never happened, has another token:

>>> from argosy.aws.ecs_requests import client_token
>>> tasks: dict[str, str] = {}  # those of ECS, by token
>>> def run_task(key: AttemptKey) -> dict[str, Any]:
...     arn = f"arn:aws:ecs:us-east-1:123456789012:task/argosy/{len(tasks)}"
...     return {"tasks": [{"taskArn": tasks.setdefault(client_token(key), arn)}]}
>>> launch_0, launch_1 = AttemptKey("r1", 7, 1, 0), AttemptKey("r1", 7, 1, 1)
>>> lost, again = run_task(launch_0), run_task(launch_0)
>>> _outcome(launch_0, again).arn, len(tasks)
('arn:aws:ecs:us-east-1:123456789012:task/argosy/0', 1)
>>> _outcome(launch_1, run_task(launch_1)).arn, len(tasks)
('arn:aws:ecs:us-east-1:123456789012:task/argosy/1', 2)
>>> type(_outcome(launch_0, {})).__name__, type(_outcome(launch_0, {"failures": [{"reason": "AGENT"}]})).__name__
('LaunchInDoubt', 'LaunchRefused')

Nothing here decides what to launch, and AWS's answers raise nothing: successes, refusals and doubts are events.
The engine decides whether a token is still valid (`ResolveLaunches.resend`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from argosy.aws.cell import TIME_WAS_UP, AwsDeployment, Cell, chunks, pages, read_each, shielded
from argosy.aws.ecs_requests import STOP_REASON_LIMIT, UnusableDefinition, run_task_request
from argosy.aws.errors import AWS_ERRORS, NO_CLUSTER, CallFailure, FailureKind, classify, is_definition_gone
from argosy.aws.items import passes
from argosy.aws.preparation import NoRateLeft, RunPreparation
from argosy.messages.ecs import task_seen
from argosy.model.actions import Launch, ResolveLaunches, StopAttempt, StopOrphan
from argosy.model.attempts import AttemptKey
from argosy.model.events import (
    Event,
    LaunchAccepted,
    LaunchDisproved,
    LaunchInDoubt,
    LaunchMissed,
    LaunchRefused,
    NotCarriedOut,
    TaskSeen,
)
from argosy.model.instances import InstanceStatus
from argosy.model.runs import Run
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.ports import ItemsUnreadable

# An intent is last sent fifteen minutes after it was made, when Lambda ends the invocation that made it and was paused
# in mid-call (Policy.takeover_s), and its task shows in listings within five more minutes (reliability.md row 5). Two
# complete listings after that which do not show it are proof.
DISPROVED_AFTER_S = 20 * 60.0


class TaskLauncher:
    """RunTask and StopTask for attempts."""

    def __init__(
        self,
        deployment: AwsDeployment,
        cells: Mapping[str, Cell],
        preparation: RunPreparation,
        clock: Callable[[], float],
    ) -> None:
        self._deployment, self._cells, self._preparation = deployment, cells, preparation
        self._items, self._clock = preparation.items, clock

    def launch(self, launch: Launch, state: State, deadline: float) -> list[Event]:
        """One event. Safe to call from several threads."""
        try:
            request = self._request(launch, state, deadline)
        except (KeyError, UnusableDefinition, ItemsUnreadable, NoRateLeft, *AWS_ERRORS) as fault:
            return [_no_request(launch.key, fault)]
        if request is None:
            return [NotCarriedOut("its run or cell no longer exists", launch.key)]
        outcome = self._send(launch, request, deadline)
        if isinstance(outcome, LaunchRefused):
            outcome = self._checked(launch, request, outcome, deadline)
        if isinstance(outcome, LaunchRefused):
            return [self._with_another_definition(state.runs[launch.key.run_id], request, outcome)]
        return [outcome]

    def resolve(self, action: ResolveLaunches, state: State, deadline: float) -> list[Event]:
        """Adopt the tasks that the listings show. If they are complete, send the other launches again while they are
        young enough; an older one never happened if two complete listings do not show it. The same holds where Argosy
        cannot read a task: the answer to the same request shows whose it is."""
        events: list[Event] = []
        for cell_name in sorted({launch.cell for launch in action.launches}):
            launches = [launch for launch in action.launches if launch.cell == cell_name]
            unread: list[Event] = []
            found, complete = self._listed(self._cells.get(cell_name), action.started_by, deadline, unread)
            events += unread
            for launch in launches:
                if launch.key in found:
                    seen = found[launch.key]
                    events += [LaunchAccepted(launch.key, seen.arn, seen.gpu_ids), seen]
                elif action.resend and (complete or unread):
                    again = self._again(launch, state, deadline)
                    events += [_doubted(event, state, launch) for event in again] if action.is_contended else again
                else:
                    events.append(self._absent(launch.key, action.intended_at, complete, state))
        return events

    def stop(self, action: StopAttempt | StopOrphan, deadline: float) -> list[Event]:
        """Request a stop; the reply shows the task. The sweep reports tasks that are already gone."""
        key = action.key if isinstance(action, StopAttempt) else None
        cell = self._cells.get(action.cell)
        if cell is None:
            return [NotCarriedOut(f"there is no cell {action.cell}", key)]
        if not cell.rates.launches.take(deadline, urgent=True):
            return [NotCarriedOut(TIME_WAS_UP, key, passing=True)]
        try:
            answer = cell.ecs.stop_task(cluster=cell.cluster, task=action.arn, reason=action.reason[:STOP_REASON_LIMIT])
        except AWS_ERRORS as error:
            fault = classify(error)
            throttled = fault.kind is FailureKind.THROTTLED
            if throttled:
                cell.rates.launches.throttled()
            return [NotCarriedOut(fault.text, key, passing=throttled)]
        return [task_seen(answer["task"])] if answer.get("task") else []

    def _request(self, launch: Launch, state: State, deadline: float) -> dict[str, Any] | None:
        """Raises KeyError, AWS_ERRORS, UnusableDefinition, ItemsUnreadable, NoRateLeft."""
        run, cell = state.runs.get(launch.key.run_id), self._cells.get(launch.cell)
        if run is None or cell is None:
            return None
        item = None
        if run.terms.items_from:
            item = self._items.pinned_item(run.output, launch.key.index // run.gang_size)
        task_definition = self._preparation.arn_in(run, cell, deadline)
        request = run_task_request(launch, run, item, task_definition, stage=self._deployment.stage)
        return self._preparation.shortened(request, run, launch.key) if run.terms.needs_runner else request

    def _send(self, launch: Launch, request: Mapping[str, Any], deadline: float) -> Event:
        cell = self._cells[launch.cell]
        if not cell.rates.launches.take(deadline):
            return NotCarriedOut(TIME_WAS_UP, launch.key)
        try:
            return _outcome(launch.key, cell.ecs.run_task(cluster=cell.cluster, **request))
        except AWS_ERRORS as error:
            return _failure(launch.key, error, cell, is_only=len(self._cells) == 1)

    def _checked(self, launch: Launch, request: Mapping[str, Any], refused: LaunchRefused, deadline: float) -> Event:
        """A refusal does not prove that nothing started (reliability.md row 2): sending the same token again does."""
        again = self._send(launch, request, deadline)
        if isinstance(again, NotCarriedOut):
            return LaunchInDoubt(launch.key, f"{refused.reason}, not checked: {again.reason}")
        return again

    def _with_another_definition(self, run: Run, request: Mapping[str, Any], refused: LaunchRefused) -> LaunchRefused:
        """The run's definition was deregistered: unless it is the user's own, the next launch names another."""
        if is_definition_gone(refused.detail) and self._preparation.replaces(run, request["taskDefinition"]):
            return replace(refused, final=False, denied=True)
        return refused

    def _again(self, launch: Launch, state: State, deadline: float) -> list[Event]:
        """The identical request. A launch that was not sent this time remains in doubt."""
        return [
            LaunchInDoubt(event.key, event.reason) if isinstance(event, NotCarriedOut) and event.key else event
            for event in shielded(launch, lambda again: self.launch(again, state, deadline))
        ]

    def _absent(self, key: AttemptKey, intended_at: float, complete: bool, state: State) -> Event:
        if not complete:
            return LaunchInDoubt(key, "a listing was incomplete", is_answer=False)
        if self._clock() - intended_at <= DISPROVED_AFTER_S:
            return LaunchInDoubt(
                key, "too old to be sent again, too recent for its absence to be proof", is_answer=False
            )
        row = state.row_of(key)
        missed_before = row is not None and state.attempts["absent_since"][row] > 0
        return LaunchDisproved(key) if missed_before else LaunchMissed(key)

    def _listed(
        self, cell: Cell | None, started_by: str, deadline: float, unread: list[Event]
    ) -> tuple[dict[AttemptKey, TaskSeen], bool]:
        """The wave's running and stopped tasks by key, and whether the listings were complete. Failures of Argosy's own
        code are added to `unread`."""
        found: dict[AttemptKey, TaskSeen] = {}
        if cell is None:
            return found, False
        try:
            arns: list[str] = []
            for status in ("RUNNING", "STOPPED"):
                arns += _paced_listing(cell, deadline, startedBy=started_by, desiredStatus=status)
            described = _paced_describing(cell, list(dict.fromkeys(arns)), deadline)
        except AWS_ERRORS as error:
            if classify(error).kind is FailureKind.THROTTLED:
                cell.rates.reads.throttled()
            return found, False
        except NoRateLeft:
            return found, False
        tasks = [seen for seen in described if isinstance(seen, TaskSeen)]
        unread += [seen for seen in described if not isinstance(seen, TaskSeen)]
        found = {seen.key: seen for seen in tasks if seen.key is not None}
        # a task may be listed that cannot be described yet: this proves nothing
        return found, len(tasks) == len(set(arns))


def _paced_listing(cell: Cell, deadline: float, **filters: str) -> Iterator[str]:
    def call(**request: Any) -> dict[str, Any]:
        if not cell.rates.reads.take(deadline):
            raise NoRateLeft
        return dict(cell.ecs.list_tasks(**request))

    for page in pages(call, cluster=cell.cluster, maxResults=100, **filters):
        yield from page["taskArns"]


def _paced_describing(cell: Cell, arns: list[str], deadline: float) -> list[Event]:
    """Each task as a TaskSeen, or as a failure of Argosy's own code."""
    seen: list[Event] = []
    for chunk in chunks(arns):
        if not cell.rates.reads.take(deadline):
            raise NoRateLeft
        seen += read_each(task_seen, cell.ecs.describe_tasks(cluster=cell.cluster, tasks=chunk)["tasks"])
    return seen


def _doubted(event: Event, state: State, launch: Launch) -> Event:
    """Another controller that was paused for minutes in mid-call may still send the refused request, and find room. ECS
    remembers a token only once it has started a task. Nothing starts on an instance that is gone, nor by a request that
    is wrong in itself."""
    if not isinstance(event, LaunchRefused) or event.final or _is_gone(state, launch.instance_id):
        return event
    return LaunchInDoubt(event.key, f"refused, but another controller may have been about to send it: {event.reason}")


def _is_gone(state: State, instance_id: str) -> bool:
    instance = state.instances.get(instance_id)
    return instance is not None and instance.status is InstanceStatus.GONE


def _later(key: AttemptKey, reason: str) -> Event:
    return NotCarriedOut(reason, key, Subject(Act.LAUNCH, key.run_id), passing=True)


def _no_request(key: AttemptKey, fault: Exception) -> Event:
    """The request could not be built: for good, or only for now."""
    if isinstance(fault, NoRateLeft):
        return NotCarriedOut(TIME_WAS_UP, key)
    if isinstance(fault, AWS_ERRORS):
        why = classify(fault)
        return _refused(key, why) if why.lasting else _later(key, why.text)
    if isinstance(fault, ItemsUnreadable) and passes(fault):
        return _later(key, str(fault))
    reason = f"the task's item has no {fault}" if isinstance(fault, KeyError) else str(fault)
    return LaunchRefused(key, "INVALID", reason, final=True)


def _outcome(key: AttemptKey, answer: Mapping[str, Any]) -> Event:
    """The meaning of the answer to a RunTask. `failures` is an open list of reasons (aws.md 2.4)."""
    tasks: Sequence[Mapping[str, Any]] = answer.get("tasks") or ()
    if tasks:
        seen = task_seen(tasks[0])
        return LaunchAccepted(key, seen.arn, seen.gpu_ids)
    for failure in answer.get("failures") or ():
        return LaunchRefused(key, str(failure.get("reason", "")), str(failure.get("detail") or ""))
    return LaunchInDoubt(key, "the answer had neither tasks nor failures")


def _failure(key: AttemptKey, error: Exception, cell: Cell, *, is_only: bool) -> Event:
    """is_only: a cell without a cluster takes no task of any run, and no other cell can."""
    fault = classify(error)
    if fault.kind is FailureKind.THROTTLED:
        cell.rates.launches.throttled()
        if _was_retried(error):
            return LaunchInDoubt(key, f"an earlier try of the call may have worked: {fault.text}")
        return NotCarriedOut(fault.text, key, Subject(Act.SEND, key.run_id))
    if fault.kind is FailureKind.CONFLICT:
        # The same token with other parameters: the task exists, with either parameters (reliability.md row 4).
        arns = error.response.get("resourceIds") if isinstance(error, ClientError) else ()
        return LaunchAccepted(key, str(arns[0])) if arns else LaunchInDoubt(key, fault.text)
    if fault.kind is FailureKind.IN_DOUBT:
        return LaunchInDoubt(key, fault.text)
    found = _refused(key, fault)
    return replace(found, denied=found.denied or (is_only and fault.code == NO_CLUSTER))


def _refused(key: AttemptKey, fault: CallFailure) -> LaunchRefused:
    return LaunchRefused(key, fault.code, fault.message, fault.final, fault.lasting and not fault.final)


def _was_retried(error: Exception) -> bool:
    """Whether botocore sent the request more than once: then the last answer says nothing about the first."""
    metadata = error.response.get("ResponseMetadata", {}) if isinstance(error, ClientError) else {}
    return bool(metadata.get("RetryAttempts"))
