"""Each time of a schedule gets one verdict and at most one run, and nothing is lost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from argosy.api.admission.specs import Sources
from argosy.api.schedules import store as schedule_store
from argosy.model import inbox
from argosy.model.runs import sort_key
from argosy.model.schedules import record
from argosy.model.stored import documents
from argosy.ports import AlreadyExists
from tests.builders import NOW
from tests.fakes.api import SPEC, Definitions, error_of
from tests.fakes.schedules import ScheduleDesk, nth, stamp


@pytest.fixture
def desk() -> ScheduleDesk:
    return ScheduleDesk()


class Unpublished:
    def resolve(self, image: str) -> str | None:
        return None


def end(desk: ScheduleDesk, run_id: str) -> None:
    """Cancel a run without a started task, and let the controller close it."""
    desk.fold_in()
    run = desk.state.runs[run_id]
    run.stopped_at = desk.time
    run.status = type(run.status).CANCELLED
    desk.state.changed_runs.add(run_id)
    desk.commit()


def test_a_time_starts_one_run_however_often_it_is_delivered(desk: ScheduleDesk) -> None:
    desk.every()
    first = desk.fire("often", nth(1))
    assert first["verdict"] == "ran"
    assert [desk.fire("often", nth(1))["runId"] for _ in range(3)] == [first["runId"]] * 3
    assert desk.run_ids() == [first["runId"]]
    assert desk.verdicts() == ["ran"]
    assert desk.wake.calls == 4  # the process that decided may have ended before waking


def test_of_two_deliveries_at_once_one_decides(desk: ScheduleDesk) -> None:
    """Without the condition the second would see the first one's run, and skip."""
    desk.every()
    create = desk.store.create

    def meanwhile(*items: Any) -> None:
        desk.store.create = create  # type: ignore[method-assign]
        desk.fire("often", nth(1))
        create(*items)

    desk.store.create = meanwhile  # type: ignore[assignment]
    assert desk.fire("often", nth(1))["verdict"] == "ran"
    assert len(desk.run_ids()) == 1
    assert desk.verdicts() == ["ran"]


def test_two_times_at_once_are_decided_one_after_the_other(desk: ScheduleDesk) -> None:
    desk.every()
    create = desk.store.create

    def meanwhile(*items: Any) -> None:
        desk.store.create = create  # type: ignore[method-assign]
        desk.fire("often", nth(1))
        create(*items)

    desk.store.create = meanwhile  # type: ignore[assignment]
    assert desk.fire("often", nth(2))["verdict"] == "skipped"
    assert desk.verdicts() == ["ran", "skipped"]


def test_one_that_others_write_again_and_again_is_refused_and_not_lost(desk: ScheduleDesk) -> None:
    desk.every()

    def taken(*items: Any) -> None:
        raise AlreadyExists("taken")

    desk.store.create = taken  # type: ignore[assignment]
    desk.time = nth(1)
    answer = desk.ask("FireSchedule", name="often", scheduledTime=stamp(nth(1)))
    assert answer["statusCode"] == 409
    assert "try again" in error_of(answer)["message"]
    answer = desk.ask("RunScheduleNow", name="often")
    assert answer["statusCode"] == 409


def test_skip_names_the_run_that_was_in_the_way(desk: ScheduleDesk) -> None:
    desk.every()
    run_id = desk.fire("often", nth(1))["runId"]
    skipped = desk.fire("often", nth(2))
    assert (skipped["verdict"], skipped["runId"]) == ("skipped", run_id)
    end(desk, run_id)
    assert desk.fire("often", nth(3))["verdict"] == "ran"


def test_an_open_run_stays_in_the_way_however_many_times_were_skipped(desk: ScheduleDesk) -> None:
    desk.every()
    run_id = desk.fire("often", nth(1))["runId"]
    for number in range(2, record.FIRES_SHOWN + 5):
        assert desk.fire("often", nth(number))["runId"] == run_id
    assert len(desk.run_ids()) == 1
    assert len(desk.verdicts()) == record.FIRES_SHOWN


