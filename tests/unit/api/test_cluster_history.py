"""The cluster's history is read from the commits' items: thinned where it is long, with gaps named."""

from __future__ import annotations

import json

import pytest

from argosy.api.cluster.timeline import (
    ITEMS_BEFORE,
    MOST_ORDERS,
    MOST_POOLS,
    MOST_SAMPLES,
    ClusterHistory,
    history_between,
    history_view,
)
from argosy.lifecycle import cluster_history
from argosy.model.cluster_history import (
    EVERY_S,
    KEPT_S,
    PARTITION,
    ClusterHistoryPiece,
    ClusterSample,
    PlacedOrder,
    PoolCount,
    cluster_history_key,
)
from argosy.model.stored import documents
from tests.builders import NOW
from tests.fakes import histories
from tests.fakes.api import Desk, error_of, running

HOUR = 3600.0
POOL = "us-east-1/c5.xlarge/us-east-1a"
LARGEST_REPLY = 6_000_000 / 4  # of Lambda's 6 MB


def keep(desk: Desk, *samples: ClusterSample, orders: tuple[PlacedOrder, ...] = ()) -> None:
    for version, sample in enumerate(samples):
        key = PARTITION, cluster_history_key(sample.at, version)
        desk.store.items[key] = documents.encode(ClusterHistoryPiece(sample, orders).to_json())


def busy(at: float, **values: float) -> ClusterSample:
    return ClusterSample(at, **{"runs": 1, "spot": 2, **values})  # type: ignore[arg-type]


def test_what_a_commit_has_noted_is_shown_of_the_time_that_is_asked_for(desk: Desk) -> None:
    running(desk)
    cluster_history.note(desk.state, NOW)
    desk.commit()
    desk.time = NOW + 60
    view = desk.body("DescribeCluster", include=["history"], historyHours=1)["history"]
    assert (view["at"], view["runs"], view["spot"]) == ([NOW, NOW + 60], [1, 1], [0, 0])  # the last one is the present
    assert (view["from"], view["to"], view["damaged"]) == (NOW + 60 - HOUR, NOW + 60, 0)
    assert "history" not in desk.body("DescribeCluster")
    earlier = desk.body("DescribeCluster", form="columns", include=["history"], until=NOW - 1)["history"]
    assert (earlier["at"], earlier["to"]) == ([], NOW - 1)
    assert desk.body("DescribeCluster", include=["history"], until=NOW + 999)["history"]["to"] == NOW + 60


@pytest.mark.parametrize(
    "wrong", [{"historyHours": 0}, {"historyHours": 90 * 24 + 1}, {"include": ["tasks"]}, {"until": -1}]
)
def test_a_time_that_is_not_kept_is_refused(desk: Desk, wrong: dict[str, object]) -> None:
    assert error_of(desk.ask("DescribeCluster", **wrong))["fieldList"]


def test_a_time_without_samples_differs_from_a_time_without_instances(desk: Desk) -> None:
    desk.time = NOW + 10 * HOUR
    keep(desk, ClusterSample(NOW - 9 * HOUR), busy(NOW), ClusterSample(NOW + 60), busy(NOW + 4 * HOUR), busy(desk.time))
    gaps = desk.body("DescribeCluster", include=["history"], historyHours=11)["history"]["gaps"]
    assert gaps == [
        {"from": NOW - HOUR, "to": NOW, "atRest": True},
        {"from": NOW + 60, "to": NOW + 4 * HOUR, "atRest": True},
        {"from": NOW + 4 * HOUR, "to": desk.time, "atRest": False},
    ]


def test_before_the_first_sample_that_is_kept_nothing_is_known(desk: Desk) -> None:
    keep(desk, busy(NOW))
    assert desk.body("DescribeCluster", include=["history"], historyHours=1)["history"]["gaps"] == [
        {"from": NOW - HOUR, "to": NOW, "atRest": False}
    ]


@pytest.mark.parametrize("damage", [b"", b"nothing", documents.encode({"sample": [1]}), documents.encode([])])
def test_a_piece_that_cannot_be_read_is_counted_and_hides_no_other(desk: Desk, damage: bytes) -> None:
    keep(desk, busy(NOW - 700), busy(NOW - 400), busy(NOW - 100))
    desk.store.items[PARTITION, cluster_history_key(NOW - 400, 1)] = damage
    desk.store.items[PARTITION, cluster_history_key(NOW - 800, 1)] = damage
    view = desk.body("DescribeCluster", include=["history"], historyHours=0.2)["history"]
    assert (view["at"], view["damaged"]) == ([NOW - 700, NOW - 100], 1)


