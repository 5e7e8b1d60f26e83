"""The instances that users of a trial let drain for a while. They end some of these drains early, or extend them."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.harness.simulation.audit.facts import TrialFacts
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.users.shared_queues import AskLater
from tests.harness.simulation.world.world import share

MOST_REQUESTS = 6
ENDED = 0.3  # share of the requests that end a drain
SHORTEST_S, LONGEST_S = 30.0, 1_200.0  # less than an instance may idle for


class Drains:
    """Of one trial. ask_later: of `Users`."""

    def __init__(self, ask_later: AskLater, facts: TrialFacts, faults: Faults) -> None:
        self._ask_later, self._facts, self._faults = ask_later, facts, faults

    def plan(self, faulty_s: float) -> None:
        """At random times in the phase of faults."""
        if not self._faults.strikes("drained"):
            return
        for number in range(1 + int(MOST_REQUESTS * self._share("requests"))):
            self._ask_later(faulty_s * self._share("at", number), partial(self._wish, number))

    def _wish(self, number: int) -> dict[str, Any] | None:
        """For one of the instances at that time, most often one that drains already."""
        facts = self._facts
        there = {
            name: each for name, each in facts.stored.instances.items() if each["status"] in ("ACTIVE", "DRAINING")
        }
        drained = [name for name in sorted(there) if there[name].get("drain_until")]
        names = drained if drained and self._share("again", number) < 0.5 else sorted(there)
        if not names or facts.torn_down:
            return None
        wish = {"action": "DrainInstance", "instanceId": names[int(len(names) * self._share("which", number))]}
        lasts_s = SHORTEST_S + (LONGEST_S - SHORTEST_S) * self._share("lasts", number)
        return wish if self._share("ended", number) < ENDED else {**wish, "until": facts.world.now + lasts_s}

    def _share(self, *what: object) -> float:
        return share(self._facts.world.seed, "drains", *what)
