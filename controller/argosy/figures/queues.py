"""The page of the queues, from DescribeSharing's reply: the limits, and each queue's usage of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from argosy.figures import svg
from argosy.figures.document import Cell, Figure, Page, Table, Tile, status_pill
from argosy.figures.markup import joined
from argosy.figures.numbers import clock, counted, duration, money

View = Mapping[str, Any]
_UNITS = {"vcpus": "vCPUs", "gpus": "GPUs", "instances": "instances"}
_NAMED = 6  # queues that have their own colour: those that use most
_OTHERS = "other queues", "7"
_UNRESERVED = "unreserved", "idle"
_ALL_BUT = 0.999  # of a cap: what is left is less than any task needs


def caps(found: Sequence[View]) -> Figure:
    """The parts of its caps and guarantee that each queue uses."""
    key, title = "caps", "Caps and guarantees"
    rows = [row for queue in found for row in _of_queue(queue)]
    if not rows:
        return Figure(key, title, empty="No queue has a cap or a guarantee.")
    heads = ("Queue", "What", ">Used", ">Of", "", "")
    return Figure(key, title, table=Table(heads, rows, stacks=True), wide=True)


def _of_queue(queue: View) -> Iterator[tuple[Cell, ...]]:
    name, used = queue["name"], queue["used"]
    for unit, most in (queue["cap"] or {}).items():
        is_full = used[unit] >= _ALL_BUT * most
        bar = _used_of(unit, used[unit], most, "lost" if is_full else "plain")
        yield name, "cap", *bar, "at its cap" if is_full else ""
    for unit, amount in (queue["guarantee"] or {}).items():
        yield name, "guarantee", *_used_of(unit, used[unit], amount, "useful"), "" if queue["lend"] else "not lent"


def _used_of(unit: str, used: float, most: float, kind: str) -> tuple[Cell, Cell, Cell]:
    """Both amounts, and a bar of the colour `kind`."""
    bar = svg.track([(used / most if most else 0.0, kind)])
    return _amount(unit, used), _amount(unit, most, named=True), bar


def _amount(unit: str, amount: float, *, named: bool = False) -> str:
    if unit == "usdPerHour":
        return money(amount) + (" an hour" if named else "")
    number = f"{amount:,.2f}".rstrip("0").rstrip(".")
    return f"{number} {_UNITS[unit]}" if named else number


def deployment(view: View, found: Sequence[View]) -> Figure:
    """Dollars an hour and vCPU quotas: each queue's usage."""
    kinds = _kinds(view, found)
    usd = view["usdPerHour"]
    spent = {each["name"]: each["used"]["usdPerHour"] for each in found}
    most = "no limit" if usd["limit"] is None else _amount("usdPerHour", usd["limit"], named=True)
    whole = usd["used"] if usd["limit"] is None else usd["limit"]
    rows: list[tuple[Cell, ...]] = [
        ("Dollars", money(usd["used"]), most, *_shares("usdPerHour", usd["used"], whole, spent, kinds))
    ]
    for each in view.get("quotas", ()):
        name = f"vCPU quota of {each['purchase']} {each['family']} in {each['region']}"
        taken, most = each["vcpus"] - each["left"], _amount("vcpus", each["vcpus"], named=True)
        rows.append((name, _amount("vcpus", taken), most, *_shares("vcpus", taken, each["vcpus"], each["used"], kinds)))
    note = "Used: by all instances together. Each queue is charged what its tasks reserve; the rest is unreserved."
    heads = ("Limit", ">Used", ">Of", "", "By whom")
    return Figure("deployment", "Shared limits", note=note, table=Table(heads, rows, stacks=True), wide=True)


def _kinds(view: View, found: Sequence[View]) -> dict[str, str]:
    """The colours of the queues that use most, the same in every bar."""
    whole = view["usdPerHour"]["used"] or 1.0
    most = {each["name"]: each["used"]["usdPerHour"] / whole for each in found}
    for each in view.get("quotas", ()):
        for name, vcpus in each["used"].items():
            most[name] = max(most.get(name, 0.0), vcpus / max(each["vcpus"], 1))
    named = sorted((name for name in most if most[name]), key=lambda name: (-most[name], name))[:_NAMED]
    return {name: str(place) for place, name in enumerate(named)}


