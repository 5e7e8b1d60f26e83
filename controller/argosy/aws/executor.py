"""The order in which actions are carried out.

Stops come first because they are urgent. Targets come before terminations, or fleets would replace the instances that
end. Launches come last of the actions that runs need: only they can use up all the time, and they must not starve the
others. The remaining time goes to task definitions that no run needs any more. Tasks are polled one by one, by
DescribeTasks, only for the health of their containers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, TypeVar

from argosy.aws.account_rates import AccountRates, SpotAdvice
from argosy.aws.cell import (
    ALONE,
    TIME_WAS_UP,
    AwsDeployment,
    Cell,
    Coordination,
    HomeClients,
    chunks,
    read_each,
    shielded,
)
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.aws.failure_logs import FailureLogs
from argosy.aws.fleets import AwsFleets
from argosy.aws.host_statuses import HostStatuses
from argosy.aws.items import S3ItemsReader
from argosy.aws.launcher import TaskLauncher
from argosy.aws.observer import Observer
from argosy.aws.placement_scores import PlacementScores
from argosy.aws.preparation import RunPreparation
from argosy.aws.results import Results
from argosy.aws.target_groups import TargetGroups
from argosy.messages.ecs import task_seen
from argosy.model.actions import (
    Action,
    CloseRun,
    DeregisterDefinition,
    DeregisterTargets,
    FoldHistory,
    Launch,
    LookAtTasks,
    LookUpHosts,
    PrepareRun,
    ReadHistory,
    RegisterTargets,
    ResolveLaunches,
    SetTarget,
    StopAttempt,
    StopOrphan,
    Terminate,
    VerifyResult,
)
from argosy.model.events import Event, LaunchRefused, NotCarriedOut, TargetAccepted, TaskSeen
from argosy.model.failure_texts import ReadFailures
from argosy.model.host_care import ReadConsole, SetHostStatus
from argosy.model.state import State

STOPS_SHARE = 0.4  # of a tick's time: the most that stops may use
VERIFY_SHARE = 0.7  # of it, after which no further look-up begins
CLOSE_SHARE = 0.8  # of it, after which no run is closed, nor any further part of a manifest written
VERIFICATIONS = 100  # between two renewals of the lease

log = logging.getLogger(__name__)
A = TypeVar("A")


class AwsExecutor:
    """`ports.Executor` over the cells' clients."""

    def __init__(
        self,
        deployment: AwsDeployment,
        cells: Sequence[Cell],
        home: HomeClients,
        clock: Callable[[], float],
        coordination: Coordination = ALONE,
    ) -> None:
        """clock: epoch seconds."""
        by_name = {cell.name: cell for cell in cells}
        self._clock, self._threads, self._keep_alive = clock, deployment.threads, coordination.keep_alive
        self._by_name, self._cell_count = by_name, max(1, len(by_name))
        self._preparation = RunPreparation(deployment, by_name, home.s3, S3ItemsReader(home.s3))
        self._launcher = TaskLauncher(deployment, by_name, self._preparation, clock)
        advice = SpotAdvice(
            PlacementScores() if deployment.placement_scores else None,
            AccountRates() if deployment.capacity_manager else None,
            home.prices,
        )
        self._fleets = AwsFleets(deployment.stage, by_name, clock, advice)
        self._looks = EcsPolls(by_name, clock)
        self._logs = FailureLogs(by_name, deployment.log_group, clock)
        self._targets = TargetGroups(deployment.target_groups, by_name, clock)
        self._results = Results(home, clock, coordination, deployment.part_size)
        self._observer = Observer(by_name, self._fleets, clock, coordination.keep_alive)

    def observe(self, now: float, state: State) -> Event | None:
        self._observer.state = state
        return self._observer.observe(now)

    def carry_out(self, actions: Sequence[Action], state: State, deadline: float) -> list[Event]:
        began = self._clock()

        def until(share: float) -> float:
            return began + share * (deadline - began)

        events: list[Event] = []
        events += self._stop(actions, until(STOPS_SHARE))
        for look_up in _of(LookUpHosts, actions):
            events += shielded(look_up, lambda action: self._fleets.look_up(action, deadline))
        for look in _of(LookAtTasks, actions):
            events += shielded(look, lambda action: self._looks.look(action, deadline))
        changes: list[DeregisterTargets | RegisterTargets] = [*_of(DeregisterTargets, actions)]
        for change in [*changes, *_of(RegisterTargets, actions)]:
            events += shielded(change, lambda action: self._targets.change(action, deadline))
        for change_of in _of(SetHostStatus, actions):
            set_status = partial(HostStatuses(self._by_name, self._clock).set, state=state, deadline=deadline)
            events += shielded(change_of, set_status)
        for console in _of(ReadConsole, actions):
            events += shielded(console, partial(HostStatuses(self._by_name, self._clock).console, deadline=deadline))
        for failures in _of(ReadFailures, actions):
            events += shielded(failures, partial(self._logs.read, deadline=deadline))
        events += self._steer(actions, state, deadline)
        events += self._prepare(actions, state, deadline)
        events += self._verify(actions, state, until(VERIFY_SHARE))
        events += self._close(actions, state, until(CLOSE_SHARE))
        for action in _of(ResolveLaunches, actions):
            events += shielded(action, lambda wave: self._launcher.resolve(wave, state, deadline))
        events += self._launch(list(_of(Launch, actions)), state, deadline)
        events += self._deregister(actions, state, deadline)
        events += [
            NotCarriedOut(f"unknown action {type(action).__name__}")
            for action in actions
            if not isinstance(action, _KINDS)
        ]
        _log_refusals(events)
        return events

    def _stop(self, actions: Sequence[Action], deadline: float) -> Iterator[Event]:
        stops: list[StopAttempt | StopOrphan] = [*_of(StopAttempt, actions), *_of(StopOrphan, actions)]
        return self._in_threads(lambda stop: self._launcher.stop(stop, deadline), stops)

    def _steer(self, actions: Sequence[Action], state: State, deadline: float) -> Iterator[Event]:
        def set_target(target: SetTarget) -> list[Event]:
            return [self._fleets.set_target(target, state, deadline)]

        accepted: dict[str, bool] = {}
        targets = list(_of(SetTarget, actions))
        self._fleets.list_before_buying(targets, state, deadline)
        for target, event in zip(targets, self._in_threads(set_target, targets, self._cell_count), strict=True):
            if not target.fleet_id:
                accepted[target.pool] = isinstance(event, TargetAccepted)
            yield event
        for target in targets:
            yield from shielded(target, lambda action: self._fleets.buy(action, state, deadline))
        for terminate in _of(Terminate, actions):
            yield from shielded(terminate, lambda action: self._fleets.terminate(action, state, accepted, deadline))
        for read in _of(ReadHistory, actions):
            yield from shielded(read, lambda action: [self._fleets.history(action, state, deadline)])

    def _prepare(self, actions: Sequence[Action], state: State, deadline: float) -> Iterator[Event]:
        def prepare(action: PrepareRun) -> list[Event]:
            return [self._preparation.prepare(state.runs[action.run_id], deadline)]

        for action in _of(PrepareRun, actions):
            run = state.runs.get(action.run_id)
            if run is None or self._clock() >= deadline:
                yield NotCarriedOut(TIME_WAS_UP if run else "its run is closed")
            else:
                yield from shielded(action, prepare)

    def _verify(self, actions: Sequence[Action], state: State, deadline: float) -> Iterator[Event]:
        def verify(action: VerifyResult) -> list[Event]:
            if self._clock() >= deadline:
                return [NotCarriedOut(TIME_WAS_UP)]
            return [self._results.verify(action, state)]

        actions_of = list(_of(VerifyResult, actions))
        for start in range(0, len(actions_of), VERIFICATIONS):
            self._keep_alive()
            yield from self._in_threads(verify, actions_of[start : start + VERIFICATIONS])

    def _close(self, actions: Sequence[Action], state: State, deadline: float) -> Iterator[Event]:
        for action in _of(CloseRun, actions):
            in_time = self._clock() < deadline
            self._keep_alive()
            if in_time:
                yield from shielded(action, lambda close: self._results.end(close, state))
            else:
                yield NotCarriedOut(TIME_WAS_UP)
        for fold in _of(FoldHistory, actions):
            if self._clock() < deadline:
                yield from shielded(fold, lambda each: [self._results.fold(each, state)])
            else:
                yield NotCarriedOut(TIME_WAS_UP)

    def _launch(self, launches: Sequence[Launch], state: State, deadline: float) -> Iterator[Event]:
        """A run that has never started a task sends one ahead, so that a request that is refused for good is sent once
        (twice with the check of the refusal) and not a thousand times (reliability.md row 11)."""
        refused: dict[str, LaunchRefused] = {}

        def launch(action: Launch) -> list[Event]:
            verdict = refused.get(action.key.run_id)
            if verdict is not None:
                return [NotCarriedOut(f"its run was refused: {verdict.reason}", action.key)]
            events = self._launcher.launch(action, state, deadline)
            refused.update(
                {event.key.run_id: event for event in events if isinstance(event, LaunchRefused) and event.whole_run}
            )
            return events

        ahead = _first_of_each_new_run(launches, state)
        for action in ahead:
            yield from shielded(action, launch)
        first = frozenset(action.key for action in ahead)
        rest = [action for action in launches if action.key not in first]
        yield from self._in_threads(launch, _by_turns(rest), self._cell_count)

    def _deregister(self, actions: Sequence[Action], state: State, deadline: float) -> Iterator[Event]:
        """Runs that this tick has prepared count as unprepared: they were just pinned to their definitions."""
        waiting = state.unprepared()
        for unused in _of(DeregisterDefinition, actions):
            if self._clock() < deadline:
                yield from shielded(unused, lambda action: [self._preparation.deregister(action, waiting, deadline)])
            else:
                yield NotCarriedOut(TIME_WAS_UP)

    def _in_threads(self, do: Callable[[A], Iterable[Event]], work: Sequence[A], cells: int = 1) -> Iterator[Event]:
        """The events of all work, in order; every thread ends before the last event. cells: how many the work spans."""
        if self._threads == 1 or len(work) < 2:
            for each in work:
                yield from shielded(each, do)
            return
        with ThreadPoolExecutor(min(self._threads * cells, len(work))) as pool:
            for events in pool.map(partial(shielded, do=do), work):
                yield from events


