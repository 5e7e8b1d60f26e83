"""Facts that decide how AWS reads its contracts (`model.readings`). Nothing is asked for them."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.model.arns import name_of
from argosy.model.attempts import AttemptStatus, StopCause
from argosy.model.events import FleetSeen, NotCarriedOut, Observed, PoolShort, TargetAccepted, TaskSeen
from argosy.model.instances import Instance, Purchase
from argosy.model.pools import Pool
from argosy.model.readings import (
    DELETED_OVER_LIMIT,
    DOCKER_BLOCKS,
    OLD_TARGET,
    ONLY_ACTIVE,
    PULL_SURVIVES,
    PULL_TOLD,
    ROOM_BACK_EARLY,
    Sighting,
)
from argosy.model.run_terms import RUNNER_ATTRIBUTE
from argosy.model.setbacks import Act
from argosy.model.state import State

NOT_MODIFIABLE = "FleetNotInModifiableState"  # of a fleet that is deleted or, under one reading, being modified
DELETED_WITHIN_S = 60.0  # a fleet that is listed so long after it exceeded a quota was not deleted for it
LEAST_PULL_S = 30.0  # a shorter part of a pull says nothing about the next one
SETTLED_S = 5.0  # by then, ECS has counted a launch


def note(state: State, reading: str, holds: bool, saw: str, at: float) -> None:
    """The first sighting of an answer is kept until another answer is seen."""
    known = state.readings.seen.get(reading)
    if known is None or known.holds != holds:
        state.readings.seen[reading] = Sighting(holds, saw, at)


def note_target(state: State, pool: Pool, told: TargetAccepted) -> None:
    if not told.fleet_id:
        state.readings.accepted[pool.fleet_id] = told.spot_target


def note_refusal(state: State, event: NotCarriedOut) -> None:
    """A target that EC2 did not accept, as far as is known. The refusal of a surplus fleet looks the same."""
    pool = state.pools.get(event.about.id) if event.about and event.about.what is Act.TARGET else None
    if pool is None:
        return
    state.readings.accepted.pop(pool.fleet_id, None)
    if NOT_MODIFIABLE in event.reason and not pool.surplus:
        state.readings.refused.add(pool.fleet_id)


def note_shortage(state: State, pool: Pool, event: PoolShort, now: float) -> None:
    """Only EC2's events name a fleet; a call that was refused changed nothing."""
    if event.over_quota and event.pool == pool.fleet_id and event.only in (None, Purchase.SPOT):
        state.readings.over_quota.setdefault(pool.fleet_id, now)


def see_fleet(state: State, seen: FleetSeen, now: float) -> None:
    """A live fleet, as a listing showed it."""
    known, fleet = state.readings, seen.fleet_id
    if fleet in known.refused:
        known.refused.discard(fleet)
        note(state, ONLY_ACTIVE, True, f"{fleet} refused a target ({NOT_MODIFIABLE}) and was not deleted", now)
    if fleet in known.over_quota and now - known.over_quota[fleet] >= DELETED_WITHIN_S:
        del known.over_quota[fleet]
        note(state, DELETED_OVER_LIMIT, False, f"{fleet} exceeded a quota and is still there", now)
    if not seen.is_modifying:
        known.shown[fleet] = seen.spot_target
        known.accepted.pop(fleet, None)
        return
    shown, accepted = known.shown.get(fleet), known.accepted.get(fleet)
    # A fleet that shows the accepted target decides nothing: it may have been modified twice, by another controller.
    if None not in (shown, accepted) and seen.spot_target == shown != accepted:
        saw = f"{fleet} showed the target {shown} while it was modified from {shown} to {accepted}"
        note(state, OLD_TARGET, True, saw, now)


def miss_fleets(state: State, gone: Mapping[str, bool], now: float) -> None:
    """A complete listing lacks these fleets. If others are gone as well, or one was replaced, the owner may have
    deleted them. gone: whether another fleet took the place of each."""
    over_quota = [fleet for fleet in gone if state.readings.over_quota.pop(fleet, 0.0)]
    if len(over_quota) == len(gone) and not any(gone.values()):
        for fleet in over_quota:
            note(state, DELETED_OVER_LIMIT, True, f"{fleet} exceeded a quota and is no longer listed", now)


