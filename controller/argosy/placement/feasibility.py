"""How many tasks of a kind each instance may take now: resources, ports, constraints and limits as one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argosy.placement.arrays import ENDLESS, BoolArray, IntArray
from argosy.placement.demand import Batch
from argosy.placement.fitness import GPU
from argosy.placement.pass_state import PassState
from argosy.placement.query import DISTINCT_INSTANCE, Query, matching, parse
from argosy.placement.query_nodes import LiveTasks
from argosy.placement.supply import MOST_HOST_PORTS, Supply


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The hard rules of a kind of task, split into those that a pass can change and those that it cannot."""

    batch: Batch
    allowed: BoolArray
    """(m,): healthy, and accepted by every constraint that placing tasks cannot change."""
    changing: tuple[Query, ...]
    one_per_instance: bool
    together: bool
    """Affinity to the batch's own group."""

    @classmethod
    def of(cls, batch: Batch, supply: Supply) -> Rules:
        """QuerySyntaxError for an invalid constraint."""
        queries = [parse(constraint) for constraint in batch.constraints if constraint != DISTINCT_INSTANCE]
        allowed = supply.healthy
        for query in queries:
            if not query.changes:
                allowed = allowed & matching(query, supply)
        return cls(
            batch=batch,
            allowed=allowed,
            changing=tuple(query for query in queries if query.changes),
            one_per_instance=DISTINCT_INSTANCE in batch.constraints or batch.group in batch.anti_affinity,
            together=batch.group in batch.affinity,
        )

    @property
    def simple(self) -> bool:
        """Whether only free resources can change the answer during a pass."""
        return self.simple_but_for_shares and not self.batch.gpu_share_mib

    @property
    def simple_but_for_shares(self) -> bool:
        """Whether only free resources and the tasks that share GPUs can."""
        b = self.batch
        return not (
            self.changing
            or self.one_per_instance
            or b.host_ports
            or b.disk_gib
            or b.affinity
            or b.anti_affinity
            or b.max_per_instance is not None
            or b.max_instances is not None
        )


def fitting(rules: Rules, state: PassState) -> IntArray:
    """The row numbers on which at least one more task fits, before the limits that `room` applies."""
    fits = rules.allowed
    for axis, need in enumerate(rules.batch.need):
        if need:
            fits = fits & (state.free[axis] >= need)
    if state.tasks_left is not None:
        fits = fits & (state.tasks_left > 0)
    return fits.nonzero()[0]


def room(rules: Rules, state: PassState, rows: IntArray) -> IntArray:
    """(r,) int64: how many tasks each of `rows`, taken from `fitting`, may take one after the other; at most 2^40."""
    batch = rules.batch
    rooms: IntArray | None = None
    for axis, need in enumerate(batch.need):
        if need:
            here = state.free[axis].take(rows) // need
            rooms = here if rooms is None else np.minimum(rooms, here, out=rooms)
    if rooms is None:
        rooms = np.full(len(rows), ENDLESS, dtype=np.int64)
    if state.tasks_left is not None:
        np.minimum(rooms, state.tasks_left.take(rows), out=rooms)
    return rooms if rules.simple else _limited(rules, state, rows, rooms)


