"""The cluster's history in a terminal: a table and sentences from `history` of DescribeCluster's body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType

from argosy.cli.figures import counted, duration, money
from argosy.cli.tables import PlainTable

View = Mapping[str, Any]
MOST_ROWS = 24
MOST_ORDERS = 10


def history_parts(history: View) -> Iterator[RenderableType]:
    """Samples as a table of MOST_ROWS rows at most, then gaps, the last orders, and what cannot be read."""
    if history["at"]:
        yield _table(history, list(_shown(len(history["at"]))))
    else:
        yield "There are no samples of that time: the cluster was idle, or they have expired (90 days)."
    yield from _gap_lines(history)
    yield from _order_lines(history)
    if history["damaged"]:
        yield f"{counted(history['damaged'], 'piece')} of the history cannot be read."


def _shown(count: int) -> Iterator[int]:
    """Evenly spaced rows, always with the last one."""
    step = -(-count // MOST_ROWS)
    return reversed(range(count - 1, -1, -step))


def _table(history: View, rows: Sequence[int]) -> PlainTable:
    """Sums are of the time since the row above."""
    table = PlainTable(
        "TIME (UTC)", ">RUNS", ">QUEUED", ">RUNNING", ">SPOT", ">ON DEMAND", ">$/H", ">CPU", ">MEMORY", ">GPU",
        ">SPENT", ">INTERRUPTED", least=("GPU", "MEMORY", "ON DEMAND", "INTERRUPTED", "CPU", "SPENT", "SPOT"),
    )  # fmt: skip
    before = rows[0]
    for row in rows:
        spent = history["spentUsd"][row] - history["spentUsd"][before]
        lost = history["interruptions"][row] - history["interruptions"][before]
        table.add_row(
            _clock(history["at"][row]),
            *(f"{history[name][row]:,.0f}" for name in ("runs", "queued", "running", "spot", "onDemand")),
            f"{history['usdPerHour'][row]:.2f}",
            *(f"{100 * history[name][row]:.0f} %" for name in ("cpuUsed", "memoryUsed", "gpuUsed")),
            "-" if row == before else money(spent),
            "-" if row == before else f"{lost:,}",
        )
        before = row
    return table


def _gap_lines(history: View) -> Iterator[str]:
    for gap in history["gaps"]:
        span = f"{_clock(gap['from'])} to {_clock(gap['to'])} ({duration(gap['to'] - gap['from'])})"
        why = "idle, with no runs and no instances" if gap["atRest"] else "unknown: no controller was running"
        yield f"{span}: {why}"


def _order_lines(history: View) -> Iterator[str]:
    orders = history["orders"][-MOST_ORDERS:]
    left_out = len(history["orders"]) - len(orders) + history["ordersLeftOut"]
    if left_out:
        yield f"{counted(left_out, 'earlier order')}; the last {MOST_ORDERS}:"
    for each in orders:
        price = "" if each["usdPerHour"] is None else f" at {each['usdPerHour']:.4f} $/h"
        what = f"{each['count']} {each['purchase']} {each['type']} in {each['zone']}{price}"
        yield f"{_clock(each['at'])} ordered {what}, {each['why']}"


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%m-%d %H:%M}"
