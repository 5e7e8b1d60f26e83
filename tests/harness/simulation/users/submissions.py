"""The runs that users of a trial submit: a few tasks each, with shapes, caps and limits, some waiting for others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.harness.simulation.faults import Faults
from tests.harness.simulation.users.shared_queues import terms_of
from tests.harness.simulation.world.workload import CANARY, PLAIN_MIB, VCPUS, SimulatedJob, version_of_program
from tests.harness.simulation.world.world import share

MOST_WAIT_MIN = 30
LATER, ONE_TO_ONE = 0.2, 0.5  # share of those that wait: for a time only; of the others, task by task


def with_dependencies(jobs: Sequence[SimulatedJob], faults: Faults, seed: int) -> list[SimulatedJob]:
    """Some of them wait for one or two earlier ones."""
    found: list[SimulatedJob] = []
    for number, job in enumerate(jobs):
        found.append(_waiting(job, found, seed, number) if faults.strikes("dependency") else job)
    return found


def _waiting(job: SimulatedJob, before: Sequence[SimulatedJob], seed: int, number: int) -> SimulatedJob:
    if not before or share(seed, "later", number) < LATER:
        minutes = 1 + int(MOST_WAIT_MIN * share(seed, "not before", number))
        return replace(job, spec={**job.spec, "notBefore": f"{minutes}m"})
    wanted: dict[str, dict[str, Any]] = {}
    tasks = job.tasks
    for choice in range(1 + int(2 * share(seed, "dependencies", number))):
        other = before[int(len(before) * share(seed, "which", number, choice))]
        on = "end" if share(seed, "on", number, choice) < 0.4 else "success"
        one_to_one = share(seed, "task by task", number, choice) < ONE_TO_ONE
        if one_to_one and (not wanted or other.tasks == tasks):
            tasks = other.tasks
            wanted[other.run_id] = {"run": other.run_id, "type": "N_TO_N", "on": on}
        else:
            wanted[other.run_id] = {"run": other.run_id, "type": "ALL", "on": on}
    spec = {**job.spec, "array": {"size": tasks}, "dependsOn": list(wanted.values())}
    return replace(job, spec=spec, tasks=tasks)


MOST_RUNS, MOST_OF_MANY_TASKS = 12, 3
# Share of a run's expected cost: the smallest budgets allow no start, and the largest are ample.
BUDGET_SHARES = (0.05, 3.0)
PAID_S = (300.0, 1200.0)  # duration of the programs that have to keep to a budget: it takes a while to use one up
USD_PER_HOUR, GPU_USD_PER_HOUR = 0.09, 0.27  # an instance, roughly, with its disk and its address
HOURLY_CAPS_USD = (0.03, 0.6)  # the cheapest instance costs 0.06 to 0.1, with its disk and its address
DEADLINES_S = (300.0, 7200.0)
ATTEMPT_LIMITS_S = (30.0, 240.0)
RUN_LIMITS_S = (300.0, 3000.0)
LONG_S = (1800.0, 5400.0)  # duration of the programs that take hours
FAULTY = 0.5  # at most this share of the indexes of a bad program fail at every attempt


def drawn_jobs(faults: Faults, seed: int, tasks: int) -> list[SimulatedJob]:
    """One or two runs, or many. tasks: of each, 0 = the seed decides."""
    count = 1 + int(faults.between(0, 2))
    if faults.strikes("many-runs"):
        count = 3 + int((MOST_RUNS - 2) * share(seed, "runs"))
    drafts = [_Draft(faults, seed, number) for number in range(count)]
    jobs = [draft.job(tasks, most_tasks=MOST_OF_MANY_TASKS if count > 2 else 9) for draft in drafts]
    return with_dependencies(jobs, faults, seed)


def drawn_drafts(
    faults: Faults, seed: int, count: int, shaped: Callable[[SimulatedJob, int], SimulatedJob], most_tasks: int
) -> list[SimulatedJob]:
    """That many runs. shaped: makes another job of each, by its number."""
    jobs = [shaped(_Draft(faults, seed, number).job(0, most_tasks), number) for number in range(count)]
    return with_dependencies(jobs, faults, seed)


CHECKPOINT_S = 15  # less than any attempt may take


def own_program(environment: Mapping[str, str], result: str) -> dict[str, Any]:
    """The members of a spec whose tasks run a program that its user brings."""
    container = {"image": "argosy/python", "environment": environment}
    job = {"job": version_of_program(1)}
    return {"run": ["python", "work.py", "${index}"], "container": container, "result": result, **job}


@dataclass(frozen=True, slots=True)
class _Draft:
    """One run in the making. Traits that not every run has are drawn by name, so that the others stay the same."""

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
            "resources": {"vcpus": 1 + int(draw(0, 2)), "memory": PLAIN_MIB, "gpus": gpus},
            "array": {"size": tasks},
            "retryStrategy": {"attempts": 1 + int(draw(0, 3))},
        }
        hanging = draw(0, 0.1)
        expects_result, longest_s, failing = draw(0, 1) < 0.5, draw(40, 240), max(0.0, draw(-0.2, 0.3))
        if expects_result:
            spec["container"]["command"].append("${part}")
        if self.faults.strikes("own-program"):
            spec |= own_program(spec["container"]["environment"], "stdout" if expects_result else "none")
        shortest_s, capacity, is_bad = 20.0, self._capacity(), self.faults.strikes("bad-program")
        if self.faults.strikes("tight-budget"):
            shortest_s, longest_s = PAID_S
            capacity |= self._budget(spec, sum(PAID_S) / 2)
        if self.faults.strikes("hours"):
            shortest_s, longest_s = LONG_S
        if self.faults.on("queue") or self.faults.on("preemption"):
            spec |= terms_of(self.seed, self.number)
        if self.faults.on("preemption") and self._share("checkpoint") < 0.4:
            spec["checkpoint"] = {"everySeconds": CHECKPOINT_S}
        terms = {"timeout": self._timeout(hanging > 0.05), "capacity": capacity}
        spec |= {name: value for name, value in terms.items() if value}
        return SimulatedJob(
            f"trial{self.number}-270115-0800{self.number:02d}-{self.seed % 10000:04d}",
            spec,
            tasks,
            shortest_s=shortest_s,
            longest_s=longest_s,
            failing=self._share("failing") if is_bad else failing,
            faulty=FAULTY * self._share("faulty") if is_bad else 0.0,
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
        if self.faults.strikes("tight-hourly-cap"):
            capacity["maxHourlyCost"] = round(self._between("hourly", HOURLY_CAPS_USD), 4)
        if self.faults.strikes("deadline"):
            capacity["deadline"] = f"{self._between('deadline', DEADLINES_S) / 60:.0f}m"
        return capacity

    def _budget(self, spec: Mapping[str, Any], task_s: float) -> dict[str, Any]:
        """A share of the likely cost of the run."""
        needs = spec["resources"]
        usd = task_s / 3600 * (GPU_USD_PER_HOUR if needs["gpus"] else USD_PER_HOUR * needs["vcpus"] / VCPUS)
        share_of = self._between("budget", BUDGET_SHARES)
        on_cap = "finish" if self._share("on cap") < 0.3 else "drain"
        return {"budgetUsd": max(0.0001, round(share_of * usd * spec["array"]["size"], 4)), "onCap": on_cap}

    def _between(self, what: str, bounds: tuple[float, float]) -> float:
        """Small values as often as large ones."""
        least, greatest = bounds
        return least * math.exp(self._share(what) * math.log(greatest / least))

    def _share(self, what: str) -> float:
        return share(self.seed, what, self.number)
