"""The present state of services and schedules. The page of an environment also reads its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from argosy.client.api import ApiError
from argosy.client.failures import FailuresAlike
from argosy.figures.document import Page
from argosy.figures.environment import ServiceSeen, environment_page
from argosy.figures.instances import instances_of
from argosy.figures.schedules import schedule_page, schedules_page
from argosy.figures.services import services_page
from argosy.ui.kept import known
from argosy.ui.looks import RUN_S, Looks, NoSuchPage

JSON = Mapping[str, Any]
TASKS_SHOWN = 200
COURSES_SHOWN = 4  # the latest revisions that had a run
FAILURES_SHOWN = 3  # the revisions of the latest deployments
ANSWER_S = 10.0  # seconds for which an answer serves


def services(looks: Looks) -> Page:
    """All of them."""
    reply = looks.kept.once("services", RUN_S, looks.access.api.environments)
    return services_page(reply["environments"])


def service(looks: Looks, name: str) -> Page:
    """Raises NoSuchPage if there is none of the name."""
    return looks.kept.once(("service", name), RUN_S, lambda: _environment(looks, name))


def schedules(looks: Looks) -> Page:
    """All of them."""
    reply = looks.kept.once("schedules", RUN_S, looks.access.api.schedules)
    return schedules_page(reply["schedules"], looks.now())


def schedule(looks: Looks, name: str) -> Page:
    """Raises NoSuchPage if there is none of the name."""
    reply = looks.kept.once(("schedule", name), RUN_S, lambda: _found(partial(looks.access.api.schedule, name)))
    return schedule_page(reply, looks.now())


def _found(read: Any) -> Any:
    try:
        return read()
    except ApiError as refusal:
        if refusal.code == "ResourceNotFoundException":
            raise NoSuchPage(f"{refusal.message[:1].upper()}{refusal.message[1:]}.") from refusal
        raise


def _environment(looks: Looks, name: str) -> Page:
    view = _found(partial(looks.access.api.environment, name))
    runs = {each["revision"]: each["runId"] for each in view["revisions"] if each["runId"]}
    tasks, left = _tasks(looks, view, runs)
    target = runs.get(view["targetRevision"], "")
    seen = ServiceSeen(
        now=looks.now(),
        tasks=tasks,
        tasks_left=left,
        courses=dict(_courses(looks, runs)),
        failures=dict(_failures(looks, view, runs)),
        pools=_pools(looks) if tasks else {},
        explained=_why(looks, target) if target and view["pending"] else None,
    )
    return environment_page(view, seen)


def _tasks(looks: Looks, view: JSON, runs: Mapping[int, str]) -> tuple[dict[int, Sequence[JSON]], int]:
    """By revision, of those that have any: those that are alive or wait. And how many more there are."""
    found, left = {}, 0
    for each in view["revisions"]:
        if each["revision"] not in runs or not (each["running"] or each["revision"] == view["targetRevision"]):
            continue
        wanted = {"runId": runs[each["revision"]], "status": ["PENDING", "STARTING", "RUNNING"]}
        reply = known(partial(looks.access.api.tasks, TASKS_SHOWN, **wanted))
        if reply is not None and reply["tasks"]:
            found[each["revision"]] = reply["tasks"]
            left += max(0, each["running"] - TASKS_SHOWN) if reply["nextToken"] else 0
    return found, left


def _courses(looks: Looks, runs: Mapping[int, str]) -> Iterator[tuple[int, JSON]]:
    for number in sorted(runs)[-COURSES_SHOWN:]:
        told = _kept(looks, "course", runs[number], partial(looks.access.api.history, runs[number]))
        if told is not None:
            yield number, told


def _failures(looks: Looks, view: JSON, runs: Mapping[int, str]) -> Iterator[tuple[int, list[FailuresAlike]]]:
    latest = list(dict.fromkeys(each["revision"] for each in reversed(view["deployments"])))
    for number in latest[:FAILURES_SHOWN]:
        if number not in runs:
            continue
        run = _kept(looks, "failed", runs[number], partial(looks.access.api.describe, runs[number]))
        if run is not None:
            yield number, looks.failures(run)


def _pools(looks: Looks) -> dict[str, str]:
    """Type, zone and purchase of each instance that lives."""
    cluster = known(looks.cluster_now)
    if cluster is None:
        return {}
    found, _ = instances_of(cluster)
    return {
        found.ids[row].decode(): f"{found.types[found.type[row]]} in {found.zones[found.zone[row]]}, "
        f"{found.purchases[found.purchase[row]]}"
        for row in range(len(found))
    }


def _why(looks: Looks, run_id: str) -> JSON | None:
    found: JSON | None = _kept(looks, "why", run_id, partial(looks.access.api.explain, run_id, None))
    return found


def _kept(looks: Looks, what: str, run_id: str, read: Any) -> Any:
    """The answer about a run; None if there is none."""
    return known(lambda: looks.kept.once((what, run_id), ANSWER_S, read))
