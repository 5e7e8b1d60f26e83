"""The page of the cluster, from DescribeCluster's reply with its instances and attempts in columns.

Its picture has a square for each instance, by type and zone, with the shares in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.figures import svg
from argosy.figures.cluster_history import bought, history_figures
from argosy.figures.document import ROWS_SHOWN, Figure, Page, Table, Tile
from argosy.figures.headroom import said_headroom
from argosy.figures.history import stored
from argosy.figures.instances import Instances, RunningAttempts, instances_of
from argosy.figures.markup import Content, Markup, element
from argosy.figures.numbers import counted, money, saved

NONE = 255  # in a column of shares: the instance has none of it


def cells(instances: Instances, at_work: RunningAttempts) -> dict[str, Any]:
    """The data that the page's script draws: the types with most instances first."""
    counts = np.bincount(instances.type, minlength=len(instances.types))
    order = sorted(range(len(instances.types)), key=lambda row: (-counts[row], instances.types[row]))
    order = [row for row in order if counts[row]]
    rank = np.zeros(len(instances.types), dtype="u2")
    rank[order] = np.arange(len(order))
    return {
        "types": [instances.types[row] for row in order],
        "zones": list(instances.zones),
        "states": [state.lower() for state in instances.states],
        "ids": instances.ids.astype("U19").tolist(),
        "runs": list(at_work.runs),
        "columns": {
            "type": stored(rank[instances.type]),
            "zone": stored(instances.zone),
            "state": stored(instances.state.astype("u1")),
            "cpu": stored(_percent_column(instances.cpu)),
            "memory": stored(_percent_column(instances.memory)),
            "gpu": stored(_percent_column(instances.gpu)),
            "tasks": stored(instances.tasks),
        },
        "work": _work(at_work, len(instances)),
    }


def picture(key: str, said: str) -> Markup:
    """Where the script draws, and what the colours mean."""
    canvas = element(
        "canvas",
        data_of=key,
        data_kind="cells",
        tabindex="0",
        role="application",
        aria_label=f"{said} Arrow keys move between instances.",
    )
    scale = element("span", "0 %", element("i"), "100 % in use", class_="scale")
    none = element("span", element("span", class_="key s-alive"), "has none", class_="scale")
    tools = element("div", class_="tools")
    return element("div", tools, canvas, element("output", aria_live="polite"), scale, " ", none, class_="dense")


def _work(at_work: RunningAttempts, instances: int) -> dict[str, Any]:
    """first: the first attempt of each instance, and at the end the number of attempts."""
    first = np.searchsorted(at_work.instance, np.arange(instances + 1)).astype("u4")
    columns = {"first": stored(first), "run": stored(at_work.run), "index": stored(at_work.index)}
    return {**columns, "gpus": stored(at_work.gpu_mask)} if at_work.gpu_mask.any() else columns


def _percent_column(shares: NDArray[np.float32]) -> NDArray[np.uint8]:
    whole = np.round(100 * np.clip(np.nan_to_num(shares), 0.0, 1.0))
    return np.where(np.isnan(shares), NONE, whole).astype("u1")


View = Mapping[str, Any]
_AXES = (("CPU", "cpu"), ("Memory", "memory"), ("GPU", "gpu"))


def cluster_page(view: View, history: View | None = None, facts: Sequence[tuple[str, Content]] = ()) -> Page:
    """view: DescribeCluster's reply, with its instances and their tasks as columns. history: its `history`, None if the
    deployment keeps none.
    """
    instances, at_work = instances_of(view)
    return Page(
        title=f"Cluster {view['cluster']} · Argosy",
        heading=f"Cluster {view['cluster']}",
        facts=[("cells", ", ".join(view["cells"])), *facts],
        tiles=list(_tiles(view, instances)),
        figures=[
            _map(instances, at_work),
            *history_figures(history),
            _orders(view, instances),
            _without_work(view),
            *_shared_gpus(view, instances, at_work),
            *bought(history),
            _list(instances, at_work),
        ],
    )


