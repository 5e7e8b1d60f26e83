"""May this deployment start a gang of this size at all?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.catalogue.quotas import quota_key
from argosy.model.policy import Policy
from argosy.model.resources import CPU_UNITS_PER_VCPU, Resources
from argosy.spec.faults import Fault
from argosy.spec.models import ResourcesSpec
from argosy.spec.terms import needs_of

NOT_ALLOWED = (
    "is not allowed in this deployment: its owner can set gangs to true, which gives their tasks the network of their"
    " instances"
)


def gang_limit_faults(data: Mapping[str, Any], policy: Policy, shapes: Mapping[str, Resources]) -> Iterator[Fault]:
    """Limits that a whole gang exceeds when nothing else runs, with both numbers."""
    gang = data.get("gang")
    if gang is None:
        return
    size = gang.get("size") if isinstance(gang, Mapping) else None
    if not policy.gangs:
        yield Fault("gang", NOT_ALLOWED)
    if not isinstance(size, int):
        return  # reported as a fault of the field
    if size > policy.max_instances:
        yield Fault("gang.size", f"is {size}, and maxInstances of this deployment is {policy.max_instances}")
    if 0 < policy.machine_programs < size:
        yield Fault("gang.size", f"is {size}, and this machine runs {policy.machine_programs} programs at once")
    yield from _quota_faults(data, size, policy, shapes)


def _quota_faults(
    data: Mapping[str, Any], size: int, policy: Policy, shapes: Mapping[str, Resources]
) -> Iterator[Fault]:
    """Where every type that holds a member has a quota, and each is too small for all members."""
    capacity = data.get("capacity")
    purchase = capacity.get("purchase", "spot") if isinstance(capacity, Mapping) else "spot"
    quotas: dict[str, int] = {}  # of the cell that has most
    for each in policy.vcpu_quotas:
        if each.purchase == purchase:
            quotas[each.family] = max(quotas.get(each.family, 0), each.vcpus)
    try:
        needs = needs_of(ResourcesSpec.model_validate(data.get("resources") or {}))
    except ValueError:
        return  # reported as a fault of the field
    least: defaultdict[str, int] = defaultdict(int)  # vCPUs of the smallest type of a family that holds a member
    for name, shape in shapes.items():
        family = quota_key(name, purchase)
        if needs.fits_in(shape) and family not in quotas:
            return
        if needs.fits_in(shape):
            vcpus = max(1, shape.cpu_units // CPU_UNITS_PER_VCPU)
            least[family] = min(least[family] or vcpus, vcpus)
    if least and all(quotas[family] < size * vcpus for family, vcpus in least.items()):
        family, vcpus = min(least.items(), key=lambda each: each[1])
        most = quotas[family]
        yield Fault("gang.size", f"is {size}: its members take {size * vcpus} vCPUs, and the quota {family} has {most}")
