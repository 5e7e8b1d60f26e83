"""The command `prices`: spot prices now and in the last week, and the deployment's rating of each pool."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.problems import CliError
from argosy.cli.session import Session
from argosy.client.aws_clients import DEFAULT_REGION
from argosy.client.errors import ArgosyError, is_from_aws

if TYPE_CHECKING:
    from argosy.client.price_history import Pool, PriceSeries
    from argosy.model.instance_types import InstanceType

Row = dict[str, Any]
_RATE_SHOWN = 0.02  # interruptions an hour; for lower rates the band says enough


def register(app: typer.Typer) -> None:
    command(app, "prices", panel=panels.CLUSTER)(prices)


def prices(
    session: Session,
    pattern: Annotated[
        str, typer.Option("--type", metavar="GLOB", help="Instance types, e.g. 'g5.*' or '*.xlarge'.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many rows.")] = 40,
) -> None:
    """Spot prices now and in the last week, cheapest first."""
    from argosy.client.price_history import history

    region = session.client("ec2").meta.region_name or DEFAULT_REGION
    fleets, unknown = _fleets(session, region)
    kinds, now = _kinds(pattern, region, {kind for kind, _ in fleets}), session.tools.now()
    series, unusable = history(session.client("ec2"), list(kinds), now)
    pools = [PriceRow(kinds[pool[0]], pool[1], each, fleets.get(pool, {})) for pool, each in series.items()]
    rows = [pool.as_json(region, now) for pool in pools]
    rows.sort(key=lambda row: (row["gpus"] > 0, row["spotUsdPerUnitHour"], row["availabilityZone"]))
    notes = list(_notes(rows, region, unusable, [fleets[pool] for pool in fleets if pool[0] in kinds], unknown))
    if session.wants_json:
        session.print_json({"region": region, "prices": rows, "notes": notes})
    else:
        _print(session, rows, region, limit, notes)


def _kinds(pattern: str, region: str, deployed: Collection[str]) -> dict[str, InstanceType]:
    """The types that match, else those of the deployment, else the default types of deployments.

    Raises CliError when none matches.
    """
    from argosy.catalogue.lookup import load_catalogue
    from argosy.settings.defaults import DEFAULT_CPU_TYPES, DEFAULT_GPU_TYPES

    catalogue = load_catalogue(region)
    usual = [name for name in catalogue if name in deployed] or [*DEFAULT_CPU_TYPES, *DEFAULT_GPU_TYPES]
    names = [name for name in catalogue if fnmatchcase(name, pattern)] if pattern else usual
    if not names:
        step = "known families: " + ", ".join(sorted({kind.family for kind in catalogue.values()}))
        raise CliError(f"No instance type of the catalogue matches {pattern!r}.", next_step=step)
    return {name: catalogue[name] for name in names}


def _fleets(session: Session, region: str) -> tuple[dict[Pool, Mapping[str, Any]], str]:
    """The deployment's data about each of its pools in this Region, or why there is none."""
    try:
        fleets = session.api.cluster()["fleets"]
    except ArgosyError as error:
        return {}, error.message
    except Exception as fault:
        if not is_from_aws(fault):
            raise
        return {}, str(fault)
    return {(each["instanceType"], each["availabilityZone"]): each for each in fleets if each["cell"] == region}, ""


@dataclass(frozen=True)
class PriceRow:
    """One pool's price and what is known about the pool. fleet: as DescribeCluster has it; empty when unknown."""

    kind: InstanceType
    zone: str
    series: PriceSeries
    fleet: Mapping[str, Any]

    def as_json(self, region: str, now: float) -> Row:
        from argosy.catalogue.lookup import BANDS, interruption_band
        from argosy.client.price_history import as_json, sparkline

        kind, series, fleet = self.kind, self.series, self.fleet
        band = interruption_band(region, kind.name)
        on_demand = fleet.get("onDemandUsdPerHour") or kind.on_demand_usd_per_hour
        return {
            "instanceType": kind.name,
            "availabilityZone": self.zone,
            "vcpus": kind.vcpus,
            "memoryMib": kind.memory_mib,
            "gpus": kind.gpus,
            "gpuModel": kind.gpu_model,
            "spotUsdPerHour": series.now,
            "onDemandUsdPerHour": on_demand,
            "onDemandFrom": fleet.get("onDemandFrom", "catalogue"),
            "saving": 1 - series.now / on_demand,
            "spotUsdPerVcpuHour": series.now / kind.vcpus,
            "spotUsdPerGpuHour": series.now / kind.gpus if kind.gpus else None,
            "spotUsdPerUnitHour": series.now / (kind.gpus or kind.vcpus),
            "unchangedForSeconds": max(0.0, now - series.since),
            "interruptionBand": None if band is None else BANDS[band],
            "interruptionsPerHour": fleet.get("interruptionsPerHour"),
            "interruptionsFrom": fleet.get("interruptionsFrom"),
            "coolingOffUntil": fleet.get("coolingOffUntil"),
            "coolingOffAfter": fleet.get("coolingOffAfter"),
            "unsettledUntil": fleet.get("unsettledUntil"),
            "noOfferBecause": fleet.get("noOfferBecause"),
            "controllerPricedAt": fleet.get("pricedAt"),
            "sparkline": sparkline(series, now),
            "history": as_json(series),
        }


