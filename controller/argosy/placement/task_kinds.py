"""The parts that equal batches of a pass share: their hard rules and their chain of steps, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from argosy.placement.demand import Batch
from argosy.placement.draws import SMALL_BATCH, TaskDraws
from argosy.placement.feasibility import Rules, unmet_weight
from argosy.placement.fitness import Candidates, Fitness
from argosy.placement.keys import FRAGMENTATION, GPUS_LAST, IMAGE_FIRST, LEAST_WASTE, SHARED_FIRST, Key, Trend
from argosy.placement.pass_state import PassState
from argosy.placement.strategy import DEFAULT_STRATEGY, EMPTYING, Random, Step, steps_of
from argosy.placement.supply import Supply


@dataclass(frozen=True, slots=True, eq=False)
class TaskKind:
    """A kind of task, prepared. names_function: whether its chain names a user's function."""

    rules: Rules
    steps: tuple[Step, ...]
    names_function: bool

    @classmethod
    def of(cls, batch: Batch, supply: Supply, fitness: Mapping[str, Fitness]) -> TaskKind:
        """ValueError (QuerySyntaxError for a constraint) if a strategy or constraint is invalid."""
        steps = steps_of(batch.strategy, fitness)
        lead = (FRAGMENTATION,) if supply.mix and batch.strategy in ((), DEFAULT_STRATEGY, EMPTYING) else ()
        if batch.gpu_share_mib:  # like tasks with whole GPUs, they have no other instances to go to
            steps = (*lead, SHARED_FIRST, *(step for step in steps if step is not LEAST_WASTE))
        elif batch.keep_gpus_free and not batch.gpus and steps[0] is not GPUS_LAST:
            steps = (GPUS_LAST, *lead, *steps)
        else:
            steps = lead + steps
        if IMAGE_FIRST in steps and not 0 < np.count_nonzero(supply.has_image(batch.image)) < len(supply):
            steps = tuple(step for step in steps if step is not IMAGE_FIRST)  # it would tell no instances apart
        return cls(Rules.of(batch, supply), steps, any(name in fitness for name in batch.strategy))

    @property
    def draws(self) -> bool:
        """Whether a step draws."""
        return any(isinstance(step, Random) for step in self.steps)

    @property
    def seed(self) -> int:
        """Of the draws."""
        return next((step.seed for step in self.steps if isinstance(step, Random)), 0)

    def random(self, position: int, n: int) -> np.random.Generator | TaskDraws | None:
        """The draws of the batch of n tasks at `position` of the queue: the same for the same seed and queue."""
        if not self.draws:
            return None
        if n <= SMALL_BATCH and self.rules.simple:
            return TaskDraws(self.seed, position)
        return np.random.default_rng((self.seed, position))

    def steps_now(self, state: PassState) -> tuple[Step, ...]:
        """The chain, preceded by the weight of currently unmet soft constraints."""
        if not self.rules.batch.soft:
            return self.steps
        unmet = unmet_weight(self.rules.batch, state)
        soft = Key("soft", lambda c: unmet[_rows_of(c)], Trend.STILL, lambda _: int(unmet.max(initial=0)))
        return (soft, *self.steps)


def _rows_of(candidates: Candidates) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return candidates.rows  # type: ignore[attr-defined,no-any-return]
