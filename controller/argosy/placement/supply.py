"""What can tasks be placed on? Instances as columns, whether real, ordered or hypothetical.

This is the only module of the package that knows instance ids as well as row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from argosy.placement.arrays import ENDLESS, MAX_AMOUNT, MAX_GPUS, MAX_TASKS, BoolArray, FloatArray, IntArray

# ECS keeps at most 100 ports of an instance reserved, ssh's, Docker's and the agent's six among them (API reference,
# PortMapping).
MOST_HOST_PORTS = 94
_NOTHING: Mapping[str, int] = MappingProxyType({})
_MAX_KEYS = 1_000  # keys kept per supply: 10 MB at 5,000 instances
_MAX_MASKS = 1_000  # masks kept per supply: 5 MB at 5,000 instances


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One instance, as the caller describes it to placement. cpu_units: 1024 = 1 vCPU; memory_mib: MiB."""

    id: str
    """i-... or the invented id of a hypothetical instance; unique within a supply."""
    cpu_units: int
    """Free now; a negative number (more in use than registered) counts as 0. Likewise memory_mib and gpus."""
    memory_mib: int
    gpus: int
    total_cpu_units: int
    total_memory_mib: int
    total_gpus: int
    attributes: Mapping[str, str]
    """`ecs.instance-type`, `ecs.availability-zone`, ... and custom ones; "" for those with a name only."""
    used_host_ports: frozenset[tuple[int, str]] = frozenset()
    """(port, "tcp" | "udp")."""
    disk_gib: int = 0
    """Of its volume, still free for tasks that ask for disk; a negative number counts as 0."""
    most_tasks: int | None = None
    """The most tasks at a time, of every group; None = as many as its resources take."""
    status: str = "ACTIVE"
    agent_connected: bool = True
    agent_version: str = ""
    registered_at: float = 0.0
    """Epoch seconds; 0 = not registered yet."""
    running_tasks: int = 0
    """All live tasks, of every group."""
    running_by_group: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    started_by: frozenset[str] = frozenset()
    price_usd_per_hour: float = 0.0
    interruption_rate: float = 0.0
    """Expected interruptions per instance-hour; 0 = on-demand, or not asked for by any strategy."""
    interrupted: bool = False
    """Warned, or recommended for rebalancing: no task is placed here any more."""
    finish_at: float = 0.0
    """Epoch seconds when the last of its live tasks is expected to end; 0 = idle, or not asked for by any strategy."""


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """`values`: the distinct values in order of first appearance; `codes`: (m,) int64 into it, `len(values)` =
    missing.
    """

    values: tuple[str, ...]
    codes: IntArray

    @classmethod
    def of(cls, column: Iterable[str | None]) -> Codes:
        """One code for every distinct value, in order of first appearance."""
        seen: dict[str | None, int] = {}
        codes = [seen.setdefault(value, len(seen)) for value in column]
        missing = seen.pop(None, None)
        array = np.array(codes, dtype=np.int64)
        if missing is not None:
            array[array == missing] = len(seen) + 1
            array[array > missing] -= 1
        return cls(tuple(value for value in seen if value is not None), array)

    def where(self, accepts: Callable[[str], bool], *, missing: bool = False) -> BoolArray:
        """(m,) bool: the rows whose value is accepted; a row without the value gets `missing`."""
        table = np.array([accepts(value) for value in self.values] + [missing], dtype=np.bool_)
        return table[self.codes]


