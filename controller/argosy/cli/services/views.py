"""Environments in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.cli import figures
from argosy.cli.tables import PlainTable


def environment_table(found: Sequence[Any]) -> PlainTable:
    table = PlainTable(
        "ENVIRONMENT", "KIND", "STATUS", ">REVISION", ">DESIRED", ">HEALTHY", ">RUNNING", ">OUTDATED", "~REASON",
        least=("OUTDATED", "REVISION", "KIND"),
    )  # fmt: skip
    for each in found:
        counts = [f"{each[name]:,}" for name in ("desired", "healthy", "running", "outdated")]
        table.add_row(each["name"], each["kind"], each["status"], _revision(each), *counts, each["statusReason"] or "")
    return table


def _revision(view: Any) -> str:
    return str(view["targetRevision"] or "-")


def _revisions(view: Any) -> str:
    target, newest = view["targetRevision"], view["latestRevision"]
    if target is None:
        return f"revision {newest} is not deployed yet"
    return f"revision {target}" if target == newest else f"revision {target} (the newest is {newest})"


def _counts(view: Any) -> str:
    counts = f"{view['healthy']:,} of {view['desired']:,} healthy, {view['running']:,} running"
    counts = f"daemon on matching instances: {counts}" if view["kind"] == "daemon" else counts
    counts += f", {view['pending']:,} waiting" if view["pending"] else ""
    counts += f", {view['outdated']:,} of other revisions" if view["outdated"] else ""
    return counts + (f", {view['registeredTargets']:,} in target groups" if view["registeredTargets"] else "")


def environment_sentence(view: Any) -> str:
    """Its state in one line."""
    why = f" ({view['statusReason']})" if view["statusReason"] else ""
    return f"{view['name']}  {view['status']}  {_revisions(view)}: {_counts(view)}{why}"


def environment_lines(view: Any) -> list[str]:
    """Its state in two or three lines."""
    lines = [f"{view['name']}  {view['status']}  {_revisions(view)}", _counts(view)]
    if view["deployments"]:
        lines.append(deployment_line(view, view["deployments"][-1]))
    reason = view["statusReason"]
    if reason and not (lines[2:] and reason in lines[-1]):
        lines.append(reason)
    lines.append(f"cost so far {figures.money(view['costUsd'])}")
    return lines


def deployment_line(view: Any, deployment: Any) -> str:
    """The deployment's progress, or how it ended."""
    back = " (the roll-back)" if deployment["isRollback"] else ""
    why = f": {deployment['reason']}" if deployment["reason"] else ""
    healthy = sum(each["healthy"] for each in view["revisions"] if each["revision"] == deployment["revision"])
    progress = f"{healthy:,} of {view['desired']:,} healthy"
    progress += f", {view['outdated']:,} of other revisions" if view["outdated"] else ""
    number, revision = deployment["deployment"], deployment["revision"]
    said = f"deployment {number} to revision {revision}{back}: {deployment['status']}{why}"
    return said if deployment["endedAt"] else f"{said} ({progress})"


def revision_table(view: Any) -> PlainTable:
    table = PlainTable(">REVISION", "CREATED", "RUN", ">HEALTHY", ">RUNNING", least=("CREATED",))
    for each in view["revisions"][-10:]:
        counts = f"{each['healthy']:,}", f"{each['running']:,}"
        table.add_row(str(each["revision"]), figures.clock(each["createdAt"]), each["runId"] or "-", *counts)
    return table


def endpoint_table(found: Sequence[Any]) -> PlainTable:
    table = PlainTable(
        "ENDPOINT", ">PORT", "HEALTHY", ">REVISION", ">TASK", "INSTANCE", "PUBLIC", least=("PUBLIC", "INSTANCE")
    )
    for each in found:
        where = f"{each['privateIp'] or '-'}:{each['hostPort']}"
        public = f"{each['publicIp']}:{each['hostPort']}" if each["publicIp"] else "-"
        healthy = "yes" if each["healthy"] else "no"
        table.add_row(
            where, str(each["containerPort"]), healthy, str(each["revision"]), str(each["task"]), each["instance"],
            public,
        )  # fmt: skip
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
            figures.clock(each["startedAt"]),
            figures.clock(each["endedAt"]) if each["endedAt"] else "-",
            str(each["failures"]),
            each["reason"] or "",
        )
    return table
