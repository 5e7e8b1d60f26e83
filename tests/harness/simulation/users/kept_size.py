"""The minimum size that a user of a trial requests, and its duration.

They change it during the phase of faults. Then they wait until the number is reached, and drop it, so that the trial
comes to rest.
"""

from __future__ import annotations

from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.controllers.deployment import SimulatedDeployment
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.users.users import Users
from tests.harness.simulation.world.world import share

FEWEST_WISHES, MOST_WISHES = 1, 4
MOST_INSTANCES = 4
TYPED, ENDING = 0.4, 0.25  # share of the wishes: those that name a type, and those that end by themselves
SHORTEST_S, LONGEST_S = 60.0, 3_600.0  # of these
PATIENCE_S = 4_500.0  # after the faults, so that a longer wait is found: then the user gives up what is still missing
ASKS_AGAIN_S = 300.0  # where nothing shows that the request arrived


class KeptSize:
    """Of one trial."""

    def __init__(
        self, users: Users, deployment: SimulatedDeployment, faults: Faults, facts: TrialFacts, types: tuple[str, ...]
    ) -> None:
        self._users, self._deployment, self._faults, self._facts = users, deployment, faults, facts
        self._types, self._seed = types, deployment.world.seed
        self._asked_at = float("-inf")

    @property
    def is_over(self) -> bool:
        """Whether nothing is kept."""
        return not self._facts.stored.floor.instances or self._deployment.is_torn_down

    def plan(self, faulty_s: float) -> None:
        """At random times in the phase of faults."""
        if not self._faults.strikes("cluster-scaled"):
            return
        for number in range(FEWEST_WISHES + int((MOST_WISHES - FEWEST_WISHES + 1) * self._share("wishes"))):
            at = faulty_s * self._share("at", number)
            most = min(MOST_INSTANCES, self._deployment.policy.max_instances)
            count = int((most + 1) * self._share("count", number))
            types = self._types[int(len(self._types) * self._share("which", number)) :][:1]
            lasts = SHORTEST_S + (LONGEST_S - SHORTEST_S) * self._share("lasts", number)
            self._users.scale_later(
                at,
                count,
                types if self._share("typed", number) < TYPED else (),
                lasts if self._share("ends", number) < ENDING else None,
            )

    def act(self) -> None:
        """Between two steps once the faults have ended."""
        facts, now = self._facts, self._facts.world.now
        if self.is_over or now - self._asked_at < ASKS_AGAIN_S:
            return
        floor = facts.stored.floor
        ours = [each for each in facts.regions.ours() if not floor.types or each.instance_type in floor.types]
        if len(ours) >= floor.instances or now - facts.faults_ended_at > PATIENCE_S:
            self._asked_at = now
            self._users.scale_later(0.0, 0, (), None)

    def _share(self, *what: object) -> float:
        return share(self._seed, "kept size", *what)
