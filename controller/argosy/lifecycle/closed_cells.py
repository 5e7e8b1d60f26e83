"""Which cells are closed, and what does that mean for their pools and instances?

A cell is closed while its stack is being destroyed, and when the deployment has left it out. Its pools make no offers
and get the target 0. Its instances take no more work and go as soon as they idle; what runs there may end, unless
somebody ends the instance. They count towards quotas and limits until they are gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from argosy.model.state import State

CLOSED = "its cell is closed: "  # begins the cordon of an instance


def close_cells(state: State, closed: Mapping[str, str]) -> None:
    """closed: cell -> why, for all cells that are closed now. Those that are not in it are open (again)."""
    for pool in state.pools.values():
        reason = closed.get(pool.cell, "")
        if pool.closed != reason:
            pool.closed, state.changed_pools = reason, True
    for instance in state.instances.values():
        cordon = f"{CLOSED}{closed[instance.cell]}" if instance.cell in closed else ""
        ours = not instance.cordon or instance.cordon.startswith(CLOSED)
        if instance.alive and ours and instance.cordon != cordon:
            instance.cordon = cordon
            state.changed_instances.add(instance.id)