def _tiles(view: View, instances: Instances) -> Iterator[Tile]:
    spot = int(instances.is_spot.sum())
    yield Tile("Instances", f"{len(instances):,}", f"{spot:,} spot, {len(instances) - spot:,} on demand")
    hourly = float(instances.usd_per_hour.sum())
    less = saved(hourly, float(instances.on_demand_usd_per_hour.sum()))
    yield Tile("An hour costs", money(hourly), f"{less} than on demand" if less else "")
    yield Tile("Tasks", f"{int(instances.tasks.sum()):,}", "at work now")
    for name, axis in _AXES:
        shares = getattr(instances, axis)
        if known := int((~np.isnan(shares)).sum()):
            yield Tile(f"{name} in use", _percent(float(np.nanmean(shares))), f"mean of {counted(known, 'instance')}")
    less = saved(view["spentUsd"], view["onDemandUsd"])
    yield Tile("Spent", money(view["spentUsd"]), f"{less} than on demand, since deployment" if less else "")


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{100 * share:.0f} %"


def _map(instances: Instances, at_work: RunningAttempts) -> Figure:
    key, title = "map", "Instances by type and zone"
    if not len(instances):
        return Figure(key, title, empty="No instances. Argosy buys them when a run has tasks to start.", wide=True)
    note = "One square per instance: the brighter, the busier. Point at one to see its tasks."
    return Figure(
        key,
        title,
        note=note,
        picture=picture(key, f"{counted(len(instances), 'instance')} by type and zone."),
        table=_totals(instances),
        wide=True,
        data=cells(instances, at_work),
    )


def _without_work(view: View) -> Figure:
    """Drained and impaired instances. An earlier deployment does not name them."""
    key, title = "without-work", "Instances that get no new tasks"
    rows = [
        (
            each["instanceId"],
            f"{each['instanceType']} in {each['availabilityZone']}",
            f"{each['tasks']:,}",
            each["noWorkBecause"],
        )
        for each in view.get("withoutWork", ())
    ]
    if not rows:
        return Figure(key, title, empty="None.")
    table = Table(("Instance", "Pool", ">Tasks", "Because"), rows[:ROWS_SHOWN], stacks=True)
    return Figure(
        key, title, note="Their running tasks continue. argosy instances enable ID ends a drain.", table=table
    )


_MODES = {"IDLE": "idle", "NVIDIA_MPS": "shared", "DEDICATED": "of one task"}


def _shared_gpus(view: View, instances: Instances, at_work: RunningAttempts) -> Iterator[Figure]:
    """Every GPU of the instances on which tasks share one, with its tasks. Nothing where none is shared."""
    row_of = {name.decode(): row for row, name in enumerate(instances.ids)}
    found = [
        (row_of[each["instanceId"]], place, device)
        for each in view.get("sharedGpus", ())
        if each["instanceId"] in row_of
        for place, device in enumerate(each["gpuDevices"])
    ]
    rows = [
        (
            instances.ids[row].decode(),
            f"GPU {place}",
            _MODES.get(device["mode"], device["mode"]),
            *_memory_of(device),
            at_work.on(row, place),
        )
        for row, place, device in found
    ]
    if rows:
        table = Table(
            ("Instance", "GPU", "Mode", "Memory taken", ">GiB", "Tasks"), rows[:ROWS_SHOWN],
            left=max(0, len(rows) - ROWS_SHOWN), stacks=True,
        )  # fmt: skip
        yield Figure("shared-gpus", "Shared GPUs", note="Memory is what tasks have asked for.", table=table, wide=True)


def _memory_of(device: View) -> tuple[Markup, str]:
    """A bar, and `12.0 of 21.5`. Of a GPU that belongs to one task, it is all of it."""
    total_mib = device["totalMib"]
    taken_mib = total_mib - device["freeMib"]
    part = taken_mib / total_mib if total_mib else 0.0
    return svg.track([(part, "plain")]), f"{taken_mib / 1024:.1f} of {total_mib / 1024:.1f}"


