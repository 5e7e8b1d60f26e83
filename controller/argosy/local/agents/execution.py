"""One ECS task, from its containers' start to its last state change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from argosy.client.entering.way_in import WayIn
from argosy.local.agents.health_watcher import HealthWatcher
from argosy.local.agents.log_shipper import LogRefusedError, LogShipper
from argosy.local.containers.container import HostSettings, LocalContainer, container_of
from argosy.local.containers.images import CannotPullError
from argosy.local.containers.process import Exit
from argosy.local.containers.runtime import Container, Runtime
from argosy.local.mps import MpsError
from argosy.model.run_terms import SERVICE_GROUP

FLUSH_S = 5.0  # how long a task's end may wait for its last log lines
NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One SubmitTaskStateChange. `containers` as the API has them."""

    task_arn: str
    status: str  # RUNNING | STOPPED
    containers: list[dict[str, Any]]
    reason: str | None = None
    impaired: str = ""  # what is wrong with a GPU of its instance
    pulled: tuple[float, float] | None = None  # begin and end of the pull of its images, epoch seconds


class TaskExecution:
    """One task's containers. `report` is called from several threads, in order: RUNNING (if it got that far),
    STOPPED."""

    def __init__(
        self,
        task: Mapping[str, Any],
        definition: Mapping[str, Any],
        report: Callable[[TaskReport], None],
        tell_health: Callable[[str, str, str], None] | None = None,
    ) -> None:
        """tell_health: receives a container's health, by the task's ARN and the container's name; None: health is not
        reported."""
        self.task_arn: str = task["taskArn"]
        self._task = task
        self._definition = definition
        self._report = report
        self._guard = threading.Lock()
        self._planned: list[LocalContainer] = []
        self._processes: dict[str, Container] = {}
        self._ended: dict[str, Exit] = {}
        self._lost: set[str] = set()  # names of those that ended with their GPU or its MPS daemon
        self._impaired = ""
        self._tell_health = tell_health
        self._watchers: dict[str, HealthWatcher] = {}
        self._silent = self._has_lines = False
        self._pull: tuple[float, float] | None = None
        self._told = False  # STOPPED is reported once
        self._started = threading.Event()  # RUNNING must be reported before STOPPED

    @property
    def serves(self) -> bool:
        """Whether it is a service's task, which never ends by itself, so that its end is not awaited."""
        return str(self._task.get("group", "")).startswith(SERVICE_GROUP)

    @property
    def lives(self) -> bool:
        """Whether one of its containers has not ended yet."""
        return bool(self._alive())

    def pull(self, runtime: Runtime) -> None:
        """Its images, one after the other. `start` reports what cannot be pulled."""
        began = time.time()
        with suppress(CannotPullError):
            for each in self._definition["containerDefinitions"]:
                runtime.pull(each["image"])
        self._pull = began, time.time()

    def start(self, runtime: Runtime, shipper: LogShipper, around: HostSettings) -> None:
        """Pull, then start every container; anything that fails becomes the task's last report."""
        try:
            definitions = self._definition["containerDefinitions"]
            self._planned = [
                container_of(each, self._task, runtime.pull(each["image"]), around) for each in definitions
            ]
            for each in self._planned:
                if each.log is not None:
                    shipper.open(*each.log)
        except CannotPullError as fault:
            return self.refuse(f"CannotPullContainerError: {fault}")
        except MpsError as fault:
            return self.refuse(f"ResourceInitializationError: {fault}")
        except (LogRefusedError, OSError) as fault:  # such as a full disk
            return self.refuse(f"ResourceInitializationError: failed to validate logger args: {fault}")
        for each in self._planned:
            self._launch(each, runtime, shipper)
        try:
            if any(name not in self._ended for name in self._processes):
                self._tell(TaskReport(self.task_arn, "RUNNING", self._containers("RUNNING"), pulled=self._pull))
                self._watch_health()
        finally:
            self._started.set()  # the thread that reports the end must not wait forever
        if any(each.essential and each.name in self._ended for each in self._planned):
            self.stop()  # an early container failed before the last one started
        self._end_if_over(shipper)
        return None

    def refuse(self, reason: str | None) -> None:
        """STOPPED without ever having run."""
        names = [each["name"] for each in self._definition["containerDefinitions"]]
        containers = [{"containerName": name, "status": "STOPPED"} for name in names]
        if reason is not None:
            containers[0]["reason"] = reason
        self._tell(TaskReport(self.task_arn, "STOPPED", containers, reason))

    def stop(self) -> None:
        """SIGTERM to every container, SIGKILL after its grace period."""
        for process in self._alive():
            process.stop()

    def kill(self) -> None:
        """The host is gone: end at once and report nothing."""
        self._silent = True
        for process in self._alive():
            process.kill()

    def join(self, timeout_s: float) -> None:
        """Wait for the containers' ends."""
        for process in list(self._processes.values()):
            process.join(timeout_s)
        for watcher in list(self._watchers.values()):
            watcher.join(timeout_s)

    def way_in(self, container: str) -> WayIn | None:
        """How a command gets into one of its containers; None for one that is not running."""
        process = self._processes.get(container)
        return None if process is None or container in self._ended else process.way_in()

    def _alive(self) -> Sequence[Container]:
        with self._guard:
            return [process for name, process in self._processes.items() if name not in self._ended]

    def _launch(self, each: LocalContainer, runtime: Runtime, shipper: LogShipper) -> None:
        def on_line(text: str) -> None:
            if each.log is not None:
                self._has_lines = True
                shipper.put(*each.log, text)

        def on_end(ended: Exit) -> None:
            self._started.wait()
            self._note_end(each, ended)
            self._end_if_over(shipper)

        try:
            self._processes[each.name] = runtime.start(each.program, on_line, on_end)
        except (OSError, IndexError) as fault:
            program = next(iter(each.program.arguments), "(none)")
            reason = f'CannotStartContainerError: exec: "{program}": {getattr(fault, "strerror", None) or fault}'
            self._note_end(each, Exit(NOT_FOUND, reason))

    def _watch_health(self) -> None:
        for each in self._planned:
            if each.health is not None and self._tell_health is not None:
                told = partial(self._tell_health, self.task_arn, each.name)
                watcher = HealthWatcher(each.health, partial(self.way_in, each.name), told)
                with self._guard:
                    self._watchers[each.name] = watcher
                    has_ended = each.name in self._ended
                if not has_ended:
                    watcher.start()

    def _note_end(self, each: LocalContainer, ended: Exit) -> None:
        gone = each.why_gone() if ended.exit_code else ""
        why_lost = gone or (each.why_lost() if ended.exit_code else "")
        with self._guard:
            self._impaired = gone or self._impaired
            self._ended[each.name] = Exit(ended.exit_code, why_lost) if why_lost else ended
            self._lost |= {each.name} if why_lost else set()
            watcher = self._watchers.get(each.name)
        if watcher is not None:
            watcher.stop()
        if each.essential:
            self.stop()  # the others

    def _end_if_over(self, shipper: LogShipper) -> None:
        with self._guard:
            if self._told or len(self._ended) < len(self._planned):
                return
            self._told = True
        if self._has_lines:
            shipper.flush(FLUSH_S)  # a task that is seen stopped has a complete log
        failed = next((ended.reason for ended in self._ended.values() if ended.exit_code == NOT_FOUND), None)
        self._tell(TaskReport(self.task_arn, "STOPPED", self._containers("STOPPED"), failed, self._impaired))

    def _containers(self, status: str) -> list[dict[str, Any]]:
        found = []
        for each in self._planned:
            ended = self._ended.get(each.name)
            entry: dict[str, Any] = {"containerName": each.name, "status": "STOPPED" if ended else status}
            if each.bindings:
                entry["networkBindings"] = [port.as_binding() for port in each.bindings]
            if ended is not None:
                if each.name not in self._lost:
                    entry["exitCode"] = ended.exit_code
                if ended.reason:
                    entry["reason"] = ended.reason
            found.append(entry)
        return found

    def _tell(self, report: TaskReport) -> None:
        if not self._silent:
            self._report(report)
