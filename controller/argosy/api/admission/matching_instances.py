"""Can any instance that this deployment could buy meet a run's constraints, and which types hold a daemon?

Only what is known of an instance before it is bought can be judged: its type, zone, cell, purchase option, GPUs, and
the attributes that the settings give. A constraint on anything else is not judged: a user may still set that attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from argosy.api.admission.instance_types import amount_of
from argosy.catalogue.lookup import load_catalogue
from argosy.market.daemons import Daemon
from argosy.model.instances import Purchase
from argosy.model.policy import Policy
from argosy.model.run_terms import RunTerms
from argosy.model.wording import first_of
from argosy.placement.demand import Batch
from argosy.placement.explain import explain
from argosy.placement.query import DISTINCT_INSTANCE, subjects
from argosy.placement.supply import InstanceRow, Supply
from argosy.scheduler.turns.asks import standing_constraints
from argosy.spec.faults import Fault

PATH = "placement.constraints"
NAMED = 5  # types in a sentence
Pools = tuple[tuple[str, str, str], ...]  # (cell, instance type, zone)


def constraint_faults(terms: RunTerms, pools: Pools, policy: Policy) -> list[Fault]:
    """Constraints that no instance can ever meet: each constraint alone, else all of them with the other
    requirements."""
    known = _known(policy, pools)
    judged = [each for each in standing_constraints(terms) if _subjects(each) <= known]
    if not judged or not pools:
        return []
    supply = _instances(pools, policy)
    alone = [
        Fault(f"{PATH}[{number}]", "no instance that this deployment could buy meets it")
        for number, each in enumerate(terms.constraints)
        if each in judged and not _meets([each], supply)
    ]
    if alone or _meets(judged, supply):
        return alone
    together = "no instance that this deployment could buy meets all of this at once"
    return [Fault(PATH, f"{together}: {'; '.join(judged)}")]


def constraint_notes(terms: RunTerms, pools: Pools, policy: Policy) -> list[str]:
    """The constraints that cannot be judged before instances exist."""
    known = _known(policy, pools)
    unknown = sorted({name for each in terms.constraints for name in _subjects(each) - known})
    attributes = [name for name in unknown if name.startswith("attribute:")]
    return [
        f"nothing is bought for {name}: the setting `attributes` gives it to no instance type, so only instances that"
        " already have it can take these tasks"
        for name in attributes
        if pools
    ]


def _meets(constraints: Sequence[str], supply: Supply) -> bool:
    return explain(Batch(1, 1, 0, 1, constraints=tuple(constraints)), supply).fits > 0


def _subjects(constraint: str) -> frozenset[str]:
    return frozenset() if constraint == DISTINCT_INSTANCE else subjects(constraint)


def _known(policy: Policy, pools: Pools) -> frozenset[str]:
    names = {name for row in _instances(pools, policy).rows for name in row.attributes}
    return frozenset({f"attribute:{name}" for name in names})


@lru_cache(maxsize=4)
def _instances(pools: Pools, policy: Policy) -> Supply:
    """An empty instance of every pool, spot and on-demand."""
    catalogue = load_catalogue()
    return Supply.of(
        [
            InstanceRow(
                f"{cell}/{name}/{zone}/{purchase}",
                *catalogue[name].resources.cpu_memory_gpus,
                *catalogue[name].resources.cpu_memory_gpus,
                policy.expected_attributes(catalogue[name], zone, purchase, cell),
            )
            for cell, name, zone in pools
            for purchase in Purchase
        ]
    )


def daemon_faults(terms: RunTerms, pools: Pools, policy: Policy) -> list[Fault]:
    """The fault of a daemon that is larger than every matching type."""
    daemon = Daemon.of_terms(terms)
    large, small = _matching(daemon, pools, policy)
    if large or not small:
        return []
    needs = f"{amount_of('cpu_units', daemon.needs.cpu_units)} and {amount_of('memory_mib', daemon.needs.memory_mib)}"
    needs += f" and {daemon.disk_gib} GiB of disk" if daemon.disk_gib else ""
    return [Fault("resources", f"ask for {needs}, but every matching instance type is smaller: {_named(small)}")]


def daemon_notes(terms: RunTerms, pools: Pools, policy: Policy) -> list[str]:
    """The matching types that are too small for the daemon, or that no type matches."""
    large, small = _matching(Daemon.of_terms(terms), pools, policy)
    if small:
        return [f"it does not run on {_named(small)}: its task is larger than these instances"]
    none = "no instance type of this deployment matches daemon.instances: it runs only on other instances that join"
    return [none] if pools and not large else []


def _matching(daemon: Daemon, pools: Pools, policy: Policy) -> tuple[list[str], list[str]]:
    """Names of the types that match: those that are large enough, and those that are not."""
    found: dict[str, bool] = {}
    for name, attributes in _attributes(pools, policy):
        if daemon.matches(attributes):
            kind = load_catalogue()[name]
            found[name] = daemon.fits(kind.resources, policy.task_disk_gib_of(kind))
    return [name for name, fits in found.items() if fits], [name for name, fits in found.items() if not fits]


def _attributes(pools: Pools, policy: Policy) -> Iterator[tuple[str, Mapping[str, str]]]:
    catalogue = load_catalogue()
    for cell, name, zone in pools:
        for purchase in Purchase:
            yield name, policy.expected_attributes(catalogue[name], zone, purchase, cell)


def _named(names: list[str]) -> str:
    return ", ".join(first_of(sorted(names), NAMED))
