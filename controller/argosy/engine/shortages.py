"""Which shortages has the log not told of yet? Each reason of each fleet once, for as long as it keeps to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from argosy.model.state import State


@dataclass(slots=True)
class ShortagesTold:
    """What this process has told of fleets that cool off now, by pool."""

    reasons: dict[str, str] = field(default_factory=dict)

    def new(self, state: State, now: float) -> tuple[str, ...]:
        """A sentence for each fleet that began to cool off since the last call, or whose reason has changed."""
        reasons = {pool.key: pool.short_reason for pool in state.pools.values() if pool.cools_off(now)}
        told, self.reasons = self.reasons, reasons
        return tuple(f"{key}: {reason}" for key, reason in reasons.items() if told.get(key) != reason)
