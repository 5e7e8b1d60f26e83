"""The plan's warnings for a person who submits a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.cli.session import Session
from argosy.client.errors import answer_or

# Limits of a run, or of its places: without these a plan adds nothing to the reply to submitting.
_LIMITS = ("capacity", "placement")
_REASONS = 3


def foreseen(session: Session, spec: Mapping[str, Any]) -> list[str]:
    """The plan's warnings, asked for before the run is submitted, so that the run does not compete with itself. Empty
    where nothing limits the run, and where no plan can be made: that is no reason not to submit it."""
    if not any(spec.get(name) for name in _LIMITS):
        return []
    plan = answer_or(None, lambda: session.api.plan(spec))
    if plan is None:
        return []
    if plan["possible"]:
        return [str(each) for each in plan["warnings"]]
    refusals = [f"{row['reason']} ({', '.join(row['instanceTypes'][:2])})" for row in plan["rejected"][:_REASONS]]
    why = f": {'; '.join(refusals)}" if refusals else ""
    return [f"nothing in this deployment can run its tasks, so they wait{why}", *map(str, plan["warnings"][1:])]


def with_warnings(view: Mapping[str, Any], more: list[str]) -> dict[str, Any]:
    """The reply to submitting, with these among its warnings, each once."""
    if not view.get("created", True):
        return dict(view)
    return {**view, "warnings": list(dict.fromkeys([*view.get("warnings", ()), *more]))}
