"""How much may still be bought, and what stands in the way? For each batch, and for the deployment as a whole."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.catalogue.quotas import quota_key
from argosy.model.pools import Offer
from argosy.model.resources import CPU_UNITS_PER_VCPU

QuotaKey = tuple[str, str, str]  # cell, purchase, key of the quota family
ShareKey = tuple[str, str]  # ("type", c5.xlarge) or ("cell", us-east-1)
_HAIR = 1e-9


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be bought for one batch: by its run's own limits, or those of whoever asks."""

    instances: int
    usd_per_hour: float = math.inf  # sum of their prices
    data_cell: str = ""  # where the batch's data lie; tasks in another cell cost `away_usd_per_task_hour` more each
    away_usd_per_task_hour: float = 0.0

    def away(self, offer: Offer) -> float:
        """What the traffic of a task costs there, USD an hour."""
        return self.away_usd_per_task_hour if offer.cell != self.data_cell else 0.0

    def free(self, room: int) -> bool:
        """Whether nothing but the deployment's own limits counts."""
        return self.instances >= room and math.isinf(self.usd_per_hour) and not self.away_usd_per_task_hour


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the deployment allows besides a number of instances. A share is of the cpu of all its instances."""

    max_type_share: float = 1.0
    max_cell_share: float = 1.0
    held_cpu_units: Mapping[ShareKey, int] = field(default_factory=dict)  # alive or ordered
    vcpus_left: Mapping[QuotaKey, int] = field(default_factory=dict)  # of known quotas; others are unlimited
    room_is: str = "maxInstances of the deployment"  # what the number of instances follows from


NO_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Choice:
    """What a batch can choose from. A share binds only as far as there is a choice: where two types could take the
    work, each may have half of it, so that diversification never leaves work undone."""

    types: int
    cells: int
    cpu_units: int  # the least that covering the batch will add

    @classmethod
    def of(cls, offers: Iterable[Offer], cpu_units: int) -> Choice:
        listed = list(offers)
        return cls(len({o.instance_type for o in listed}), len({o.cell for o in listed}), cpu_units)


class Headroom:
    """What is left of the deployment's limits while an order is made."""

    def __init__(self, room: int, bounds: Bounds = NO_BOUNDS) -> None:
        self.room = room
        self._bounds = bounds
        self._cpu: Counter[ShareKey] = Counter(bounds.held_cpu_units)
        self._vcpus = dict(bounds.vcpus_left)

    def take(self, offer: Offer) -> None:
        self.room -= 1
        self._cpu["type", offer.instance_type] += offer.resources.cpu_units
        self._cpu["cell", offer.cell] += offer.resources.cpu_units
        if (key := _quota_of(offer)) in self._vcpus:
            self._vcpus[key] -= _vcpus(offer)

    def most(self, offer: Offer, choice: Choice) -> int:
        """How many more of the offer may be bought; 0 or more."""
        most = min(self.room, self._share_room("type", offer, choice), self._share_room("cell", offer, choice))
        return max(0, min(most, self._quota_room(offer)))

    def why_none(self, offer: Offer, choice: Choice) -> str:
        """What stands in the way of one more; "" where nothing does."""
        if self.room <= 0:
            return self._bounds.room_is
        if self._quota_room(offer) <= 0:
            cell, purchase, family = _quota_of(offer)
            return f"the vCPU quota of {cell} for {purchase} {family} instances (vcpuQuotas)"
        for axis, setting in (("type", "maxTypeShare"), ("cell", "maxCellShare")):
            if self._share_room(axis, offer, choice) <= 0:
                return setting
        return ""

    def _quota_room(self, offer: Offer) -> int:
        key = _quota_of(offer) if self._vcpus else None
        if key is None or key not in self._vcpus:
            return self.room
        return self._vcpus[key] // _vcpus(offer)

    def _share_room(self, axis: str, offer: Offer, choice: Choice) -> int:
        by_type = axis == "type"
        asked = self._bounds.max_type_share if by_type else self._bounds.max_cell_share
        share = max(asked, 1 / max(1, choice.types if by_type else choice.cells))
        if share >= 1:
            return self.room
        total = choice.cpu_units + sum(cpu for (kind, _), cpu in self._cpu.items() if kind == axis)
        left = share * total - self._cpu[axis, offer.instance_type if by_type else offer.cell]
        # Rounded up: whole instances cannot keep a share of few.
        return math.ceil(left / max(1, offer.resources.cpu_units) - _HAIR)


def _quota_of(offer: Offer) -> QuotaKey:
    return offer.cell, offer.purchase.value, quota_key(offer.instance_type, offer.purchase.value)


def _vcpus(offer: Offer) -> int:
    return max(1, offer.resources.cpu_units // CPU_UNITS_PER_VCPU)