@dataclass(frozen=True, eq=False)
class Supply:
    """Columns over m instances in a fixed row order. Read only: a pass works on a copy (`PassState`)."""

    rows: tuple[InstanceRow, ...]
    ids: tuple[str, ...]
    free: IntArray
    """(3, m) int64: cpu units, MiB, GPUs; each axis contiguous."""
    total: IntArray
    """(3, m) int64."""
    healthy: BoolArray
    """(m,): ACTIVE, agent connected, not interrupted."""
    running_tasks: IntArray
    tasks_left: IntArray | None
    """(m,): how many more tasks each may run, whatever they need; None = no instance has a most."""
    price_usd_per_hour: FloatArray
    interruption_rate: FloatArray
    finish_at: FloatArray
    _codes: dict[str, Codes] = field(default_factory=dict)
    _masks: dict[str, BoolArray] = field(default_factory=dict)
    _groups: dict[str, IntArray] = field(default_factory=dict)
    _keys: dict[Hashable, NDArray[np.int16]] = field(default_factory=dict)
    _names: list[frozenset[str]] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[InstanceRow]) -> Supply:
        """Columns of `rows`, in their order.

        ValueError names the instance whose numbers are impossible or whose id is doubled.
        """
        ids = tuple(row.id for row in rows)
        _refuse_doubles(ids)
        _refuse_impossible(rows)
        free = np.maximum(_ints([(row.cpu_units, row.memory_mib, row.gpus) for row in rows]), 0)
        total = _ints([(row.total_cpu_units, row.total_memory_mib, row.total_gpus) for row in rows])
        return cls(
            rows=tuple(rows),
            ids=ids,
            free=free,
            total=np.maximum(total, free),  # shares of an instance are never above 1
            healthy=np.array(
                [r.status == "ACTIVE" and r.agent_connected and not r.interrupted for r in rows], np.bool_
            ),
            running_tasks=np.array([row.running_tasks for row in rows], dtype=np.int64),
            tasks_left=_tasks_left(rows),
            price_usd_per_hour=np.array([row.price_usd_per_hour for row in rows], dtype=np.float64),
            interruption_rate=np.array([row.interruption_rate for row in rows], dtype=np.float64),
            finish_at=np.array([row.finish_at for row in rows], dtype=np.float64),
        )

    @cached_property
    def least_tasks_left(self) -> int:
        """The smallest of `tasks_left`."""
        return ENDLESS if self.tasks_left is None else int(self.tasks_left.min(initial=ENDLESS))

    @cached_property
    def most_free(self) -> tuple[int, ...]:
        """The most that is free on one instance: cpu units, MiB, GPUs."""
        return tuple(self.free.max(axis=1, initial=0).tolist())

    def __len__(self) -> int:
        return len(self.ids)

    def attribute(self, name: str) -> Codes:
        """The codes of one attribute; made at first use."""
        return self.codes("attribute:" + name)

    def codes(self, subject: str) -> Codes:
        """The codes of a subject that is one string per instance.

        ValueError for others than attribute:NAME, ec2InstanceId, agentVersion and agentConnected.
        """
        found = self._codes.get(subject)
        if found is None:
            found = self._codes[subject] = Codes.of(_column(subject, self.rows))
        return found

    @property
    def group_names(self) -> frozenset[str]:
        """Every group with a task on some instance."""
        if not self._names:
            self._names.append(
                frozenset(name for row in self.rows for name, count in row.running_by_group.items() if count)
            )
        return self._names[0]

    def of_group(self, name: str) -> IntArray:
        """(m,) int64: live tasks of a group on each instance; read only."""
        found = self._groups.get(name)
        if found is None:
            found = np.array([row.running_by_group.get(name, 0) for row in self.rows], dtype=np.int64)
            found.setflags(write=False)
            self._groups[name] = found
        return found

    def cached_mask(self, expression: str) -> BoolArray | None:
        """The mask of an expression, if it was kept; only for expressions that a pass cannot change."""
        return self._masks.get(expression)

    def keep_mask(self, expression: str, mask: BoolArray) -> BoolArray:
        """Keep a mask as long as this supply lives; it is read only from then on."""
        if len(self._masks) >= _MAX_MASKS:
            self._masks.clear()
        mask.setflags(write=False)
        self._masks[expression] = mask
        return mask

    def kept_key(self, name: Hashable, made: Callable[[], IntArray]) -> NDArray[np.int16]:
        """(m,): a key below 2^15 that no pass can change, made once. name: what it depends on besides the instances."""
        found = self._keys.get(name)
        if found is None:
            if len(self._keys) >= _MAX_KEYS:
                self._keys.clear()
            found = self._keys[name] = made().astype(np.int16)
        return found


def _column(subject: str, rows: Sequence[InstanceRow]) -> list[str | None]:
    if subject.startswith("attribute:"):
        name = subject.removeprefix("attribute:")
        return [row.attributes.get(name) for row in rows]
    if subject == "ec2InstanceId":
        return [row.id for row in rows]
    if subject == "agentVersion":
        return [row.agent_version or None for row in rows]
    if subject == "agentConnected":
        return ["true" if row.agent_connected else "false" for row in rows]
    raise ValueError(f"no column of strings is called {subject}")


def _tasks_left(rows: Sequence[InstanceRow]) -> IntArray | None:
    if all(row.most_tasks is None for row in rows):
        return None
    left = [ENDLESS if row.most_tasks is None else max(0, row.most_tasks - row.running_tasks) for row in rows]
    return np.array(left, dtype=np.int64)


def _ints(triples: list[tuple[int, int, int]]) -> IntArray:
    return np.ascontiguousarray(np.array(triples, dtype=np.int64).reshape(-1, 3).T)


def _refuse_doubles(ids: tuple[str, ...]) -> None:
    if len(set(ids)) == len(ids):
        return
    twice = next(row_id for index, row_id in enumerate(ids) if row_id in ids[:index])
    raise ValueError(f"instance {twice}: listed twice")


def _refuse_impossible(rows: Sequence[InstanceRow]) -> None:
    """Numbers that do not fit the columns, or are invalid, are refused here and nowhere later."""
    for r in rows:
        if not (
            -MAX_AMOUNT <= r.cpu_units <= MAX_AMOUNT >= r.total_cpu_units >= 0
            and -MAX_AMOUNT <= r.memory_mib <= MAX_AMOUNT >= r.total_memory_mib >= 0
            and -MAX_GPUS <= r.gpus <= MAX_GPUS >= r.total_gpus >= 0
        ):
            raise ValueError(f"instance {r.id}: cpu units and MiB are 0 to {MAX_AMOUNT}, GPUs 0 to {MAX_GPUS}")
        if not 0 <= r.running_tasks <= MAX_TASKS or not all(0 <= n <= MAX_TASKS for n in r.running_by_group.values()):
            raise ValueError(f"instance {r.id}: a number of running tasks is negative or above {MAX_TASKS}")
        if r.most_tasks is not None and not 0 <= r.most_tasks <= MAX_TASKS:
            raise ValueError(f"instance {r.id}: the most tasks are 0 to {MAX_TASKS}")
        if not isfinite(r.price_usd_per_hour + r.interruption_rate + r.finish_at + r.registered_at):
            raise ValueError(f"instance {r.id}: price, interruption rate or a time is not a finite number")
