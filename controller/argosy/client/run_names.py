"""Which run does a user mean? Users give its id, the beginning of the id, its name, or `last`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

from argosy.client.errors import InvalidInput
from argosy.model.wording import first_of

LAST = "last"
SEARCHED = 500  # the newest runs, which are searched for a name or a beginning
NAMED = 5  # candidates that are listed
_ID = re.compile(r"[a-z][a-z0-9-]{0,62}-[0-9]{6}-[0-9]{6}-[a-z0-9]{4}", re.ASCII)


def owner_of(view: Mapping[str, Any]) -> str:
    """`alice`, or `alice (unproven)` where only a spec says so; empty without an owner."""
    name = str(view.get("owner") or "")
    return name if not name or view.get("ownerProven") else f"{name} (unproven)"


class RunsListed(Protocol):
    """The methods of an api that this module needs."""

    def runs(self, limit: int) -> dict[str, Any]:
        """The newest runs, as `client.api.ApiClient.runs` answers them."""


def is_run_id(text: str) -> bool:
    """Whether it has the form of a whole id; the run may not exist."""
    return _ID.fullmatch(text) is not None


class NamedRuns(NamedTuple):
    """environment: "" = a single run is meant."""

    ids: tuple[str, ...]  # the newest first
    environment: str = ""


def runs_meant(api: RunsListed, wanted: str) -> NamedRuns:
    """The run, or for a name whose newest run is an environment's, all of its runs among the newest.

    Raises InvalidInput if no run, or more than one, matches, and what the api raises.
    """
    if is_run_id(wanted) or wanted == LAST:
        return NamedRuns((run_id_of(api, wanted),))
    runs = api.runs(SEARCHED)["runs"]
    newest: Mapping[str, Any] = next((view for view in runs if view["name"] == wanted), {})
    if not newest.get("environment"):
        return NamedRuns((_among(runs, wanted),))
    return NamedRuns(tuple(str(view["runId"]) for view in runs if view.get("environment") == wanted), wanted)


def run_id_of(api: RunsListed, wanted: str) -> str:
    """The id of the run. A whole id is not looked up; a name means the newest run of that name, `last` the newest run
    that is no service's, if there is one.

    Raises InvalidInput if no run, or more than one, matches, and what the api raises.
    """
    if is_run_id(wanted):
        return wanted
    runs = api.runs(1 if wanted == LAST else SEARCHED)["runs"]
    if wanted == LAST and runs and runs[0].get("environment"):
        runs = api.runs(SEARCHED)["runs"]
    return _among(runs, wanted)


def _among(runs: Sequence[Mapping[str, Any]], wanted: str) -> str:
    if wanted == LAST:
        if not runs:
            raise InvalidInput("No run has been submitted to this deployment yet.")
        return str(next((each for each in runs if not each.get("environment")), runs[0])["runId"])
    for view in runs:
        if wanted in (view["name"], view["runId"]):
            return str(view["runId"])
    return _beginning(wanted, [str(view["runId"]) for view in runs], [str(view["name"]) for view in runs])


def _beginning(wanted: str, ids: Sequence[str], names: Sequence[str]) -> str:
    found = [each for each in ids if wanted and each.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{wanted!r} matches the ids of {len(found)} runs: {', '.join(first_of(found, NAMED))}.")
    near = get_close_matches(wanted, [*dict.fromkeys(names), *ids], n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"There is no run {wanted!r}.{meant}", next_step="type `argosy runs` to see the runs")
