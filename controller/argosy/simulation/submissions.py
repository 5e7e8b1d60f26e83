"""What do the users of a trial submit? Runs of a few tasks, of the shapes, caps and limits that users give them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from argosy.simulation.faults import Faults
from argosy.simulation.workload import CANARY, SimulatedJob
from argosy.simulation.world import share

MOST_RUNS, MOST_OF_MANY_TASKS = 12, 3
# A first minute of the cheapest instance costs 0.0013 USD, and a run of these sizes mostly 0.01 to 0.05.
BUDGETS_USD = (0.0006, 0.1)
HOURLY_CAPS_USD = (0.03, 0.6)  # the cheapest instance costs 0.06 to 0.1, with its disk and its address
DEADLINES_S = (300.0, 7200.0)
ATTEMPT_LIMITS_S = (30.0, 240.0)
RUN_LIMITS_S = (300.0, 3000.0)
LONG_S = (1800.0, 5400.0)  # of the programs that take hours


def drawn_jobs(faults: Faults, seed: int, tasks: int) -> list[SimulatedJob]:
    """One or two runs, or many. tasks: of each, 0 = as the seed says."""
    count = 1 + int(faults.between(0, 2))
    if faults.strikes("many-runs"):
        count = 3 + int((MOST_RUNS - 2) * share(seed, "runs"))
    drafts = [_Draft(faults, seed, number) for number in range(count)]
    return [draft.job(tasks, most_tasks=MOST_OF_MANY_TASKS if count > 2 else 9) for draft in drafts]


@dataclass(frozen=True, slots=True)
class _Draft:
    """One run that is being thought up. What not every run has is drawn by name, so that the others stay the same."""

    faults: Faults
    seed: int
    number: int

    def job(self, given: int, most_tasks: int) -> SimulatedJob:
        draw = self.faults.between
        gpus = 1 if draw(0, 1) < 0.3 else 0
        tasks = given or min(most_tasks, 2 + int(draw(0, 8)))
        spec: dict[str, Any] = {
            "version": 1,
            "name": f"trial{self.number}",
            "container": {"image": "argosy/digits", "command": ["work"], "environment": {"TOKEN": CANARY}},
            "resources": {"vcpus": 1 + int(draw(0, 2)), "memory": 1024, "gpus": gpus},
            "array": {"size": tasks},
            "retryStrategy": {"attempts": 1 + int(draw(0, 3))},
        }
        hanging = draw(0, 0.1)
        terms = {"timeout": self._timeout(hanging > 0.05), "capacity": self._capacity()}
        spec |= {name: value for name, value in terms.items() if value}
        expects_result, longest_s, failing = draw(0, 1) < 0.5, draw(40, 240), max(0.0, draw(-0.2, 0.3))
        shortest_s = 20.0
        if self.faults.strikes("hours"):
            shortest_s, longest_s = LONG_S
        return SimulatedJob(
            f"trial{self.number}-270115-0800{self.number:02d}-{self.seed % 10000:04d}",
            spec,
            tasks,
            expects_result=expects_result,
            shortest_s=shortest_s,
            longest_s=longest_s,
            failing=self._share("failing") if self.faults.strikes("bad-program") else failing,
            hanging=hanging if hanging > 0.05 else 0.0,
            deaf=draw(0, 0.2),
            unpullable=max(0.0, draw(-0.2, 0.1)),
            silent=max(0.0, draw(-0.1, 0.1)),
            clean=self._share("clean") if self.faults.strikes("clean-exit") else 0.0,
            instant=self._share("instant") if self.faults.strikes("instant") else 0.0,
        )

    def _timeout(self, hangs: bool) -> dict[str, int]:
        """Attempts that may hang always have one, or their run might never end."""
        timeout = {"attemptDurationSeconds": 300} if hangs else {}
        if self.faults.strikes("time-limit"):
            if hangs or self._share("whole") < 0.5:
                timeout["attemptDurationSeconds"] = int(self._between("attempt", ATTEMPT_LIMITS_S))
            else:
                timeout["runDurationSeconds"] = int(self._between("duration", RUN_LIMITS_S))
        return timeout

    def _capacity(self) -> dict[str, Any]:
        capacity: dict[str, Any] = {}
        if self.faults.strikes("tight-budget"):
            capacity["budgetUsd"] = round(self._between("budget", BUDGETS_USD), 4)
            capacity["onCap"] = "finish" if self._share("on cap") < 0.3 else "drain"
        if self.faults.strikes("tight-hourly-cap"):
            capacity["maxHourlyCost"] = round(self._between("hourly", HOURLY_CAPS_USD), 4)
        if self.faults.strikes("deadline"):
            capacity["deadline"] = f"{self._between('deadline', DEADLINES_S) / 60:.0f}m"
        return capacity

    def _between(self, what: str, bounds: tuple[float, float]) -> float:
        """Small values as often as large ones."""
        least, greatest = bounds
        return least * math.exp(self._share(what) * math.log(greatest / least))

    def _share(self, what: str) -> float:
        return share(self.seed, what, self.number)
