"""An instance type in the catalogue: its size, price, offers and interruptions.

The figures are data (`files`), shipped as JSON; each file names its date and source. The live market (spot prices,
interruptions) and the registered size of container instances come from AWS and override these figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from argosy.catalogue.files import FILES, document
from argosy.model.instance_types import InstanceType

_FILE = "overheads.json"
_GP3, _ADDRESS = "gp3UsdPerGbMonth", "publicIpv4UsdPerHour"
_LOGS, _TRANSFER = "logsUsdPerGb", "transferUsdPerGb"


class Overheads(NamedTuple):
    """The hourly cost of an instance besides its price in EC2, USD."""

    disk_usd_per_hour: float
    address_usd_per_hour: float

    @property
    def usd_per_hour(self) -> float:
        """The sum."""
        return self.disk_usd_per_hour + self.address_usd_per_hour


@cache
def overheads_of(region: str, disk_gib: float, has_address: bool) -> Overheads:
    """The overheads of an instance with a volume of that size. Volumes are billed by the month; the mean length of a
    month is used."""
    disk_usd = disk_gib * _price(region, _GP3) / document(_FILE)["hoursPerMonth"]
    return Overheads(disk_usd, _price(region, _ADDRESS) if has_address else 0.0)


@cache
def logs_usd_per_gb(region: str) -> float:
    """CloudWatch Logs' charge for a GB that is written to it."""
    return _price(region, _LOGS)


@cache
def transfer_usd_per_gb(source: str, target: str = "") -> float:
    """The price of a GB from one Region to another, billed in `source`; without a `target`, to any other Region."""
    if source == target:
        return 0.0
    nearer = document(_FILE)["neighbours"].get(source, {})
    return float(nearer.get(target, _price(source, _TRANSFER)))


@cache
def is_listed(region: str) -> bool:
    """Whether the price of its disks is known; otherwise a high one is assumed."""
    return _GP3 in document(_FILE)["regions"].get(region, {})


def image_gb(has_gpus: bool) -> float:
    """The GB that an instance is assumed to pull before it can start a task: a compressed image."""
    assumed: dict[str, Any] = document(_FILE)["assumed"]
    return float(assumed["imageGbWithGpus" if has_gpus else "imageGb"])


def log_gb_per_attempt() -> float:
    """The assumed size of an attempt's log."""
    return float(document(_FILE)["assumed"]["logKbPerAttempt"]) / 1e6


def _price(region: str, name: str) -> float:
    data = document(_FILE)
    return float(data["regions"].get(region, {}).get(name, data["otherwise"][name]))


HOME_REGION = "us-east-1"
CPU_UNITS_PER_VCPU = 1024  # the ECS agent registers vCPUs x 1024
# The part of its memory that a task with GPUs may use as /dev/shm, which NCCL's processes and data loaders share: a
# half, Linux's default for a tmpfs. Docker's default of 64 MiB is too little; files there count as task memory.
SHARED_MEMORY_DIVISOR = 2
ECS_RESERVED_MEMORY_MIB = 256  # the agent's ECS_RESERVED_MEMORY; the launch templates set the same number

# Share of the nominal memory that Linux reports as MemTotal, which is what the agent registers before it subtracts
# ECS_RESERVED_MEMORY. AWS gives 7,985 of 8,192 MiB (97.5 %) for an m4.large with an older, lighter kernel
# (https://docs.aws.amazon.com/batch/latest/userguide/memory-management.html); Karpenter assumes 92.5 % to be safe.
# 95 % is between the two; a registered instance replaces the estimate by its own figure.
MEMORY_SHARE_PERCENT = 95

BANDS = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")  # the Spot Instance Advisor's interruptions in a month


def registered_memory_mib(nominal_mib: int) -> int:
    """The memory that an instance of `nominal_mib` will offer to tasks, rounded down (see MEMORY_SHARE_PERCENT)."""
    return nominal_mib * MEMORY_SHARE_PERCENT // 100 - ECS_RESERVED_MEMORY_MIB


@cache
def load_catalogue(region: str = HOME_REGION) -> Mapping[str, InstanceType]:
    """Every known type by name, whole families in ascending size, at `region`'s prices.

    A type whose price in `region` is unknown has the price of us-east-1, or of any other Region, so every type has a
    price. An unknown typical spot price is assumed to be on-demand's. Types that no Region offers any more
    (p3.2xlarge) are included: `offered` returns the types that a Region offers.
    """
    prices = document("prices.json")["regions"]
    nearest = [prices.get(region, {}), prices[HOME_REGION], *prices.values()]
    found = {}
    for name, row in document("instance_types.json")["types"].items():
        known = next((rows[name] for rows in nearest if name in rows), None)
        if known is not None:
            found[name] = _instance_type(name, row, known[0], known[1] or known[0])
    return MappingProxyType(found)


def image_of(name: str) -> str:
    """Which of a deployment's AMIs a type's instances start from; "" for a type that is not known."""
    kind = load_catalogue().get(name)
    return kind.image if kind is not None else ""


@cache
def in_region(kind: InstanceType, region: str) -> InstanceType:
    """The type at `region`'s prices; `kind` has those of us-east-1."""
    here = load_catalogue(region).get(kind.name) if region != HOME_REGION else None
    if here is None:
        return kind
    return replace(
        kind,
        on_demand_usd_per_hour=here.on_demand_usd_per_hour,
        typical_spot_usd_per_hour=here.typical_spot_usd_per_hour,
    )


@cache
def offered(region: str) -> frozenset[str]:
    """The catalogue's types that EC2 is known to offer in `region`; empty for a Region without data."""
    return frozenset(document("offered.json")["regions"].get(region, ()))


def is_offered_in(region: str, zone: str, name: str) -> bool:
    """Whether a type that `region` offers is offered in one of its zones; True if unknown. Only a refreshed catalogue
    has zones, because their names differ between accounts."""
    return zone not in lacking_zones(region, name)


def lacking_zones(region: str, name: str) -> tuple[str, ...]:
    """The zones of `region` that are known not to offer the type."""
    zones = document("offered.json").get("zones", {}).get(region, {})
    return tuple(zone for zone, lacks in zones.items() if name in lacks)


@cache
def interruption_band(region: str, name: str) -> int | None:
    """Index into BANDS: how often AWS reclaimed such instances in a month; None = not listed by the Advisor."""
    band = document("interruption_bands.json")["regions"].get(region, {}).get(name)
    return None if band is None else int(band)


def as_of(region: str = HOME_REGION) -> Mapping[str, str]:
    """The date (ISO) of each data file, for messages that quote it; that of `region`'s figures where they are newer."""
    dates = {name.removesuffix(".json"): document(name) for name in FILES}
    return {name: each.get("refreshed", {}).get(region, each["date"]) for name, each in dates.items()}


def _instance_type(name: str, row: Mapping[str, Any], on_demand: float, spot: float) -> InstanceType:
    return InstanceType(
        name=name,
        vcpus=row["vcpus"],
        cpu_units=row["vcpus"] * CPU_UNITS_PER_VCPU,
        memory_mib=row["memoryMib"],
        registered_memory_mib=row.get("registeredMemoryMib") or registered_memory_mib(row["memoryMib"]),
        gpus=row["gpus"],
        gpu_model=row["gpuModel"],
        gpu_memory_mib=row["gpuMemoryMib"],
        architecture=row["architecture"],
        on_demand_usd_per_hour=on_demand,
        typical_spot_usd_per_hour=spot,
    )
