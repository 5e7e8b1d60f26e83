"""What does an environment do about a run of it that is suspended, because the controller's own code fails at it?

Nothing is known of such a run but what its attempts take. Where it is the one that is to run, everything is left as it
is. Where it is another one, or the environment is deleted, its other runs go on: the tasks of the suspended one count
among those that are alive, and never as healthy, and none of them is stopped for the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.model.environments import Environment
from argosy.model.state import State


def suspended_runs(state: State, env: Environment) -> list[str]:
    """Their ids."""
    return [run_id for run_id in env.runs() if run_id in state.suspended]


def is_left_alone(state: State, env: Environment) -> bool:
    """Whether nothing can be decided for it."""
    found = suspended_runs(state, env)
    return bool(found) and not env.deleting and (env.target is None or env.target.run_id in found)


def placed_rows(state: State, env: Environment) -> Iterator[tuple[str, int]]:
    """Run id and row of each attempt of suspended runs that has a place on an instance."""
    for run_id in suspended_runs(state, env):
        for row in sorted(state.attempts.of_run(state.suspended[run_id].record.number)):
            if not state.attempts["left_at"][row]:
                yield run_id, row
