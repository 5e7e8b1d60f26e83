"""EC2's market: instance types, offerings, zones and the spot price history."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zlib import crc32

from argosy.emulator.ec2.filters import paged, passing
from argosy.emulator.ec2.ledger import Ec2Ledger
from argosy.emulator.ec2.records import MachineType
from argosy.emulator.operations import OperationGroup, Refusal, operation
from argosy.emulator.region import epoch_s, utc

JSON = dict[str, Any]

PRICE_STEP_S = 900.0  # the price function is sampled this often; equal neighbours are one entry
HISTORY_S = 90 * 86_400.0
_PRODUCT = "Linux/UNIX"
WALK_STEP_S = 6 * 3_600.0  # of `walking_prices`
_WEEK_S = 7 * 86_400.0
_ZONE, _WAVE, _NOISE = 0.06, 0.08, 0.03  # shares of the typical price


class MarketOperations(OperationGroup[Ec2Ledger]):
    """Read-only operations."""

    @operation
    def describe_spot_price_history(self, request: JSON) -> JSON:
        """A change log, newest first, with the entry in force at StartTime (default: now). Prices are strings."""
        now = self.ledger.now()
        end = min(epoch_s(request["EndTime"]), now) if request.get("EndTime") else now
        start = epoch_s(request["StartTime"]) if request.get("StartTime") else end
        start = max(start, now - HISTORY_S)
        products = request.get("ProductDescriptions") or [_PRODUCT]
        types = request.get("InstanceTypes") or list(self.ledger.catalogue)
        zones = [request["AvailabilityZone"]] if request.get("AvailabilityZone") else list(self.ledger.zones)
        rows = [
            self._price_row(name, zone, at, price)
            for name in types
            for zone in zones
            if name in self.ledger.catalogue and zone in self.ledger.zones and _PRODUCT in products
            for at, price in self._changes(name, zone, start, end)
        ]
        read = {
            "instance-type": lambda row: [row["InstanceType"]],
            "availability-zone": lambda row: [row["AvailabilityZone"]],
            "product-description": lambda row: [row["ProductDescription"]],
        }
        found = passing(rows, request.get("Filters"), read)
        found.sort(key=lambda row: row["Timestamp"], reverse=True)
        return paged(request, "SpotPriceHistory", found)

    @operation
    def describe_instance_types(self, request: JSON) -> JSON:
        """From the given catalogue; an unknown type makes the whole call fail."""
        names = request.get("InstanceTypes") or list(self.ledger.catalogue)
        if len(names) > 100 and request.get("InstanceTypes"):
            raise Refusal("InvalidParameterValue", "At most 100 instance types can be described at once.")
        unknown = [name for name in names if name not in self.ledger.catalogue]
        if unknown:
            listed = ", ".join(unknown)
            raise Refusal("InvalidInstanceType", f"The following supplied instance types do not exist: [{listed}]")
        views = [type_view(name, self.ledger.catalogue[name]) for name in names]
        read = {
            "instance-type": lambda view: [view["InstanceType"]],
            "processor-info.supported-architecture": lambda view: view["ProcessorInfo"]["SupportedArchitectures"],
            "vcpu-info.default-vcpus": lambda view: [str(view["VCpuInfo"]["DefaultVCpus"])],
            "memory-info.size-in-mib": lambda view: [str(view["MemoryInfo"]["SizeInMiB"])],
        }
        found = passing(views, request.get("Filters"), read)
        return paged(request, "InstanceTypes", found, smallest=5, largest=100)

    @operation
    def describe_instance_type_offerings(self, request: JSON) -> JSON:
        """Every type of the catalogue is offered in the region and in each zone, except where it is withdrawn."""
        by_zone = request.get("LocationType") == "availability-zone"
        kind = "availability-zone" if by_zone else "region"
        rows = [
            {"InstanceType": name, "LocationType": kind, "Location": place}
            for name in self.ledger.catalogue
            if (zones := [each for each in self.ledger.zones if f"{name}/{each}" not in self.ledger.withdrawn])
            for place in (zones if by_zone else (self.ledger.region.name,))
        ]
        read = {"instance-type": lambda row: [row["InstanceType"]], "location": lambda row: [row["Location"]]}
        return paged(request, "InstanceTypeOfferings", passing(rows, request.get("Filters"), read), smallest=5)

    @operation
    def get_spot_placement_scores(self, request: JSON) -> JSON:
        """Of the zones, or of the region as a whole: 10 if every type is available, 1 if none is.

        Fewer than three types always score low, as AWS says.
        """
        types = request.get("InstanceTypes") or []
        regions = request.get("RegionNames") or [self.ledger.region.name]
        unknown = [name for name in types if name not in self.ledger.catalogue]
        if unknown or not types:
            raise Refusal("InvalidParameterValue", f"Invalid instance types: [{', '.join(unknown)}]")
        scores = {zone: self._score(types, zone) for zone in self.ledger.zones}
        rows: list[JSON] = []
        if self.ledger.region.name in regions:
            rows = [
                {
                    "Region": self.ledger.region.name,
                    "AvailabilityZoneId": self._zone_row(zone)["ZoneId"],
                    "Score": score,
                }
                for zone, score in scores.items()
            ]
            if not request.get("SingleAvailabilityZone"):
                rows = [{"Region": self.ledger.region.name, "Score": max(scores.values())}]
        rows.sort(key=lambda row: -row["Score"])
        return paged(request, "SpotPlacementScores", rows[:10], smallest=10)

    def _score(self, types: list[str], zone: str) -> int:
        if len(types) < 3:
            return 1
        there = sum(self.ledger.available.get(f"{name}/{zone}", 1) > 0 for name in types)
        return 1 + 9 * there // len(types)

    @operation
    def describe_availability_zones(self, request: JSON) -> JSON:
        """All of the region's, or those named."""
        wanted = request.get("ZoneNames") or self.ledger.zones
        for zone in wanted:
            if zone not in self.ledger.zones:
                raise Refusal("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
        rows = [self._zone_row(zone) for zone in self.ledger.zones if zone in wanted]
        read = {
            "zone-name": lambda row: [row["ZoneName"]],
            "zone-type": lambda row: [row["ZoneType"]],
            "state": lambda row: [row["State"]],
        }
        return {"AvailabilityZones": passing(rows, request.get("Filters"), read)}

    def _changes(self, name: str, zone: str, start: float, end: float) -> Iterator[tuple[float, float]]:
        at = start // PRICE_STEP_S * PRICE_STEP_S
        last = None
        while at <= end:
            price = round(self.ledger.prices(name, zone, at), 6)
            if price != last:
                yield at, price
            last, at = price, at + PRICE_STEP_S

    def _price_row(self, name: str, zone: str, at: float, price: float) -> JSON:
        return {
            "AvailabilityZone": zone,
            "InstanceType": name,
            "ProductDescription": _PRODUCT,
            "SpotPrice": f"{price:.6f}",
            "Timestamp": utc(at),
        }

    def _zone_row(self, zone: str) -> JSON:
        return {
            "State": "available",
            "OptInStatus": "opt-in-not-required",
            "RegionName": self.ledger.region.name,
            "ZoneName": zone,
            "ZoneId": f"{self.ledger.region.name}-az{self.ledger.zones.index(zone) + 1}",
            "GroupName": self.ledger.region.name,
            "NetworkBorderGroup": self.ledger.region.name,
            "ZoneType": "availability-zone",
        }


def type_view(name: str, machine: MachineType) -> JSON:
    """An InstanceTypeInfo with the members that this project reads."""
    view: JSON = {
        "InstanceType": name,
        "CurrentGeneration": True,
        "SupportedUsageClasses": ["on-demand", "spot"],
        "BareMetal": False,
        "ProcessorInfo": {"SupportedArchitectures": [machine.architecture]},
        "VCpuInfo": {"DefaultVCpus": machine.vcpus},
        "MemoryInfo": {"SizeInMiB": machine.memory_mib},
    }
    if machine.gpus:
        gpu = {
            "Name": machine.gpu_model or "",
            "Manufacturer": "NVIDIA",
            "Count": machine.gpus,
            "MemoryInfo": {"SizeInMiB": machine.gpu_memory_mib},
        }
        view["GpuInfo"] = {"Gpus": [gpu], "TotalGpuMemoryInMiB": machine.gpus * machine.gpu_memory_mib}
    return view


def walking_prices(catalogue: Mapping[str, MachineType]) -> Callable[[str, str, float], float]:
    """(instance type, zone, epoch seconds) -> USD per hour: an invented price history for local mode.

    Prices stay within 17 % of the type's typical price, change every six hours by a few per cent, and depend on type,
    zone and time alone. Nothing is measured here. (In 2022, 58 % of AWS's pools kept their price for 3.5 days.)
    """

    def price(instance_type: str, zone: str, at: float) -> float:
        step = int(at // WALK_STEP_S)
        pool = f"{instance_type}/{zone}"
        wave = math.sin(2 * math.pi * (step * WALK_STEP_S / _WEEK_S + _hash_share(pool)))
        change = _ZONE * _sway(f"{pool}/zone") + _WAVE * wave + _NOISE * _sway(f"{pool}/{step}")
        return catalogue[instance_type].typical_spot_usd_per_hour * (1 + change)

    return price


def _hash_share(name: str) -> float:
    return crc32(name.encode()) / 2**32


def _sway(name: str) -> float:
    return 2 * _hash_share(name) - 1
