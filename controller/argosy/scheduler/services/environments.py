"""Environments: from the state to the slots of a rollout, and from its steps to actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from argosy.model.actions import (
    Action,
    DrainTask,
    EnvironmentFailed,
    Launch,
    LookAtTasks,
    RetireRun,
    SetSlots,
    StopAttempt,
)
from argosy.model.arns import cell_of
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.instances import Instance
from argosy.model.live_tasks import all_are_well, failing_rows, healthy_rows
from argosy.model.moment import Moment
from argosy.model.run_terms import ServiceTerms
from argosy.model.runs import Run
from argosy.model.services.environments import DeploymentStatus, Environment
from argosy.model.tasks import TERMINAL, TaskStatus
from argosy.scheduler.services.daemon_environments import daemon_rollout
from argosy.scheduler.services.deployments import (
    DeploymentCounts,
    is_left_alone,
    left_alone,
    placed_rows,
    progress,
    recovered,
    retirements,
    suspended_runs,
)
from argosy.scheduler.services.rollout import Slot, SlotStatus, Step, step
from argosy.scheduler.services.targets import begin_to_drain, drained_first, target_steps
from argosy.scheduler.supply.kept_instances import emptied_for
from argosy.scheduler.turns.asks import base_of, lacking
from argosy.scheduler.upkeep.health_polls import looks
from argosy.scheduler.upkeep.upkeep import SAID_AGAIN, arn_of_row, ends_with_instance

STATUSES = tuple(SlotStatus)
NOWHERE = ServiceTerms(0, 0, 0, 0.0, 0.0, rolls_back=False, target_group="", drain_s=0.0, content="")


@dataclass(frozen=True, slots=True)
class ServiceSteps:
    """The result of `service_steps`: the steps of services and daemons in one tick.

    Example: a deployment of service `web` starts a second task next to the old one, and stops the old one once the new
    one is healthy. In the first tick `steps` is (SetSlots("web-2", (0,)),) and `grows` is True; in the last one `steps`
    is (StopAttempt of the old task,), or (DrainTask,) while a load balancer still sends it requests.
    """

    stops: Sequence[Action]  # the stops passed in, delayed where a load balancer has to drain first
    steps: Sequence[Action] = ()
    looks: Sequence[LookAtTasks] = ()  # at the health of tasks
    launches: Sequence[Launch] = ()  # of daemons, because their room is kept for them
    given_up: frozenset[str] = frozenset()  # ids of runs that launch and buy nothing in this tick
    grows: bool = False  # a service needs more tasks, placed in the next tick; instances that could take them stay


def service_steps(moment: Moment, stops: Iterable[StopAttempt]) -> ServiceSteps:
    """stops: those required for other reasons."""
    wanted = rollouts(moment)
    ends = (*drained_first(moment, stops),)
    steps = (*drained_first(moment, (each for each in wanted if not isinstance(each, Launch))),)
    told = {each.key for each in (*ends, *steps) if isinstance(each, StopAttempt | DrainTask)}
    runs = moment.state.runs
    launches = tuple(each for each in wanted if isinstance(each, Launch))
    grows = any(isinstance(each, SetSlots) and each.wanted and not runs[each.run_id].is_daemon for each in wanted)
    return ServiceSteps(
        stops=ends,
        steps=(*steps, *target_steps(moment, told)),
        looks=tuple(looks(moment)),
        launches=launches,
        given_up=frozenset(given_up_by(steps)),
        grows=grows,
    )


@dataclass(frozen=True, slots=True)
class Tasks:
    """The live tasks of an environment. wanted: without those asked to stop."""

    wanted: tuple[Slot, ...]
    rows: dict[tuple[str, int], int]  # of live attempts: (run, index) -> row
    ending: dict[str, int]  # by run, attempts that were asked to stop


class _Host(NamedTuple):
    """An instance as its tasks see it. ends: its tasks have been asked to stop, because the instance ends."""

    leaves: bool
    is_spot: bool
    ends: bool


class _Hosts(dict[bytes, _Host]):
    """By name. Each is looked up once a tick, however many tasks run there."""

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self._moment = moment
        self.emptied = {name.encode(): number for name, number in emptied_for(moment.state, moment.now).items()}
        """By name, the run that the instance is emptied for."""

    def __missing__(self, name: bytes) -> _Host:
        instance = self._moment.state.instances.get(name.decode())
        is_spot = instance is None or instance.purchase.may_be_taken_back
        found = self[name] = _Host(_leaves(instance), is_spot, ends_with_instance(instance, self._moment))
        return found


def rollouts(moment: Moment) -> list[Action]:
    """The steps of all environments, and launches of daemons for the caller that may launch. One on which our own code
    fails is left unchanged."""
    found, hosts, leaving = list[Action](), _Hosts(moment), _leaving(moment)
    for env in moment.state.environments.values():
        try:
            if env.is_daemon:
                found += daemon_rollout(moment, env)
            else:
                found += [] if _is_steady(moment, env, leaving) else list(_rollout(moment, env, hosts))
        except Exception as error:  # noqa: BLE001 - no error may stop other environments
            found.append(EnvironmentFailed(env.name, f"{type(error).__name__}: {error}"))
    return found


def given_up_by(steps: Sequence[Action]) -> set[str]:
    """Ids of runs that retire or give up tasks in this tick: they launch and buy nothing in it."""
    return {
        each.run_id for each in steps if isinstance(each, RetireRun) or (isinstance(each, SetSlots) and each.parked)
    }


def _leaving(moment: Moment) -> frozenset[bytes]:
    """Names of instances whose tasks are replaced."""
    state = moment.state
    going = {name for name, instance in state.instances.items() if _leaves(instance)}
    return frozenset(name.encode() for name in going | emptied_for(state, moment.now).keys())


def _leaves(instance: Instance | None) -> bool:
    return instance is None or instance.leaves or bool(instance.interrupted_at)


def _is_steady(moment: Moment, env: Environment, leaving: frozenset[bytes]) -> bool:
    """Whether there is nothing to do, found by columns: of 200 environments few change."""
    state = moment.state
    runs = [state.runs[run_id] for run_id in env.runs() if run_id in state.runs]
    is_quiet = env.deployment is not None and env.deployment.has_ended and not env.is_failing
    is_quiet = is_quiet and not (env.frozen_reason or env.deleting)
    if not is_quiet or len(runs) != 1 or env.target is None or runs[0].id != env.target.run_id or runs[0].halted:
        return False
    counts = runs[0].tasks.counts()
    if counts[TaskStatus.RUNNING] != env.desired or counts[TaskStatus.PENDING] or counts[TaskStatus.STARTING]:
        return False
    base = min(base_of(runs[0], moment), env.desired)
    if base and lacking(runs[0], moment, base):
        return False
    rows = np.array(state.attempts.of_run(runs[0].number), dtype=np.int64)
    table = state.attempts
    if not all_are_well(table, rows, runs[0].terms):
        return False
    return not (table["stop_cause"][rows].any() or leaving.intersection(table["instance"][rows].tolist()))


def _rollout(moment: Moment, env: Environment, hosts: _Hosts) -> Iterator[Action]:
    state = moment.state
    if is_left_alone(state, env):
        yield from left_alone(env)
        return
    runs = [state.runs[run_id] for run_id in env.runs() if run_id in state.runs]
    tasks = _tasks_of(moment, env, runs, hosts)
    target = state.runs.get(env.target.run_id) if env.target else None
    if target is not None and target.halted:
        target = None
    terms = target.terms.service if target is not None and target.terms.service else NOWHERE
    desired = 0 if target is None or env.deleting else env.desired
    stays_as_it_is = bool(env.frozen_reason) or (target is None and not env.deleting)
    base = base_of(target, moment) if target is not None else 0
    now = step(tasks.wanted, desired, terms, is_frozen=stays_as_it_is, base=base)
    standing = replace(_standing(env, target, tasks, now), is_held=bool(suspended_runs(state, env)))
    notes = list(progress(moment, env, target, standing))
    if any(note.status is DeploymentStatus.FAILED for note in notes):
        # A revision that is given up in this tick starts nothing and stops nothing; its pending tasks would start.
        yield from _slots(step(tasks.wanted, desired, terms, is_frozen=True), None, moment)
        yield from notes
        return
    yield from _slots(now, target, moment)
    yield from _stops(moment, tasks, now.stops, StopCause.REPLACED)
    yield from _stops(moment, tasks, now.failed, StopCause.UNHEALTHY)
    yield from notes
    yield from recovered(moment, env, standing)
    parked = {(slot.run_id, slot.index) for slot in now.parks}
    busy = {slot.run_id for slot in tasks.wanted if (slot.run_id, slot.index) not in parked} | tasks.ending.keys()
    yield from retirements(env, runs, busy, is_held=standing.is_held)


def _tasks_of(moment: Moment, env: Environment, runs: Sequence[Run], hosts: _Hosts) -> Tasks:
    """The tasks of an environment, counted."""
    found: list[Slot] = []
    state, rows = moment.state, dict[tuple[str, int], int]()
    ending: dict[str, int] = {}
    draining = begin_to_drain(moment, env)
    for run in runs:
        is_target = env.target is not None and env.target.run_id == run.id
        for row, slot, host, was_told in _alive(moment, run, is_target, hosts):
            rows[run.id, slot.index] = row
            if was_told or (slot.is_sent and (host.ends or row in draining)):
                ending[run.id] = ending.get(run.id, 0) + 1
            else:
                found.append(slot)
        if not run.halted:
            pending = np.flatnonzero(run.tasks["status"] == TaskStatus.PENDING.value).tolist()
            found += [Slot(run.id, index, SlotStatus.PENDING, is_target) for index in pending]
    of_suspended = [
        Slot(run_id, int(state.attempts["index"][row]), SlotStatus.YOUNG, is_target=False, is_sent=False)
        for run_id, row in placed_rows(state, env)
    ]
    return Tasks((*found, *of_suspended), rows, ending)


def _alive(moment: Moment, run: Run, is_target: bool, hosts: _Hosts) -> Iterator[tuple[int, Slot, _Host, bool]]:
    """The row, slot and instance of each live attempt, and whether it was asked to stop."""
    table = moment.state.attempts
    rows = np.array(sorted(table.of_run(run.number)), dtype=np.int64)
    status = table["status"][rows]
    has_failed = np.isin(rows, list(moment.state.open_ends.failures))  # and is not charged yet
    healthy = healthy_rows(table, rows, run.terms, moment.now) & ~has_failed
    so_far = np.where(
        status != AttemptStatus.RUNNING.value,
        SlotStatus.STARTING,
        np.where(healthy, SlotStatus.HEALTHY, SlotStatus.YOUNG),
    )
    is_sent = (status == AttemptStatus.LAUNCHED.value) | (status == AttemptStatus.RUNNING.value)
    was_told = table["stop_cause"][rows] != StopCause.NONE.value
    fails = failing_rows(table, rows, run.terms, moment.now)
    columns = rows, table["index"][rows], so_far, fails, is_sent, was_told, table["instance"][rows]
    for row, index, reached, ill, sent, told, name in zip(*(each.tolist() for each in columns), strict=True):
        host = hosts[name]
        leaves = host.leaves or hosts.emptied.get(name, run.number) != run.number
        yield row, Slot(run.id, index, STATUSES[reached], is_target, leaves, host.is_spot, ill, sent), host, told


def _slots(now: Step, target: Run | None, moment: Moment) -> Iterator[SetSlots]:
    by_run: dict[str, list[int]] = {}
    for slot in now.parks:
        by_run.setdefault(slot.run_id, []).append(slot.index)
    starts = min(now.starts, moment.policy.max_launches_per_tick)
    for run_id, parked in by_run.items():
        if target is None or run_id != target.id or not starts:
            yield SetSlots(run_id, parked=tuple(parked))
    if target is not None and starts:
        parked = by_run.get(target.id, [])
        free = np.flatnonzero(np.isin(target.tasks["status"], TERMINAL))[:starts].tolist()
        more = range(target.task_count, target.task_count + starts - len(free))
        yield SetSlots(target.id, (*free, *more), tuple(parked), rows=max(target.task_count, more.stop))


def _stops(moment: Moment, tasks: Tasks, slots: Sequence[Slot], cause: StopCause) -> Iterator[StopAttempt]:
    state = moment.state
    for slot in slots:
        row = tasks.rows[slot.run_id, slot.index]
        arn, key = arn_of_row(state, row), state.key_of(row)
        if arn is not None and key is not None:
            yield StopAttempt(arn, cell_of(arn), key, cause, SAID_AGAIN[cause])


def _standing(env: Environment, target: Run | None, tasks: Tasks, now: Step) -> DeploymentCounts:
    """Tasks that this tick stops are ending: the commit that completes a deployment must not stop what it counts."""
    stopped = {*now.stops, *now.failed}
    serving = [slot for slot in tasks.wanted if slot.is_target and slot not in stopped]
    healthy = sum(not slot.leaves and slot.status is SlotStatus.HEALTHY for slot in serving)
    outdated = len(tasks.wanted) - len(serving) + sum(tasks.ending.values())
    return DeploymentCounts(env.desired, healthy, outdated, target.waiting if target is not None else "")
