"""On which instances does each daemon want to run, and how much of an instance is kept for daemons?

What they need is kept on instances that are here, on their way, and only offered. Otherwise work would take a daemon's
room; and a type would be bought again and again that has room for a task, and none for it beside the daemons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from argosy.model.resources import NOTHING, Resources
from argosy.model.run_terms import ARM64, RUNNER_ATTRIBUTE, RUNNER_PROTOCOL, DaemonTerms, Port, RunTerms
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.placement.query import matching, parse
from argosy.placement.supply import InstanceRow, Supply

_KEPT_ANSWERS = 20_000  # of queries, about instances with the same attributes


@dataclass(frozen=True, slots=True)
class Daemon:
    """What a daemon's target revision needs, and where it is wanted."""

    name: str  # of the environment
    number: int  # Run.number of the target revision
    others: frozenset[int]  # and of its other revisions
    needs: Resources  # of one task
    host_ports: tuple[Port, ...]
    disk_gib: int
    architecture: str  # x86_64 | arm64 | any
    needs_runner: bool
    query: str  # of the cluster query language; "" = all
    starts_first: bool

    @classmethod
    def of(cls, name: str, run: Run, others: Iterable[Run]) -> Daemon:
        """run: of its target revision, which may know more than its spec says."""
        return replace(
            cls.of_terms(run.terms),
            name=name,
            number=run.number,
            others=frozenset(each.number for each in others),
            needs=run.needs,
            host_ports=run.host_ports,
            architecture=run.architecture,
        )

    @classmethod
    def of_terms(cls, terms: RunTerms) -> Daemon:
        """One that has no run yet."""
        daemon = terms.daemon or DaemonTerms("", starts_first=False)
        return cls(
            terms.name,
            0,
            frozenset(),
            terms.needs,
            terms.host_ports,
            terms.disk_gib,
            terms.architecture,
            terms.needs_runner,
            daemon.instances,
            daemon.starts_first,
        )

    def wants(self, attributes: Mapping[str, str], size: Resources, disk_gib: int) -> bool:
        """Whether one of its tasks is to run there. It never is where even the empty instance is too small."""
        return self.fits(size, disk_gib) and self.matches(attributes)

    def fits(self, size: Resources, disk_gib: int) -> bool:
        return self.needs.fits_in(size) and self.disk_gib <= disk_gib

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """By its query, and by what its image and program need."""
        is_arm = attributes.get("ecs.cpu-architecture") == ARM64  # one that has not said what it is, is x86
        if self.architecture != "any" and is_arm != (self.architecture == ARM64):
            return False
        if self.needs_runner and attributes.get(RUNNER_ATTRIBUTE) != str(RUNNER_PROTOCOL):
            return False
        return not self.query or _meets(self.query, tuple(sorted(attributes.items())))


@lru_cache(maxsize=_KEPT_ANSWERS)
def _meets(query: str, attributes: tuple[tuple[str, str], ...]) -> bool:
    supply = Supply.of([InstanceRow("", 1, 1, 0, 1, 1, 0, dict(attributes))])
    return bool(matching(parse(query), supply)[0])


def daemons_of(state: State) -> tuple[Daemon, ...]:
    """Those that are to run, by name: in this order they are given room. A frozen one is, once it is thawed."""
    found = []
    for name, env in sorted(state.environments.items()):
        is_wanted = env.is_daemon and not (env.deleting or env.left)
        target = state.runs.get(env.target.run_id) if is_wanted and env.target else None
        if target is not None and not target.halted:
            others = [run for run_id in env.runs() if (run := state.runs.get(run_id)) and run is not target]
            found.append(Daemon.of(name, target, others))
    return tuple(found)


class KeptForDaemons(NamedTuple):
    """What daemons are going to take of an instance, beside what they take already."""

    resources: Resources = NOTHING
    disk_gib: int = 0
    host_ports: frozenset[Port] = frozenset()
    tasks: int = 0


class Uses(NamedTuple):
    """What one task of a run takes."""

    resources: Resources
    disk_gib: int


def kept_for(
    daemons: Sequence[Daemon],
    attributes: Mapping[str, str],
    size: Resources,
    disk_gib: int,
    uses: Mapping[int, Uses] | None = None,
) -> KeptForDaemons:
    """Of an instance. size, disk_gib: of the empty one. uses: by Run.number, what a task takes of each run that has
    tasks there; where an update stops first, what its new task needs beyond the old one."""
    kept, here = KeptForDaemons(), uses or {}
    for daemon in daemons:
        if daemon.number in here or not daemon.wants(attributes, size, disk_gib):
            continue
        more, disk = daemon.needs, daemon.disk_gib
        old = [here[number] for number in daemon.others if number in here]
        for each in old if not daemon.starts_first else ():
            more = Resources(*(max(0, mine - its) for mine, its in zip(more, each.resources, strict=True)))
            disk = max(0, disk - each.disk_gib)
        kept = KeptForDaemons(
            kept.resources.plus(more),
            kept.disk_gib + disk,
            kept.host_ports.union(daemon.host_ports),
            kept.tasks + (daemon.starts_first or not old),
        )
    return kept


def least_zero(amount: Resources) -> Resources:
    """Daemons may want more than there is."""
    return Resources(*(max(0, each) for each in amount))
