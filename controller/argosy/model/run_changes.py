"""What may change of a run after its submission?

The submitted spec stays as it is stored. Changes are stored beside it, by the spec's name of the field, and the run's
terms follow from both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from argosy.model.resources import CPU_UNITS_PER_VCPU
from argosy.model.run_terms import DEFAULT_QUEUE, Deadline, RunTerms

Changes = Mapping[str, Any]
"""New values by the name of the field; None: the field is unset."""

# By the name of a field that may change: the terms that follow from its value.
_TERMS: Mapping[str, Callable[[RunTerms, Any], dict[str, Any]]] = {
    "priority": lambda terms, value: {"priority": int(value or 0)},
    "queue": lambda terms, value: {"queue": str(value or DEFAULT_QUEUE)},
    "budgetUsd": lambda terms, value: {"budget_usd": value, "drains_at_cap": terms.drains_at_cap or value is None},
    "maxHourlyCost": lambda terms, value: {"max_hourly_usd": value},
    "deadline": lambda terms, value: {"deadline": None if value is None else Deadline.parse(value)},
    "maxInstances": lambda terms, value: {"max_instances": value},
    "maxConcurrentTasks": lambda terms, value: {"max_concurrent": value},
    "memory": lambda terms, value: {"needs": terms.needs._replace(memory_mib=int(value))},
    "vcpus": lambda terms, value: {"needs": terms.needs._replace(cpu_units=round(value * CPU_UNITS_PER_VCPU))},
}
WHEN_RETRIED = frozenset({"memory", "vcpus"})  # no task of the run is alive then, and its definition is created again
OF_OPEN_RUNS = tuple(name for name in _TERMS if name not in WHEN_RETRIED)
NEVER_ABSENT = frozenset({"priority", "queue", *WHEN_RETRIED})


def changed(terms: RunTerms, changes: Changes) -> RunTerms:
    """The terms with the changes. Raises KeyError for a field that never changes."""
    for name, value in changes.items():
        terms = replace(terms, **_TERMS[name](terms, value))
    return terms
