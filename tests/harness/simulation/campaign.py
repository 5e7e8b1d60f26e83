"""A campaign of many trials: seeds over processes, a summary, and the fewest faults that show a violation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

from tests.harness.simulation.faults import KINDS
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.verdict import Verdict

CHUNK = 8  # seeds a process takes at once
SHOWN = 5  # violations shown in full


def run_trial(plan: TrialPlan) -> Verdict:
    return Trial(plan).run()


def run_all(plans: Iterable[TrialPlan], processes: int) -> Iterator[Verdict]:
    """In the order of the plans."""
    if processes <= 1:
        yield from map(run_trial, plans)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_trial, plans, chunksize=CHUNK)


def shrink(plan: TrialPlan, invariant: str, run: Callable[[TrialPlan], Verdict] = run_trial) -> TrialPlan:
    """The plan with the fewest kinds of faults that still violate that invariant."""
    for kind in sorted(plan.kinds):
        smaller = replace(plan, kinds=plan.kinds - {kind})
        if any(found.invariant == invariant for found in run(smaller).violations):
            plan = smaller
    return plan


def replay_command(plan: TrialPlan) -> str:
    """The command that replays the trial."""
    kinds = ",".join(sorted(plan.kinds)) or "none"
    words = [f"python -m tests.harness.simulate --seed {plan.seed} --trials 1 --faults {kinds} --trace"]
    words += [f"--tasks {plan.tasks}"] if plan.tasks else []
    words += [f"--controllers {plan.controllers}"] if plan.controllers else []
    return " ".join([*words, f"--instances {plan.instances}", *plan.words])


@dataclass(slots=True)
class Summary:
    """The results of all trials; figures are sums over the trials."""

    kinds: frozenset[str]
    trials: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    deployments: Counter[str] = field(default_factory=Counter)
    bought: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0  # makespan
    settled_s: float = 0.0  # longest from the end of the faults to rest
    bad: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.trials += 1
        self.seen += verdict.seen
        self.calls += verdict.calls
        self.statuses += verdict.statuses
        self.deployments += verdict.deployments
        self.bought += verdict.bought
        for name in (
            "virtual_s",
            "launches",
            "tasks",
            "usd",
            "useful_usd",
            "instance_hours",
            "ticks",
            "write_units",
            "retries",
            "lines",
            "followers_deaths",
        ):
            self.sums[name] += getattr(verdict, name)
        self.longest_s = max(self.longest_s, verdict.makespan_s)
        self.settled_s = max(self.settled_s, verdict.settled_s)
        if not verdict.ok:
            self.bad.append(verdict)

    def report(self) -> dict[str, Any]:
        sums, tasks = self.sums, max(1, self.sums["tasks"])
        described = sum(
            n for (_, name), n in self.calls.items() if name in ("describe_tasks", "describe_container_instances")
        )
        return {
            "trials": self.trials,
            "violations": len(self.bad),
            "faultsSeen": {name: self.seen[name] for name in sorted(self.kinds) if self.seen[name]},
            "faultsNotSeen": sorted(name for name in self.kinds & KINDS.keys() if not self.seen[name]),
            "virtualHours": round(sums["virtual_s"] / 3600, 2),
            "tasks": sums["tasks"],
            "launchesPerTask": round(sums["launches"] / tasks, 3),
            "apiCalls": sum(self.calls.values()),
            "apiCallsPerTask": round(sum(self.calls.values()) / tasks, 3),
            "describeCallsPerTask": round(described / tasks, 4),
            "writeUnitsPerTask": round(sums["write_units"] / tasks, 3),
            "ticks": sums["ticks"],
            "retries": sums["retries"],
            "journalLines": sums["lines"],
            "followersDeaths": sums["followers_deaths"],
            "costUsd": round(sums["usd"], 4),
            "instanceHours": round(sums["instance_hours"], 3),
            "waste": round(1 - sums["useful_usd"] / sums["usd"], 4) if sums["usd"] else 0.0,
            "makespanSeconds": round(self.longest_s, 1),
            "settledSeconds": round(self.settled_s, 1),
            "instancesBought": dict(sorted(self.bought.items())),
            "runs": dict(sorted(self.statuses.items())),
            "deployments": dict(sorted(self.deployments.items())),
        }


def story_of(verdict: Verdict, plan: TrialPlan) -> dict[str, Any]:
    """A violation as it is shown."""
    first = verdict.violations[0]
    return {
        "seed": verdict.seed,
        "invariant": first.invariant,
        "sentence": first.sentence,
        "faults": sorted(plan.kinds),
        "replay": replay_command(plan),
        "story": verdict.story,
    }
