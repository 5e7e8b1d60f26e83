"""A task on its instance: it is pulled, starts, and ends or is stopped; ECS hears of each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from argosy.emulator.ec2.records import Ec2Instance
from argosy.emulator.ecs.container_health import HealthWatch
from tests.harness.simulation.world.saving import SavingAttempt

JSON = dict[str, Any]
SIGTERM_CODE, SIGKILL_CODE = 143, 137


@dataclass(frozen=True, slots=True)
class TaskBehaviour:
    """A task's behaviour unless it is stopped; all times in seconds."""

    duration_s: float = 60.0
    """From RUNNING to the end; infinite = it runs until it is stopped."""
    exit_code: int | None = 0
    reason: str | None = None
    """The container's own, e.g. "OutOfMemoryError: Container killed due to memory usage"."""
    pull_s: float = 2.0
    cannot_start: str | None = None
    """The reason why it never runs, e.g. "CannotPullContainerError: ..."."""
    obeys_s: float | None = 0.5
    """From SIGTERM to its end; None = it ignores SIGTERM and is killed (137) at the stop time-out."""
    obeys_with: int = SIGTERM_CODE
    """The exit code with which it answers SIGTERM."""
    is_well: Callable[[float], bool] | None = None
    """What its health command reports this many seconds after its start; None = healthy."""
    at_the_end: Callable[[], None] | None = None
    """What it does last, unless it is stopped before: it writes its result."""
    saves: SavingAttempt | None = None
    """Its checkpoints: `duration_s` is then what all of its attempts have to work together."""


Workload = Callable[[JSON, Ec2Instance], TaskBehaviour]
"""(task as DescribeTasks shows it, the instance it is on) -> its behaviour."""


class TaskAgent(Protocol):
    """The agent's functions that a task needs."""

    def clock(self) -> float:
        """Epoch seconds."""

    def later(self, delay_s: float, do: Callable[[], None]) -> None:
        """Call `do` after that time."""

    def report(self, change: JSON) -> None:
        """Tell ECS."""

    def pull_left_s(self, image: str, whole_s: float) -> float:
        """How long the image's pull takes, less what is done."""

    def pulled(self, image: str) -> None:
        """It is there from now on."""

    def free_port(self, arn: str, number: int) -> int:
        """Port of its instance for one of a task's ports; always the same one."""

    def report_health(self, arn: str, container: str, status: str) -> None:
        """Report to ECS, if it can be reached."""

    def ended(self, arn: str) -> None:
        """The task with this ARN runs no longer."""

    def tells_pulls(self) -> bool:
        """Whether it reports a pull when that begins."""

    def stop_timeout_s(self) -> float:
        """For containers whose definition sets none."""


