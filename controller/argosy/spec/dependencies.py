"""Dependencies in a spec: the runs that it waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from argosy.model.run_terms import ONE_TO_ONE_LIMIT
from argosy.spec.faults import Fault, shown
from argosy.spec.fields import Strict, refused

DEPENDENCY_LIMIT = 20  # AWS Batch's


def _run_or_name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,82}", text, re.ASCII):
        raise refused("must be the id of a run, or its name: small letters, digits and -")
    return text


class DependencySpec(Strict):
    """A run that this one waits for."""

    run: Annotated[str, AfterValidator(_run_or_name)] = Field(
        description="Its id. `argosy submit` and the SDK also accept its name: a run in another file of the same"
        " command, else the newest run."
    )
    type: Literal["ALL", "N_TO_N"] = Field(
        default="ALL",
        description="ALL: nothing starts before the whole run has ended. N_TO_N: each task starts once the task with"
        " the"
        " same index has ended; both runs have the same number of tasks.",
    )
    on: Literal["success", "end"] = Field(
        default="success",
        description="success: the dependency must succeed, otherwise this run fails (N_TO_N: that task is"
        " cancelled). end: any outcome will do.",
    )


def dependency_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """The agreement of several dependencies. Faulty entries are left to the checks of their fields."""
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