def _limited(rules: Rules, state: PassState, rows: IntArray, rooms: IntArray) -> IntArray:
    batch = rules.batch
    here = state.of_group(batch.group)[rows]
    if rules.one_per_instance:
        rooms = np.minimum(rooms, here == 0)
    if batch.max_per_instance is not None:
        rooms = np.minimum(rooms, np.maximum(batch.max_per_instance - here, 0))
    if batch.gpu_share_mib:
        shares = state.gpu_shares()
        rooms = np.minimum(rooms, shares.room(rows, state.free[GPU], batch.gpu_share_mib))
        rooms = np.where(shares.open_to(rows, batch.gpu_owner), rooms, 0)
    if batch.disk_gib:
        rooms = np.minimum(rooms, state.disk_gib()[rows] // batch.disk_gib)
    if batch.host_ports:
        rooms = np.where(state.host_ports()[rows] + len(batch.host_ports) > MOST_HOST_PORTS, 0, rooms)
    for port in batch.host_ports:
        rooms = np.minimum(rooms, ~state.port_used(port)[rows])
    for group in batch.anti_affinity:
        rooms = np.where((group != batch.group) & (state.of_group(group)[rows] > 0), 0, rooms)
    for group in batch.affinity:
        rooms = np.where((group != batch.group) & (state.of_group(group)[rows] == 0), 0, rooms)
    for query in rules.changing:
        rooms = np.minimum(rooms, _until_refused(query, batch.group, state)[rows])
    return rooms.astype(np.int64, copy=False)


def most_instances(rules: Rules, state: PassState) -> int | None:
    """The number of instances on which tasks of the group may run; None = any number."""
    used = int(np.count_nonzero(state.of_group(rules.batch.group)))
    limits = [] if rules.batch.max_instances is None else [rules.batch.max_instances]
    if rules.together:
        limits.append(max(1, used))
    return min(limits, default=None)


@dataclass(frozen=True, slots=True)
class _AssumedState:
    """A state in which every instance runs a given number of tasks, and perhaps one of the group."""

    live: PassState
    running_tasks: IntArray
    group: str | None

    @property
    def group_names(self) -> frozenset[str]:
        return self.live.group_names if self.group is None else self.live.group_names | {self.group}

    def of_group(self, name: str) -> IntArray:
        there = self.live.of_group(name)
        return there + 1 if name == self.group else there


def _until_refused(query: Query, group: str, state: PassState) -> IntArray:
    """(m,) int64: how many tasks of `group` each instance takes before the query refuses it.

    A task changes two facts that the language can query: the number of running tasks, and whether the group is present.
    The answer as a function of the number can change only next to a number that the query names, so it is judged once
    between each two of those.
    """
    running = state.running_tasks
    now = matching(query, state.supply, state)
    if not query.asks_groups:
        return np.where(now, _steps(query, running, state, None), 0)
    later = _steps(query, running + 1, state, group)
    return np.where(now, 1 + later, 0)


def _steps(query: Query, running: IntArray, state: PassState, group: str | None) -> IntArray:
    """(m,) int64: tasks added to `running` before the first number at which the query says no."""
    edges = sorted({0, *query.counts, *(count + 1 for count in query.counts)})
    limit = np.full(len(running), ENDLESS, dtype=np.int64)
    for index in reversed(range(len(edges))):
        accepted = matching(query, state.supply, _assumed(state, edges[index], group))
        reached = running < (edges[index + 1] if index + 1 < len(edges) else ENDLESS)
        limit = np.where(reached & ~accepted, edges[index], limit)
    added: IntArray = np.maximum(limit - running, 0)
    return added


def _assumed(state: PassState, count: int, group: str | None) -> LiveTasks:
    return _AssumedState(state, np.full(len(state.running_tasks), count, dtype=np.int64), group)


def unmet_weight(batch: Batch, state: PassState) -> IntArray:
    """(m,) int64: the weight of soft constraints that each instance does not meet now."""
    unmet = np.zeros(len(state.supply), dtype=np.int64)
    for soft in batch.soft:
        if soft.constraint == DISTINCT_INSTANCE:
            met = state.of_group(batch.group) == 0
        else:
            met = matching(parse(soft.constraint), state.supply, state)
        unmet += np.where(met, 0, soft.weight)
    return unmet


def check_ports(ports: Sequence[tuple[int, str]]) -> list[str]:
    """One sentence for each invalid port."""
    faults = [
        f"{number}/{protocol} is not a host port."
        for number, protocol in ports
        if not 0 < number <= 65_535 or protocol not in ("tcp", "udp")
    ]
    return faults + (["A host port is requested twice."] if len(set(ports)) < len(ports) else [])
