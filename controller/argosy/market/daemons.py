"""The instances that each daemon runs on, and the room kept for daemons.

The room is kept on present, incoming and offered instances. Otherwise batch tasks would take it, and a type that has
room for a task, but not next to the daemons, would be bought repeatedly.
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
    """The needs of a daemon's target revision, and the instances it matches."""

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
        """run: of its target revision, which may give more than its spec."""
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
        """A daemon that has no run yet."""
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
        """Whether one of its tasks is to run there. It never is if even the empty instance is too small."""
        return self.fits(size, disk_gib) and self.matches(attributes)

    def fits(self, size: Resources, disk_gib: int) -> bool:
        return self.needs.fits_in(size) and self.disk_gib <= disk_gib

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """By its query, and by the needs of its image and program."""
        is_arm = attributes.get("ecs.cpu-architecture") == ARM64  # an instance without this attribute is x86
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
    """The daemons to run, by name, which is the order in which they get room. A frozen one counts, because it may be
    thawed."""
    found = []
    for name, env in sorted(state.environments.items()):
        is_wanted = env.is_daemon and not (env.deleting or env.left)
        target = state.runs.get(env.target.run_id) if is_wanted and env.target else None
        if target is not None and not target.halted:
            others = [run for run_id in env.runs() if (run := state.runs.get(run_id)) and run is not target]
            found.append(Daemon.of(name, target, others))
    return tuple(found)


class DaemonRoom(NamedTuple):
    """The room that daemons will take of an instance, on top of their present use."""

    resources: Resources = NOTHING
    disk_gib: int = 0
    host_ports: frozenset[Port] = frozenset()
    tasks: int = 0


class Uses(NamedTuple):
    """The resources of one task of a run."""

    resources: Resources
    disk_gib: int


def kept_for(
    daemons: Sequence[Daemon],
    attributes: Mapping[str, str],
    size: Resources,
    disk_gib: int,
    uses: Mapping[int, Uses] | None = None,
) -> DaemonRoom:
    """The room kept on an instance. size, disk_gib: of the empty one. uses: by Run.number, the resources of a task
    of each run with tasks there. If an update stops the old task first, only the new task's extra needs are kept."""
    kept, here = DaemonRoom(), uses or {}
    for daemon in daemons:
        if daemon.number in here or not daemon.wants(attributes, size, disk_gib):
            continue
        more, disk = daemon.needs, daemon.disk_gib
        old = [here[number] for number in daemon.others if number in here]
        for each in old if not daemon.starts_first else ():
            more = Resources(*(max(0, mine - its) for mine, its in zip(more, each.resources, strict=True)))
            disk = max(0, disk - each.disk_gib)
        kept = DaemonRoom(
            kept.resources.plus(more),
            kept.disk_gib + disk,
            kept.host_ports.union(daemon.host_ports),
            kept.tasks + (daemon.starts_first or not old),
        )
    return kept
