"""How do environments look in a terminal?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.cli.tables import PlainTable


def environment_table(found: Sequence[Any]) -> PlainTable:
    table = PlainTable(
        "ENVIRONMENT", "STATUS", ">REVISION", ">DESIRED", ">HEALTHY", ">RUNNING", ">OUTDATED", "~WAITING",
        least=("OUTDATED", "REVISION"),
    )  # fmt: skip
    for each in found:
        counts = [f"{each[name]:,}" for name in ("desired", "healthy", "running", "outdated")]
        table.add_row(each["name"], each["status"], _revision(each), *counts, each["statusReason"] or "")
    return table


def _revision(view: Any) -> str:
    return str(view["targetRevision"] or "-")


def environment_lines(view: Any) -> list[str]:
    """Its state in two or three lines."""
    headline = f"{view['name']}  {view['status']}  revision {_revision(view)} of {view['latestRevision']}"
    counts = f"{view['healthy']:,} of {view['desired']:,} healthy, {view['running']:,} running"
    counts += f", {view['pending']:,} waiting" if view["pending"] else ""
    counts += f", {view['outdated']:,} of other revisions" if view["outdated"] else ""
    lines = [headline, counts]
    if view["statusReason"]:
        lines.append(view["statusReason"])
    if view["deployments"]:
        lines.append(deployment_line(view))
    return lines


def deployment_line(view: Any) -> str:
    """The latest deployment."""
    latest = view["deployments"][-1]
    back = " (goes back by itself)" if latest["isRollback"] else ""
    why = f": {latest['reason']}" if latest["reason"] else ""
    progress = f"{view['healthy']:,} of {view['desired']:,} healthy"
    said = f"deployment {latest['deployment']} to revision {latest['revision']}{back}: {latest['status']}{why}"
    return said if latest["endedAt"] else f"{said} ({progress})"


def revision_table(view: Any) -> PlainTable:
    table = PlainTable(">REVISION", "CREATED", "RUN", ">HEALTHY", ">RUNNING", least=("CREATED",))
    for each in view["revisions"][-10:]:
        counts = f"{each['healthy']:,}", f"{each['running']:,}"
        table.add_row(str(each["revision"]), each["createdAt"], each["runId"] or "-", *counts)
    return table


def deployment_table(deployments: Sequence[Any]) -> PlainTable:
    table = PlainTable(
        ">DEPLOYMENT", ">REVISION", "STATUS", "STARTED", "ENDED", ">FAILURES", "~REASON", least=("ENDED", "STARTED")
    )
    for each in deployments:
        table.add_row(
            str(each["deployment"]),
            str(each["revision"]),
            each["status"],
            each["startedAt"],
            each["endedAt"] or "-",
            str(each["failures"]),
            each["reason"] or "",
        )
    return table
