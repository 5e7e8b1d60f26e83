"""Names of a dependency's results in a spec: `${dependency.NAME.output}`, with the run's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

OUTPUT = re.compile(r"dependency\.([a-z][a-z0-9-]{0,62})\.output", re.ASCII)
_RUN_ID = re.compile(r"([a-z][a-z0-9-]{0,62})-[0-9]{6}-[0-9]{6}-[a-z0-9]{4}", re.ASCII)


def name_of(run: str) -> str:
    """The name of the run with this id; a name is itself."""
    found = _RUN_ID.fullmatch(run)
    return found[1] if found else run


def output_fault(name: str, data: Mapping[str, Any]) -> str | None:
    """The fault of `${dependency.NAME.output}`. None for a name of another form, or a correct one."""
    found = OUTPUT.fullmatch(name)
    if found is None:
        return None
    given = data.get("dependsOn")
    entries = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    names = [name_of(each["run"]) for each in entries if isinstance(each.get("run"), str)]
    if names.count(found[1]) == 1:
        return None
    if found[1] in names:
        return f"${{{name}}} could mean several runs of dependsOn: give the runs different names"
    known = ", ".join(f"dependency.{each}.output" for each in names) or "nothing: there is no dependsOn"
    return f"${{{name}}} is not a run of dependsOn; known: {known}"
