"""The verdict about one time of a schedule: the same for every delivery, with at most one run.

The verdict, the schedule's next version and the run are stored in one transaction. Its conditions are that this time
has no verdict yet, and that the schedule has not been written since it was read. So one of two deliveries decides, and
two times at once get their verdicts one after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from argosy.api import reading
from argosy.api.refusals import RequestRefused, conflict
from argosy.api.request_context import RequestContext
from argosy.api.runs import cancellations
from argosy.api.runs.submission import NewRun, admitted, new_run
from argosy.api.schedules import store as schedule_store
from argosy.api.schedules.store import ExtraWrites
from argosy.model.damage import FAULTS, UNREADABLE
from argosy.model.run_record import RunRecord
from argosy.model.schedules.record import TO_BE_SEEN, Fire, FireVerdict, Overlap, Schedule, ScheduleState
from argosy.ports import AlreadyExists
from argosy.spec.faults import SpecError

TRIES = 5
MISSED_AT_ONCE = 50  # earlier times that one firing checks; the next firing continues
EVENT = "Schedule Missed"


@dataclass(frozen=True, slots=True)
class UndecidedTime:
    """A time of a schedule without a verdict. open_runs: ids of its runs that have not ended."""

    schedule: Schedule
    time: float
    now: float
    open_runs: tuple[str, ...]

    def verdict(self, verdict: FireVerdict, because: str = "", in_the_way: str = "") -> Fire:
        return Fire(self.time, self.now, verdict, in_the_way, because)


def fire(context: RequestContext, name: str, time: float, request_id: str) -> Fire | None:
    """The verdict about a time. None: the schedule does not exist, or began later. Raises RequestRefused when other
    requests keep writing the schedule; the delivery then has to be repeated."""
    release(context, name, (), request_id)
    for attempt in range(TRIES):
        schedule, now = schedule_store.read(context.store, name), context.now()
        if schedule is None or schedule.state is ScheduleState.DELETED or time < schedule.begins:
            return None
        known = schedule_store.fire_of(context.store, name, time)
        if known is not None:
            _finish(context, name, known, request_id)
            return known
        with suppress(AlreadyExists):
            decided = _decide(context, UndecidedTime(schedule, time, now, open_runs(context, schedule)), attempt)
            _finish(context, name, decided, request_id)
            return decided
    raise _busy(name)


def release(context: RequestContext, name: str, ended: Sequence[str], request_id: str) -> Fire | None:
    """Start the queued run, if no open run blocks it. ended: ids of runs that have ended, even if their records do
    not show it yet."""
    for attempt in range(TRIES):
        schedule = schedule_store.read(context.store, name)
        if schedule is None or not schedule.waits or schedule.state is not ScheduleState.ENABLED:
            return None
        if set(open_runs(context, schedule)) - set(ended):
            return None
        with suppress(AlreadyExists):
            decided = _start(context, UndecidedTime(schedule, schedule.waits, context.now(), ()), attempt, waited=True)
            _finish(context, name, decided, request_id)
            return decided
    raise _busy(name)


def start_now(context: RequestContext, schedule: Schedule, token: str) -> str:
    """The id of the run that is started by hand. Raises SpecError, and AlreadyExists after another write."""
    now, earlier = context.now(), reading.run_of_token(context.store, token)
    if earlier is not None:
        context.wake.controller()  # the first call may have ended between storing and waking
        return earlier
    its = _as_owner(context, schedule)
    run = new_run(its, admitted(its, schedule.spec), token, schedule.version)
    fire = Fire(float(int(now)), now, FireVerdict.RAN, run.run_id, by_hand=True)
    open_now = (*open_runs(context, schedule), run.run_id)
    known = replace(schedule.with_fire(fire), runs=open_now)
    schedule_store.write(context.store, known, now, ExtraWrites(items=dict(run.items), expires_at=dict(run.expires_at)))
    context.wake.controller()
    return run.run_id


def _as_owner(context: RequestContext, schedule: Schedule) -> RequestContext:
    """The owner of the spec owns the runs, whatever starts them."""
    return replace(context, owner=schedule.proven_owner)


def token_of(*parts: object) -> str:
    """Of the run that a schedule starts for one reason: hex digits."""
    return hashlib.sha256("\0".join(["schedule", *map(str, parts)]).encode()).hexdigest()


def open_runs(context: RequestContext, schedule: Schedule) -> tuple[str, ...]:
    """The schedule's runs that have not ended, the newest last. Those of the verdicts that it keeps may have been
    retried since they ended. A run whose record cannot be read blocks nothing."""
    shown = [each.run_id for each in schedule.fires if each.verdict is FireVerdict.RAN]
    older = [run_id for run_id in schedule.runs if run_id not in shown]
    return tuple(run_id for run_id in (*older, *shown) if _is_open(context, run_id))


def _is_open(context: RequestContext, run_id: str) -> bool:
    record = _readable(context, run_id)
    return record is not None and not record.has_ended


def _readable(context: RequestContext, run_id: str) -> RunRecord | None:
    """None: there is none, or it cannot be read."""
    with suppress(*FAULTS, *UNREADABLE):
        return reading.run(context.store, run_id)
    return None


def _decide(context: RequestContext, asked: UndecidedTime, attempt: int) -> Fire:
    """Raises AlreadyExists when another delivery was first."""
    schedule, late_s = asked.schedule, asked.now - asked.time
    if schedule.state is ScheduleState.PAUSED:
        return _store(context, asked, asked.verdict(FireVerdict.PAUSED))
    if late_s > schedule.start_within_s:
        why = f"delivered {late_s:.0f} s after its time, and the schedule starts within {schedule.start_within_s:.0f} s"
        return _store(context, asked, asked.verdict(FireVerdict.LATE, why))
    if asked.open_runs and schedule.overlap is Overlap.SKIP:
        return _store(
            context, asked, asked.verdict(FireVerdict.SKIPPED, "its last run was still open", asked.open_runs[-1])
        )
    if asked.open_runs and schedule.overlap is Overlap.QUEUE:
        return _queue(context, asked)
    return _start(context, asked, attempt)


def _queue(context: RequestContext, asked: UndecidedTime) -> Fire:
    if asked.schedule.waits:
        return _store(
            context, asked, asked.verdict(FireVerdict.SKIPPED, "another firing is already waiting", asked.open_runs[-1])
        )
    beside = ExtraWrites()
    beside.waits(asked.schedule.name, asked.now, waits=True)
    queued = asked.verdict(FireVerdict.QUEUED, "waits for the previous run to end", asked.open_runs[-1])
    return _store(context, replace(asked, schedule=replace(asked.schedule, waits=asked.time)), queued, beside)


def _start(context: RequestContext, asked: UndecidedTime, attempt: int, *, waited: bool = False) -> Fire:
    """Start the run, or store the faults that prevent it. waited: the run was queued."""
    schedule, beside = asked.schedule, ExtraWrites()
    if waited:
        asked = replace(asked, schedule=replace(schedule, waits=0.0))
        beside.waits(schedule.name, asked.now, waits=False)
    its, token = _as_owner(context, schedule), token_of(schedule.name, asked.time)
    try:
        run = new_run(its, admitted(its, schedule.spec), token, schedule.version + attempt)
    except SpecError as refusal:
        why = "; ".join(fault.text() for fault in refusal.faults)
        return _store(context, asked, asked.verdict(FireVerdict.REFUSED, why[:1000]), beside, again=waited)
    return _store(context, asked, _ran(asked, run), _with_run(beside, run), again=waited)


def _ran(asked: UndecidedTime, run: NewRun) -> Fire:
    replaces = asked.open_runs if asked.schedule.overlap is Overlap.REPLACE else ()
    return replace(asked.verdict(FireVerdict.RAN, in_the_way=run.run_id), replaces=replaces)


def _with_run(beside: ExtraWrites, run: NewRun) -> ExtraWrites:
    beside.items |= run.items
    beside.expires_at |= run.expires_at
    return beside


def _store(
    context: RequestContext, asked: UndecidedTime, fire: Fire, beside: ExtraWrites | None = None, *, again: bool = False
) -> Fire:
    """Raises AlreadyExists when another delivery was first."""
    schedule, beside = replace(asked.schedule, runs=asked.open_runs), beside or ExtraWrites()
    beside.decided(schedule.name, fire, again=again)
    missed, seen_until = _missed(context, asked)
    for each in missed:
        schedule = schedule.with_fire(each)
    schedule_store.write(context.store, replace(schedule.with_fire(fire), seen_until=seen_until), asked.now, beside)
    for each in missed:
        _tell(context, schedule.name, each)
    return fire


def _missed(context: RequestContext, asked: UndecidedTime) -> tuple[list[Fire], float]:
    """Earlier times that were not delivered in time, and the time until which every time now has a verdict. Times that
    are not too late yet may still be delivered."""
    schedule = asked.schedule
    before = schedule.just_before(asked.time)
    too_late = min(asked.now - schedule.start_within_s, before)
    times = schedule.unseen(too_late, MISSED_AT_ONCE)
    known = schedule_store.fires_known(context.store, schedule.name, times)
    why = "it was not delivered in time"
    missed = [Fire(each, asked.now, FireVerdict.MISSED, because=why) for each in times if each not in known]
    first_open = schedule.unseen(before, len(times) + 1)[len(times) :]
    if first_open:
        return missed, max([schedule.seen_until, *times])
    return missed, max([schedule.seen_until, asked.time])


def _finish(context: RequestContext, name: str, fire: Fire, request_id: str) -> None:
    """The consequences of a verdict. They are repeated for each delivery, because the one that decided may have died
    before them."""
    if fire.verdict is FireVerdict.RAN:
        context.wake.controller()
    if fire.verdict is FireVerdict.QUEUED:
        release(context, name, (), request_id)  # the run may have ended before this was stored
    for run_id in fire.replaces:
        record = _readable(context, run_id)
        if record is not None and not record.has_ended and not record.cancelled:
            cancellations.put(context, record, f"replaced by {fire.run_id}", request_id)
            context.wake.controller()
    if fire.verdict in TO_BE_SEEN:
        _tell(context, name, fire)


def _tell(context: RequestContext, name: str, fire: Fire) -> None:
    detail: dict[str, Any] = {"schedule": name, "scheduledTime": fire.time, "verdict": fire.verdict.value}
    context.announce(EVENT, {**detail, "reason": fire.because})


def _busy(name: str) -> RequestRefused:
    return conflict(f"the schedule {name} is being changed by other requests: try again")
