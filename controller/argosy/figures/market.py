"""What does the page of the market show? Prices as they moved, and why a pool is bought from or is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from argosy.catalogue.lookup import load_catalogue
from argosy.figures import axes, svg
from argosy.figures.document import Figure, Page, Table, Tile
from argosy.figures.numbers import counted, duration, money, share

View = Mapping[str, Any]
Prices = Mapping[tuple[str, str], tuple[Sequence[float], Sequence[float]]]  # (type, zone) -> times, USD an hour
SHOWN = 7  # lines in one picture: more cannot be told apart


def market_page(cluster: View, prices: Prices, now: float) -> Page:
    """cluster: DescribeCluster. prices: epoch seconds and USD an hour, each until the next. now: epoch seconds."""
    pools = sorted(map(_pool, cluster["fleets"]), key=lambda pool: (not pool["chosen"], pool["usdPerVcpu"] or 1e9))
    return Page(
        title="Market · Argosy",
        heading="Market",
        facts=[("cells", ", ".join(cluster["cells"]))],
        tiles=list(_tiles(pools)),
        figures=[_history(pools, prices, now), _verdicts(pools)],
    )


def _pool(fleet: View) -> dict[str, Any]:
    kind = load_catalogue(fleet["cell"]).get(fleet["instanceType"])
    price = fleet["spotUsdPerHour"]
    return {
        **fleet,
        "name": f"{fleet['instanceType']} in {fleet['availabilityZone']}",
        "vcpus": kind.vcpus if kind else None,
        "onDemand": kind.on_demand_usd_per_hour if kind else None,
        "usdPerVcpu": price / kind.vcpus if price and kind else None,
        "chosen": bool(fleet["spotTarget"] or fleet["onDemandTarget"]),
    }


def _tiles(pools: Sequence[View]) -> Iterator[Tile]:
    chosen = sum(pool["chosen"] for pool in pools)
    yield Tile("Pools", f"{len(pools):,}", f"{chosen:,} are bought from now")
    priced = [pool for pool in pools if pool["usdPerVcpu"]]
    if priced:
        best = min(priced, key=lambda pool: pool["usdPerVcpu"])
        yield Tile("Cheapest vCPU", f"${best['usdPerVcpu']:.4f}", f"an hour, {best['name']}")
    yield Tile("Without an offer", f"{sum(bool(pool['noOfferBecause']) for pool in pools):,}", "reasons below")
    yield Tile("Cooling off", f"{sum(bool(pool['coolingOffUntil']) for pool in pools):,}", "were short of capacity")


def _history(pools: Sequence[View], prices: Prices, now: float) -> Figure:
    key, title = "prices", "Spot price of a vCPU"
    drawn: list[tuple[Any, svg.Layer]] = []
    first = now
    for pool in pools:
        series = prices.get((pool["instanceType"], pool["availabilityZone"]))
        if series is None or not pool["vcpus"] or len(drawn) >= SHOWN:
            continue
        at, usd = (np.array(each, dtype="f8") for each in series)
        at, usd = np.append(at, now), np.append(usd, usd[-1]) / pool["vcpus"]
        first = min(first, float(at[0]))
        shown = f"${float(usd[-1]):.4f}{', bought' if pool['chosen'] else ''}"
        drawn.append((at, svg.Layer(pool["name"], str(len(drawn)), usd, shown)))
    if not drawn:
        return Figure(key, title, empty="No spot price has been seen.", wide=True)
    top = max(float(each.values.max()) for _, each in drawn)
    frame = svg.Frame(
        axes.seconds(first - now, 0.0),
        axes.dollars(top),
        "before now",
        "US dollars an hour for each vCPU",
        f"Spot prices of {counted(len(drawn), 'pool')} over {duration(now - first)}.",
    )
    moved = [(at - now, each) for at, each in drawn]
    note = f"The {counted(len(drawn), 'pool')} that are bought from, or else are cheapest."
    table = Table(
        ("Pool", ">Lowest", ">Highest", ">Now"),
        [
            (each.name, *(money(float(f)) for f in (each.values.min(), each.values.max(), each.values[-1])))
            for _, each in drawn
        ],
    )
    return Figure(key, title, note=note, picture=svg.lines(frame, moved, steps=True), table=table, wide=True)


def _verdicts(pools: Sequence[View]) -> Figure:
    rows = [
        (
            pool["name"],
            "-" if pool["spotUsdPerHour"] is None else money(pool["spotUsdPerHour"]),
            "-" if pool["onDemand"] is None else money(pool["onDemand"]),
            share(pool["spotUsdPerHour"] or 0.0, pool["onDemand"] or 0.0),
            "-" if pool["usdPerVcpu"] is None else f"${pool['usdPerVcpu']:.4f}",
            pool["interruptionBand"] or "-",
            _verdict(pool),
        )
        for pool in pools
    ]
    if not rows:
        return Figure("verdicts", "Pools", empty="The deployment has no pools yet.", wide=True)
    heads = ("Pool", ">Spot", ">On demand", ">Share", ">A vCPU", "Interrupted a month", "Bought from?")
    return Figure("verdicts", "Pools", table=Table(heads, rows), wide=True)


def _verdict(pool: View) -> str:
    if pool["chosen"]:
        return f"yes: {pool['spotTarget'] + pool['onDemandTarget']:,} ordered"
    if pool["coolingOffUntil"]:
        return f"cools off: {pool['coolingOffAfter']}"
    return f"no: {pool['noOfferBecause']}" if pool["noOfferBecause"] else "could be, nothing needs it now"
