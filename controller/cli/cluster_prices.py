"""What does spot capacity cost now, beside on-demand? `prices`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from controller.cli.problems import CliError
from controller.cli.runs import SEE_PANEL
from controller.cli.session import DEFAULT_REGION, Session, command

TYPES_PER_CALL = 100  # keeps one request's URL short; the API itself sets no bound


def register(app: typer.Typer) -> None:
    command(app, "prices", panel=SEE_PANEL)(prices)


def prices(
    session: Session,
    pattern: Annotated[
        str, typer.Option("--type", metavar="GLOB", help="Instance types, e.g. 'g5.*' or '*.xlarge'.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many rows.")] = 40,
) -> None:
    """Spot prices now beside on-demand, cheapest vCPU or GPU first."""
    region = session.client("ec2").meta.region_name or DEFAULT_REGION
    rows = _rows(session, pattern, region)
    if session.wants_json:
        session.print_json({"region": region, "prices": rows})
        return
    _print(session, rows, region, limit)


def _rows(session: Session, pattern: str, region: str) -> list[dict[str, Any]]:
    """One row per type and zone, the cheapest unit first. Raises CliError when no type matches."""
    from controller.catalogue.types import load_catalogue
    from controller.settings import Settings

    catalogue = load_catalogue(region)
    default = Settings().instance_types.all
    names = [name for name in catalogue if fnmatchcase(name, pattern)] if pattern else list(default)
    if not names:
        step = "families there are: " + ", ".join(sorted({kind.family for kind in catalogue.values()}))
        raise CliError(f"No instance type of the catalogue matches {pattern!r}.", next_step=step)
    spot = _spot_prices(session.client("ec2"), names, session.tools.now())
    rows = [_row(catalogue[name], zone, price) for (name, zone), price in spot.items()]
    return sorted(rows, key=lambda row: (row["gpus"] > 0, row["spotUsdPerUnitHour"], row["availabilityZone"]))


def _row(kind: Any, zone: str, price: float) -> dict[str, Any]:
    return {
        "instanceType": kind.name,
        "availabilityZone": zone,
        "vcpus": kind.vcpus,
        "memoryMib": kind.memory_mib,
        "gpus": kind.gpus,
        "gpuModel": kind.gpu_model,
        "spotUsdPerHour": price,
        "onDemandUsdPerHour": kind.on_demand_usd_per_hour,
        "spotUsdPerUnitHour": price / (kind.gpus or kind.vcpus),
    }


def _spot_prices(ec2: Any, names: list[str], now: float) -> dict[tuple[str, str], float]:
    """(type, zone) -> USD per hour now. A start time of now asks for the price in force, not the history."""
    latest: dict[tuple[str, str], tuple[datetime, float]] = {}
    for first in range(0, len(names), TYPES_PER_CALL):
        pages = ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=names[first : first + TYPES_PER_CALL],
            ProductDescriptions=["Linux/UNIX"],
            StartTime=datetime.fromtimestamp(now, UTC),
        )
        for page in pages:
            for each in page["SpotPriceHistory"]:
                pool = (each["InstanceType"], each["AvailabilityZone"])
                seen = (each["Timestamp"], float(each["SpotPrice"]))
                latest[pool] = max(latest.get(pool, seen), seen)
    return {pool: price for pool, (_, price) in latest.items()}


def _print(session: Session, rows: list[dict[str, Any]], region: str, limit: int) -> None:
    from controller.catalogue.types import as_of

    if not rows:
        session.console.print(f"AWS quotes no spot price for these types in {region}: they are not offered there.")
        return
    session.console.print(_headline(rows, region))
    session.console.print(_table(rows[:limit]))
    left = f"; {len(rows) - limit:,} more rows with --limit {len(rows)}" if len(rows) > limit else ""
    session.console.print(f"on-demand prices of {as_of()['prices']}{left}", style="dim")


def _headline(rows: list[dict[str, Any]], region: str) -> str:
    best = []
    for unit, is_gpu in (("vCPU", False), ("GPU", True)):
        row = next((each for each in rows if bool(each["gpus"]) == is_gpu), None)
        if row is not None:
            where = f"{row['instanceType']} in {row['availabilityZone']}"
            best.append(f"cheapest {unit}: {where} at ${row['spotUsdPerUnitHour']:.4f} per {unit} and hour")
    return f"{region}: {'; '.join(best)}"


def _table(rows: list[dict[str, Any]]) -> Any:
    from controller.cli.run_views import plain_table

    table = plain_table(
        "TYPE", "ZONE", ">VCPU", ">GIB", "GPU", ">SPOT $/H", ">ON-DEMAND $/H", ">SAVES", ">SPOT $/UNIT-H"
    )
    for row in rows:
        table.add_row(
            row["instanceType"],
            row["availabilityZone"],
            str(row["vcpus"]),
            f"{row['memoryMib'] / 1024:g}",
            f"{row['gpus']} {row['gpuModel']}" if row["gpus"] else "-",
            f"{row['spotUsdPerHour']:.4f}",
            f"{row['onDemandUsdPerHour']:.4f}",
            _saving(row),
            f"{row['spotUsdPerUnitHour']:.4f}",
        )
    return table


def _saving(row: Mapping[str, Any]) -> str:
    """Negative when spot costs more than on-demand, which does happen."""
    return f"{100 * (1 - row['spotUsdPerHour'] / row['onDemandUsdPerHour']):.0f} %"
