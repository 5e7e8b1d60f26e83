"""Does the auditor see that a fleet is asked for what nobody ordered?"""

from __future__ import annotations

from typing import Any

from argosy.emulator.ec2.records import Ec2Fleet
from argosy.simulation.ledger_book import Book
from argosy.simulation.raises import Raises
from tests.fakes.worlds import world

POOL = "c5.large/us-east-1a"


def stored(count: int) -> Book:
    """A store that knows so many instances of the pool, and one that was warned."""
    book = Book()
    fields: dict[str, Any] = {"instance_type": "c5.large", "zone": "us-east-1a", "owned": True, "status": "ACTIVE"}
    for number in range(count + 1):
        fields |= {"interrupted_at": 0.0 if number < count else 1.0, "absent_since": 0.0}
        book.instances[f"i-{number}"] = dict(fields)
    return book


def a_fleet(members: int) -> tuple[Ec2Fleet, Raises]:
    """With its instances, and a watch that has seen its target."""
    made = world()
    name = made.add_fleet("c5.large", "us-east-1a", spot=members, **{"argosy:pool": POOL})
    made.run_for(60)
    fleet, raises = made.ec2.ledger.fleets[name], Raises()
    assert len(fleet.members) == members
    assert raises.unordered(Book(), fleet) == ""
    return fleet, raises


def test_an_order_is_no_fault_nor_is_what_launches_nothing() -> None:
    fleet, raises = a_fleet(2)
    for target in (1, 2, 5):
        fleet.spot_target = target
        assert raises.unordered(stored(2), fleet) == ""


def test_more_than_the_old_target_for_what_is_believed_to_live_is_one() -> None:
    fleet, raises = a_fleet(0)
    fleet.spot_target = 4
    assert raises.unordered(stored(4), fleet) == "raised from 0 to 4 with 0 members, though 4 are known to live"
    fleet, raises = a_fleet(2)
    fleet.spot_target = 5
    assert raises.unordered(stored(3), fleet)
