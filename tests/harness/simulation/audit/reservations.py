"""Does the work keep within what Capacity Reservations have, and end in time?

`reserved`: no order is for more than a reservation has, whatever others use of it. `in-time`: no task is placed on a
reserved instance from the time at which that has to be empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation

JSON = dict[str, Any]


class ReservationChecker(Checker):
    """Orders of reserved capacity, and intents on reserved instances."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ec2", "create_fleet"): self._ordered}

    def _ordered(self, request: JSON, reply: JSON) -> None:
        target = request.get("ReservedCapacityOptions", {}).get("CapacityReservationTarget")
        if target is None:
            return
        (name,) = target["CapacityReservationIds"]
        total = self.facts.world.ec2.ledger.reservations[name].total
        count = request["TargetCapacitySpecification"]["TotalTargetCapacity"]
        if count > total:
            self.facts.violated("reserved", f"{count} instances are ordered out of {name}, which has {total}")

    def committed(self, commit: Commit) -> None:
        facts = self.facts
        for intent in commit.intents:
            empty_by = facts.stored.instances.get(intent.instance, {}).get("empty_by", 0.0)
            if empty_by and facts.world.now - facts.clocks_differ_s - facts.stands_still_s >= empty_by:
                sentence = f"{intent.key} is placed on {intent.instance}, which had to be empty before"
                facts.violated("in-time", sentence, intent.instance)
