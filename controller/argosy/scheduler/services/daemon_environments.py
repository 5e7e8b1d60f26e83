"""The steps of daemons: from the state to `daemons.daemon_step`, and from its result to actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from argosy.catalogue.lookup import load_catalogue
from argosy.lifecycle.pools import CLOSED
from argosy.market.daemons import Daemon, daemons_of
from argosy.model.actions import Action, Launch, NoteDesired, Remark, SetSlots, StopAttempt
from argosy.model.arns import cell_of
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.moment import Moment
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources
from argosy.model.runs import Run
from argosy.model.services.environments import DeploymentStatus, Environment
from argosy.model.setbacks import Act
from argosy.model.tasks import TERMINAL, TaskStatus
from argosy.model.wording import first_of
from argosy.scheduler.services.daemons import DaemonHost, DaemonStep, DaemonTask, PendingSlot, daemon_step
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
from argosy.scheduler.services.rollout import SlotStatus
from argosy.scheduler.supply.rows import TaskUse, attributes_of, row_of, uses_by_number
from argosy.scheduler.upkeep.upkeep import REPLACED, arn_of_row, next_key

SENT = (AttemptStatus.LAUNCHED, AttemptStatus.RUNNING)
NAMED = 3  # instances in a sentence
LARGER = "no instance runs it: its task is larger than every matching instance"


@dataclass(frozen=True, slots=True)
class _Rollout:
    """One daemon in one tick."""

    moment: Moment
    env: Environment
    runs: Sequence[Run]
    target: Run | None  # None: it is given up, or there is none
    daemon: Daemon | None  # as above
    before: Sequence[Daemon]  # daemons that are given room before it
    uses: Mapping[int, TaskUse]  # by Run.number


def daemon_rollout(moment: Moment, env: Environment) -> Iterator[Action]:
    """The next actions of one daemon; its launches are for the caller that may launch."""
    state = moment.state
    if is_left_alone(state, env):
        yield from left_alone(env)
        return
    runs = [state.runs[run_id] for run_id in env.runs() if run_id in state.runs]
    every = daemons_of(state)
    place = next((number for number, each in enumerate(every) if each.name == env.name), None)
    target = state.runs.get(env.target.run_id) if env.target is not None and place is not None else None
    daemon = None if place is None else every[place]
    yield from _steps(_Rollout(moment, env, runs, target, daemon, every[: place or 0], uses_by_number(state)))


def _steps(its: _Rollout) -> Iterator[Action]:
    env, target = its.env, its.target
    rows, tasks = _tasks(its)
    hosts = [] if its.daemon is None else list(_hosts(its, its.daemon, tasks))
    pending = [] if target is None else list(_pending(target, its.moment.now))
    service, terms = (target.terms.service, target.terms.daemon) if target is not None else (None, None)
    step = daemon_step(
        hosts,
        tasks,
        pending,
        service.min_healthy_percent if service else 0,
        starts_first=bool(terms and terms.starts_first),
        is_frozen=bool(env.frozen_reason) or (target is None and not env.deleting),
    )
    waiting = _why_starved(its, step.starved) if _may_launch(its) else target.waiting if target is not None else ""
    is_held = bool(suspended_runs(its.moment.state, env))
    standing = DeploymentCounts(len(hosts), step.healthy, step.outdated, waiting, is_held)
    notes = list(progress(its.moment, env, target, standing))
    if any(note.status is DeploymentStatus.FAILED for note in notes):
        yield from notes  # a revision that is given up in this tick starts nothing and stops nothing
        return
    yield from _slots(its, step)
    yield from _stops(its, step, rows)
    if len(hosts) != env.desired:
        yield NoteDesired(env.name, len(hosts))
    if target is not None and waiting != target.waiting:
        yield Remark(target.id, waiting, unaffordable=False)
    yield from notes
    yield from recovered(its.moment, env, standing)
    busy = {run.id for run in its.runs if len(its.moment.state.attempts.of_run(run.number))}
    yield from retirements(env, its.runs, busy, is_held=is_held)
    yield from _launches(its, step)


def _stays(instance: Instance | None) -> bool:
    """Whether tasks there may be placed and stopped. Nothing starts on an instance that drains or is about to go,
    and its tasks end with it."""
    if instance is None or not (instance.arn and instance.owned) or instance.interrupted_at or instance.rebalance_at:
        return False
    return instance.status is InstanceStatus.ACTIVE


def _tasks(its: _Rollout) -> tuple[dict[tuple[str, int], int], list[DaemonTask]]:
    """Live ones on instances that stay, and the rows of all by run and index."""
    state, found, rows = its.moment.state, list[DaemonTask](), dict[tuple[str, int], int]()
    table = state.attempts
    for run in its.runs:
        healthy_s = run.terms.service.healthy_s if run.terms.service else 0.0
        numbers = np.array(sorted(table.of_run(run.number)), dtype=np.int64)
        names = ("index", "status", "started_at", "stop_cause", "instance")
        for row, index, status, started_at, cause, name in zip(
            numbers.tolist(), *(table[name][numbers].tolist() for name in names), strict=True
        ):
            rows[run.id, index] = row
            is_healthy = status == AttemptStatus.RUNNING and its.moment.now - started_at >= healthy_s
            is_healthy &= row not in state.open_ends.failures
            so_far = SlotStatus.YOUNG if status == AttemptStatus.RUNNING else SlotStatus.STARTING
            if _stays(state.instances.get(name.decode())):
                found.append(
                    DaemonTask(
                        run.id,
                        index,
                        name.decode(),
                        SlotStatus.HEALTHY if is_healthy else so_far,
                        is_target=run is its.target,
                        is_sent=status in SENT,
                        ends=cause != StopCause.NONE,
                    )
                )
    for run_id, row in placed_rows(state, its.env):
        index, name = int(table["index"][row]), bytes(table["instance"][row]).decode()
        if _stays(state.instances.get(name)):
            found.append(DaemonTask(run_id, index, name, SlotStatus.YOUNG, is_target=False, is_sent=False))
    return rows, found


def _hosts(its: _Rollout, daemon: Daemon, tasks: Sequence[DaemonTask]) -> Iterator[DaemonHost]:
    """The instances that match. Room is checked only where it matters."""
    state, now = its.moment.state, its.moment.now
    done = Counter(task.host for task in tasks if task.is_target and not task.ends)
    is_alone = Counter(task.host for task in tasks)
    for instance in sorted(filter(_stays, state.instances.values()), key=lambda each: (each.registered_at, each.id)):
        if not daemon.wants(attributes_of(instance), instance.size, _disk_gib(its.moment, instance)):
            continue
        takes = takes_after = True
        if not (done[instance.id] and is_alone[instance.id] == done[instance.id]):
            runs = state.attempts.runs_on_instance.get(instance.id.encode(), Counter())
            own = {daemon.number, *daemon.others}
            others = Counter({number: count for number, count in runs.items() if number not in own})
            takes = not _lack(its, daemon, instance, runs)
            takes_after = not _lack(its, daemon, instance, others)
        yield DaemonHost(instance.id, _is_open(instance, now), takes, takes_after)


def _is_open(instance: Instance, now: float) -> bool:
    """Whether ECS will start a task there. Cordons that only keep batches away do not matter."""
    is_reached = instance.agent_connected and not instance.absent_since and instance.paused_until <= now
    return is_reached and not instance.cordon.startswith(CLOSED)


def _disk_gib(moment: Moment, instance: Instance) -> int:
    kind = load_catalogue().get(instance.instance_type)
    return moment.policy.task_disk_gib_of(kind) if kind else 0


def _lack(its: _Rollout, daemon: Daemon, instance: Instance, runs: Mapping[int, int]) -> str:
    """The resource that an instance with these tasks lacks; "" = there is room."""
    row = row_of(instance, runs, its.uses, its.moment.policy, its.before)
    short = Resources(
        *(
            max(0, need - free)
            for need, free in zip(daemon.needs.cpu_memory_gpus, (row.cpu_units, row.memory_mib, row.gpus), strict=True)
        )
    )
    told = [f"{short.cpu_units / CPU_UNITS_PER_VCPU:g} vCPU"] if short.cpu_units else []
    told += [f"{short.memory_mib} MiB"] if short.memory_mib else []
    disk_gib = max(0, row.disk_gib)
    told += [f"{daemon.disk_gib - disk_gib} GiB of disk"] if daemon.disk_gib > disk_gib else []
    taken = sorted(row.used_host_ports.intersection(daemon.host_ports))
    told += [f"port {port}/{protocol}" for port, protocol in taken]
    told += ["a place for one more task"] if (row.most_tasks or 0) <= row.running_tasks else []
    return " and ".join(told)


def _pending(target: Run, now: float) -> Iterator[PendingSlot]:
    table = target.tasks
    for index in np.flatnonzero(table["status"] == TaskStatus.PENDING.value).tolist():
        name = bytes(table["instance"][index]).decode()
        yield PendingSlot(index, name, is_due=float(table["not_before"][index]) <= now)


def _slots(its: _Rollout, step: DaemonStep) -> Iterator[SetSlots]:
    """Existing rows are used again before new ones are added, and none is removed."""
    for run in its.runs:
        if run is not its.target and not run.halted:
            pending = np.flatnonzero(run.tasks["status"] == TaskStatus.PENDING.value).tolist()
            if pending:
                yield SetSlots(run.id, parked=tuple(pending))
    target = its.target
    starts = min(step.starts, its.moment.policy.max_launches_per_tick)
    if target is not None and (starts or step.parks):
        free = np.flatnonzero(np.isin(target.tasks["status"], TERMINAL))[:starts].tolist()
        more = range(target.task_count, target.task_count + starts - len(free))
        yield SetSlots(target.id, (*free, *more), step.parks, rows=max(target.task_count, more.stop))


def _stops(its: _Rollout, step: DaemonStep, rows: Mapping[tuple[str, int], int]) -> Iterator[StopAttempt]:
    state = its.moment.state
    for task in step.stops:
        row = rows[task.run_id, task.index]
        arn, key = arn_of_row(state, row), state.key_of(row)
        if arn is not None and key is not None:
            yield StopAttempt(arn, cell_of(arn), key, StopCause.REPLACED, REPLACED)


def _may_launch(its: _Rollout) -> bool:
    """Otherwise the run itself states its reason: its definition, or that ECS has to accept its launches."""
    target, now = its.target, its.moment.now
    return target is not None and target.ready and its.moment.state.may_try(Act.LAUNCH, target.id, now)


def _launches(its: _Rollout, step: DaemonStep) -> Iterator[Launch]:
    """Launches pinned to their instances. Their waves count among all launches of the tick."""
    state, target = its.moment.state, its.target
    if target is None or not _may_launch(its):
        return
    for index, name in step.launches[: its.moment.policy.max_launches_per_tick]:
        attempts, launch = (int(target.tasks[column][index]) for column in ("attempts", "launch"))
        wave = state.next_wave
        key = next_key(target.id, index, attempts, launch)
        yield Launch(key, wave, state.started_by(wave), name, state.instances[name].cell)


def _why_starved(its: _Rollout, starved: Sequence[str]) -> str:
    """The full instances and their exhausted resources; or that none is large enough."""
    state, daemon = its.moment.state, its.daemon
    if daemon is None:
        return ""
    if starved:
        told = [f"{name} ({_short_of(its, daemon, state.instances[name])})" for name in starved[:NAMED]]
        told = first_of(told, NAMED, len(starved))
        return f"no room for it on {', '.join(told)}: it waits, and stops no other task"
    return _too_large(its, daemon)


def _short_of(its: _Rollout, daemon: Daemon, instance: Instance) -> str:
    state = its.moment.state
    runs = state.attempts.runs_on_instance.get(instance.id.encode(), Counter())
    own = {daemon.number, *daemon.others} if not daemon.starts_first else set()
    others = {number: count for number, count in runs.items() if number not in own}
    return f"short of {_lack(its, daemon, instance, others)}"


def _too_large(its: _Rollout, daemon: Daemon) -> str:
    """The reason when all matching instances are too small."""
    matching = [each for each in its.moment.state.instances.values() if _stays(each) and _matches(daemon, each)]
    if not matching or any(daemon.fits(each.size, _disk_gib(its.moment, each)) for each in matching):
        return ""
    largest = Resources(*map(max, zip(*(each.total for each in matching), strict=True)))
    needs = f"{daemon.needs.cpu_units / CPU_UNITS_PER_VCPU:g} vCPU and {daemon.needs.memory_mib} MiB"
    has = f"{largest.cpu_units / CPU_UNITS_PER_VCPU:g} vCPU and {largest.memory_mib} MiB"
    return f"{LARGER}: it needs {needs}, and they have at most {has}"


def _matches(daemon: Daemon, instance: Instance) -> bool:
    return daemon.matches(attributes_of(instance))
