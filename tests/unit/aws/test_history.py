"""The rows that commits appended are stored next to a run's results, part by part, and read from there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError

from argosy import layout
from argosy.api import reading
from argosy.api.history.attempts import History
from argosy.api.history.run_history import instances_of
from argosy.aws.cell import Coordination, HomeClients
from argosy.aws.items import S3ItemsReader
from argosy.aws.results import Results
from argosy.lifecycle.apply import apply
from argosy.model import history_parts
from argosy.model.actions import CloseRun, FoldHistory
from argosy.model.ended_attempts import EndedAttempt, Outcome, from_rows, pack
from argosy.model.events import Event, HistoryPartWritten, NotCarriedOut, RunClosed
from argosy.model.history_parts import FOLDED_AFTER_S, ROWS_PER_PART, HistoryPart, NoPart, from_npz, to_npz
from argosy.model.run_record import RunRecord
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import ItemsUnreadable
from argosy.scheduler.upkeep import upkeep
from tests.builders import NOW, POLICY, RUN_ID, MemoryStore, instance_id, state_with, state_with_instance, the_run
from tests.fakes.api import Desk
from tests.fakes.aws import Clock, ScriptedClient
from tests.fakes.throwing import any_of, named, throwing
from tests.harness.simulation.world.s3 import S3Model

ROWS_OF_AN_ITEM = 4_000


class Place:
    """A run, the store with its history, S3, and the closer of runs."""

    def __init__(self, items: int = 0, tasks: int = 3) -> None:
        self.store, self.s3 = MemoryStore(), S3Model()
        self.state = state_with_instance(tasks=tasks)
        run = the_run(self.state)
        run.instances.add(instance_id(1))
        for version in range(10, 10 + items):
            self.append(version, [EndedAttempt(row, version, Outcome.SUCCEEDED) for row in range(ROWS_OF_AN_ITEM)])
        events = ScriptedClient("events", put_events=lambda **request: {"FailedEntryCount": 0, "Entries": []})
        together = Coordination(appended=lambda run_id, after: reading.appended(self.store, run_id, after))
        self.results = Results(HomeClients(self.s3, events), Clock(NOW), together)

    def append(self, version: int, rows: list[EndedAttempt]) -> None:
        key = documents.history_partition(RUN_ID), documents.history_key(version)
        self.store.items[key] = pack(rows)[0]
        the_run(self.state).history_rows += len(rows)
        the_run(self.state).unfolded_since = NOW

    def told(self, *events: Event) -> list[Event]:
        for event in events:
            apply(self.state, event, NOW, POLICY)
        return list(events)

    def history(self) -> History:
        return History(self.store, S3ItemsReader(self.s3), RunRecord.of(the_run(self.state)))

    def complete(self) -> None:
        the_run(self.state).tasks.set_many(np.arange(3), status=TaskStatus.SUCCEEDED, attempts=1, committed=1)


def all_rows(past: History) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    after = None
    while True:
        page = past.page(after)
        assert len(page.rows) <= ROWS_PER_PART
        columns, after = page.rows.columns, page.end
        seen += zip(columns["index"].tolist(), columns["attempt"].tolist(), strict=True)
        if page.is_last:
            return seen


EXPECTED = [(row, version) for version in range(10, 70) for row in range(ROWS_OF_AN_ITEM)]


@pytest.mark.slow
def test_a_long_history_is_folded_in_parts_and_nothing_of_it_is_lost_or_doubled_meanwhile() -> None:
    place = Place(items=60)
    sizes = []
    while place.told(place.results.fold(FoldHistory(RUN_ID), place.state))[0].__class__ is HistoryPartWritten:
        sizes.append(the_run(place.state).history[-1].rows)
        assert all_rows(place.history()) == EXPECTED
    assert sizes == [100_000, 100_000, 40_000]
    place.store.items.clear()  # they have expired
    assert all_rows(place.history()) == EXPECTED


@pytest.mark.parametrize("pages", [0, 1])
def test_a_run_that_is_closed_again_between_two_pages_is_read_whole(pages: int) -> None:
    """A page that ends with rows which are folded only then ends in the middle of a part."""
    place = Place(items=1)
    place.told(place.results.fold(FoldHistory(RUN_ID), place.state))
    for version in range(11, 37):
        place.append(version, [EndedAttempt(row, version, Outcome.SUCCEEDED) for row in range(ROWS_OF_AN_ITEM)])
    place.complete()
    seen: list[tuple[int, int]] = []
    after = None
    for number in range(4):
        if number == pages:
            while not isinstance(place.told(*place.results.end(CloseRun(RUN_ID), place.state))[-1], RunClosed):
                pass
        page = place.history().page(after)
        columns, after = page.rows.columns, page.end
        seen += zip(columns["index"].tolist(), columns["attempt"].tolist(), strict=True)
        if page.is_last:
            break
    assert seen == [(row, version) for version in range(10, 37) for row in range(ROWS_OF_AN_ITEM)]


def test_a_run_is_closed_once_its_history_is_folded() -> None:
    place = Place(items=30)
    place.complete()
    assert [type(event) for event in place.told(*place.results.end(CloseRun(RUN_ID), place.state))] == [
        HistoryPartWritten
    ]
    folded, closed = place.told(*place.results.end(CloseRun(RUN_ID), place.state))
    assert isinstance(folded, HistoryPartWritten)
    assert closed == RunClosed(RUN_ID)
    record = RunRecord.of(the_run(place.state))
    assert [part.rows for part in record.history] == [100_000, 20_000]
    reader = S3ItemsReader(place.s3)
    del place.state.instances[instance_id(1)]
    place.store.commit(0, documents.changed(place.state), ())
    past = History(place.store, reader, record)
    assert [(each["type"], each["launchedAt"]) for each in instances_of(past).values()] == [("c5.xlarge", NOW)]
    assert list(instances_of(past)) == [instance_id(1)]
    assert not past.damaged


def test_a_run_without_attempts_is_closed_at_once() -> None:
    place = Place()
    place.complete()
    assert place.results.end(CloseRun(RUN_ID), place.state) == [RunClosed(RUN_ID)]
    assert isinstance(place.results.fold(FoldHistory(RUN_ID), place.state), NotCarriedOut)
    assert place.results.end(CloseRun(RUN_ID), state_with()) == [NotCarriedOut("its run is closed")]


def test_what_another_controller_has_folded_already_counts_once() -> None:
    place = Place(items=2)
    event = place.results.fold(FoldHistory(RUN_ID), place.state)
    place.told(event, event)
    assert len(the_run(place.state).history) == 1
    assert (the_run(place.state).unfolded_rows, the_run(place.state).unfolded_since) == (0, 0.0)


def test_instances_of_an_earlier_try_stay_known() -> None:
    place = Place()
    uri = layout.split_s3(layout.instances_uri(the_run(place.state).output))
    place.s3.put_object(Bucket=uri[0], Key=uri[1], Body=json.dumps({"instances": [{"id": "i-old"}]}).encode())
    the_run(place.state).retries = 1
    place.complete()
    place.results.end(CloseRun(RUN_ID), place.state)
    assert [each["id"] for each in json.loads(place.s3.objects[uri].body)["instances"]] == ["i-old", instance_id(1)]


@pytest.mark.parametrize("there", [None, b"damaged", b"[]"])
def test_instances_of_an_earlier_try_that_cannot_be_read_are_left_out(there: bytes | None) -> None:
    place = Place()
    uri = layout.split_s3(layout.instances_uri(the_run(place.state).output))
    if there is not None:
        place.s3.put_object(Bucket=uri[0], Key=uri[1], Body=there)
    the_run(place.state).retries = 1
    place.complete()
    place.results.end(CloseRun(RUN_ID), place.state)
    assert [each["id"] for each in json.loads(place.s3.objects[uri].body)["instances"]] == [instance_id(1)]


def test_an_instance_at_which_our_own_code_fails_is_left_out_and_logged_and_the_run_is_closed() -> None:
    place = Place()
    other = replace(place.state.instances[instance_id(1)], id=instance_id(2))
    place.state.instances[other.id] = other
    the_run(place.state).instances.add(other.id)
    place.complete()
    about_it = any_of(lambda value: getattr(value, "id", "") == instance_id(1))
    with throwing(named("model.history_parts.instance_facts"), about_it, anywhere=True):
        (closed,) = place.results.end(CloseRun(RUN_ID), place.state)
    assert isinstance(closed, RunClosed)
    uri = layout.split_s3(layout.instances_uri(the_run(place.state).output))
    assert [each["id"] for each in json.loads(place.s3.objects[uri].body)["instances"]] == [other.id]
    assert [what for what, _ in place.state.left_out] == [f"instance {instance_id(1)} in the history of run {RUN_ID}"]


def test_an_item_that_cannot_be_read_is_left_out_and_the_others_are_folded(caplog: Any) -> None:
    place = Place(items=2)
    place.store.items[documents.history_partition(RUN_ID), documents.history_key(11)] = b"damaged"
    event = place.results.fold(FoldHistory(RUN_ID), place.state)
    assert isinstance(event, HistoryPartWritten)
    assert (event.part.to, event.part.rows) == (documents.history_key(11), ROWS_OF_AN_ITEM)
    assert "item 000000000011" in caplog.text
    place.told(event)
    past = place.history()
    assert len(all_rows(past)) == ROWS_OF_AN_ITEM
    assert len(past.damaged) == 1


class Refusing(S3Model):
    """S3 that takes nothing."""

    def put_object(self, **request: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")

    def get_object(self, **request: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetObject")


@pytest.mark.parametrize("retries", [0, 1])
def test_a_refusal_of_s3_holds_up_the_close_and_never_an_open_run(retries: int) -> None:
    place = Place(items=1)
    place.results = Results(
        HomeClients(Refusing(), None), Clock(NOW), Coordination(appended=lambda *_: reading.appended(place.store, *_))
    )
    the_run(place.state).retries = retries
    fold = place.results.fold(FoldHistory(RUN_ID), place.state)
    (end,) = place.results.end(CloseRun(RUN_ID), place.state)
    assert isinstance(fold, NotCarriedOut)
    assert isinstance(end, NotCarriedOut)
    assert (fold.about, end.about) == (Subject(Act.FOLD, RUN_ID), Subject(Act.CLOSE, RUN_ID))


def test_a_part_that_is_gone_is_read_from_the_items_as_long_as_they_are_kept() -> None:
    place = Place(items=30)
    place.told(place.results.fold(FoldHistory(RUN_ID), place.state))
    place.told(place.results.fold(FoldHistory(RUN_ID), place.state))
    place.s3.objects.clear()
    assert all_rows(place.history()) == EXPECTED[: 30 * ROWS_OF_AN_ITEM]
    assert [row.attempt for row in place.history().of_task(3_999).rows()] == list(range(10, 40))
    assert not place.history().damaged


def test_a_part_that_is_gone_with_its_items_is_counted() -> None:
    place = Place(items=2)
    place.told(place.results.fold(FoldHistory(RUN_ID), place.state))
    place.s3.objects.clear()
    for key in [key for key in place.store.items if key[0] == documents.history_partition(RUN_ID)]:
        del place.store.items[key]
    past = place.history()
    assert all_rows(past) == []
    assert len(past.damaged) == 1


def test_a_task_is_looked_for_in_the_parts_that_may_have_it_only() -> None:
    place = Place(items=2)
    place.told(place.results.fold(FoldHistory(RUN_ID), place.state))
    place.append(50, [EndedAttempt(100_000, 1, Outcome.FAILED), EndedAttempt(0, 50, Outcome.FAILED)])
    fetched: list[str] = []

    class Counting(S3ItemsReader):
        def fetch(self, uri: str) -> bytes:
            fetched.append(uri)
            return super().fetch(uri)

    past = History(place.store, Counting(place.s3), RunRecord.of(the_run(place.state)))
    assert [row.attempt for row in past.of_task(100_000).rows()] == [1]
    assert fetched == []
    assert [row.attempt for row in past.of_task(0).rows()] == [10, 11, 50]
    assert len(fetched) == 1


def due(state: State, now: float) -> list[FoldHistory]:
    return list(upkeep.folds(state, now))


def test_a_history_is_folded_when_it_fills_a_part_or_is_old() -> None:
    state = state_with_instance()
    run = the_run(state)
    run.history_rows, run.unfolded_since = ROWS_PER_PART - 1, NOW
    assert due(state, NOW) == []
    assert due(state, NOW + FOLDED_AFTER_S) == [FoldHistory(RUN_ID)]
    run.history_rows += 1
    assert due(state, NOW) == [FoldHistory(RUN_ID)]
    run.history.append(HistoryPart("x", ROWS_PER_PART, 0, 9))
    assert due(state, NOW) == []
    run.history_rows *= 3
    run.tasks.set_many(np.arange(run.task_count), status=TaskStatus.SUCCEEDED)
    assert due(state, NOW) == [], "closing it folds"


def test_rows_come_back_from_a_part_and_people_read_it_with_numpy(tmp_path: Any) -> None:
    rows = [EndedAttempt(5, 1, Outcome.FAILED, "i-a", "us-east-1", "f" * 32, NOW, NOW + 1, NOW + 2, 3, 1)]
    body = to_npz(from_rows(rows), ["", "boom"])
    assert list(from_npz(body).rows()) == rows
    (tmp_path / "part.npz").write_bytes(body)
    found = np.load(tmp_path / "part.npz")
    assert found["reasons"][found["reason"]].tolist() == ["boom"]
    assert found["instances"][found["instance"]].tolist() == ["i-a"]


@pytest.mark.parametrize("body", [b"", b"PK no zip", to_npz(from_rows([]), [""])[:-30]])
def test_bytes_that_are_no_part_are_refused(body: bytes) -> None:
    with pytest.raises(NoPart):
        from_npz(body)


def test_a_column_that_an_older_version_did_not_write_has_its_default() -> None:
    ended = from_rows([EndedAttempt(5, 1, Outcome.FAILED, exit_code=3)])
    del ended.columns["exit_code"]
    assert from_npz(to_npz(ended, [])).columns["exit_code"].tolist() == [-32768]


def test_rows_expire_long_after_they_are_folded() -> None:
    assert history_parts.KEPT_S >= 2 * FOLDED_AFTER_S


def test_an_api_without_objects_reads_the_items(desk: Desk) -> None:
    with pytest.raises(ItemsUnreadable, match="cannot be reached"):
        desk.api.objects.fetch("s3://b/k")


@pytest.fixture
def desk() -> Desk:
    return Desk()
