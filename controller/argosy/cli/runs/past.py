"""A past decision in words, for `explain --at`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from argosy.cli.figures import counted, money
from argosy.model.resources import said_vcpus


def heading(reply: Mapping[str, Any]) -> list[str]:
    """The decision, and whether its replay is exact."""
    lines = [f"{reply['runId']}: as of the decision at {_clock(reply['at'])}, version {reply['version']}"]
    if not reply["exact"]:
        lines.append("this may not be what the controller decided:")
        lines += [f"  {each}" for each in reply["differences"]]
    if (later := reply.get("notRecordedFrom")) is not None:
        lines.append(
            f"later decisions, from {_clock(later['at'])} (version {later['version']}) on, are not in the record: "
            "it is stored every minute, so the last minute is lost if the controller stops"
        )
    if reply["run"] is None:
        lines.append("the run was not open then")
    return lines


def placement_lines(reply: Mapping[str, Any]) -> list[str]:
    """The place of the task's attempt, and the alternatives."""
    found, index = reply["placement"], reply["index"]
    if found is None:
        return [] if index is None else [f"task {index} had no attempt then"]
    machine, when = _machine(found["instance"]), _clock(found["decidedAt"])
    lines = [
        f"task {index}, attempt {found['attempt']}: placed on {machine} at {when}",
        f"  {_rank(found)}, by {', then by '.join(found['strategy'])}; {found['instances']} were active",
    ]
    if (others := found["placedTogether"] - 1) > 0:
        lines.append(f"  {counted(others, 'other task')} of the run were placed with it in the same decision")
    lines += [f"  {_ranked(each)}" for each in found["ranked"]]
    lines += [f"  {each['refused']} had no room: {each['detail']}" for each in found["refusals"]]
    return lines + _purchase(found["lastOrder"])


def _rank(found: Mapping[str, Any]) -> str:
    if found["rank"] is None:
        return "not ranked"
    return f"number {found['rank']} of the {counted(found['fits'], 'instance')} with room"


def _purchase(order: Mapping[str, Any] | None) -> list[str]:
    if order is None:
        return []
    above = "" if order["gapPct"] is None else f", at most {order['gapPct']:.1f} % above the least it could cost"
    bought = f"{counted(order['instances'], 'instance')} for {money(order['usdPerHour'])} an hour"
    return [f"  the last purchase before it: {bought}{above}"]


def _ranked(each: Mapping[str, Any]) -> str:
    free = each["free"]
    room = f"{said_vcpus(free['cpuUnits'])}, {free['memoryMib']:,} MiB"
    room += f", {counted(free['gpus'], 'GPU')}" if free["gpus"] else ""
    says = ", ".join(f"{name} {figure}" for name, figure in each["figures"].items())
    took = f"; took {counted(each['placedTogether'], 'task')}" if each["placedTogether"] else ""
    return f"{each['rank']:>3}. {_machine(each)}: {room} free; {says}{took}"


def _machine(each: Mapping[str, Any]) -> str:
    return f"{each['id']} ({each['type']}, {each['zone']}, {each['purchase']}, {money(each['usdPerHour'])} an hour)"


def _clock(at: float) -> str:
    """To the millisecond: several decisions fall into a second."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"
