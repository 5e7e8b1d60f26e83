"""A demo's runs on an AWS in this process, followed to their end, with one instance interrupted in the middle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from argosy.cli import figures
from argosy.cli.outside_text import say
from argosy.cli.problems import WAIT_TIMED_OUT, CliError
from argosy.cli.session import Session
from argosy.client.aws_clients import Connection
from argosy.client.progress import TERMINAL

MIDDLE_S = 1.5  # an instance is taken away when its tasks have been running this long
TIME_LIMIT_S = 300.0  # far longer than it takes; a demo must not hang
LOOK_INTERVAL_S = 0.5
NOTICE_S = 4.0  # AWS gives 120 s; shortened so that a viewer sees the end of the instance
AGAIN_AFTER_S = 15.0  # if nothing was interrupted by then, the tasks had just ended: another instance is taken


class EmbeddedAws(Protocol):
    """An AWS that runs in this process."""

    endpoint_url: str  # http://127.0.0.1:PORT
    region: str

    def interrupt(self, instance_id: str, notice_s: float) -> None:
        """A spot interruption warning now, the end `notice_s` later. Raises KeyError, ValueError when the instance is
        gone."""


@contextmanager
def embedded_aws(processes: int, **options: Any) -> Iterator[EmbeddedAws]:
    """On entry it answers and has the deployment; on exit everything that it started is gone. Raises OSError.

    processes: how many tasks may really run at once on this machine. options: further ones of LocalOptions.
    """
    from argosy.local.cloud import LocalAws
    from argosy.local.options import LocalOptions

    with LocalAws(0, LocalOptions(processes=processes, **options)) as aws:
        yield aws


def session_in(session: Session, aws: EmbeddedAws) -> Session:
    """The same command, talking to the embedded AWS."""
    return Session(session.tools, Connection(endpoint_url=aws.endpoint_url, region=aws.region))


@dataclass
class StepLog:
    """Prints one line per step, with the time since the start; on standard error when the answer is JSON."""

    session: Session
    begun: float  # epoch seconds

    def step(self, text: str) -> None:
        since = figures.duration(self.session.tools.now() - self.begun)
        say(f"{since:>7}  {text}", err=self.session.wants_json)

    def welcome(self, aws: EmbeddedAws) -> None:
        self.step(f"local AWS at {aws.endpoint_url}: everything stays on this machine and is free")


class RunSupervisor:
    """Follows the runs, and takes away an instance that is busy with the first one. Times in seconds."""

    interrupts = True
    notice_s = NOTICE_S
    time_limit_s = TIME_LIMIT_S

    def __init__(self, session: Session, aws: EmbeddedAws, log: StepLog) -> None:
        self.session = session
        self._aws = aws
        self._log = log
        self._last_line = ""
        self._interrupted_at: float | None = None
        self.taken: list[str] = []  # ids of the instances that were taken away

    def until_ended(self, run_ids: Sequence[str]) -> list[Any]:
        """The final views in the order given. Raises CliError when they take too long."""
        tools = self.session.tools
        deadline = tools.now() + self.time_limit_s
        while True:
            views = [self.session.api.describe(run_id) for run_id in run_ids]
            self._tell(views)
            if all(view["status"] in TERMINAL for view in views):
                return views
            if self.interrupts and views[0]["status"] not in TERMINAL and not views[0]["interruptions"]:
                self._interrupt(run_ids[0])
            if tools.now() > deadline:
                raise CliError(f"The runs had not ended after {self.time_limit_s:.0f} s.", exit_code=WAIT_TIMED_OUT)
            tools.sleep(LOOK_INTERVAL_S)

    def busiest(self, view: Mapping[str, Any]) -> str | None:
        """The instance to take away, if it is time: `view` has the run's tasks."""
        return busiest_instance(view["taskList"])

    def _tell(self, views: Sequence[Mapping[str, Any]]) -> None:
        """One line for all runs, when tasks have ended or a status is new."""
        line = "; ".join(
            f"{view['name']} {view['status'].lower()} {view['tasks']['succeeded']}/{view['tasks']['total']}"
            + (f", {view['interruptions']} interrupted" if view["interruptions"] else "")
            for view in views
        )
        if self._last_line != line:
            self._last_line = line
            self._log.step(line)

    def _interrupt(self, run_id: str) -> None:
        """As AWS does it: a warning, then the end of the instance."""
        now = self.session.tools.now()
        if self._interrupted_at is not None and now < self._interrupted_at + AGAIN_AFTER_S:
            return
        busiest = self.busiest(self.session.api.describe_with_tasks(run_id))
        if busiest is None:
            return
        try:
            self._aws.interrupt(busiest, self.notice_s)
        except (KeyError, ValueError):
            return  # the instance has just ended; the next poll finds another
        self._interrupted_at = now
        self.taken.append(busiest)
        self._log.step(f"spot interruption: {busiest} will be interrupted in {self.notice_s:.0f} s (AWS gives 120 s)")


def busiest_instance(tasks: Sequence[Mapping[str, Any]]) -> str | None:
    """The instance with the most tasks in mid-work; among equals, the one with the most remaining work."""
    running: dict[str, list[float]] = {}
    for each in tasks:
        if each["status"] == "RUNNING" and each["instance"] and (each["seconds"] or 0.0) >= MIDDLE_S:
            running.setdefault(each["instance"], []).append(each["seconds"])
    return max(running, key=lambda name: (len(running[name]), -min(running[name])), default=None)


def download_results(inside: Session, view: Mapping[str, Any], folder: Path) -> Any:
    """Into an empty folder, since parts of an earlier demo must not be counted. Returns the manifest."""
    import shutil

    from argosy.client.results.files import download, result_files

    shutil.rmtree(folder, ignore_errors=True)
    files, manifest = result_files(inside.client("s3"), view, partial=False)
    download(inside.client("s3"), files, folder)
    return manifest
