"""The account's quotas and a cell's needs. New accounts often have 0 vCPUs for GPU classes, and 5 VPCs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from argosy.catalogue.lookup import load_catalogue
from argosy.catalogue.quotas import QuotaFamily, quota_family
from argosy.cli.deployment.checked_account import deployed
from argosy.cli.deployment.findings import Finding, missing, note, ok, wrong
from argosy.cli.deployment.remedies import MEND_SETTINGS, raise_quota
from argosy.model.resources import CPU_UNITS_PER_VCPU, said_vcpus
from argosy.settings.settings import VcpuQuotas

if TYPE_CHECKING:
    from argosy.cli.deployment.checked_account import CheckedAccount

WANTED_VCPUS = 64  # the quota to ask for: a few instances of most sizes
VPCS = "L-F678F1CE"  # VPCs per Region, of the service "vpc"
CONCURRENCY, WANTED_CONCURRENCY = "L-B99A9384", 1000  # of the service "lambda"; AWS's usual value
# At once: the api for a few users, the controller, the watchdog. Below the second, bursts of other functions of the
# account may throttle them. A new account may have 10.
LEAST_CONCURRENCY, AMPLE_CONCURRENCY = 5, 100
UNRESERVED = 100  # what AWS does not let an account reserve


def spot_quotas(checked: CheckedAccount, cell: str) -> list[Finding]:
    """One finding for each class that the types draw on.

    A class without room is wrong if any run may need it, which is true of Standard; for a GPU class it is a note, since
    only GPU runs would wait.
    """
    client, found = checked.session.client("service-quotas", cell), []
    for kind, smallest in _smallest(checked).items():
        vcpus = _quota(client, "ec2", kind.spot_code)
        name, has = f"spot quota {kind.name}", said_vcpus(vcpus * CPU_UNITS_PER_VCPU)
        if vcpus >= smallest:
            named = checked.settings.vcpu_quotas.get(cell, VcpuQuotas()).spot.get(kind.key, 0)
            found += _above(name, has, named) if named > vcpus else ok(name, has)
            continue
        says = f"{has}, but the smallest of your types needs {smallest}: these instances will never start"
        finding = wrong if kind.name == "Standard" else note
        found += finding(name, says, raise_quota(cell, "ec2", kind.spot_code, max(WANTED_VCPUS, smallest)))
    return found


def on_demand_quotas(checked: CheckedAccount, cell: str) -> list[Finding]:
    """Only notes: on-demand is bought where a deadline or `capacity.fallback` asks for it."""
    client = checked.session.client("service-quotas", cell)
    codes: dict[str, tuple[QuotaFamily, int]] = {}  # all P families share one
    for kind, smallest in _smallest(checked).items():
        codes[kind.on_demand_code] = min(codes.get(kind.on_demand_code, (kind, smallest)), (kind, smallest), key=_vcpus)
    vcpus = {code: _quota(client, "ec2", code) for code in codes}
    has = ", ".join(f"{kind.name} {vcpus[code]:g}" for code, (kind, _) in codes.items())
    named = checked.settings.vcpu_quotas.get(cell, VcpuQuotas()).on_demand
    for code, (kind, _) in codes.items():
        if (most := named.get("p" if kind.key == "p5" else kind.key, 0)) > vcpus[code]:
            return _above("on-demand quota", f"{kind.name}: {said_vcpus(vcpus[code] * CPU_UNITS_PER_VCPU)}", most)
    short = [code for code, (_, smallest) in codes.items() if vcpus[code] < smallest]
    if not short:
        return ok("on-demand quota", f"vCPUs: {has}")
    says = f"vCPUs: {has}; beyond that, runs with a deadline or a fallback get spot only"
    code, (_, smallest) = short[0], codes[short[0]]
    return note("on-demand quota", says, raise_quota(cell, "ec2", code, max(WANTED_VCPUS, smallest)))


def _above(name: str, has: str, named: int) -> list[Finding]:
    """The settings promise plans and orders more than EC2 grants."""
    return note(name, f"{has}, but vcpuQuotas counts on {named}: what is above it is refused", MEND_SETTINGS)


def concurrency(checked: CheckedAccount) -> list[Finding]:
    """Executions at once that the account's functions share; the setting `reservedConcurrency` takes some of them."""
    name, settings = "Lambda concurrency", checked.settings
    client = checked.session.client("lambda", settings.region)
    free = client.get_account_settings()["AccountLimit"]["UnreservedConcurrentExecutions"]
    step = raise_quota(settings.region, "lambda", CONCURRENCY, WANTED_CONCURRENCY)
    before = deployed(client, settings.prefix) if settings.reserved_concurrency else None
    more = settings.reserved_concurrency - (before.reserved_concurrency if before else 0)
    if more > 0 and free - more < UNRESERVED:
        says = f"{free} executions are unreserved and {UNRESERVED} must stay so: reservedConcurrency {more} is refused"
        return wrong(name, says, f"set `reservedConcurrency` to 0, or `{step}`")
    if free < LEAST_CONCURRENCY:
        return wrong(name, f"{free} executions at once are left, {LEAST_CONCURRENCY} are needed", step)
    if free < AMPLE_CONCURRENCY:
        says = f"{free} executions at once, shared with the account's other functions: in bursts, submits get a 429"
        return note(name, says, step)
    return ok(name, f"{free} executions at once")


def vpcs(checked: CheckedAccount, cell: str) -> list[Finding]:
    """A deployment makes one VPC in each cell that is not given one; the quota of a new account is 5."""
    if cell in checked.settings.vpcs:
        return ok("VPC", f"{checked.settings.vpcs[cell].vpc_id}, from the settings")
    pages = checked.session.client("ec2", cell).get_paginator("describe_vpcs").paginate()
    tags = [{tag["Key"]: tag["Value"] for tag in vpc.get("Tags", ())} for page in pages for vpc in page["Vpcs"]]
    limit = _quota(checked.session.client("service-quotas", cell), "vpc", VPCS)
    if any(each.get("argosy:stage") == checked.settings.stage for each in tags):
        return ok("VPC", "the deployment has its own VPC")
    if len(tags) < limit:
        return ok("VPC", f"{len(tags)} of {limit:g} are in use")
    says = f"all {limit:g} VPCs that this account may have are in use: the deployment's cannot be created"
    return wrong("VPC", says, raise_quota(cell, "vpc", VPCS, len(tags) + 1))


def _smallest(checked: CheckedAccount) -> Mapping[QuotaFamily, int]:
    """The classes that the types draw on, each with the vCPUs of its smallest type."""
    smallest: dict[QuotaFamily, int] = {}
    catalogue = load_catalogue()
    for name in checked.settings.instance_types.all:
        kind = quota_family(name)
        vcpus = catalogue[name].vcpus
        smallest[kind] = min(vcpus, smallest.get(kind, vcpus))
    return smallest


def _vcpus(need: tuple[QuotaFamily, int]) -> int:
    return need[1]


def _quota(client: Any, service: str, code: str) -> float:
    """The account's own value, else AWS's default."""
    try:
        return float(client.get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"])
    except Exception as fault:
        if not missing(fault, "NoSuchResourceException"):
            raise
    return float(client.get_aws_default_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"])
