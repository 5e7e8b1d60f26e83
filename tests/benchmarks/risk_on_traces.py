"""How well do decayed counts with a prior predict interruptions? Half-lives and priors on recorded spot traces.

    python -m tests.benchmarks.risk_on_traces FOLDER

FOLDER holds `spot-traces` of "Can't Be Late" (NSDI'24, skypilot-org/spot-traces), which are not part of this project:
JSON files with metadata.gap_seconds and data = instances held at each step. A fall counts as an interruption. The
figures are those of decision 8: the mean log-likelihood of each next step's interruptions under a Poisson process with
the rate known before it; higher is better.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.market.risk import PRIOR_HOURS, RATE_OF_BAND
from argosy.model.policy import Policy

HALF_LIVES_H = (1.0, 3.0, 6.0, 12.0, 24.0, 96.0, math.inf)
PRIORS_H = (1.0, 2.0, 4.0, 8.0, 16.0, 64.0)


class Trace(NamedTuple):
    name: str
    step_h: float
    hours: NDArray[np.float64]  # instance-hours of each step
    interruptions: NDArray[np.float64]
    outages_min: NDArray[np.float64]  # how long there was nothing


def traces(folder: Path) -> Iterator[Trace]:
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text())
        step_h = content["metadata"]["gap_seconds"] / 3600
        held = np.array(content["data"], dtype=float)
        edges = np.diff(np.concatenate([[0], (held == 0).astype(int), [0]]))
        outages = (np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)) * step_h * 60
        name = f"{path.parts[-4]}/{path.parent.name}/{path.name}"
        yield Trace(name, step_h, held[:-1] * step_h, -np.minimum(np.diff(held), 0), outages)


def likelihood(trace: Trace, half_life_h: float, prior_h: float, prior_rate: float) -> float:
    kept = 0.5 ** (trace.step_h / half_life_h)
    events = hours = total = 0.0
    for more_hours, more_events in zip(trace.hours.tolist(), trace.interruptions.tolist(), strict=True):
        rate = (prior_h * prior_rate + events) / (prior_h + hours)
        if more_hours:
            total += more_events * math.log(rate * more_hours) - rate * more_hours
        events, hours = events * kept + more_events, hours * kept + more_hours
    return total


def main(folder: Path) -> None:
    found = list(traces(folder))
    print(f"{'trace':66} {'hours':>8} {'events':>7} {'/hour':>6} {'outages':>8} {'median':>7} {'p90 min':>8}")
    for trace in found:
        hours, events, outages = trace.hours.sum(), trace.interruptions.sum(), trace.outages_min
        shown = (np.median(outages), np.percentile(outages, 90)) if len(outages) else (0.0, 0.0)
        print(
            f"{trace.name[-66:]:66} {hours:8.0f} {events:7.0f} {events / hours:6.3f} {len(outages):8} "
            f"{shown[0]:7.1f} {shown[1]:8.1f}"
        )
    prior = RATE_OF_BAND[4]
    for kind in ("preemption", "availability"):
        those = [trace for trace in found if trace.name.startswith(kind)]
        events = sum(trace.interruptions.sum() for trace in those)
        if not events:
            continue
        print(f"\n{kind}: log-likelihood for each of {events:.0f} interruptions, prior rate {prior} an hour")
        print("half-life h  " + "".join(f"{f'prior {prior_h:g} h':>13}" for prior_h in PRIORS_H))
        for half_life_h in HALF_LIVES_H:
            row = [sum(likelihood(t, half_life_h, prior_h, prior) for t in those) / events for prior_h in PRIORS_H]
            print(f"{half_life_h:11g}  " + "".join(f"{value:13.3f}" for value in row))
    print(f"\nin use: half-life {Policy().rate_half_life_s / 3600:g} h, prior {PRIOR_HOURS:g} h")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
