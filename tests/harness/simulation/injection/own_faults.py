"""The runs at which the controller's own code fails, and for how long. Such a run is suspended (decision 19)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from argosy.engine.tick import Engine
from tests.harness.simulation.faults import Faults

SHORTEST_S, LONGEST_S = 10.0, 1_500.0
MOST = 2  # per trial: a suspended run starts nothing, and other faults would find nothing to strike
REASON = "a planted fault"


class OwnFaults:
    """Own faults of one deployment: the next process fails at the same runs."""

    def __init__(self, faults: Faults, clock: Callable[[], float]) -> None:
        self._faults, self._clock = faults, clock
        self._until: defaultdict[str, float] = defaultdict(float)
        self._struck = 0

    def strike(self, engine: Engine) -> None:
        """Before a tick: the engine has failed at some of its runs, as if in an action."""
        if engine.state is None:
            return
        runs = list(engine.state.runs)
        if runs and self._struck < MOST and self._faults.strikes("own-fault"):
            self._struck += 1
            chosen = runs[int(self._faults.between(0, len(runs)))]
            self._until[chosen] = self._clock() + SHORTEST_S * (LONGEST_S / SHORTEST_S) ** self._faults.between(0, 1)
        failing = [run_id for run_id in runs if self._faults.active and self._clock() < self._until[run_id]]
        if failing:
            engine.excluded.runs.update(dict.fromkeys(failing, REASON))
            engine.state = None  # they are suspended in the next load
