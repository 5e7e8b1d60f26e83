"""Which targets lead to the live tasks of an environment?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from argosy.model.environments import Environment
from argosy.model.ports import MASK
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.targets import TargetPlace


class PlacedTask(NamedTuple):
    """A live attempt, and where requests reach it."""

    run: Run
    row: int
    place: TargetPlace


def places_of(state: State, env: Environment) -> Iterator[PlacedTask]:
    """Of its runs that are not suspended."""
    for run_id in env.all_runs():
        run = state.runs.get(run_id)
        if run is None or run.terms.service is None or not run.terms.service.target_group:
            continue
        for row in state.attempts.of_run(run.number).tolist():
            place = place_of(state, run, row)
            if place is not None:
                yield PlacedTask(run, row, place)


def place_of(state: State, run: Run, row: int) -> TargetPlace | None:
    """The first port that the spec names; None while it is not known, or without a target group."""
    port = int(state.attempts["host_ports"][row]) & MASK
    if run.terms.service is None or not run.terms.service.target_group or not port:
        return None
    return TargetPlace(run.terms.service.target_group, bytes(state.attempts["instance"][row]).decode(), port)
