"""The controller's EC2 fleets: targets are absolute, and instances are terminated by id.

There is one `maintain` fleet for each pool (DESIGN D8). Lowering a target ends nothing (no-termination), and an
instance is terminated only when its fleet would not replace it.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any

from argosy.aws.account_rates import NO_ADVICE, SpotAdvice
from argosy.aws.cell import TIME_WAS_UP, Cell, CheckTime, chunks, pages, read_each
from argosy.aws.errors import AWS_ERRORS, CallFailure, FailureKind, classify
from argosy.aws.fleet_templates import FleetTemplates
from argosy.aws.offerings import Offerings
from argosy.aws.on_demand import OnDemandOrders
from argosy.aws.reservations import as_reserved
from argosy.aws.spot_prices import SpotPrices
from argosy.messages.ecs import epoch_s
from argosy.messages.fleet_faults import latest_shortage, refusal, shortage
from argosy.model.actions import LookUpHosts, ReadHistory, SetTarget, Terminate
from argosy.model.events import (
    Event,
    FleetSeen,
    HistoryRead,
    HostSeen,
    HostStateChanged,
    NotCarriedOut,
    TargetAccepted,
)
from argosy.model.instances import Purchase
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State

STAGE_TAG, POOL_TAG = "argosy:stage", "argosy:pool"
LIVE_FLEETS = ("submitted", "active", "modifying")
STILL_RUNNING = "deleted_running"  # a deleted fleet whose instances still run: Argosy has to end them
CHANGING_S = 180.0  # pause where another change is under way: longer than a change and a sweep after it
HISTORY_S = 1800.0  # of a fleet's history: a fleet that fails says so every few minutes (EC2 keeps 48 hours)
HISTORY_PAGES = 3  # of up to 1,000 records
# DescribeInstanceStatus has a filter for each check, and filters have to hold together: one call for each.
CHECKS = {"SystemStatus": "system", "InstanceStatus": "instance", "AttachedEbsStatus": "attached-ebs"}
OFFERS_UNREAD_S = 120.0  # of a process: a deployment has read the offers, and a first task need not wait for them
FLEET_OF_INSTANCE_TAG = "aws:ec2:fleet-id"  # set by EC2 itself, so it cannot be forged; the other one, too
LAUNCHER_TAGS = FLEET_OF_INSTANCE_TAG, "aws:ec2launchtemplate:id"  # fleets of type instant are not listed

log = logging.getLogger(__name__)


class _TimeIsUp(Exception):
    """There is no time for another request of a listing."""


class AwsFleets:
    """SetTarget and Terminate, and the listings of fleets and instances, of every cell."""

    def __init__(
        self, stage: str, cells: Mapping[str, Cell], clock: Callable[[], float], advice: SpotAdvice = NO_ADVICE
    ) -> None:
        self._stage, self._cells, self._clock = stage, cells, clock
        self._prices, self._offerings, self._advice = SpotPrices(), Offerings(), advice
        self._offers_from = clock() + OFFERS_UNREAD_S
        self._templates = FleetTemplates(STAGE_TAG, stage, clock)
        # By cell: ids of all our fleets that were ever listed, and of their launch templates.
        self._ours: dict[str, set[str]] = {}
        self._unlisted: dict[str, CallFailure] = {}  # by cell: EC2's refusal to list its fleets, in this pass
        self._orders = OnDemandOrders({STAGE_TAG: stage}, self._templates, clock)

    def list_before_buying(self, targets: Iterable[SetTarget], state: State, deadline: float) -> None:
        """Once in each cell, and not in each of its threads: each fleet's launch template must be known before anything
        is bought. A cell that cannot be listed gets no target; `set_target` says so."""

        def check_time() -> None:
            if self._clock() >= deadline:
                raise _TimeIsUp

        self._unlisted.clear()
        pools = [state.pools.get(each.pool) for each in targets if each.spot_target + each.on_demand_target]
        for name in sorted({pool.cell for pool in pools if pool} & self._cells.keys() - self._ours.keys()):
            cell = self._cells[name]
            try:
                self._list(cell, check_time)
            except AWS_ERRORS as error:
                self._unlisted[name] = _heard(cell, error)
            except _TimeIsUp:
                log.info("there is no time to list the fleets of %s", name)

    def set_target(self, action: SetTarget, state: State, deadline: float) -> Event:
        pool = state.pools.get(action.pool)
        cell = self._cells.get(pool.cell) if pool else None
        if pool is None or cell is None:
            return NotCarriedOut(f"there is no fleet for {action.pool}")
        if action.spot_target and cell.name not in self._ours:
            return self._not_listed(action, cell)
        if pool.reservation:
            return TargetAccepted(action.pool, 0)  # a reservation has no fleet
        if not cell.rates.fleets.take(deadline):
            return NotCarriedOut(TIME_WAS_UP)
        try:
            self._templates.modify_fleet(
                cell,
                {
                    "FleetId": action.fleet_id or pool.fleet_id,
                    "ExcessCapacityTerminationPolicy": "no-termination",
                    "TargetCapacitySpecification": {"TotalTargetCapacity": action.spot_target},
                },
            )
        except AWS_ERRORS as error:
            return _not_set(action, _heard(cell, error))
        return TargetAccepted(action.pool, action.spot_target, action.fleet_id)

    def buy(self, action: SetTarget, state: State, deadline: float) -> list[Event]:
        """Carry out the open on-demand order of the action's pool, if there is one."""
        pool = state.pools.get(action.pool)
        cell = self._cells.get(pool.cell) if pool else None
        if pool is None or cell is None or not pool.on_demand_count or action.fleet_id:
            return []
        if cell.name not in self._ours:
            return [self._not_listed(action, cell)]
        return self._orders.buy(cell, pool, state, deadline)

    def _not_listed(self, action: SetTarget, cell: Cell) -> Event:
        unlisted = self._unlisted.get(cell.name)
        return _not_set(action, unlisted) if unlisted else NotCarriedOut(TIME_WAS_UP)

    def terminate(self, action: Terminate, state: State, accepted: Mapping[str, bool], deadline: float) -> list[Event]:
        """accepted: for each pool whose target was set in this pass, whether EC2 accepted it.

        An instance that counts for its fleet's target is left alone, because the fleet would replace it.
        """
        cell = self._cells.get(action.cell)
        if cell is None:
            return [NotCarriedOut(f"there is no cell {action.cell}")]
        settled = [name for name in action.instance_ids if _settled(name, state, accepted)]
        events: list[Event] = []
        if len(settled) < len(action.instance_ids):
            left = len(action.instance_ids) - len(settled)
            events.append(NotCarriedOut(f"{left} instances are kept: the targets of their fleets are not confirmed"))
        for chunk in chunks(settled):
            events += self._terminate_chunk(cell, chunk, deadline)
        return events

    def _terminate_chunk(self, cell: Cell, instance_ids: list[str], deadline: float) -> list[Event]:
        if not cell.rates.fleets.take(deadline):
            return [NotCarriedOut(TIME_WAS_UP)]
        try:
            answer = cell.ec2.terminate_instances(InstanceIds=instance_ids)
        except AWS_ERRORS as error:
            fault = _heard(cell, error)
            gone = set(re.findall(r"\bi-[0-9a-f]+\b", fault.message)) & set(instance_ids)
            if fault.kind is not FailureKind.NOT_FOUND or not gone:
                return self._terminate_by_halves(cell, instance_ids, fault, deadline)
            # One unknown id fails the whole call. EC2 has forgotten that instance, so it is gone.
            rest = [name for name in instance_ids if name not in gone]
            events: list[Event] = [HostStateChanged(name, "terminated", self._clock()) for name in sorted(gone)]
            return events + (self._terminate_chunk(cell, rest, deadline) if rest else [])
        return [
            HostStateChanged(each["InstanceId"], each["CurrentState"]["Name"], self._clock())
            for each in answer.get("TerminatingInstances", ())
        ]

    def _terminate_by_halves(
        self, cell: Cell, instance_ids: list[str], fault: CallFailure, deadline: float
    ) -> list[Event]:
        """One instance that EC2 refuses to end fails the whole call, so the ids are halved until it is alone.

        A hundred single calls would take longer than a tick at the rate of the fleets' calls.
        """
        if fault.kind in (FailureKind.THROTTLED, FailureKind.IN_DOUBT):
            return [NotCarriedOut(fault.text)]
        if len(instance_ids) == 1:
            reason = f"{instance_ids[0]} could not be terminated: {fault.text}"
            return [NotCarriedOut(reason, about=Subject(Act.TERMINATE, instance_ids[0]))]
        middle = len(instance_ids) // 2
        halves = instance_ids[:middle], instance_ids[middle:]
        return [event for half in halves for event in self._terminate_chunk(cell, half, deadline)]

    def history(self, action: ReadHistory, state: State, deadline: float) -> Event:
        """Why a fleet has launched nothing lately, in EC2's words. If the call fails, only the reason is lost."""
        pool = state.pools.get(action.pool)
        cell = self._cells.get(pool.cell) if pool else None
        if pool is None or cell is None or not cell.rates.fleets.take(deadline):
            return NotCarriedOut(TIME_WAS_UP if cell else f"there is no fleet for {action.pool}")
        since = datetime.fromtimestamp(self._clock() - HISTORY_S, UTC)
        request: dict[str, Any] = {"FleetId": pool.fleet_id, "StartTime": since}
        try:
            records = [
                record
                for page in islice(pages(cell.ec2.describe_fleet_history, **request), HISTORY_PAGES)
                for record in page.get("HistoryRecords", ())
            ]
        except AWS_ERRORS as error:
            reason = f"{action.pool}: its history could not be read: {_heard(cell, error).text}"
            log.warning("%s", reason)
            return NotCarriedOut(reason)
        return HistoryRead(pool.key, latest_shortage(pool.key, records))

    def fleets(self, cell: Cell, now: float, check_time: CheckTime = lambda: None) -> Iterator[FleetSeen]:
        """The stage's live fleets, without a filter: none is for tags, and AWS spells that for states in two ways.

        Raises AWS_ERRORS and what `check_time` raises.
        """
        tagged = [
            (tags[POOL_TAG], fleet)
            for page in pages(_asking(cell.ec2.describe_fleets, check_time), MaxResults=100)
            for fleet in page["Fleets"]
            if _state(fleet) in (*LIVE_FLEETS, STILL_RUNNING)
            and (tags := _tags(fleet)).get(STAGE_TAG) == self._stage
            and "/" in tags.get(POOL_TAG, "")
        ]
        found = [(pool, fleet) for pool, fleet in tagged if _state(fleet) != STILL_RUNNING]
        self._templates.note(cell, [fleet for _, fleet in found], check_time)
        self._ours.setdefault(cell.name, set()).update(name for _, fleet in tagged for name in _launchers(fleet))
        types = {pool.split("/")[0] for pool, _ in found}
        prices = self._prices.of(cell, types, now, check_time)
        offers = self._offerings.of(cell, types, now, check_time) if now > self._offers_from else {}
        scores = self._advice.scores.of(cell, types, now, check_time) if self._advice.scores else None
        records = self._advice.rates.of(cell, now, check_time) if self._advice.rates else {}
        has_time = self._advice.prices and now > self._offers_from
        listed = self._advice.prices.of(cell, now, check_time) if has_time else {}
        for pool, fleet in found:
            instance_type, zone = pool.split("/", 1)
            price, priced_at = prices.get((instance_type, zone), (None, 0.0))
            yield FleetSeen(
                cell=cell.name,
                instance_type=instance_type,
                zone=zone,
                fleet_id=fleet["FleetId"],
                spot_target=int(fleet.get("TargetCapacitySpecification", {}).get("TotalTargetCapacity") or 0),
                spot_usd_per_hour=price,
                priced_at=priced_at,
                listed_usd_per_hour=listed.get(instance_type),
                is_modifying=_state(fleet) == "modifying",
                is_behind=self._templates.is_behind(fleet["FleetId"]),
                version=self._templates.newest_version(fleet["FleetId"]),
                stays_behind=self._templates.stays_behind(fleet["FleetId"]),
                placement_score=None if scores is None else scores.get((instance_type, zone), 0),
                is_offered=instance_type in offers.get(zone, ()) if offers else None,
                record=records.get((instance_type, zone)),
            )

    def _list(self, cell: Cell, check_time: CheckTime) -> None:
        deque(self.fleets(cell, self._clock(), check_time), maxlen=0)

    def hosts(self, cell: Cell, check_time: CheckTime = lambda: None) -> Iterator[Event]:
        """Every instance with the stage's tag in one of its fleets, and ended ones for as long as EC2 shows them.

        The tag alone proves nothing: anyone allowed to set tags could make Argosy end an instance that is not its own.
        Raises AWS_ERRORS and what `check_time` raises.
        """
        if cell.name not in self._ours:
            self._list(cell, check_time)  # until fleets are listed, none is known to be ours
        failed = _failed_checks(cell, check_time)
        tagged, asked_at = [{"Name": f"tag:{STAGE_TAG}", "Values": [self._stage]}], self._clock()
        for page in pages(_asking(cell.ec2.describe_instances, check_time), Filters=tagged, MaxResults=1000):
            for reservation in page["Reservations"]:
                ours = [
                    instance
                    for instance in reservation["Instances"]
                    if self._ours[cell.name].intersection(map(_tags(instance).get, LAUNCHER_TAGS))
                ]
                yield from read_each(partial(_host_seen, cell=cell, at=asked_at, failed=failed), ours)

    def look_up(self, action: LookUpHosts, deadline: float) -> list[Event]:
        """EC2's view of single instances. By a filter, because one unknown id would fail the whole call."""
        cell = self._cells.get(action.cell)
        if cell is None or not cell.rates.fleets.take(deadline):
            return [NotCarriedOut(TIME_WAS_UP if cell else f"there is no cell {action.cell}")]
        named = [
            {"Name": "instance-id", "Values": list(action.instance_ids)},
            {"Name": f"tag:{STAGE_TAG}", "Values": [self._stage]},
        ]
        asked_at = self._clock()
        try:
            found = list(pages(cell.ec2.describe_instances, Filters=named, MaxResults=1000))
        except AWS_ERRORS as error:
            return [NotCarriedOut(_heard(cell, error).text)]
        reservations = [reservation for page in found for reservation in page["Reservations"]]
        instances = [instance for each in reservations for instance in each["Instances"]]
        return list(read_each(partial(_host_seen, cell=cell, at=asked_at), instances))


