"""Are the metrics of a tick what is stored?

`figures`: the tasks that wait and run, the instances that live and the runs that are suspended, as a tick reports them
for its metrics and its log line, are those of the state that it has committed; and a controller that says that it is at
rest has nothing of ours left.
"""

from __future__ import annotations

from argosy.engine.report import TickReport
from argosy.model.instances import InstanceStatus
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import Checker


class FigureChecker(Checker):
    """Each report, against the stored state that it is about."""

    def ticked(self, report: TickReport, version: int | None) -> None:
        stored = self.facts.stored
        if version != stored.version or any(trouble.what == "a tick's report" for trouble in report.troubles):
            return  # another controller has committed since, or there are no figures
        said = (report.tasks_pending, report.tasks_running, report.instances)
        alive = sum(each["status"] != InstanceStatus.GONE for each in stored.instances.values())
        counted = (self._tasks(TaskStatus.PENDING), self._tasks(TaskStatus.RUNNING), alive)
        if said != counted:
            self.facts.violated("figures", f"pending, running, instances: {said} in the metrics, {counted} are stored")

    def _tasks(self, status: TaskStatus) -> int:
        stored = self.facts.stored
        suspended = stored.root.get("suspended", {})
        open_runs = [run_id for run_id, run in stored.records.items() if not run.has_ended and run_id not in suspended]
        return sum(row[0] == status for run_id in open_runs for row in stored.tables[run_id])
