"""A run's history of any size, in the form of the api's replies, generated from a seed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from argosy.api.cluster.timeline import ClusterHistory, history_view
from argosy.api.views import iso
from argosy.figures.history import stored
from argosy.model.cluster_history import EVERY_S, ClusterSample, PlacedOrder, PoolCount
from tests.fakes.cli import ended, tasks

JSON = dict[str, Any]
ORIGIN = 1_795_242_393.0  # 2026-11-21 06:26:33 UTC
KINDS = ("c5.xlarge", "c6i.2xlarge", "m5.xlarge", "r5.large", "g5.xlarge")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
REASONS = ("", "Essential container in task exited", "Host EC2 was terminated", "OutOfMemoryError: killed")
SAMPLES = 240
WASTE = ("useful", "boot", "idle", "redone", "failed")


def history(instances: int, attempts: int, seed: int = 0) -> tuple[JSON, JSON, list[JSON]]:
    """(DescribeRun with its cost, DescribeHistory, the pages of ListAttempts) of a run that has ended."""
    rng = np.random.default_rng(seed)
    lives = _lives(rng, instances)
    columns, ends = _attempts(rng, lives, attempts)
    series = _series(columns, lives, ends)
    view = _view(columns, lives, series)
    failures = [
        {
            "reason": REASONS[1],
            "exitCode": 1,
            "count": 7,
            "firstIndex": 3,
            "lastIndex": 412,
            "firstAt": None,
            "lastAt": None,
        },
        {
            "reason": REASONS[3],
            "exitCode": 137,
            "count": 2,
            "firstIndex": 9,
            "lastIndex": 9,
            "firstAt": None,
            "lastAt": None,
        },
    ]
    view["failureGroups"] = failures
    told = {"runId": view["runId"], "asOf": 9, "origin": ORIGIN, "series": series, "failures": failures}
    told |= {"orders": _orders(lives), "ordersLeftOut": 0, "instancesLeftOut": 0, "damaged": 0, "nextToken": None}
    page = {
        "runId": view["runId"],
        "asOf": 9,
        "origin": ORIGIN,
        "rows": len(columns["index"]),
        "columns": {name: stored(each) for name, each in columns.items()},
        "instances": [each["id"] for each in lives],
        "reasons": list(REASONS),
        "leftOut": 0,
        "damaged": 0,
        "nextToken": None,
    }
    return view, {**told, "instances": lives}, [page]


def _lives(rng: np.random.Generator, count: int) -> list[JSON]:
    lives = []
    for place in range(count):
        launched = float(rng.uniform(0, 600) + place * 1200 / count)
        warned = launched + float(rng.uniform(900, 4000)) if rng.random() < 0.08 else 0.0
        ended_at = warned + 120 if warned else launched + float(rng.uniform(3000, 5400))
        lives.append(
            {
                "id": f"i-{rng.integers(16**15):017x}",
                "type": KINDS[int(rng.integers(len(KINDS)))],
                "zone": ZONES[int(rng.integers(len(ZONES)))],
                "purchase": "spot" if rng.random() < 0.95 else "on-demand",
                "cell": "us-east-1",
                "launchedAt": iso(ORIGIN + launched),
                "registeredAt": iso(ORIGIN + launched + float(rng.uniform(40, 110))),
                "warnedAt": iso(ORIGIN + warned) if warned else None,
                "endedAt": iso(ORIGIN + ended_at),
                "cause": "interrupted" if warned else "released",
                "usdPerHour": 0.07,
            }
        )
    return lives


def _orders(lives: list[JSON]) -> list[JSON]:
    """One for every ten instances, which it has brought."""
    return [
        {
            "at": ORIGIN + _after(each["launchedAt"]) - 30,
            "cell": each["cell"],
            "type": each["type"],
            "zone": each["zone"],
            "purchase": each["purchase"],
            "count": 10,
            "usdPerHour": 0.07,
            "why": "for tasks without a place",
            "delivered": 10,
        }
        for each in lives[::10]
    ]


def _after(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() - ORIGIN


def _attempts(rng: np.random.Generator, lives: list[JSON], count: int) -> tuple[dict[str, Any], Any]:
    """Columns as ListAttempts sends them, and the end of each in seconds."""
    each = np.sort(rng.integers(len(lives), size=count))
    first = np.array([_after(life["registeredAt"]) for life in lives])[each]
    last = np.array([_after(life["endedAt"]) for life in lives])[each]
    place = np.arange(count) - np.searchsorted(each, each)
    mine = np.bincount(each, minlength=len(lives))[each]
    lanes = 2
    start = first + (place // lanes) * (last - first) / np.maximum(1, -(-mine // lanes))
    span = (last - first) / np.maximum(1, -(-mine // lanes))
    stop = start + span * rng.uniform(0.55, 0.97, count)
    outcome = np.where(rng.random(count) < 0.02, 2, 1).astype("u1")
    is_last = place >= mine - lanes
    lost = is_last & np.array([life["warnedAt"] is not None for life in lives])[each]
    outcome[lost], stop[lost] = 4, last[lost]
    tenths = lambda values: np.maximum(1, np.round(values * 10)).astype("u4")  # noqa: E731
    columns = {
        "index": rng.permutation(count).astype("u4"),
        "attempt": np.ones(count, "u4"),
        "instance": each.astype("u4"),
        "launched": tenths(start - 2),
        "started": tenths(start),
        "stopped": tenths(stop),
        "outcome": outcome,
        "exitCode": np.where(outcome == 2, 1, 0).astype("i4"),
        "reason": np.where(outcome == 2, 1, np.where(outcome == 4, 2, 0)).astype("u2"),
        "gpuMask": np.zeros(count, "u4"),
        "amends": np.zeros(count, "u1"),
    }
    return columns, stop


def _series(columns: JSON, lives: list[JSON], ends: Any) -> JSON:
    at = np.linspace(0, float(ends.max()), SAMPLES)
    starts, good = columns["started"] / 10, columns["outcome"] == 1
    below = lambda values: np.searchsorted(np.sort(values), at, side="right").astype("f8")  # noqa: E731
    running, succeeded = below(starts) - below(ends), below(ends[good])
    failed = below(ends[columns["outcome"] == 2])
    total = len(good)
    alive = below(np.array([_after(life["launchedAt"]) for life in lives]))
    alive -= below(np.array([_after(life["endedAt"]) for life in lives]))
    spent = np.cumsum(alive) * (at[1] - at[0]) * 0.07 / 3600
    shares = {"useful": 0.78, "boot": 0.05, "idle": 0.1, "redone": 0.05, "failed": 0.02}
    return {
        "intervalSeconds": float(at[1] - at[0]),
        "at": (ORIGIN + at).tolist(),
        "queued": np.maximum(0, total - succeeded - failed - running).tolist(),
        "starting": (running * 0.05).tolist(),
        "running": running.tolist(),
        "succeeded": succeeded.tolist(),
        "failed": failed.tolist(),
        "cancelled": [0.0] * SAMPLES,
        "instances": alive.tolist(),
        "usdPerHour": (alive * 0.07).tolist(),
        "cost": {kind: (spent * shares[kind]).tolist() for kind in WASTE},
        "onDemandUsd": (spent * 2.6).tolist(),
    }


def _view(columns: JSON, lives: list[JSON], series: JSON) -> JSON:
    spent = {kind: series["cost"][kind][-1] for kind in WASTE}
    total = sum(spent.values())
    good, bad = int((columns["outcome"] == 1).sum()), int((columns["outcome"] == 2).sum())
    return ended(
        "PARTIAL",
        tasks=tasks(succeeded=good, failed=bad),
        stoppedAt="2026-11-21T08:12:45.000Z",
        attempts=len(columns["index"]),
        interruptions=sum(life["warnedAt"] is not None for life in lives),
        instances=len(lives),
        costUsd=total,
        usefulUsd=spent["useful"],
        onDemandCostUsd=series["onDemandUsd"][-1],
        cost={
            "byWaste": {f"{kind}Usd": usd for kind, usd in spent.items()},
            "byLine": {"instancesUsd": total * 0.9, "disksUsd": total * 0.06, "addressesUsd": total * 0.04},
            "byPool": [],
            "instanceHours": 12.5,
            "estimates": {"logsUsd": 0.01, "imageTransferUsd": 0.0, "assumed": {}},
        },
    )


def cluster_history(samples: int, seed: int = 0, orders: int = 40) -> JSON:
    """`history` of DescribeCluster: five minutes between two samples, with an hour of rest after the first third and
    an hour without samples after the second."""
    rng = np.random.default_rng(seed)
    pools = [f"us-east-1/{kind}/{zone}" for kind in KINDS for zone in ZONES]
    found: list[ClusterSample] = []
    at, spent = ORIGIN, 0.0
    for place in range(samples):
        at += EVERY_S + (3600.0 if place in (samples // 3 + 1, 2 * samples // 3) else 0.0)
        counts = [PoolCount(pool, int(rng.integers(0, 40)), int(rng.integers(0, 3))) for pool in pools]
        counts = [] if place == samples // 3 else counts
        spot, on_demand = sum(each.spot for each in counts), sum(each.on_demand for each in counts)
        spent += (spot * 0.07 + on_demand * 0.2) / 12
        found.append(
            ClusterSample(
                at,
                runs=2 if counts else 0,
                queued=1000 * (samples - place) if counts else 0,
                running=4 * spot,
                booting=spot // 20,
                active=spot + on_demand - spot // 20,
                spot=spot,
                on_demand=on_demand,
                usd_per_hour=spot * 0.07 + on_demand * 0.2,
                spent_usd=spent,
                spent_on_demand_usd=spent * 2.6,
                interruptions=place // 3,
                cpu_used=0.9 * bool(counts),
                memory_used=0.6 * bool(counts),
                pools=counts,
            )
        )
    bought = [
        PlacedOrder(each.at, pools[int(rng.integers(len(pools)))], "spot", int(rng.integers(1, 50)), 0.07, (1,), "why")
        for each in found[:: max(1, samples // max(1, orders))][:orders]
    ]
    return history_view(ClusterHistory(None, found, bought, 0), ORIGIN, at)