def _not_set(action: SetTarget, fault: CallFailure) -> Event:
    """What EC2's answer says about the pool. While a fleet is being changed, the order stays and is sent again."""
    if fault.kind is FailureKind.CAPACITY:
        short = shortage(action.pool, fault.code, fault.message)
        return short if action.on_demand_target else replace(short, only=Purchase.SPOT)
    pause_s = CHANGING_S if fault.kind is FailureKind.CONFLICT else 0.0
    passing = fault.passing or pause_s > 0.0
    if passing or action.fleet_id:
        return NotCarriedOut(fault.text, about=Subject(Act.TARGET, action.pool), passing=passing, pause_s=pause_s)
    return refusal(action.pool, fault.code, fault.message)


def _settled(instance_id: str, state: State, accepted: Mapping[str, bool]) -> bool:
    """Whether the instance's fleet no longer counts it in its target, or there is no such fleet."""
    instance = state.instances.get(instance_id)
    pool = state.pools.get(instance.pool) if instance else None
    if instance is None or pool is None or not pool.fleet_id:
        return True
    if not state.in_pools_fleet(instance):
        return instance.fleet_id not in pool.surplus
    return accepted.get(pool.key, pool.confirmed)


def _asking(call: Any, check_time: CheckTime) -> Any:
    """The call, preceded by `check_time`, which raises when there is no time for another page."""

    def asked(**request: Any) -> Any:
        check_time()
        return call(**request)

    return asked


