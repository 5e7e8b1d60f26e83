"""How much may still be bought for each batch and for the deployment?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from argosy.catalogue.quotas import BY_KEY, quota_key
from argosy.model.pools import Offer
from argosy.model.resources import CPU_UNITS_PER_VCPU

QuotaKey = tuple[str, str, str]  # cell, purchase, key of the quota family
ShareKey = tuple[str, str]  # ("type", c5.xlarge) or ("cell", us-east-1)
AT_ONCE = "growth: no more instances are ordered in one tick; the next tick continues"
TRIAL = "a trial: the last instances in {} never joined the cluster, so one at a time is started there"
FIRST = "a first order: until an instance of {} has joined the cluster, no more are started"
RESERVED = "the Capacity Reservation {} has no further instance"
_QUOTA = "the vCPU quota of "
ROUNDING = 1e-9  # tolerance for sums of floats: a limit that is met exactly still admits an instance


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What may still be bought for one batch, by the limits of its run."""

    instances: int
    usd_per_hour: float = math.inf  # sum of their prices
    data_cell: str = ""  # the cell of the batch's data; elsewhere each task costs `away_usd_per_task_hour` more
    away_usd_per_task_hour: float = 0.0

    def away(self, offer: Offer) -> float:
        """The cost of a task's traffic there, USD an hour."""
        return self.away_usd_per_task_hour if offer.cell != self.data_cell else 0.0

    def after(self, offer: Offer) -> BatchLimits:
        """The limits after a purchase of one instance of the offer."""
        return replace(self, instances=self.instances - 1, usd_per_hour=self.usd_per_hour - offer.price_usd_per_hour)

    def free(self, room: int) -> bool:
        """Whether none of these limits binds while the deployment allows `room` instances more."""
        return self.instances >= room and math.isinf(self.usd_per_hour) and not self.away_usd_per_task_hour


@dataclass(frozen=True, slots=True)
class BuyRoom:
    """What may still be bought for several batches together."""

    instances: int
    usd_per_hour: float  # sum of their prices
    why_instances: str  # the name of the reached limit, for sentences
    why_usd: str

    def after(self, offers: Iterable[Offer]) -> BuyRoom:
        """The limits after these purchases."""
        prices = [offer.price_usd_per_hour for offer in offers]
        return replace(self, instances=self.instances - len(prices), usd_per_hour=self.usd_per_hour - sum(prices))


