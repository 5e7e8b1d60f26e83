"""The order in which instances would get one more task, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from argosy.placement.arrays import BoolArray, IntArray
from argosy.placement.chain import BatchTurn
from argosy.placement.demand import Batch
from argosy.placement.feasibility import Rules, fitting, most_instances, room
from argosy.placement.fitness import Fitness, Mix
from argosy.placement.keys import Key
from argosy.placement.pass_state import PassState
from argosy.placement.strategy import Random, SpreadInstances, SpreadValues, Step
from argosy.placement.task_kinds import TaskKind

_NO_FITNESS: Final[Mapping[str, Fitness]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The instances that have room for the task, the best first; ties in the order of the supply."""

    rows: IntArray
    """(f,) int64, of the supply."""
    steps: tuple[str, ...]
    """Names of the strategy's steps, but for those that draw: chance has no figure."""
    figures: IntArray
    """(f, s) int64: the figure of each step for each row; less is better, and a later step breaks ties of those
    before."""


def ranking(batch: Batch, state: PassState, mix: Mix, fitness: Mapping[str, Fitness] = _NO_FITNESS) -> Ranking:
    """For one task of `batch` on the free resources in `state`, which does not change. mix: of the whole queue.

    ValueError for an invalid strategy or constraint.
    """
    kind = TaskKind.of(batch, state.supply, fitness)
    rows = fitting(kind.rules, state)
    rows = rows[(room(kind.rules, state, rows) > 0) & _may_open(kind.rules, state)[rows]] if len(rows) else rows
    turn = BatchTurn(state, batch, mix, rows, np.ones(len(rows), dtype=np.int64), None)
    steps = [step for step in kind.steps_now(state) if not isinstance(step, Random)]
    columns = [_figures(turn, step) for step in steps]
    order = np.lexsort(columns[::-1]) if columns else np.arange(len(rows))
    table = np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), dtype=np.int64)
    return Ranking(rows[order], tuple(map(_name, steps)), table[order])


def _may_open(rules: Rules, state: PassState) -> BoolArray:
    """(m,) bool: the group is there already, or may go to one more instance."""
    here, most = state.of_group(rules.batch.group) > 0, most_instances(rules, state)
    return here | (most is None or most > np.count_nonzero(here))


def _figures(turn: BatchTurn, step: Step) -> IntArray:
    state, batch, at = turn.state, turn.batch, np.arange(len(turn.rows))
    if isinstance(step, Key):
        return turn.key((step,), at, None)
    group = state.of_group(batch.group)
    if isinstance(step, SpreadInstances):
        return group[turn.rows]
    assert isinstance(step, SpreadValues)
    codes = state.supply.attribute(step.attribute).codes
    tasks = np.bincount(codes, weights=group, minlength=int(codes.max(initial=0)) + 1).astype(np.int64)
    there: IntArray = tasks[codes[turn.rows]]
    return there


def _name(step: Step) -> str:
    if isinstance(step, Key):
        return step.name
    return f"spread:attribute:{step.attribute}" if isinstance(step, SpreadValues) else "spread:instanceId"
