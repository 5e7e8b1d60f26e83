"""The command `catalogue`: instance types, and the refresh of their figures."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.problems import CliError, reported
from argosy.cli.session import REGION_VARIABLES, Session, Tools
from argosy.client.aws_clients import DEFAULT_REGION, Connection

if TYPE_CHECKING:
    from argosy.cli.cluster.catalogue.changes import Change
    from argosy.model.instance_types import InstanceType

CHANGES_SHOWN = 40


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Instance types: their sizes and prices.")
    command(group, "refresh", panel=panels.CLUSTER)(refresh)
    group.callback(invoke_without_command=True)(catalogue)
    app.add_typer(group, name="catalogue", rich_help_panel=panels.CLUSTER)


def catalogue(
    ctx: typer.Context,
    pattern: Annotated[
        str, typer.Option("--type", metavar="GLOB", help="Instance types, e.g. 'g5.*' or '*.xlarge'.")
    ] = "*",
    region: Annotated[
        str, typer.Option("--region", metavar="REGION", envvar=REGION_VARIABLES, show_envvar=False)
    ] = DEFAULT_REGION,
    wants_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Instance types: their sizes and prices."""
    if ctx.invoked_subcommand is not None:
        return
    tools = ctx.obj if isinstance(ctx.obj, Tools) else Tools()
    with reported():
        _list(Session(tools, Connection(region=region), wants_json), pattern, region)


def matching(pattern: str, region: str) -> list[InstanceType]:
    """The catalogue's types at `region`'s prices. Raises CliError when no name matches."""
    from argosy.catalogue.lookup import load_catalogue

    known = load_catalogue(region)
    found = [kind for name, kind in known.items() if fnmatchcase(name, pattern)]
    if not found:
        families = ", ".join(sorted({kind.family for kind in known.values()}))
        step = f"known families: {families}; argosy catalogue refresh --type '{pattern}' adds them from AWS"
        raise CliError(f"No instance type of the catalogue matches {pattern!r}.", next_step=step)
    return found


def _list(session: Session, pattern: str, region: str) -> None:
    from argosy.catalogue.lookup import as_of
    from argosy.cli.tables import PlainTable

    rows = [_row(kind, region) for kind in matching(pattern, region)]
    if session.wants_json:
        session.print_json({"region": region, "asOf": dict(as_of(region)), "instanceTypes": rows})
        return
    table = PlainTable(
        "TYPE", ">VCPU", ">GIB", ">MIB FOR TASKS", "GPU", ">ON-DEMAND $/H", ">TYPICAL SPOT", ">INTERRUPTED", "OFFERED",
        least=("MIB FOR TASKS", "TYPICAL SPOT", "INTERRUPTED", "OFFERED"),
    )  # fmt: skip
    for row in rows:
        spot, gpus = row["typicalSpotUsdPerHour"], row["gpus"]
        table.add_row(
            row["instanceType"],
            str(row["vcpus"]),
            f"{row['memoryMib'] / 1024:g}",
            f"{row['registeredMemoryMib']:,}",
            f"{gpus} {row['gpuModel']} {row['gpuMemoryMib'] / 1024:.0f} GiB" if gpus else "-",
            f"{row['onDemandUsdPerHour']:.4f}",
            f"{spot:.4f}" if spot else "-",
            row["interruptionBand"] or "-",
            row["offered"],
        )
    dates = as_of(region)
    session.console.print(f"{region}: {len(rows)} instance types")
    session.console.print(table)
    session.console.print(
        f"sizes of {dates['instance_types']}, prices of {dates['prices']}, offers of {dates['offered']}, "
        f"interruptions a month of {dates['interruption_bands']} (AWS's Spot Instance Advisor); "
        "live prices: argosy prices; newer figures: argosy catalogue refresh",
        style="dim",
    )


def _row(kind: InstanceType, region: str) -> dict[str, Any]:
    from argosy.catalogue.lookup import BANDS, interruption_band, lacking_zones, offered

    band = interruption_band(region, kind.name)
    lacking = lacking_zones(region, kind.name)
    there = f"not in {', '.join(lacking)}" if lacking else "yes"
    is_known = kind.typical_spot_usd_per_hour < kind.on_demand_usd_per_hour
    return {
        "instanceType": kind.name,
        "vcpus": kind.vcpus,
        "memoryMib": kind.memory_mib,
        "registeredMemoryMib": kind.registered_memory_mib,
        "gpus": kind.gpus,
        "gpuModel": kind.gpu_model,
        "gpuMemoryMib": kind.gpu_memory_mib,
        "architecture": kind.architecture,
        "onDemandUsdPerHour": kind.on_demand_usd_per_hour,
        "typicalSpotUsdPerHour": kind.typical_spot_usd_per_hour if is_known else None,
        "interruptionBand": None if band is None else BANDS[band],
        "offered": there if kind.name in offered(region) else "no",
    }


def refresh(
    session: Session,
    pattern: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="GLOB", help="Add these types, e.g. 'c8i.*'; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FOLDER", help="Write to this folder, not to the checkout's catalogue."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
) -> None:
    """Read sizes, offers and prices from AWS with your credentials, show what changed, and write the catalogue's files.

    --region takes several Regions, separated by commas. The next `make deploy` carries the files.
    """
    from argosy.catalogue.files import shipped_folder
    from argosy.cli.cluster.catalogue.changes import refreshed, write
    from argosy.cli.cluster.catalogue.sources import read_region

    loopback = session.connection.is_loopback
    if loopback and output is None and not dry_run:
        raise CliError(
            "This is local AWS: its figures are invented and do not belong in the catalogue.",
            next_step="leave --endpoint-url out, or write to another folder with --output",
        )
    folder = output or shipped_folder()
    regions = [region.strip() for region in (session.connection.region or DEFAULT_REGION).split(",") if region.strip()]
    found = {region: read_region(session, region, pattern or []) for region in regions}
    files, changes = refreshed(found, session.tools.now())
    if not dry_run:
        write(folder, files)
    _tell(session, found, changes, None if dry_run else folder)


def _tell(session: Session, found: dict[str, Any], changes: list[Change], folder: Path | None) -> None:
    from argosy.cli.tables import PlainTable

    notes = [note for each in found.values() for note in each.notes]
    if session.wants_json:
        rows = [change.as_json() for change in changes]
        session.print_json({"written": str(folder) if folder else None, "changes": rows, "notes": notes})
        return
    console = session.console
    console.print(f"{len(changes)} changes in {', '.join(found)}")
    if changes:
        table = PlainTable("REGION", "WHAT", "TYPE", ">WAS", ">IS")
        for change in changes[:CHANGES_SHOWN]:
            table.add_row(change.region, change.what, change.instance_type, change.was, change.now)
        console.print(table)
    if len(changes) > CHANGES_SHOWN:
        console.print(f"--json shows {len(changes) - CHANGES_SHOWN} more", style="dim")
    for note in notes:
        console.print(note, style="dim")
    where = f"written to {folder}; the next `make deploy` uses it" if folder else "nothing was written (--dry-run)"
    console.print(where)
