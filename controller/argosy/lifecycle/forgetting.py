"""What becomes of the money of an instance that has to be forgotten, because the controller's own code fails at it?

What was charged of its time stays in the ledgers, and counts as spent. When a look shows the instance again, it is
known how much that was, so that nothing is charged twice.
"""

from __future__ import annotations

from collections.abc import Set

from argosy.lifecycle import announcements
from argosy.model.costs import Costs
from argosy.model.instances import LEAST_BILLED_S, Instance, InstanceStatus
from argosy.model.state import State


def forget(state: State, instance_id: str, now: float) -> None:
    """As though it was not known. Only members are read here: any property may be what fails."""
    instance = state.instances.pop(instance_id, None)
    state.changed_instances.add(instance_id)
    if instance is None:
        return
    announcements.keep_of(state, instance, now)
    if instance.status is not InstanceStatus.GONE:
        prices = instance.price_usd_per_hour, instance.on_demand_usd_per_hour
        state.forgotten[instance_id] = [instance.charged_s, instance.charged_boot_s, *prices]
        _spend(state, instance, 1)
    elif instance.losing:  # it is counted as spent, and nobody will be charged with the rest any more
        billed_s = max(LEAST_BILLED_S, instance.charged_s, instance.stopped_at - instance.launched_at)
        state.unattributed.add(Costs(idle=(billed_s - instance.charged_s) / 3600 * instance.price_usd_per_hour))


def remember(state: State, instance: Instance) -> None:
    """It is shown again."""
    known = state.forgotten.pop(instance.id, None)
    if known is not None:
        instance.charged_s, instance.charged_boot_s = known[:2]
        instance.price_usd_per_hour, instance.on_demand_usd_per_hour = known[2:]
        _spend(state, instance, -1)


def charge_rest(state: State, instance_id: str, launched_at: float, now: float) -> None:
    """It is ended unseen: its time so far is spent, and charged to nobody. Nothing is known of one never stored."""
    known = state.forgotten.get(instance_id)
    if known is not None:
        charged_s, _, price, on_demand = known
        rest_hours = max(0.0, LEAST_BILLED_S - charged_s, now - launched_at - charged_s) / 3600
        known[0] += rest_hours * 3600
        state.unattributed.add(Costs(idle=rest_hours * price))
        state.spent_usd += rest_hours * price
        state.spent_on_demand_usd += rest_hours * on_demand


def drop_ended(state: State, shown: Set[str]) -> None:
    """shown: all that there are. The others are never learned again."""
    for instance_id in state.forgotten.keys() - shown:
        del state.forgotten[instance_id]


def _spend(state: State, instance: Instance, sign: int) -> None:
    hours = sign * instance.charged_s / 3600
    state.spent_usd += hours * instance.price_usd_per_hour
    state.spent_on_demand_usd += hours * instance.on_demand_usd_per_hour
