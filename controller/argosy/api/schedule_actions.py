"""What may be asked of schedules? CreateSchedule, UpdateSchedule, DescribeSchedule, ListSchedules, PauseSchedule,
ResumeSchedule, RunScheduleNow, DeleteSchedule and, for the clock, FireSchedule and ReleaseSchedules.

What a user wants is stored first and told to the clock then; `armed` says whether the clock knows it. A request that
failed in between is sent again, as every request may be.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from argosy.api import firing, requests, schedule_store
from argosy.api.means import Actions, Means
from argosy.api.refusals import RequestRefused
from argosy.api.schedule_requests import (
    CreateSchedule,
    DeleteSchedule,
    DescribeSchedule,
    FireSchedule,
    ListSchedules,
    PauseSchedule,
    ReleaseSchedules,
    ResumeSchedule,
    RunScheduleNow,
    UpdateSchedule,
)
from argosy.api.schedule_views import fire_view, full_schedule_view, schedule_view
from argosy.api.submit_actions import admitted, new_run
from argosy.api.views import iso
from argosy.model.schedules.cron import BadExpression
from argosy.model.schedules.expressions import next_time, parsed, zone_of
from argosy.model.schedules.record import SCHEDULES, Overlap, Schedule, ScheduleState, schedule_from
from argosy.ports import AlreadyExists
from argosy.spec.faults import Fault, SpecError

JSON = dict[str, Any]
AHEAD_S = 120.0  # by how much the clock of whoever fires may be ahead of ours


def _create(means: Means, request: CreateSchedule, request_id: str) -> JSON:
    now, earlier = means.now(), schedule_store.read(means.store, request.name)
    wanted = Schedule(
        name=request.name,
        expression=request.expression,
        zone=request.zone,
        spec=request.spec,
        overlap=Overlap(request.overlap),
        start_within_s=float(request.start_within),
        created_at=now,
        changed_at=now,
        begins=now,
        seen_until=now,
        proven_owner=means.owner,
    )
    if earlier is not None and earlier.state is not ScheduleState.DELETED:
        if not _is_same(earlier, wanted):
            raise _conflict(f"there is a schedule {request.name} already: update it, or delete it first")
        return {**_armed(means, earlier), "created": False}
    warnings = _check(means, wanted)
    if earlier is not None:
        wanted = replace(wanted, revision=earlier.revision + 1, armed=earlier.armed, version=earlier.version)
    return {**_armed(means, _written(means, wanted)), "created": True, "warnings": warnings}


def _update(means: Means, request: UpdateSchedule, request_id: str) -> JSON:
    known, now = _known(means, request.name), means.now()
    if request.revision != known.revision:
        sentence = f"{request.name} is at revision {known.revision} and not at {request.revision}: look at it again"
        raise _conflict(sentence)
    given = request.model_dump(exclude={"action", "name", "revision", "start_within"}, exclude_none=True)
    if request.start_within is not None:
        given["start_within_s"] = float(request.start_within)
    if request.overlap is not None:
        given["overlap"] = Overlap(request.overlap)
    if request.spec is not None:
        given["proven_owner"] = means.owner
    wanted = replace(known, **given, revision=known.revision + 1, changed_at=now)
    if (wanted.expression, wanted.zone) != (known.expression, known.zone):
        wanted = replace(wanted, begins=now, seen_until=now)  # its earlier times were of another expression
    warnings = _check(means, wanted)
    return {**_armed(means, _written(means, wanted)), "warnings": warnings}


def _pause(means: Means, request: PauseSchedule, request_id: str) -> JSON:
    return _changed(means, request.name, _paused)


def _resume(means: Means, request: ResumeSchedule, request_id: str) -> JSON:
    def resumed(known: Schedule) -> Schedule:
        now = means.now()
        return replace(known, state=ScheduleState.ENABLED, begins=now, seen_until=now)

    return _changed(
        means, request.name, lambda known: known if known.state is ScheduleState.ENABLED else resumed(known)
    )


def _paused(known: Schedule) -> Schedule:
    return replace(known, state=ScheduleState.PAUSED)


def _delete(means: Means, request: DeleteSchedule, request_id: str) -> JSON:
    known = schedule_store.read(means.store, request.name)
    if known is None:
        raise _not_there(request.name)
    if known.state is not ScheduleState.DELETED:
        gone = replace(
            known, state=ScheduleState.DELETED, revision=known.revision + 1, waits=0.0, changed_at=means.now()
        )
        beside = schedule_store.Beside()
        beside.waits(request.name, means.now(), waits=False)
        known = _written(means, gone, beside)
    means.clock.remove(request.name)
    return {"name": request.name, "state": known.state.value}


def _describe(means: Means, request: DescribeSchedule, request_id: str) -> JSON:
    return full_schedule_view(_known(means, request.name), means.now(), request.times)


def _list(means: Means, request: ListSchedules, request_id: str) -> JSON:
    after = None if request.next_token is None else requests.page_place(request.next_token)
    page, following = means.store.page(SCHEDULES, request.max_results, after, oldest_first=True)
    there = [each for _, body in page if (each := schedule_from(body)).state is not ScheduleState.DELETED]
    return {
        "schedules": [schedule_view(each, means.now()) for each in there],
        "nextToken": None if following is None else requests.page_token(following),
    }


def _run_now(means: Means, request: RunScheduleNow, request_id: str) -> JSON:
    token = firing.token_of(request.name, "by hand", request.client_token or request_id)
    for _ in range(firing.TRIES):
        known = _known(means, request.name)
        try:
            run_id = firing.start_now(means, known, token)
        except AlreadyExists:
            continue
        return {**means.full_view(run_id), "schedule": request.name}
    raise _conflict(f"the schedule {request.name} is being written by others: try again")


def _fire(means: Means, request: FireSchedule, request_id: str) -> JSON:
    if request.time > means.now() + AHEAD_S:
        raise SpecError([Fault("scheduledTime", f"{request.scheduled_time} is in the future")])
    fire = firing.fire(means, request.name, request.time, request_id)
    shown = {"scheduledTime": iso(request.time, "seconds"), "verdict": None} if fire is None else fire_view(fire)
    return {"name": request.name, **shown}


def _release(means: Means, request: ReleaseSchedules, request_id: str) -> JSON:
    ended = () if request.run_id is None else (request.run_id,)
    names = schedule_store.waiting(means.store)
    return {"released": [name for name in names if firing.release(means, name, ended, request_id) is not None]}


def _check(means: Means, wanted: Schedule) -> list[str]:
    """What is allowed but may not be meant. Raises SpecError with every fault."""
    faults = _time_faults(wanted, means.now())
    try:
        admission = admitted(means, wanted.spec)
        new_run(means, admission, firing.token_of(wanted.name), 0)  # that it is not too large
    except SpecError as refusal:
        raise SpecError([*faults, *refusal.faults]) from refusal
    if faults:
        raise SpecError(faults)
    return list(admission.notes)


def _time_faults(wanted: Schedule, now: float) -> list[Fault]:
    try:
        zone_of(wanted.zone)
    except BadExpression as fault:
        return [Fault("zone", str(fault))]
    try:
        parsed(wanted.expression, wanted.zone)
    except BadExpression as fault:
        return [Fault("expression", str(fault))]
    if next_time(wanted.expression, wanted.zone, now, now) is None:
        return [Fault("expression", f"{wanted.expression} never fires again: its times are over")]
    return []


def _changed(means: Means, name: str, change: Callable[[Schedule], Schedule]) -> JSON:
    """The schedule as a change leaves it; one that changes nothing is not stored."""
    known = _known(means, name)
    wanted = change(known)
    if wanted != known:
        known = _written(means, replace(wanted, revision=known.revision + 1, changed_at=means.now()))
    return _armed(means, known)


def _written(means: Means, wanted: Schedule, beside: schedule_store.Beside | None = None) -> Schedule:
    try:
        return schedule_store.write(means.store, wanted, means.now(), beside)
    except AlreadyExists as fault:
        raise _conflict(f"the schedule {wanted.name} was changed at the same moment: look at it again") from fault


def _armed(means: Means, known: Schedule) -> JSON:
    """Tell the clock of the schedule as it is, and note that it was told. Somebody may change it meanwhile: then he, or
    the next look, tells it the last word."""
    for _ in range(firing.TRIES):
        if known.armed == known.revision:
            break
        means.clock.set(known)
        now = _known(means, known.name)
        if now.revision == known.revision:
            try:
                known = schedule_store.write(means.store, replace(now, armed=now.revision), means.now())
                break
            except AlreadyExists:
                now = _known(means, known.name)  # it fired, or was changed, at the same moment
        known = now
    return full_schedule_view(known, means.now())


def _is_same(earlier: Schedule, wanted: Schedule) -> bool:
    def given(each: Schedule) -> tuple[Any, ...]:
        spec = json.dumps(each.spec, sort_keys=True)
        return each.expression, each.zone, each.overlap, each.start_within_s, spec

    return given(earlier) == given(wanted)


def _known(means: Means, name: str) -> Schedule:
    known = schedule_store.read(means.store, name)
    if known is None or known.state is ScheduleState.DELETED:
        raise _not_there(name)
    return known


def _not_there(name: str) -> RequestRefused:
    return RequestRefused("ResourceNotFoundException", f"there is no schedule {name!r}")


def _conflict(sentence: str) -> RequestRefused:
    return RequestRefused("ConflictException", sentence)


ACTIONS: Actions = {
    CreateSchedule: _create,
    UpdateSchedule: _update,
    DescribeSchedule: _describe,
    ListSchedules: _list,
    PauseSchedule: _pause,
    ResumeSchedule: _resume,
    RunScheduleNow: _run_now,
    DeleteSchedule: _delete,
    FireSchedule: _fire,
    ReleaseSchedules: _release,
}
UNATTENDED = frozenset({FireSchedule.__name__, ReleaseSchedules.__name__})
"""Actions that nobody waits for the answer of: what goes wrong in them must not look like an answer."""
