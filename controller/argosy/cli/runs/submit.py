"""The command `submit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import SpecFiles
from argosy.cli.problems import OK, RUN_FAILED, CliError
from argosy.cli.runs.spec_source import SpecChanges, SpecRefused, load
from argosy.cli.runs.submission import Submission, announce, foreseen, sent, with_ids, with_warnings
from argosy.cli.runs.upload_progress import folder_of, packed
from argosy.cli.session import Session
from argosy.client.api import ApiError
from argosy.client.errors import ArgosyError, is_from_aws

View = Mapping[str, Any]


def submit_together(session: Session, files: Sequence[Path], submission: Submission, changes: SpecChanges) -> None:
    """Submit all of them, and follow each to its end."""
    from argosy.client.dependencies import in_order, of_other_sizes
    from argosy.spec.faults import Fault

    if changes.as_typed():
        raise CliError(f"{changes.as_typed()[0]} applies to one file, but {len(files)} were given.")
    loaded = [load(file) for file in files]
    order = in_order([spec for spec, _ in loaded])
    sizes: dict[str, int] = {}
    for file, (spec, document) in zip(files, loaded, strict=True):
        valid = sent(session.api.validate, _by_itself(spec, [each for each, _ in loaded]), str(file), document)
        sizes[spec["name"]] = valid["tasks"]
    for file, (spec, document) in zip(files, loaded, strict=True):
        if faults := [Fault(path, message) for path, message in of_other_sizes(spec, sizes)]:
            raise SpecRefused(str(file), document.placed(faults), spec, document)
    token = submission.client_token or session.tools.new_token()
    views: dict[str, Any] = {}
    for place in order:
        file, (spec, document) = files[place], loaded[place]
        known = {name: view["runId"] for name, view in views.items()}
        views[spec["name"]] = _submitted(session, spec, file, document, f"{token[:56]}-{place}", known)
        if not session.wants_json:
            announce(session, views[spec["name"]], submission.detach)
    if submission.detach:
        if session.wants_json:
            session.print_json({"runs": list(views.values())})
        return
    _follow(session, list(views.values()), submission.wait_timeout)


def _by_itself(spec: View, all_specs: Sequence[View]) -> dict[str, Any]:
    """The spec as the deployment can check it before the others are submitted."""
    from argosy.client.dependencies import names_in
    from argosy.client.packing.program import unpacked
    from argosy.spec.templates import fill_outputs

    names = {str(each.get("name")) for each in all_specs}
    here = [name for name in names_in(spec) if name in names]
    inputs = spec.get("inputs")
    listed = [inputs] if isinstance(inputs, str) else inputs or ()
    known = {
        "dependsOn": [each for each in spec.get("dependsOn", ()) if each["run"] not in here],
        "inputs": [uri for uri in listed if not uri.startswith("${dependency.")],  # whose bucket is not known yet
    }
    rest = {name: value for name, value in spec.items() if name not in known}
    checked = {**rest, **{name: value for name, value in known.items() if value}}
    return dict(unpacked(fill_outputs(checked, dict.fromkeys(here, "s3://results/"))))


def _submitted(
    session: Session, spec: Mapping[str, Any], file: Path, document: Any, token: str, known: Mapping[str, str]
) -> Any:
    wanted = with_ids(session, spec, known)
    wanted = packed(session, wanted, folder_of(file), partial(sent, name=str(file), document=document))
    return sent(lambda form: session.api.submit(form, token), wanted, str(file), document)


def _follow(session: Session, views: Sequence[View], wait_timeout_s: float | None) -> None:
    from argosy.cli.runs.watch import followed

    ends = [followed(session, view["runId"], wait_timeout_s, None)["status"] for view in views]
    raise typer.Exit(OK if set(ends) == {"SUCCEEDED"} else RUN_FAILED)


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
    """The faults that only a deployment finds in a spec that is faulty anyway; empty when no deployment answers."""
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
