"""The command `debug-dump`: what a maintainer needs to understand a fault, in one file without secrets.

A part is one JSON document of the file, read with the actions and rights that other commands use. A part that cannot be
read holds the reason instead, so a deployment that answers nothing still gives a file.
"""

from __future__ import annotations

import json
import platform
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.options import AnyRunId
from argosy.cli.session import Session
from argosy.client.deployment import prefix_of
from argosy.client.errors import ArgosyError, from_aws, is_from_aws
from argosy.model.redaction import redacted, without_secrets

JSON = Any
Part = Callable[[], JSON]
ROWS = 1_000  # of each list: instances, runs, tasks, attempts
EVENTS = 5_000
EVENTS_S = 3_600.0
LOG_LINES, LOG_STREAMS = 1_000, 2  # the last lines of the streams that were written last
METRICS = '{"_aws"'  # lines for CloudWatch, whose figures are in the line of the same tick
SHORTEST_KNOWN = 8  # characters: a shorter value of a variable, such as `1`, is a word of other texts too


def register(app: typer.Typer) -> None:
    command(app, "debug-dump", panel=panels.SETUP)(debug_dump)


def debug_dump(session: Session, run: AnyRunId = None) -> None:
    """Write one file for a bug report, without secrets.

    The file describes the deployment, the cluster and, if one is named, a run.
    """
    at = datetime.fromtimestamp(session.tools.now(), UTC)
    path = Path(f"{prefix_of(session.connection.stage)}-dump-{at:%Y%m%d-%H%M%S}.zip")
    failed = _write(path, session, run)
    if session.wants_json:
        session.print_json({"file": str(path), "notRead": failed})
        return
    for name, why in failed.items():
        session.console.print(f"{name} could not be read: {why}")
    session.console.print(f"{path}: look through it before you attach it to a report; names and buckets are in it.")


def _write(path: Path, session: Session, run: str | None) -> dict[str, str]:
    """The parts that could not be read, and why."""
    failed: dict[str, str] = {}
    known = _known_secrets(session, run) if run else ()
    try:
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as file:
            for name, part in _parts(session, run).items():
                document, why = _read(part)
                if why:
                    failed[name] = redacted(why)
                    document = {"notRead": why}
                text = json.dumps(without_secrets(document, known), indent=1, default=str)
                file.writestr(f"{path.stem}/{name}.json", text)
    except OSError as fault:
        raise ArgosyError(f"{path} cannot be written: {fault.strerror}.", is_users_fault=True) from fault
    return failed


def _read(part: Part) -> tuple[JSON, str]:
    """A document, or why there is none. A fault of Argosy's own is the reason for the report, and stops nothing."""
    try:
        return part(), ""
    except ArgosyError as refusal:
        return None, str(refusal)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the report is about such faults
        return None, from_aws(fault).message if is_from_aws(fault) else f"{type(fault).__name__}: {fault}"


def _parts(session: Session, run: str | None) -> dict[str, Part]:
    parts: dict[str, Part] = {
        "versions": partial(_versions, session),
        "deployment": lambda: asdict(session.deployment),
        "settings": partial(_settings, session),
        "doctor": partial(_doctor, session),
        "cluster": lambda: {**session.api.cluster(), "instances": "in instances.json"},
        "instances": lambda: session.api.instances(ROWS),
        "queues": lambda: session.api.sharing(),  # noqa: PLW0108 - without a deployment there is no api
        "environments": lambda: session.api.environments(""),
        "runs": lambda: session.api.runs(ROWS),
        "events": partial(_events, session),
        "controller-log": partial(_log, session, "controller"),
        "api-log": partial(_log, session, "api"),
    }
    return parts if run is None else {**parts, **_parts_of_run(session, run)}


def _parts_of_run(session: Session, run: str) -> dict[str, Part]:
    return {
        "run": lambda: session.api.describe_with_cost(run),
        "run-spec": partial(_spec, session, run),
        "run-explain": lambda: session.api.explain(run, None),
        "run-tasks": lambda: session.api.tasks(ROWS, runId=run),
        "run-attempts": partial(_attempts, session, run),
        "run-events": partial(_events, session, run),
    }


def _versions(session: Session) -> JSON:
    of_it = {name: version(name) for name in ("argosy", "boto3", "numpy", "pydantic")}
    endpoint = session.connection.endpoint_url
    return {**of_it, "python": platform.python_version(), "platform": platform.platform(), "endpoint": endpoint}


def _settings(session: Session) -> JSON:
    name = f"{prefix_of(session.connection.stage)}-controller"
    function = session.client("lambda").get_function_configuration(FunctionName=name)
    return json.loads(function["Environment"]["Variables"]["ARGOSY_SETTINGS"])


def _doctor(session: Session) -> JSON:
    from argosy.cli.deployment.checks import run_checks

    return [each.as_json() for each in run_checks(session)]


def _events(session: Session, run: str | None = None) -> JSON:
    """Those of the last hour, or of a run as long as they are kept."""
    wanted: dict[str, Any] = {"sinceSeconds": EVENTS_S} if run is None else {"runId": run}
    found: list[JSON] = []
    while True:
        page = session.api.changes(**wanted, maxResults=ROWS)
        found += page["changes"]
        if page["newest"] is None or page["next"] in (page["newest"], wanted.get("since")):
            return found[-EVENTS:]
        wanted = {name: value for name, value in wanted.items() if name != "sinceSeconds"} | {"since": page["next"]}


def _log(session: Session, function: str) -> JSON:
    logs, group = session.client("logs"), f"/aws/lambda/{prefix_of(session.connection.stage)}-{function}"
    newest = logs.describe_log_streams(logGroupName=group, orderBy="LastEventTime", descending=True, limit=LOG_STREAMS)
    lines = []
    for stream in newest["logStreams"]:
        name = stream["logStreamName"]
        page = logs.get_log_events(logGroupName=group, logStreamName=name, startFromHead=False, limit=LOG_LINES)
        said = [each["message"].rstrip() for each in page["events"]]
        lines.append({"stream": name, "lines": [line for line in said if not line.startswith(METRICS)]})
    return lines


def _spec(session: Session, run: str) -> JSON:
    """Of an array's items only their number: they are the user's data."""
    bucket, _, folder = session.api.describe(run)["output"].removeprefix("s3://").partition("/")
    body = session.client("s3").get_object(Bucket=bucket, Key=f"{folder}spec.json")["Body"].read()
    spec = json.loads(body)
    items = spec.get("array", {}).get("items")
    return spec if items is None else {**spec, "array": {**spec["array"], "items": counted(len(items), "item")}}


def _known_secrets(session: Session, run: str) -> Collection[str]:
    """Values of the run's environment variables, which other parts may repeat. Those that are part of the deployment's
    description, such as the Region, are none."""
    spec, _ = _read(partial(_spec, session, run))
    described, _ = _read(lambda: asdict(session.deployment))
    return {each for each in _values(spec) if len(each) >= SHORTEST_KNOWN and each not in json.dumps(described)}


def _values(spec: JSON) -> Iterator[str]:
    given = ((spec or {}).get("container") or {}).get("environment") or {}
    yield from map(str, given.values() if isinstance(given, dict) else (each["value"] for each in given))


def _attempts(session: Session, run: str) -> JSON:
    from argosy.figures.history import rows_of_attempts

    page = session.api.attempts(run)
    return list(islice(rows_of_attempts([page]), ROWS))
