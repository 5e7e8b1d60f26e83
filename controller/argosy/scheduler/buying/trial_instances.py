"""Where does a pool limit an order: to one instance at a time, or to what a Capacity Reservation has left?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from argosy.model.instances import InstanceStatus
from argosy.model.moment import Moment


def reserved_left(moment: Moment) -> Mapping[str, int]:
    """By pool, how many more instances each Capacity Reservation has."""
    return {pool.key: pool.reserved_free for pool in moment.state.pools.values() if pool.reservation}


def trials_left(moment: Moment) -> Mapping[str, int]:
    """By pool or cell whose last instances never joined the cluster (`lifecycle.unjoined`), how many may be bought: 1,
    or 0 while one is incoming."""
    state, most = moment.state, moment.policy.max_unregistered
    tried = {pool.key for pool in state.pools.values() if pool.unregistered >= most}
    tried |= {pool.cell for pool in state.pools.values() if pool.cell_unregistered >= most}
    incoming = Counter[str]()
    for (key, _), instances in moment.promised.items():
        incoming[key] += instances
    for each in state.instances.values():
        incoming[each.pool] += each.status is InstanceStatus.BOOTING and each.owned and not each.cordon
    for key in list(incoming):
        incoming[state.pools[key].cell if key in state.pools else ""] += incoming[key]
    return {where: max(0, 1 - incoming[where]) for where in tried}