def test_ninety_days_are_thinned_to_means_of_counts_and_the_last_sums() -> None:
    samples = [busy(NOW + place * EVERY_S, spot=place % 2, spent_usd=place) for place in range(int(KEPT_S / EVERY_S))]
    view = history_view(ClusterHistory(None, samples, [], 0), NOW, NOW + KEPT_S)
    assert len(view["at"]) <= MOST_SAMPLES
    assert view["intervalSeconds"] == 26 * EVERY_S
    assert set(view["spot"][1:-1]) == {0.5}
    assert view["spentUsd"][-1] == len(samples) - 1
    assert {len(view[name]) for name in ("runs", "queued", "cpuUsed", "interruptions")} == {len(view["at"])}
    assert view["gaps"] == []


def test_the_end_of_what_was_there_is_not_averaged_away() -> None:
    samples = [busy(NOW), busy(NOW + 300), ClusterSample(NOW + 400), busy(NOW + 900), busy(NOW + 1200)]
    view = history_view(ClusterHistory(None, samples, [], 0), NOW, NOW + 3 * MOST_SAMPLES * EVERY_S)
    assert 0 in view["runs"]


def test_ninety_days_of_the_largest_cluster_take_a_quarter_of_a_reply() -> None:
    pools = [PoolCount(f"us-east-1/metal{row}.48xlarge/us-east-1a", 1234, 567, 1801) for row in range(100)]
    values = dict.fromkeys(("runs", "queued", "running", "spent_usd", "usd_per_hour"), 1234567.123456)
    samples = [busy(NOW + place * 7800.0, pools=pools, **values) for place in range(MOST_SAMPLES)]  # type: ignore[arg-type]
    order = PlacedOrder(NOW, pools[0].pool, "spot", 50, 1.23456, tuple(range(100)), "w" * 80)
    view = history_view(ClusterHistory(None, samples, [order] * (MOST_ORDERS + 7), 0), NOW, NOW + KEPT_S)
    assert len(json.dumps(view)) < LARGEST_REPLY
    assert (len(view["pools"]), len(view["orders"]), view["ordersLeftOut"]) == (MOST_POOLS, MOST_ORDERS, 7)


def test_the_fake_that_pages_are_tested_with_is_a_reply_of_the_api(desk: Desk) -> None:
    keep(desk, busy(NOW, pools=[PoolCount(POOL, 1)]), orders=(PlacedOrder(NOW, POOL, "spot", 1, 0.0),))  # type: ignore[arg-type]
    real, fake = desk.body("DescribeCluster", include=["history"])["history"], histories.cluster_history(30)
    assert set(real) == set(fake)
    for name in ("pools", "orders"):
        assert set(real[name][0]) == set(fake[name][0])
    assert real["orders"][0]["usdPerHour"] is None


def test_the_state_before_a_span_is_found_behind_many_commits_that_only_ordered(desk: Desk) -> None:
    rest, start = ClusterSample(NOW), NOW + 4 * HOUR
    keep(desk, rest)
    for version in range(1, 2 * ITEMS_BEFORE + 2):
        at = NOW + version
        order = PlacedOrder(at, POOL, "spot", 1, 0.1)
        key = PARTITION, cluster_history_key(at, version)
        desk.store.items[key] = documents.encode(ClusterHistoryPiece(None, [order]).to_json())
    assert history_between(desk.store, start, start + HOUR).before == rest._replace(pools=[])
    desk.store.items.clear()
    assert history_between(desk.store, start, start + HOUR).before is None


def test_the_history_ends_with_what_the_same_reply_says_of_the_present(desk: Desk) -> None:
    running(desk)
    for each in desk.state.instances.values():
        each.owned = True
        desk.state.changed_instances.add(each.id)
    desk.commit()
    desk.time = NOW + 7
    body = desk.body("DescribeCluster", include=["history"], historyHours=1)
    view, alive = body["history"], [each for each in body["instances"] if each["status"] != "GONE"]
    assert alive
    shown = view["spot"][-1] + view["onDemand"][-1], view["usdPerHour"][-1], view["spentUsd"][-1]
    assert shown == (len(alive), body["usdPerHour"], body["spentUsd"])
    used, total = (sum(each["cpu"][name] for each in alive) for name in ("used", "total"))
    assert view["cpuUsed"][-1] == pytest.approx(used / total if total else 0.0)
    assert (view["at"][-1], view["runs"][-1]) == (NOW + 7, 1)
