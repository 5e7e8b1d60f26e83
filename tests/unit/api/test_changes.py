"""ListChanges: pages of the journal from any place on, without duplicates or gaps; or it reports the missing part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.api.history import changes
from argosy.model.journal.items import CHANGES, KEPT_S, items
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import NOW
from tests.fakes.api import Desk, error_of, running

DAY_S = 86_400.0


@pytest.fixture
def desk() -> Desk:
    return Desk()


def lines(*words: str) -> list[dict[str, Any]]:
    return [{"type": "run.waiting", "runId": "r-1", "status": "RUNNING", "reason": each} for each in words]


def put(desk: Desk, version: int, *words: str, at: float = NOW, previous: int | None = None) -> None:
    """The lines of the commit that makes `version`."""
    desk.store.items |= items(version, at, version - 1 if previous is None else previous, lines(*words))
    desk.store.stored_version = version
    state = State(version=version, lines_at=version)
    desk.store.items |= documents.changed(state)


def told(answer: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in answer["changes"]]


def test_a_submitted_run_has_a_line_with_the_version_and_the_time_of_the_commit(desk: Desk) -> None:
    run_id = running(desk)
    answer = desk.body("ListChanges")
    first = answer["changes"][0]
    assert (first["sequence"], first["type"], first["runId"]) == ("1.1", "run.submitted", run_id)
    assert first["at"] == "2027-01-15T08:00:00.000Z"
    assert answer["next"] == answer["newest"] == "2"
    assert answer["oldest"] == "0"


def test_the_next_page_continues_from_the_end_of_the_last_one(desk: Desk) -> None:
    put(desk, 3, "a", "b", "c", previous=0)
    put(desk, 4, "d")
    seen, since = [], "0"
    for _ in range(4):
        answer = desk.body("ListChanges", since=since, maxResults=1)
        seen += told(answer)
        since = answer["next"]
    assert seen == ["a", "b", "c", "d"]
    last = desk.body("ListChanges", since=since)
    assert (last["changes"], last["next"]) == ([], "4")


@pytest.mark.parametrize(
    ("since", "after"),
    [(0, "abcd"), ("3.1", "bcd"), ("3.2", "cd"), ("3.3", "d"), (3, "d"), ("3", "d"), ("4", ""), ("4.1", ""), (9, "")],
)
def test_any_place_can_be_gone_on_from(desk: Desk, since: Any, after: str) -> None:
    put(desk, 3, *"abc", previous=0)
    put(desk, 4, "d")
    assert told(desk.body("ListChanges", since=since)) == list(after)


def test_a_place_in_the_future_is_kept_until_it_comes(desk: Desk) -> None:
    put(desk, 3, "a", previous=0)
    answer = desk.body("ListChanges", since=9)
    assert (answer["changes"], answer["next"], answer["newest"]) == ([], "9", "3")


def test_commits_without_lines_are_no_gap(desk: Desk) -> None:
    put(desk, 3, "a", previous=0)
    put(desk, 90, "b", previous=3)
    assert told(desk.body("ListChanges", since=4)) == ["b"]


@pytest.mark.parametrize("since", [0, 2, "3.1"])
def test_expired_changes_are_reported_with_the_oldest_complete_place(desk: Desk, since: Any) -> None:
    put(desk, 3, "a", "b", previous=0, at=NOW - KEPT_S)
    put(desk, 4, "c", at=NOW - 1)
    for _ in range(2):  # DynamoDB deletes it days later: that makes no difference
        answer = desk.ask("ListChanges", since=since)
        assert answer["statusCode"] == 410
        assert (error_of(answer)["code"], error_of(answer)["oldest"]) == ("ChangesExpired", "3")
        desk.store.items.pop((CHANGES, "000000000003"), None)
    assert told(desk.body("ListChanges", since="3")) == ["c"]
    assert told(desk.body("ListChanges")) == ["c"]


@pytest.mark.parametrize("since", [2, "3.1"])
def test_expired_changes_are_reported_when_nothing_is_kept(desk: Desk, since: Any) -> None:
    put(desk, 3, "a", "b", previous=0, at=NOW - KEPT_S)
    for _ in range(2):
        answer = desk.ask("ListChanges", since=since)
        assert (answer["statusCode"], error_of(answer)["oldest"]) == (410, None)
        desk.store.items.pop((CHANGES, "000000000003"), None)
    assert desk.body("ListChanges", since=3)["next"] == "3"
    assert desk.body("ListChanges")["next"] == "3"
    assert desk.body("ListChanges", sinceSeconds=60)["changes"] == []


def test_a_lost_item_is_no_silence(desk: Desk) -> None:
    for version in (1, 2, 3):
        put(desk, version, str(version))
    del desk.store.items[CHANGES, "000000000002"]
    assert desk.ask("ListChanges", since=1)["statusCode"] == 410


def test_an_item_that_cannot_be_read_is_reported_as_damage(desk: Desk) -> None:
    for version in (1, 2, 3):
        put(desk, version, str(version))
    desk.store.items[CHANGES, "000000000002"] = b"torn"
    answer = desk.body("ListChanges", since=0)
    assert [each["type"] for each in answer["changes"]] == ["run.waiting", "state.damaged", "run.waiting"]
    assert answer["changes"][1]["sequence"] == "2.1"


@pytest.mark.parametrize("seconds", [0, 5, 25, 95, 100, 10_000])
def test_the_last_seconds_begin_where_their_first_commit_does(desk: Desk, seconds: float) -> None:
    for version in range(1, 41):
        put(desk, version, str(version), at=NOW - 100 + 2.5 * version)
    wanted = [str(version) for version in range(1, 41) if 2.5 * version > 100 - seconds]
    assert told(desk.body("ListChanges", sinceSeconds=seconds)) == wanted


def test_of_an_empty_journal_there_is_nothing(desk: Desk) -> None:
    nothing = {"changes": [], "next": "0", "oldest": None, "newest": None}
    assert desk.body("ListChanges") == nothing
    assert desk.body("ListChanges", sinceSeconds=60) == nothing


def test_the_place_moves_on_past_lines_that_filters_leave_out(desk: Desk) -> None:
    run_id = running(desk)
    only_tasks = desk.body("ListChanges", types=["task"])
    assert {each["type"].partition(".")[0] for each in only_tasks["changes"]} == {"task"}
    assert only_tasks["next"] == only_tasks["newest"]
    placed = desk.body("ListChanges", types=["task.placed", "order"], runId=run_id)["changes"]
    assert {each["type"] for each in placed} == {"task.placed"}
    assert all(each["runId"] == run_id for each in desk.body("ListChanges", runId=run_id)["changes"])
    mine = desk.body("ListChanges", instance="i-0000000000000000a")["changes"]
    assert mine
    assert all(each["instance"] == "i-0000000000000000a" for each in mine)


def test_of_an_unknown_run_there_is_no_news(desk: Desk) -> None:
    assert desk.ask("ListChanges", runId="none")["statusCode"] == 404


def test_a_filter_that_fits_to_nothing_does_not_read_for_ever(desk: Desk) -> None:
    for version in range(1, changes.MOST_ITEMS + 3):
        put(desk, version, "x")
    answer = desk.body("ListChanges", instance="none")
    assert (answer["changes"], answer["next"]) == ([], f"{changes.MOST_ITEMS}.1")


def test_a_page_is_bounded_in_bytes(desk: Desk) -> None:
    for version in range(1, 60):
        put(desk, version, f"{version}" * 50_000)
    answer = desk.body("ListChanges", since=0, maxResults=10_000)
    assert len(json.dumps(answer)) < 3_000_000
    rest = desk.body("ListChanges", since=answer["next"], maxResults=10_000)
    assert len(answer["changes"]) + len(rest["changes"]) >= 40


def test_one_waits_for_a_change_and_no_longer_than_asked(desk: Desk) -> None:
    put(desk, 1, "a", previous=0)

    def pause(seconds: float) -> None:
        desk.time += seconds
        if desk.time >= NOW + 3:
            put(desk, 2, "b", at=desk.time)

    desk.api.pause = pause
    assert told(desk.body("ListChanges", since=1, waitSeconds=20)) == ["b"]
    assert desk.time == NOW + 3
    assert desk.body("ListChanges", since=2, waitSeconds=5)["changes"] == []
    assert desk.time == NOW + 8


NO_SEQUENCE = "must be the sequence of a change: VERSION, or VERSION.LINE with lines counted from 1"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"since": "x"}, ("since", NO_SEQUENCE)),
        ({"since": "0.0"}, ("since", NO_SEQUENCE)),
        ({"since": 3.01}, ("since", NO_SEQUENCE)),
        ({"since": -1}, ("since", NO_SEQUENCE)),
        ({"since": 1, "sinceSeconds": 1}, ("", "since and sinceSeconds exclude each other")),
        ({"maxResults": 10_001}, ("maxResults", "must be at most 10,000")),
        ({"waitSeconds": 21}, ("waitSeconds", "must be at most 20")),
        ({"sinceSeconds": -1}, ("sinceSeconds", "must be at least 0")),
    ],
)
def test_faults_are_named(desk: Desk, fields: dict[str, Any], fault: tuple[str, str]) -> None:
    answer = desk.ask("ListChanges", **fields)
    assert [(each["path"], each["message"]) for each in error_of(answer)["fieldList"]] == [fault]


def test_an_unknown_type_is_named_with_those_that_there_are(desk: Desk) -> None:
    (fault,) = error_of(desk.ask("ListChanges", types=["task", "tusk"]))["fieldList"]
    assert fault["path"] == "types"
    assert fault["message"].startswith(
        "'tusk' is unknown; known: cluster, cluster.headroom, cluster.scaled, cluster.waiting, deployment"
    )


def test_no_request_for_changes_touches_the_controller(desk: Desk) -> None:
    running(desk)
    woken, before = desk.wake.calls, dict(desk.store.items)
    desk.body("ListChanges", waitSeconds=1)
    assert (desk.wake.calls, desk.store.items) == (woken, before)
