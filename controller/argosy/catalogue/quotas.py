"""EC2's vCPU quotas of an instance: per Region, separately for spot and on-demand (aws.md 4.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class QuotaFamily:
    """Instance families that share a quota. Codes: of the spot and of the on-demand quota in Service Quotas."""

    key: str  # as the setting vcpuQuotas names it
    name: str  # as AWS names it
    families: str  # regular expression for the part of a type's name before the dot
    spot_code: str
    on_demand_code: str


# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html, codes by `list-service-quotas`. The first
# match counts. On-demand P5 instances share the quota of the other P families (`quota_key`).
FAMILIES = (
    QuotaFamily("g", "G and VT", r"(gr?|vt)[0-9].*", "L-3819A6DF", "L-DB2E81BA"),
    QuotaFamily("p5", "P5", r"p5.*", "L-C4BD4855", "L-417A185B"),
    QuotaFamily("p", "P4, P3 and P2", r"p[0-9].*", "L-7212CCBC", "L-417A185B"),
    QuotaFamily("inf", "Inf", r"inf.*", "L-B5D1601B", "L-1945791B"),
    QuotaFamily("trn", "Trn", r"trn.*", "L-6B0D517C", "L-2C3B7624"),
    QuotaFamily("dl", "DL", r"dl[0-9].*", "L-85EED4F7", "L-6E869C2A"),
    QuotaFamily("f", "F", r"f[0-9].*", "L-88CF9481", "L-74FC7D96"),
    QuotaFamily("x", "X", r"(x|u-).*", "L-E3A00192", "L-7295265B"),
    QuotaFamily("standard", "Standard", r".*", "L-34B43A08", "L-1216C47A"),
)
BY_KEY = {family.key: family for family in FAMILIES}


@cache
def quota_family(type_name: str) -> QuotaFamily:
    """The first family that matches; Standard matches every type."""
    family = type_name.partition(".")[0]
    return next(each for each in FAMILIES if re.fullmatch(each.families, family))


def quota_key(type_name: str, purchase: str) -> str:
    """The name, in the setting vcpuQuotas, of the quota that a type draws on when it is bought as `purchase` ("spot" or
    "on-demand")."""
    key = quota_family(type_name).key
    return "p" if key == "p5" and purchase == "on-demand" else key
