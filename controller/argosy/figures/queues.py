"""What does the page of the queues show? From DescribeSharing's reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.figures import svg
from argosy.figures.document import Cell, Figure, Page, Table, Tile, status_pill
from argosy.figures.numbers import clock, counted, duration, money
from argosy.figures.queue_limits import caps, deployment

View = Mapping[str, Any]
_GIVES = {True: "yes", False: "no", None: "if the run says so"}
_BY = {"drain": "an instance takes nothing new of others until it is empty", "preempt": "tasks are stopped"}
_AFTER_S = 120.0  # where a document with `reclaim` does not say


def queues_page(view: View) -> Page:
    """view: DescribeSharing's reply. A deployment of before tells less: what it does not tell is not shown."""
    found = sorted(view["queues"], key=lambda each: (each["level"] is None, each["level"] or 0.0))
    return Page(
        title="Queues · Argosy",
        heading="Queues",
        facts=list(_facts(view)),
        tiles=list(_tiles(view, found)),
        figures=[
            _use(view, found),
            deployment(view, found),
            caps(found),
            _lately(view, found),
            _room(view, found),
            _owners(found),
        ],
        next_steps=list(_steps(view)),
    )


def _facts(view: View) -> Iterator[tuple[str, str]]:
    if not view["revision"]:
        yield "document", "none was applied: there is one queue"
        return
    yield "document", f"revision {view['revision']}, applied {clock(view['appliedAt'])}"
    if view["earlier"]:
        yield "kept before it", ", ".join(str(each["revision"]) for each in view["earlier"])


def _steps(view: View) -> Iterator[tuple[str, str]]:
    if not view["revision"]:
        yield "Share the cluster between several:", "argosy queues apply FILE"
        return
    yield "Change them:", f"argosy queues apply FILE --revision {view['revision']}"
    if view["earlier"]:
        before = max(each["revision"] for each in view["earlier"])
        yield "Put the document before into force again:", f"argosy queues apply --restore {before}"


def _tiles(view: View, found: Sequence[View]) -> Iterator[Tile]:
    runs, running, waiting = (sum(each[name] for each in found) for name in ("runs", "running", "waiting"))
    busy = sum(bool(each["runs"]) for each in found)
    yield Tile("With open runs", f"{busy:,}", f"of {counted(len(found), 'queue')}; {counted(runs, 'run')}")
    yield Tile("Running", f"{running:,}", "tasks that have a place")
    yield Tile("Waiting", f"{waiting:,}", "tasks")
    used, most = view["usdPerHour"]["used"], view["usdPerHour"]["limit"]
    yield Tile("An hour costs", money(used), "no limit is set" if most is None else f"of at most {money(most)}")
    if any(each.get("preempts") for each in found):
        stopped = sum(each["preempted"] for each in found)
        yield Tile("Stopped for others", f"{stopped:,}", "tasks of open runs")


def _use(view: View, found: Sequence[View]) -> Figure:
    rows: list[tuple[Cell, ...]] = [
        (
            each["name"],
            f"{each['weight']:,}",
            _percent(each["share"]) if _has_share(each) else "-",
            _percent(each["use"]),
            svg.track([(each["use"], "plain")], each["share"] if _has_share(each) else None),
            *(f"{each[name]:,}" for name in ("runs", "running", "waiting")),
            money(each["used"]["usdPerHour"]),
            each["within"] or "-",
        )
        for each in found
    ]
    heads = (
        *("Queue", ">Weight", ">Share", ">Use", "", ">Runs", ">Running", ">Waiting"),
        *(">$ an hour", "Shared by"),
    )
    note = (
        "Whose use is lowest for its weight is first. Bar: the largest part that it uses of the cluster's CPU, memory "
        "or GPUs. Line: its weight's part of the weights of all queues with open runs."
    )
    return Figure("queues", "Who uses the cluster", note=note, table=Table(heads, rows, stacks=True), wide=True)


def _has_share(queue: View) -> bool:
    return bool(queue["weight"] and queue["runs"])


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _lately(view: View, found: Sequence[View]) -> Figure:
    key, title = "lately", "What was used lately"
    half_life_s = view.get("halfLifeSeconds")
    if not half_life_s:
        return Figure(key, title, empty="It does not count: the document sets no halfLife.")
    rows: list[tuple[Cell, ...]] = [
        (
            queue["name"],
            each["owner"] or ("the unproven" if queue["within"] else "-"),
            _percent(each["use"]),
            svg.track([(each["use"], "plain")]),
            f"{each['factor']:.3g}",
        )
        for queue in found
        for each in queue["lately"]
    ]
    if not rows:
        return Figure(key, title, empty="No queue has open runs.")
    note = (
        f"Of the cluster; what was used {duration(half_life_s)} ago counts half. Weights are multiplied by the factor."
    )
    heads = ("Queue", "Owner", ">Used", "", ">Factor")
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)


def _room(view: View, found: Sequence[View]) -> Figure:
    key, title = "room", "Taking room"
    reclaim = (view["document"] or {}).get("reclaim")
    if reclaim is None or not any(each.get("preempts") for each in found):
        return Figure(key, title, empty="No queue may take room from another: nothing that runs is stopped for it.")
    rows = [
        (
            each["name"],
            "yes" if each["preempts"] else "-",
            _GIVES[each["preemptible"]],
            f"{each['preempted']:,}",
            f"{each['kept']:,}",
        )
        for each in found
    ]
    after = duration(reclaim.get("afterSeconds", _AFTER_S))
    note = f"After {after} of waiting at a limit: {_BY[reclaim.get('by', 'drain')]}. Stopped: tasks of open runs."
    heads = ("Queue", "Takes room", "Gives room", ">Stopped", ">Instances kept for it")
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)


def _owners(found: Sequence[View]) -> Figure:
    key, title = "owners", "Owners"
    if not any(each["within"] for each in found):
        return Figure(key, title, empty="No queue is shared by owners.")
    rows: list[tuple[Cell, ...]] = [
        (
            queue["name"],
            each["name"] or "nobody is named",
            status_pill("proven" if each["proven"] else "unproven"),
            f"{each['runs']:,}",
        )
        for queue in found
        for each in queue.get("owners") or ()
    ]
    if not rows:
        return Figure(key, title, empty="No queue that is shared by owners has open runs.")
    note = "In queues that are shared by owners. All who are unproven share one place in a queue."
    heads = ("Queue", "Owner", "Identity", ">Open runs")
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)
