"""The submission of a run, with the plan's warnings before it and the messages after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

import typer

from argosy.cli.figures import counted
from argosy.cli.options import WaitTimeout
from argosy.cli.runs.spec_source import SpecRefused
from argosy.cli.session import Session, warn
from argosy.client.api import ApiError
from argosy.client.errors import answer_or
from argosy.model.wording import first_of

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Submission:
    """How the run is submitted and followed."""

    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end.")] = False
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="A second submission with the same token starts nothing.")
    ] = None
    wait_timeout: WaitTimeout = None


def with_ids(session: Session, spec: Mapping[str, Any], known: Mapping[str, str] = NOTHING) -> dict[str, Any]:
    """The spec with the ids of the runs that it depends on: by name those of `known`, else as for every command."""
    from argosy.client.dependencies import with_run_ids
    from argosy.client.run_names import run_id_of

    return with_run_ids(spec, lambda name: known.get(name) or run_id_of(session.api, name))


def announce(session: Session, view: Any, detached: bool) -> None:
    """The line that says that the run is accepted; with the next steps if the command does not wait for it."""
    if session.wants_json and detached:
        session.print_json(view)
    if session.wants_json:
        return
    session.console.print(_accepted(view))
    for sentence in view.get("warnings", ()):
        warn(sentence)
    if detached:
        session.console.print(f"next: {session.again('watch ' + view['runId'])}", style="dim")


def _accepted(view: Any) -> str:
    tasks = counted(view["tasks"]["total"], "task") if view["tasks"]["total"] else "its tasks"
    if not view.get("created", True):
        return f"{view['runId']}: this client token was already used to submit it; nothing was started twice."
    return f"{view['runId']} submitted: {tasks}, results in {view['output']}"


def sent(call: Callable[[Any], Any], spec: Any, name: str, document: Any) -> Any:
    """The answer of `call` to the spec. Faults that only the deployment can find are placed in the file too."""
    from argosy.spec.faults import Fault

    try:
        return call(spec)
    except ApiError as error:
        if error.code != "ValidationException" or not error.faults:
            raise
        faults = [Fault(path, message) for path, message in error.faults]
        raise SpecRefused(name, document.placed(faults), spec, document) from error


# Limits of a run, or of its places: without these a plan adds nothing to the reply to submitting.
_LIMITS = ("capacity", "placement")
_REASONS, _NAMES = 3, 2  # shown: reasons, and types for each


def foreseen(session: Session, spec: Mapping[str, Any]) -> list[str]:
    """The plan's warnings, requested before the run is submitted, so that the run does not compete with itself. Empty
    if nothing limits the run, or if no plan can be made: that does not prevent the submission."""
    if not any(spec.get(name) for name in _LIMITS):
        return []
    plan = answer_or(None, lambda: session.api.plan(spec))
    if plan is None:
        return []
    if plan["possible"]:
        return [str(each) for each in plan["warnings"]]
    refusals = [
        f"{row['reason']} ({', '.join(first_of(row['instanceTypes'], _NAMES))})" for row in plan["rejected"][:_REASONS]
    ]
    why = f": {'; '.join(refusals)}" if refusals else ""
    return [f"nothing in this deployment can run its tasks, so they wait{why}", *map(str, plan["warnings"][1:])]


def with_warnings(view: Mapping[str, Any], more: list[str]) -> dict[str, Any]:
    """The reply to submitting, with these among its warnings, each once."""
    if not view.get("created", True):
        return dict(view)
    return {**view, "warnings": list(dict.fromkeys([*view.get("warnings", ()), *more]))}
