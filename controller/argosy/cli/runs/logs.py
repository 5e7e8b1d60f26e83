"""The command `logs`: the output of the tasks of a run or of an environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import RunsOf
from argosy.cli.problems import CliError
from argosy.cli.session import Session, warn
from argosy.cli.typed_values import past_moment
from argosy.client.errors import error_code
from argosy.client.logs import LogStream, find_streams, stream_of
from argosy.client.progress import TERMINAL
from argosy.client.run_names import NamedRuns, runs_meant
from argosy.figures.markup import visible

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LineFilter:
    """The choice of lines. since: epoch seconds, 0 = all; last: how many matching lines of each stream at most, 0 =
    all."""

    since: float = 0.0
    last: int = 0
    pattern: Any = None  # compiled by RE2

    def matching(self, events: Iterable[Event]) -> Iterator[Event]:
        return (event for event in events if self.pattern is None or self.pattern.search(_in_utf8(event["message"])))


def _in_utf8(text: str) -> str:
    """RE2 takes no surrogates, which JSON may hold."""
    return text.encode("utf-8", "replace").decode()


@lru_cache(4096)
def _head(epoch_s: int, label: str) -> str:
    return f"{datetime.fromtimestamp(epoch_s, UTC):%H:%M:%S} {label}"


AT_ONCE = 10_000  # lines that are written together
_Line = tuple[int, LogStream, str]  # epoch milliseconds, its stream, text


def _lines(stream: LogStream, page: list[Event]) -> list[_Line]:
    return [(event["timestamp"], stream, event["message"]) for event in page]


class LinePrinter:
    """Prints new lines of streams."""

    def __init__(self, session: Session, lines: LineFilter, labels: bool) -> None:
        self._session, self._lines, self._labels = session, lines, labels
        self.printed = 0  # lines
        self.kept: list[dict[str, Any]] = []  # lines of one document with --json

    def new_lines(self, streams: Iterable[LogStream]) -> None:
        """Lines of one stream are printed page by page; those of several are sorted by time."""
        streams = list(streams)
        if len(streams) == 1:
            for page in self._pages(streams[0]):
                self._print(_lines(streams[0], page))
            return
        found = [line for each in streams for page in self._pages(each) for line in _lines(each, page)]
        self._print(sorted(found, key=lambda line: (line[0], line[1].run, line[1].index)))

    def _print(self, found: list[_Line]) -> None:
        self.printed += len(found)
        if self._session.wants_json:
            for line in found:
                self._print_json(*line)
            return
        for begin in range(0, len(found), AT_ONCE):
            self._write(self._texts(found[begin : begin + AT_ONCE]))

    def _print_json(self, timestamp_ms: int, stream: LogStream, message: str) -> None:
        of = {"runId": stream.run} if stream.run else {}
        at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
        line = {"timestamp": at.isoformat(), **of, "task": stream.index, "message": message}
        self._session.print_json_line(line) if self._session.wants_lines else self.kept.append(line)

    def _texts(self, found: Iterable[_Line]) -> list[str]:
        labels = {id(each): self._label(each) for each in {id(line[1]): line[1] for line in found}.values()}
        return [_head(at // 1000, labels[id(stream)]) + message.rstrip() for at, stream, message in found]

    def _label(self, stream: LogStream) -> str:
        run = f"{stream.run} " if stream.run else ""
        return f"[{run}task {stream.index}] " if self._labels else ""

    def _write(self, lines: list[str]) -> None:
        if self._session.tools.is_terminal():
            typer.echo("\n".join(map(visible, lines)))
        else:
            typer.echo("\n".join(lines).encode("utf-8", "replace"))  # as the task wrote it, escape sequences included

    def _pages(self, stream: LogStream) -> Iterator[list[Event]]:
        """Its new lines that are shown."""
        last = 0 if stream.token else self._lines.last
        if last and self._lines.pattern is None:
            yield self._page(stream, startFromHead=False, limit=last)
            return
        pages = map(self._lines.matching, self._all(stream))
        yield from [list(deque(chain.from_iterable(pages), last))] if last else map(list, pages)

    def _all(self, stream: LogStream) -> Iterator[list[Event]]:
        """The next page is on its way while one is printed. The same token twice means the end."""
        with ThreadPoolExecutor(1) as reader:
            token, page = stream.token, self._page(stream)
            while token != stream.token:
                token, coming = stream.token, reader.submit(self._page, stream)
                yield page
                page = coming.result()
            yield page

    def _page(self, stream: LogStream, **options: Any) -> list[Event]:
        """A stream that does not exist yet has no lines."""
        request: dict[str, Any] = {"startFromHead": True, **options}
        if stream.token:
            request["nextToken"] = stream.token
        elif self._lines.since:
            request["startTime"] = int(self._lines.since * 1000)
        try:
            page = self._session.client("logs", stream.region).get_log_events(
                logGroupName=stream.group, logStreamName=stream.name, **request
            )
        except Exception as fault:
            if error_code(fault) == "ResourceNotFoundException":
                return []
            raise
        stream.token = page["nextForwardToken"]
        return list(page["events"])


FOLLOW_INTERVAL_S = 2.0
LATE_LINES_S = 4.0  # the log driver may deliver a task's last lines shortly after its end
MOST_RUNS = 5  # of an environment, the newest: more are seldom open, and ECS lists ended tasks for an hour
STREAMS_LIMIT = 100  # without --task: as many tasks as a person might read
MOST_LINES = 10_000  # of --tail: the lines of one call of GetLogEvents
SUCCEEDED, CANCELLED = "SUCCEEDED", "CANCELLED"
FAILED = ("FAILED",)
ENDED = (SUCCEEDED, *FAILED, CANCELLED)  # of a task
RUNNING = ("STARTING", "RUNNING", "VERIFYING")
Streams = dict[str, LogStream]


def register(app: typer.Typer) -> None:
    command(app, "logs", panel=panels.RUNS, as_lines=True)(logs)


@dataclass(frozen=True)
class LogOptions:
    """The tasks whose lines are shown."""

    task: Annotated[int | None, typer.Option("--task", min=0, help="Only this task. [default: all tasks]")] = None
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="Only this attempt of the task.")] = None
    failed: Annotated[bool, typer.Option("--failed", help="Only the attempts that failed last.")] = False


@dataclass(frozen=True)
class Filter:
    """The lines to show."""

    tail: Annotated[
        int | None, typer.Option("--tail", min=1, max=MOST_LINES, help="Only the last lines of each log.")
    ] = None
    since: Annotated[str | None, typer.Option("--since", help="Only lines since: 90s, 10m, 2h, 1d, or a time.")] = None
    grep: Annotated[str | None, typer.Option("--grep", metavar="RE", help="Only lines that match.")] = None

    def lines(self, now: float) -> LineFilter:
        """Raises CliError."""
        since = past_moment(self.since, now) if self.since else 0.0
        return LineFilter(since, self.tail or 0, None if self.grep is None else _compiled(self.grep))


def _compiled(text: str) -> Any:
    """By RE2, in time that is linear in the line: a task's line could keep Python's engine at work forever. Raises
    CliError."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as fault:
        said = fault.args[0].decode() if isinstance(fault.args[0], bytes) else fault
        raise CliError(f"--grep {text} is not a regular expression of RE2: {said}.") from fault


