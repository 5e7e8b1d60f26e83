"""How much may queues be guaranteed at most, by what the deployment is?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from argosy.api.admission import DeploymentLimits
from argosy.catalogue.quotas import quota_key
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.resources import CPU_UNITS_PER_VCPU
from argosy.spec.sharing import Limit


def limits_of_guarantees(deployment: DeploymentLimits, policy: Policy) -> Mapping[str, Limit]:
    """By unit, those that are known: `maxInstances`, so many of the largest instances, and vCPU quotas where there is
    one for everything that may be bought."""
    most = policy.max_instances
    found = {"instances": Limit(most, f"maxInstances of the deployment is {most:,}")}
    if not deployment.shapes:
        return found
    vcpus = max(shape.cpu_units for shape in deployment.shapes.values()) // CPU_UNITS_PER_VCPU
    gpus = max(shape.gpus for shape in deployment.shapes.values())
    found["vcpus"] = _of_instances(most, vcpus, "vCPUs")
    found["gpus"] = _of_instances(most, gpus, "GPUs")
    quota = _vcpus_of_quotas(deployment.cells, deployment.shapes, policy)
    if quota is not None and quota < found["vcpus"].amount:
        found["vcpus"] = Limit(quota, f"the vCPU quotas of the deployment add up to {quota:,}")
    return found


def _of_instances(most: int, each: int, unit: str) -> Limit:
    told = f"maxInstances of the deployment ({most:,}) times the largest instance is {most * each:,}"
    return Limit(most * each, told if each else f"no instance type of the deployment has {unit}")


def _vcpus_of_quotas(cells: Iterable[str], types: Iterable[str], policy: Policy) -> int | None:
    """None where something may be bought of which no quota is known."""
    known = {(quota.cell, quota.purchase, quota.family): quota.vcpus for quota in policy.vcpu_quotas}
    ways = {(each.value, quota_key(name, each.value)) for name in types for each in Purchase}
    needed = [(cell, *way) for cell in cells for way in ways]
    return sum(known[each] for each in needed) if needed and all(each in known for each in needed) else None
