"""Places tasks one at a time in plain Python, as docs/concepts/placement.md says.

The oracle of the fast kernels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argosy.placement.demand import Batch
from argosy.placement.supply import InstanceRow

SHARE, DAY = 1 << 20, 1 << 20
AXES = ("cpu", "memory", "gpu")
EMPTYING = ("least-waste", "busy-first", "image-first", "best-fit")


@dataclass
class Host:
    """One instance as it fills up."""

    row: InstanceRow
    free: list[int]
    running: int
    groups: Counter[str]
    ports: set[tuple[int, str]]
    finish_at: float
    disk_gib: int
    frozen_finish_at: float = 0.0
    soft: int = 0
    shares: list[int] = field(default_factory=list)
    """MiB of each share on a GPU not known."""
    owner: int = 0
    """Whose shares are there; 0 = there are none, -1 = several owners'."""
    whole: int = 0
    """GPUs that tasks of this queue take whole."""

    @property
    def total(self) -> tuple[int, int, int]:
        return self.row.total_cpu_units, self.row.total_memory_mib, self.row.total_gpus


Predicate = Callable[[Host], bool]
Key = Callable[[Host, Batch], int]


@dataclass
class Reference:
    """`queries`: expression -> what it means; `functions`: name of a user's fitness -> its integer key."""

    hosts: list[Host]
    queries: Mapping[str, Predicate]
    functions: Mapping[str, Key] = field(default_factory=dict)
    mix: Counter[tuple[int, int, int, int]] = field(default_factory=Counter)
    is_known: bool = False
    """Whether `mix` is that of the cluster; else it is counted from the queue."""
    turn: tuple[int, int] = (0, 0)
    """The position of the batch in the queue, and the number of the task in it."""

    def place(self, batches: Sequence[Batch]) -> list[Counter[int]]:
        """For each batch, how many of its tasks went to which row."""
        for batch in batches:
            if (batch.gpus or batch.gpu_share_mib) and not self.is_known:
                self.mix[(*batch.need, batch.gpu_share_mib)] += batch.count
        return [self._batch(batch, position) for position, batch in enumerate(batches)]

    def _batch(self, batch: Batch, position: int) -> Counter[int]:
        plan: Counter[int] = Counter()
        for host in self.hosts:
            host.frozen_finish_at = host.finish_at
            host.soft = sum(s.weight for s in batch.soft if not self._accepts(s.constraint, host, batch))
        for number in range(batch.count):
            self.turn = (position, number)
            row = self._choose(batch)
            if row is None:
                break
            plan[row] += 1
            host = self.hosts[row]
            host.free = left(host, batch)
            host.shares += [batch.gpu_share_mib] if batch.gpu_share_mib else []
            if batch.gpu_share_mib and batch.gpu_owner:
                host.owner = batch.gpu_owner if host.owner in (0, batch.gpu_owner) else -1
            host.whole += batch.gpus
            host.running += 1
            host.groups[batch.group] += 1
            host.disk_gib -= batch.disk_gib
            host.ports |= set(batch.host_ports)
            host.finish_at = max(host.finish_at, batch.finish_at)
        return plan

    def _choose(self, batch: Batch) -> int | None:
        left = [row for row, host in enumerate(self.hosts) if self._feasible(host, batch)]
        for step in self._chain(batch):
            if isinstance(step, int):
                left = [left[draw(step, *self.turn, len(left))]] if left else []
                continue
            keys = {row: step(self.hosts[row], batch) for row in left}
            left = [row for row in left if keys[row] == min(keys.values())]
        return left[0] if left else None

    def _accepts(self, constraint: str, host: Host, batch: Batch) -> bool:
        return not host.groups[batch.group] if constraint == "distinctInstance" else self.queries[constraint](host)

    def _feasible(self, host: Host, b: Batch) -> bool:
        row, here = host.row, host.groups[b.group]
        used = sum(other.groups[b.group] > 0 for other in self.hosts)
        most = min(
            [n for n in (b.max_instances, max(1, used) if b.group in b.affinity else None) if n is not None],
            default=None,
        )
        return (
            row.status == "ACTIVE" and row.agent_connected and not row.interrupted
            and all(free >= need for free, need in zip(host.free, b.need, strict=True))
            and all(self._accepts(constraint, host, b) for constraint in b.constraints)
            and (not b.gpu_share_mib or takes_share(host, b.gpu_share_mib))
            and (not b.gpu_share_mib or not b.gpu_owner or host.owner in (0, b.gpu_owner))
            and (not b.disk_gib or host.disk_gib >= b.disk_gib)
            and not host.ports & set(b.host_ports)
            and (not b.host_ports or len(host.ports) + len(b.host_ports) <= 94)
            and (row.most_tasks is None or host.running < row.most_tasks)
            and (b.max_per_instance is None or here < b.max_per_instance)
            and (most is None or here > 0 or used < most)
            and all(host.groups[g] for g in b.affinity if g != b.group)
            and not any(host.groups[g] for g in b.anti_affinity)
        )  # fmt: skip

    def _chain(self, batch: Batch) -> list[Key | int]:
        """An int is the seed of a draw."""
        names = batch.strategy or ("least-waste", "best-fit")
        chain = [int(name[7:] or 0) if name.startswith("random") else self._key(name) for name in names]
        if self.is_known and names in (("least-waste", "best-fit"), EMPTYING):
            chain.insert(0, self._fragmentation)
        if batch.gpu_share_mib:
            chain.insert(len(chain) - len(names), lambda host, batch: min(1, host.free[2]))
        elif batch.keep_gpus_free and not batch.gpus:
            chain.insert(0, self._key("keep-gpus-free"))
        return [lambda host, _: host.soft, *chain]

    def _key(self, name: str) -> Key:
        kind, _, rest = name.partition(":")
        if name in self.functions:
            return self.functions[name]
        if kind == "binpack":
            return lambda host, batch: left(host, batch)[AXES.index(rest)]
        if kind == "mix":
            weights = {part.split("=")[0]: int(part.split("=")[1]) for part in rest.split("+")}
            return lambda host, batch: sum(w * shares(host, batch)[AXES.index(axis)] for axis, w in weights.items())
        if name == "spread:instanceId":
            return lambda host, batch: host.groups[batch.group]
        if kind == "spread":
            attribute = rest.removeprefix("attribute:")
            return lambda host, batch: sum(
                other.groups[batch.group]
                for other in self.hosts
                if other.row.attributes.get(attribute) == host.row.attributes.get(attribute)
            )
        if name == "fragmentation":
            return lambda host, batch: self._fragmentation(host, batch) * (1 << 60) + best_fit(host, batch)
        return NAMED[name]

    def _fragmentation(self, host: Host, batch: Batch) -> int:
        if not self.mix or not host.total[2]:
            return 0
        kept = Counter(dict(sorted(self.mix.items(), key=lambda item: (-item[1], item[0]))[:128]))
        memory = host.row.gpu_memory_mib
        before = Room(*host.free, [max(0, memory - known) for known in host.row.gpu_use.known_mib], memory)
        after = replace(before, cpu=before.cpu - batch.cpu_units, ram=before.ram - batch.memory_mib)
        after.idle -= batch.gpus
        after.rests = list(before.rests)
        if batch.gpu_share_mib:
            fitting = [rest for rest in after.rests if rest >= batch.gpu_share_mib]
            if fitting:
                after.rests.remove(min(fitting))
                after.rests.append(min(fitting) - batch.gpu_share_mib)
            elif after.idle:
                after.idle -= 1
                after.rests.append(max(0, memory - batch.gpu_share_mib))
        growth = after.stranded(kept) - before.stranded(kept)
        return growth // sum(kept.values()) if sum(kept.values()) else 0


