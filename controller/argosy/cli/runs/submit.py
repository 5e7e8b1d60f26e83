"""Start a run: `validate`, `schema`, `submit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli.problems import CliError, is_from_aws
from argosy.cli.runs.reading import RUN_PANEL
from argosy.cli.session import Session, command
from argosy.client.errors import ArgosyError

SPEC_PANEL = "Run specs"
NOT_CHECKED = "A deployment's limits (its largest shape, its buckets, its images) are checked by argosy submit."
# A field that no version knows: a spec that is sent for its faults alone must not start anything.
FOR_ITS_FAULTS = "sentForItsFaultsAlone"
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Run spec in YAML or JSON; - reads standard input.")]


def register(app: typer.Typer) -> None:
    command(app, "submit", panel=RUN_PANEL)(submit)
    command(app, "validate", panel=SPEC_PANEL, connected=False)(validate)
    command(app, "schema", panel=SPEC_PANEL, connected=False, as_json=False)(schema)


def validate(session: Session, file: SpecFile) -> None:
    """Check a run spec: every fault at once, with its line."""
    from argosy.api.admission import check_spec
    from argosy.cli.runs import spec_source
    from argosy.spec.faults import SpecError
    from argosy.spec.file import check_text, is_json_name

    text = spec_source.read_text(file)
    try:
        spec, _ = check_text(text, is_json=is_json_name(file.name), check=check_spec)
    except SpecError as refusal:
        if not session.wants_json:
            raise CliError(
                f"{file} has {_counted(len(refusal.faults))}.",
                details=[fault.text(str(file)) for fault in refusal.faults],
            ) from refusal
        rows = [{"path": f.path, "message": f.message, "line": f.line, "column": f.column} for f in refusal.faults]
        session.print_json({"valid": False, "file": str(file), "faults": rows})
        raise typer.Exit(2) from refusal
    if session.wants_json:
        session.print_json({"valid": True, "file": str(file), "faults": []})
        return
    session.console.print(f"{file} is valid: {_summary(spec)}")
    session.console.print(NOT_CHECKED, style="dim")


def _counted(faults: int) -> str:
    return "1 fault" if faults == 1 else f"{faults} faults"


def _summary(parsed: Any) -> str:
    """`digits, 18 tasks of 1 vCPU, 1,024 MiB`."""
    from argosy.spec import shards
    from argosy.spec.parse import to_json

    form = to_json(parsed)
    try:
        tasks = f"{shards.task_count(form):,} tasks"
    except ValueError:
        tasks = f"one task per item of {form['array']['itemsFrom']}"
    needs = form.get("resources")
    if not needs:
        return f"{form['name']}, {tasks}, sized by the task definition {form['taskDefinition']}"
    gpus = f", {needs['gpus']} GPU" if needs.get("gpus") else ""
    return f"{form['name']}, {tasks} of {needs['vcpus']:g} vCPU, {needs['memory']:,} MiB{gpus}"


def schema(session: Session) -> None:
    """Print the JSON Schema of run specs, for editors."""
    from argosy.spec.parse import schema as run_schema

    session.print_json(run_schema())


def submit(  # noqa: PLR0913 - each is an option of the command
    session: Session,
    file: SpecFile,
    *,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait for the end.")] = False,
    client_token: Annotated[
        str | None, typer.Option("--client-token", help="Submitting again with the same token does not start twice.")
    ] = None,
    wait_timeout: Annotated[
        float | None, typer.Option("--wait-timeout", min=0, metavar="SECONDS", help="Stop waiting then: exit code 4.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", "-s", min=1, help="Items per task: array.shardSize.")
    ] = None,
    num_batches: Annotated[
        int | None, typer.Option("--num-batches", "-b", min=1, help="Tasks: array.range 0:(batch size x this).")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="S3_PREFIX", help="Where results go.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change one field, e.g. resources.vcpus=2.")
    ] = None,
) -> None:
    """Submit a run and follow it to its end; its id is printed at once."""
    from argosy.cli.runs import spec_source

    shorthands = spec_source.Shorthands(batch_size, num_batches, output)
    try:
        spec, document = spec_source.load(file, shorthands, changes or [])
    except spec_source.Refused as refusal:
        raise refusal.with_more(_faults_of_deployment(session, refusal.wanted)) from refusal
    view = _submitted(session, spec, client_token or session.tools.new_token(), str(file), document)
    if detach:
        if session.wants_json:
            session.print_json(view)
        else:
            session.console.print(_accepted(view))
            _warn(view)
            session.console.print(f"next: {session.again('watch ' + view['runId'])}", style="dim")
        return
    from argosy.cli.runs.watch import follow

    if not session.wants_json:
        session.console.print(_accepted(view))
        _warn(view)
    follow(session, view["runId"], wait_timeout)


def _warn(view: Any) -> None:
    for sentence in view.get("warnings", ()):
        typer.echo(f"warning: {sentence}", err=True)


def _accepted(view: Any) -> str:
    tasks = f"{view['tasks']['total']:,} tasks" if view["tasks"]["total"] else "its tasks"
    if not view.get("created", True):
        return f"{view['runId']}: this client token has already submitted it; nothing was started twice."
    return f"{view['runId']} submitted: {tasks}, results in {view['output']}"


def _faults_of_deployment(session: Session, spec: Mapping[str, Any]) -> list[Any]:
    """What only a deployment can say of a spec that is faulty anyway; nothing where none answers."""
    from argosy.client.api import ApiError
    from argosy.spec.faults import Fault

    if not spec:
        return []
    try:
        session.api.submit({**spec, FOR_ITS_FAULTS: True}, session.tools.new_token())
    except ApiError as error:
        return [Fault(path, message) for path, message in error.faults if path != FOR_ITS_FAULTS]
    except (ArgosyError, TypeError, ValueError):  # no deployment; or YAML's dates and the like, which are no JSON
        return []
    except Exception as fault:
        if not is_from_aws(fault):
            raise
    return []


def _submitted(session: Session, spec: Any, token: str, name: str, document: Any) -> Any:
    return sent(lambda form: session.api.submit(form, token), spec, name, document)


def sent(call: Callable[[Any], Any], spec: Any, name: str, document: Any) -> Any:
    """What `call` answers to the spec; faults that only the deployment can find are placed in the file too."""
    from argosy.cli.runs import spec_source
    from argosy.client.api import ApiError
    from argosy.spec.faults import Fault

    try:
        return call(spec)
    except ApiError as error:
        if error.code != "ValidationException" or not error.faults:
            raise
        faults = [Fault(path, message) for path, message in error.faults]
        raise spec_source.Refused(name, document.placed(faults), spec, document) from error
