"""How do failed joins, unproven AMIs and Capacity Reservations limit an order?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from argosy.catalogue.lookup import image_of
from argosy.model.instances import InstanceStatus
from argosy.model.moment import Moment


def reserved_left(moment: Moment) -> Mapping[str, int]:
    """By pool, how many more instances each Capacity Reservation has."""
    return {pool.key: pool.reserved_free for pool in moment.state.pools.values() if pool.reservation}


def trials_left(moment: Moment, first: Mapping[str, str]) -> Mapping[str, int]:
    """How many instances may be bought, by the pool, cell or AMI that limits them: a pool or cell whose last instances
    never joined the cluster (`lifecycle.unjoined`), to 1, or to 0 while one is incoming; an AMI of which none has
    joined. first: from `unproven`."""
    state, most = moment.state, moment.policy.max_unregistered
    tried = {pool.key for pool in state.pools.values() if pool.unregistered >= most}
    tried |= {pool.cell for pool in state.pools.values() if pool.cell_unregistered >= most}
    most_of = dict.fromkeys(first.values(), moment.policy.first_order) | dict.fromkeys(tried, 1)
    if not most_of:
        return {}
    incoming, of_cell = Counter[str](), {pool.key: pool.cell for pool in state.pools.values()}
    for (key, _), instances in moment.promised.items():
        incoming[key] += instances
    for each in state.instances.values():
        incoming[each.pool] += each.status is InstanceStatus.BOOTING and each.owned and not each.cordon
    for key in list(incoming):
        for where in {of_cell.get(key, ""), first.get(key, "")}:
            incoming[where] += incoming[key]
    return {where: max(0, most_of[where] - incoming[where]) for where in most_of}


def unproven(moment: Moment) -> dict[str, str]:
    """By pool, the AMI and the cell of its instances, if none of the newest launch templates has joined the cluster.

    If the AMI, the network or the role is broken, a first order of all that the tasks need would only cost money.
    Instances of Capacity Reservations are paid for anyway.
    """
    if not moment.policy.first_order:
        return {}
    pools = moment.state.pools.values()
    ami = {each.key: f"the {image_of(each.instance_type)} AMI in {each.cell}" for each in pools}
    proven = {ami[each.key] for each in pools if each.is_proven}
    return {each.key: ami[each.key] for each in pools if not each.reservation and ami[each.key] not in proven}
