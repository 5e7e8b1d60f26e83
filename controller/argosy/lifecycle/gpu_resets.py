"""Which failures are due to the reset of a GPU that tasks share?

A fatal error of one task ends every task on the GPU, and NVIDIA's MPS does not say whose error it was; nor does ECS
([decision 67](../../../docs/maintainers/decisions/0067-reset-gpus.md)). So a task is not charged for a failure if
another task on its GPU failed, or was ended by SIGKILL, within seconds of it. Two tasks that had only begun say
nothing: programs that cannot run fail together as well.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.lifecycle.accounts import GPU_RESET
from argosy.model.events import TaskSeen
from argosy.model.exit_codes import SIGKILLED
from argosy.model.open_ends import GpuKill
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State

TOGETHER_S = 5.0  # between the ends of two tasks that one reset has ended
APART_S = 30.0  # between their new starts, doubled with each loss: the one that fails again should then be alone
LONGEST_PAUSE_S = 900.0
KEPT_S = 600.0  # for this long a kill is known


def note_end(state: State, run: Run, row: int, seen: TaskSeen, ran: tuple[float, float]) -> None:
    """Note an attempt that shared a GPU and was ended by SIGKILL. ran: from when to when, 0 = not known."""
    if not run.needs.gpu_share_mib or seen.exit_code != SIGKILLED or not state.attempts["gpu_mask"][row]:
        return
    killed, (started_at, ended_at) = state.open_ends.killed, ran
    for gpu in [gpu for gpu, each in killed.items() if ended_at - each.ended_at > KEPT_S]:
        del killed[gpu]
    killed[_gpu_of(state, row)] = GpuKill(_name(state, row), ended_at, ended_at - started_at if started_at else 0.0)


def mark(state: State, row: int, policy: Policy) -> None:
    """Mark the failure in the row as a loss, with every other one that the same reset explains. A task that was
    killed is charged as usual: a program that is ended in the middle of its work on a GPU resets it."""
    failures, seen = state.open_ends.failures, state.open_ends.failures[row].seen
    if not _shares(state, row) or seen.exit_code == SIGKILLED or seen.stop_code == GPU_RESET:
        return
    gpu, mine = _gpu_of(state, row), _ended(state, row)
    rows = [each for each in failures if _shares(state, each) and _gpu_of(state, each) == gpu]
    rows = [each for each in rows if each == row or _are_together(mine, _ended(state, each), policy)]
    failed = [each for each in rows if failures[each].seen.exit_code != SIGKILLED]
    killers = [_name(state, each) for each in rows if each not in failed]
    before = state.open_ends.killed.get(gpu)
    if before is not None and _are_together(mine, before[1:], policy):
        killers.append(before.name)
    if killers or len(failed) > 1:
        _mark(state, failed, f"{killers[-1]} was killed there" if killers else f"{len(failed)} tasks failed together")


def _mark(state: State, rows: list[int], because: str) -> None:
    """They start again one after the other, so that a task that resets its GPU again does so alone, and is charged.
    Those of services do not wait: they are to be there."""
    failures = state.open_ends.failures
    for place, row in enumerate(sorted(rows)):
        seen, run, pause_s = failures[row].seen, state.run_by_number(int(state.attempts["run"][row])), 0.0
        if run is not None and not run.terms.serves:
            losses = int(run.tasks["losses"][int(state.attempts["index"][row])])
            pause_s = min(LONGEST_PAUSE_S, place * APART_S * 2.0**losses)
        seen = replace(seen, stop_code=GPU_RESET, reason=f"the GPU that it shared was reset: {because}")
        failures[row] = replace(failures[row], seen=seen, pause_s=pause_s)


def _name(state: State, row: int) -> str:
    key = state.key_of(row)
    return f"task {key.index} of {key.run_id}" if key else "a task"


def _shares(state: State, row: int) -> bool:
    """Whether it is known to share a GPU, and which."""
    run = state.run_by_number(int(state.attempts["run"][row]))
    return bool(run is not None and run.needs.gpu_share_mib and state.attempts["gpu_mask"][row])


def _gpu_of(state: State, row: int) -> tuple[str, int]:
    return bytes(state.attempts["instance"][row]).decode(), int(state.attempts["gpu_mask"][row])


def _ended(state: State, row: int) -> tuple[float, float]:
    """When a failure ended, and how long it ran."""
    open_end = state.open_ends.failures[row]
    ended_at = open_end.seen.stopped_at or open_end.heard_at
    started_at = open_end.seen.started_at or float(state.attempts["started_at"][row])
    return ended_at, ended_at - started_at if started_at else 0.0


def _are_together(mine: tuple[float, float], other: tuple[float, float], policy: Policy) -> bool:
    is_close = abs(mine[0] - other[0]) <= TOGETHER_S
    return is_close and max(mine[1], other[1]) >= policy.quick_failure_s
