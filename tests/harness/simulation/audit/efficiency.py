"""Is every call and every order needed?

`repeated`: no call is repeated repeatedly with the same request, and nothing is stored again unchanged. `awake`:
no controller works on after everything has ended. `order`: one controller raises no fleet above the tasks that need it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from argosy.engine.report import TickReport
from argosy.model.tasks import TERMINAL
from tests.harness.simulation.audit.facts import Checker, EffectCheck, Operation, TrialFacts, TrialResults
from tests.harness.simulation.world.workload import MOST_PLAIN, PLAIN_MIB, VCPUS

JSON = dict[str, Any]

ONCE_IN_S = {  # seconds between equal calls, on average: stops are repeated once a minute
    ("ecs", "stop_task"): 45.0,
    ("ecs", "deregister_task_definition"): 45.0,
    ("ec2", "modify_fleet"): 20.0,
    ("ec2", "terminate_instances"): 20.0,
    ("ec2", "describe_fleet_history"): 45.0,
}
FREE = 6  # extra calls that lost replies and crashes explain; several controllers may each get no reply
ABSENT_S = 300.0  # between two ticks; a trial's steps are shorter
AWAKE_S = 900.0  # sweeps that confirm that nothing is left, at the longest pauses between steps


class EfficiencyChecker(Checker):
    """Calls and orders without a reason."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._first_at: dict[str, float] = {}  # by call
        self._times: dict[str, int] = {}
        self._quiet_since: float | None = None
        self._ticked_at = -math.inf
        self._targets: dict[str, int] = {}  # by fleet id, before this change

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {operation: self._checked(operation) for operation in ONCE_IN_S}

    def ticked(self, report: TickReport, version: int | None) -> None:
        """A controller that was not called for a long time has not worked: the rule of its ticks may be off."""
        now = self.facts.world.now
        if now - self._ticked_at > ABSENT_S:
            self._quiet_since = None
        self._ticked_at = now

    def time_passed(self) -> None:
        if self._is_quiet():
            self._quiet_since = self._quiet_since or self.facts.world.now
        else:
            self._quiet_since = None

    def at_rest(self, rest: TrialResults) -> None:
        awake_s = self.facts.world.now - max(self._quiet_since or self.facts.world.now, self.facts.faults_ended_at)
        alone = rest.controllers == 1 and len(self.facts.regions.worlds) == 1
        if awake_s > AWAKE_S and alone and not self.facts.torn_down:
            self.facts.violated("awake", f"controllers worked on for {awake_s:.0f} s with nothing to wait for")

    def _checked(self, operation: Operation) -> EffectCheck:
        def check(request: JSON, reply: JSON) -> None:
            self._count(operation, request)
            if operation == ("ec2", "modify_fleet"):
                self._check_order(request["FleetId"])

        return check

    def _count(self, operation: Operation, request: JSON) -> None:
        """The number of calls, and the time since the first."""
        call, now = f"{operation[1]} {json.dumps(request, default=str, sort_keys=True)}", self.facts.world.now
        first_at = self._first_at.setdefault(call, now)
        times = self._times[call] = self._times.get(call, 0) + 1
        free = FREE if self.facts.one_controller else 4 * FREE
        if times > free + (now - first_at) / ONCE_IN_S[operation]:
            self.facts.violated("repeated", f"{times} times within {now - first_at:.0f} s: {call[:200]}")

    def _check_order(self, fleet_id: str) -> None:
        """The raise of the fleet, compared with the instances filled by tasks without a sound one.
        Instances that the fleet owed before are left out: members it was believed to have may have ended unnoticed.
        """
        facts = self.facts
        fleet = facts.regions.fleet(fleet_id)
        before, self._targets[fleet_id] = self._targets.get(fleet_id, 0), fleet.total_target
        missing = fleet.total_target - max(before, len(fleet.members))
        if not facts.one_controller or missing <= 0:
            return
        need = sum(map(self._instances_for, facts.stored.records)) + facts.stored.floor.instances
        need += facts.spare_places
        if missing > need:
            facts.violated("order", f"{missing} instances are ordered, for tasks that fill {need}", fleet_id)

    def _instances_for(self, run_id: str) -> int:
        """The number of instances filled by tasks of the run that are not done and run on no instance that stays."""
        stored = self.facts.stored
        if self.facts.jobs[run_id].is_daemon:
            return 0  # nothing is bought for one
        unfinished = sum(row[0] not in TERMINAL for row in stored.tables[run_id])
        served = sum(each.key.run_id == run_id and self._stays(each.instance) for each in stored.live.values())
        return math.ceil(max(0, unfinished - served) / self._at_least_fit(self.facts.spec_of(run_id)))

    def _at_least_fit(self, spec: Mapping[str, Any]) -> int:
        """The minimum number of tasks on an instance of a trial; 1 if more than cpu may decide that."""
        needs = spec.get("resources", {})
        is_plain = not any(job.is_daemon for job in self.facts.jobs.values())
        is_plain = is_plain and not {"placement", "gang"} & spec.keys() and needs.get("memory") == PLAIN_MIB
        is_plain = is_plain and not (needs.get("gpus") or needs.get("gpuShare"))
        mosts = [tasks for _, tasks in self.facts.policy.most_tasks_by_type]
        return max(1, min([int(VCPUS // needs["vcpus"]), MOST_PLAIN, *mosts])) if is_plain else 1

    def _stays(self, instance_id: str) -> bool:
        each = self.facts.stored.instances.get(instance_id)
        return each is not None and each["status"] == "ACTIVE" and not (each["interrupted_at"] or each["cordon"])

    def _is_quiet(self) -> bool:
        """Whether every submitted run has ended, and no instance of ours is alive or requested."""
        facts = self.facts
        done = len(facts.stored.records) == len(facts.jobs)
        environments = facts.stored.environments.values()
        services = any(not env.is_daemon for env in environments)
        done = done and not (services or facts.stored.floor.instances)
        kept = {run_id for env in environments if not env.deleting for run_id in env.all_runs()}
        ended = all(
            record.has_ended or (record.is_daemon and not (record.suspended_at and record.id in kept))
            for record in facts.stored.records.values()
        )
        asked = any(fleet.total_target for fleet in facts.regions.fleets() if fleet.is_live and fleet.tags)
        return done and ended and not asked and not facts.regions.ours()