def test_a_run_that_is_retried_is_open_again_even_if_another_one_has_run_since(desk: ScheduleDesk) -> None:
    desk.every()
    run_ids = [desk.fire("often", nth(1))["runId"]]
    end(desk, run_ids[0])
    run_ids.append(desk.fire("often", nth(2))["runId"])
    end(desk, run_ids[1])
    for number, run_id in enumerate(run_ids, 3):
        desk.body("RetryRun", runId=run_id, failed=False, cancelled=True)
        skipped = desk.fire("often", nth(number))
        assert (skipped["verdict"], skipped["runId"]) == ("skipped", run_id)


def test_with_overlap_allow_another_run_starts(desk: ScheduleDesk) -> None:
    desk.every(overlap="allow")
    assert [desk.fire("often", nth(number))["verdict"] for number in (1, 2)] == ["ran", "ran"]
    assert len(desk.run_ids()) == 2


def test_replace_cancels_what_is_open_also_when_the_first_delivery_died_before_that(desk: ScheduleDesk) -> None:
    desk.every(overlap="replace")
    old = desk.fire("often", nth(1))["runId"]
    desk.wake.fails = True  # the function ends between storing the verdict and cancelling
    with pytest.raises(ConnectionError):
        desk.fire("often", nth(2))
    desk.wake.fails = False
    new = desk.fire("often", nth(2))
    assert new["verdict"] == "ran"
    assert new["replaced"] == [old]
    requests = [inbox.from_bytes(body) for body in desk.store.read_partition(inbox.INBOX).values()]
    [cancelled] = [each for each in requests if isinstance(each, inbox.CancelRequest)]
    assert cancelled.run_id == old
    assert cancelled.reason == f"replaced by {new['runId']}"


def test_a_run_that_is_to_be_replaced_and_cannot_be_read_holds_no_delivery_up(desk: ScheduleDesk) -> None:
    desk.every(overlap="replace")
    old = desk.fire("often", nth(1))["runId"]
    desk.wake.fails = True
    with pytest.raises(ConnectionError):
        desk.fire("often", nth(2))
    desk.wake.fails = False
    desk.fold_in()
    desk.store.items[documents.RUNS, sort_key(old)] = b"torn"
    assert desk.fire("often", nth(2))["verdict"] == "ran"