def _log_refusals(events: Iterable[Event]) -> None:
    """Not every action has a run that shows why it failed: each reason once, in AWS's words."""
    failed = [each for each in events if isinstance(each, NotCarriedOut) and (each.about or each.key)]
    for reason in dict.fromkeys(each.reason for each in failed if not each.passing and each.reason != TIME_WAS_UP):
        log.warning("%s", reason)


def _of(kind: type[A], actions: Iterable[Any]) -> Iterator[A]:
    return (action for action in actions if isinstance(action, kind))


_KINDS = (
    CloseRun, DeregisterDefinition, DeregisterTargets, FoldHistory, Launch, LookAtTasks, LookUpHosts, PrepareRun,
    ReadConsole, ReadFailures, ReadHistory, RegisterTargets, ResolveLaunches, SetHostStatus, SetTarget, StopAttempt,
    StopOrphan, Terminate, VerifyResult,
)  # fmt: skip


def _by_turns(launches: Sequence[Launch]) -> list[Launch]:
    """One launch of each cell in turn, in each cell's order, because every cell has its own launch rate."""
    by_cell: dict[str, list[Launch]] = {}
    for action in launches:
        by_cell.setdefault(action.cell, []).append(action)
    turns = zip_longest(*by_cell.values())
    return [action for turn in turns for action in turn if action is not None]


