"""May this account run as many spot vCPUs as its instance types need? New accounts often have 0 for GPU classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.catalogue.quotas import QuotaFamily, quota_family
from argosy.cli.deployment.findings import Finding, missing

WANTED_VCPUS = 64  # what to ask for: a few instances of most sizes


def spot_quotas(client: Any, type_names: Iterable[str]) -> list[Finding]:
    """One finding for each class that the types draw on.

    A class without room is wrong if any run may need it, which is true of Standard; for a GPU class it is a note, since
    only GPU runs would wait.
    """
    smallest: dict[QuotaFamily, int] = {}
    catalogue = load_catalogue()
    for name in type_names:
        kind = quota_family(name)
        vcpus = catalogue[name].vcpus
        smallest[kind] = min(vcpus, smallest.get(kind, vcpus))
    return [_finding(client, kind, vcpus) for kind, vcpus in smallest.items()]


def _finding(client: Any, kind: QuotaFamily, smallest_vcpus: int) -> Finding:
    name = f"spot quota {kind.name}"
    vcpus = _quota(client, kind.spot_code)
    if vcpus >= smallest_vcpus:
        return Finding(name, "ok", f"{vcpus:g} vCPUs")
    says = f"{vcpus:g} vCPUs, the smallest of your types has {smallest_vcpus}: such instances will never start"
    step = (
        f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {kind.spot_code}"
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