def test_queue_keeps_one_that_starts_when_the_run_has_ended(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    first = desk.fire("often", nth(1))["runId"]
    assert [desk.fire("often", nth(number))["verdict"] for number in (2, 3)] == ["queued", "skipped"]
    assert desk.shown()["waiting"] == stamp(nth(2))
    assert desk.body("ReleaseSchedules", runId="another-run")["released"] == []
    assert desk.body("ReleaseSchedules", runId=first)["released"] == ["often"]  # its record does not say so yet
    assert desk.verdicts() == ["ran", "ran", "skipped"]
    assert desk.shown()["waiting"] is None
    assert desk.body("ReleaseSchedules", runId=first)["released"] == []
    assert len(desk.run_ids()) == 2
    assert desk.fire("often", nth(2))["verdict"] == "ran"


def test_a_queued_firing_starts_at_the_next_time_if_the_end_was_missed(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    end(desk, desk.fire("often", nth(1))["runId"])
    desk.fire("often", nth(2))
    desk.fire("often", nth(3))
    end(desk, desk.run_ids()[0])
    assert desk.fire("often", nth(4))["verdict"] == "queued"
    assert desk.verdicts() == ["ran", "ran", "ran", "queued"]


def test_nothing_is_released_twice_at_once(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    first = desk.fire("often", nth(1))["runId"]
    desk.fire("often", nth(2))
    create = desk.store.create

    def meanwhile(*items: Any) -> None:
        desk.store.create = create  # type: ignore[method-assign]
        desk.body("ReleaseSchedules", runId=first)
        create(*items)

    desk.store.create = meanwhile  # type: ignore[assignment]
    assert desk.body("ReleaseSchedules", runId=first)["released"] == []
    assert len(desk.run_ids()) == 2


def test_a_paused_schedule_starts_nothing_and_says_so(desk: ScheduleDesk) -> None:
    desk.every()
    desk.body("PauseSchedule", name="often")
    assert desk.fire("often", nth(1))["verdict"] == "paused"
    assert desk.run_ids() == []
    assert desk.announced == []


def test_a_late_firing_starts_nothing_and_is_reported(desk: ScheduleDesk) -> None:
    desk.every(startWithin=60)
    assert desk.fire("often", nth(1), late_s=61)["verdict"] == "late"
    assert desk.run_ids() == []
    [(what, detail)] = desk.announced
    assert what == "Schedule Missed"
    assert detail["verdict"] == "late"
    assert detail["schedule"] == "often"
    assert "61 s" in detail["reason"]


def test_a_refused_time_is_reported_with_its_faults_and_stays_refused(desk: ScheduleDesk) -> None:
    desk.every()
    sources = desk.api.sources
    desk.api.sources = Sources(Unpublished(), desk.items, Definitions())
    refused = desk.fire("often", nth(1))
    assert refused["verdict"] == "refused"
    assert "container.image" in refused["reason"]
    desk.api.sources = sources
    assert desk.fire("often", nth(1))["verdict"] == "refused"
    assert desk.run_ids() == []
    assert {detail["verdict"] for _, detail in desk.announced} == {"refused"}
    assert desk.fire("often", nth(2))["verdict"] == "ran"


def test_a_queued_firing_starts_at_the_resumption_if_its_run_has_ended_during_the_pause(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    first = desk.fire("often", nth(1))["runId"]
    desk.fire("often", nth(2))
    desk.body("PauseSchedule", name="often")
    end(desk, first)
    assert desk.body("ReleaseSchedules", runId=first)["released"] == []
    view = desk.body("ResumeSchedule", name="often")
    assert (view["waiting"], view["state"], desk.verdicts()) == (None, "ENABLED", ["ran", "ran"])
    assert schedule_store.waiting(desk.store) == []
    desk.body("ResumeSchedule", name="often")
    assert len(desk.run_ids()) == 2


def test_a_queued_firing_that_is_refused_at_the_resumption_has_a_verdict(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    first = desk.fire("often", nth(1))["runId"]
    desk.fire("often", nth(2))
    desk.body("PauseSchedule", name="often")
    end(desk, first)
    desk.api.sources = Sources(Unpublished(), desk.items, Definitions())
    desk.body("ResumeSchedule", name="often")
    assert desk.verdicts() == ["ran", "refused"]


def test_a_firing_starts_although_its_run_ends_before_the_firing_is_stored_as_queued(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    first = desk.fire("often", nth(1))["runId"]
    create = desk.store.create

    def meanwhile(*items: Any) -> None:
        desk.store.create = create  # type: ignore[method-assign]
        end(desk, first)
        assert desk.body("ReleaseSchedules", runId=first)["released"] == []
        create(*items)

    desk.store.create = meanwhile  # type: ignore[assignment]
    desk.fire("often", nth(2))
    assert desk.verdicts() == ["ran", "ran"]


@pytest.mark.parametrize(
    ("fields", "off_s"),
    [
        ({"expression": "cron(0 3 * * ? *)", "zone": "Europe/Berlin"}, 60),
        ({"expression": "at(2027-01-16T03:00:00)"}, 1),
        ({"expression": "rate(10 minutes)"}, 299),
    ],
)
def test_only_a_time_of_the_schedule_fires(desk: ScheduleDesk, fields: dict[str, Any], off_s: int) -> None:
    time = desk.body("CreateSchedule", name="often", spec=SPEC, **fields)["next"]
    at = datetime.fromisoformat(time).timestamp()
    assert desk.fire("often", at)["verdict"] == "ran"
    desk.time += 600
    for wrong in (at - off_s, at + off_s):
        answer = desk.ask("FireSchedule", name="often", scheduledTime=stamp(wrong))
        assert "does not fall on it" in error_of(answer)["fieldList"][0]["message"]
    assert len(desk.run_ids()) == 1
    assert desk.fire("often", at)["verdict"] == "ran"


def test_what_waits_for_a_paused_schedule_waits_on_and_for_a_deleted_one_no_more(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    first = desk.fire("often", nth(1))["runId"]
    desk.fire("often", nth(2))
    desk.body("PauseSchedule", name="often")
    assert desk.body("ReleaseSchedules", runId=first)["released"] == []
    assert desk.shown()["waiting"] == stamp(nth(2))
    desk.body("ResumeSchedule", name="often")
    assert desk.body("ReleaseSchedules", runId=first)["released"] == ["often"]
    desk.fire("often", nth(4))
    assert schedule_store.waiting(desk.store) == ["often"]
    desk.body("DeleteSchedule", name="often")
    assert schedule_store.waiting(desk.store) == []


def test_a_rate_that_fires_some_seconds_off_has_missed_nothing(desk: ScheduleDesk) -> None:
    desk.every(startWithin=60)
    assert desk.fire("often", nth(1) + 50, late_s=30)["verdict"] == "ran"
    assert desk.verdicts() == ["ran"]


def test_a_refusal_of_a_queued_firing_is_reported_too(desk: ScheduleDesk) -> None:
    desk.every(overlap="queue")
    first = desk.fire("often", nth(1))["runId"]
    desk.fire("often", nth(2))
    desk.api.sources = Sources(Unpublished(), desk.items, Definitions())
    assert desk.body("ReleaseSchedules", runId=first)["released"] == ["often"]
    assert desk.verdicts() == ["ran", "refused"]
    assert desk.shown()["waiting"] is None


def test_undelivered_times_are_recorded_as_missed_at_the_next_one(desk: ScheduleDesk) -> None:
    desk.every(startWithin=900, overlap="allow")
    desk.fire("often", nth(1))
    desk.time = nth(4) + 5
    assert desk.shown()["overdue"] == stamp(nth(2))
    desk.fire("often", nth(4))
    assert desk.verdicts() == ["ran", "missed", "ran"]  # the third may still come
    assert [detail["verdict"] for _, detail in desk.announced] == ["missed"]
    desk.fire("often", nth(3), late_s=0)
    desk.fire("often", nth(5))
    assert desk.verdicts() == ["ran", "missed", "ran", "ran", "ran"]
    assert desk.shown()["overdue"] is None


def test_a_cron_whose_night_was_missed_says_so(desk: ScheduleDesk) -> None:
    desk.every(expression="cron(0 3 * * ? *)", startWithin=60)
    first, second, third = desk.clock.told["often"].next_times(NOW, 3)
    desk.fire("often", first)
    end(desk, desk.run_ids()[0])
    desk.fire("often", third)
    assert [(each["scheduledTime"], each["verdict"]) for each in desk.shown()["fires"]] == [
        (stamp(third), "ran"),
        (stamp(second), "missed"),
        (stamp(first), "ran"),
    ]


def test_a_time_before_the_schedule_began_is_ignored(desk: ScheduleDesk) -> None:
    desk.every()
    assert desk.fire("often", NOW - 600)["verdict"] is None
    assert desk.fire("nobody", NOW)["verdict"] is None
    assert desk.verdicts() == []


@pytest.mark.parametrize("time", ["tomorrow", stamp(NOW + 3600)])
def test_a_time_that_cannot_be_is_refused(desk: ScheduleDesk, time: str) -> None:
    desk.every()
    answer = desk.ask("FireSchedule", name="often", scheduledTime=time)
    assert answer["statusCode"] == 400
    assert error_of(answer)["fieldList"][0]["path"] == "scheduledTime"


def test_a_run_whose_record_cannot_be_read_blocks_no_schedule(desk: ScheduleDesk) -> None:
    desk.every()
    run_id = desk.fire("often", nth(1))["runId"]
    place = desk.store.items[("SUBMITTED", run_id)].decode()
    desk.store.items[(inbox.INBOX, place)] = b"{"
    assert desk.fire("often", nth(2))["verdict"] == "ran"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"name": 3}', b"[]"])
def test_a_stored_schedule_that_cannot_be_read_says_so(body: bytes) -> None:
    with pytest.raises(record.UnreadableState, match="a schedule cannot be read"):
        record.schedule_from(body)
    with pytest.raises(record.UnreadableState, match="a firing of a schedule cannot be read"):
        record.fire_from(body)


def test_what_a_newer_version_has_added_is_left_alone(desk: ScheduleDesk) -> None:
    desk.every()
    key = (record.SCHEDULES, "often")
    desk.store.items[key] = desk.store.items[key].replace(b'{"name"', b'{"colour":"red","name"')
    assert schedule_store.read(desk.store, "often") == desk.clock.told["often"].__class__(
        **{**_fields(desk.clock.told["often"]), "armed": 1, "version": 3}
    )


def _fields(schedule: record.Schedule) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in schedule.__dataclass_fields__}