@dataclass(frozen=True, slots=True)
class OrderLimits:
    """The deployment's limits for one order. A share is of the cpu of all its instances."""

    instances: int  # how many more
    max_type_share: float = 1.0
    max_cell_share: float = 1.0
    held_cpu_units: Mapping[ShareKey, int] = field(default_factory=dict)  # alive or ordered
    vcpus_left: Mapping[QuotaKey, int] = field(default_factory=dict)  # of known quotas; others are unlimited
    vcpus: Mapping[QuotaKey, int] = field(default_factory=dict)  # the sizes of those, for sentences
    instances_limit: str = "maxInstances of the deployment"  # which limit `instances` comes from, for sentences
    usd_per_hour: float = math.inf  # the most that the added instances may cost
    usd_limit: str = ""  # which limit that comes from, for sentences
    purses: Mapping[str, BuyRoom] = field(default_factory=dict)  # by the name that backlogs give
    trials: Mapping[str, int] = field(default_factory=dict)  # by pool, cell or AMI, where the last ones never joined
    unproven: Mapping[str, str] = field(default_factory=dict)  # by pool, its AMI, of which none has ever joined
    reserved: Mapping[str, int] = field(default_factory=dict)  # by pool, what is left of each Capacity Reservation
    in_turn: bool = False  # whether each run buys only its share, so that one covered better takes from no other


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of a batch. A share binds only if there is a choice: if two types could take the tasks, each
    may have half of them, so that diversification never leaves tasks waiting."""

    types: int
    cells: int
    cpu_units: int  # the least that covering the batch will add

    @classmethod
    def of(cls, offers: Iterable[Offer], cpu_units: int) -> Choice:
        listed = list(offers)
        return cls(len({o.instance_type for o in listed}), len({o.cell for o in listed}), cpu_units)


class Headroom:
    """The rest of the deployment's limits while an order is made."""

    def __init__(self, limits: OrderLimits) -> None:
        self.room = limits.instances
        self._usd = limits.usd_per_hour
        self._limits = limits
        self._cpu: Counter[ShareKey] = Counter(limits.held_cpu_units)
        self._vcpus = dict(limits.vcpus_left)
        self._trials = {**limits.reserved, **limits.trials}

    def take(self, offer: Offer) -> None:
        """Count one instance of the offer as bought."""
        self.room -= 1
        self._usd -= offer.price_usd_per_hour
        self._cpu["type", offer.instance_type] += offer.whole.cpu_units
        self._cpu["cell", offer.cell] += offer.whole.cpu_units
        if self._vcpus and (key := quota_of(offer)) in self._vcpus:
            self._vcpus[key] -= vcpus_of(offer)
        self._trials |= {where: self._trials[where] - 1 for where in self._tried(offer)}

    def most(self, offer: Offer, choice: Choice) -> int:
        """How many more of the offer may be bought; 0 or more."""
        most = min(self.room, self._share_room("type", offer, choice), self._share_room("cell", offer, choice))
        tried = [self._trials[where] for where in self._tried(offer)]
        return max(0, min(most, self._quota_room(offer), self._usd_room(offer), *tried))

    def why_none(self, offer: Offer, choice: Choice) -> str:
        """The limit that stops one more; "" if none does."""
        if self.room <= 0:
            return self._limits.instances_limit
        if where := next((where for where in self._tried(offer) if self._trials[where] <= 0), ""):
            words = TRIAL if where in self._limits.trials else RESERVED
            return (FIRST if where == self._limits.unproven.get(offer.pool) else words).format(where)
        if self._usd_room(offer) <= 0:
            return self._limits.usd_limit
        if self._quota_room(offer) <= 0:
            return quota_name(quota_of(offer), self._limits.vcpus)
        for axis, setting in (("type", "maxTypeShare"), ("cell", "maxCellShare")):
            if self._share_room(axis, offer, choice) <= 0:
                return setting
        return ""

    def is_on_trial(self, offer: Offer) -> bool:
        """Whether so few are started there, until one has joined the cluster."""
        return any(where in self._limits.trials for where in self._tried(offer))

    def _tried(self, offer: Offer) -> tuple[str, ...]:
        """The cell, pool and AMI, as far as they limit it."""
        if not self._trials:
            return ()
        where = offer.cell, offer.pool, self._limits.unproven.get(offer.pool, "")
        return tuple(each for each in where if each in self._trials)

    def _usd_room(self, offer: Offer) -> int:
        if math.isinf(self._usd):
            return self.room
        return math.floor(self._usd / max(offer.price_usd_per_hour, ROUNDING) * (1 + ROUNDING))

    def _quota_room(self, offer: Offer) -> int:
        key = quota_of(offer) if self._vcpus else None
        if key is None or key not in self._vcpus:
            return self.room
        return self._vcpus[key] // vcpus_of(offer)

    def _share_room(self, axis: str, offer: Offer, choice: Choice) -> int:
        by_type = axis == "type"
        asked = self._limits.max_type_share if by_type else self._limits.max_cell_share
        share = max(asked, 1 / max(1, choice.types if by_type else choice.cells))
        if share >= 1:
            return self.room
        total = choice.cpu_units + sum(cpu for (kind, _), cpu in self._cpu.items() if kind == axis)
        left = share * total - self._cpu[axis, offer.instance_type if by_type else offer.cell]
        # Rounded up: whole instances cannot keep a share of few.
        return math.ceil(left / max(1, offer.whole.cpu_units) - ROUNDING)


def quota_of(offer: Offer) -> QuotaKey:
    """The quota of its instances, known or not."""
    return offer.cell, offer.purchase.value, quota_key(offer.instance_type, offer.purchase.value)


def quota_name(key: QuotaKey, vcpus: Mapping[QuotaKey, int]) -> str:
    """The quota's name in the reasons of runs."""
    cell, purchase, family = key
    size = f" ({vcpus[key]:,})" if key in vcpus else ""
    return f"{_QUOTA}{purchase} {BY_KEY[family].name} in {cell}{size}"


def is_quota(reason: str) -> bool:
    """Whether a quota holds tasks back."""
    return reason.startswith(_QUOTA)


def vcpus_of(offer: Offer) -> int:
    """Of one instance."""
    return max(1, offer.whole.cpu_units // CPU_UNITS_PER_VCPU)
