"""Do gangs start, stop and restart as one?

S6, judged by what is stored and by what runs: all intents of a gang are in one commit, with one attempt number, on
distinct instances of one zone. No member starts while one of another attempt runs. When not all members run after
`startWithinSeconds` and a minute, or one has ended, the others have been asked to stop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from argosy.messages.ecs import key_of_task
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.tasks import TaskStatus
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]
GRACE_S = 60.0
BROKEN_S = 60.0  # from the commit that stores the end of a member to the one that stores the stop of the others


class GangChecker(Checker):
    """Intents, starts and stops of members."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.started = self.restarted = 0
        """Gangs that were started, and those of them that were started again."""
        self._since: dict[tuple[str, int], float] = {}
        """By gang, the time of its intents."""
        self._broken: dict[tuple[str, int], float] = {}
        """By gang, the time of the commit that first lacked one of its members."""
        self._arns: defaultdict[tuple[str, int], dict[str, AttemptKey]] = defaultdict(dict)

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "run_task"): self._launched}

    def committed(self, commit: Commit) -> None:
        fresh = defaultdict[tuple[str, int], list[StoredAttempt]](list)
        for intent in commit.intents:
            if size := self._size(intent.key.run_id):
                fresh[intent.key.run_id, intent.key.index // size].append(intent)
        for gang, its in fresh.items():
            self._is_whole(gang, its)
        if self.facts.stored.version != commit.version_before:
            self._are_together()

    def _size(self, run_id: str) -> int:
        """0 = it has no gangs, or is not known."""
        job = self.facts.jobs.get(run_id)
        return int(job.spec.get("gang", {}).get("size", 0)) if job is not None else 0

    def _is_whole(self, gang: tuple[str, int], its: list[StoredAttempt]) -> None:
        run_id, number = gang
        self.started += 1
        self.restarted += any(each.key.attempt > 1 for each in its)
        self._since[gang] = self.facts.world.now
        stored = self.facts.stored.instances
        hosts = {each.instance for each in its}
        zones = {stored[name]["zone"] for name in hosts if name in stored}
        if len(its) != self._size(run_id) or len({each.key.attempt for each in its}) > 1:
            self._violated(gang, f"{len(its)} intents of gang {number} are stored together: {[e.key for e in its]}")
        elif len(hosts) != len(its) or len(zones) > 1:
            self._violated(gang, f"gang {number} is on {sorted(hosts)} in {sorted(zones)}")

    def _launched(self, request: JSON, reply: JSON) -> None:
        key = key_of_task(request)
        size = self._size(key.run_id) if key is not None else 0
        if key is None or not size:
            return
        gang = key.run_id, key.index // size
        for task in reply["tasks"]:
            for arn, other in self._arns[gang].items():
                if other.attempt != key.attempt and self._runs(arn):
                    self._violated(gang, f"{key} starts while {other} runs", task["taskArn"], arn)
            self._arns[gang][task["taskArn"]] = key

    def _is_at_work(self, gang: tuple[str, int], each: StoredAttempt) -> bool:
        """One whose end the controller has heard may be stored as running until the cause is known."""
        arns = (arn for arn, key in self._arns[gang].items() if key == each.key)
        return each.status == AttemptStatus.RUNNING and any(map(self._runs, arns))

    def _runs(self, arn: str) -> bool:
        task = self.facts.regions.task(arn)
        agent = self.facts.regions.agent(task.instance.ec2_instance_id) if task else None
        return agent is not None and arn in agent.tasks

    def _are_together(self) -> None:
        """Of each live gang, by the stored state."""
        live = defaultdict[tuple[str, int], list[StoredAttempt]](list)
        for each in self.facts.stored.live.values():
            if size := self._size(each.key.run_id):
                live[each.key.run_id, each.key.index // size].append(each)
        for gang in [*self._broken]:
            if gang not in live:
                del self._broken[gang]
        for gang, its in live.items():
            self._is_together(gang, its)

    def _is_together(self, gang: tuple[str, int], its: list[StoredAttempt]) -> None:
        (run_id, number), now, size = gang, self.facts.world.now, self._size(gang[0])
        record, table = self.facts.stored.records.get(run_id), self.facts.stored.tables.get(run_id)
        if record is None or table is None or record.suspended_at or self.facts.damaged:
            self._broken.pop(gang, None)
            return
        rows = table[number * size : (number + 1) * size]
        well = sum(row[0] == TaskStatus.VERIFYING for row in rows)
        running = sum(each.status == AttemptStatus.RUNNING for each in its)
        unasked = [each for each in its if each.stop_cause == StopCause.NONE and self._is_at_work(gang, each)]
        within_s = float(self.facts.jobs[run_id].spec["gang"]["startWithinSeconds"])
        slack_s = self.facts.clocks_differ_s + self.facts.stands_still_s
        if unasked and running + well < size:
            late_s = now - self._since.get(gang, now) - within_s - GRACE_S - slack_s
            if late_s > 0:
                self._violated(gang, f"gang {number} runs in part {late_s:.0f} s longer than it may")
        if len(its) + well >= size:
            self._broken.pop(gang, None)
        elif unasked and now - self._broken.setdefault(gang, now) > BROKEN_S + slack_s:
            self._violated(gang, f"gang {number} lacks a member since {self._broken[gang]:.0f}, and runs")

    def _violated(self, gang: tuple[str, int], sentence: str, *names: str) -> None:
        self.facts.violated("S6", sentence, gang[0], *names)
