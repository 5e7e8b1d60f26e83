"""Do new instances start from the image that was deployed last?

`image`: some minutes after a deployment has made a new version of the launch templates, every instance that starts has
its image. That instances of the version before keep their tasks is `waste` (`instances`).
"""

from __future__ import annotations

from tests.harness.simulation.audit.facts import Checker, TrialFacts
from tests.harness.simulation.world.deployed_fleets import TEMPLATE

KNOWN_AFTER_S = 300.0  # two sweeps: they show it, and fleets are moved with their next order


class ImageChecker(Checker):
    """Launch templates, and the instances that start once nothing goes wrong any more."""

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
