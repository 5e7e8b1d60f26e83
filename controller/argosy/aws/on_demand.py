"""Instances on demand, or out of a Capacity Reservation, by fleets of type `instant`.

Such a fleet launches once, answers at once with the instances or an error, and replaces nothing. So an order is an
effect like a launch: its number and size are stored before the call, both make up its client token, and a repeated call
gets the answer of the first one. The launch template is that of the pool's spot fleet, in its newest version; EC2 tags
every instance with it, which makes the instance ours.

Example: the pool c5.large/us-east-1a has its 4th order, of 2. CreateFleet answers with i-1 and with
InsufficientInstanceCapacity. i-1 is known from now on, and on-demand capacity of the pool cools off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from argosy.aws.cell import TIME_WAS_UP, Cell
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.aws.fleet_templates import FleetTemplates
from argosy.aws.reservations import target_of
from argosy.messages.fleet_faults import refusal, shortage
from argosy.model.events import Event, HostSeen, NotCarriedOut
from argosy.model.instances import pool_key
from argosy.model.pools import OrderAnswered, Pool
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

_FEWER = "UnfulfillableCapacity"  # if EC2 names no error
_USED = "IdempotentParameterMismatch"  # of a client token


class OnDemandOrders:
    """tags: of the fleets."""

    def __init__(self, tags: Mapping[str, str], templates: FleetTemplates, clock: Callable[[], float]) -> None:
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        self._tagging = [{"ResourceType": "fleet", "Tags": listed}]
        self._templates, self._clock = templates, clock

    def buy(self, cell: Cell, pool: Pool, state: State, deadline: float) -> list[Event]:
        """Carry out the pool's open order. A refusal that lasts ends it like a shortage: it is not repeated before the
        cool-off is over."""
        fleet = state.pools.get(pool_key(pool.cell, pool.instance_type, pool.zone))
        config = self._templates.config(fleet.fleet_id) if fleet else {}
        if not config or not cell.rates.fleets.take(deadline):
            return [NotCarriedOut(TIME_WAS_UP if config else f"the fleet of {pool.key} shows no launch template")]
        count = pool.on_demand_count
        try:
            answer = cell.ec2.create_fleet(
                Type="instant",
                ClientToken=token_of(pool, state.epoch),
                LaunchTemplateConfigs=[_as_requested(config)],
                TagSpecifications=self._tagging,
                **target_of(pool),
            )
        except AWS_ERRORS as error:
            return [self._failed(cell, pool, error)]
        events: list[Event] = list(self._launched(pool, answer))
        if len(events) < count:
            told = (answer.get("Errors") or [{}])[0]
            return [*events, _short(pool, str(told.get("ErrorCode") or _FEWER), str(told.get("ErrorMessage") or ""))]
        return [*events, OrderAnswered(pool.key, pool.on_demand_order)]

    def _failed(self, cell: Cell, pool: Pool, error: Exception) -> Event:
        fault = classify(error)
        if fault.kind is FailureKind.THROTTLED:
            cell.rates.fleets.throttled()
        if fault.code == _USED:  # EC2 took the order from another template version; sweeps show what it launched
            return OrderAnswered(pool.key, pool.on_demand_order)
        if fault.kind is FailureKind.CAPACITY:
            return _short(pool, fault.code, fault.message)
        if fault.lasting:
            return replace(refusal(pool.key, fault.code, fault.message), only=pool.ordered_as, refused=False)
        return NotCarriedOut(fault.text, about=Subject(Act.ORDER, pool.key), passing=True)

    def _launched(self, pool: Pool, answer: Mapping[str, Any]) -> list[HostSeen]:
        now, fleet_id = self._clock(), str(answer.get("FleetId") or "")
        return [
            HostSeen(
                instance_id=instance_id,
                cell=pool.cell,
                instance_type=pool.instance_type,
                zone=pool.zone,
                purchase=pool.ordered_as.value,
                reservation=pool.reservation,
                state="pending",
                launched_at=now,
                fleet_id=fleet_id,
            )
            for each in answer.get("Instances") or ()
            for instance_id in each.get("InstanceIds") or ()
        ]


def _as_requested(shown: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as a request takes it: DescribeFleets may name a template by id and name, and a subnet with its
    zone."""
    template = shown.get("LaunchTemplateSpecification") or {}
    key = "LaunchTemplateId" if "LaunchTemplateId" in template else "LaunchTemplateName"
    overrides = []
    for each in shown.get("Overrides") or ():
        place = "SubnetId" if "SubnetId" in each else "AvailabilityZone"
        overrides.append({name: each[name] for name in ("InstanceType", place) if name in each})
    specification = {name: template[name] for name in (key, "Version") if name in template}
    return {"LaunchTemplateSpecification": specification, "Overrides": overrides}


def token_of(pool: Pool, epoch: str) -> str:
    """The client token of the pool's open order. epoch: of the state, so that no later deployment repeats it."""
    return sha256(f"{epoch}/{pool.key}/{pool.on_demand_order}".encode()).hexdigest()[:32]


def _short(pool: Pool, code: str, message: str) -> Event:
    return replace(shortage(pool.key, code, message), only=pool.ordered_as)
