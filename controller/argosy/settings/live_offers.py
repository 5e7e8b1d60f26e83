"""EC2's list of offered types and zones, applied to the settings before anything is made of them.

Without it, offers come from the catalogue, which is as old as the checkout, and zones are guessed by name. A fleet of a
type that the Region has withdrawn since fails, and rolls the whole deployment back. Example: EC2 offers c5.large in
us-east-1a and us-east-1b, and p3dn.24xlarge nowhere. Then the cell has the pools c5.large/us-east-1a and
c5.large/us-east-1b, and no pool of p3dn.24xlarge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from argosy.catalogue.lookup import is_offered_in, offered
from argosy.catalogue.offerings import offered_by_zone, zones_of
from argosy.settings.settings import MAX_JSON_BYTES, OfferedChange, Settings

MOST_ZONES = 3


@dataclass(frozen=True, slots=True)
class LiveOffers:
    """EC2's answer for one Region. asked: the types that it was asked about; by_zone: those that each zone offers."""

    asked: frozenset[str]
    by_zone: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, ec2: Any, names: Iterable[str]) -> Self:
        """Ask EC2 about `names`. Zones of other kinds, such as local zones, are left out. Raises botocore's errors."""
        asked = frozenset(names)
        found = offered_by_zone(ec2.describe_instance_type_offerings, asked)
        return cls(asked, {zone: frozenset(found.get(zone, ())) for zone in zones_of(ec2)})

    @property
    def offered(self) -> frozenset[str]:
        """The types that at least one zone offers."""
        return frozenset().union(*self.by_zone.values())

    def to_json(self) -> dict[str, Any]:
        """The types that each zone lacks: most offer nearly all."""
        lacking = {zone: sorted(self.asked - there) for zone, there in self.by_zone.items()}
        return {"asked": sorted(self.asked), "lacking": lacking}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        asked = frozenset(record["asked"])
        return cls(asked, {zone: asked - frozenset(lacks) for zone, lacks in record["lacking"].items()})


def with_live_offers(settings: Settings, live: Mapping[str, LiveOffers]) -> Settings:
    """The settings with what EC2 offers in each cell of `live`. The owner's zones, VPCs and corrections stay."""
    known = {cell: live[cell] for cell in settings.cells if cell in live}
    zones = {cell: found for cell, each in known.items() if (found := _zones(settings, cell, each))}
    changed = settings.model_copy(update={"zones": {**settings.zones, **zones}})
    changes = {cell: _change(changed, cell, each) for cell, each in known.items()}
    changed = changed.model_copy(update={"offered": {**settings.offered, **_needed(changes)}})
    if len(changed.to_json()) <= MAX_JSON_BYTES:
        return changed
    # Too long for a function's environment. Fleets that a zone does not offer are made as without this list.
    own = {cell: settings.offered.get(cell, OfferedChange()).lacking for cell in changes}
    shorter = {cell: each.model_copy(update={"lacking": own[cell]}) for cell, each in changes.items()}
    return changed.model_copy(update={"offered": {**settings.offered, **_needed(shorter)}})


def _zones(settings: Settings, cell: str, live: LiveOffers) -> tuple[str, ...]:
    """The first zones of the account where the guess names one that it lacks; otherwise (). Other zones than those of
    an earlier deployment would replace its subnets."""
    own = cell in settings.zones or cell in settings.vpcs
    if own or set(settings.zones_of(cell)) <= live.by_zone.keys():
        return ()
    return tuple(sorted(live.by_zone)[:MOST_ZONES])


def _change(settings: Settings, cell: str, live: LiveOffers) -> OfferedChange:
    """The owner's corrections and the differences between EC2's list and the catalogue."""
    own, zones = settings.offered.get(cell, OfferedChange()), settings.zones_of(cell)
    ours = [name for name in settings.instance_types.all if name in live.asked]
    free = [name for name in ours if name not in own.add and name not in own.remove]
    lacking = {zone: {name for name in free if name not in live.by_zone.get(zone, live.asked)} for zone in zones}
    there = [name for name in free if any(name not in lacks for lacks in lacking.values())]
    new = [name for name in there if name not in offered(cell) or not all(is_offered_in(cell, z, name) for z in zones)]
    gone = [name for name in free if name not in there and name in offered(cell)]
    lacks = {zone: tuple(name for name in there if name in lacking[zone]) for zone in zones}
    return OfferedChange(
        add=own.add,
        remove=(*own.remove, *gone),
        found=tuple(new),
        lacking={**{zone: names for zone, names in lacks.items() if names}, **own.lacking},
    )


def _needed(changes: Mapping[str, OfferedChange]) -> dict[str, OfferedChange]:
    return {cell: each for cell, each in changes.items() if each != OfferedChange()}
