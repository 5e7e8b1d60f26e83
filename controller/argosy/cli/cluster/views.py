"""The cluster in a terminal: from the body of DescribeCluster to a headline and a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from argosy.cli import figures
from argosy.cli.console import PlainText
from argosy.cli.tables import PlainTable

View = Mapping[str, Any]
_COLOURS = {"BOOTING": "cyan", "ACTIVE": "green", "DRAINING": "yellow", "RELEASING": "yellow", "GONE": "dim"}


def cluster(view: View, now: float, show_gone: bool) -> Iterator[RenderableType]:
    """A headline, one row per instance (ended ones last, or only counted), and the fleets' targets."""
    instances = sorted(view["instances"], key=lambda each: (each["status"] == "GONE", each["instanceType"]))
    gone = [each for each in instances if each["status"] == "GONE"]
    shown = instances if show_gone else instances[: len(instances) - len(gone)]
    yield headline(view)
    if shown:
        yield instance_table(shown, now)
    if gone and not show_gone:
        yield f"{figures.counted(len(gone), 'instance')} ended recently; --all shows them"
    ordered = orders(view)
    if ordered:
        yield ordered
    yield from map(_reservation, view.get("reservations", ()))
    yield from troubles(view)
    yield from without_work(shown)


def without_work(instances: Iterable[View]) -> Iterator[str]:
    """Why live instances get no new tasks."""
    for each in instances:
        if each.get("noWorkBecause") and each["status"] != "GONE":
            yield f"{each['instanceId']} gets no new tasks: {each['noWorkBecause']}"


def headline(view: View) -> PlainText:
    """How many instances, what they cost an hour, what has been spent."""
    alive = sum(each["status"] != "GONE" for each in view["instances"])
    line = PlainText(f"{view['cluster']}: {figures.counted(alive, 'instance')}", "bold")
    line.append(f", {figures.money(view['usdPerHour'])} per hour", "default")
    spent, on_demand = float(view["spentUsd"]), float(view["onDemandUsd"])
    less = figures.saved(spent, on_demand)
    line.append(f"; spent {figures.money(spent)} (on-demand {figures.money(on_demand)}{', ' + less if less else ''})")
    peak = _peak(view.get("peakUtilisation") or {})
    return line.append(f"; peak use {peak}") if peak else line


def _peak(peak: View) -> str:
    names = {"cpu": "CPU", "memory": "memory", "gpus": "GPU"}
    return ", ".join(f"{name} {100 * peak[key]:.0f} %" for key, name in names.items() if peak.get(key) is not None)


def instance_table(instances: list[View], now: float) -> PlainTable:
    table = PlainTable(
        "INSTANCE", "TYPE", "ZONE", "BOUGHT", "STATUS", "CPU (vCPU)", "MEMORY (GiB)", "GPU", ">TASKS", ">$/H", ">UP",
        least=("UP", "BOUGHT", "ZONE", "GPU", "MEMORY (GiB)", "CPU (vCPU)", "$/H"),
    )  # fmt: skip
    for each in instances:
        up = figures.seconds_between(each["launchedAt"], each["stoppedAt"], now)
        table.add_row(
            each["instanceId"],
            each["instanceType"],
            each["availabilityZone"],
            each["purchase"],
            PlainText(each["status"], _COLOURS.get(each["status"], "")),
            figures.use(each["cpu"]),
            figures.use(_gib(each["memory"])),
            _gpus(each),
            str(each["tasks"]),
            f"{each['priceUsdPerHour']:.4f}",
            "-" if up is None else figures.duration(up),
        )
    return table


def _gpus(instance: View) -> str:
    """`█████░░░░░ 2/4`, and of GPUs that tasks share `1 shared, 12.0 GiB free`."""
    free = [each["freeMib"] for each in instance.get("gpuDevices", ()) if each["mode"] == "NVIDIA_MPS"]
    shared = f", {len(free)} shared, {sum(free) / 1024:.1f} GiB free" if free else ""
    return f"{figures.use(instance['gpus'])}{shared}"


def _gib(mib: View) -> View:
    return {key: amount / 1024 for key, amount in mib.items()}


def orders(view: View) -> str:
    """`on order: c5.xlarge us-east-1a 2 spot; ...`; empty when no fleet has a target."""
    wanted = [
        f"{each['instanceType']} {each['availabilityZone']} "
        + " + ".join(
            f"{each[key]} {words}"
            for key, words in (("spotTarget", "spot"), ("onDemandTarget", "on-demand"))
            if each[key]
        )
        for each in view["fleets"]
        if each["spotTarget"] or each["onDemandTarget"]
    ]
    return f"fleet targets: {'; '.join(wanted)}" if wanted else ""


def _reservation(each: View) -> str:
    """`reservation cr-...: 3 of 4 p5.48xlarge in us-east-1a are in use; the rest costs $55.04 per hour`."""
    used = each["instances"] - each["free"]
    where = f"{each['instances']:,} {each['instanceType']} in {each['availabilityZone']}"
    end = f", which must be empty by {figures.clock(each['emptyBy'])}" if each["emptyBy"] else ""
    idle = f"; the rest costs {figures.money(each['idleUsdPerHour'])} per hour" if each["idleUsdPerHour"] else ""
    why = f"; nothing is launched into it: {each['unusableBecause']}" if each["unusableBecause"] else ""
    return f"reservation {each['reservation']}: {used:,} of {where} are in use{end}{idle}{why}"


def troubles(view: View) -> Iterator[str]:
    """Pools that are cooling off, and spot prices that are too old to use."""
    cooling = sorted((each for each in view["fleets"] if each.get("coolingOffUntil")), key=_cooling_off_until)
    broken = [each for each in cooling if each.get("needsMending")]
    for why in dict.fromkeys(str(each["coolingOffAfter"]) for each in broken):
        alike = [each for each in broken if each["coolingOffAfter"] == why]
        first = f"{alike[0]['instanceType']} in {alike[0]['availabilityZone']}{', ...' if len(alike) > 1 else ''}"
        yield f"{figures.counted(len(alike), 'fleet')} cannot launch until the cause is fixed: {first}: {why}"
    cooling = [each for each in cooling if not each.get("needsMending")]
    if cooling:
        first = cooling[0]
        yield (
            f"{figures.counted(len(cooling), 'pool')} cooling off: {first['instanceType']} in "
            f"{first['availabilityZone']} until {figures.clock(first['coolingOffUntil'])} after "
            f"{first['coolingOffAfter']}{', ...' if len(cooling) > 1 else ''} (argosy prices shows all)"
        )
    behind = [each for each in view["fleets"] if each.get("behindSince")]
    if behind:
        yield (
            f"{figures.counted(len(behind), 'fleet')} could not move to the newest launch template since "
            f"{figures.clock(min(each['behindSince'] for each in behind))}: {behind[0]['behindBecause']}"
        )
    stale = [each["pricedAt"] for each in view["fleets"] if each.get("priceIsStale")]
    if stale:
        yield (
            f"spot prices of {figures.counted(len(stale), 'pool')} were last updated at {figures.clock(min(stale))}: "
            "too long ago, so their on-demand prices are assumed"
        )


def _cooling_off_until(fleet: View) -> str:
    return str(fleet["coolingOffUntil"])
