"""May this account run as many spot vCPUs as its instance types need? New accounts often have 0 for GPU classes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from controller.catalogue.types import load_catalogue
from controller.cli.findings import Finding, missing


@dataclass(frozen=True)
class QuotaClass:
    """One of EC2's spot quotas; it counts vCPUs per Region."""

    name: str
    code: str
    families: str  # regular expression for the part before the dot


# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html, codes by `list-service-quotas`.
CLASSES = (
    QuotaClass("G and VT", "L-3819A6DF", r"(g|vt)[0-9].*"),
    QuotaClass("P5", "L-C4BD4855", r"p5.*"),
    QuotaClass("P4, P3 and P2", "L-7212CCBC", r"p[0-9].*"),
    QuotaClass("Inf", "L-B5D1601B", r"inf.*"),
    QuotaClass("Trn", "L-6B0D517C", r"trn.*"),
    QuotaClass("DL", "L-85EED4F7", r"dl[0-9].*"),
    QuotaClass("F", "L-88CF9481", r"f[0-9].*"),
    QuotaClass("X", "L-E3A00192", r"(x|u-).*"),
    QuotaClass("Standard", "L-34B43A08", r".*"),
)
WANTED_VCPUS = 64  # what to ask for: a few instances of most sizes


def spot_quotas(client: Any, type_names: Iterable[str]) -> list[Finding]:
    """One finding for each class that the types draw on. A class without room is wrong if all work may need it, that is
    Standard; of a GPU class it is a note: only GPU runs would wait."""
    smallest: dict[QuotaClass, int] = {}
    catalogue = load_catalogue()
    for name in type_names:
        kind = quota_class(name)
        vcpus = catalogue[name].vcpus
        smallest[kind] = min(vcpus, smallest.get(kind, vcpus))
    return [_finding(client, kind, vcpus) for kind, vcpus in smallest.items()]


def quota_class(type_name: str) -> QuotaClass:
    """The first class that matches; what matches nothing special is Standard."""
    family = type_name.partition(".")[0]
    return next(kind for kind in CLASSES if re.fullmatch(kind.families, family))


def _finding(client: Any, kind: QuotaClass, smallest_vcpus: int) -> Finding:
    name = f"spot quota {kind.name}"
    vcpus = _quota(client, kind.code)
    if vcpus >= smallest_vcpus:
        return Finding(name, "ok", f"{vcpus:g} vCPUs")
    says = f"{vcpus:g} vCPUs, the smallest of your types has {smallest_vcpus}: such instances will never start"
    step = (
        f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {kind.code}"
        f" --desired-value {max(WANTED_VCPUS, smallest_vcpus)}"
    )
    return Finding(name, "wrong" if kind.name == "Standard" else "note", says, step)


def _quota(client: Any, code: str) -> float:
    """vCPUs: the account's own value, else AWS's default."""
    try:
        return float(client.get_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"])
    except Exception as fault:
        if not missing(fault, "NoSuchResourceException"):
            raise
    return float(client.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"])
