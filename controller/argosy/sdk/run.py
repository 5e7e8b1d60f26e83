"""A run for Python programs: waiting for it, changing it, and reading its results."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from argosy.client import start_ups
from argosy.client.access import Access
from argosy.client.errors import ArgosyError, InvalidInput, error_code
from argosy.client.logs import LogStream, stream_of
from argosy.client.progress import TERMINAL
from argosy.client.task_indexes import stretches
from argosy.client.waiting import LOCAL_PROGRAM_S, RunPoller, interval_of
from argosy.sdk.errors import RunFailed, explained
from argosy.sdk.results import TaskResult, copied_results, frame_of, results_of, rows_of_run


def lines_of_task(access: Access, run_id: str, index: int, attempt: int | None) -> list[str]:
    """The lines of a task's attempt, as they were printed; empty while there are none. attempt: None = the last one.

    Raises ArgosyError if there is no such task or attempt.
    """
    with explained():
        reply = access.api.task(run_id, index)
        chosen = _chosen(reply["attempts"], index, attempt)
        stream = None if chosen is None else stream_of(access, index, chosen)
        return [] if stream is None else list(_lines(access, stream))


def _chosen(attempts: list[Mapping[str, Any]], index: int, number: int | None) -> Mapping[str, Any] | None:
    if number is None:
        return attempts[-1] if attempts else None
    for each in attempts:
        if each["attempt"] == number:
            return each
    known = ", ".join(str(each["attempt"]) for each in attempts) or "none"
    raise InvalidInput(f"Task {index} has no attempt {number}; its attempts: {known}.")


def _lines(access: Access, stream: LogStream) -> Iterator[str]:
    """The same token twice means the end."""
    place = {"logGroupName": stream.group, "logStreamName": stream.name, "startFromHead": True}
    while True:
        try:
            page = access.client("logs", stream.region).get_log_events(
                **place, **({"nextToken": stream.token} if stream.token else {})
            )
        except Exception as fault:
            if error_code(fault) == "ResourceNotFoundException":
                return  # it has printed nothing yet
            raise
        yield from (str(event["message"]) for event in page["events"])
        if page["nextForwardToken"] == stream.token:
            return
        stream.token = page["nextForwardToken"]


_IN_NOTEBOOKS = ("states", "seconds", "failures")


@dataclass(eq=False)
class RunHandle:
    """One run at the last refresh. `argosy.Run`; made by a client's `submit`, `run` and `runs`.

    view: DescribeRun's last reply. now, sleep: seconds, as of `time`.
    """

    access: Access
    view: Mapping[str, Any]
    now: Any = field(default=time.time, repr=False)
    sleep: Any = field(default=time.sleep, repr=False)

    @property
    def id(self) -> str:
        """Its id, which is also the name of its folder of results."""
        return str(self.view["runId"])

    @property
    def name(self) -> str:
        """Its name in the spec."""
        return str(self.view["name"])

    @property
    def status(self) -> str:
        """SUBMITTED, PROVISIONING, RUNNING, ... and at the end SUCCEEDED, PARTIAL, FAILED or CANCELLED."""
        return str(self.view["status"])

    @property
    def has_ended(self) -> bool:
        """Whether it is final, unless it is retried."""
        return self.status in TERMINAL

    @property
    def tasks(self) -> Mapping[str, int]:
        """How many there are in each state, and `total`."""
        tasks: Mapping[str, int] = self.view["tasks"]
        return tasks

    @property
    def cost(self) -> float:
        """US dollars so far."""
        return float(self.view["costUsd"])

    @property
    def output(self) -> str:
        """Its folder of results, `s3://.../`."""
        return str(self.view["output"])

    @property
    def warnings(self) -> list[str]:
        """Warnings that the deployment gave when it was submitted."""
        return [str(each) for each in self.view.get("warnings") or ()]

    def refresh(self) -> RunHandle:
        """Refresh it. Raises ArgosyError."""
        with explained():
            self.view = self.access.api.describe(self.id)
        return self

    def watch(self, timeout: float | None = None) -> Iterator[RunHandle]:
        """This run after each refresh, until it has ended. timeout: seconds. Raises `argosy.WaitTimedOut`, and
        ArgosyError if no
        deployment answers for a minute.
        """
        interval_s, limit = interval_of(self.access.connection.is_loopback, LOCAL_PROGRAM_S)
        poller = RunPoller(self.access.api.describe, self.now, self.sleep, interval_s, failures_limit=limit)
        with explained():
            for view in poller.views(self.id, timeout):
                self.view = view
                yield self

    def wait(self, timeout: float | None = None, check: bool = True) -> RunHandle:
        """Wait for its end. timeout: seconds. Raises `argosy.RunFailed` unless every task succeeded (check=False: it
        does not), and `argosy.WaitTimedOut`."""
        for _ in self.watch(timeout):
            pass
        return self._checked() if check else self

    def __await__(self) -> Generator[Any, None, RunHandle]:
        return self._ended().__await__()

    async def _ended(self) -> RunHandle:
        """Requests and pauses run in a thread; a cancelled wait ends after one of them."""
        looks = self.watch()
        while await asyncio.to_thread(next, looks, None) is not None:
            pass
        return self._checked()

    def _checked(self) -> RunHandle:
        if self.status != "SUCCEEDED":
            raise RunFailed(self)
        return self

    def cancel(
        self, reason: str | None = None, dependents: bool = False, *, indexes: Iterable[int] | None = None
    ) -> RunHandle:
        """End it: running tasks are stopped, and no other is started. dependents: also the runs that depend on it.
        indexes: only these tasks, at most 20; the run continues. Raises ArgosyError.
        """
        tasks = [] if indexes is None else stretches(indexes)
        if tasks or indexes is None:
            with explained():
                self.view = self.access.api.cancel(self.id, reason, dependents, tasks)
        return self

    def retry(
        self,
        failed: bool = True,
        cancelled: bool = False,
        budget: float | None = None,
        *,
        indexes: Iterable[int] | None = None,
        memory: int | None = None,
        vcpus: float | None = None,
        program: str | os.PathLike[str] | None = None,
    ) -> RunHandle:
        """Retry tasks that did not succeed; those that succeeded keep their results. budget: US dollars, of all its
        tries together.
        indexes: of these tasks only, whatever they ended as. memory, vcpus: of each task from now on, MiB and vCPUs.
        program: a folder, which is uploaded: these tasks run it as another version of the program. Without it they run
        the latest version. Raises ArgosyError.
        """
        tasks = None if indexes is None else stretches(indexes)
        given = {"tasks": tasks, "budgetUsd": budget, "memory": memory, "vcpus": vcpus}
        wanted: dict[str, Any] = {"failed": failed, "cancelled": cancelled}
        wanted |= {name: value for name, value in given.items() if value is not None}
        with explained():
            if program is not None:
                from argosy.client.packing.program import Packer

                wanted["job"] = Packer().repack(self.access.api.describe(self.id), Path(program), self.access)
            self.view = self.access.api.retry(self.id, wanted, uuid.uuid4().hex)
        return self

    def update(self, *, reason: str = "", **changes: Any) -> RunHandle:
        """Change its terms while it is open: `priority`, `queue`, `budget_usd`, `max_hourly_cost`, `deadline`,
        `max_instances`,
        `max_concurrent_tasks`; None removes a limit. It counts from the next tick on. Raises ArgosyError.
        """
        wanted = {_camel_case(name): value for name, value in changes.items()}
        with explained():
            self.view = self.access.api.update(self.id, wanted, reason, uuid.uuid4().hex)
        return self

    def explain(self, index: int | None = None) -> dict[str, Any]:
        """Why its tasks wait and what would help, ExplainRun's reply. index: of one of its tasks, whose own state is
        added, with the parts of its last attempt's start."""
        with explained():
            return start_ups.explained(self.access, self.id, index)

    def logs(self, index: int, attempt: int | None = None) -> list[str]:
        """The output of a task, line by line. attempt: from 1; None = the last one."""
        return lines_of_task(self.access, self.id, index, attempt)

    def results(self) -> Iterator[TaskResult]:
        """The results of each task, in their order. Raises ArgosyError before the run has ended."""
        return results_of(self.access, self.view)

    def download(self, folder: str | os.PathLike[str], *, flat: bool = False, partial: bool = False) -> list[Path]:
        """Copy the files of all tasks to `folder/000123/NAME` (flat: `folder/000123-NAME`), and return their paths.
        Those that an earlier call has copied are not copied again. partial: the existing ones, although the run is
        open. Raises ArgosyError and OSError."""
        return copied_results(self.access, self.view, Path(folder), flat, partial)

    def rows(self, partial: bool = False) -> Iterator[Any]:
        """All rows of all parts, in the order of the tasks. partial: the existing ones, although the run is open or
        some tasks have
        none. Raises ArgosyError.
        """
        return rows_of_run(self.access, self.view, partial)

    def dataframe(self, partial: bool = False) -> Any:
        """The rows as a pandas DataFrame. Raises `argosy.MissingPackage` without pandas (`argosy[frame]`)."""
        return frame_of(self.rows(partial))

    def attempts(self) -> list[dict[str, Any]]:
        """Every attempt that it had: index, attempt, outcome, exitCode, reason, instance, startedAt, stoppedAt and
        pullSeconds. Times are texts as in `argosy attempts --json`, None if there is none yet."""
        from argosy.figures.history import dated, rows_of_attempts

        with explained():
            return list(map(dated, rows_of_attempts(list(self._attempt_pages()))))

    def use(self) -> list[dict[str, Any]]:
        """What the attempts that were measured last used, 20 at most: index, attempt, meanVcpus, peakVcpus,
        peakMemoryMib, and the samples `at` (seconds after the start), `vcpus` and `memoryMib`. Raises ArgosyError."""
        from argosy.client.task_use import tasks_measured

        with explained():
            return [each.to_json() for each in tasks_measured(self.access, self.refresh().view)]

    def _attempt_pages(self) -> Iterator[dict[str, Any]]:
        token: str | None = None
        while True:
            page = self.access.api.attempts(self.id, token)
            yield page
            token = page["nextToken"]
            if token is None:
                return

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write its page, one file that loads nothing. Raises ArgosyError and OSError."""
        from argosy.figures.document import one_file

        made = f"{datetime.fromtimestamp(self.now(), UTC):%Y-%m-%d %H:%M} UTC · argosy report run {self.id}"
        file = Path(path)
        file.write_text(one_file(self._page(), made), encoding="utf-8")
        return file

    def _page(self) -> Any:
        from argosy.ui.deployment_reader import DeploymentReader, NoSuchPage

        try:
            with explained():
                return DeploymentReader(self.access, self.now).read_run(self.id)
        except NoSuchPage as why:
            raise ArgosyError(str(why)) from why

    def _repr_html_(self) -> str:
        from argosy.sdk.notebooks import notebook_html

        return notebook_html(self._page(), _IN_NOTEBOOKS)

    def _ipython_display_(self) -> None:
        from argosy.sdk.notebooks import show_live

        show_live(self)

    def __repr__(self) -> str:
        tasks = self.tasks
        return f"<argosy.Run {self.id} {self.status} {tasks['succeeded']:,}/{tasks['total']:,} succeeded>"


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
