"""The cluster's history over time, from what commits have appended, thinned where it is long.

A reply has at most MOST_SAMPLES samples. If there are more, those of a span of time become one, whose counts are their
means and whose sums are the last ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any

from argosy.api.requests import DescribeCluster
from argosy.model.cluster_history import (
    EVERY_S,
    PARTITION,
    ClusterHistoryPiece,
    ClusterSample,
    PlacedOrder,
    PoolCount,
    key_before,
)
from argosy.model.damage import FAULTS
from argosy.model.stored import documents
from argosy.ports import Store

JSON = dict[str, Any]
ITEMS_AT_ONCE = 1_000
ITEMS_BEFORE = 20
MOST_SAMPLES = 1_000
MOST_POOLS = 30  # of a reply; the others are in the totals
MOST_ORDERS = 1_000  # the last ones
LONGEST_S = 2.5 * EVERY_S  # between two samples while a controller works
_SUMS = {"spentUsd": "spent_usd", "onDemandUsd": "spent_on_demand_usd", "interruptions": "interruptions"}
_MEANS = {
    "runs": "runs",
    "queued": "queued",
    "starting": "starting",
    "running": "running",
    "booting": "booting",
    "active": "active",
    "leaving": "leaving",
    "spot": "spot",
    "onDemand": "on_demand",
    "usdPerHour": "usd_per_hour",
    "cpuUsed": "cpu_used",
    "memoryUsed": "memory_used",
    "gpuUsed": "gpu_used",
}


@dataclass(frozen=True, slots=True)
class ClusterHistory:
    """The stored samples and orders of a span of time, oldest first. before: the last sample before it; damaged: pieces
    that cannot be read."""

    before: ClusterSample | None
    samples: Sequence[ClusterSample]
    orders: Sequence[PlacedOrder]
    damaged: int


def history_of(store: Store, request: DescribeCluster, present: ClusterSample) -> JSON:
    """`history` of DescribeCluster's body. present: a sample of this moment, with which it ends."""
    now = present.at
    end = min(now, request.until or now)
    start = end - request.history_hours * 3600
    history = history_between(store, start, end)
    if end == now and not present.is_at_rest:
        history = replace(history, samples=[*history.samples, present])
    return history_view(history, start, end)


def history_between(store: Store, start: float, end: float) -> ClusterHistory:
    """Epoch seconds."""
    samples: list[ClusterSample] = []
    orders: list[PlacedOrder] = []
    damaged = 0
    for body in _bodies(store, start, end):
        piece = _piece(body)
        if piece is None:
            damaged += 1
            continue
        samples += [piece.sample] if piece.sample else []
        orders += piece.orders
    return ClusterHistory(_last_before(store, start), samples, orders, damaged)


def _piece(body: bytes) -> ClusterHistoryPiece | None:
    """None for an unreadable piece."""
    try:
        return ClusterHistoryPiece.from_json(documents.decode(body))
    except FAULTS:
        return None


def _last_before(store: Store, at: float) -> ClusterSample | None:
    """Few items between two samples hold only orders, so the first page usually has a sample."""
    after: str | None = key_before(at)
    while after is not None:
        rows, after = store.page(PARTITION, ITEMS_BEFORE, after)
        for _, body in rows:
            if (piece := _piece(body)) and piece.sample:
                return piece.sample
    return None


def _bodies(store: Store, start: float, end: float) -> Iterator[bytes]:
    after: str | None = key_before(start)
    while after is not None:
        rows, after = store.page(PARTITION, ITEMS_AT_ONCE, after, oldest_first=True)
        for key, body in rows:
            if key >= key_before(end + 1):
                return
            yield body


def history_view(history: ClusterHistory, start: float, end: float) -> JSON:
    """The reply's member. Times are epoch seconds; shares are 0..1."""
    bucket_s = EVERY_S * max(1, ceil((end - start) / EVERY_S / MOST_SAMPLES))
    buckets = list(_buckets(history.samples, bucket_s))
    last = [bucket[-1] for bucket in buckets]
    return {
        "from": start,
        "to": end,
        "intervalSeconds": bucket_s,
        "at": [each.at for each in last],
        **{name: [_mean(bucket, source) for bucket in buckets] for name, source in _MEANS.items()},
        **{name: [getattr(each, source) for each in last] for name, source in _SUMS.items()},
        "pools": _pools(last),
        "gaps": list(_gaps(history, start, end, max(LONGEST_S, bucket_s))),
        "orders": [order_view(each) for each in history.orders[-MOST_ORDERS:]],
        "ordersLeftOut": max(0, len(history.orders) - MOST_ORDERS),
        "damaged": history.damaged,
    }


def _buckets(samples: Iterable[ClusterSample], bucket_s: float) -> Iterator[list[ClusterSample]]:
    """Unchanged if they need no thinning. A sample of rest is kept: it ends the time before it."""
    bucket: list[ClusterSample] = []
    for each in samples:
        alone = bucket_s <= EVERY_S or each.is_at_rest or bool(bucket and bucket[-1].is_at_rest)
        if bucket and (alone or each.at // bucket_s != bucket[0].at // bucket_s):
            yield bucket
            bucket = []
        bucket.append(each)
    if bucket:
        yield bucket


def _mean(bucket: Sequence[ClusterSample], name: str) -> float:
    values = [getattr(each, name) for each in bucket]
    return values[0] if len(values) == 1 else float(sum(values) / len(values))


def _pools(samples: Sequence[ClusterSample]) -> list[JSON]:
    """Instances by pool at each sample, for the pools that had most of them."""
    counts: dict[str, dict[int, PoolCount]] = {}
    for place, sample in enumerate(samples):
        for each in sample.pools:
            counts.setdefault(each.pool, {})[place] = each
    size = {pool: sum(each.spot + each.on_demand for each in held.values()) for pool, held in counts.items()}
    none = PoolCount("")
    return [
        {
            **_place_of(pool),
            "spot": [counts[pool].get(place, none).spot for place in range(len(samples))],
            "onDemand": [counts[pool].get(place, none).on_demand for place in range(len(samples))],
            "target": [counts[pool].get(place, none).target for place in range(len(samples))],
        }
        for pool in sorted(size, key=lambda each: (-size[each], each))[:MOST_POOLS]
    ]


def _place_of(pool: str) -> JSON:
    cell, kind, zone, *_ = pool.split("/")
    return {"cell": cell, "type": kind, "zone": zone}


def _gaps(history: ClusterHistory, start: float, end: float, longest_s: float) -> Iterator[JSON]:
    """Spans without samples. atRest: the cluster was empty, so all counts are 0."""
    first = start, history.before is not None and history.before.is_at_rest
    times = [(each.at, each.is_at_rest) for each in history.samples]
    for (before, is_at_rest), (after, _) in pairwise([first, *times, (end, False)]):
        if after - before > longest_s:
            yield {"from": before, "to": after, "atRest": is_at_rest}


def order_view(order: PlacedOrder) -> Mapping[str, Any]:
    """USD an hour of one instance, null = not known."""
    return {
        "at": order.at,
        **_place_of(order.pool),
        "purchase": order.purchase,
        "count": order.count,
        "usdPerHour": order.usd_per_hour or None,
        "why": order.why,
    }
