"""Is every instance known, needed and the deployment's own?

I6: every instance has an owner record. I7: there are not too many. I10: only the deployment's own instances and tasks
are ended. R14: none costs money at rest. `idle`: none is kept for long without a task, beyond the number that a user
has requested, nor any for further tasks while a limit holds tasks back. `waste`: no sound instance is ended under a
running task. `pull`: no task is given up while its image may still come. `held`: no instance is said to hold an image
that it has not pulled. R12: once the message of an interruption or a rebalance recommendation is deleted from the
queue, it is stored, and no attempt is placed on that instance any more.
The message is gone, so a controller that starts then has no other source. That also holds for an instance that is not
in the state yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from argosy.emulator.ec2.records import Ec2Instance
from argosy.messages.eventbridge import CAPACITY_INTERRUPTED
from argosy.model.attempts import AttemptStatus
from argosy.model.pools import NO_FLOOR, Floor
from argosy.model.run_terms import SERVICE_GROUP
from argosy.model.start_ups import image_key
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts, TrialResults

JSON = dict[str, Any]


GIVEN_UP = ("never left PENDING", "its image was still", "still PENDING after")
KNOWN_AFTER_S = 1800.0  # by then every instance has an owner record
STEP_S = 600.0  # a step of a trial that takes longer contained a process that stood still
HELD = ("held back by maxInstances of the deployment", "held back by the vCPU quota")
IDLE_S = 1800.0  # beyond its linger: by then no instance counts as busy on which nothing runs


class InstanceChecker(Checker):
    """EC2 instances, and calls that end them or their tasks."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._busy_at: dict[str, float] = {}
        """When a task last ran there."""
        self._looked_at = self._away_until = self._open_at = self._held_since = 0.0
        self._kept: list[tuple[float, Floor]] = []
        """The numbers of instances that a user wanted kept, and since when."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {
            ("ec2", "terminate_instances"): self._terminated,
            ("ecs", "stop_task"): self._stopped,
            ("ecs", "run_task"): self._started,
        }

    def time_passed(self) -> None:
        facts, world = self.facts, self.facts.world
        if world.now - self._looked_at > STEP_S:
            self._away_until = world.now
        self._looked_at = world.now
        ours = facts.regions.ours()
        held = sum(each.ends_at is None for each in ours)
        if held > 2 * facts.policy.max_instances:  # twice: a fleet may launch unseen before its target is lowered
            facts.violated("I7", f"{held} instances, {facts.policy.max_instances} are allowed")
        self._note_floor()
        if any(not (each.has_ended or each.is_daemon) for each in facts.stored.records.values()):
            self._open_at = world.now
        is_held = any(each.waiting.startswith(HELD) for each in facts.stored.records.values() if not each.has_ended)
        self._held_since = (self._held_since or world.now) if is_held else 0.0
        for instance in ours:
            age_s = world.now - max(instance.launched_at, facts.unattended_until)
            self._check_images(instance)
            if age_s > KNOWN_AFTER_S + facts.stands_still_s and not facts.stored.names(instance.instance_id):
                facts.violated("I6", f"the stored state does not name {instance.instance_id}", instance.instance_id)
        # A further cell may be left out for hours.
        idle = [each for each in ours if each.instance_id in world.ec2.ledger.instances and self._idles(each)]
        self._check_idle(idle)

    def _check_images(self, instance: Ec2Instance) -> None:
        """By the agent on it. Only for runs whose image is named: others are known by their task definition."""
        agents = [world.agents.get(instance.instance_id) for world in self.facts.regions.worlds]
        stored = self.facts.stored.instances.get(instance.instance_id, {})
        pulled = {image_key(image, "") for agent in agents if agent is not None for image in agent.images}
        named = {image_key(record.image, "") for record in self.facts.stored.records.values() if record.image}
        for key in stored.get("images", {}).keys() & named - pulled:
            self.facts.violated("held", f"{instance.instance_id} has not pulled {key}", instance.instance_id)

    def _note_floor(self) -> None:
        """Instances that were needed until shortly before may still be there."""
        now, floor = self.facts.world.now, self.facts.stored.floor
        if not self._kept or self._kept[-1][1].facts()[:3] != floor.facts()[:3]:
            self._kept.append((now, floor))
        while len(self._kept) > 1 and self._kept[1][0] < now - IDLE_S:
            self._kept.pop(0)

    def _check_idle(self, idle: list[Ec2Instance]) -> None:
        """All of them, except as many as a user recently asked to keep."""
        for instance in idle:
            floors = [floor for _, floor in self._kept if not floor.types or instance.instance_type in floor.types]
            most = max(floors, key=lambda floor: floor.instances, default=NO_FLOOR)
            alike = [each for each in idle if not most.types or each.instance_type in most.types]
            kept = most.instances + self._spare_places()
            if len(alike) > kept:
                idles = f"on {instance.instance_id} nothing has run for long; {kept} are kept"
                self.facts.violated("idle", idles, instance.instance_id)

    def _spare_places(self) -> int:
        """What the settings keep while a run other than a daemon is open, and shortly after; 0 once a limit of the
        deployment has held tasks back for long, in whose way it would be."""
        now = self.facts.world.now
        is_in_the_way = self._held_since and now - self._held_since > IDLE_S
        return 0 if is_in_the_way or now - self._open_at >= IDLE_S else self.facts.spare_places

    def _idles(self, instance: Ec2Instance) -> bool:
        """Whether nothing has run there for too long."""
        facts, now, instance_id = self.facts, self.facts.world.now, instance.instance_id
        agent = facts.world.agents.get(instance_id)
        if agent is not None and any(not self._is_of_daemon(arn) for arn in agent.tasks):
            self._busy_at[instance_id] = now
        since = max(instance.launched_at, self._busy_at.get(instance_id, 0.0), facts.unattended_until, self._away_until)
        return bool(now - since > facts.policy.linger_of(instance.instance_type) + IDLE_S)

    def at_rest(self, rest: TrialResults) -> None:
        for instance in self.facts.regions.ours():
            self.facts.violated("R14", f"{instance.instance_id} still costs money at rest", instance.instance_id)

    def _started(self, request: JSON, reply: JSON) -> None:
        """Between two checks a task may begin and end."""
        for started in reply["tasks"]:
            task = self.facts.regions.task(started["taskArn"])
            if task is not None and not self._is_of_daemon(task.arn):
                self._busy_at[task.instance.ec2_instance_id] = self.facts.world.now

    def _stopped(self, request: JSON, reply: JSON) -> None:
        if not str(reply["task"].get("startedBy", "")).startswith("argosy-"):
            self.facts.violated("I10", "a task that is not ours was stopped", request["task"])
        elif any(words in str(request.get("reason", "")) for words in GIVEN_UP):
            self._check_pull(request["task"])

    def _check_pull(self, arn: str) -> None:
        """A task on an instance where the run's image was never complete is given up after the limit of a pull."""
        facts, task = self.facts, self.facts.regions.task(arn)
        if task is None or task.started_at or task.pull_stopped_at:
            return
        tasks = [
            each for world in facts.regions.worlds for each in world.ecs.ledger.clusters[world.cluster].tasks.values()
        ]
        alike = [each for each in tasks if each.instance is task.instance and each.definition is task.definition]
        since = max(task.created_at, task.pull_started_at or 0.0)
        early = facts.world.now - since < facts.policy.pull_patience_s - facts.clocks_differ_s - 1.0
        if early and not any(each.started_at for each in alike):
            facts.violated("pull", f"{arn} was given up while its image may still be pulled", arn)

    def _terminated(self, request: JSON, reply: JSON) -> None:
        for instance_id in request["InstanceIds"]:
            self._check_ended(instance_id)

    def _check_ended(self, instance_id: str) -> None:
        facts = self.facts
        instance = facts.regions.find(instance_id)
        if instance is None or not facts.regions.is_ours(instance):
            facts.violated("I10", f"{instance_id} is not ours and was terminated", instance_id)
        known = facts.stored.instances.get(instance_id)
        is_let_go = known is not None and known["released_at"]
        if not is_let_go:
            facts.violated("I6", f"{instance_id} was terminated before the store knew about it", instance_id)
        agent = facts.regions.agent(instance_id)
        if agent is None or not agent.connected or known is None or known["cordon"]:
            return
        for arn in agent.tasks:
            if self._is_wanted(arn) and not self._is_of_daemon(arn):
                facts.violated("waste", f"{instance_id} was terminated under a running task", instance_id, arn)

    def _is_of_daemon(self, arn: str) -> bool:
        """It runs on an instance for as long as that instance is there for others."""
        task = self.facts.regions.task(arn)
        daemons = (env.name for env in self.facts.stored.environments.values() if env.is_daemon)
        return task is not None and task.group in {f"{SERVICE_GROUP}{name}" for name in daemons}

    def _is_wanted(self, arn: str) -> bool:
        """Whether the task is the live attempt of a task that is not done."""
        running = (each for each in self.facts.stored.live.values() if each.status == AttemptStatus.RUNNING)
        return any(each.task_id and arn.endswith(each.task_id) for each in running)


