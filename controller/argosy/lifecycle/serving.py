"""Does a service's task serve, and where is it reached? What a sighting of it says about both.

ECS neither sends an event when the health of a container changes nor raises the version of its task, as far as is
known. So this is taken in whatever the version says, in the order of the looks.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.model.arns import name_of
from argosy.model.attempts import TaskHealth
from argosy.model.events import TaskSeen
from argosy.model.ports import packed
from argosy.model.state import State

_SAID = {"HEALTHY": TaskHealth.HEALTHY, "UNHEALTHY": TaskHealth.UNHEALTHY}


def begin_look(state: State, arns: Sequence[str], now: float) -> None:
    """Whether or not it comes to anything, the next one waits for its time. Tasks that ended are forgotten."""
    if len(state.health_looks) > len(state.attempts.row_of_task_id):
        state.health_looks = {
            task_id: at for task_id, at in state.health_looks.items() if task_id in state.attempts.row_of_task_id
        }
    state.health_looks |= {name_of(arn).encode(): now for arn in arns}


def note(state: State, row: int, seen: TaskSeen) -> None:
    """Of the live attempt in the row."""
    _note_health(state, row, seen)
    if seen.ports:
        run = state.run_by_number(int(state.attempts["run"][row]))
        ports = packed(run.terms.ports, seen.ports) if run is not None else 0
        if ports and ports != state.attempts["host_ports"][row]:
            state.attempts.set(row, host_ports=ports)


def _note_health(state: State, row: int, seen: TaskSeen) -> None:
    """UNKNOWN says nothing: ECS also shows it while it does not hear from the agent, and the container goes on."""
    task_id = name_of(seen.arn).encode()
    if not seen.looked_at or seen.looked_at < state.health_looks.get(task_id, 0.0):
        return
    state.health_looks[task_id] = seen.looked_at
    health = _SAID.get(seen.health)
    if health is not None and health != state.attempts["health"][row]:
        state.attempts.set(row, health=health, health_since=seen.looked_at)
