"""What is there of each vCPU quota that the settings name, what is left of it, and who uses how much?

A task uses, of the quota of its instance, as large a part of the instance's vCPUs as it reserves of the instance
(decision 47). What nobody reserves and what is on its way is nobody's, but it is not left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from argosy.catalogue.quotas import quota_key
from argosy.market.limits import QuotaKey
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.scheduler.turns.caps import part_of
from argosy.sharing.columns import IntArray

OF_A_VCPU = 1 << 10  # units of a vCPU


def quotas_of(policy: Policy) -> Mapping[QuotaKey, int]:
    """vCPUs."""
    return {(cell, purchase, family): vcpus for cell, purchase, family, vcpus in policy.vcpu_quotas}


def vcpus_left(moment: Moment) -> Mapping[QuotaKey, int]:
    """Of each quota that the settings name: what neither instances that EC2 still counts nor orders take."""
    quotas = quotas_of(moment.policy)
    if not quotas:
        return {}
    used: Counter[QuotaKey] = Counter()

    def use(cell: str, instance_type: str, purchase: str, count: int) -> None:
        used[cell, purchase, quota_key(instance_type, purchase)] += count * _vcpus(moment, instance_type)

    for instance in moment.state.instances.values():
        if instance.alive and instance.owned:
            use(instance.cell, instance.instance_type, instance.purchase.value, 1)
    for (key, purchase), count in moment.promised.items():
        pool = moment.state.pools[key]
        use(pool.cell, pool.instance_type, purchase.value, count)
    return {key: vcpus - used[key] for key, vcpus in quotas.items()}


def use_of_quotas(moment: Moment, keys: Sequence[QuotaKey]) -> dict[int, IntArray]:
    """By Run.number, (keys,) what its live attempts use, in units of `OF_A_VCPU`. Runs that use nothing are left
    out."""
    if not keys:
        return {}
    state, table = moment.state, moment.state.attempts
    placed, place = table.placed(), {key: number for number, key in enumerate(keys)}
    instances = [*state.instances.values()]
    where = table.positions([each.id for each in instances])[table.instance_number[placed]]  # -1: nothing is known
    draws_on = [
        place.get((i.cell, i.purchase.value, quota_key(i.instance_type, i.purchase.value)), -1) if i.owned else -1
        for i in instances
    ]
    key = np.array([*draws_on, -1], dtype=np.int64)[where]
    placed, where, key = placed[key >= 0], where[key >= 0], key[key >= 0]
    if not len(placed):
        return {}
    sizes = np.array([*(each.total for each in instances), Resources()], dtype=np.float64)
    vcpus = np.array([*(_vcpus(moment, each.instance_type) for each in instances), 0])
    numbers, row = np.unique(table["run"][placed], return_inverse=True)
    known = state.needs_by_number()
    needs = np.array([known.get(number, Resources()) for number in numbers.tolist()], dtype=np.int64).reshape(-1, 3)
    units = (part_of(needs[row], sizes[where]) * vcpus[where] * OF_A_VCPU).astype(np.int64)
    found = np.zeros((len(numbers), len(keys)), dtype=np.int64)
    np.add.at(found, (row, key), units)
    return dict(zip(numbers.tolist(), found, strict=True))


def _vcpus(moment: Moment, instance_type: str) -> int:
    kind = moment.catalogue.get(instance_type)
    return kind.vcpus if kind else 0
