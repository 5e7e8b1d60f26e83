"""What of a run may change after its submission, and what does its spec say from then on?

What was submitted stays as it is stored. Changes are kept beside it, and the run's terms follow from both: whoever asks
what a run may cost or use asks its terms, and need not know of changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

Changes = Mapping[str, Any]
"""New values by the name of the field; None: the spec says nothing of it any more."""

_CAPACITY, _PLACEMENT, _RESOURCES = "capacity", "placement", "resources"
PLACES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "priority": (),
        "queue": (),
        "budgetUsd": (_CAPACITY,),
        "maxHourlyCost": (_CAPACITY,),
        "deadline": (_CAPACITY,),
        "maxInstances": (_CAPACITY,),
        "maxConcurrentTasks": (_PLACEMENT,),
        "memory": (_RESOURCES,),
        "vcpus": (_RESOURCES,),
    }
)
"""The part of the spec in which each field lies."""
WHEN_RETRIED = frozenset({"memory", "vcpus"})  # no task of the run is alive then, and its definition is made anew
OF_OPEN_RUNS = tuple(name for name in PLACES if name not in WHEN_RETRIED)
NEVER_ABSENT = frozenset({"priority", "queue", *WHEN_RETRIED})


def path_of(name: str) -> str:
    """As faults of a spec name the field."""
    return ".".join((*PLACES[name], name))


def changed(spec: Mapping[str, Any], changes: Changes) -> Mapping[str, Any]:
    """The spec with the changes. Raises KeyError for a field that never changes."""
    found = dict(spec)
    for name, value in changes.items():
        _put(found, PLACES[name], name, value)
    if "budgetUsd" in changes and changes["budgetUsd"] is None:
        _put(found, (_CAPACITY,), "onCap", None)  # which says what becomes of it when it is used up
    return found


def _put(spec: dict[str, Any], place: Iterable[str], name: str, value: Any) -> None:
    for part in place:
        spec[part] = dict(spec.get(part) or {})
        spec = spec[part]
    if value is None:
        spec.pop(name, None)
    else:
        spec[name] = value
