"""Planted bugs of schedules."""

from __future__ import annotations

from itertools import count
from typing import Any

from argosy.api import reading
from argosy.api.request_context import RequestContext
from argosy.api.schedules import firing
from argosy.api.schedules import store as schedule_store
from argosy.api.schedules.store import ExtraWrites
from argosy.model.schedules import expressions
from argosy.model.schedules.record import FIRES, Fire, FireVerdict, Schedule, fire_key, to_bytes
from tests.fakes.schedules import ScheduleDesk
from tests.mutations.catalogue import Patch, planted, scenario

TRIALS = ("tests.simulation.test_schedules", "trials_find_nothing", range(6))


@planted("a time that is delivered again is decided about again", check=scenario(*TRIALS))
def schedule_fires_twice(patch: Patch) -> None:
    numbers = count()

    def decided(beside: ExtraWrites, name: str, fire: Fire, *, again: bool = False) -> None:
        beside.replacing[FIRES, fire_key(name, fire.time)] = to_bytes(fire)

    patch.setattr(schedule_store, "fire_of", lambda *rest: None)
    patch.setattr(ExtraWrites, "decided", decided)
    patch.setattr(firing, "token_of", lambda *parts: f"{next(numbers):064}")


@planted("a time that is refused leaves nothing behind", check=scenario(*TRIALS[:2], range(15, 16)))
def refused_times_vanish(patch: Patch) -> None:
    real = firing._store

    def store(context: Any, asked: Any, fire: Fire, *rest: Any, **more: Any) -> Fire:
        return fire if fire.verdict is FireVerdict.REFUSED else real(context, asked, fire, *rest, **more)

    patch.setattr(firing, "_store", store)


@planted(
    "two times at once are decided about without a look at each other",
    check=scenario(
        "tests.unit.api.test_firing", "test_two_times_at_once_are_decided_one_after_the_other", ScheduleDesk()
    ),
)
def schedules_are_written_without_condition(patch: Patch) -> None:
    numbers = count()
    real = schedule_store.write

    def write(store: Any, schedule: Any, *rest: Any) -> Any:
        patch.setattr(schedule_store, "WRITTEN", f"SCHEDULES-WRITTEN-{next(numbers)}")
        return real(store, schedule, *rest)

    patch.setattr(schedule_store, "write", write)


@planted(
    "what is queued is forgotten if its run ends during a pause",
    check=scenario(
        "tests.unit.api.test_firing",
        "test_a_queued_firing_starts_at_the_resumption_if_its_run_has_ended_during_the_pause",
        ScheduleDesk(),
    ),
)
def resumption_forgets_the_queue(patch: Patch) -> None:
    real = firing.release

    def release(context: Any, name: str, ended: Any, request_id: str) -> Fire | None:
        return real(context, name, ended, request_id) if ended else None

    patch.setattr(firing, "release", release)


@planted(
    "a time that the clock leaves out in spring is fired an hour off",
    check=scenario(
        "tests.unit.model.test_schedule_times", "test_a_time_that_the_clock_leaves_out_in_spring_is_skipped"
    ),
)
def spring_fires_an_hour_off(patch: Patch) -> None:
    def moments(expression: Any, zone: Any, after: float) -> Any:
        shown = expressions._shown(expression, expressions._day_before(after, zone))
        return (found for each in shown if (found := each.replace(tzinfo=zone).timestamp()) > after)

    patch.setattr(expressions, "_moments", moments)


@planted("a schedule forgets a run that has ended, and starts another one beside its retry", check=scenario(
    "tests.unit.api.test_firing",
    "test_a_run_that_is_retried_is_open_again_even_if_another_one_has_run_since", ScheduleDesk(),
))  # fmt: skip
def retried_runs_are_forgotten(patch: Patch) -> None:
    def open_runs(context: RequestContext, schedule: Schedule) -> tuple[str, ...]:
        found = (reading.run(context.store, run_id) for run_id in schedule.runs)
        return tuple(each.id for each in found if each is not None and not each.has_ended)

    patch.setattr(firing, "open_runs", open_runs)
