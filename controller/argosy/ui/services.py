"""The present state of services and schedules. The page of an environment also reads its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from argosy.client.api import ApiError
from argosy.client.failures import AlikeAttempts
from argosy.figures.document import Page
from argosy.figures.environment import ServiceSeen, environment_page
from argosy.figures.instances import instances_of
from argosy.figures.schedules import schedule_page, schedules_page
from argosy.figures.services import services_page
from argosy.ui.answer_cache import known
from argosy.ui.deployment_reader import RUN_S, DeploymentReader, NoSuchPage

JSON = Mapping[str, Any]
TASKS_SHOWN = 200
COURSES_SHOWN = 4  # the latest revisions that had a run
FAILURES_SHOWN = 3  # the revisions of the latest deployments
ANSWER_S = 10.0  # seconds for which an answer serves


def services(reader: DeploymentReader) -> Page:
    """All of them."""
    reply = reader.kept.once("services", RUN_S, reader.access.api.environments)
    return services_page(reply["environments"])


def service(reader: DeploymentReader, name: str) -> Page:
    """Raises NoSuchPage if there is none of the name."""
    return reader.kept.once(("service", name), RUN_S, lambda: _environment(reader, name))


def schedules(reader: DeploymentReader) -> Page:
    """All of them."""
    reply = reader.kept.once("schedules", RUN_S, reader.access.api.schedules)
    return schedules_page(reply["schedules"], reader.now())


def schedule(reader: DeploymentReader, name: str) -> Page:
    """Raises NoSuchPage if there is none of the name."""
    reply = reader.kept.once(("schedule", name), RUN_S, lambda: _found(partial(reader.access.api.schedule, name)))
    return schedule_page(reply, reader.now())


def _found(read: Any) -> Any:
    try:
        return read()
    except ApiError as refusal:
        if refusal.code == "ResourceNotFoundException":
            raise NoSuchPage(f"{refusal.message[:1].upper()}{refusal.message[1:]}.") from refusal
        raise


def _environment(reader: DeploymentReader, name: str) -> Page:
    view = _found(partial(reader.access.api.environment, name))
    runs = {each["revision"]: each["runId"] for each in view["revisions"] if each["runId"]}
    tasks, left = _tasks(reader, view, runs)
    target = runs.get(view["targetRevision"], "")
    seen = ServiceSeen(
        now=reader.now(),
        tasks=tasks,
        tasks_left=left,
        histories=dict(_histories(reader, runs)),
        failures=dict(_failures(reader, view, runs)),
        pools=_pools(reader) if tasks else {},
        explained=_why(reader, target) if target and view["pending"] else None,
    )
    return environment_page(view, seen)


def _tasks(reader: DeploymentReader, view: JSON, runs: Mapping[int, str]) -> tuple[dict[int, Sequence[JSON]], int]:
    """By revision, of those that have any: those that are alive or wait. And how many more there are."""
    found, left = {}, 0
    for each in view["revisions"]:
        if each["revision"] not in runs or not (each["running"] or each["revision"] == view["targetRevision"]):
            continue
        wanted = {"runId": runs[each["revision"]], "status": ["PENDING", "STARTING", "RUNNING"]}
        reply = known(partial(reader.access.api.tasks, TASKS_SHOWN, **wanted))
        if reply is not None and reply["tasks"]:
            found[each["revision"]] = reply["tasks"]
            left += max(0, each["running"] - TASKS_SHOWN) if reply["nextToken"] else 0
    return found, left


def _histories(reader: DeploymentReader, runs: Mapping[int, str]) -> Iterator[tuple[int, JSON]]:
    for number in sorted(runs)[-COURSES_SHOWN:]:
        told = _kept(reader, "history", runs[number], partial(reader.access.api.history, runs[number]))
        if told is not None:
            yield number, told


def _failures(
    reader: DeploymentReader, view: JSON, runs: Mapping[int, str]
) -> Iterator[tuple[int, list[AlikeAttempts]]]:
    latest = list(dict.fromkeys(each["revision"] for each in reversed(view["deployments"])))
    for number in latest[:FAILURES_SHOWN]:
        if number not in runs:
            continue
        run = _kept(reader, "failed", runs[number], partial(reader.access.api.describe, runs[number]))
        if run is not None:
            yield number, reader.failures(run)


def _pools(reader: DeploymentReader) -> dict[str, str]:
    """Type, zone and purchase of each instance that lives."""
    cluster = known(reader.cluster_now)
    if cluster is None:
        return {}
    found, _ = instances_of(cluster)
    return {
        found.ids[row].decode(): f"{found.types[found.type[row]]} in {found.zones[found.zone[row]]}, "
        f"{found.purchases[found.purchase[row]]}"
        for row in range(len(found))
    }


def _why(reader: DeploymentReader, run_id: str) -> JSON | None:
    found: JSON | None = _kept(reader, "why", run_id, partial(reader.access.api.explain, run_id, None))
    return found


def _kept(reader: DeploymentReader, what: str, run_id: str, read: Any) -> Any:
    """The answer about a run; None if there is none."""
    return known(lambda: reader.kept.once((what, run_id), ANSWER_S, read))
