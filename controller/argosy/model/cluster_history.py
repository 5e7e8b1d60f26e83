"""The cluster's history over weeks: samples of it, and the orders placed.

A sample is taken every five minutes while there are runs or instances, at first more often, and once more when there
are none. A gap after that last sample means an empty cluster; any other gap means that no controller ran. Samples and
orders are appended by the commits that they belong to, in a partition that no load reads, and expire after 90 days.
Instances are counted by pool for the MOST_POOLS largest; the totals include all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

PARTITION = "COURSE"
EVERY_S = 300.0
FIRST_EVERY_S = 10.0  # at the beginning
KEPT_S = 90 * 86_400.0
MOST_POOLS = 100
MOST_ORDERS = 200  # orders of a commit
MOST_RUNS = 1_000  # runs of an order: with all its orders, a piece stays below 100 KB, and an item holds 400


class PoolCount(NamedTuple):
    """The instances of one pool."""

    pool: str  # Pool.key
    spot: int = 0
    on_demand: int = 0
    target: int = 0  # its target, for both purchase options


class ClusterSample(NamedTuple):
    """One sample. at: epoch seconds. Instances are those that are ours and alive, tasks those of all open runs."""

    at: float
    runs: int = 0  # that are open
    queued: int = 0
    starting: int = 0
    running: int = 0
    booting: int = 0  # instances that have not joined yet
    active: int = 0
    leaving: int = 0  # instances that get no new work
    spot: int = 0
    on_demand: int = 0
    usd_per_hour: float = 0.0
    spent_usd: float = 0.0  # since the deployment
    spent_on_demand_usd: float = 0.0  # cost of the same hours on demand
    interruptions: int = 0  # since the deployment
    cpu_used: float = 0.0  # share of the active instances that attempts take, 0..1
    memory_used: float = 0.0
    gpu_used: float = 0.0
    pools: Sequence[PoolCount] = ()

    @property
    def is_at_rest(self) -> bool:
        return not (self.runs or self.spot or self.on_demand)


class PlacedOrder(NamedTuple):
    """An increase of a pool's target."""

    at: float  # epoch seconds
    pool: str  # Pool.key
    purchase: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which no order needs
    usd_per_hour: float  # EC2's price of one at the time; 0 = not known
    runs: Sequence[int] = ()  # Run.number of the runs that had tasks without a place; the MOST_RUNS first
    why: str = ""


@dataclass(frozen=True, slots=True)
class ClusterHistoryPiece:
    """One commit's records about the cluster."""

    sample: ClusterSample | None
    orders: Sequence[PlacedOrder]

    def to_json(self) -> dict[str, Any]:
        return {"sample": self.sample, "orders": self.orders}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ClusterHistoryPiece:
        """Unknown members at the end are ignored. Raises KeyError, TypeError or ValueError for damaged data."""
        sample = None
        if record["sample"] is not None:
            sample = ClusterSample(*record["sample"][: len(ClusterSample._fields)])
            sample = sample._replace(pools=[PoolCount(*each) for each in sample.pools])
        return cls(sample, [PlacedOrder(*each[: len(PlacedOrder._fields)]) for each in record["orders"]])


def cluster_history_key(at: float, version: int) -> str:
    """The sort key: sorts like time, and is unique to a commit."""
    return f"{int(at):010d}#{version:012d}"


def key_before(at: float) -> str:
    """A sort key before every piece of this second or a later one."""
    return f"{max(0, int(at)):010d}"
