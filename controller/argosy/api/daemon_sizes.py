"""Which instance types of this deployment does a daemon run on, and which are too small for it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.api.shapes import amount_of
from argosy.catalogue.lookup import load_catalogue
from argosy.market.daemons import Daemon
from argosy.market.offers import expected_attributes, resources_of
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.run_terms import RunTerms
from argosy.spec.faults import Fault

Pools = tuple[tuple[str, str, str], ...]  # (cell, instance type, zone)
NAMED = 5  # types in a sentence


def daemon_faults(form: Mapping[str, Any], pools: Pools, policy: Policy) -> list[Fault]:
    """What makes it larger than every type that matches. form: the validated JSON form of a spec."""
    daemon = _daemon(form)
    large, small = _matching(daemon, pools, policy)
    if large or not small:
        return []
    needs = f"{amount_of('cpu_units', daemon.needs.cpu_units)} and {amount_of('memory_mib', daemon.needs.memory_mib)}"
    needs += f" and {daemon.disk_gib} GiB of disk" if daemon.disk_gib else ""
    return [Fault("resources", f"ask for {needs}, and every instance type that matches is smaller: {_named(small)}")]


def daemon_notes(form: Mapping[str, Any], pools: Pools, policy: Policy) -> list[str]:
    """On which types it does not run although they match; and that none does."""
    large, small = _matching(_daemon(form), pools, policy)
    if small:
        return [f"it does not run on {_named(small)}: a task is larger than such an instance"]
    none = "no instance type of this deployment matches daemon.instances: it runs on other instances alone, if any join"
    return [none] if pools and not large else []


def _daemon(form: Mapping[str, Any]) -> Daemon:
    return Daemon.of_terms(RunTerms.of(form))


def _matching(daemon: Daemon, pools: Pools, policy: Policy) -> tuple[list[str], list[str]]:
    """Names of the types that match: those that are large enough, and those that are not."""
    found: dict[str, bool] = {}
    for name, attributes in _instances(pools, policy):
        if daemon.matches(attributes):
            kind = load_catalogue()[name]
            found[name] = daemon.fits(resources_of(kind), policy.task_disk_gib_of(kind))
    return [name for name, fits in found.items() if fits], [name for name, fits in found.items() if not fits]


def _instances(pools: Pools, policy: Policy) -> Iterator[tuple[str, Mapping[str, str]]]:
    catalogue = load_catalogue()
    for cell, name, zone in pools:
        for purchase in Purchase:
            yield name, expected_attributes(catalogue[name], zone, purchase, cell, policy)


def _named(names: list[str]) -> str:
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join([*sorted(names)[:NAMED], *more])
