"""What is expected of each instance: how often is one like it interrupted, and when does its last task end?

Only `least-interrupted`, `finish-together` and users' own functions look at this, so nothing is worked out unless a run
that asks for places names one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from argosy.market.offers import PURCHASE_ATTRIBUTE, interruption_rate_of
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.runs import Run
from argosy.placement.strategy import FINISH_TOGETHER, LEAST_INTERRUPTED, may_read
from argosy.placement.supply import Supply


@dataclass(frozen=True, slots=True)
class Outlook:
    """Empty where no strategy asks."""

    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(pool, purchase) -> expected interruptions per instance-hour."""
    ends: Mapping[str, float] = field(default_factory=dict)
    """Instance id -> epoch seconds when the last of its live attempts is expected to end."""

    @classmethod
    def of(cls, moment: Moment, runs: Sequence[Run]) -> Outlook:
        """What the strategies of `runs` look at."""
        strategies = {run.terms.strategy for run in runs}
        return cls(
            rates=_rates(moment) if any(may_read(each, LEAST_INTERRUPTED) for each in strategies) else {},
            ends=_ends(moment) if any(may_read(each, FINISH_TOGETHER) for each in strategies) else {},
        )

    def on(self, supply: Supply, pool_of: Callable[[str], str]) -> Supply:
        """With what is expected of the instances. pool_of: the key of an instance's pool, by its id."""
        if not (self.rates or self.ends):
            return supply
        rates = [self.rates.get((pool_of(row.id), row.attributes[PURCHASE_ATTRIBUTE]), 0.0) for row in supply.rows]
        ends = [self.ends.get(row.id, 0.0) for row in supply.rows]
        return replace(supply, interruption_rate=np.array(rates, float), finish_at=np.array(ends, float))


def expected_end(run: Run, now: float) -> float:
    """When a task of the run that starts now should end, for a batch: epoch seconds.

    0 = unknown, as long as no attempt has succeeded and the spec gives no array.expectedSeconds; or not needed.
    """
    if not may_read(run.terms.strategy, FINISH_TOGETHER):
        return 0.0
    seconds = run.mean_seconds(run.terms.expected_seconds)
    return 0.0 if seconds is None else now + float(seconds)


def _rates(moment: Moment) -> dict[tuple[str, str], float]:
    return {
        (key, purchase.value): interruption_rate_of(pool, purchase, moment.now, moment.policy)
        for key, pool in moment.state.pools.items()
        for purchase in Purchase
    }


def _ends(moment: Moment) -> dict[str, float]:
    """An attempt that has not started yet counts as if it started now; one that is overdue may end at any time."""
    table, guess_s = moment.state.attempts, moment.policy.attempt_s
    live = table.live()
    runs, of_attempt = np.unique(table["run"][live], return_inverse=True)
    known = {run.number: run.expected_seconds(guess_s) for run in moment.state.runs.values()}
    seconds = np.array([known.get(number, guess_s) for number in runs.tolist()], dtype=np.float64)
    started = table["started_at"][live]
    ends = np.maximum(np.where(started > 0, started, moment.now) + seconds[of_attempt], moment.now)
    instances, of_attempt = np.unique(table["instance"][live], return_inverse=True)
    last = np.zeros(len(instances))
    np.maximum.at(last, of_attempt, ends)
    return {name.decode(): end for name, end in zip(instances.tolist(), last.tolist(), strict=True)}