def draw(seed: int, position: int, number: int, candidates: int) -> int:
    """Small batches: that many steps into SplitMix64, started at the seed after one round of its mixing; the highest 53
    bits as a share."""
    start, steps = mixed(seed), 8 * position + number + 1
    return (mixed((start + steps * 0x9E3779B97F4A7C15) % 2**64) >> 11) * candidates // 2**53


def mixed(word: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ word >> shift) * factor % 2**64
    return word ^ word >> 31


def left(host: Host, batch: Batch) -> list[int]:
    """A share may open an idle GPU, which no task that takes whole ones gets then."""
    cpu, memory, gpus = (free - need for free, need in zip(host.free, batch.need, strict=True))
    return [cpu, memory, max(0, gpus - 1) if batch.gpu_share_mib else gpus]


def takes_share(host: Host, mib: int) -> bool:
    """Whether the other shares on GPUs not known are too few, or too small together, to close every GPU to the largest,
    and tasks with whole GPUs that may start later find theirs."""
    use, unknown = host.row.gpu_use, [*host.shares, mib]
    count, total = use.shares + len(unknown), use.shares_mib + sum(unknown)
    largest, step = max(use.largest_mib, *unknown), math.gcd(use.step_mib, *unknown)
    idle = host.row.gpus - host.whole - len(use.known_mib)
    open_, closes = 0, 0
    for taken in [*use.known_mib, *[0] * idle]:
        free = host.row.gpu_memory_mib - taken
        if free >= largest:
            open_ += 1
        while free >= largest:
            free, closes = free - step, closes + step
    if use.whole_unknown + host.whole and count > idle:
        return False
    return host.row.gpu_memory_mib >= largest and (count <= open_ or total - largest < closes)


