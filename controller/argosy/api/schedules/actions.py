"""The actions on schedules: CreateSchedule, UpdateSchedule, DescribeSchedule, ListSchedules, PauseSchedule,
ResumeSchedule, RunScheduleNow, DeleteSchedule and, for the clock, FireSchedule and ReleaseSchedules.

A schedule is stored first and then set in the clock; `armed` says whether the clock has its last revision. A request
that failed in between may be sent again, like every request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from argosy.api import requests
from argosy.api.refusals import RequestRefused, conflict, not_found
from argosy.api.request_context import Actions, RequestContext
from argosy.api.runs.submission import admitted, new_run
from argosy.api.schedules import firing
from argosy.api.schedules import store as schedule_store
from argosy.api.schedules.requests import (
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
from argosy.api.views import iso
from argosy.model.schedules.cron import LAST_YEAR, BadExpression
from argosy.model.schedules.expressions import next_time, parsed, zone_of
from argosy.model.schedules.record import SCHEDULES, Fire, Overlap, Schedule, ScheduleState, schedule_from
from argosy.ports import AlreadyExists
from argosy.spec.faults import Fault, SpecError

JSON = dict[str, Any]
AHEAD_S = 120.0  # by how much the clock that fires may be ahead of ours


def _create(context: RequestContext, request: CreateSchedule, request_id: str) -> JSON:
    now, earlier = context.now(), schedule_store.read(context.store, request.name)
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
        proven_owner=context.owner,
    )
    if earlier is not None and earlier.state is not ScheduleState.DELETED:
        if not _is_same(earlier, wanted):
            raise conflict(f"the schedule {request.name} already exists: update it, or delete it first")
        return {**_armed(context, earlier), "created": False}
    warnings = _check(context, wanted)
    if earlier is not None:
        wanted = replace(wanted, revision=earlier.revision + 1, armed=earlier.armed, version=earlier.version)
    return {**_armed(context, _written(context, wanted)), "created": True, "warnings": warnings}


def _update(context: RequestContext, request: UpdateSchedule, request_id: str) -> JSON:
    known, now = _known(context, request.name), context.now()
    if request.revision != known.revision:
        sentence = f"{request.name} is at revision {known.revision} and not at {request.revision}: read it again"
        raise conflict(sentence)
    given = request.model_dump(exclude={"action", "name", "revision", "start_within"}, exclude_none=True)
    if request.start_within is not None:
        given["start_within_s"] = float(request.start_within)
    if request.overlap is not None:
        given["overlap"] = Overlap(request.overlap)
    if request.spec is not None:
        given["proven_owner"] = context.owner
    wanted = replace(known, **given, revision=known.revision + 1, changed_at=now)
    if (wanted.expression, wanted.zone) != (known.expression, known.zone):
        wanted = replace(wanted, begins=now, seen_until=now)  # its earlier times were of another expression
    warnings = _check(context, wanted)
    return {**_armed(context, _written(context, wanted)), "warnings": warnings}


def _pause(context: RequestContext, request: PauseSchedule, request_id: str) -> JSON:
    return _changed(context, request.name, _paused)


def _resume(context: RequestContext, request: ResumeSchedule, request_id: str) -> JSON:
    def resumed(known: Schedule) -> Schedule:
        now = context.now()
        return replace(known, state=ScheduleState.ENABLED, begins=now, seen_until=now)

    view = _changed(
        context, request.name, lambda known: known if known.state is ScheduleState.ENABLED else resumed(known)
    )
    started = firing.release(context, request.name, (), request_id)  # its run may have ended during the pause
    return view if started is None else full_schedule_view(_known(context, request.name), context.now())


def _paused(known: Schedule) -> Schedule:
    return replace(known, state=ScheduleState.PAUSED)


def _delete(context: RequestContext, request: DeleteSchedule, request_id: str) -> JSON:
    known = schedule_store.read(context.store, request.name)
    if known is None:
        raise _not_there(request.name)
    if known.state is not ScheduleState.DELETED:
        gone = replace(
            known, state=ScheduleState.DELETED, revision=known.revision + 1, waits=0.0, changed_at=context.now()
        )
        beside = schedule_store.ExtraWrites()
        beside.waits(request.name, context.now(), waits=False)
        known = _written(context, gone, beside)
    context.clock.remove(request.name)
    return {"name": request.name, "state": known.state.value}


def _describe(context: RequestContext, request: DescribeSchedule, request_id: str) -> JSON:
    return full_schedule_view(_known(context, request.name), context.now(), request.times)


def _list(context: RequestContext, request: ListSchedules, request_id: str) -> JSON:
    after = None if request.next_token is None else requests.page_place(request.next_token)
    page, following = context.store.page(SCHEDULES, request.max_results, after, oldest_first=True)
    there = [each for _, body in page if (each := schedule_from(body)).state is not ScheduleState.DELETED]
    return {
        "schedules": [schedule_view(each, context.now()) for each in there],
        "nextToken": None if following is None else requests.page_token(following),
    }


def _run_now(context: RequestContext, request: RunScheduleNow, request_id: str) -> JSON:
    token = firing.token_of(request.name, "by hand", request.client_token or request_id)
    for _ in range(firing.TRIES):
        known = _known(context, request.name)
        try:
            run_id = firing.start_now(context, known, token)
        except AlreadyExists:
            continue
        return {**context.full_view(run_id), "schedule": request.name}
    raise conflict(f"the schedule {request.name} is being changed by other requests: try again")


def _fire(context: RequestContext, request: FireSchedule, request_id: str) -> JSON:
    if request.time > context.now() + AHEAD_S:
        raise SpecError([Fault("scheduledTime", f"{request.scheduled_time} is in the future")])
    known = schedule_store.read(context.store, request.name)
    if known is not None and request.time >= known.begins and not known.falls_on(request.time):
        times = f"{known.expression} in {known.zone} does not fall on it"
        raise SpecError([Fault("scheduledTime", f"{request.scheduled_time} is refused: {times}")])
    fire = firing.fire(context, request.name, request.time, request_id)
    shown = {"scheduledTime": iso(request.time, "seconds"), "verdict": None} if fire is None else fire_view(fire)
    return {"name": request.name, **shown}


def _release(context: RequestContext, request: ReleaseSchedules, request_id: str) -> JSON:
    ended = () if request.run_id is None else (request.run_id,)
    names = schedule_store.waiting(context.store)
    return {"released": [name for name in names if firing.release(context, name, ended, request_id) is not None]}


def _check(context: RequestContext, wanted: Schedule) -> list[str]:
    """Warnings. Raises SpecError with every fault."""
    faults = _time_faults(wanted, context.now())
    try:
        admission = admitted(context, wanted.spec)
        new_run(context, admission, firing.token_of(wanted.name), 0)  # that it is not too large
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
        sentence = f"{wanted.expression} never fires again: it has no time between now and the year {LAST_YEAR}"
        return [Fault("expression", sentence)]
    return []


def _changed(context: RequestContext, name: str, change: Callable[[Schedule], Schedule]) -> JSON:
    """The schedule after a change. A change without effect is not stored."""
    known = _known(context, name)
    wanted = change(known)
    if wanted != known:
        known = _written(context, replace(wanted, revision=known.revision + 1, changed_at=context.now()))
    return _armed(context, known)


def _written(context: RequestContext, wanted: Schedule, beside: schedule_store.ExtraWrites | None = None) -> Schedule:
    try:
        return schedule_store.write(context.store, wanted, context.now(), beside)
    except AlreadyExists as fault:
        raise conflict(f"the schedule {wanted.name} was changed at the same time: read it again") from fault


def _armed(context: RequestContext, known: Schedule) -> JSON:
    """Set the clock to the schedule's revision, and store that it is set. If another request changes the schedule in
    between, that request or the next one sets the clock again."""
    for _ in range(firing.TRIES):
        if known.armed == known.revision:
            break
        context.clock.set(known)
        now = _known(context, known.name)
        if now.revision == known.revision:
            try:
                known = schedule_store.write(context.store, replace(now, armed=now.revision), context.now())
                break
            except AlreadyExists:
                now = _known(context, known.name)  # it fired, or was changed, at the same time
        known = now
    return full_schedule_view(known, context.now())


def _is_same(earlier: Schedule, wanted: Schedule) -> bool:
    def given(each: Schedule) -> tuple[Any, ...]:
        spec = json.dumps(each.spec, sort_keys=True)
        return each.expression, each.zone, each.overlap, each.start_within_s, spec

    return given(earlier) == given(wanted)


def _known(context: RequestContext, name: str) -> Schedule:
    known = schedule_store.read(context.store, name)
    if known is None or known.state is ScheduleState.DELETED:
        raise _not_there(name)
    return known


def _not_there(name: str) -> RequestRefused:
    return not_found(f"there is no schedule {name!r}")


def schedule_view(schedule: Schedule, now: float) -> JSON:
    """Without its spec and with its last verdict only. armed: false when the clock lacks the last change."""
    times = schedule.next_times(now, 1)
    late = schedule.overdue(now)
    return {
        "name": schedule.name,
        "state": schedule.state.value,
        "expression": schedule.expression,
        "zone": schedule.zone,
        "overlap": schedule.overlap.value,
        "startWithin": schedule.start_within_s,
        "revision": schedule.revision,
        "armed": schedule.armed == schedule.revision,
        "next": iso(times[0], "seconds") if times else None,
        "overdue": None if late is None else iso(late, "seconds"),
        "waiting": iso(schedule.waits, "seconds"),
        "last": fire_view(schedule.fires[-1]) if schedule.fires else None,
    }


def full_schedule_view(schedule: Schedule, now: float, times: int = 5) -> JSON:
    """Everything about a schedule, its newest verdict first. times: the number of coming times."""
    return {
        **schedule_view(schedule, now),
        "createdAt": iso(schedule.created_at),
        "changedAt": iso(schedule.changed_at),
        "nextTimes": [iso(each, "seconds") for each in schedule.next_times(now, times)],
        "fires": [fire_view(each) for each in reversed(schedule.fires)],
        "spec": dict(schedule.spec),
    }


def fire_view(fire: Fire) -> JSON:
    """One verdict. runId: the run that it started, or the open run that blocked it."""
    return {
        "scheduledTime": iso(fire.time, "seconds"),
        "verdict": fire.verdict.value,
        "decidedAt": iso(fire.decided_at),
        "runId": fire.run_id or None,
        "reason": fire.because or None,
        "replaced": list(fire.replaces),
        "byHand": fire.by_hand,
    }


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
"""Actions whose reply is read by no caller: a failure has to be raised, not returned."""