def note_runner(state: State, instance: Instance) -> None:
    """An instance has just joined. If the runner is missing, its download may have failed: that decides nothing."""
    if RUNNER_ATTRIBUTE in instance.attributes:
        note(state, DOCKER_BLOCKS, False, f"{instance.id} joined with the runner", instance.registered_at)


def note_cut_pull(state: State, row: int, seen: TaskSeen, image: str) -> None:
    """The attempt in a row has started or ended. image: its `image_key`."""
    table, instance = state.attempts, state.instance_of(row)
    began = seen.pull_started_at or float(table["pull_started_at"][row])
    pulled_s = seen.stopped_at - began
    is_cut = began and not (seen.pull_stopped_at or seen.started_at or table["pull_stopped_at"][row])
    is_ours = table["stop_cause"][row] != StopCause.NONE.value and table["status"][row] == AttemptStatus.LAUNCHED.value
    if is_cut and is_ours and instance is not None and pulled_s >= LEAST_PULL_S and image not in instance.images:
        state.readings.cut_pulls[instance.id, image] = pulled_s


def note_pull_told(state: State, seen: TaskSeen) -> None:
    """A task that has not started shows a pull."""
    if seen.last_status == "PENDING" and not seen.pull_stopped_at:
        saw = f"{name_of(seen.arn)} was {seen.last_status} and showed its pull"
        note(state, PULL_TOLD, True, saw, seen.pull_started_at)


def note_pull(state: State, instance: Instance, image: str, pull_s: float, at: float) -> None:
    """A pull that starts from nothing takes longer than the part of it that was not enough. A longer one decides
    nothing, as the whole of it is not known."""
    cut_s = state.readings.cut_pulls.pop((instance.id, image), 0.0)
    if pull_s < cut_s / 2:
        saw = f"on {instance.id} a pull took {pull_s:.0f} s, after one that was stopped after {cut_s:.0f} s"
        note(state, PULL_SURVIVES, True, saw, at)


def see_room(state: State, sweep: Observed) -> None:
    """Instances whose rooms ECS showed while tasks of ours were stopping there. A sweep lists the tasks last: one that
    has not ended in it had not when its instance was listed."""
    table, needs, stopping = state.attempts, state.needs_by_number(), dict[str, int]()
    for task in sweep.tasks:
        if task.desired_status != "STOPPED" or task.last_status == "STOPPED":
            continue
        row = table.row_of_task_id.get(name_of(task.arn).encode())
        if row is not None and 0 < table["stop_at"][row] <= sweep.at:
            instance_id, run = bytes(table["instance"][row]).decode(), int(table["run"][row])
            stopping[instance_id] = stopping.get(instance_id, 0) + (needs[run].cpu_units if run in needs else 0)
    if not stopping:
        return
    shown = {name_of(each.arn).encode() for each in sweep.tasks if each.last_status != "STOPPED"}
    for seen in sweep.container_instances:
        instance = state.instances.get(seen.instance_id) if seen.instance_id in stopping else None
        if instance is None or seen.remaining is None or any(instance.foreign) or instance.foreign_since:
            continue
        rows = table.on_instance(instance.id)
        settled = all(table["launched_at"][row] <= sweep.at - SETTLED_S for row in rows)
        if settled and all(bytes(table["task_id"][row]) in shown for row in rows):
            _see_room(state, instance, seen.remaining[0], stopping[instance.id], sweep.at)


def _see_room(state: State, instance: Instance, free: int, stopping: int, at: float) -> None:
    """free, stopping: CPU units."""
    taken, used = instance.total.cpu_units - free, state.used_on(instance.id).cpu_units
    if stopping and taken in (used, used - stopping):
        saw = f"{instance.id} had {free} CPU units free while tasks with {stopping} were stopping"
        note(state, ROOM_BACK_EARLY, taken < used, saw, at)