class VirtualTask:
    """One task on one instance."""

    def __init__(self, agent: TaskAgent, task: JSON, definition: JSON, behaviour: TaskBehaviour) -> None:
        self.task = task
        self.arn: str = task["taskArn"]
        self.over = False
        """It has ended, or its instance is gone: its planned steps do not happen any more."""
        self._agent = agent
        self._behaviour = behaviour
        self._definition = definition
        self._image = str(definition["containerDefinitions"][0]["image"])
        self._running = False
        self.pull_started_at = self.started_at = agent.clock()
        self._watches: dict[str, HealthWatch] = {}
        """By name of the container."""

    def begin(self) -> None:
        """The image is pulled first."""
        if self._agent.tells_pulls():
            self._agent.report({"task": self.arn, "status": "PENDING", "pullStartedAt": self.pull_started_at})
        self._later(self._agent.pull_left_s(self._image, self._behaviour.pull_s), self._pulled)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL at the stop time-out. A task that does not run yet ends without an exit code."""
        if not self._running:
            self._end(None, None, None)
        elif self._obeys_in_time():
            self._later(self._behaviour.obeys_s or 0.0, self._obey)
        else:
            self._later(self._stop_timeout_s(), lambda: self._end(SIGKILL_CODE, None, None))

    def vanish(self) -> None:
        """Its instance is gone: ECS gets no report."""
        self.over = True
        self._stop_working()

    def kill(self, exit_code: int) -> None:
        """Something other than ECS ends its container, if it runs. exit_code: of programs without one of their own."""
        if self._running and not self.over:
            clean = self._behaviour.obeys_with == 0 and exit_code != SIGKILL_CODE
            self._end(0 if clean else exit_code, None, None)

    @property
    def gpu_shared(self) -> str:
        """The id of the GPU that it shares with others while it runs; "" = there is none."""
        shares = [each for each in self.task["containers"] if each.get("gpuSharingStrategy") and self._running]
        return str(shares[0]["gpuIds"][0]) if shares and not self.over else ""

    def fail(self, exit_code: int, reason: str | None = None) -> None:
        """Its program fails, if it runs."""
        if self._running and not self.over:
            self._end(exit_code, reason, None)

    def _pulled(self) -> None:
        if self._behaviour.cannot_start is not None:
            self._end(None, self._behaviour.cannot_start, self._behaviour.cannot_start)
            return
        self._agent.pulled(self._image)
        self._running, self.started_at = True, self._agent.clock()
        pulled = {"pullStartedAt": self.pull_started_at, "pullStoppedAt": self._agent.clock()}
        self._agent.report({"task": self.arn, "status": "RUNNING", "containers": self._containers("RUNNING"), **pulled})
        for each in self._definition["containerDefinitions"]:
            if each.get("healthCheck"):
                self._watch(each["name"], HealthWatch(each["healthCheck"], self._agent.clock()))
        self._work()

    def _work(self) -> None:
        left_s, saves = self._behaviour.duration_s, self._behaviour.saves
        if saves is not None:
            left_s = max(0.0, left_s - saves.begin(self._agent.clock()))
            self._later(saves.order.every_s, lambda: self._save(saves))
        if left_s == 0.0:
            self._finish()
        elif left_s != float("inf"):
            self._later(left_s, self._finish)

    def _save(self, saves: SavingAttempt) -> None:
        """Its work so far is saved once it is uploaded, and again an interval after this save began."""
        done_s = saves.work_s(self._agent.clock())
        self._later(saves.upload_s, lambda: saves.save(done_s, self._agent.clock()))
        self._later(max(saves.order.every_s, saves.upload_s), lambda: self._save(saves))

    def _obey(self) -> None:
        """Its program has ended, and what it left is saved."""
        saves = self._behaviour.saves
        if saves is None:
            self._end(self._behaviour.obeys_with, None, None)
            return
        self._stop_working()
        self._later(saves.upload_s, lambda: self._leave(saves))

    def _leave(self, saves: SavingAttempt) -> None:
        saves.save(saves.work_s(self._agent.clock()), self._agent.clock())
        self._end(self._behaviour.obeys_with, None, None)

    def _stop_working(self) -> None:
        if self._behaviour.saves is not None:
            self._behaviour.saves.stop_working(self._agent.clock())

    def _obeys_in_time(self) -> bool:
        obeys_s, saves = self._behaviour.obeys_s, self._behaviour.saves
        return obeys_s is not None and obeys_s + (saves.upload_s if saves else 0.0) <= self._stop_timeout_s()

    def tell_health(self) -> None:
        """Its present state: ECS may have missed it."""
        for name, watch in self._watches.items():
            self._agent.report_health(self.arn, name, watch.status)

    def _watch(self, name: str, watch: HealthWatch) -> None:
        self._watches[name] = watch
        began = self._agent.clock()

        def ask() -> None:
            now = self._agent.clock()
            well = self._behaviour.is_well is None or self._behaviour.is_well(now - began)
            if watch.note(well, now):
                self._agent.report_health(self.arn, name, watch.status)
            self._later(watch.interval_s, ask)

        self._later(watch.interval_s, ask)

    def _finish(self) -> None:
        if self._behaviour.at_the_end is not None:
            self._behaviour.at_the_end()
        if self._behaviour.saves is not None and self._behaviour.exit_code == 0:
            self._behaviour.saves.succeed(self._agent.clock())
        self._end(self._behaviour.exit_code, self._behaviour.reason, None)

    def _end(self, exit_code: int | None, reason: str | None, task_reason: str | None) -> None:
        self.over = True
        self._stop_working()
        self._agent.ended(self.arn)
        containers = self._containers("STOPPED", exit_code, reason)
        change: JSON = {"task": self.arn, "status": "STOPPED", "containers": containers}
        if self._running:
            change["executionStoppedAt"] = self._agent.clock()
        if task_reason is not None:
            change["reason"] = task_reason
        self._agent.report(change)

    def _containers(self, status: str, exit_code: int | None = None, reason: str | None = None) -> list[JSON]:
        """All containers change with the task."""
        change: JSON = {"status": status}
        if exit_code is not None:
            change["exitCode"] = exit_code
        if reason is not None:
            change["reason"] = reason
        if self._running:
            change["runtimeId"] = self.arn.rpartition("/")[2]
        bindings = {each["name"]: self._bindings(each) for each in self._definition["containerDefinitions"]}
        named = [{"containerName": each["name"], **change} for each in self.task["containers"]]
        return [{**each, **(bindings[each["containerName"]] if self._running else {})} for each in named]

    def _bindings(self, definition: JSON) -> JSON:
        """Like Docker: a free ephemeral port if none is named."""
        found = [
            {
                "bindIP": "0.0.0.0",
                "containerPort": each["containerPort"],
                "hostPort": each.get("hostPort") or self._agent.free_port(self.arn, number),
                "protocol": each.get("protocol", "tcp"),
            }
            for number, each in enumerate(definition.get("portMappings") or ())
        ]
        return {"networkBindings": found} if found else {}

    def _stop_timeout_s(self) -> float:
        timeouts = [each.get("stopTimeout") for each in self._definition["containerDefinitions"]]
        given = [float(each) for each in timeouts if each is not None]
        return max(given, default=self._agent.stop_timeout_s())

    def _later(self, delay_s: float, do: Callable[[], None]) -> None:
        def unless_over() -> None:
            if not self.over:
                do()

        self._agent.later(delay_s, unless_over)
