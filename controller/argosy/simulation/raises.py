"""Is more asked of a fleet than was ordered there? On what the fleet has and on what is stored before it is told."""

from __future__ import annotations

from argosy.emulator.ec2.records import Ec2Fleet
from argosy.model.tasks import TERMINAL
from argosy.simulation.ledger_book import Book

_LEFT = ("GONE", "RELEASING")


class Raises:
    """Watches the targets of one trial's fleets."""

    def __init__(self) -> None:
        self._targets: dict[str, int] = {}  # by fleet id, before this change

    def unordered(self, book: Book, fleet: Ec2Fleet) -> str:
        """After a change of the fleet's target: what is wrong with it; "" = nothing. A raise as far as the
        members launches nothing; any further one is an order, on top of no more than the members or the old target."""
        before = self._targets.get(fleet.fleet_id, 0)
        after = self._targets[fleet.fleet_id] = fleet.total_target
        held = sum(
            bool(each["owned"] and each["status"] not in _LEFT and not (each["interrupted_at"] or each["absent_since"]))
            for each in book.instances.values()
            if f"{each['instance_type']}/{each['zone']}" == fleet.tags.get("argosy:pool")
        )
        base = max(before, len(fleet.members))
        open_tasks = sum(row[0] not in TERMINAL for table in book.tables.values() for row in table)
        if after - base <= open_tasks or held <= base:  # no order is for more instances than there are tasks
            return ""
        return f"raised from {before} to {after} with {len(fleet.members)} members, though {held} are known to live"
