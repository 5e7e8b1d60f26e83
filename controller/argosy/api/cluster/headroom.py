"""The room that the settings keep for further tasks: on which instances, at what cost, and what is missing."""

from __future__ import annotations

from typing import Any

from argosy.market.floors import serves_runs
from argosy.model.moment import Moment
from argosy.model.resources import CPU_UNITS_PER_VCPU
from argosy.scheduler.placing.spare_room import spare_batches, spare_room
from argosy.scheduler.supply.roster import Roster

ONLY_CAPPED = "only runs with a budget or an hourly cap are open, and these do not pay for it"


def headroom_view(moment: Moment) -> dict[str, Any] | None:
    """`headroom` of DescribeCluster and ExplainRun; None = the settings keep no room. moment: with all open runs.

    instances: ids of those without tasks that are kept for it, present or booting; usdPerHour: their price. waiting:
    why some of it is missing.
    """
    state, sizes = moment.state, moment.policy.headroom
    if not sizes:
        return None
    lineup = Roster().at(moment)
    batches = spare_batches(moment)
    held = spare_room(batches, (), [(lineup.here, {}), (lineup.coming, {})]).instances
    kept = [state.instances[name] for name in sorted(held & state.instances.keys()) if not state.has_work(name)]
    return {
        "sizes": [
            {
                "places": places,
                "vcpus": needs.cpu_units / CPU_UNITS_PER_VCPU,
                "memoryMib": needs.memory_mib,
                "gpus": needs.gpus,
                "gpuShareMib": needs.gpu_share_mib,
                "purchase": purchase.value,
            }
            for places, needs, purchase in sizes
        ],
        "instances": [each.id for each in kept],
        "usdPerHour": sum(each.price_usd_per_hour for each in kept),
        "waiting": state.floor.headroom_waiting or (ONLY_CAPPED if serves_runs(state) and not batches else None),
    }
