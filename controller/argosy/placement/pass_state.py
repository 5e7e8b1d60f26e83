"""The columns that placing a task changes during a pass: a supply's own, until a task is placed."""

from __future__ import annotations

import numpy as np

from argosy.placement.arrays import ENDLESS, BoolArray, IntArray
from argosy.placement.demand import Batch, Queue
from argosy.placement.fitness import GPU
from argosy.placement.gpu_shares import ShareColumns
from argosy.placement.supply import Supply

Port = tuple[int, str]


class PassState:
    """The changing columns of one pass over one supply. queue: the tasks to place; None = not known."""

    def __init__(self, supply: Supply, queue: Queue | None = None) -> None:
        self.supply = supply
        self.free = supply.free
        """(3, m) int64."""
        self.running_tasks = supply.running_tasks
        self.tasks_left = None if _is_beyond_reach(supply, queue) else supply.tasks_left
        """(m,) how many more tasks each may run; None if no instance reaches its limit in this pass."""
        self.finish_at = supply.finish_at
        self._is_own = False
        self._groups: dict[str, IntArray] = {}
        self._ports: dict[Port, BoolArray] = {}
        self._gpu_shares: ShareColumns | None = None
        self._disk_gib: IntArray | None = None
        self._host_ports: IntArray | None = None

    def own(self) -> None:
        """Before anything is placed: from now on the columns are copies."""
        if not self._is_own:
            self._is_own = True
            self.free, self.running_tasks = self.free.copy(), self.running_tasks.copy()
            self.tasks_left = None if self.tasks_left is None else self.tasks_left.copy()
            self.finish_at = self.finish_at.copy()

    @property
    def group_names(self) -> frozenset[str]:
        """Groups with a task on some instance, including tasks placed in this pass."""
        return self.supply.group_names.union(self._groups)

    def of_group(self, name: str) -> IntArray:
        """(m,) int64: tasks of a group on each instance, including those placed in this pass; read only."""
        placed = self._groups.get(name)
        return self.supply.of_group(name) if placed is None else placed

    def port_used(self, port: Port) -> BoolArray:
        """(m,) bool; made when a port is first asked for."""
        used = self._ports.get(port)
        if used is None:
            kept = self.supply.column(("port", port), lambda row: port in row.used_host_ports, np.bool_)
            used = self._ports[port] = kept.copy()
        return used

    def host_ports(self) -> IntArray:
        """(m,) int64: how many host ports tasks have reserved; made when ports are first asked for."""
        if self._host_ports is None:
            self._host_ports = self.supply.column("ports", lambda row: len(row.used_host_ports), np.int64).copy()
        return self._host_ports

    def disk_gib(self) -> IntArray:
        """(m,) int64: GiB that are free for tasks; made when disk is first asked for."""
        if self._disk_gib is None:
            self._disk_gib = self.supply.column("disk", lambda row: max(0, row.disk_gib), np.int64).copy()
        return self._disk_gib

    def gpu_shares(self) -> ShareColumns:
        """Made when a share of a GPU is first asked for."""
        if self._gpu_shares is None:
            self._gpu_shares = _shares_of(self.supply)
        return self._gpu_shares

    def take(self, batch: Batch, rows: IntArray, counts: IntArray) -> None:
        """Put `counts` tasks of a batch on `rows`, which are distinct."""
        self.own()
        for axis, need in enumerate(batch.need):
            if need:
                self.free[axis, rows] -= need * counts
        if batch.gpu_share_mib:
            self.free[GPU, rows] -= self.gpu_shares().take(rows, counts, self.free[GPU], batch)
        self.count_tasks(batch.group, rows, counts)
        if batch.disk_gib:
            self.disk_gib()[rows] -= batch.disk_gib * counts
        if batch.host_ports:
            self.host_ports()[rows] += len(batch.host_ports)
        for port in batch.host_ports:
            self.port_used(port)[rows] = True
        if batch.finish_at:
            self.finish_at[rows] = np.maximum(self.finish_at[rows], batch.finish_at)

    def count_tasks(self, group: str, rows: IntArray, counts: IntArray) -> None:
        """Count tasks of a group as running on `rows`, which are distinct."""
        self.own()
        self.running_tasks[rows] += counts
        if self.tasks_left is not None:
            self.tasks_left[rows] -= counts
        there = self._groups.get(group)
        if there is None:
            there = self._groups[group] = self.supply.of_group(group).copy()
        there[rows] += counts


def _is_beyond_reach(supply: Supply, queue: Queue | None) -> bool:
    """Whether no instance can reach its limit of tasks: there is none, the queue has too few, or resources run out
    before."""
    least = int(supply.tasks_left.min(initial=ENDLESS))
    if least == ENDLESS or queue is None:
        return least == ENDLESS
    reach = int(queue.count.sum())
    if reach > least:
        for axis, free in enumerate(supply.free.max(axis=1, initial=0).tolist()):
            if need := min((batch.need[axis] for batch in queue.kinds), default=0):
                reach = min(reach, free // need)
    return reach <= least


def _shares_of(supply: Supply) -> ShareColumns:
    """A pass's own columns of what shares of GPUs depend on."""

    def of(name: str) -> IntArray:
        return supply.column(("gpu-use", name), lambda row: getattr(row.gpu_use, name), np.int64).copy()

    def known(at: int) -> IntArray:
        return supply.column(("gpu-known", at), lambda row: sum(row.gpu_use.known_mib[at : at + 1]), np.int64)

    most = int(supply.column("gpus-known", lambda row: len(row.gpu_use.known_mib), np.int64).max(initial=0))
    return ShareColumns(
        memory=supply.column("gpu-mib", lambda row: row.gpu_memory_mib, np.int64),
        unshared=supply.column("gpus", lambda row: max(0, row.gpus), np.int64),
        idle=supply.free[GPU],
        known=np.array([known(at) for at in range(most)], dtype=np.int64).reshape(most, len(supply)),
        whole_unknown=of("whole_unknown"),
        shares=of("shares"),
        total=of("shares_mib"),
        largest=of("largest_mib"),
        step=of("step_mib"),
        owner=of("owner"),
        opened=np.zeros(len(supply), dtype=np.int64),
    )
