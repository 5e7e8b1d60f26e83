"""Is the cluster kept at the minimum size that a user set?

Only our own acts are judged. F1: no instance that could take work is released below the floor. F2: once faults have
ended the floor is reached, unless a reason is given. F3: no controller goes to rest while there is a floor. `idle`
checks the instances kept beyond it. During a teardown every instance goes, from the kill switch on and not only once
the teardown is complete: then no floor holds.
"""

from __future__ import annotations

from typing import Any

from tests.harness.simulation.audit.facts import Checker, Commit, TrialFacts, TrialResults

JSON = dict[str, Any]

REACHED_S = 3_600.0  # by then the floor is reached: short pools are left alone for up to an hour, but then they say so


class FloorChecker(Checker):
    """Commits that release instances, compared with the existing instances."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self._status: dict[str, str] = {}
        """By instance, as of the latest commit."""
        self._about: tuple[Any, ...] = ()
        self._short_since = 0.0

    def committed(self, commit: Commit) -> None:
        stored = self.facts.stored
        if stored.version == commit.version_before:
            return
        before, self._status = self._status, {name: each["status"] for name, each in stored.instances.items()}
        floor = stored.floor
        theirs = {
            name: each
            for name, each in stored.instances.items()
            if _is_sound(each) and (not floor.types or each["instance_type"] in floor.types)
        }
        let_go = [name for name in theirs if self._status[name] == "RELEASING" and before.get(name) == "ACTIVE"]
        left = sum(self._status[name] == "ACTIVE" for name in theirs)
        if let_go and left < floor.instances and not self.facts.is_tearing_down:
            sentence = f"{', '.join(let_go)} let go: {left} instances are left of {floor.instances} to be kept"
            self.facts.violated("F1", sentence, *let_go)

    def time_passed(self) -> None:
        facts, floor = self.facts, self.facts.stored.floor
        ours = [each for each in facts.regions.ours() if not floor.types or each.instance_type in floor.types]
        is_well = len(ours) >= floor.instances or floor.waiting or facts.is_tearing_down or not facts.faults_ended_at
        about = (floor.instances, floor.types)
        if is_well or about != self._about:
            self._about, self._short_since = about, facts.world.now
        elif facts.world.now - self._short_since > REACHED_S:
            sentence = f"{len(ours)} instances are there, {floor.instances} are to be kept, and no reason is given"
            facts.violated("F2", sentence)

    def at_rest(self, rest: TrialResults) -> None:
        if self.facts.stored.floor.instances and not self.facts.is_tearing_down:
            self.facts.violated(
                "F3", f"{self.facts.stored.floor.instances} instances are to be kept, and no controller works"
            )


def _is_sound(instance: JSON) -> bool:
    """Whether it could take work if it had not been released."""
    told = ("interrupted_at", "rebalance_at", "draining_since", "cordon", "absent_since", "stopped_at")
    return instance["owned"] and instance["agent_connected"] and not any(instance[name] for name in told)
