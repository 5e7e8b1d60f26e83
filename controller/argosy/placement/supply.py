"""The supply that tasks are placed on: instances as columns, whether real, ordered or hypothetical.

This is the only module of the package that has instance ids as well as row numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.placement.arrays import ENDLESS, MAX_AMOUNT, MAX_GPUS, MAX_TASKS, BoolArray, FloatArray, IntArray
from argosy.placement.fitness import Mix
from argosy.placement.gpu_shares import UNUSED, GpuUse

# ECS reserves at most 100 ports of an instance, six of them for ssh, Docker and the agent (API reference,
# PortMapping).
MOST_HOST_PORTS = 94
_NOTHING: Mapping[str, int] = MappingProxyType({})
_MAX_KEYS = 1_000  # keys kept per supply: 10 MB at 5,000 instances
_MAX_MASKS = 1_000  # masks kept per supply: 5 MB at 5,000 instances
_MAX_COLUMNS = 300  # kept per supply; each is a step for every row that changes
_MAX_GROUPS = 1_000  # counts of groups kept per supply: 40 MB at 5,000 instances
_COLUMNS = (
    "free", "total", "healthy", "running_tasks", "tasks_left", "price_usd_per_hour", "interruption_rate", "finish_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One instance, as the caller describes it to placement. cpu_units: 1024 = 1 vCPU; memory_mib: MiB."""

    id: str
    """i-... or the invented id of a hypothetical instance; unique within a supply."""
    cpu_units: int
    """Free now; a negative number (more in use than registered) counts as 0. The same for memory_mib and gpus."""
    memory_mib: int
    gpus: int
    total_cpu_units: int
    total_memory_mib: int
    total_gpus: int
    attributes: Mapping[str, str]
    """`ecs.instance-type`, `ecs.availability-zone`, ... and custom ones; "" for those with a name only."""
    used_host_ports: frozenset[tuple[int, str]] = frozenset()
    """(port, "tcp" | "udp")."""
    gpu_memory_mib: int = 0
    """Of each of its GPUs, if tasks can share them."""
    gpu_use: GpuUse = UNUSED
    """Of its `gpus`, those that tasks share or may share are free for shares only."""
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
    images: Collection[str] = ()
    """Names of the images that it has pulled."""
    interrupted: bool = False
    """Warned, or recommended for rebalancing: no task is placed here any more."""
    finish_at: float = 0.0
    """Epoch seconds when the last of its live tasks is expected to end; 0 = idle, or not asked for by any strategy."""


OfRow = Callable[[InstanceRow], Any]


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

    def moved(self, source: IntArray, added: IntArray, more: Codes) -> Codes:
        """The codes of other rows: row i is row `source[i]` of these, but for those at `added`, whose codes are
        `more`."""
        values = dict.fromkeys(self.values + more.values)
        place = {value: code for code, value in enumerate(values)}
        mine, theirs = (
            np.array([*(place[value] for value in each.values), len(values)], dtype=np.int64) for each in (self, more)
        )
        codes: IntArray = mine[self.codes].take(source)
        codes[added] = theirs[more.codes]
        return Codes(tuple(values), codes)

    def where(self, accepts: Callable[[str], bool], *, missing: bool = False) -> BoolArray:
        """(m,) bool: the rows whose value is accepted; a row without the value gets `missing`."""
        table = np.array([accepts(value) for value in self.values] + [missing], dtype=np.bool_)
        return table[self.codes]