KINDS = {  # type of message -> the member of a stored instance that it sets; in the order of what is kept of others
    "EC2 Spot Instance Interruption Warning": "interrupted_at",
    "EC2 Instance Rebalance Recommendation": "rebalance_at",
    CAPACITY_INTERRUPTED: "interrupted_at",
}


class WarningChecker(Checker):
    """Messages that were received and deleted, and intents that are stored afterwards."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._received: dict[str, tuple[str, str]] = {}
        """Receipt -> detail type and instance id."""
        self._announced: dict[str, str] = {}
        """Instance id -> detail type of a message that is deleted."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("sqs", "receive_message"): self._receive, ("sqs", "delete_message_batch"): self._deleted}

    def committed(self, commit: Commit) -> None:
        for intent in commit.intents:
            if intent.instance in self._announced:
                sentence = f"{intent.key} is placed on {intent.instance} after: {self._announced[intent.instance]}"
                self.facts.violated("R12", sentence, intent.instance)

    def _receive(self, request: JSON, reply: JSON) -> None:
        for message in reply.get("Messages", ()):
            found = _announcement(message["Body"])
            if found is not None:
                self._received[message["ReceiptHandle"]] = found

    def _deleted(self, request: JSON, reply: JSON) -> None:
        for entry in request["Entries"]:
            found = self._received.pop(entry["ReceiptHandle"], None)
            if found is not None:
                self._check_stored(*found)

    def _check_stored(self, kind: str, instance_id: str) -> None:
        self._announced[instance_id] = kind
        instance = self.facts.regions.find(instance_id)
        if instance is not None and instance.alive and not self._is_stored(kind, instance_id):
            sentence = f"the message about {instance_id} is deleted, and nothing of it is stored: {kind}"
            self.facts.violated("R12", sentence, instance_id)

    def _is_stored(self, kind: str, instance_id: str) -> bool:
        stored = self.facts.stored
        known = stored.instances.get(instance_id)
        if known is None:
            return bool(stored.root.get("announced", {}).get(instance_id, (0, 0))[[*KINDS.values()].index(KINDS[kind])])
        return known["status"] == "GONE" or bool(known[KINDS[kind]] or known["interrupted_at"])


def _announcement(body: str) -> tuple[str, str] | None:
    """Detail type and instance id, if the message is intact."""
    if not any(kind in body for kind in KINDS):
        return None
    try:
        message = json.loads(body)
        kind, instance_id = message["detail-type"], message["detail"]["instance-id"]
    except (ValueError, KeyError, TypeError):
        return None
    return (kind, instance_id) if kind in KINDS and isinstance(instance_id, str) else None
