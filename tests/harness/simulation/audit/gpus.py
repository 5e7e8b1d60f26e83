"""Does every task get the GPU that was counted for it?

I5: without faults, ECS refuses no task for lack of a GPU: whichever GPU it chose for the others, the task fits. No GPU
has shares above its memory, and none is shared and one task's own.
H4: an attempt that a broken GPU ended is not its user's failure once ECS has called the instance impaired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from argosy.model.arns import name_of
from argosy.model.ended_attempts import Outcome
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation

JSON = dict[str, Any]
NO_GPU = "RESOURCE:GPU"


class GpuChecker(Checker):
    """Replies of RunTask, and the GPUs of stored attempts."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "run_task"): self._launched}

    def _launched(self, request: JSON, reply: JSON) -> None:
        refused = [each for each in reply["failures"] if each["reason"] == NO_GPU]
        if refused and self.facts.nothing_goes_wrong:
            self.facts.violated("I5", f"ECS has no GPU for a task that was counted there: {request['startedBy']}")

    def committed(self, commit: Commit) -> None:
        self._check_victims()
        stored = self.facts.stored
        shares: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for live in stored.live.values():
            record = stored.records.get(live.key.run_id)
            if record is None or not live.instance or not live.gpu_mask:
                continue
            for place in range(live.gpu_mask.bit_length()):
                if live.gpu_mask >> place & 1:
                    shares[live.instance, place].append(record.needs.gpu_share_mib)
        for (name, place), here in shares.items():
            memory_mib = stored.instances.get(name, {}).get("gpu_memory_mib", 0)
            if (memory_mib and sum(here) > memory_mib) or (0 in here and len(here) > 1):
                self.facts.violated("I5", f"GPU {place} of {name} has too much work: shares of {here} MiB", name)

    def _check_victims(self) -> None:
        stored = self.facts.stored
        for run_id, row in stored.ended:
            agent = self.facts.regions.agent(row.instance)
            ended_by_gpu = agent is not None and any(name_of(arn) == row.task_id for arn in agent.gpu_victims)
            if ended_by_gpu and row.outcome is Outcome.FAILED and stored.instances[row.instance].get("impaired"):
                self.facts.violated("H4", f"{run_id} is charged for the broken GPU of {row.instance}", row.task_id)
