"""Does every task get the GPU that was counted for it, and what it shares with nothing but shares?

I5: without faults, ECS refuses no task for lack of a GPU: whichever GPU it chose for the others, the task fits. No GPU
has shares above its memory, and none is shared and one task's own, neither as stored, of tasks that still run, nor on
the instances themselves. No task shares a GPU that cannot be shared, or is sent to an instance whose agent has not said
that it shares them.
I13: unless the owner of the deployment allows it, no task that shares a GPU starts beside one of another owner.
H4: an attempt that a broken GPU ended is not its user's failure once ECS has called the instance impaired.
I8: a task whose GPU was reset, with others that shared it, is not charged where ECS soon reports how all of them ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from argosy.emulator.ecs.records import ContainerInstance
from argosy.emulator.ecs.resources import gpu_share_mib
from argosy.messages.ecs import key_of_task
from argosy.model.arns import name_of
from argosy.model.ended_attempts import Outcome
from argosy.model.run_terms import DEFAULT_QUEUE
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation
from tests.harness.simulation.audit.stored_state import StoredAttempt
from tests.harness.simulation.world.members import UNNAMED

JSON = dict[str, Any]
NO_GPU = "RESOURCE:GPU"
SHARE_NOTHING = ("g6f.", "gr6f.", "p3.")  # slices of a GPU, and V100


class GpuChecker(Checker):
    """Replies of RunTask, the GPUs of stored attempts, and those of the tasks that agents have."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "run_task"): self._launched}

    def _launched(self, request: JSON, reply: JSON) -> None:
        refused = [each for each in reply["failures"] if each["reason"] == NO_GPU]
        if refused and self.facts.nothing_goes_wrong:
            self.facts.violated("I5", f"ECS has no GPU for a task that was counted there: {request['startedBy']}")
        key = key_of_task(request)
        record = self.facts.stored.records.get(key.run_id) if key else None
        for each in reply["failures"] if record and record.needs.gpu_share_mib else ():
            if each["reason"] == "ATTRIBUTE" and not self._shares_gpus(each["arn"]):
                self.facts.violated("I5", f"{key} was sent where agent or AMI is too old to share GPUs", each["arn"])

    def _shares_gpus(self, arn: str) -> bool:
        ledgers = (world.ecs.ledger for world in self.facts.regions.worlds if f":{world.region}:" in arn)
        return any(ledger.instance(arn).shares_gpus for ledger in ledgers)

    def committed(self, commit: Commit) -> None:
        self._check_victims()
        self._check_charges()
        self._check_owners(commit)
        stored = self.facts.stored
        shares: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for live in stored.live.values():
            record = stored.records.get(live.key.run_id)
            if record is None or not live.instance or not live.gpu_mask or self._may_have_ended(live):
                continue
            for place in range(live.gpu_mask.bit_length()):
                if live.gpu_mask >> place & 1:
                    shares[live.instance, place].append(record.needs.gpu_share_mib)
        for (name, place), here in shares.items():
            memory_mib = stored.instances.get(name, {}).get("gpu_memory_mib", 0)
            if (memory_mib and sum(here) > memory_mib) or (0 in here and len(here) > 1):
                self.facts.violated("I5", f"GPU {place} of {name} has too much work: shares of {here} MiB", name)

    def _check_owners(self, commit: Commit) -> None:
        """ECS chooses the GPU, so owners that keep apart have no instance in common."""
        stored = self.facts.stored
        if self.facts.policy.gpu_share_across_owners:
            return
        sharers = {run_id for run_id, record in stored.records.items() if record.needs.gpu_share_mib}
        for intent in commit.intents if sharers else ():
            for live in stored.live.values() if intent.key.run_id in sharers else ():
                is_beside = live.instance == intent.instance and live.key.run_id in sharers
                if is_beside and self._owner(live.key.run_id) != self._owner(intent.key.run_id):
                    sentence = f"{intent.key.run_id} may share a GPU with {live.key.run_id} of another owner"
                    self.facts.violated("I13", sentence, intent.instance)

    def _owner(self, run_id: str) -> tuple[str, str]:
        """Who has proven it; otherwise who is named, or its queue. Of a suspended run it is unknown."""
        spec, came = self.facts.spec_of(run_id), self.facts.came.get(run_id, UNNAMED)
        record = self.facts.stored.records[run_id]
        if record.suspended_at:
            return "suspended", run_id
        if record.proven_owner:
            return "proven", record.proven_owner
        queue = record.changes.get("queue") or came.queue or spec.get("queue", DEFAULT_QUEUE)
        return ("named", spec["owner"]) if spec.get("owner") else ("queue", str(queue))

    def _may_have_ended(self, live: StoredAttempt) -> bool:
        """ECS gives the room of a task away once it has ended, or once it is to end (`emulator.readings`)."""
        task = self.facts.regions.task_by_id(live.task_id)
        return task is not None and task.desired_status == "STOPPED"

    def time_passed(self) -> None:
        for world in self.facts.regions.worlds:
            for instance in world.ecs.ledger.clusters[world.cluster].instances.values():
                if instance.gpus and instance.tasks:
                    self._check_devices(instance)

    def _check_devices(self, instance: ContainerInstance) -> None:
        """What its agent has, whatever the emulator counts."""
        shares: defaultdict[str, list[int]] = defaultdict(list)
        for task in instance.tasks.values():
            for container in task.containers if task.handed_over else ():
                mib = gpu_share_mib(container.gpu_sharing) if container.gpu_sharing else 0
                for gpu in container.gpu_ids:
                    shares[gpu].append(mib)
        name, kind = instance.ec2_instance_id, instance.attributes.get("ecs.instance-type") or ""
        for gpu, here in shares.items():
            if sum(here) > instance.gpus[gpu].total_mib or (0 in here and len(here) > 1):
                self.facts.violated("I5", f"{gpu} of {name} has shares of {here} MiB", name)
            if any(here) and kind.startswith(SHARE_NOTHING):
                self.facts.violated("I5", f"tasks share a GPU of a {kind}, which cannot be shared", name)

    def _check_charges(self) -> None:
        for run_id, row in self.facts.stored.ended if self.facts.reset else ():
            if row.task_id in self.facts.reset and row.outcome is Outcome.FAILED:
                name = f"task {row.index} of {run_id}"
                self.facts.violated("I8", f"{name} is charged for the reset of a shared GPU", row.task_id)

    def _check_victims(self) -> None:
        stored = self.facts.stored
        for run_id, row in stored.ended:
            agent = self.facts.regions.agent(row.instance)
            ended_by_gpu = agent is not None and any(name_of(arn) == row.task_id for arn in agent.gpu_victims)
            if ended_by_gpu and row.outcome is Outcome.FAILED and stored.instances[row.instance].get("impaired"):
                self.facts.violated("H4", f"{run_id} is charged for the broken GPU of {row.instance}", row.task_id)
