"""What may a spec say about the runs that it waits for, and how does it name what they leave?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from argosy.model.dependencies import ONE_TO_ONE_LIMIT
from argosy.spec.faults import Fault, shown
from argosy.spec.fields import Strict, refused

DEPENDENCY_LIMIT = 20  # AWS Batch's
OUTPUT = re.compile(r"dependency\.([a-z][a-z0-9-]{0,62})\.output", re.ASCII)
_RUN_ID = re.compile(r"([a-z][a-z0-9-]{0,62})-[0-9]{6}-[0-9]{6}-[a-z0-9]{4}", re.ASCII)


def _run_or_name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,82}", text, re.ASCII):
        raise refused("must be the id of a run, or its name: small letters, digits and -")
    return text


class DependencySpec(Strict):
    """A run that this one waits for."""

    run: Annotated[str, AfterValidator(_run_or_name)] = Field(
        description="Its id. `argosy submit` and the SDK also take its name: of a run in another file of the same"
        " command, else the newest one."
    )
    type: Literal["ALL", "N_TO_N"] = Field(
        default="ALL",
        description="ALL: nothing starts before the whole run has ended. N_TO_N: each task starts once the task of the"
        " same index has; both runs have the same number of tasks.",
    )
    on: Literal["success", "end"] = Field(
        default="success",
        description="success: what it waits for has to succeed; if it does not, this run fails (N_TO_N: that task is"
        " cancelled). end: however it ends.",
    )


def name_of(run: str) -> str:
    """The name of the run with this id; a name is itself."""
    found = _RUN_ID.fullmatch(run)
    return found[1] if found else run


def dependency_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What several dependencies must agree on. Faulty entries are left to the checks of their fields."""
    given = data.get("dependsOn")
    entries = [each if isinstance(each, Mapping) else {} for each in given] if isinstance(given, list) else []
    runs = [each.get("run") for each in entries]
    for number, run in enumerate(runs):
        if run is not None and run in runs[:number]:
            yield Fault(f"dependsOn[{number}].run", f"names {shown(run)} twice")
    bitwise = [number for number, each in enumerate(entries) if each.get("type") == "N_TO_N"]
    if len(bitwise) > ONE_TO_ONE_LIMIT:
        where = f"dependsOn[{bitwise[ONE_TO_ONE_LIMIT]}].type"
        yield Fault(where, f"is the {ONE_TO_ONE_LIMIT + 1}th of type N_TO_N: a run can have {ONE_TO_ONE_LIMIT}")


def output_fault(name: str, data: Mapping[str, Any]) -> str | None:
    """What is wrong with `${dependency.NAME.output}`. None for a name that is of another form, or right."""
    found = OUTPUT.fullmatch(name)
    if found is None:
        return None
    given = data.get("dependsOn")
    entries = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    names = [name_of(each["run"]) for each in entries if isinstance(each.get("run"), str)]
    if names.count(found[1]) == 1:
        return None
    if found[1] in names:
        return f"${{{name}}} could mean several of dependsOn: give the runs different names"
    known = ", ".join(f"dependency.{each}.output" for each in names) or "nothing: there is no dependsOn"
    return f"${{{name}}} is no run of dependsOn; known: {known}"
