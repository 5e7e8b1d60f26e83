"""How is something left out of a tick: a run, a fact, an instance or a pool?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from argosy.lifecycle.forgetting import forget
from argosy.lifecycle.suspension import bare_record, suspend
from argosy.model.events import Event, FleetSeen, InterruptionWarned, Observed, RebalanceAdvised
from argosy.model.instances import pool_key
from argosy.model.state import State

SIGHTINGS = ("fleets", "hosts", "container_instances", "tasks")  # of a sweep


class Suspect(NamedTuple):
    """kind: run, fact, instance or pool; name: its id, or a fact's number in the order of the tick."""

    kind: str
    name: str


def leave_out(state: State, suspect: Suspect, now: float) -> None:
    """As though the state did not hold it. A run is suspended, so that its tasks go on."""
    if suspect.kind == "run" and suspect.name in state.runs:  # else it is suspended, and stays so
        suspend(state, bare_record(state.runs[suspect.name]), "", now)
    elif suspect.kind == "instance":
        forget(state, suspect.name, now)
    elif suspect.kind == "pool":
        state.pools.pop(suspect.name, None)
        state.changed_pools = True


def trim(event: Event, counts: Callable[[Any], bool]) -> Event | None:
    """The event without what does not count, a sweep without such sightings; None when nothing is left of it."""
    if isinstance(event, Observed):
        shown: dict[str, Any] = {name: tuple(filter(counts, getattr(event, name))) for name in SIGHTINGS}
        left_out = {host.instance_id for host in event.hosts} - {host.instance_id for host in shown["hosts"]}
        event = replace(event, **shown, left_out=event.left_out | left_out)
    return event if counts(event) else None


def capacity_of(event: Event) -> set[Suspect]:
    """The instance and the pool that it is about. What EC2 announces is taken in even while its instance is forgotten:
    no sweep shows it."""
    if isinstance(event, InterruptionWarned | RebalanceAdvised):
        return set()
    return {Suspect("instance", str(getattr(event, "instance_id", ""))), Suspect("pool", pool_of(event))}


def pool_of(event: Event) -> str:
    if isinstance(event, FleetSeen):
        return pool_key(event.cell, event.instance_type, event.zone)
    return str(getattr(event, "pool", ""))