def logs(
    session: Session,
    run: RunsOf,
    which: LogOptions,
    lines: Filter,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue until the task or the run has ended.")
    ] = False,
) -> None:
    """What the tasks of a run or an environment print.

    A terminal shows control characters as signs; a pipe or file gets the tasks' output byte for byte. Of one
    task, every attempt is found, however long ago it ended. Lines of an environment name their runs.
    """
    if which.attempt is not None and which.task is None:
        raise CliError("--attempt needs a task.", next_step="add --task N")
    if follow and session.wants_json and not session.wants_lines:
        raise CliError("--follow prints one document per line.", next_step="take --json-lines")
    meant = runs_meant(session.api, run)
    run, look = meant.ids[0], _look(session, meant, which)
    printer = LinePrinter(session, lines.lines(session.tools.now()), labels=which.task is None)
    while True:
        look.again()
        printer.new_lines(look.streams.values())
        if not follow or look.ended:
            break
        session.tools.sleep(FOLLOW_INTERVAL_S)
    if follow and look.streams:
        session.tools.sleep(LATE_LINES_S)
        printer.new_lines(look.streams.values())
    if session.wants_json and not session.wants_lines:
        session.print_json({"lines": printer.kept})
    if not printer.printed:
        raise _nothing(session, run, look)


def _look(session: Session, meant: NamedRuns, which: LogOptions) -> _Task | _Tasks | _Environment:
    if which.task is not None:
        return _Task(session, meant.ids[0], which)
    if meant.environment:
        return _Environment(session, meant.environment, which.failed)
    return _Tasks(session, meant.ids[0], which.failed)


