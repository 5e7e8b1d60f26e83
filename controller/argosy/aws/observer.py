"""The full sweep of ECS and EC2, which repairs what events have missed (DESIGN D5).

Describing costs as many calls as listing. So the sweep lists the tasks that are meant to run, and describes only those
about which the listing and the controller disagree: tasks that the controller has not recorded as running, and tasks
that it has recorded as alive but that are not listed (such as stopped ones, which DescribeTasks knows for an hour).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from argosy.aws.cell import Cell, chunks, pages, read_each
from argosy.aws.errors import AWS_ERRORS, NO_CLUSTER, FailureKind, classify
from argosy.aws.fleets import AwsFleets
from argosy.aws.reservations import reservations
from argosy.messages.ecs import container_instance_seen, task_seen
from argosy.model.arns import cell_of, name_of
from argosy.model.attempts import AttemptStatus
from argosy.model.events import (
    ActionFailed,
    ContainerInstanceSeen,
    Event,
    FleetSeen,
    HostSeen,
    NotCarriedOut,
    Observed,
    TaskSeen,
)
from argosy.model.pools import ReservationSeen
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

# No call begins after this. Waiting, execution, the sweep and one call under way then fit into the time that an
# invocation keeps in reserve (loop.RESERVE_S).
SWEEP_LIMIT_S = 25.0
# After this, a sweep of thousands of instances continues in the next tick. Launches wait during the sweep, and AWS's
# bucket holds about two seconds of them (100 calls at 40/s), less the time for deciding and committing.
SLICE_S = 0.5

log = logging.getLogger(__name__)
Wait = Callable[[Cell], None]  # for a read of that cell; raises when there is no time for it


class _SweepCutShort(Exception):
    """There is no time for the rest of the sweep, or the rate of reads leaves no room for it."""


class Observer:
    """Sweeps every cell. A sweep that breaks off is marked so: then the absence of a task proves nothing."""

    def __init__(
        self,
        cells: Mapping[str, Cell],
        fleets: AwsFleets,
        clock: Callable[[], float],
        keep_alive: Callable[[], None] = lambda: None,
    ) -> None:
        """keep_alive: called before every request."""
        self._cells, self._fleets, self._clock, self._keep_alive = cells, fleets, clock, keep_alive
        self._sweep: Generator[None, None, Observed] | None = None  # the sweep under way
        self._deadline = 0.0  # of its current piece
        self.state: State | None = None  # the controller's view; the sweep accounts for each of its tasks

    def observe(self, now: float) -> Observed | None:
        """Do the next piece of a sweep. Returns a complete sweep's sightings, as of the time at which it began."""
        began = self._clock()
        self._deadline = began + SWEEP_LIMIT_S
        self._sweep = self._sweep or self._swept(now)
        try:
            while self._clock() - began < SLICE_S:
                next(self._sweep)
        except StopIteration as end:
            self._sweep = None
            return cast(Observed, end.value)
        return None

    def _check_time(self) -> None:
        self._keep_alive()
        if self._clock() >= self._deadline:
            raise _SweepCutShort("it took too long")

    def _swept(self, now: float) -> Generator[None, None, Observed]:
        """Yields wherever a pause is possible. Things with a version come first. Fleets, hosts and doubtful tasks are
        listed without a pause at the end, so that nothing happens between listing them and applying the listing."""
        tasks: list[TaskSeen] = []
        instances: list[ContainerInstanceSeen] = []
        hosts: list[HostSeen] = []
        fleets: list[FleetSeen] = []
        reserved: list[ReservationSeen] = []
        faults: list[ActionFailed | NotCarriedOut] = []
        gather = partial(_gather, faults)
        whole = {"tasks": True, "container instances": True, "hosts": True}
        for cell in self._cells.values():
            listed = _container_instances(cell, self._wait)
            whole["container instances"] &= yield from gather(instances, listed, cell, "container instances")
            whole["tasks"] &= yield from gather(tasks, self._tasks(cell), cell, "tasks")
        again: list[TaskSeen] = []
        for cell in self._cells.values():
            whole["tasks"] &= _all_of(gather(again, self._doubtful(cell, tasks), cell, "tasks"))
        newer = {seen.arn: seen for seen in again}
        tasks = [newer.get(seen.arn, seen) for seen in tasks]
        whole_cells, reservations_read = set[str](), set[str]()
        for cell in self._cells.values():
            all_fleets = _all_of(gather(fleets, self._fleets.fleets(cell, now, self._check_time), cell, "fleets"))
            all_hosts = _all_of(gather(hosts, self._fleets.hosts(cell, self._check_time), cell, "hosts"))
            whole_cells |= {cell.name} if all_fleets and all_hosts else set()
            whole["hosts"] &= all_hosts
            listed = reservations(cell, self._check_time)
            reservations_read |= {cell.name} if _all_of(gather(reserved, listed, cell, "reservations")) else set()
        return Observed(
            at=now,
            tasks=tuple(tasks),
            container_instances=tuple(instances),
            hosts=tuple(hosts),
            fleets=tuple(fleets),
            tasks_complete=whole["tasks"],
            container_instances_complete=whole["container instances"],
            hosts_complete=whole["hosts"],
            whole_cells=frozenset(whole_cells),
            cells=frozenset(self._cells),
            reservations=tuple(reserved),
            reservations_read=frozenset(reservations_read),
            unread=tuple(fault for fault in faults if isinstance(fault, ActionFailed)),
            broken_off=tuple(fault for fault in faults if isinstance(fault, NotCarriedOut)),
        )

    def _wait(self, cell: Cell) -> None:
        """For the next read of the cell's ECS. Raises _SweepCutShort."""
        self._check_time()
        if not cell.rates.reads.take(self._deadline):
            raise _SweepCutShort("it took too long")

    def _tasks(self, cell: Cell) -> Iterator[Event]:
        """Raises AWS_ERRORS, _SweepCutShort."""
        running, alive = self._believed(cell.name)
        unsure: list[str] = []
        for arn in _listed(cell, self._wait, "list_tasks", "taskArns", desiredStatus="RUNNING"):
            task_id = name_of(arn)
            alive.discard(task_id)
            if task_id in running:
                yield TaskSeen(arn=arn, version=0, last_status="RUNNING", desired_status="RUNNING")  # nothing new
            else:
                unsure.append(arn)
        for chunk in chunks(unsure + sorted(alive)):
            self._wait(cell)
            answer = cell.ecs.describe_tasks(cluster=cell.cluster, tasks=chunk)
            yield from read_each(task_seen, answer["tasks"])

    def _doubtful(self, cell: Cell, seen: Sequence[TaskSeen]) -> Iterator[Event]:
        """Tasks that were alive when listed and have since ended in the controller's state: a sweep may take a minute,
        and these would look like tasks without a run. Raises AWS_ERRORS, _SweepCutShort."""
        here = [
            each.arn for each in seen if each.key and each.last_status != "STOPPED" and cell_of(each.arn) == cell.name
        ]
        _, alive = self._believed(cell.name) if here else (set(), set())
        for chunk in chunks([arn for arn in here if name_of(arn) not in alive]):
            self._wait(cell)
            answer = cell.ecs.describe_tasks(cluster=cell.cluster, tasks=chunk)
            yield from read_each(task_seen, answer["tasks"])

    def _believed(self, cell_name: str) -> tuple[set[str], set[str]]:
        """Ids of the cell's tasks that the controller counts as running, and of those it counts as alive at all."""
        running: set[str] = set()
        alive: set[str] = set()
        if self.state is None:
            return running, alive
        attempts, suspended = self.state.attempts, self.state.suspended_numbers()
        for row in attempts.with_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING).tolist():
            if attempts["left_at"][row] and int(attempts["run"][row]) in suspended:
                continue  # asked about once its run is tried again
            instance = self.state.instance_of(row)
            if instance is None or instance.cell == cell_name:
                task_id = bytes(attempts["task_id"][row]).decode()
                alive.add(task_id)
                if attempts["status"][row] == AttemptStatus.RUNNING.value:
                    running.add(task_id)
        return running, alive


