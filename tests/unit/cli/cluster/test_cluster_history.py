"""`cluster --since`: the cluster's course over time, in a terminal."""

from __future__ import annotations

import pytest

from argosy.cli.cluster.history import MOST_ORDERS, MOST_ROWS
from tests.fakes.cli import World
from tests.fakes.histories import cluster_history


def shown(*args: str, **changes: object) -> str:
    world = World().answers("DescribeCluster", {"history": {**cluster_history(300), **changes}})
    result = world.argosy("cluster", *args)
    assert result.exit_code == 0, result.output
    return str(result.output)


def test_a_day_is_a_table_with_gaps_orders_and_what_cannot_be_read() -> None:
    text = shown("--since", "1d", damaged=2, ordersLeftOut=7)
    assert sum(line[:3] in ("11-", "12-") and " %" in line for line in text.splitlines()) <= MOST_ROWS + MOST_ORDERS
    assert "idle, with no runs and no instances" in text
    assert "unknown: no controller was running" in text
    assert f"37 earlier orders; the last {MOST_ORDERS}:" in text
    assert "ordered" in text
    assert "2 pieces of the history cannot be read." in text


def test_what_has_no_sample_says_why() -> None:
    empty = {**cluster_history(1), "at": [], "gaps": [], "orders": []}
    assert "There are no samples of that time" in shown("--since", "6h", **empty)


def test_an_order_at_a_price_that_is_not_known_names_none() -> None:
    (order, *_) = cluster_history(30)["orders"]
    assert "$/h, why" not in shown("--since", "6h", orders=[{**order, "usdPerHour": None}])


def test_json_is_the_reply_and_no_more_than_what_is_kept_is_asked_for() -> None:
    world = World().answers("DescribeCluster", {"history": cluster_history(3)})
    assert world.document("cluster", "--since", "1000d") == cluster_history(3)
    assert world.functions.requests[-1]["historyHours"] == 2160.0


@pytest.mark.parametrize(("text", "sentence"), [("soon", "is not a time"), ("2099-01-01T00:00", "is in the future")])
def test_a_time_that_is_none_or_is_still_to_come_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    result = World().argosy("cluster", "--since", text)
    assert result.exit_code == 2
    assert sentence in result.stderr
