"""ListRuns in pages, over the inbox and stored runs; and how many calls reading takes with many open runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from argosy.api.requests import page_token
from argosy.lifecycle.apply import apply
from argosy.model import inbox
from argosy.model.events import RunSubmitted
from argosy.model.runs import RunStatus, sort_key
from argosy.model.tasks import TaskStatus
from argosy.ports import Key
from tests.builders import POLICY
from tests.fakes.api import Desk


def submitted(desk: Desk, count: int, first: int = 0) -> list[str]:
    """One a second."""
    ids = []
    for number in range(first, first + count):
        desk.time += 1
        ids.append(desk.submit(f"t-{number}")["runId"])
    return ids


def fold_oldest(desk: Desk, count: int) -> None:
    """As the controller's ticks do it."""
    rows, _ = desk.store.page(inbox.INBOX, count, oldest_first=True)
    for _, body in rows:
        request = inbox.from_bytes(body)
        assert isinstance(request, inbox.SubmitRequest)
        apply(desk.state, RunSubmitted(request), desk.time, POLICY)
    desk.commit(*((inbox.INBOX, key) for key, _ in rows))


def pages_of(desk: Desk, size: int, after_page: Callable[[int], None] = lambda number: None) -> list[list[str]]:
    """Run ids by page. after_page: what happens then; the first page has number 1."""
    listed: list[list[str]] = []
    page: dict[str, Any] = {"nextToken": None}
    while not listed or page["nextToken"]:
        page = desk.body("ListRuns", maxResults=size, **({"nextToken": page["nextToken"]} if listed else {}))
        listed.append([run["runId"] for run in page["runs"]])
        after_page(len(listed))
    return listed


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_runs_that_wait_in_the_inbox_are_listed_by_pages_too(desk: Desk, size: int) -> None:
    ids = submitted(desk, 5)
    desk.fold_in()
    ids += submitted(desk, 7, first=5)
    desk.body("CancelRun", runId=ids[0])  # its request takes a place in a page
    listed = pages_of(desk, size)
    assert [run_id for page in listed for run_id in page] == ids[::-1]
    assert max(map(len, listed)) <= size


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 20])
@pytest.mark.parametrize("when", [1, 2, 3, 5])
@pytest.mark.parametrize("many", [1, 4, 12])
def test_a_run_that_is_taken_in_between_two_pages_is_listed_once(desk: Desk, size: int, when: int, many: int) -> None:
    ids = submitted(desk, 3)
    desk.fold_in()
    ids += submitted(desk, 12, first=3)
    listed = pages_of(desk, size, lambda number: fold_oldest(desk, many) if number == when else None)
    assert [run_id for page in listed for run_id in page] == ids[::-1]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_of_runs_of_one_second_none_is_left_out(desk: Desk, size: int) -> None:
    ids = [desk.submit(f"t-{number}")["runId"] for number in range(12)]
    listed = pages_of(desk, size, lambda number: fold_oldest(desk, 3) if number in (1, 2) else None)
    assert {run_id for page in listed for run_id in page} == set(ids)


@pytest.mark.parametrize("place", ["inbox:", "inbox:x", "inbox:9999999999.000000#", "~"])
def test_an_invalid_place_is_a_fault_of_the_request(desk: Desk, place: str) -> None:
    desk.submit()
    assert desk.ask("ListRuns", nextToken=page_token(place))["statusCode"] == 200


def count_calls(desk: Desk) -> Counter[str]:
    """The store's calls by name from now on, 100 items of a batch being one call, and the items that it
    requests."""
    calls: Counter[str] = Counter()
    single, partition, page = desk.store.read, desk.store.read_partition, desk.store.page

    def read(key: Key) -> bytes | None:
        calls.update(("read", "items"))
        return single(key)

    def read_partition(name: str) -> dict[str, bytes]:
        found = partition(name)
        calls.update({"read_partition": 1, "items": len(found)})
        return found

    def read_many(keys: Iterable[Key]) -> dict[Key, bytes]:
        wanted = list(keys)
        calls.update({"read_many": -(-len(wanted) // 100), "items": len(wanted)})
        return {key: body for key in wanted if (body := single(key)) is not None}

    def counted_page(*args: Any, **rest: Any) -> Any:
        rows, following = page(*args, **rest)
        calls.update({"page": 1, "items": len(rows)})
        return rows, following

    for name, call in {"read": read, "read_partition": read_partition, "read_many": read_many}.items():
        setattr(desk.store, name, call)
    desk.store.page = counted_page  # type: ignore[method-assign]
    return calls


@pytest.mark.slow
def test_reading_takes_few_calls_however_many_runs_are_open(desk: Desk) -> None:
    run_id = submitted(desk, 250)[-1]
    while desk.store.read_partition(inbox.INBOX):
        fold_oldest(desk, 20)
    calls = count_calls(desk)
    for action, fields in (
        ("DescribeRun", {"runId": run_id}),
        ("ListRuns", {"maxResults": 20}),
        ("DescribeCluster", {}),
    ):
        calls.clear()
        desk.body(action, **fields)
        assert calls.total() - calls["items"] <= 12, (action, calls)


@pytest.mark.parametrize("waiting", [0, 400])
def test_a_page_of_runs_that_failed_takes_as_many_reads_whatever_the_inbox_holds(desk: Desk, waiting: int) -> None:
    failed = submitted(desk, 10)
    desk.fold_in()
    for run_id in failed:
        desk.state.runs[run_id].tasks.set(0, status=TaskStatus.FAILED)
        desk.state.runs[run_id].status = RunStatus.PARTIAL
        desk.state.changed_runs.add(run_id)
    desk.commit()
    for number in range(waiting):  # retries of other runs
        request = inbox.RetryRequest(f"other-261121-062733-{number:04}", desk.time)
        name = inbox.retry_key(desk.time, request.run_id, "token")
        desk.store.create({(inbox.INBOX, name): inbox.to_bytes(request)})
    desk.ask("RetryRun", runId=failed[3])
    after = page_token(sort_key(failed[9]) + "~")  # behind the inbox
    calls = count_calls(desk)
    listed = {run["runId"]: run["status"] for run in desk.body("ListRuns", nextToken=after)["runs"]}
    assert listed == {run_id: "SUBMITTED" if run_id == failed[3] else "PARTIAL" for run_id in failed}
    # The runs; their pointers; the request that one of them points to; the cluster, for what that run costs.
    assert calls == {"page": 1, "read_many": 2, "read_partition": 1, "items": 10 + 10 + 1 + 1}