def _first_of_each_new_run(launches: Iterable[Launch], state: State) -> list[Launch]:
    first: dict[str, Launch] = {}
    for action in launches:
        run = state.runs.get(action.key.run_id)
        if run is not None and run.attempts == 0:
            first.setdefault(run.id, action)
    return list(first.values())


class EcsPolls:
    """DescribeTasks for the tasks of every cell."""

    def __init__(self, cells: Mapping[str, Cell], clock: Callable[[], float]) -> None:
        self._cells, self._clock = cells, clock

    def look(self, action: LookAtTasks, deadline: float) -> Iterator[Event]:
        """What ECS shows, as of the time of the call. A sweep finds the tasks that ECS has forgotten."""
        cell = self._cells.get(action.cell)
        if cell is None:
            yield NotCarriedOut(f"there is no cell {action.cell}")
            return
        for chunk in chunks(list(action.arns)):
            if self._clock() >= deadline or not cell.rates.reads.take(deadline):
                yield NotCarriedOut(TIME_WAS_UP)
                return
            at = self._clock()
            try:
                answer = cell.ecs.describe_tasks(cluster=cell.cluster, tasks=chunk)
            except AWS_ERRORS as error:
                fault = classify(error)
                if fault.kind is FailureKind.THROTTLED:
                    cell.rates.reads.throttled()
                yield NotCarriedOut(fault.text, passing=fault.passing)
                return
            yield from read_each(partial(_seen, at=at), answer["tasks"])


def _seen(task: Mapping[str, Any], at: float) -> TaskSeen:
    return replace(task_seen(task), looked_at=at)
