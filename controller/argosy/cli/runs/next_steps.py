"""The command lines that make sense after viewing a run."""

from __future__ import annotations

import math
from typing import Any

from argosy.cli.session import Session
from argosy.client.progress import CANCELLING, TERMINAL

# ECS's errors about containers that never started: such an attempt has written nothing.
_NEVER_STARTED = ("CannotPull", "ResourceInitialization", "CannotCreateContainer", "CannotStartContainer")


def next_steps(session: Session, view: Any, delivered: bool = False) -> list[str]:
    """`next: argosy ...` lines for a run view. delivered: this command itself delivers the results."""
    run = view["runId"]
    if view.get("environment"):
        return [f"next: {session.again(step)}" for step in (f"env status {view['environment']}", f"tasks {run}")]
    steps = []
    if view["status"] not in TERMINAL:
        steps = [f"explain {run}"] if view.get("waiting") else []
        steps += [f"watch {run}"] if view["status"] == CANCELLING else [f"watch {run}", f"cancel {run}"]
    elif view["tasks"]["succeeded"] and view.get("expectsResult", True) and not delivered:
        steps = [f"results {run} --out {view['name']}-results"]
    if view["status"] in TERMINAL and _stopped_by_budget(view):
        steps.append(f"retry {run} {_not_done(view)} --budget {_more_money(view['budget']):g}")
    elif view["status"] in TERMINAL and view["tasks"]["failed"]:
        steps.append(f"retry {run} --failed")
        if view["tasks"]["cancelled"] and str(view.get("statusReason")).startswith("stopped early"):
            steps.append(f"retry {run} --cancelled")  # the tasks that were never tried
    logged = [each for each in view.get("failures", ()) if _has_log(each)]
    if logged:
        steps.append(f"logs {run} --task {logged[-1]['index']}")
    if view["status"] in TERMINAL:
        steps.append(f"report run {run} --html {run}.html")
    return [f"next: {session.again(step)}" for step in steps]


def _stopped_by_budget(view: Any) -> bool:
    money = view.get("budget")
    return bool(money and money["usedUp"] and money["budgetUsd"] is not None and _not_done(view))


def _not_done(view: Any) -> str:
    return " ".join(f"--{name}" for name in ("failed", "cancelled") if view["tasks"][name])


def _more_money(money: Any) -> float:
    """USD: the run's spend plus its budget; whole cents."""
    return math.ceil(100 * float(money["spentUsd"] + money["budgetUsd"])) / 100


def _has_log(failure: Any) -> bool:
    return failure["exitCode"] is not None or not any(name in failure["reason"] for name in _NEVER_STARTED)
