"""The page of a run, from the replies of DescribeRun, DescribeHistory, ListAttempts and ExplainRun."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from argosy.client.failures import AlikeAttempts, kinds_of
from argosy.client.progress import CANCELLING, TERMINAL
from argosy.client.run_names import owner_of
from argosy.figures import axes, lanes, spending, svg
from argosy.figures.document import ROWS_SHOWN, Figure, Page, Table, Tile
from argosy.figures.history import TENTHS, Attempts, Fate, Floats
from argosy.figures.markup import Markup, element
from argosy.figures.numbers import clock, counted, duration, instant, money, saved, share, start_up

View = Mapping[str, Any]

STATES = ("succeeded", "running", "starting", "queued", "failed", "cancelled")
SERVICE = "service"  # a fact: the name of the environment that the run is a revision of
QUEUE = "queue"  # a fact: the name of the queue that it was submitted to
_BARS = 32
_ORDERS_SHOWN = 50
_FATES = (
    (Fate.SUCCEEDED, "succeeded", "succeeded"),
    (Fate.FAILED, "failed", "failed"),
    (Fate.LOST, "lost", "lost and repeated"),
    (Fate.CANCELLED, "cancelled", "cancelled"),
)
_LOG_TICKS = (
    (0.1, "0.1 s"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (36_000.0, "10 h"),
    (360_000.0, "100 h"),
)


def run_page(
    view: View,
    history: View | None,
    attempts: Attempts | None,
    explained: View | None = None,
    now: float = 0.0,
    kinds: Sequence[AlikeAttempts] | None = None,
    more: Sequence[Figure] = (),
) -> Page:
    """view: DescribeRun with its cost. history, attempts: None if the deployment keeps none. now: epoch seconds. kinds:
    of its
    failures; None = as the view has them. more: what its tasks used and saved.
    """
    failed = failures(view, kinds_of(view) if kinds is None else kinds)
    return Page(
        title=f"{view['runId']} · Argosy",
        heading=view["runId"],
        status=view["status"],
        facts=list(_facts(view)),
        tiles=list(_tiles(view, now)),
        warnings=[*_warnings(view), *_gaps(history, attempts)],
        figures=[*_figures(view, history, attempts, explained, failed), *more],
        next_steps=_steps(view),
    )


def _facts(view: View) -> Iterator[tuple[str, str]]:
    if view.get("environment"):
        yield SERVICE, view["environment"]
    if view.get("statusReason"):
        yield "reason", view["statusReason"]
    if owner := owner_of(view):
        yield "owner", owner
    if view.get("queue"):
        yield QUEUE, view["queue"]
    yield "submitted", clock(view["submittedAt"])
    if view.get("stoppedAt"):
        yield "ended", clock(view["stoppedAt"])
    if view.get("deadline"):
        yield "deadline", clock(view["deadline"]) + (", missed" if view.get("late") else "")
    if view.get("purchase"):
        yield "bought", view["purchase"]["now"]
    yield "output", view["output"]


def _warnings(view: View) -> Iterator[str]:
    if view.get("waiting"):
        yield f"Waiting: {view['waiting']}"
    if (view.get("purchase") or {}).get("reason"):
        yield f"Bought {view['purchase']['now']}: {view['purchase']['reason']}"
    if (view.get("budget") or {}).get("usedUp"):
        yield f"The budget of {money(view['budget']['budgetUsd'])} is used up."


def _gaps(history: View | None, attempts: Attempts | None) -> Iterator[str]:
    """The parts of the history that this page lacks."""
    damaged = (history or {}).get("damaged", 0) + (attempts.damaged if attempts is not None else 0)
    if damaged:
        yield f"{counted(damaged, 'piece')} of the run's history cannot be read, and may be missing here."
    if left_out := (history or {}).get("instancesLeftOut", 0):
        yield f"{counted(left_out, 'instance')} that ended long ago are known by name only."


def _tiles(view: View, now: float) -> Iterator[Tile]:
    tasks = view["tasks"]
    rest = f"; {tasks['failed']:,} failed" if tasks["failed"] else f"; {tasks['running'] + tasks['starting']:,} at work"
    note = f"of {counted(tasks['total'], 'task')}{'' if tasks['succeeded'] == tasks['total'] else rest}"
    yield Tile("Succeeded", f"{tasks['succeeded']:,}", note, "bad" if tasks["failed"] else "")
    took = _took_s(view, now)
    yield Tile("Took" if view["status"] in TERMINAL else "So far", duration(took), _first_start(view))
    less = saved(view["costUsd"], view["onDemandCostUsd"])
    on_demand = f"{money(view['onDemandCostUsd'])} on demand"
    yield Tile("Cost", money(view["costUsd"]), f"{less} than {on_demand}" if less else on_demand)
    if view.get("usefulUsd") is not None and view["costUsd"]:
        useful = share(view["usefulUsd"], view["costUsd"])
        yield Tile("Useful", useful, "of the cost went to attempts that succeeded")
    yield Tile("Instances", f"{view['instances']:,}", "have run its tasks")
    if (told := view.get("startUp")) and told["starts"]:
        yield Tile("Start-up", money(told["usd"]), start_up(told))
    lost = f"{counted(view['interruptions'], 'interruption')}"
    yield Tile("Attempts", f"{view['attempts']:,}", lost)


def _took_s(view: View, now: float) -> float:
    begun, ended = instant(view["submittedAt"]), instant(view.get("stoppedAt"))
    if begun is None:
        return 0.0
    return max(0.0, (ended.timestamp() if ended else now) - begun.timestamp())


def _first_start(view: View) -> str:
    begun, started = instant(view["submittedAt"]), instant(view.get("startedAt"))
    if begun is None or started is None:
        return "no task has started yet"
    return f"first task after {duration((started - begun).total_seconds())}"


def _steps(view: View) -> list[tuple[str, str]]:
    run = view["runId"]
    if view["status"] == CANCELLING:
        return [("Follow it:", f"argosy watch {run}")]
    if view["status"] not in TERMINAL:
        return [("Follow it:", f"argosy watch {run}"), ("Stop it:", f"argosy cancel {run}")]
    steps = [("Results:", f"argosy results {run} --out out")]
    return [*steps, ("Retry what failed:", f"argosy retry {run} --failed")] if view["tasks"]["failed"] else steps


def _figures(
    view: View, history: View | None, attempts: Attempts | None, explained: View | None, failed: Figure
) -> Iterator[Figure]:
    series = _from_origin(history or {})
    yield _states(series)
    yield spending.over_time(view, series)
    yield how_long(attempts)
    if len(view.get("programs") or ()) > 1:
        yield programs(view)
    yield failed
    yield _lanes(view, history, attempts)
    yield bought(history)
    if explained is not None and view["status"] not in TERMINAL:
        yield explanation(explained)


def _from_origin(history: View) -> dict[str, Any]:
    """The series, with its times in seconds after the origin."""
    series = history.get("series") or {}
    return {**series, "at": [max(0.0, at - history["origin"]) for at in series["at"]]} if series else {}


def _states(series: View) -> Figure:
    key, title = "states", "Tasks over time"
    at = np.array(series.get("at", ()), dtype="f8")
    if len(at) < 2:
        return Figure(key, title, empty="Nothing has been recorded yet: the first samples arrive within a minute.")
    rows = {name: np.array(series[name], dtype="f8") for name in STATES}
    total = sum(rows.values(), np.zeros(len(at)))
    frame = svg.Frame(
        axes.seconds(0.0, at[-1]),
        axes.counts(float(total.max())),
        "since it was submitted",
        "tasks",
        f"Tasks by state over {duration(at[-1] - at[0])}: {rows['succeeded'][-1]:,.0f} succeeded at the end.",
    )
    drawn = [svg.Layer(name, name, rows[name], f"{rows[name][-1]:,.0f}") for name in STATES if rows[name].any()]
    table = Table(
        (">After", *(f">{name.capitalize()}" for name in STATES)),
        [(duration(moment), *(f"{rows[name][row]:,.0f}" for name in STATES)) for row, moment in enumerate(at.tolist())],
    )
    return Figure(key, title, picture=svg.areas(frame, at, drawn), table=table)


def how_long(attempts: Attempts | None) -> Figure:
    """A bar for each span of seconds, by how attempts ended."""
    key, title = "seconds", "Duration of attempts"
    ended = np.zeros(0, dtype=np.bool_) if attempts is None else attempts.has_run
    if attempts is None or not ended.any():
        return Figure(key, title, empty="No attempt has ended yet.")
    ran, fates = np.rint(attempts.ran[ended] * TENTHS) / TENTHS, attempts.fate[ended]
    edges, placed, axis = _bins(ran)
    rows = []
    for fate, kind, name in _FATES:
        mine = ran[fates == fate]
        if len(mine):
            counts = np.histogram(np.maximum(mine, edges[0]), edges)[0].astype("f8")
            rows.append(svg.Layer(name, kind, counts, f"{len(mine):,}, median {duration(float(np.median(mine)))}"))
    most = float(sum((row.values for row in rows), np.zeros(len(edges) - 1)).max())
    frame = svg.Frame(
        axis,
        axes.counts(most),
        "duration",
        "attempts",
        f"Histogram of seconds; the median is {duration(float(np.median(ran)))}.",
    )
    table = Table(
        ("From", "To", *(f">{row.name.capitalize()}" for row in rows)),
        [
            (duration(low), duration(high), *(f"{row.values[place]:,.0f}" for row in rows))
            for place, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        ],
    )
    return Figure(key, title, picture=svg.bars(frame, placed, rows), table=table)


def _bins(ran: Floats) -> tuple[Floats, Floats, axes.Axis]:
    """Edges in seconds, their places on the axis, and the axis: by powers of ten if the longest took far more than the
    median.

    Seconds are known to a tenth, and so are edges: alternating bars of two and of three tenths would look like a comb.
    """
    tenths, longest = np.rint(ran * TENTHS), float(ran.max())
    end = int(tenths.max()) + 1
    if longest <= max(8 * float(np.median(ran)), 1.0):
        step = max(1, -(-end // _BARS))
        edges = np.arange(0, end + step, step) / TENTHS
        return edges, edges, axes.seconds(0.0, float(edges[-1]))
    low = max(int(tenths.min()), 1)  # attempts of less than a tenth are in the first bar
    edges = np.unique(np.rint(np.logspace(np.log10(low), np.log10(end), _BARS + 1))) / TENTHS
    placed = np.log10(edges)
    ticks = [(float(np.log10(at)), label) for at, label in _LOG_TICKS if placed[0] <= np.log10(at) <= placed[-1]]
    return edges, placed, axes.Axis(float(placed[0]), float(placed[-1]), ticks)


def failures(view: View, kinds: Sequence[AlikeAttempts]) -> Figure:
    """Grouped, the most frequent first, with the last output of one attempt of each and the link to its log."""
    key, title = "failures", "Failures"
    if not kinds:
        return Figure(key, title, empty="No attempt has failed.")
    shown = [
        (
            f"{kind.count:,}",
            kind.cause,
            f"{kind.first}" if kind.first == kind.last else f"{kind.first} to {kind.last}",
            kind.said,
            element("code", f"argosy logs {view['runId']} --task {kind.first}"),
        )
        for kind in kinds
    ]
    table = Table((">Attempts", "Why", "Tasks", "Its last line", "Logs"), shown, stacks=True)
    total = sum(kind.count for kind in kinds)
    return Figure(key, title, note=f"{counted(total, 'attempt')} in {counted(len(kinds), 'group')}.", table=table)


def programs(view: View) -> Figure:
    """The versions of its program, and what each of them made and took."""
    rows = [
        (
            str(each["version"]),
            clock(each["addedAt"]),
            element("code", each["sha256"][:12]),
            f"{each['attempts']:,}",
            f"{each['results']:,}",
            duration(each["seconds"]),
            money(usd),
        )
        for each, usd in zip(view["programs"], spending.by_program(view), strict=True)
    ]
    heads = (">Version", "Uploaded", "Digest", ">Attempts", ">Results", ">Task time", ">Cost, by time")
    return Figure("programs", "Versions of the program", table=Table(heads, rows, stacks=True))


def bought(history: View | None) -> Figure:
    """The orders that were placed while tasks of the run had no place, the last ones first."""
    key, title = "bought", "Bought"
    orders = (history or {}).get("orders") or []
    if not orders:
        return Figure(key, title, empty="No purchases for it are known.")
    rows = [
        (
            f"{duration(max(0.0, each['at'] - history['origin']))}",  # type: ignore[index]  # it has orders
            f"{each['type']} in {each['zone']}",
            each["purchase"],
            f"{each['count']:,}",
            f"{each['delivered']:,}",
            "" if each["usdPerHour"] is None else money(each["usdPerHour"]),
            each["why"],
        )
        for each in orders[: -_ORDERS_SHOWN - 1 : -1]
    ]
    heads = (">After", "Instances", "Purchase", ">Ordered", ">Ran its tasks", ">$ an hour each", "Why")
    count = len(orders) + (history or {}).get("ordersLeftOut", 0)
    note = f"{counted(count, 'order')} for all runs whose tasks had no place at the time."
    return Figure(key, title, note=note, table=Table(heads, rows, left=count - len(rows), stacks=True), wide=True)


def _lanes(view: View, history: View | None, attempts: Attempts | None) -> Figure:
    key, title = "attempts", "Attempts by instance"
    lives = lives_of(history or {}, attempts)
    if not lives or attempts is None:
        return Figure(key, title, empty="No instance has run its tasks yet.", wide=True)
    seconds = max(each.ended for each in lives)
    return lanes.figure(key, title, lanes.Timeline(lives, attempts, _instances(lives, attempts), seconds))


def lives_of(history: View, attempts: Attempts | None) -> list[lanes.Lifetime]:
    """The run's instances in the order of launch; a live one ends at the last known time."""
    samples = _from_origin(history).get("at", [])[-1:]
    stopped = 0.0 if attempts is None else float(attempts.stopped.max(initial=0.0))
    lives = lanes.lifetimes(history, history.get("origin", 0.0))
    end = max([*(each.ended for each in lives), stopped, *samples])
    lives = [each if each.ended else each._replace(ended=end) for each in lives]
    return sorted(lives, key=lambda life: (life.launched, life.id))


