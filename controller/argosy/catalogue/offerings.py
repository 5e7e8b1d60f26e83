"""EC2's own answers about a Region: which zones it has, and which of them offer an instance type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

NAMES_PER_CALL = 100  # a filter takes at most 200 values


def zones_of(ec2: Any) -> list[str]:
    """The names of the zones that this account may use, in order. Raises botocore's errors."""
    found = ec2.describe_availability_zones(Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}])
    return sorted(str(zone["ZoneName"]) for zone in found["AvailabilityZones"])


def offered_by_zone(describe: Callable[..., Any], names: Iterable[str]) -> dict[str, set[str]]:
    """Zone -> those of `names` that EC2 offers there; zones that offer none are left out. Raises botocore's errors.

    describe: DescribeInstanceTypeOfferings. A filter tolerates types that are gone; a list of names does not.
    """
    found: dict[str, set[str]] = {}
    wanted = sorted(names)
    for first in range(0, len(wanted), NAMES_PER_CALL):
        named = [{"Name": "instance-type", "Values": wanted[first : first + NAMES_PER_CALL]}]
        request: dict[str, Any] = {"LocationType": "availability-zone", "Filters": named}
        while True:
            page = describe(**request)
            for each in page["InstanceTypeOfferings"]:
                found.setdefault(str(each["Location"]), set()).add(str(each["InstanceType"]))
            if not page.get("NextToken"):
                break
            request["NextToken"] = page["NextToken"]
    return found
