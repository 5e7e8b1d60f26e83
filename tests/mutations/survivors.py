"""The sampled mutants that no test found at first, those that none can find, and those that trials did not find. By
hand, for `sampled.json`.
"""

from __future__ import annotations

# They change nothing observable: why.
EQUIVALENT: dict[str, str] = {
    "scheduler/placing/places.py:43.1": "no caller used the default; it is gone",
    "scheduler/services/daemon_environments.py:123.0": "the columns of one table are equally long",
    "scheduler/buying/capped_demand.py:133.4": "a price that equals a cap and a billionth more, to the last bit",
    "api/waiting/line_position.py:244.5": "the line above excludes a factor of 1",
    "sdk/run.py:78.2": "a field is left out of the text for `None` as for `False`",
    "sdk/mapping/calls.py:160.0": "only how many uploads go at once",
}

# They survived the first pass; a test finds them now.
SURVIVED_ONCE: tuple[str, ...] = (
    "sharing/victims.py:206.1",
    "scheduler/due.py:111.6",
    "scheduler/buying/whole_limits.py:117.0",
    "scheduler/buying/capped_demand.py:134.9",
    "scheduler/buying/orders.py:271.0",
    "scheduler/buying/uncapped_runs.py:53.0",
    "scheduler/buying/budget.py:190.7",
    "scheduler/upkeep/pending.py:64.1",
    "lifecycle/suspension.py:84.0",
    "api/admission/specs.py:165.8",
    "api/environments/views.py:33.0",
    "api/cluster/actions.py:87.0",
    "market/limits.py:129.3",
    "sdk/environments.py:175.0",
    "sdk/mapping/calls.py:69.3",
)

# 200 trials did not find them: why. A test finds each.
MISSED_BY_TRIALS: dict[str, str] = {
    "scheduler/turns/asks.py:154.0": "no instance of a trial is ARM",
    "scheduler/decide.py:99.1": "a note that changes nothing keeps a controller awake; no invariant judges it",
    "scheduler/buying/budget.py:190.7": "every pool of a trial has a price",
    "scheduler/buying/capped_demand.py:134.9": "no invariant judges what a run keeps of a cap in vain (144 trials)",
    "scheduler/due.py:111.6": "a controller that could leave stays; no invariant judges it (144 trials)",
    "lifecycle/suspended_tasks.py:45.1": "all tasks have our keys; few launches are in doubt in a suspension",
}
