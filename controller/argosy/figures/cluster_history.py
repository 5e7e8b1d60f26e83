"""The cluster's history over a day or months, from the `history` of DescribeCluster's reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from argosy.figures import axes, svg
from argosy.figures.document import ROWS_SHOWN, Figure, Table
from argosy.figures.history import Floats
from argosy.figures.numbers import counted, duration, money

View = Mapping[str, Any]
_BARS = 48  # about this many, of a round width
_WIDTHS_S = (300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0)
_INSTANCES = (("spot", "spot", "running"), ("onDemand", "on demand", "lost"))
_TASKS = (("running", "running", "running"), ("starting", "starting", "starting"), ("queued", "queued", "queued"))
_SHARES = (("cpuUsed", "CPU", "0"), ("memoryUsed", "memory", "1"), ("gpuUsed", "GPU", "2"))


@dataclass(frozen=True, slots=True)
class HistoryColumns:
    """at: seconds before the end, shape (moments,). values: by name, the same shape; 0 while the cluster is known to
    have been at rest, NaN while no sample was taken. low: where the requested time begins."""

    at: Floats
    values: Mapping[str, Floats]
    low: float
    damaged: int


def history_figures(told: View | None) -> Iterator[Figure]:
    """told: None if the deployment keeps no history."""
    if told is None or not told["at"]:
        empty = "Nothing was recorded in this period: samples are taken while anything runs."
        yield Figure("course", "Over time", empty=empty, wide=True)
        return
    history = columns_of(told)
    yield _stacked("over-time", "Instances over time", "instances", history, _INSTANCES)
    yield _interruptions(told)
    yield _stacked("tasks-over-time", "Tasks over time", "tasks", history, _TASKS)
    yield _shares(history)
    yield _spending(history)


def bought(told: View | None) -> Iterator[Figure]:
    """The orders that were placed, the newest first."""
    if told is not None and told["at"]:
        yield _bought(told)


def columns_of(told: View) -> HistoryColumns:
    """The samples and the times between them: rest is zeros throughout, and a time without samples is a gap."""
    names = [name for name, *_ in (*_INSTANCES, *_TASKS, *_SHARES)] + ["usdPerHour"]
    # In order of time; at one time, the end of a gap, then the sample, then the beginning of the next gap.
    rows = [(at, 1, [told[name][place] for name in names]) for place, at in enumerate(told["at"])]
    for gap in told["gaps"]:
        between = [0.0 if gap["atRest"] else np.nan] * len(names)
        rows += [(gap["from"], 2, between), (gap["to"], 0, between)]
    rows.sort(key=lambda row: row[:2])
    end = told["to"]
    return HistoryColumns(
        at=np.array([at for at, *_ in rows]) - end,
        values={name: np.array([each[place] for *_, each in rows], dtype="f8") for place, name in enumerate(names)},
        low=told["from"] - end,
        damaged=told["damaged"],
    )


def _stacked(key: str, title: str, unit: str, history: HistoryColumns, kinds: Sequence[tuple[str, str, str]]) -> Figure:
    rows = [(name, colour, history.values[each]) for each, name, colour in kinds]
    total = np.sum([values for *_, values in rows], axis=0)
    frame = _frame(history.low, axes.counts(float(np.nanmax(total, initial=0.0))), unit, f"{title}, by kind.")
    layers = [svg.Layer(name, colour, values, _whole(values[-1])) for name, colour, values in rows]
    table = _table(history, [(name.capitalize(), values, _whole) for name, _, values in rows])
    picture = svg.areas(frame, history.at, layers, steps=True)
    return Figure(key, title, note=_damage(history), picture=picture, table=table)


def _shares(history: HistoryColumns) -> Figure:
    key, title = "in-use", "In use over time"
    drawn = [
        (history.at, svg.Layer(name, colour, history.values[each], _percent(history.values[each][-1])))
        for each, name, colour in _SHARES
        if np.nanmax(history.values[each], initial=0.0) > 0
    ]
    if not drawn:
        return Figure(key, title, empty="No instance was in use in this period.")
    axis = axes.Axis(0.0, 1.0, [(share / 100, f"{share} %") for share in (0, 25, 50, 75, 100)])
    frame = _frame(history.low, axis, "of all instances", "Shares of CPU, memory and GPUs in use.")
    table = _table(history, [(layer.name, layer.values, _percent) for _, layer in drawn])
    return Figure(key, title, picture=svg.lines(frame, drawn, steps=True), table=table)


def _spending(history: HistoryColumns) -> Figure:
    usd = history.values["usdPerHour"]
    top = float(np.nanmax(usd, initial=0.0))
    frame = _frame(history.low, axes.dollars(top), "US dollars an hour", f"US dollars per hour: {money(top)} at most.")
    layer = svg.Layer("all instances", "useful", usd, f"{money(float(np.nan_to_num(usd[-1])))} an hour")
    picture = svg.areas(frame, history.at, [layer], steps=True)
    return Figure("spending", "Cost per hour", picture=picture, table=_table(history, [("$ an hour", usd, money)]))


def _interruptions(told: View) -> Figure:
    """The number in each span of time: the samples hold sums since the deployment."""
    key, title = "interruptions", "Interruptions over time"
    at, sums = np.array(told["at"], dtype="f8"), np.array(told["interruptions"], dtype="f8")
    low, high = told["from"], told["to"]
    width = next((each for each in _WIDTHS_S if (high - low) / each <= _BARS), _WIDTHS_S[-1])
    edges = np.arange(np.floor(low / width), np.ceil(high / width) + 1) * width
    new = np.maximum(np.diff(sums), 0.0)
    counts = np.histogram(at[1:], edges, weights=new)[0]
    if not counts.any():
        return Figure(key, title, empty="No instance was interrupted in this period.")
    each = axes.passed(width)
    said = f"{counted(round(counts.sum()), 'interruption')}; at most {counts.max():,.0f} in {each}."
    y = axes.counts(float(counts.max()))
    frame = _frame(edges[0] - high, y, f"interruptions in {each}", said, edges[-1] - high)
    layer = svg.Layer("interruptions", "failed", counts, f"{counts.sum():,.0f}")
    rows = [(_clock(start), f"{count:,.0f}") for start, count in zip(edges[:-1], counts, strict=True) if count]
    table = Table((f"{each} from", ">Interruptions"), rows[::-1])
    return Figure(key, title, picture=svg.bars(frame, edges - high, [layer]), table=table)


def _bought(told: View) -> Figure:
    key, title = "bought", "Purchases"
    newest = told["orders"][::-1]
    if not newest:
        return Figure(key, title, empty="Nothing was bought in this period.", wide=True)
    rows = [
        (
            _clock(each["at"]),
            f"{each['count']:,}",
            f"{each['type']} in {each['zone']}",
            each["purchase"],
            "-" if each["usdPerHour"] is None else money(each["usdPerHour"]),
            each["why"],
        )
        for each in newest[:ROWS_SHOWN]
    ]
    heads = ("At", ">Instances", "Pool", "As", ">$ an hour each", "Why")
    left = len(newest) - len(rows) + told["ordersLeftOut"]
    return Figure(key, title, table=Table(heads, rows, left=left, stacks=True), wide=True)


def _frame(low: float, y: axes.Axis, unit: str, said: str, high: float = 0.0) -> svg.Frame:
    return svg.Frame(axes.seconds(low, high), y, "before now", unit, said)


def _table(history: HistoryColumns, columns: Sequence[tuple[str, Floats, Any]]) -> Table:
    """The newest first, in steps that show all of the time."""
    known = np.flatnonzero(~np.isnan(columns[0][1]))[::-1]
    rows = known[:: max(1, -(-len(known) // ROWS_SHOWN))].tolist()
    shown = [(f"{duration(-history.at[row])} ago", *(text(values[row]) for _, values, text in columns)) for row in rows]
    return Table((">When", *(f">{name}" for name, *_ in columns)), shown)


def _damage(history: HistoryColumns) -> str:
    return f"{counted(history.damaged, 'record')} of this period cannot be read." if history.damaged else ""


def _whole(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:,.0f}"


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{100 * share:.0f} %"


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
