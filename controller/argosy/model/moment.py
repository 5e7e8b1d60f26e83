"""The input of a decision: the state, the instance types, the time and the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from argosy.model.instance_types import InstanceType
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.state import State

PoolPurchase = tuple[str, Purchase]  # Pool.key and purchase option


@dataclass(frozen=True)
class Moment:
    """A snapshot of one state. now: epoch seconds.

    The counts below are made once: use a moment only in code that reads. After a change of the state, make a new one.
    """

    state: State
    catalogue: Mapping[str, InstanceType]  # by name
    now: float
    policy: Policy

    @cached_property
    def held(self) -> Mapping[PoolPurchase, int]:
        """Instances that count towards the targets; 0 for a missing key, here and below."""
        return self.state.held()

    @cached_property
    def warned(self) -> Mapping[PoolPurchase, int]:
        """Instances that only their fleets count: they were warned, or EC2 refuses to end them."""
        return self.state.warned()

    @cached_property
    def owed(self) -> Mapping[PoolPurchase, int]:
        """Instances that the targets include and EC2 has not shown yet."""
        return self.state.owed_beyond(self.held, self.warned)

    @cached_property
    def promised(self) -> Mapping[PoolPurchase, int]:
        """Instances that fleets may still launch, needed or not: lower targets count once EC2 acknowledges them."""
        return Counter(
            {
                (pool.key, purchase): missing
                for pool in self.state.pools.values()
                for purchase, wanted in (
                    (Purchase.SPOT, max(pool.spot_target, pool.confirmed_spot)),
                    (pool.ordered_as, pool.on_demand_target),
                )
                if (missing := wanted - self.held[pool.key, purchase] - self.warned[pool.key, purchase]) > 0
            }
        )

    @cached_property
    def has_gpu_parts(self) -> bool:
        """Whether instances with a part of a GPU may be bought, and so tasks with whole ones need a constraint."""
        kinds = (self.catalogue.get(pool.instance_type) for pool in self.state.pools.values())
        return any(kind is not None and kind.gpu_part for kind in kinds)

    def instances_left(self) -> int:
        """maxInstances less instances alive or still to be launched by fleets."""
        alive = sum(instance.alive for instance in self.state.instances.values())
        return self.policy.max_instances - alive - sum(self.promised.values())