@dataclass(slots=True, eq=False)
class _DerivedValues:
    """Values computed from rows when first asked for."""

    codes: dict[str, Codes] = field(default_factory=dict)
    masks: dict[str, BoolArray] = field(default_factory=dict)
    keys: dict[Hashable, NDArray[np.int16]] = field(default_factory=dict)
    groups: dict[str, IntArray] = field(default_factory=dict)
    columns: dict[Hashable, tuple[OfRow, NDArray[Any]]] = field(default_factory=dict)
    names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Supply:
    """Columns over m instances in a fixed row order. A pass works on a copy (`PassState`). Only the owner of a supply
    kept from pass to pass (`KeptSupply`) changes it, in between."""

    _rows: list[InstanceRow]
    free: IntArray
    """(3, m) int64: cpu units, MiB, GPUs; each axis contiguous."""
    total: IntArray
    """(3, m) int64."""
    healthy: BoolArray
    """(m,): ACTIVE, agent connected, not interrupted."""
    running_tasks: IntArray
    tasks_left: IntArray
    """(m,): how many more tasks each may run, whatever they need; ENDLESS if the instance has no maximum."""
    price_usd_per_hour: FloatArray
    interruption_rate: FloatArray
    finish_at: FloatArray
    _kept: _DerivedValues = field(default_factory=_DerivedValues)
    _part: tuple[Supply, slice] | None = None
    """The supply that this is a part of, and the rows."""
    mix: Mix | None = None
    """The tasks with GPUs that are typical of the cluster, for which default chains strand few; None = not known."""

    @classmethod
    def of(cls, rows: Sequence[InstanceRow]) -> Supply:
        """Columns of `rows`, in their order.

        ValueError names the instance whose numbers are impossible or whose id is doubled.
        """
        _refuse_doubles([row.id for row in rows])
        _refuse_impossible(rows)
        free = np.maximum(_ints([_free_of(row) for row in rows]), 0)
        total = _ints([(row.total_cpu_units, row.total_memory_mib, row.total_gpus) for row in rows])
        return cls(
            list(rows),
            free=free,
            total=np.maximum(total, free),  # shares of an instance are never above 1
            healthy=np.array([_is_healthy(row) for row in rows], np.bool_),
            running_tasks=np.array([row.running_tasks for row in rows], dtype=np.int64),
            tasks_left=np.array([_tasks_left(row) for row in rows], dtype=np.int64),
            price_usd_per_hour=np.array([row.price_usd_per_hour for row in rows], dtype=np.float64),
            interruption_rate=np.array([row.interruption_rate for row in rows], dtype=np.float64),
            finish_at=np.array([row.finish_at for row in rows], dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.healthy)

    @property
    def sizes(self) -> IntArray:
        """(4, m) the totals as `Resources` counts them, the memory of shared GPUs included."""
        shared = self.column("gpu-memory", lambda row: row.total_gpus * row.gpu_memory_mib, np.int64)
        return np.concatenate([self.total, shared[None]])

    @property
    def rows(self) -> Sequence[InstanceRow]:
        """The instances as they were described."""
        return self._rows if self._part is None else self._part[0].rows[self._part[1]]

    def row(self, at: int) -> InstanceRow:
        """The instance in one row."""
        return self._rows[at if self._part is None else at + self._part[1].start]

    @property
    def ids(self) -> tuple[str, ...]:
        """(m,)."""
        return tuple(row.id for row in self.rows)

    def part(self, start: int, stop: int) -> Supply:
        """The rows from `start` to `stop`, as a view: it changes with this supply, and shares derived values."""
        if (start, stop) == (0, len(self)):
            return self
        at = slice(start, stop)
        columns: dict[str, Any] = {name: getattr(self, name)[..., at] for name in _COLUMNS}
        return Supply(self._rows, **columns, _part=(self, at), mix=self.mix)

    def attribute(self, name: str) -> Codes:
        """The codes of one attribute; made at first use."""
        return self.codes("attribute:" + name)

    def codes(self, subject: str) -> Codes:
        """The codes of a subject that is one string per instance. Of a part, some values may be those of other rows.

        ValueError for others than attribute:NAME, ec2InstanceId, agentVersion and agentConnected.
        """
        if self._part is not None:
            found = self._part[0].codes(subject)
            return Codes(found.values, found.codes[self._part[1]])
        if subject not in self._kept.codes:
            self._kept.codes[subject] = Codes.of(map(_text_of(subject), self._rows))
        return self._kept.codes[subject]

    @property
    def group_names(self) -> frozenset[str]:
        """Every group with a task on some instance; of a part, perhaps on another one."""
        if self._part is not None:
            return self._part[0].group_names
        if self._kept.names is None:
            self._kept.names = frozenset(name for row in self._rows for name in _groups_on(row))
        return self._kept.names

    def of_group(self, name: str) -> IntArray:
        """(m,) int64: live tasks of a group on each instance; read only."""
        if self._part is not None:
            return self._part[0].of_group(name)[self._part[1]]
        found = self._kept.groups.get(name)
        if found is None:
            if len(self._kept.groups) >= _MAX_GROUPS:
                self._kept.groups.clear()
            found = np.array([row.running_by_group.get(name, 0) for row in self._rows], dtype=np.int64)
            self._kept.groups[name] = found
        return found

    def column(self, name: Hashable, of: OfRow, dtype: type[np.generic]) -> NDArray[Any]:
        """(m,): a number of each row, made at first use; read only. name: what `of` depends on besides the row."""
        if self._part is not None:
            return self._part[0].column(name, of, dtype)[self._part[1]]
        if name not in self._kept.columns:
            if len(self._kept.columns) >= _MAX_COLUMNS:
                self._kept.columns.clear()
            self._kept.columns[name] = of, np.array([of(row) for row in self._rows], dtype=dtype)
        return self._kept.columns[name][1]

    def has_image(self, name: str) -> BoolArray:
        """(m,) bool: the instances that have pulled it; read only."""
        return self.column(("image", name), lambda row: name in row.images, np.bool_)

    def kept_mask(self, expression: str, made: Callable[[Supply], BoolArray]) -> BoolArray:
        """(m,) bool, read only: the mask of an expression that no pass can change, made once."""
        if self._part is not None:
            return self._part[0].kept_mask(expression, made)[self._part[1]]
        found = self._kept.masks.get(expression)
        if found is None:
            if len(self._kept.masks) >= _MAX_MASKS:
                self._kept.masks.clear()
            found = self._kept.masks[expression] = made(self)
            found.setflags(write=False)
        return found

    def kept_key(self, name: Hashable, made: Callable[[Supply], IntArray]) -> NDArray[np.int16]:
        """(m,): a key below 2^15 that no pass can change, made once. name: its dependency besides the instances."""
        if self._part is not None:
            return self._part[0].kept_key(name, made)[self._part[1]]
        found = self._kept.keys.get(name)
        if found is None:
            if len(self._kept.keys) >= _MAX_KEYS:
                self._kept.keys.clear()
            found = self._kept.keys[name] = made(self).astype(np.int16)
        return found

    def put(self, at: int, row: InstanceRow) -> None:
        """Replace the instance in one row, in every column. ValueError as in `of`; then nothing has changed."""
        _refuse_impossible([row])
        old, self._rows[at] = self._rows[at], row
        free = [max(0, amount) for amount in _free_of(row)]
        total = (row.total_cpu_units, row.total_memory_mib, row.total_gpus)
        self.free[:, at] = free
        before = self.total[:, at].tolist()
        self.total[:, at] = now = [*map(max, total, free)]
        if before != now:
            self._kept.keys.clear()
        self.healthy[at] = _is_healthy(row)
        self.running_tasks[at] = row.running_tasks
        self.tasks_left[at] = _tasks_left(row)
        self.price_usd_per_hour[at] = row.price_usd_per_hour
        self.interruption_rate[at] = row.interruption_rate
        self.finish_at[at] = row.finish_at
        self._put_kept(at, old, row)

    def _put_kept(self, at: int, old: InstanceRow, row: InstanceRow) -> None:
        kept = self._kept
        if _nature(old) != _nature(row):
            kept.codes.clear()
            kept.masks.clear()
        if _groups_on(old) != _groups_on(row):
            kept.names = None
        for name in {**old.running_by_group, **row.running_by_group}:
            if name in kept.groups:
                kept.groups[name][at] = row.running_by_group.get(name, 0)
        for of, column in kept.columns.values():
            column[at] = of(row)

    def rearranged(self, rows: Sequence[InstanceRow], source: IntArray) -> Supply:
        """A supply of `rows` in another order, with others left out or added. source: (len(rows),) int64, where each
        is now, or -1. ValueError as in `of`, of those added."""
        if not len(self) or not len(rows):
            return Supply.of(rows)
        added = np.flatnonzero(source < 0)
        more = Supply.of([rows[at] for at in added.tolist()])

        def moved(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
            found = mine.take(source, axis=-1)
            found[..., added] = theirs
            return found

        columns: dict[str, Any] = {name: moved(getattr(self, name), getattr(more, name)) for name in _COLUMNS}
        return Supply(
            list(rows),
            **columns,
            _kept=_DerivedValues(
                codes={name: codes.moved(source, added, more.codes(name)) for name, codes in self._kept.codes.items()},
                groups={name: moved(group, more.of_group(name)) for name, group in self._kept.groups.items()},
            ),
        )


def _free_of(row: InstanceRow) -> tuple[int, int, int]:
    return row.cpu_units, row.memory_mib, row.gpus - row.gpu_use.opened


def _is_healthy(row: InstanceRow) -> bool:
    return row.status == "ACTIVE" and row.agent_connected and not row.interrupted


def _nature(row: InstanceRow) -> tuple[object, ...]:
    """The values that expressions read and no task changes."""
    return row.id, row.attributes, row.agent_connected, row.agent_version, row.registered_at, row.started_by


def _groups_on(row: InstanceRow) -> set[str]:
    return {name for name, count in row.running_by_group.items() if count}


def _text_of(subject: str) -> Callable[[InstanceRow], str | None]:
    """The value of a subject for one instance; None = none."""
    if subject.startswith("attribute:"):
        name = subject.removeprefix("attribute:")
        return lambda row: row.attributes.get(name)
    if subject == "ec2InstanceId":
        return lambda row: row.id
    if subject == "agentVersion":
        return lambda row: row.agent_version or None
    if subject == "agentConnected":
        return lambda row: "true" if row.agent_connected else "false"
    raise ValueError(f"no column of strings is called {subject}")


def _tasks_left(row: InstanceRow) -> int:
    return ENDLESS if row.most_tasks is None else max(0, row.most_tasks - row.running_tasks)


def _ints(triples: list[tuple[int, int, int]]) -> IntArray:
    return np.ascontiguousarray(np.array(triples, dtype=np.int64).reshape(-1, 3).T)


def _refuse_doubles(ids: list[str]) -> None:
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