def _notes(rows: list[Row], region: str, unusable: int, fleets: list[Mapping[str, Any]], unknown: str) -> Iterator[str]:
    from argosy.catalogue.lookup import as_of
    from argosy.figures.numbers import counted

    dates, listed = as_of(region), sum(row["onDemandFrom"] == "priceList" for row in rows)
    shipped = f"of {dates['prices']}"
    rest = f", others {shipped}" if listed < len(rows) else ""
    source = f"of {counted(listed, 'pool')} from AWS's price list, read daily{rest}" if listed else shipped
    yield (
        f"on-demand prices {source}; monthly interruptions from AWS's Spot Instance Advisor of "
        f"{dates['interruption_bands']}"
    )
    if unusable:
        yield f"{unusable} entries of EC2's price history are not prices and were left out"
    if unknown:
        yield f"cool-offs are not shown, because no deployment answers: {unknown}"
    stale = [fleet for fleet in fleets if fleet.get("priceIsStale")]
    if stale:
        oldest = min(fleet["pricedAt"] for fleet in stale)
        yield (
            f"the prices of {len(stale)} of the controller's {len(fleets)} pools are too old "
            f"(since {oldest}): it assumes their on-demand prices"
        )


def _print(session: Session, rows: list[Row], region: str, limit: int, notes: list[str]) -> None:
    console = session.console
    if not rows:
        console.print(f"AWS quotes no spot price for these types in {region}, so they are not offered there.")
        return
    console.print(_headline(rows, region))
    console.print(_table(rows[:limit]))
    if len(rows) > limit:
        console.print(f"--limit {len(rows)} shows {len(rows) - limit:,} more rows", style="dim")
    for note in notes:
        console.print(note, style="dim")


def _headline(rows: list[Row], region: str) -> str:
    best = []
    for unit, is_gpu in (("vCPU", False), ("GPU", True)):
        row = next((each for each in rows if bool(each["gpus"]) == is_gpu), None)
        if row is not None:
            where = f"{row['instanceType']} in {row['availabilityZone']}"
            best.append(f"cheapest {unit}: {where} at ${row['spotUsdPerUnitHour']:.4f} per {unit} and hour")
    return f"{region}: {'; '.join(best)}"


def _table(rows: list[Row]) -> Any:
    from argosy.cli import figures
    from argosy.cli.tables import PlainTable

    names = ("TYPE", "ZONE", ">VCPU", ">GIB", "GPU", ">SPOT $/H", ">ON-DEMAND", ">SAVES", ">$/VCPU-H", ">$/GPU-H")
    least = ("SINCE", "7 DAYS", "$/GPU-H", "GIB", "VCPU", "INTERRUPTED", "ON-DEMAND", "GPU", "SAVES")
    table = PlainTable(*names, ">SINCE", "7 DAYS", "INTERRUPTED", "~COOL-OFF", least=least)
    for row in rows:
        table.add_row(
            row["instanceType"],
            row["availabilityZone"],
            str(row["vcpus"]),
            f"{row['memoryMib'] / 1024:g}",
            f"{row['gpus']} {row['gpuModel']}" if row["gpus"] else "-",
            f"{row['spotUsdPerHour']:.4f}",
            f"{row['onDemandUsdPerHour']:.4f}",
            f"{100 * row['saving']:.0f} %",  # negative when spot costs more, which does happen
            f"{row['spotUsdPerVcpuHour']:.4f}",
            f"{row['spotUsdPerGpuHour']:.4f}" if row["gpus"] else "-",
            figures.duration(row["unchangedForSeconds"]),
            row["sparkline"],
            _interrupted(row),
            _cool_off(row),
        )
    return table


def _interrupted(row: Row) -> str:
    """The band, and the rate of the deployment or the account where it is high enough to mention."""
    band, rate = row["interruptionBand"] or "-", row["interruptionsPerHour"] or 0.0
    place = "account" if row["interruptionsFrom"] == "account" else "here"
    return f"{band}, {place} {rate:.2f}/h" if rate >= _RATE_SHOWN else band


def _cool_off(row: Row) -> str:
    if row["coolingOffUntil"]:
        return f"until {_clock(row['coolingOffUntil'])} ({row['coolingOffAfter']})"
    if row["unsettledUntil"]:
        return f"until {_clock(row['unsettledUntil'])} (interruption)"
    return row["noOfferBecause"] or "-"


def _clock(iso: str) -> str:
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%H:%M:%S}"