def _container_instances(cell: Cell, wait: Wait) -> Iterator[Event]:
    """Raises AWS_ERRORS, _SweepCutShort."""
    arns = list(_listed(cell, wait, "list_container_instances", "containerInstanceArns"))
    for chunk in chunks(arns):
        wait(cell)
        answer = cell.ecs.describe_container_instances(
            cluster=cell.cluster, containerInstances=chunk, include=["CONTAINER_INSTANCE_HEALTH"]
        )
        read = partial(container_instance_seen, cell=cell.name, listed=True)
        yield from read_each(read, answer["containerInstances"])


def _listed(cell: Cell, wait: Wait, operation: str, member: str, **filters: str) -> Iterator[str]:
    def call(**request: Any) -> dict[str, Any]:
        wait(cell)
        return dict(getattr(cell.ecs, operation)(**request))

    for page in pages(call, cluster=cell.cluster, maxResults=100, **filters):
        yield from page[member]


def _all_of(gathering: Generator[None, None, bool]) -> bool:
    """The result of gathering without a pause."""
    while True:
        try:
            next(gathering)
        except StopIteration as end:
            return bool(end.value)


def _gather(
    faults: list[ActionFailed | NotCarriedOut], into: list[Any], listing: Iterable[Any], cell: Cell, what: str
) -> Generator[None, None, bool]:
    """Collect what the listing shows, with a pause after each item. False when it broke off or Argosy could not read
    all of it: then absence from the listing proves nothing."""
    known = len(faults)
    try:
        for each in listing:
            (faults if isinstance(each, ActionFailed) else into).append(each)
            yield
    except _SweepCutShort as broke_off:
        log.warning("the listing of %s in %s failed: %s", what, cell.name, broke_off)
        return False
    except AWS_ERRORS as error:
        fault = classify(error)
        if fault.kind is FailureKind.THROTTLED and what in ("tasks", "container instances"):
            cell.rates.reads.throttled()
        sentence = f"the {what} of {cell.name} cannot be listed: {fault.text}"
        log.warning(sentence)
        faults.append(NotCarriedOut(sentence, about=Subject(Act.LIST, f"{what} {cell.name}"), passing=fault.passing))
        # The stack of a cell that the settings name may not be there yet, or not any more. Its listings are empty, and
        # those of the other cells stay complete: otherwise nothing could be found lost anywhere.
        return fault.code == NO_CLUSTER
    return len(faults) == known