def shares(host: Host, batch: Batch) -> list[int]:
    return [part * SHARE // max(total, 1) for part, total in zip(left(host, batch), host.total, strict=True)]


def best_fit(host: Host, batch: Batch) -> int:
    cpu, memory, gpus = left(host, batch)
    return 8 * cpu + memory + (gpus << 18)


def least_waste(host: Host, batch: Batch) -> int:
    """Fill an empty instance of this type with the task, one after the other, and count what is left, in sixteenths."""
    if batch.gpus or batch.gpu_share_mib:
        return 0
    room, weights = list(host.total), (8, 1, 1 << 18)
    whole = sum(weight * amount for weight, amount in zip(weights, room, strict=True))
    while any(batch.need) and all(free >= need for free, need in zip(room, batch.need, strict=True)):
        room = [free - need for free, need in zip(room, batch.need, strict=True)]
    return 16 * sum(weight * amount for weight, amount in zip(weights, room, strict=True)) // max(whole, 1)


@dataclass
class Room:
    """What is free of an instance. rests: MiB left on each shared GPU."""

    cpu: int
    ram: int
    idle: int
    rests: list[int]
    memory: int

    def stranded(self, mix: Counter[tuple[int, int, int, int]]) -> int:
        """Thousandths of GPUs that the tasks of the mix could not use."""
        found = 0
        for (cpu, ram, gpus, share), count in mix.items():
            useless = [rest for rest in self.rests if not share or rest < share]
            fits = (
                len(useless) < len(self.rests) or (self.idle and self.memory >= share) if share else self.idle >= gpus
            )
            if self.cpu < cpu or self.ram < ram or not fits:
                found += count * 1000 * self.idle
                useless = self.rests
            found += count * sum(rest * 1000 // max(self.memory, 1) for rest in useless)
        return found


def alignment(host: Host, batch: Batch) -> int:
    pairs = zip(batch.need, host.free, host.total, strict=True)
    return -sum(
        (need * SHARE // max(total, 1)) * ((free * SHARE // max(total, 1)) >> 2) >> 18 for need, free, total in pairs
    )


def finish(host: Host, batch: Batch) -> int:
    late, until = round(batch.finish_at), round(host.frozen_finish_at)
    return min(max(late - until, 0), DAY) * (DAY + 1) + min(max(until - late, 0), DAY) if late else -until


NAMED: dict[str, Key] = {
    "least-waste": least_waste,
    "best-fit": best_fit,
    "cpu-memory": lambda h, b: shares(h, b)[0] + shares(h, b)[1],
    "cpu-memory-gpu": lambda h, b: sum(shares(h, b)),
    "least-allocated": lambda h, b: -sum(shares(h, b)),
    "dot-product": alignment,
    "cheapest": lambda h, b: round(h.row.price_usd_per_hour * 1e6),
    "least-interrupted": lambda h, b: round(h.row.interruption_rate * 1e6),
    "finish-together": finish,
    "busy-first": lambda h, b: int(not h.running),
    "image-first": lambda h, b: int(b.image not in h.row.images),
    "keep-gpus-free": lambda h, b: int(b.gpus == 0 and h.total[2] > 0),
}


def hosts(rows: Sequence[InstanceRow]) -> list[Host]:
    """Fresh hosts as the rows describe them."""
    return [
        Host(r, [max(0, r.cpu_units), max(0, r.memory_mib), max(0, r.gpus - r.gpu_use.opened)], r.running_tasks,
             Counter(r.running_by_group), set(r.used_host_ports), r.finish_at, r.disk_gib, owner=r.gpu_use.owner)
        for r in rows
    ]  # fmt: skip
