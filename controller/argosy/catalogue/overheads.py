"""What does an instance cost beside its price in EC2: its disk, its address, its logs and traffic between Regions?

Every instance has one gp3 volume and, in public subnets, a public IPv4 address; both are billed by the second for as
long as it lives. Logs and images that come from another Region are billed by the GB and not measured by Argosy.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from argosy.catalogue.files import document

_FILE = "overheads.json"
_GP3, _ADDRESS = "gp3UsdPerGbMonth", "publicIpv4UsdPerHour"
_LOGS, _TRANSFER = "logsUsdPerGb", "transferUsdPerGb"


class Overheads(NamedTuple):
    """What an instance costs an hour beside its price in EC2, USD."""

    disk_usd_per_hour: float
    address_usd_per_hour: float

    @property
    def usd_per_hour(self) -> float:
        """Together."""
        return self.disk_usd_per_hour + self.address_usd_per_hour


@cache
def overheads_of(region: str, disk_gib: int, has_address: bool) -> Overheads:
    """Of an instance with a volume of that size. Volumes are billed by the month: its mean length is taken."""
    disk_usd = disk_gib * _price(region, _GP3) / document(_FILE)["hoursPerMonth"]
    return Overheads(disk_usd, _price(region, _ADDRESS) if has_address else 0.0)


@cache
def logs_usd_per_gb(region: str) -> float:
    """What CloudWatch Logs takes for a GB that is written to it."""
    return _price(region, _LOGS)


@cache
def transfer_usd_per_gb(source: str, target: str = "") -> float:
    """What a GB costs from one Region to another, billed in `source`; to any other one without a `target`."""
    if source == target:
        return 0.0
    nearer = document(_FILE)["neighbours"].get(source, {})
    return float(nearer.get(target, _price(source, _TRANSFER)))


@cache
def is_listed(region: str) -> bool:
    """Whether the price of its disks is known; otherwise a high one is assumed."""
    return _GP3 in document(_FILE)["regions"].get(region, {})


def image_gb(has_gpus: bool) -> float:
    """How many GB an instance is assumed to pull before it can work: a compressed image."""
    assumed: dict[str, Any] = document(_FILE)["assumed"]
    return float(assumed["imageGbWithGpus" if has_gpus else "imageGb"])


def log_gb_per_attempt() -> float:
    """How much an attempt is assumed to write to its log."""
    return float(document(_FILE)["assumed"]["logKbPerAttempt"]) / 1e6


def _price(region: str, name: str) -> float:
    data = document(_FILE)
    return float(data["regions"].get(region, {}).get(name, data["otherwise"][name]))
