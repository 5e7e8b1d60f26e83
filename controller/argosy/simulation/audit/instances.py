"""Is every instance known, needed and the deployment's own?

I6: every instance has an owner record. I7: there are not too many. I10: only the deployment's own instances and tasks
are ended. R14: none costs money at rest. `waste`: no sound instance is ended under a running task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model.attempts import AttemptStatus
from argosy.simulation.audit.facts import Checker, EffectCheck, Operation, Rest

JSON = dict[str, Any]

KNOWN_AFTER_S = 1800.0  # by then every instance has an owner record


class InstanceChecker(Checker):
    """EC2 instances, and calls that end them or what runs on them."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ec2", "terminate_instances"): self._terminated, ("ecs", "stop_task"): self._stopped}

    def time_passed(self) -> None:
        facts, world = self.facts, self.facts.world
        ours = facts.regions.ours()
        held = sum(each.ends_at is None for each in ours)
        if held > 2 * facts.policy.max_instances:  # twice: a fleet may launch unseen before its target is lowered
            facts.violated("I7", f"{held} instances, {facts.policy.max_instances} are allowed")
        for instance in ours:
            age_s = world.now - max(instance.launched_at, facts.unattended_until)
            if age_s > KNOWN_AFTER_S and instance.instance_id not in facts.stored.instances:
                facts.violated("I6", f"the stored state does not name {instance.instance_id}", instance.instance_id)

    def at_rest(self, rest: Rest) -> None:
        for instance in self.facts.regions.ours():
            self.facts.violated("R14", f"{instance.instance_id} still costs money at rest", instance.instance_id)

    def _stopped(self, request: JSON, reply: JSON) -> None:
        if not str(reply["task"].get("startedBy", "")).startswith("argosy-"):
            self.facts.violated("I10", "a task that is not ours was stopped", request["task"])

    def _terminated(self, request: JSON, reply: JSON) -> None:
        for instance_id in request["InstanceIds"]:
            self._check_ended(instance_id)

    def _check_ended(self, instance_id: str) -> None:
        facts = self.facts
        instance = facts.regions.find(instance_id)
        if instance is None or not facts.regions.is_ours(instance):
            facts.violated("I10", f"{instance_id} is not ours and was terminated", instance_id)
        known = facts.stored.instances.get(instance_id)
        if known is None or not known["released_at"]:
            facts.violated("I6", f"{instance_id} was terminated before the store knew it", instance_id)
        agent = facts.regions.agent(instance_id)
        if agent is None or not agent.connected or known is None or known["cordon"]:
            return
        for arn in agent.tasks:
            if self._is_wanted(arn):
                facts.violated("waste", f"{instance_id} was terminated under a running task", instance_id, arn)

    def _is_wanted(self, arn: str) -> bool:
        """Whether the task is the live attempt of a task that is not done."""
        running = (each for each in self.facts.stored.live.values() if each.status == AttemptStatus.RUNNING)
        return any(each.task_id and arn.endswith(each.task_id) for each in running)
