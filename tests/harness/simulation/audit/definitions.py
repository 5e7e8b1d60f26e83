"""Are task definitions there while a run needs them, and not after that?

`definitions`: none that an open run is pinned to is deregistered; where nothing goes wrong, none of ours is active at
rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.harness.simulation.audit.facts import Checker, EffectCheck, Operation, Rest

JSON = dict[str, Any]
_OURS = re.compile(r".*-[0-9a-f]{12}")


class DefinitionChecker(Checker):
    """DeregisterTaskDefinition calls, and the definitions that are left."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ecs", "deregister_task_definition"): self._deregistered}

    def at_rest(self, rest: Rest) -> None:
        if self.facts.torn_down or not self.facts.nothing_goes_wrong:
            return
        for family, revisions in self.facts.world.ecs.ledger.definitions.items():
            for revision in revisions:
                if _OURS.fullmatch(family) and revision.status == "ACTIVE":
                    self.facts.violated("definitions", f"{revision.arn} is active at rest", revision.arn)

    def _deregistered(self, request: JSON, reply: JSON) -> None:
        facts, arn = self.facts, reply["taskDefinition"]["taskDefinitionArn"]
        if not facts.one_controller:
            return  # one that was overtaken carries out what it committed before
        for record in facts.stored.records.values():
            if record.task_definition == arn and not record.has_ended:
                facts.violated("definitions", f"{arn} was deregistered while {record.id} is pinned to it", arn)