def _failed_checks(cell: Cell, check_time: CheckTime) -> Mapping[str, str] | None:
    """By instance, the checks of EC2 that it fails, in words; None if EC2 does not answer. Raises what `check_time`
    raises."""
    found: dict[str, list[str]] = {}
    try:
        for member, name in CHECKS.items():
            wanted = [{"Name": f"{name}-status.status", "Values": ["impaired"]}]
            for page in pages(_asking(cell.ec2.describe_instance_status, check_time), Filters=wanted, MaxResults=1000):
                for each in page["InstanceStatuses"]:
                    if (each.get(member) or {}).get("Status") == "impaired":
                        found.setdefault(str(each["InstanceId"]), []).append(name)
    except AWS_ERRORS as error:
        log.warning("the status checks of %s cannot be read: %s", cell.name, classify(error).text)
        return None
    return {name: f"EC2's {' and '.join(checks)} status check failed" for name, checks in found.items()}


def _host_seen(instance: Mapping[str, Any], cell: Cell, at: float, failed: Mapping[str, str] | None = None) -> HostSeen:
    """at: when EC2 was asked. failed: by instance, the checks of EC2 that it fails; None = not known."""
    purchase, reservation = as_reserved(instance, cell)
    return HostSeen(
        instance_id=instance["InstanceId"],
        cell=cell.name,
        instance_type=instance["InstanceType"],
        zone=instance.get("Placement", {}).get("AvailabilityZone", ""),
        purchase=purchase,
        reservation=reservation,
        state=instance["State"]["Name"],
        launched_at=epoch_s(instance.get("LaunchTime")),
        fleet_id=_tags(instance).get(FLEET_OF_INSTANCE_TAG, ""),
        private_ip=str(instance.get("PrivateIpAddress") or ""),
        public_ip=str(instance.get("PublicIpAddress") or ""),
        at=at,
        impaired=None if failed is None else failed.get(instance["InstanceId"], ""),
    )


def _state(fleet: Mapping[str, Any]) -> str:
    """With underscores. The API reference spells `deleted_running`, and its filter `deleted-running`."""
    return str(fleet.get("FleetState") or LIVE_FLEETS[0]).replace("-", "_")


def _launchers(fleet: Mapping[str, Any]) -> Iterator[str]:
    """Its id, and those of its launch templates."""
    yield fleet["FleetId"]
    for config in fleet.get("LaunchTemplateConfigs") or ():
        template = config.get("LaunchTemplateSpecification") or {}
        yield template.get("LaunchTemplateId") or template.get("LaunchTemplateName") or fleet["FleetId"]


def _tags(fleet: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in fleet.get("Tags") or ()}


def _heard(cell: Cell, error: Exception) -> CallFailure:
    fault = classify(error)
    if fault.kind is FailureKind.THROTTLED:
        cell.rates.fleets.throttled()
    return fault