def _instances(lives: Sequence[lanes.Lifetime], attempts: Attempts) -> Table:
    rows_of_counts, fates = len(attempts.instances) or 1, len(Fate)
    cells = attempts.instance.astype("i8") * fates + attempts.fate
    counts = np.bincount(cells, minlength=rows_of_counts * fates).reshape(rows_of_counts, fates)
    row_of = {name: row for row, name in enumerate(attempts.instances)}
    none = np.zeros(fates, dtype="i8")
    rows = []
    for each in lives[:ROWS_SHOWN]:
        mine = counts[row_of[each.id]] if each.id in row_of else none
        lived = duration(max(0.0, each.ended - each.launched))
        lost = "interrupted" if each.interrupted else ""
        shown = (f"{mine[fate]:,}" for fate in (Fate.SUCCEEDED, Fate.FAILED, Fate.LOST))
        rows.append((each.id, each.kind, duration(each.launched), lived, *shown, lost))
    heads = ("Instance", "Type", ">Launched after", ">Lived", ">Succeeded", ">Failed", ">Lost", "End")
    return Table(heads, rows, left=len(lives) - len(rows), stacks=True)


def explanation(reply: View) -> Figure:
    """Why tasks wait. reply: ExplainRun's."""
    said: list[Markup] = [element("p", reply["sentence"])]
    said += [element("p", each) for each in (reply.get("standing") or {}).get("sentences", ())]
    rows = [
        (title, f"{reason['refused']:,}", reason["detail"])
        for name, title in (("cluster", "running"), ("coming", "on order"), ("market", "could be bought"))
        for reason in (reply.get(name) or {}).get("reasons", ())
    ]
    table = Table(("Instances", ">Refuse", "Because"), rows, stacks=True) if rows else None
    return Figure("explain", "Why tasks wait", picture=Markup("".join(said)), table=table)
