"""What did the tasks of a run print? `logs`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import RunId
from argosy.cli.outside_text import say
from argosy.cli.problems import CliError
from argosy.cli.session import Session, warn
from argosy.client.errors import error_code
from argosy.client.logs.streams import LogStream, find_streams
from argosy.client.progress import TERMINAL

FOLLOW_INTERVAL_S = 2.0
LATE_LINES_S = 4.0  # the log driver may deliver a task's last lines shortly after its end
STREAMS_LIMIT = 100  # without --task: as many tasks as a person might read


def register(app: typer.Typer) -> None:
    command(app, "logs", panel=panels.RUNS)(logs)


def logs(
    session: Session,
    run: RunId,
    task: Annotated[int | None, typer.Option("--task", min=0, help="Only this task; otherwise all tasks.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue until the task or the run has ended.")
    ] = False,
) -> None:
    """What a run's tasks print.

    A terminal is shown control characters by signs; a pipe or file gets what the tasks wrote, byte for byte.
    """
    printer = _Printer(session, labels=task is None)
    streams: dict[str, LogStream] = {}
    known: set[tuple[int, int]] = set()  # (task, attempt) whose stream was found
    while True:
        view = session.api.describe_with_tasks(run)
        tasks = _wanted(view, task)
        unknown = [each for each in tasks if (each["index"], each["attempts"]) not in known]
        found = find_streams(session.access, view, unknown, warn)
        streams |= found
        indexes = {stream.index for stream in found.values()}
        known |= {(each["index"], each["attempts"]) for each in unknown if each["index"] in indexes}
        printer.new_lines(streams.values())
        ended = view["status"] in TERMINAL or all(t["status"] in ("SUCCEEDED", "FAILED") for t in tasks)
        if not follow or ended:
            break
        session.tools.sleep(FOLLOW_INTERVAL_S)
    if follow and streams:
        session.tools.sleep(LATE_LINES_S)
        printer.new_lines(streams.values())
    if not printer.printed:
        raise _nothing(session, view, tasks, streams)


def _wanted(view: Mapping[str, Any], index: int | None) -> list[Any]:
    tasks = view["taskList"]
    if index is None:
        return [each for each in tasks if each["attempts"]][:STREAMS_LIMIT]
    if index >= len(tasks):
        raise CliError(f"{view['runId']} has tasks 0 to {len(tasks) - 1}; there is no task {index}.")
    return [tasks[index]]


def _nothing(session: Session, view: Any, tasks: list[Any], streams: dict[str, LogStream]) -> CliError:
    if not tasks or not any(each["attempts"] for each in tasks):
        step = session.again(f"watch {view['runId']}")
        return CliError("Nothing has been started yet, so nothing has been printed.", next_step=step)
    if streams:
        return CliError("The program has printed nothing so far.", next_step="--follow waits for lines")
    step = f"the streams are in the log group {session.deployment.log_group}"
    return CliError("It is no longer known which log belongs to an attempt that ended long ago.", next_step=step)


class _Printer:
    """Prints new lines of the streams in the order of time, each with its task's number when there are several."""

    def __init__(self, session: Session, labels: bool) -> None:
        self._session = session
        self._labels = labels
        self.printed = 0  # lines

    def new_lines(self, streams: Iterable[LogStream]) -> None:
        found = [(event["timestamp"], each.index, event["message"]) for each in streams for event in self._events(each)]
        for timestamp, index, message in sorted(found, key=lambda line: line[:2]):
            self._print(datetime.fromtimestamp(timestamp / 1000, UTC), index, message)
        self.printed += len(found)

    def _print(self, at: datetime, index: int, message: str) -> None:
        if self._session.wants_json:
            say(json.dumps({"timestamp": at.isoformat(), "task": index, "message": message}))
        else:
            label = f"[task {index}] " if self._labels else ""
            self._line(f"{at:%H:%M:%S} {label}{message.rstrip()}")

    def _line(self, text: str) -> None:
        if self._session.tools.is_terminal():
            say(text)
        else:
            typer.echo(text.encode("utf-8", "replace"))  # as the task wrote it, escape sequences included

    def _events(self, stream: LogStream) -> Iterator[Any]:
        """A stream that does not exist yet has no lines; the same token twice means the end."""
        client = self._session.client("logs", stream.region)
        while True:
            token = {"nextToken": stream.token} if stream.token else {}
            try:
                page = client.get_log_events(
                    logGroupName=stream.group, logStreamName=stream.name, startFromHead=True, **token
                )
            except Exception as fault:
                if error_code(fault) == "ResourceNotFoundException":
                    return
                raise
            yield from page["events"]
            if page["nextForwardToken"] == stream.token:
                return
            stream.token = page["nextForwardToken"]
