"""The page of the market: the course of prices, and why a pool is bought from or is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.catalogue.lookup import load_catalogue
from argosy.figures import axes, svg
from argosy.figures.document import ROWS_SHOWN, Figure, Page, Table, Tile
from argosy.figures.numbers import counted, duration, money, share

View = Mapping[str, Any]
Floats = NDArray[np.float64]
Prices = Mapping[tuple[str, str], tuple[Sequence[float], Sequence[float]]]  # (type, zone) -> times, USD an hour
NAMED = 4  # pools, as examples
SHOWN = 7  # lines in one picture: more cannot be told apart


def market_page(cluster: View, prices: Prices, now: float, unread: Sequence[str] = ()) -> Page:
    """cluster: DescribeCluster. prices: epoch seconds and USD an hour, each until the next. now: epoch seconds. unread:
    cells
    whose prices EC2 did not return.
    """
    pools = sorted(map(_pool, cluster["fleets"]), key=lambda pool: (not pool["chosen"], pool["usdPerVcpu"] or 1e9))
    return Page(
        title="Market · Argosy",
        heading="Market",
        facts=[
            ("cells", ", ".join(cluster["cells"])),
            *([("prices cannot be read in", ", ".join(unread))] if unread else ()),
        ],
        tiles=list(_tiles(pools)),
        figures=[_history(pools, prices, now), _reasons(pools), _verdicts(pools)],
    )


def _pool(fleet: View) -> dict[str, Any]:
    kind = load_catalogue(fleet["cell"]).get(fleet["instanceType"])
    price = fleet["spotUsdPerHour"]
    return {
        **fleet,
        "name": f"{fleet['instanceType']} in {fleet['availabilityZone']}",
        "vcpus": kind.vcpus if kind else None,
        "onDemand": fleet["onDemandUsdPerHour"],
        "usdPerVcpu": price / kind.vcpus if price and kind else None,
        "chosen": bool(fleet["spotTarget"] or fleet["onDemandTarget"]),
    }


def _tiles(pools: Sequence[View]) -> Iterator[Tile]:
    chosen = sum(pool["chosen"] for pool in pools)
    yield Tile("Pools", f"{len(pools):,}", f"{chosen:,} {'is' if chosen == 1 else 'are'} bought from now")
    priced = [pool for pool in pools if pool["usdPerVcpu"]]
    if priced:
        best = min(priced, key=lambda pool: pool["usdPerVcpu"])
        yield Tile("Cheapest vCPU", _usd(best["usdPerVcpu"]), f"an hour, {best['name']}")
    yield Tile("Without an offer", f"{sum(bool(pool['noOfferBecause']) for pool in pools):,}", "reasons below")
    yield Tile("Cooling off", f"{sum(bool(pool['coolingOffUntil']) for pool in pools):,}", "were short of capacity")


def _history(pools: Sequence[View], prices: Prices, now: float) -> Figure:
    key, title = "prices", "Spot price of a vCPU"
    shown = [pool for pool in pools if pool["vcpus"] and _place(pool) in prices][:SHOWN]
    if not shown:
        return Figure(key, title, empty="No spot prices have been seen.", wide=True)
    moved = [_moves(pool, number, *prices[_place(pool)], now) for number, pool in enumerate(shown)]
    first = min(float(at[0]) for at, _ in moved)
    drawn = [*moved, *_on_demand(shown, first)]
    frame = svg.Frame(
        axes.seconds(first, 0.0),
        axes.dollars(max(float(each.values.max()) for _, each in drawn)),
        "before now",
        "US dollars an hour for each vCPU",
        f"Spot prices of {counted(len(moved), 'pool')} over {duration(-first)}.",
    )
    table = Table(
        ("Pool", ">Lowest", ">Highest", ">Now"),
        [(each.name, *map(_usd, (each.values.min(), each.values.max(), each.values[-1]))) for _, each in moved],
        stacks=True,
    )
    note = "Thick lines: bought from. Thin lines: passed over, cheapest vCPUs first."
    return Figure(key, title, note=note, picture=svg.lines(frame, drawn, steps=True), table=table, wide=True)


def _place(pool: View) -> tuple[str, str]:
    return pool["instanceType"], pool["availabilityZone"]


def _moves(
    pool: View, number: int, times: Sequence[float], usd: Sequence[float], now: float
) -> tuple[Floats, svg.Layer]:
    """A pool's price of a vCPU until now, against seconds before now."""
    at = np.append(np.array(times, dtype="f8"), now) - now
    values = np.append(np.array(usd, dtype="f8"), usd[-1]) / pool["vcpus"]
    said = _usd(values[-1]) + (", bought" if pool["chosen"] else "")
    return at, svg.Layer(pool["name"], f"{number}{' strong' if pool['chosen'] else ''}", values, said)


def _on_demand(pools: Sequence[View], first: float) -> list[tuple[Floats, svg.Layer]]:
    """The comparison for spot prices: the cheapest on-demand vCPU of the same types."""
    prices = {pool["instanceType"]: pool["onDemand"] / pool["vcpus"] for pool in pools if pool["onDemand"]}
    if not prices:
        return []
    kind = min(prices, key=lambda name: prices[name])
    layer = svg.Layer(f"{kind} on demand", "on-demand", np.full(2, prices[kind]), _usd(prices[kind]))
    return [(np.array([first, 0.0]), layer)]


def _usd(price: float) -> str:
    return f"${price:.4f}"


def _verdicts(pools: Sequence[View]) -> Figure:
    rows = [
        (
            pool["name"],
            "-" if pool["spotUsdPerHour"] is None else money(pool["spotUsdPerHour"]),
            "-" if pool["onDemand"] is None else money(pool["onDemand"]),
            share(pool["spotUsdPerHour"] or 0.0, pool["onDemand"] or 0.0),
            "-" if pool["usdPerVcpu"] is None else _usd(pool["usdPerVcpu"]),
            pool["interruptionBand"] or "-",
            _verdict(pool),
        )
        for pool in pools
    ]
    if not rows:
        return Figure("verdicts", "Pools", empty="The deployment has no pools yet.", wide=True)
    heads = ("Pool", ">Spot", ">On demand", ">Share", ">A vCPU", "Interrupted per month", "Verdict")
    return Figure("verdicts", "Pools", table=Table(heads, rows, more=_rest(len(rows)), stacks=True), wide=True)


def _rest(pools: int) -> str:
    left = pools - ROWS_SHOWN
    return f"{counted(left, 'more pool')} with more expensive vCPUs: argosy prices" if left > 0 else ""


def _reasons(pools: Sequence[View]) -> Figure:
    """Why pools are not bought from, the most frequent reason first."""
    key, title = "reasons", "Why pools are passed over"
    groups: dict[str, list[str]] = {}
    for pool in pools:
        if not pool["chosen"]:
            groups.setdefault(_verdict(pool), []).append(pool["name"])
    if not groups:
        return Figure(key, title, empty="None is.", wide=True)
    rows = [
        (f"{len(names):,}", reason, ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else ""))
        for reason, names in sorted(groups.items(), key=lambda row: (-len(row[1]), row[0]))
    ]
    return Figure(key, title, table=Table((">Pools", "Because", "For example"), rows, stacks=True), wide=True)


def _verdict(pool: View) -> str:
    if pool["chosen"]:
        return f"bought from: {pool['spotTarget'] + pool['onDemandTarget']:,} ordered"
    if pool["coolingOffUntil"]:
        return f"cools off: {pool['coolingOffAfter']}"
    return f"no: {pool['noOfferBecause']}" if pool["noOfferBecause"] else "available, not needed now"