def _shares(
    unit: str, taken: float, whole: float, by_queue: Mapping[str, float], kinds: Mapping[str, str]
) -> tuple[Cell, Cell]:
    """A bar with a part for each queue, and a legend for it. whole: the amount at the bar's full length."""
    named = [(name, kind, by_queue.get(name, 0.0)) for name, kind in kinds.items()]
    others = sum(amount for name, amount in by_queue.items() if name not in kinds)
    idle = taken - sum(by_queue.values())
    parts = [*named, (*_OTHERS, others), (*_UNRESERVED, idle)]
    parts = [each for each in parts if each[2] > 1e-6]
    layers = [svg.Layer(name, kind, np.empty(0), _amount(unit, amount)) for name, kind, amount in parts]
    bar = svg.track([(amount / whole if whole else 0.0, kind) for _, kind, amount in parts])
    return bar, svg.legend(layers) if layers else joined("-")


_GIVES = {True: "yes", False: "no", None: "if the run allows it"}
_BY = {"drain": "an instance takes no new tasks of other queues until it is empty", "preempt": "tasks are stopped"}
_AFTER_S = 120.0  # the default if a document with `reclaim` has none


def queues_page(view: View) -> Page:
    """view: DescribeSharing's reply. An older deployment reports less: missing members are not shown."""
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
        yield "document", "none in force: there is one queue"
        return
    yield "document", f"revision {view['revision']}, applied {clock(view['appliedAt'])}"
    if view["earlier"]:
        yield "kept earlier revisions", ", ".join(str(each["revision"]) for each in view["earlier"])


def _steps(view: View) -> Iterator[tuple[str, str]]:
    if not view["revision"]:
        yield "Share the cluster between several queues:", "argosy queues apply FILE"
        return
    yield "Change them:", f"argosy queues apply FILE --revision {view['revision']}"
    if view["earlier"]:
        before = max(each["revision"] for each in view["earlier"])
        yield "Restore the previous document:", f"argosy queues restore {before}"


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
        yield Tile("Stopped for other queues", f"{stopped:,}", "tasks of open runs")


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
        "The queue with the lowest use for its weight is first. Bar: the largest share that it uses of CPU, memory "
        "or GPUs. Line: its weight as a share of the weights of all queues with open runs."
    )
    return Figure("queues", "Use of the cluster", note=note, table=Table(heads, rows, stacks=True), wide=True)


def _has_share(queue: View) -> bool:
    return bool(queue["weight"] and queue["runs"])


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _lately(view: View, found: Sequence[View]) -> Figure:
    key, title = "lately", "Recent use"
    half_life_s = view.get("halfLifeSeconds")
    if not half_life_s:
        return Figure(key, title, empty="Recent use does not count: the document sets no halfLife.")
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
    note = f"Share of the cluster; use {duration(half_life_s)} ago counts half. Weights are multiplied by the factor."
    heads = ("Queue", "Owner", ">Used", "", ">Factor")
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)


def _room(view: View, found: Sequence[View]) -> Figure:
    key, title = "room", "Taking room"
    reclaim = (view["document"] or {}).get("reclaim")
    if reclaim is None or not any(each.get("preempts") for each in found):
        return Figure(key, title, empty="No queue may take room from another: no running task is stopped for it.")
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
    heads = ("Queue", "Takes room", "Gives room", ">Stopped", ">Instances reserved")
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)


def _owners(found: Sequence[View]) -> Figure:
    key, title = "owners", "Owners"
    if not any(each["within"] for each in found):
        return Figure(key, title, empty="No queue is shared between owners.")
    rows: list[tuple[Cell, ...]] = [
        (
            queue["name"],
            each["name"] or "no owner",
            status_pill("proven" if each["proven"] else "unproven"),
            f"{each['runs']:,}",
        )
        for queue in found
        for each in queue.get("owners") or ()
    ]
    if not rows:
        return Figure(key, title, empty="No queue that is shared between owners has open runs.")
    note = "In queues that are shared between owners. All unproven owners of a queue count as one."
    heads = ("Queue", "Owner", "Identity", ">Open runs")
    return Figure(key, title, note=note, table=Table(heads, rows, stacks=True), wide=True)
