"""A spec's JSON form with a user's later changes, as if it had been submitted that way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model.run_terms import Changes

# By the name of a changeable field: the part of the spec that holds it.
_PARTS: Mapping[str, tuple[str, ...]] = {
    "priority": (),
    "queue": (),
    **dict.fromkeys(("budgetUsd", "maxHourlyCost", "deadline", "maxInstances"), ("capacity",)),
    "maxConcurrentTasks": ("placement",),
    **dict.fromkeys(("memory", "vcpus"), ("resources",)),
}


def path_of(name: str) -> str:
    """The field's name in a spec's faults."""
    return ".".join((*_PARTS[name], name))


def changed_form(form: Mapping[str, Any], changes: Changes) -> Mapping[str, Any]:
    """The form with the changes. Raises KeyError for a field that never changes."""
    found = dict(form)
    for name, value in changes.items():
        part = found
        for outer in _PARTS[name]:
            part = found[outer] = dict(found.get(outer) or {})
        part.pop(name, None)
        if value is not None:
            part[name] = value
    if "budgetUsd" in changes and changes["budgetUsd"] is None:
        found["capacity"].pop("onCap", None)  # it decides what happens to the run when the budget is used up
    return found
