"""AWS's data on instance types in a Region, as plain rows: sizes, zones, the price list and spot prices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Any

from argosy.aws.on_demand_prices import HOURS, PRICE_LIST_REGION, by_type, filters_of, usd_of
from argosy.catalogue.offerings import NAMES_PER_CALL, offered_by_zone, zones_of
from argosy.cli.problems import CliError
from argosy.cli.session import Session

SPOT_PRODUCT = "Linux/UNIX"
# Names in overheads.json: service, filters, usage type without the Region's prefix ("EUC1-"), units.
_OVERHEADS: dict[str, tuple[str, dict[str, str], str, tuple[str, ...]]] = {
    "gp3UsdPerGbMonth": ("AmazonEC2", {"volumeApiName": "gp3"}, r"EBS:VolumeUsage\.gp3", ("GB-Mo",)),
    "publicIpv4UsdPerHour": ("AmazonVPC", {}, "PublicIPv4:InUseAddress", HOURS),
    "logsUsdPerGb": ("AmazonCloudWatch", {"productFamily": "Data Payload"}, "DataProcessing-Bytes", ("GB",)),
}


@dataclass(slots=True)
class RegionFigures:
    """One Region's answers. types: fields as in instance_types.json; prices in USD an hour."""

    types: dict[str, dict[str, Any]] = field(default_factory=dict)
    zones: dict[str, set[str]] = field(default_factory=dict)  # zone -> types that are offered there
    on_demand: dict[str, float] = field(default_factory=dict)
    spot: dict[str, float] = field(default_factory=dict)  # the median over the zones
    overheads: dict[str, float] = field(default_factory=dict)  # by their names in overheads.json
    notes: list[str] = field(default_factory=list)


def read_region(session: Session, region: str, patterns: list[str]) -> RegionFigures:
    """The catalogue's types and those that match `patterns`. Raises CliError for a pattern that nothing matches."""
    from argosy.catalogue.files import document

    ec2, found = session.client("ec2", region), RegionFigures()
    known = list(document("instance_types.json")["types"])
    for chunk in _chunks([*known, *patterns]):
        for view in _pages(ec2, "describe_instance_types", "InstanceTypes", Filters=_named(chunk)):
            _take_type(found, view)
    if absent := [pattern for pattern in patterns if not _matches(found, pattern)]:
        raise CliError(
            f"{region} has no usable instance type that matches {', '.join(map(repr, absent))}.",
            next_step="Argosy can use x86_64 and arm64 types with whole NVIDIA GPUs or none, but not bare metal",
        )
    names = list(found.types)
    if gone := [name for name in known if name not in found.types]:
        found.notes.append(
            f"{region} does not describe {', '.join(gone)}: kept unchanged, and marked as not offered there"
        )
    _take_offers(found, ec2, names)
    _take_spot(found, ec2, names, session.tools.now())
    if session.connection.is_loopback:
        found.notes.append(f"{region}: local AWS has no price list; only spot prices are updated")
        return found
    pricing = session.client("pricing", PRICE_LIST_REGION)
    _take_on_demand(found, pricing, region)
    _take_overheads(found, pricing, region)
    return found


def _take_type(found: RegionFigures, view: Mapping[str, Any]) -> None:
    """Types that Argosy cannot use are left out: no ECS image runs on them, or their GPUs are not NVIDIA's. A part
    of a GPU counts as one."""
    gpus = view.get("GpuInfo", {}).get("Gpus", [])
    counts = [gpu.get("Count") or gpu.get("LogicalGpuCount", 0) for gpu in gpus]
    usable = all(gpu.get("Manufacturer") == "NVIDIA" for gpu in gpus) and all(counts)
    other = any(view.get(part) for part in ("InferenceAcceleratorInfo", "NeuronInfo", "FpgaInfo"))
    supported = view["ProcessorInfo"]["SupportedArchitectures"]
    architecture = next((each for each in ("x86_64", "arm64") if each in supported), None)
    if view.get("BareMetal") or other or not (architecture and usable):
        return
    found.types[view["InstanceType"]] = {
        "vcpus": view["VCpuInfo"]["DefaultVCpus"],
        "memoryMib": view["MemoryInfo"]["SizeInMiB"],
        "gpus": sum(counts),
        "gpuModel": gpus[0]["Name"] if gpus else None,
        "gpuMemoryMib": gpus[0]["MemoryInfo"]["SizeInMiB"] if gpus else 0,
        "architecture": architecture,
    }


def _matches(found: RegionFigures, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for name in found.types)


def _take_offers(found: RegionFigures, ec2: Any, names: list[str]) -> None:
    there = offered_by_zone(ec2.describe_instance_type_offerings, names)
    found.zones = {zone: there.get(zone, set()) for zone in zones_of(ec2)}


def _take_spot(found: RegionFigures, ec2: Any, names: list[str], now: float) -> None:
    newest: dict[tuple[str, str], tuple[datetime, float]] = {}
    moment = datetime.fromtimestamp(now, UTC)
    for chunk in _chunks(names):
        request = {"InstanceTypes": chunk, "ProductDescriptions": [SPOT_PRODUCT], "StartTime": moment}
        for each in _pages(ec2, "describe_spot_price_history", "SpotPriceHistory", **request):
            pool, price = (each["InstanceType"], each["AvailabilityZone"]), float(each["SpotPrice"])
            if price > 0:
                newest[pool] = max(newest.get(pool, (each["Timestamp"], price)), (each["Timestamp"], price))
    by_type: dict[str, list[float]] = {}
    for (name, _), (_, price) in newest.items():
        by_type.setdefault(name, []).append(price)
    found.spot = {name: round(median(prices), 4) for name, prices in by_type.items()}


def _take_on_demand(found: RegionFigures, pricing: Any, region: str) -> None:
    listed = _pages(pricing, "get_products", "PriceList", ServiceCode="AmazonEC2", Filters=filters_of(region))
    found.on_demand = {name: usd for name, usd in by_type(listed).items() if name in found.types}
    if absent := [name for name in found.types if name not in found.on_demand]:
        found.notes.append(f"{region}: the price list has no on-demand price for {', '.join(absent)}: kept unchanged")


def _take_overheads(found: RegionFigures, pricing: Any, region: str) -> None:
    for name, (service, filters, usage_type, units) in _OVERHEADS.items():
        asked = [
            {"Type": "TERM_MATCH", "Field": key, "Value": value}
            for key, value in {**filters, "regionCode": region}.items()
        ]
        products = map(json.loads, _pages(pricing, "get_products", "PriceList", ServiceCode=service, Filters=asked))
        prices = [
            usd
            for product in products
            if re.fullmatch(f"([A-Z0-9]+-)?{usage_type}", product["product"].get("attributes", {}).get("usagetype", ""))
            for usd in usd_of(product, units)
        ]
        if prices:
            found.overheads[name] = max(prices)  # of tiers, the first
        else:
            found.notes.append(f"{region}: the price list has no {usage_type}: {name} is kept unchanged")


def _named(names: Iterable[str]) -> list[dict[str, Any]]:
    """Unlike a list of names, a filter tolerates types that are gone, and accepts wildcards."""
    return [{"Name": "instance-type", "Values": list(names)}]


def _chunks(names: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(names), NAMES_PER_CALL):
        yield names[first : first + NAMES_PER_CALL]


def _pages(client: Any, operation: str, member: str, **request: Any) -> Iterator[Any]:
    for page in client.get_paginator(operation).paginate(**request):
        yield from page[member]
