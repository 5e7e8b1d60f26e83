"""The targets of fleets, and the image that new instances start from.

I7: no fleet's target exceeds the limits or the orders. I10: only the deployment's own fleets are changed. `first`:
until an instance of an AMI has joined, few are ordered. R14: no target is left at rest. `kill`: no target is raised
after teardown, except by a process that was paused before its call and sends it later than a teardown can wait for.
The order of that process ends with the fleets, which the stack deletes next; the checks at rest find any instance
that is left. `image`: some minutes after a deployment has made a new version of the launch templates, every instance
that starts has its image. `waste` (`instances`) checks that instances of the previous version keep their tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.catalogue.lookup import image_of
from argosy.emulator.ec2.records import Ec2Fleet
from argosy.model.tasks import TERMINAL
from tests.harness.simulation.audit.facts import Checker, EffectCheck, Operation, TrialFacts, TrialResults
from tests.harness.simulation.audit.stored_state import StoredState
from tests.harness.simulation.world.deployed_fleets import TEMPLATE, fleet_is_ours

JSON = dict[str, Any]


_LEFT = ("GONE", "RELEASING")


def _ami(fleet: Ec2Fleet) -> tuple[str, str]:
    """Of its instances: the cell, and which of the cell's AMIs."""
    return fleet.pools[0].zone[:-1], image_of(fleet.pools[0].instance_type)


