"""Launches among the placed tasks, within the rates of the tick and of each cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from argosy.gangs.members import units
from argosy.model.actions import Launch
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Instance
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.scheduler.turns.asks import Ask
from argosy.scheduler.turns.fair_share import LaunchRoom
from argosy.scheduler.turns.turns import Turns
from argosy.scheduler.upkeep.upkeep import next_key


def launches(turns: Turns, placed: Sequence[tuple[int, str, int]]) -> list[Launch]:
    """As many of the placed tasks, (ask, instance id, count) each, as the tick and a cell may start."""
    moment, asks, dealing = turns.present.moment, turns.asks, turns.share
    state, policy = moment.state, moment.policy
    found: list[Launch] = []
    room, cell_room = policy.max_launches_per_tick, _cell_room(state, policy)
    if dealing is not None and placed:
        cell_of = {name: state.instances[name].cell for _, name, _ in placed}
        may_start = LaunchRoom(room, cell_room, max(1, policy.max_promised_documents // 2))
        placed = dealing.launched(_startable(moment, asks, placed), cell_of, may_start)
    next_index = {
        number: iter(asks[number].run.tasks.startable(moment.now, room, asks[number].among).tolist())
        for number in {number for number, _, _ in placed}
    }
    for number, instance_id, count in placed:
        instance, run = state.instances[instance_id], asks[number].run
        indexes = list(islice(next_index[number], max(0, min(room, cell_room[instance.cell], count))))
        room -= len(indexes)
        cell_room[instance.cell] -= len(indexes)
        first = len(found)
        found += [
            _launch(state, run, index, instance, (first + offset) // policy.wave_size)
            for offset, index in enumerate(indexes)
        ]
    return found


def _startable(
    moment: Moment, asks: Sequence[Ask], placed: Sequence[tuple[int, str, int]]
) -> list[tuple[int, str, int]]:
    """Without the tasks in back-off."""
    left = {
        number: asks[number].run.tasks.startable_count(moment.now, asks[number].among)
        for number in {number for number, _, _ in placed}
    }
    found = []
    for number, name, count in placed:
        if (now := min(count, left[number])) > 0:
            left[number] -= now
            found.append((number, name, now))
    return found


def in_waves(state: State, policy: Policy, launches: Sequence[Launch]) -> list[Launch]:
    """As many launches as the tick and the cells may start, in order, in consecutive waves."""
    room = policy.max_launches_per_tick - len(state.attempts.with_status(AttemptStatus.INTENT))  # sent now or later
    cell_room, found = _cell_room(state, policy), list[Launch]()
    for unit in units(state, launches):
        if len(found) + len(unit) <= room and cell_room[unit[0].cell] >= len(unit):
            cell_room[unit[0].cell] -= len(unit)
            for launch in unit:
                number = state.next_wave + len(found) // policy.wave_size
                found.append(replace(launch, wave=number, started_by=state.started_by(number)))
    return found


def _launch(state: State, run: Run, index: int, instance: Instance, wave: int) -> Launch:
    """wave: the number of full waves in this tick."""
    key = next_key(run.id, index, int(run.tasks["attempts"][index]), int(run.tasks["launch"][index]))
    number = state.next_wave + wave
    return Launch(key, number, state.started_by(number), instance.id, instance.cell)


def _cell_room(state: State, policy: Policy) -> defaultdict[str, int]:
    """How many launches each cell can still take: unsent launches count against its rate."""
    room: defaultdict[str, int] = defaultdict(lambda: policy.launches_per_cell)
    for row in state.attempts.with_status(AttemptStatus.INTENT).tolist():
        instance = state.instance_of(row)
        if instance is not None:
            room[instance.cell] -= 1
    return room
