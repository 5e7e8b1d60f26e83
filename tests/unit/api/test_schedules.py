"""Requests about schedules and their answers: made, changed, paused, deleted, listed; and every refusal."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.admission.specs import Sources
from argosy.model.schedules.record import ScheduleState
from tests.fakes.api import SPEC, Definitions, error_of
from tests.fakes.schedules import NIGHTLY, ScheduleDesk, nth, stamp


@pytest.fixture
def desk() -> ScheduleDesk:
    return ScheduleDesk()


def test_a_schedule_is_stored_and_the_clock_is_set(desk: ScheduleDesk) -> None:
    view = desk.body("CreateSchedule", **NIGHTLY, startWithin=600)
    assert view["created"]
    assert view["armed"]
    assert view["state"] == "ENABLED"
    assert (view["overlap"], view["startWithin"], view["revision"]) == ("skip", 600, 1)
    assert len(view["nextTimes"]) == 5
    assert view["next"] == view["nextTimes"][0]
    assert view["fires"] == []
    assert view["overdue"] is None
    assert desk.clock.told["nightly"].expression == NIGHTLY["expression"]
    assert desk.shown("nightly")["spec"] == SPEC
    assert desk.run_ids() == []


def test_the_same_request_again_changes_nothing_and_another_of_that_name_is_a_conflict(desk: ScheduleDesk) -> None:
    desk.body("CreateSchedule", **NIGHTLY)
    again = desk.body("CreateSchedule", **NIGHTLY)
    assert not again["created"]
    assert again["revision"] == 1
    answer = desk.ask("CreateSchedule", **{**NIGHTLY, "overlap": "allow"})
    assert answer["statusCode"] == 409
    assert "already" in error_of(answer)["message"]


def test_a_clock_that_could_not_be_set_is_set_by_repeating_the_request(desk: ScheduleDesk) -> None:
    desk.clock.fails = ConnectionError("no answer")
    with pytest.raises(ConnectionError):
        desk.ask("CreateSchedule", **NIGHTLY)
    assert desk.shown("nightly")["armed"] is False
    desk.clock.fails = None
    assert desk.body("CreateSchedule", **NIGHTLY)["armed"]
    assert "nightly" in desk.clock.told


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"expression": "cron(0 0 30 2 ? *)"}, "expression", "cron(0 0 30 2 ? *) never fires in Europe/Berlin"),
        ({"expression": "at(2020-01-01T00:00:00)"}, "expression", "at(2020-01-01T00:00:00) never fires again"),
        (
            {"expression": "at(9999-12-31T23:59:59)", "zone": "America/Boise"},
            "expression",
            "never fires in America/Boise",
        ),
        (
            {"expression": "at(0001-01-01T00:00:00)", "zone": "Africa/Malabo"},
            "expression",
            "never fires in Africa/Malabo",
        ),
        ({"expression": "rate(999999999 days)"}, "expression", "no time between now and the year 2199"),
        ({"expression": "daily"}, "expression", "'daily' is not a schedule expression"),
        ({"zone": "Mars/Base"}, "zone", "there is no time zone 'Mars/Base'"),
        ({"overlap": "sometimes"}, "overlap", ""),
        ({"startWithin": 5}, "startWithin", ""),
        ({"name": "Nightly"}, "name", ""),
        ({"spec": {**SPEC, "container": {"image": "argosy/unknown"}}}, "container.image", "argosy/unknown"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    desk: ScheduleDesk, fields: dict[str, Any], path: str, message: str
) -> None:
    answer = desk.ask("CreateSchedule", **{**NIGHTLY, **fields})
    assert answer["statusCode"] == 400
    [fault] = error_of(answer)["fieldList"]
    assert fault["path"] == path
    assert message in fault["message"]
    assert desk.store.items == {}
    assert desk.clock.told == {}


def test_faults_of_the_schedule_and_of_its_spec_are_reported_together(desk: ScheduleDesk) -> None:
    answer = desk.ask("CreateSchedule", **{**NIGHTLY, "zone": "Nowhere", "spec": {**SPEC, "nmae": 1}})
    assert {each["path"] for each in error_of(answer)["fieldList"]} == {"zone", "nmae"}


def test_an_update_changes_what_is_given_and_an_old_base_is_a_conflict(desk: ScheduleDesk) -> None:
    desk.body("CreateSchedule", **NIGHTLY)
    view = desk.body("UpdateSchedule", name="nightly", revision=1, overlap="queue", startWithin=120)
    assert (view["revision"], view["overlap"], view["startWithin"]) == (2, "queue", 120)
    assert view["expression"] == NIGHTLY["expression"]
    before = dict(desk.store.items)
    answer = desk.ask("UpdateSchedule", name="nightly", revision=1, zone="UTC")
    assert answer["statusCode"] == 409
    assert error_of(answer)["message"] == "nightly is at revision 2 and not at 1: read it again"
    assert desk.store.items == before
    changed = desk.body("UpdateSchedule", name="nightly", revision=2, expression="rate(1 hour)")
    assert changed["next"] == stamp(desk.time + 3600)
    assert desk.clock.told["nightly"].expression == "rate(1 hour)"


def test_an_update_to_what_never_fires_is_refused(desk: ScheduleDesk) -> None:
    desk.body("CreateSchedule", **NIGHTLY)
    answer = desk.ask("UpdateSchedule", name="nightly", revision=1, zone="Nowhere")
    assert error_of(answer)["fieldList"][0]["path"] == "zone"
    assert desk.shown("nightly")["zone"] == "Europe/Berlin"


def test_a_paused_schedule_has_no_next_time_and_continues_from_its_resumption(desk: ScheduleDesk) -> None:
    desk.every()
    assert desk.body("PauseSchedule", name="often")["next"] is None
    assert desk.clock.told["often"].state is ScheduleState.PAUSED
    assert desk.body("PauseSchedule", name="often")["revision"] == 2  # nothing to change
    desk.time += 7200
    view = desk.body("ResumeSchedule", name="often")
    assert view["next"] == stamp(desk.time + 600)
    assert view["fires"] == []
    assert view["overdue"] is None
    assert desk.body("ResumeSchedule", name="often")["revision"] == 3


def test_a_deleted_schedule_is_gone_and_its_name_is_free(desk: ScheduleDesk) -> None:
    desk.every()
    assert desk.body("DeleteSchedule", name="often")["state"] == "DELETED"
    assert desk.body("DeleteSchedule", name="often")["state"] == "DELETED"
    assert desk.clock.told == {}
    assert desk.body("ListSchedules")["schedules"] == []
    assert desk.fire("often", nth(1))["verdict"] is None
    for action in ("DescribeSchedule", "PauseSchedule", "ResumeSchedule", "RunScheduleNow"):
        assert desk.ask(action, name="often")["statusCode"] == 404
    again = desk.every(minutes=20)
    assert again["created"]
    assert again["revision"] == 3
    assert again["armed"]
    assert desk.ask("DeleteSchedule", name="never")["statusCode"] == 404


def test_schedules_are_listed_by_name_in_pages(desk: ScheduleDesk) -> None:
    for name in ("c", "a", "b"):
        desk.every(name=name)
    first = desk.body("ListSchedules", maxResults=2)
    assert [each["name"] for each in first["schedules"]] == ["a", "b"]
    rest = desk.body("ListSchedules", maxResults=2, nextToken=first["nextToken"])
    assert [each["name"] for each in rest["schedules"]] == ["c"]
    assert rest["nextToken"] is None
    assert "spec" not in first["schedules"][0]


def test_a_start_by_hand_runs_whatever_is_open_and_once_for_a_token(desk: ScheduleDesk) -> None:
    desk.every()
    first = desk.body("RunScheduleNow", name="often", clientToken="t")
    assert desk.body("RunScheduleNow", name="often", clientToken="t")["runId"] == first["runId"]
    desk.time += 61
    desk.body("PauseSchedule", name="often")
    second = desk.body("RunScheduleNow", name="often", clientToken="u")
    assert {first["runId"], second["runId"]} == set(desk.run_ids())
    assert [each["byHand"] for each in desk.shown()["fires"]] == [True, True]
    assert desk.wake.calls == 3


def test_a_start_by_hand_of_a_spec_that_became_invalid_says_why(desk: ScheduleDesk) -> None:
    desk.every()
    desk.api.sources = Sources(_NoImages(), desk.items, Definitions())
    assert error_of(desk.ask("RunScheduleNow", name="often"))["fieldList"][0]["path"] == "container.image"


class _NoImages:
    def resolve(self, image: str) -> str | None:
        return None


@pytest.mark.parametrize(("given", "times"), [({}, 5), ({"times": 1}, 1), ({"times": 100}, 100)])
def test_the_requested_number_of_next_times_is_returned(desk: ScheduleDesk, given: dict[str, int], times: int) -> None:
    desk.every()
    assert len(set(desk.body("DescribeSchedule", name="often", **given)["nextTimes"])) == times
    for count in (0, 101):
        assert desk.ask("DescribeSchedule", name="often", times=count)["statusCode"] == 400


def test_a_change_at_the_same_moment_is_a_conflict(desk: ScheduleDesk) -> None:
    desk.every()
    create = desk.store.create

    def meanwhile(*items: Any) -> None:
        desk.store.create = create  # type: ignore[method-assign]
        desk.body("PauseSchedule", name="often")
        create(*items)

    desk.store.create = meanwhile  # type: ignore[assignment]
    answer = desk.ask("UpdateSchedule", name="often", revision=1, overlap="allow")
    assert answer["statusCode"] == 409
    assert "same time" in error_of(answer)["message"]
    assert desk.shown()["state"] == "PAUSED"
    assert desk.shown()["overlap"] == "skip"


@pytest.mark.parametrize("kind", ["service", "daemon"])
def test_what_has_no_end_is_not_started_by_a_schedule(desk: ScheduleDesk, kind: str) -> None:
    spec = {
        "version": 1, "kind": kind, "name": "web", "container": {"image": "argosy/web", "command": ["serve"]},
        "resources": {"vcpus": 0.5, "memory": 256}, kind: {"desired": 1} if kind == "service" else {},
    }  # fmt: skip
    error = error_of(desk.ask("CreateSchedule", **{**NIGHTLY, "spec": spec}))
    [fault] = error["fieldList"]
    assert f"a {kind} never ends: deploy it instead; `argosy env create FILE`" in fault["message"]
    assert "nightly" not in desk.clock.told
