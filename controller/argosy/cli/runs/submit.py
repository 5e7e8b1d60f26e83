"""How is a run started? `submit`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import SpecFiles
from argosy.cli.runs.foreseen import foreseen, with_warnings
from argosy.cli.runs.packed import folder_of, packed
from argosy.cli.runs.spec_source import SpecChanges, SpecRefused, load
from argosy.cli.runs.submission import Submission, announce, sent, with_ids
from argosy.cli.runs.submit_together import submit_together
from argosy.cli.session import Session
from argosy.client.api import ApiError
from argosy.client.errors import ArgosyError, is_from_aws


def register(app: typer.Typer) -> None:
    command(app, "submit", panel=panels.RUNS, as_lines=True)(submit)


def submit(session: Session, files: SpecFiles, submission: Submission, changes: SpecChanges) -> None:
    """Submit a run and follow it to its end; its id is printed at once. Several files: each run after those that it
    depends on."""
    if len(files) > 1:
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
