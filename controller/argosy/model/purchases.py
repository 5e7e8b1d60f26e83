"""Which purchase option does a run's spec ask for, and which is used at present?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from argosy.model.instances import Purchase


class PurchaseMode(StrEnum):
    """`capacity.purchase` of a spec."""

    SPOT = "spot"
    SPOT_THEN_ON_DEMAND = "spot-then-on-demand"  # spot while EC2 has it, on-demand otherwise
    ON_DEMAND = "on-demand"

    @property
    def mixes(self) -> bool:
        """Whether the run may use both options, so that the controller chooses."""
        return self is PurchaseMode.SPOT_THEN_ON_DEMAND

    def allows(self, purchase: Purchase) -> bool:
        return self.mixes or purchase in with_reserved(Purchase(self.value))


def with_reserved(bought: Purchase) -> tuple[Purchase, ...]:
    """The instances that a run with this purchase option uses. A reservation is paid for anyway, so every run may use
    it. A run uses one that its owner may take back only if it may use spot instances."""
    more = (Purchase.RESERVED, Purchase.INTERRUPTIBLE) if bought is Purchase.SPOT else (Purchase.RESERVED,)
    return (bought, *more)


class PurchaseStance(StrEnum):
    """The option used for a run of mode SPOT_THEN_ON_DEMAND."""

    SPOT = "spot"  # take spot, or wait for it
    ON_DEMAND = "on-demand"  # until spot is worth another try
    FIRM = "firm"  # on-demand to the end: a loss of spot would take too long or cost too much


@dataclass(frozen=True, slots=True)
class PurchaseChoice:
    """The stance of a run, and the times that the choice of its stance depends on. Epoch seconds, 0 = never."""

    stance: PurchaseStance = PurchaseStance.SPOT
    since: float = 0.0  # when the stance was taken
    reason: str = ""
    short_since: float = 0.0  # when tasks began to wait because spot is short
    try_spot_at: float = 0.0  # when a run on on-demand tries spot again
    falls: int = 0  # how often in a row spot was abandoned; each time doubles the wait for the next try
    late: bool = False  # the deadline has passed

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> PurchaseChoice:
        """Unknown members are ignored, missing ones have their defaults. Raises ValueError for an unknown stance."""
        known = {field.name: record[field.name] for field in fields(cls) if field.name in record}
        return cls(**{**known, "stance": PurchaseStance(known.get("stance", PurchaseStance.SPOT))})


INITIAL_CHOICE = PurchaseChoice()