class _Task:
    """The streams of one task, from DescribeTask."""

    def __init__(self, session: Session, run: str, which: LogOptions) -> None:
        self._session, self._run, self._which = session, run, which
        self.streams: Streams = {}
        self.started = self.ended = False

    def again(self) -> None:
        """Raises CliError when there is no such attempt."""
        assert self._which.task is not None
        reply = self._session.api.task(self._run, self._which.task)
        chosen = self._chosen(reply["attempts"])
        self.started = self.started or bool(reply["attempts"])
        self.ended = reply["status"] in ENDED or bool(chosen and self._is_fixed and chosen["stoppedAt"])
        stream = stream_of(self._session.access, reply["index"], chosen) if chosen else None
        if stream is not None:
            self.streams.setdefault(stream.name, stream)

    @property
    def _is_fixed(self) -> bool:
        return self._which.attempt is not None or self._which.failed

    def _chosen(self, attempts: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        number, index = self._which.attempt, self._which.task
        if self._which.failed:
            attempts = [each for each in attempts if each["outcome"] not in (None, SUCCEEDED, CANCELLED)]
            if not attempts:
                raise CliError(f"No attempt of task {index} has failed.")
        known = [each["attempt"] for each in attempts]
        if number is not None:
            attempts = [each for each in attempts if each["attempt"] == number]
            if not attempts:
                shown = ", ".join(map(str, known)) or "none"
                raise CliError(f"Task {index} has no attempt {number}; its attempts: {shown}.")
        return attempts[-1] if attempts else None


class _Tasks:
    """The streams of up to a hundred tasks: running ones, then failed ones, then others that ended within the hour for
    which ECS lists them. That takes four calls of the api, whatever the size of the run."""

    def __init__(self, session: Session, run: str, failed: bool) -> None:
        self._session, self._run, self._failed = session, run, failed
        self._has_told = False
        self._known: set[tuple[int, int]] = set()  # (task, attempt) whose stream was found
        self.streams: Streams = {}
        self.started = self.ended = False

    def again(self) -> None:
        """Raises CliError when failures are requested and nothing has failed."""
        view = self._failures() if self._failed else self._running_first()
        tasks = [each for each in view["taskList"] if each["attempts"]][:STREAMS_LIMIT]
        unknown = [each for each in tasks if (each["index"], each["attempts"]) not in self._known]
        found = find_streams(self._session.access, view, unknown, warn)
        self.streams |= found
        indexes = {stream.index for stream in found.values()}
        self._known |= {(each["index"], each["attempts"]) for each in unknown if each["index"] in indexes}
        self.started = bool(tasks)
        self.ended = view["status"] in TERMINAL or all(task["status"] in ENDED for task in tasks)

    def _running_first(self) -> dict[str, Any]:
        """The run's view with as many tasks as are shown; one message counts those that are left out."""
        api = self._session.api
        view = api.describe(self._run)
        rows = list[dict[str, Any]]()
        for status in (RUNNING, FAILED, (SUCCEEDED, CANCELLED)):
            found = api.tasks(STREAMS_LIMIT - len(rows), runId=self._run, status=list(status))
            rows += found["tasks"]
            if found["nextToken"] or len(rows) >= STREAMS_LIMIT:
                self._tell_of_others(view["tasks"], len(rows))
                break
        return {**view, "taskList": sorted(rows, key=lambda each: each["index"])}

    def _tell_of_others(self, counts: Mapping[str, int], shown: int) -> None:
        others = counts["total"] - counts["pending"] - shown
        if others > 0 and not self._has_told:
            self._has_told = True
            warn(f"{others:,} other tasks are left out: --task N shows one of them, --failed the latest failures.")

    def _failures(self) -> dict[str, Any]:
        """The run's view with its latest failures in place of its tasks."""
        view = self._session.api.describe(self._run)
        if not view["failures"]:
            raise CliError("No attempt has failed.")
        rows = [
            {"index": each["index"], "attempts": each["attempt"], "taskArn": each["taskArn"], "status": "FAILED"}
            for each in view["failures"]
        ]
        return {**view, "taskList": rows}


class _Environment:
    """The streams of the newest runs of an environment, including runs that start while it is followed."""

    def __init__(self, session: Session, name: str, failed: bool) -> None:
        self._session, self._name, self._failed = session, name, failed
        self._looks: dict[str, _Tasks] = {}

    def again(self) -> None:
        """Raises CliError when failures are requested and nothing has failed."""
        for run in runs_meant(self._session.api, self._name).ids[:MOST_RUNS]:
            self._looks.setdefault(run, _Tasks(self._session, run, self._failed))
        refused = None
        for run, look in self._looks.items():
            try:
                look.again()
            except CliError as nothing:
                refused = nothing
            for stream in look.streams.values():
                stream.run = run
        if refused is not None and not self.started:
            raise refused

    @property
    def streams(self) -> Streams:
        return {name: stream for look in self._looks.values() for name, stream in look.streams.items()}

    @property
    def started(self) -> bool:
        return any(look.started for look in self._looks.values())

    @property
    def ended(self) -> bool:
        return all(look.ended for look in self._looks.values())


def _nothing(session: Session, run: str, look: _Task | _Tasks | _Environment) -> CliError:
    if not look.started:
        step = session.again(f"watch {run}")
        return CliError("No task has started yet, so there are no logs.", next_step=step)
    if look.streams:
        return CliError("No matching log lines yet.", next_step="--follow waits for lines")
    if isinstance(look, _Task):
        return CliError("No ECS task of that attempt is known: it may never have started.")
    return CliError(
        "The logs of attempts that ended long ago can no longer be found.",
        next_step=session.again(f"logs {run} --task N"),
    )
