"""Does every launch start one task, once, where it may run?

Its task definition stays while a run needs it. D4: a launch is sent only after its intent was stored. I1: at most one
copy of an attempt runs. I5: no instance is over-committed, runs more tasks than its maximum, or gets a user's own
program without our runner. I10: work is placed on the deployment's own instances. R12: nothing is placed on, or sent
to, an instance with a warning. `kill`: nothing starts after teardown. `liveness`: no attempt is launched forever.
`definitions`: no definition that an open run is pinned to is deregistered; without faults, none of ours is active at
rest.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from argosy.messages.ecs import key_of_task
from argosy.model.attempts import AttemptKey, AttemptStatus
from argosy.model.run_terms import RUNNER_ATTRIBUTE
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts, TrialResults
from tests.harness.simulation.audit.stored_state import StoredAttempt

JSON = dict[str, Any]


MOST_LAUNCHES = 25  # launches of one attempt: every refusal and every doubt takes one, and the pauses grow to minutes


class LaunchChecker(Checker):
    """RunTask calls and the intents that they carry out."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.launches = 0
        """ECS tasks that were started."""
        self._unsent: set[AttemptKey] = set()
        self._suspended: set[str] = set()
        self._gave_way: set[AttemptKey] = set()
        """Runs that were suspended at some time."""
        self._copies: defaultdict[tuple[str, int, int], list[str]] = defaultdict(list)

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "run_task"): self._launched}

    def committed(self, commit: Commit) -> None:
        for intent in commit.intents:
            self._unsent.add(intent.key)
            self.facts.trail.add(self.facts.world.now, "intent stored", intent._asdict())
            self._check_intent(intent)
        if commit.intents:
            self._check_room()

    def _launched(self, request: JSON, reply: JSON) -> None:
        key = key_of_task(request)
        if key is None:
            return
        self._record(key, request, reply)
        if key not in self.facts.stored.intended:
            names = self.facts.names(key.run_id, key.index)
            self.facts.violated("D4", f"{key} was sent before its intent was stored", *names)
        self._check_target(key)
        for task in reply["tasks"]:
            if task["taskArn"] not in self._copies[key[:3]]:
                self._started(key, task["taskArn"])

    def _record(self, key: AttemptKey, request: JSON, reply: JSON) -> None:
        named = {"key": key, "token": request.get("clientToken"), "startedBy": request.get("startedBy")}
        named["pin"] = request["placementConstraints"]
        arns = [task["taskArn"] for task in reply["tasks"]]
        told = {**named, "tasks": arns, "failures": reply["failures"]}
        self.facts.trail.add(self.facts.world.now, "run_task starts or names", told)

    def _started(self, key: AttemptKey, arn: str) -> None:
        facts, copies = self.facts, self._copies[key[:3]]
        self.launches += 1
        if facts.torn_down:
            facts.violated("kill", f"{key} was started after the deployment was torn down", arn)
        if copies:
            facts.violated("I1", f"attempt {key[:3]} was started twice", arn, *copies)
        for earlier in facts.arns[key[:2]]:
            if self._really_runs(earlier):
                facts.violated("I1", f"task {key[:2]} runs while an earlier attempt still does", arn, earlier)
        copies.append(arn)
        facts.arns[key[:2]].append(arn)
        self._check_what_runs(arn)
        self._check_runner(key, arn)

    def _check_what_runs(self, arn: str) -> None:
        """The tasks on the instance that ECS has not ended, whatever is stored.
        Tasks of suspended runs count as below. Tasks of unreadable runs do not count: they are unknown until they are
        stopped.
        """
        task = self.facts.regions.task(arn)
        machine = self.facts.regions.find(task.instance.ec2_instance_id) if task else None
        if task is None or machine is None or self._suspended or self.facts.damaged:
            return
        running = sum((each.started_by or "").startswith("argosy-") for each in task.instance.tasks.values())
        self._check_most_tasks(machine.instance_id, machine.instance_type, running)

    def _check_runner(self, key: AttemptKey, arn: str) -> None:
        """A user's own program is placed only on instances that can start it."""
        job, task = self.facts.jobs.get(key.run_id), self.facts.regions.task(arn)
        agent = self.facts.regions.agent(task.instance.ec2_instance_id) if task else None
        needs_it = job is not None and "run" in job.spec
        if needs_it and agent is not None and RUNNER_ATTRIBUTE not in agent.behaviour.attributes:
            self.facts.violated("I5", f"{key} needs the runner, and its instance has none", arn)

    def _really_runs(self, arn: str) -> bool:
        """Whether the task's program is alive on its instance, whatever ECS says."""
        task = self.facts.regions.task(arn)
        agent = self.facts.regions.agent(task.instance.ec2_instance_id) if task else None
        return agent is not None and arn in agent.tasks

    def _check_target(self, key: AttemptKey) -> None:
        """An intent that was never sent is not sent to an instance whose warning is stored."""
        stored = self.facts.stored
        for live in stored.live.values():
            if live.key == key and live.status == AttemptStatus.INTENT and key in self._unsent:
                instance = stored.instances.get(live.instance)
                if instance is not None and instance["interrupted_at"]:
                    self.facts.violated("R12", f"{key} is sent to {live.instance}, which was warned", live.instance)
        self._unsent.discard(key)

    def _check_intent(self, intent: StoredAttempt) -> None:
        key, target = intent.key, intent.instance
        if key.launch > MOST_LAUNCHES:
            self.facts.violated("liveness", f"{key} was launched {key.launch} times without success", target)
        instance = self.facts.stored.instances.get(target)
        is_daemon = key.run_id in self.facts.stored.records and self.facts.stored.records[key.run_id].is_daemon
        sick = instance is None or instance["interrupted_at"] or instance["rebalance_at"]
        sick = sick or instance is None or (instance["cordon"] and not is_daemon)  # they run on all instances that stay
        if instance is None or sick or instance["status"] != "ACTIVE" or not instance["owned"]:
            invariant = "I10" if instance is None or not instance["owned"] else "R12"
            self.facts.violated(invariant, f"{key} is placed on {target}, which takes no work", target)

    def _check_room(self) -> None:
        """A launch in doubt that has given its place back does not count, nor do the attempts of suspended runs.
        Such a launch takes its place again when it turns out to have started. Whether it still runs is checked later.
        """
        stored = self.facts.stored
        self._suspended |= {run_id for run_id, record in stored.records.items() if record.suspended_at}
        self._gave_way |= {live.key for live in stored.live.values() if not live.instance}
        used: Counter[tuple[str, int]] = Counter()
        tasks: Counter[str] = Counter()
        for live in stored.live.values():
            if live.key.run_id in self._suspended or live.key in self._gave_way:
                continue
            tasks[live.instance] += 1
            record = stored.records.get(live.key.run_id)
            for axis, need in enumerate(record.needs[:3] if record else ()):
                used[live.instance, axis] += need
        for (instance_id, axis), amount in used.items():
            instance = stored.instances.get(instance_id)
            if instance is not None and instance["status"] != "GONE" and amount > instance["total"][axis]:
                self.facts.violated("I5", f"{instance_id} is over-committed", instance_id)
        for instance_id, count in tasks.items():
            instance = stored.instances.get(instance_id)
            if instance is not None and instance["status"] != "GONE":
                self._check_most_tasks(instance_id, instance["instance_type"], count)

    def _check_most_tasks(self, instance_id: str, instance_type: str, count: int) -> None:
        most = self.facts.policy.most_tasks_of(instance_type)
        if count > most:
            self.facts.violated("I5", f"{instance_id} has {count} tasks, its most is {most}", instance_id)


_OURS = re.compile(r".*-[0-9a-f]{12}")


class DefinitionChecker(Checker):
    """DeregisterTaskDefinition calls, and the definitions that are left."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "deregister_task_definition"): self._deregistered}

    def at_rest(self, rest: TrialResults) -> None:
        if self.facts.torn_down or not self.facts.nothing_goes_wrong:
            return
        for family, revisions in self.facts.world.ecs.ledger.definitions.items():
            for revision in revisions:
                if _OURS.fullmatch(family) and revision.status == "ACTIVE":
                    self.facts.violated("definitions", f"{revision.arn} is active at rest", revision.arn)

    def _deregistered(self, request: JSON, reply: JSON) -> None:
        facts, arn = self.facts, reply["taskDefinition"]["taskDefinitionArn"]
        if not facts.one_controller:
            return  # a controller that was overtaken carries out what it committed before
        for record in facts.stored.records.values():
            if record.task_definition == arn and not record.has_ended:
                facts.violated("definitions", f"{arn} was deregistered while {record.id} is pinned to it", arn)
