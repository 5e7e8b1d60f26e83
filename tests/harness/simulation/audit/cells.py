"""Does a closed cell start nothing and empty itself?

`closed`: in a cell that is being destroyed, or that the deployment has left out, no fleet is raised and no task starts,
and no instance is left after its watchdog has run (decision 17).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model.arns import cell_of
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation

JSON = dict[str, Any]

UNDER_WAY_S = 30.0  # time for what a controller had begun before the cell was closed: a tick
FREED_S = 1800.0  # by then the cell's watchdog has run twice


class CellChecker(Checker):
    """Events in closed cells."""

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {
            ("ec2", "modify_fleet"): self._steered,
            ("ec2", "create_fleet"): self._bought,
            ("ecs", "run_task"): self._launched,
        }

    def committed(self, commit: Commit) -> None:
        for intent in commit.intents:
            instance = self.facts.stored.instances.get(intent.instance)
            if instance is not None and self._is_shut(str(instance["cell"]), UNDER_WAY_S):
                sentence = f"{intent.key} is placed on {intent.instance}, whose cell is closed"
                self.facts.violated("closed", sentence, intent.instance)

    def time_passed(self) -> None:
        for instance in self.facts.regions.ours() if self.facts.closed else ():
            if self._is_shut(instance.zone[:-1], FREED_S):
                sentence = f"{instance.instance_id} still lives in a cell that was closed long ago"
                self.facts.violated("closed", sentence, instance.instance_id)

    def _steered(self, request: JSON, reply: JSON) -> None:
        fleet = self.facts.regions.fleet(request["FleetId"])
        raised = fleet.total_target > len(fleet.members)
        if raised and self._is_shut(fleet.pools[0].zone[:-1], UNDER_WAY_S):
            sentence = f"{fleet.fleet_id} is raised to {fleet.total_target} in a closed cell"
            self.facts.violated("closed", sentence, fleet.fleet_id)

    def _bought(self, request: JSON, reply: JSON) -> None:
        fleet = self.facts.regions.fleet(reply["FleetId"])
        if fleet.created_at == self.facts.world.now and self._is_shut(fleet.pools[0].zone[:-1], UNDER_WAY_S):
            self.facts.violated("closed", f"{fleet.fleet_id} is made in a closed cell", fleet.fleet_id)

    def _launched(self, request: JSON, reply: JSON) -> None:
        for task in reply["tasks"]:
            known = self.facts.regions.task(task["taskArn"])
            since = self.facts.closed.get(cell_of(task["taskArn"]), float("inf"))
            if known is not None and known.created_at > since + UNDER_WAY_S + self.facts.stands_still_s:
                self.facts.violated("closed", f"{task['taskArn']} is started in a closed cell", task["taskArn"])

    def _is_shut(self, region: str, seconds: float) -> bool:
        """Whether the cell has been closed for that long, not counting time in which processes are paused."""
        since = self.facts.closed.get(region)
        return since is not None and self.facts.world.now - since > seconds + self.facts.stands_still_s
