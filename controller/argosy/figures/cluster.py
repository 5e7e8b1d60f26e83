"""What does the page of the cluster show? From DescribeCluster's reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.figures import cells
from argosy.figures.cells import Machine
from argosy.figures.document import Figure, Page, Table, Tile
from argosy.figures.numbers import counted, money, saved

View = Mapping[str, Any]
_ENDED = ("GONE", "TERMINATED")


def cluster_page(view: View, named: Mapping[str, str] | None = None) -> Page:
    """named: instance -> what its tasks are."""
    machines = machines_of(view)
    return Page(
        title=f"Cluster {view['cluster']} · Argosy",
        heading=f"Cluster {view['cluster']}",
        facts=[("cells", ", ".join(view["cells"]))],
        tiles=list(_tiles(view, machines)),
        figures=[_map(machines, named), _orders(view, machines)],
    )


def machines_of(view: View) -> list[Machine]:
    """The instances that live."""
    return [
        Machine(
            id=each["instanceId"],
            type=each["instanceType"],
            zone=each["availabilityZone"],
            purchase=each["purchase"],
            status=each["status"],
            usd_per_hour=each["priceUsdPerHour"],
            on_demand_usd_per_hour=each["onDemandUsdPerHour"],
            cpu=_share(each["cpu"]),
            memory=_share(each["memory"]),
            gpu=_share(each["gpus"]),
            tasks=each["tasks"],
        )
        for each in view["instances"]
        if each["status"] not in _ENDED and not each.get("stoppedAt")
    ]


def _share(pair: View) -> float | None:
    return pair["used"] / pair["total"] if pair["total"] else None


def _tiles(view: View, machines: Sequence[Machine]) -> Iterator[Tile]:
    spot = sum(each.purchase == "spot" for each in machines)
    yield Tile("Instances", f"{len(machines):,}", f"{spot:,} spot, {len(machines) - spot:,} on demand")
    hourly = sum(each.usd_per_hour for each in machines)
    less = saved(hourly, sum(each.on_demand_usd_per_hour for each in machines))
    yield Tile("An hour costs", money(hourly), f"{less} than on demand" if less else "")
    yield Tile("Tasks", f"{sum(each.tasks for each in machines):,}", "at work now")
    for name, field in (("CPU", "cpu"), ("Memory", "memory"), ("GPU", "gpu")):
        shares = [share for each in machines if (share := getattr(each, field)) is not None]
        if shares:
            yield Tile(f"{name} in use", _mean(shares), f"mean of {counted(len(shares), 'instance')}")
    less = saved(view["spentUsd"], view["onDemandUsd"])
    yield Tile("Spent", money(view["spentUsd"]), f"{less} than on demand, since the deployment" if less else "")


def _mean(shares: Sequence[float]) -> str:
    return f"{100 * sum(shares) / len(shares):.0f} %" if shares else "-"


def _map(machines: Sequence[Machine], named: Mapping[str, str] | None) -> Figure:
    key, title = "map", "Instances by type and zone"
    if not machines:
        return Figure(key, title, empty="No instance lives. They are bought when a run has tasks to start.", wide=True)
    note = "A square for each instance: the brighter, the more of it is in use."
    return Figure(
        key,
        title,
        note=note,
        picture=cells.picture(key, f"{counted(len(machines), 'instance')} by type and zone."),
        table=_totals(machines),
        wide=True,
        data=cells.cells(machines, named),
    )


def _totals(machines: Sequence[Machine]) -> Table:
    groups: dict[tuple[str, str], list[Machine]] = {}
    for each in machines:
        groups.setdefault((each.type, each.zone), []).append(each)
    rows = [
        (
            kind,
            zone,
            f"{len(group):,}",
            f"{sum(each.purchase == 'spot' for each in group):,}",
            f"{sum(each.tasks for each in group):,}",
            *(
                _mean([share for each in group if (share := getattr(each, name)) is not None])
                for name in ("cpu", "memory", "gpu")
            ),
            money(sum(each.usd_per_hour for each in group)),
        )
        for (kind, zone), group in sorted(groups.items(), key=lambda row: (-len(row[1]), row[0]))
    ]
    heads = ("Type", "Zone", ">Instances", ">Spot", ">Tasks", ">CPU", ">Memory", ">GPU", ">$ an hour")
    return Table(heads, rows)


def _orders(view: View, machines: Sequence[Machine]) -> Figure:
    """What each pool is told to hold, and what it holds."""
    here: dict[tuple[str, str], int] = {}
    for each in machines:
        here[each.type, each.zone] = here.get((each.type, each.zone), 0) + 1
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
    if not rows:
        return Figure("orders", "Orders", empty="Nothing is ordered, and no pool is short of capacity.", wide=True)
    table = Table(("Pool", ">Spot ordered", ">On demand ordered", ">Here", "Cooling off after"), rows)
    return Figure(
        "orders", "Orders", note="What the pools are told to hold, and what they hold.", table=table, wide=True
    )
