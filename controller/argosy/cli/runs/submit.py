"""How is a run started? `submit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.options import SpecFiles, WaitTimeout
from argosy.cli.runs.foreseen import foreseen, with_warnings
from argosy.cli.runs.packed import folder_of, packed
from argosy.cli.runs.spec_source import SpecChanges, SpecRefused, load
from argosy.cli.session import Session, warn
from argosy.client.api import ApiError
from argosy.client.errors import ArgosyError, is_from_aws

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Submission:
    """How the run is submitted and followed."""

    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end.")] = False
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="Submitting again with the same token does not start twice.")
    ] = None
    wait_timeout: WaitTimeout = None


def register(app: typer.Typer) -> None:
    command(app, "submit", panel=panels.RUNS, as_lines=True)(submit)


def submit(session: Session, files: SpecFiles, submission: Submission, changes: SpecChanges) -> None:
    """Submit a run and follow it to its end; its id is printed at once. Several files: each run after those that it
    depends on."""
    if len(files) > 1:
        from argosy.cli.runs.submit_together import submit_together

        submit_together(session, files, submission, changes)
    else:
        _submit(session, files[0], submission, changes)


def _submit(session: Session, file: Path, submission: Submission, changes: SpecChanges) -> None:
    try:
        spec, document = load(file, changes)
    except SpecRefused as refusal:
        raise refusal.with_more(_faults_of_deployment(session, refusal.wanted)) from refusal
    spec = packed(session, spec, folder_of(file), partial(sent, name=str(file), document=document))
    token = submission.client_token or session.tools.new_token()
    spec = with_ids(session, spec)
    warnings = foreseen(session, spec)
    view = sent(lambda form: session.api.submit(form, token), spec, str(file), document)
    view = with_warnings(view, warnings)
    announce(session, view, submission.detach)
    if not submission.detach:
        from argosy.cli.runs.watch import follow

        follow(session, view["runId"], submission.wait_timeout, view)


def with_ids(session: Session, spec: Mapping[str, Any], known: Mapping[str, str] = NOTHING) -> dict[str, Any]:
    """The spec with the ids of the runs that it depends on: by name those of `known`, else as everywhere else."""
    from argosy.client.dependencies import with_run_ids
    from argosy.client.run_names import run_id_of

    return with_run_ids(spec, lambda name: known.get(name) or run_id_of(session.api, name))


def announce(session: Session, view: Any, detached: bool) -> None:
    """That the run is accepted; what comes next too if nobody waits for it."""
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
        return f"{view['runId']}: this client token has already submitted it; nothing was started twice."
    return f"{view['runId']} submitted: {tasks}, results in {view['output']}"


def _faults_of_deployment(session: Session, spec: Mapping[str, Any]) -> list[Any]:
    """What only a deployment can find wrong with a spec that is faulty anyway; empty when no deployment answers."""
    from argosy.client.packing.program import unpacked
    from argosy.spec.faults import Fault

    if not spec:
        return []
    try:
        session.api.validate(unpacked(spec))
    except ApiError as error:
        return [Fault(path, message) for path, message in error.faults]
    except (ArgosyError, TypeError, ValueError):  # no deployment; or YAML's dates and the like, which are not JSON
        return []
    except Exception as fault:
        if not is_from_aws(fault):
            raise
    return []


def sent(call: Callable[[Any], Any], spec: Any, name: str, document: Any) -> Any:
    """What `call` answers to the spec. Faults that only the deployment can find are placed in the file too."""
    from argosy.spec.faults import Fault

    try:
        return call(spec)
    except ApiError as error:
        if error.code != "ValidationException" or not error.faults:
            raise
        faults = [Fault(path, message) for path, message in error.faults]
        raise SpecRefused(name, document.placed(faults), spec, document) from error
