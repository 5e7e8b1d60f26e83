"""The runs that names in `dependsOn` mean, and an order in which to submit several runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from argosy.client.errors import InvalidInput

Spec = Mapping[str, Any]


def names_in(spec: Spec) -> list[str]:
    """Its dependencies as written by its author; the checks of the spec handle anything that is not a name."""
    given = spec.get("dependsOn")
    entries = given if isinstance(given, list) else []
    return [each["run"] for each in entries if isinstance(each, Mapping) and isinstance(each.get("run"), str)]


def with_run_ids(spec: Spec, id_of: Callable[[str], str]) -> dict[str, Any]:
    """The spec with the ids of the runs that it depends on. id_of: raises InvalidInput for a name without a run."""
    if not names_in(spec):
        return dict(spec)
    entries = [
        {**each, "run": id_of(each["run"])} if isinstance(each, Mapping) and isinstance(each.get("run"), str) else each
        for each in spec["dependsOn"]
    ]
    return {**spec, "dependsOn": entries}


def of_other_sizes(spec: Spec, sizes: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """(field, fault) of each dependency task by task on a run of another number of tasks. sizes: by name, of the runs
    that are submitted with it."""
    for place, each in enumerate(spec.get("dependsOn") or ()):
        other, own = sizes.get(each["run"]), sizes[spec["name"]]
        if each.get("type") == "N_TO_N" and other not in (None, own):
            counted = f"{each['run']} has {other:,} tasks and this run {own:,}"
            yield f"dependsOn[{place}].type", f"N_TO_N needs as many tasks in both runs: {counted}"


def in_order(specs: Sequence[Spec]) -> list[int]:
    """Places in `specs` in an order in which each comes after those that it depends on. Raises InvalidInput for two of
    one name, and for runs that wait for each other."""
    places: dict[str, int] = {}
    for place, spec in enumerate(specs):
        name = str(spec.get("name"))
        if name in places:
            raise InvalidInput(f"Two of the files name their run {name!r}: dependsOn could mean either.")
        places[name] = place
    graph = {place: {places[name] for name in names_in(spec) if name in places} for place, spec in enumerate(specs)}
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as cycle:
        names = [str(specs[place].get("name")) for place in reversed(cycle.args[1])]
        raise InvalidInput(f"These runs wait for each other: {' -> '.join(names)}.") from cycle