def _totals(instances: Instances) -> Table:
    """A row for each type and zone, those with most instances first."""
    zones = len(instances.zones)
    group = instances.type.astype("i8") * zones + instances.zone.astype("i8")
    count, spot, tasks, usd = (
        np.bincount(group, weights, minlength=len(instances.types) * zones)
        for weights in (None, instances.is_spot, instances.tasks, instances.usd_per_hour)
    )
    shares = [_means(group, getattr(instances, axis), len(count)) for _, axis in _AXES]
    names = [(kind, zone) for kind in instances.types for zone in instances.zones]
    rows = [
        (
            *names[row],
            f"{count[row]:,.0f}",
            f"{spot[row]:,.0f}",
            f"{tasks[row]:,.0f}",
            *(_percent(share[row]) for share in shares),
            money(usd[row]),
        )
        for row in sorted(np.flatnonzero(count).tolist(), key=lambda row: (-count[row], names[row]))
    ]
    heads = ("Type", "Zone", ">Instances", ">Spot", ">Tasks", *(f">{name}" for name, _ in _AXES), ">$ an hour")
    return Table(heads, rows, stacks=True)


def _means(group: NDArray[np.int64], shares: NDArray[np.float32], groups: int) -> NDArray[np.float64]:
    """The mean of the known shares, by group; not a number if none is known."""
    known = ~np.isnan(shares)
    counts, sums = np.bincount(group[known], minlength=groups), np.bincount(group[known], shares[known], groups)
    means: NDArray[np.float64] = np.divide(sums, counts, out=np.full(groups, np.nan), where=counts > 0)
    return means


def _list(instances: Instances, at_work: RunningAttempts) -> Figure:
    """The text of the squares under the pointer, for as many as a table shows."""
    key, title = "instances", "Instances"
    if not len(instances):
        return Figure(key, title, empty="None.", wide=True)
    rows = [
        (
            instances.ids[row].decode(),
            f"{instances.types[instances.type[row]]} in {instances.zones[instances.zone[row]]}",
            instances.purchases[instances.purchase[row]],
            instances.states[instances.state[row]].lower(),
            *(_percent(float(getattr(instances, axis)[row])) for _, axis in _AXES),
            f"{instances.tasks[row]:,}",
            at_work.on(row),
        )
        for row in np.argsort(-instances.tasks.astype("i8"), kind="stable")[:ROWS_SHOWN].tolist()
    ]
    heads = ("Instance", "Pool", "As", "Status", *(f">{name}" for name, _ in _AXES), ">Tasks", "At work")
    left = len(instances) - len(rows)
    more = f"{counted(left, 'more instance')} with fewer tasks: argosy instances" if left else ""
    note = f"{counted(at_work.left, 'attempt')} more are running." if at_work.left else ""
    return Figure(key, title, note=note, table=Table(heads, rows, left=left, more=more, stacks=True), wide=True)


def _orders(view: View, instances: Instances) -> Figure:
    """The target and the instances of each pool."""
    pairs = zip(instances.type.tolist(), instances.zone.tolist(), strict=True)
    here = {(instances.types[kind], instances.zones[zone]): n for (kind, zone), n in Counter(pairs).items()}
    rows = [
        (
            f"{pool['instanceType']} in {pool['availabilityZone']}",
            f"{pool['spotTarget']:,}",
            f"{pool['onDemandTarget']:,}",
            f"{here.get((pool['instanceType'], pool['availabilityZone']), 0):,}",
            pool["coolingOffAfter"] or "",
        )
        for pool in view["fleets"]
        if pool["spotTarget"] or pool["onDemandTarget"] or pool["coolingOffUntil"]
    ]
    rows += [
        (
            f"{each['reservation']}: {each['instanceType']} in {each['availabilityZone']}",
            "",
            f"{each['instances']:,} reserved",
            f"{each['instances'] - each['free']:,}",
            each["unusableBecause"] or "",
        )
        for each in view.get("reservations", ())
    ]
    room = f" {said_headroom(view['headroom'])}" if view.get("headroom") else ""
    if not rows:
        return Figure("orders", "Orders", empty=f"Nothing is ordered, and no pool is short of capacity.{room}")
    table = Table(("Pool", ">Spot ordered", ">On demand ordered", ">Here", "Cooling off after"), rows, stacks=True)
    return Figure("orders", "Orders", note=f"Each pool's target and its instances.{room}", table=table)