class FleetChecker(Checker):
    """ModifyFleet calls, and the targets that they leave."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._targets: dict[str, int] = {}  # by fleet id, before this change

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("ec2", "modify_fleet"): self._steered, ("ec2", "create_fleet"): self._bought}

    def at_rest(self, rest: TrialResults) -> None:
        for fleet in self.facts.regions.fleets():
            if fleet.is_live and fleet_is_ours(fleet) and fleet.total_target:
                sentence = f"the target of {fleet.fleet_id} is {fleet.total_target} at rest"
                self.facts.violated("R14", sentence, fleet.fleet_id)

    def _steered(self, request: JSON, reply: JSON) -> None:
        facts, fleets = self.facts, self.facts.regions.fleets()
        fleet = facts.regions.fleet(request["FleetId"])
        if not fleet_is_ours(fleet):
            facts.violated("I10", f"{fleet.fleet_id} is not ours and was steered", fleet.fleet_id)
        if facts.one_controller:
            self._check_allowed(fleet)
            self._check_first_order(fleet)
        replaced = any(not each.is_live and each.pools == fleet.pools for each in fleets)
        sentence = self.unordered_raise(facts.stored, fleet)
        if sentence and facts.one_controller and not replaced:
            facts.violated("I7", f"{fleet.fleet_id} was {sentence}", fleet.fleet_id)
        if self._is_torn_down() and fleet.total_target:
            sentence = f"{fleet.fleet_id} was raised after the deployment was torn down"
            facts.violated("kill", sentence, fleet.fleet_id)

    def _bought(self, request: JSON, reply: JSON) -> None:
        """On demand, by an order that was stored before. A repeated call launches nothing."""
        facts, bought = self.facts, sum(len(each["InstanceIds"]) for each in reply["Instances"])
        fleet = facts.regions.fleet(reply["FleetId"])
        open_orders = [each["on_demand_count"] for each in facts.stored.pools.values() if each["on_demand_count"]]
        wanted = request["TargetCapacitySpecification"]["TotalTargetCapacity"]
        if facts.one_controller and wanted not in open_orders:
            facts.violated("D4", f"{wanted} on-demand instances are bought, and open orders are {open_orders}")
        if bought > wanted or not fleet_is_ours(fleet):
            facts.violated("I7", f"{fleet.fleet_id} launched {bought} of {wanted}", fleet.fleet_id)
        if self._is_torn_down() and fleet.created_at == facts.world.now and bought:
            facts.violated("kill", f"{fleet.fleet_id} was made after the deployment was torn down", fleet.fleet_id)

    def _is_torn_down(self) -> bool:
        """For longer than a call that was about to be sent may be paused."""
        facts = self.facts
        return facts.torn_down and facts.world.now - facts.torn_down_at >= facts.stands_still_s

    def _check_allowed(self, fleet: Ec2Fleet) -> None:
        """Not counted: instances that a fleet launched just before its target was lowered, until a sweep shows them,
        and instances that are released, because targets are set before instances are ended.
        """
        facts, known = self.facts, self.facts.stored.instances
        fleets = [each for each in facts.regions.fleets() if each.is_live and fleet_is_ours(each)]
        held = sum(name in known and not known[name]["released_at"] for each in fleets for name in each.members)
        missing = sum(max(0, each.total_target - len(each.members)) for each in fleets)
        most = facts.policy.max_instances
        if fleet.total_target > len(fleet.members) and held + missing > most:
            sentence = f"{missing} more instances are ordered besides {held}, {most} are allowed"
            facts.violated("I7", sentence, fleet.fleet_id)

    def _check_first_order(self, fleet: Ec2Fleet) -> None:
        """Until an instance of an AMI has joined in its cell, few are on their way there, besides those of Capacity
        Reservations: these are paid for anyway."""
        facts, most, known = self.facts, self.facts.policy.first_order, self.facts.stored.instances
        alike = [each for each in facts.regions.fleets() if each.is_live and _ami(each) == _ami(fleet)]
        joined = [each for each in facts.stored.pools.values() if each["registered_memory_mib"]]
        stored = [each for each in joined if each["joined_version"] == each["version"]]
        if not most or _ami(fleet) in {(each["cell"], image_of(each["instance_type"])) for each in stored}:
            return
        missing = sum(max(0, each.total_target - len(each.members)) for each in alike if fleet_is_ours(each))
        names = [name for each in alike if fleet_is_ours(each) for name in each.members if name in known]
        over = ("released_at", "cordon", "interrupted_at", "registered_at", "reservation")
        missing += sum(not any(known[name].get(each) for each in over) for name in names)
        rises = fleet.total_target > max(len(fleet.members), self._targets.get(fleet.fleet_id, 0))
        if rises and missing > most:
            facts.violated("first", f"{missing} instances of an AMI of which none has joined, {most} may be ordered")

    def unordered_raise(self, stored: StoredState, fleet: Ec2Fleet) -> str:
        """The fault of the fleet's new target; "" = nothing.

        A target up to the number of members launches nothing. Anything above is an order, on top of at most the members
        or the old target.
        """
        before = self._targets.get(fleet.fleet_id, 0)
        after = self._targets[fleet.fleet_id] = fleet.total_target
        held = sum(
            bool(each["owned"] and each["status"] not in _LEFT and not (each["interrupted_at"] or each["absent_since"]))
            for each in stored.instances.values()
            if f"{each['instance_type']}/{each['zone']}" == fleet.tags.get("argosy:pool")
        )
        base = max(before, len(fleet.members))
        open_tasks = sum(row[0] not in TERMINAL for table in stored.tables.values() for row in table)
        if after - base <= open_tasks or held <= base:  # no order is for more instances than there are tasks
            return ""
        return f"raised from {before} to {after} with {len(fleet.members)} members, though {held} are known to live"


KNOWN_AFTER_S = 300.0  # two sweeps: they show it, and fleets are moved with their next order


class ImageChecker(Checker):
    """Launch templates, and the instances that start once nothing fails any more."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._newest: dict[str, tuple[str, float]] = {}
        """Region -> the image that was deployed last, and since when it has been there."""
        self._judged: set[str] = set()

    def time_passed(self) -> None:
        facts = self.facts
        for world in facts.regions.worlds:
            template = world.ec2.ledger.templates.get(TEMPLATE)
            newest = template.image_ids[-1] if template else ""
            if self._newest.get(world.region, ("",))[0] != newest:
                self._newest[world.region] = newest, world.now
        if not facts.faults_ended_at:
            return
        for instance in facts.regions.ours():
            newest, since = self._newest[instance.zone[:-1]]
            known_at = max(since, facts.faults_ended_at, facts.unattended_until) + KNOWN_AFTER_S
            if instance.instance_id not in self._judged and instance.launched_at > known_at:
                self._judged.add(instance.instance_id)
                if instance.image_id != newest:
                    sentence = f"{instance.instance_id} starts from {instance.image_id}, {newest} is deployed"
                    facts.violated("image", sentence, instance.instance_id)
