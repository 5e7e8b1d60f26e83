"""Looking up results and closing runs, against moto's S3 and EventBridge."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from typing import Any

import boto3
import numpy as np
import pytest
from moto import mock_aws

from argosy.aws.cell import Coordination, HomeClients, PartSize
from argosy.aws.markers import remove_former_failure
from argosy.aws.results import Results
from argosy.client.results.manifest import Manifest
from argosy.model.actions import CloseRun, VerifyResult
from argosy.model.costs import Costs
from argosy.model.events import ManifestPartWritten, NotCarriedOut, ResultSeen, RunClosed
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from tests.builders import (
    NOW,
    RUN_ID,
    container_instance,
    fleet,
    host,
    instance_id,
    prepared,
    state_with,
    submitted,
    told,
)
from tests.fakes.aws import Clock, ScriptedClient, refusal, timed_out

ROOT = f"{RUN_ID}/"
NOTHING = refusal("404", "Not Found", 404)


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="results")
        yield client


def announcing(answer: Any = None) -> ScriptedClient:
    return ScriptedClient("events", put_events=answer or {"FailedEntryCount": 0, "Entries": [{}]})


def state_of(tasks: int = 3, **overrides: Any) -> State:
    gpus = container_instance(1, gpus=2)
    return state_with(submitted(tasks=tasks, **overrides), prepared(), fleet(), host(1), gpus)


def verify(s3: Any, index: int = 0, attempt: int = 2) -> Any:
    return Results(HomeClients(s3, announcing()), Clock()).verify(VerifyResult(RUN_ID, index, attempt), state_of())


def put(s3: Any, name: str, body: bytes = b"12345", **extra: Any) -> None:
    s3.put_object(Bucket="results", Key=ROOT + name, Body=body, **extra)


def test_the_part_names_the_attempt_that_wrote_it(s3: Any) -> None:
    put(s3, "parts/part-0000000.jsonl", Metadata={"argosy-attempt": "1"})
    assert verify(s3, attempt=2) == ResultSeen(RUN_ID, 0, 1, 5)


@pytest.mark.parametrize("metadata", [{}, {"argosy-attempt": "0"}, {"argosy-attempt": "first"}])
def test_a_part_without_an_attempt_belongs_to_the_attempt_that_ended(s3: Any, metadata: dict[str, str]) -> None:
    put(s3, "parts/part-0000000.jsonl", Metadata=metadata)
    assert verify(s3) == ResultSeen(RUN_ID, 0, 2, 5)


def test_without_a_part_the_attempts_own_folder_counts(s3: Any) -> None:
    put(s3, "attempts/0000000/2/model.bin")
    put(s3, "attempts/0000000/2/log.txt", b"12")
    put(s3, "attempts/0000000/1/old.bin", b"1" * 99)
    put(s3, "attempts/0000000/22/other.bin", b"1" * 99)
    assert verify(s3) == ResultSeen(RUN_ID, 0, 2, 7)


def test_a_task_that_wrote_nothing_has_no_result_and_neither_has_a_missing_bucket(s3: Any) -> None:
    assert verify(s3, index=1) == ResultSeen(RUN_ID, 1, 0, 0)
    s3.delete_bucket(Bucket="results")
    assert verify(s3, index=1) == ResultSeen(RUN_ID, 1, 0)


def test_a_look_up_that_fails_is_done_again() -> None:
    for script in (timed_out(), refusal("403", "Forbidden", 403)):
        assert isinstance(verify(ScriptedClient("s3", head_object=script)), NotCarriedOut)
    s3 = ScriptedClient("s3", head_object=refusal("404", "", 404), list_objects_v2=timed_out())
    assert isinstance(verify(s3), NotCarriedOut)


def test_a_closed_run_needs_nothing_any_more() -> None:
    results = Results(HomeClients(ScriptedClient("s3"), announcing()), Clock())
    assert isinstance(results.verify(VerifyResult(RUN_ID, 0, 1), state_with()), NotCarriedOut)
    assert isinstance(results.close(CloseRun(RUN_ID), state_with()), NotCarriedOut)


def finished(statuses: list[TaskStatus], committed: list[int]) -> State:
    state = state_of(len(statuses), array={"range": f"0:{10 * len(statuses)}", "shardSize": 10})
    tasks = state.runs[RUN_ID].tasks
    rows = np.arange(len(statuses))
    name = instance_id(1).encode()
    tasks.set_many(
        rows, status=statuses, attempts=committed, committed=committed, instance=name, seconds=1.23456, gpu_mask=2
    )
    return state


def read(s3: Any, name: str) -> bytes:
    return bytes(s3.get_object(Bucket="results", Key=ROOT + name)["Body"].read())


def test_a_run_that_succeeded_is_closed_with_its_manifest_and_the_marker_last(s3: Any) -> None:
    put(s3, "parts/part-0000000.jsonl")
    put(s3, "attempts/0000001/2/b.bin", b"123")
    put(s3, "attempts/0000001/1/zombie.bin")
    put(s3, "attempts/0000010/2/nobody.bin")
    put(s3, "attempts/readme.txt")
    events = announcing()
    state = finished([TaskStatus.SUCCEEDED] * 2, [1, 2])
    assert Results(HomeClients(s3, events), Clock()).close(CloseRun(RUN_ID), state) == RunClosed(RUN_ID)

    manifest = json.loads(read(s3, "manifest.json"))
    assert manifest["runId"] == RUN_ID
    assert manifest["tasks"]["total"] == manifest["tasks"]["succeeded"] == 2
    first, second = manifest["entries"]
    assert first == {
        "index": 0,
        "status": "SUCCEEDED",
        "attempt": 1,
        "keys": [ROOT + "parts/part-0000000.jsonl"],
        "bytes": 5,
        "seconds": 1.235,
        "instance": instance_id(1),
        "instanceType": "c5.xlarge",
        "gpuIds": ["GPU-1-1"],
        "range": "0:10",
    }
    assert (second["attempt"], second["keys"], second["bytes"]) == (2, [ROOT + "attempts/0000001/2/b.bin"], 3)
    assert read(s3, "_SUCCESS") == b""
    detail = json.loads(events.calls[0][1]["Entries"][0]["Detail"])
    assert (detail["runId"], detail["status"], detail["stoppedAt"][:4]) == (RUN_ID, "SUCCEEDED", "2027")


def test_a_run_that_did_not_wholly_succeed_is_marked_failed(s3: Any) -> None:
    put(s3, "parts/part-0000001.jsonl")  # of a task that still failed
    state = finished([TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELLED], [1, 0, 0])
    assert Results(HomeClients(s3, announcing()), Clock()).close(CloseRun(RUN_ID), state) == RunClosed(RUN_ID)
    keys = {each["Key"] for each in s3.list_objects_v2(Bucket="results", Prefix=ROOT)["Contents"]}
    assert ROOT + "_FAILED" in keys
    assert ROOT + "_SUCCESS" not in keys
    entries = json.loads(read(s3, "manifest.json"))["entries"]
    assert [(entry["status"], entry["attempt"], entry["keys"]) for entry in entries[1:]] == [
        ("FAILED", None, []),
        ("CANCELLED", None, []),
    ]


def test_closing_that_breaks_off_leaves_no_marker_and_is_done_again() -> None:
    state = finished([TaskStatus.SUCCEEDED], [1])
    listing: dict[str, Any] = {"list_objects_v2": {}, "head_object": NOTHING}
    for scripts in (
        {**listing, "list_objects_v2": timed_out()},
        {**listing, "head_object": timed_out()},
        {**listing, "put_object": timed_out()},
        {**listing, "put_object": [{}, timed_out()]},
    ):
        s3 = ScriptedClient("s3", **scripts)
        assert isinstance(Results(HomeClients(s3, announcing()), Clock()).close(CloseRun(RUN_ID), state), NotCarriedOut)
    assert [request["Key"].rsplit("/", 1)[1] for request in s3.requests("put_object")] == ["manifest.json", "_SUCCESS"]


@pytest.mark.parametrize("before", [b"", b"the manifest of an earlier try"])
def test_a_manifest_that_another_writer_stored_in_the_meantime_stays_and_no_marker_is_set(
    s3: Any, before: bytes
) -> None:
    if before:
        put(s3, "manifest.json", before)

    class Meanwhile:
        """The bucket, which another process changes while we list it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(s3, name)

        def list_objects_v2(self, **request: Any) -> Any:
            put(s3, "manifest.json", b"theirs")
            return s3.list_objects_v2(**request)

    event = Results(HomeClients(Meanwhile(), announcing()), Clock()).close(
        CloseRun(RUN_ID), finished([TaskStatus.FAILED], [0])
    )
    assert isinstance(event, NotCarriedOut)
    assert event.about == Subject(Act.CLOSE, RUN_ID)  # done again, if the run is still ours to close
    assert read(s3, "manifest.json") == b"theirs"
    keys = {each["Key"] for each in s3.list_objects_v2(Bucket="results", Prefix=ROOT)["Contents"]}
    assert ROOT + "_FAILED" not in keys


@pytest.mark.parametrize(
    ("named", "stays"), [({}, False), ({"argosy-retries": "x"}, False), ({"argosy-retries": "1"}, True)]
)
def test_a_reopened_run_loses_the_marker_of_an_earlier_try_only(s3: Any, named: dict[str, str], stays: bool) -> None:
    put(s3, "_FAILED", b"", Metadata=named)
    state = finished([TaskStatus.FAILED], [0])
    state.runs[RUN_ID].retries = 1
    remove_former_failure(s3, state.runs[RUN_ID])
    assert ("Contents" in s3.list_objects_v2(Bucket="results", Prefix=ROOT)) is stays


def test_a_late_marker_of_success_stays_because_such_a_run_is_never_reopened(s3: Any) -> None:
    """The store can only say something else if it was changed by hand."""
    answers = iter([0, 0, 1])
    results = Results(HomeClients(s3, announcing()), Clock(), Coordination(retries_of=lambda run_id: next(answers)))
    assert isinstance(results.close(CloseRun(RUN_ID), finished([TaskStatus.SUCCEEDED], [1])), NotCarriedOut)
    assert read(s3, "_SUCCESS") == b""


@pytest.mark.parametrize(
    ("fault", "passing"),
    [
        (refusal("SlowDown", "Please reduce your request rate.", 503), True),
        (refusal("InternalError", "try again", 500), True),
        (timed_out(), True),
        (refusal("AccessDenied", "no", 403), False),
    ],
)
def test_a_fault_says_whether_it_is_passing(fault: Exception, passing: bool) -> None:
    s3, state = ScriptedClient("s3", head_object=fault), finished([TaskStatus.SUCCEEDED], [1])
    results = Results(HomeClients(s3, announcing()), Clock())
    for event in (results.close(CloseRun(RUN_ID), state), results.verify(VerifyResult(RUN_ID, 0, 1), state)):
        assert isinstance(event, NotCarriedOut)
        assert event.passing is passing


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal("AccessDeniedException", "no"), RunClosed),
        ({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "InternalException"}]}, RunClosed),
        (timed_out(), NotCarriedOut),
    ],
)
def test_a_run_is_closed_even_if_its_end_cannot_be_announced(answer: Any, kind: type) -> None:
    s3 = ScriptedClient("s3", head_object=NOTHING, list_objects_v2={}, put_object={}, delete_object={})
    event = Results(HomeClients(s3, announcing(answer)), Clock()).close(
        CloseRun(RUN_ID), finished([TaskStatus.SUCCEEDED], [1])
    )
    assert isinstance(event, kind)


def test_the_event_gives_no_time_for_a_run_that_never_started() -> None:
    events = announcing()
    s3 = ScriptedClient("s3", head_object=NOTHING, list_objects_v2={}, put_object={}, delete_object={})
    state = finished([TaskStatus.CANCELLED], [0])
    Results(HomeClients(s3, events), Clock(NOW)).close(CloseRun(RUN_ID), state)
    detail = json.loads(events.calls[0][1]["Entries"][0]["Detail"])
    assert (detail["startedAt"], detail["status"]) == (None, "FAILED")


def test_the_event_tells_the_cost_of_instances_that_live_on_too() -> None:
    events = announcing()
    s3 = ScriptedClient("s3", head_object=NOTHING, list_objects_v2={}, put_object={}, delete_object={})
    state = finished([TaskStatus.SUCCEEDED], [1])
    run, instance = state.runs[RUN_ID], state.instances[instance_id(1)]
    run.costs = {"us-east-1/c5.xlarge/us-east-1a|spot": Costs(useful=0.5)}
    run.cost_usd, instance.bought_for, instance.price_usd_per_hour = 0.5, run.number, 3.6
    Results(HomeClients(s3, events), Clock(NOW + 100)).close(CloseRun(RUN_ID), state)
    detail = json.loads(events.calls[0][1]["Entries"][0]["Detail"])
    assert detail["costUsd"] == pytest.approx(0.5 + 100 * 0.001)


class Sorted:
    """A bucket with these objects, in pages of a thousand, each of which takes half a minute."""

    def __init__(self, names: list[str], clock: Clock) -> None:
        self.keys, self.clock, self.written = sorted(ROOT + name for name in names), clock, list[dict[str, Any]]()
        self.pages = self.most_pages = 0  # between two objects that are written

    def list_objects_v2(self, *, Prefix: str, **request: Any) -> dict[str, Any]:  # noqa: N803
        self.clock.at += 30.0
        self.pages += 1
        self.most_pages = max(self.pages, self.most_pages)
        after = request.get("ContinuationToken") or request.get("StartAfter", "")
        first, end = (bisect_right(self.keys, max(name, after)) for name in (Prefix, Prefix + "~"))
        keys = self.keys[first : min(first + 1000, end)]
        page = {"Contents": [{"Key": key, "Size": 1} for key in keys], "IsTruncated": first + 1000 < end}
        return page | ({"NextContinuationToken": keys[999]} if first + 1000 < end else {})

    def put_object(self, **request: Any) -> dict[str, Any]:
        self.written.append(request)
        self.pages = 0
        return {}

    def head_object(self, **request: Any) -> Any:
        raise NOTHING

    def delete_object(self, **request: Any) -> dict[str, Any]:
        return {}

    def entries(self) -> list[dict[str, Any]]:
        bodies = [json.loads(each["Body"]) for each in self.written if "/manifest/" in each["Key"]]
        return [entry for body in bodies for entry in body["entries"]]


def closed_in_parts(s3: Any, state: State, clock: Clock, size: PartSize, signs: list[float] | None = None) -> int:
    """How many closes it took. signs: of life, takes their times."""
    beats = [] if signs is None else signs
    coordination = Coordination(keep_alive=lambda: beats.append(clock.at))
    results = Results(HomeClients(s3, announcing()), clock, coordination, size)
    for number in range(1, 10_000):
        event = results.close(CloseRun(RUN_ID), state)
        told(state, event, now=clock.at)
        if event == RunClosed(RUN_ID):
            return number
        assert isinstance(event, ManifestPartWritten)
    raise AssertionError("it is never closed")


def test_a_large_run_is_closed_a_part_at_a_time_and_a_sign_of_life_is_given_for_every_page() -> None:
    """So that a close that takes minutes neither loses the controller's lease nor keeps the controller from other
    work."""
    count, clock, signs = 25_000, Clock(), list[float]()
    s3 = Sorted([f"parts/part-{index:07d}.jsonl" for index in range(count)], clock)
    state = finished([TaskStatus.SUCCEEDED] * count, [1] * count)
    assert closed_in_parts(s3, state, clock, PartSize(), signs) == 4
    assert max(later - earlier for earlier, later in pairwise(signs)) <= 30.0  # half a lease
    assert clock.at - NOW <= 30.0 * (25 + 3 * 3)  # no page is listed repeatedly
    names = [each["Key"].removeprefix(ROOT) for each in s3.written]
    assert names == [
        "manifest/0/0000000-0010000.json",
        "manifest/0/0010000-0020000.json",
        "manifest/0/0020000-0025000.json",
        "manifest.json",
        "_SUCCESS",
    ]
    assert [(entry["index"], entry["bytes"]) for entry in s3.entries()] == [(index, 1) for index in range(count)]
    index = json.loads(s3.written[3]["Body"])
    assert [(each["from"], each["to"]) for each in index["parts"]] == [(0, 10_000), (10_000, 20_000), (20_000, 25_000)]
    assert index["tasks"]["succeeded"] == count
    assert all(len(each["Body"]) < 5_000_000 for each in s3.written)


def test_a_part_ends_early_where_its_tasks_have_very_many_objects_and_within_a_task_of_more() -> None:
    clock, counts = Clock(), [3, 25, 0, 4, 4, 4, 1]
    files = [f"attempts/{index:07d}/1/{n}" for index, count in enumerate(counts) for n in range(count)]
    s3 = Sorted([*files, "attempts/readme", "attempts/6/1/x", "parts/part-0000002.jsonl"], clock)
    state = finished([TaskStatus.SUCCEEDED] * 7, [1] * 7)
    closed_in_parts(s3, state, clock, PartSize(100, 10))
    bounds = [
        (body["from"], body["to"]) for each in s3.written if "from" in (body := json.loads(each["Body"] or b"{}"))
    ]
    assert bounds == [(0, 1), (1, 1), (1, 1), (1, 4), (4, 7)]  # what is behind all attempts is not counted
    entries = s3.entries()
    assert [(each["index"], len(each["keys"])) for each in entries if "more" in each] == [(1, 10), (1, 10)]
    assert [len(each["keys"]) for each in entries if "more" not in each] == [3, 5, 1, 4, 4, 4, 1]


def test_a_task_with_very_many_objects_is_closed_in_pieces_that_are_read_as_one_entry() -> None:
    """The objects of another attempt are not listed to their end."""
    clock = Clock()
    names = [f"attempts/0000001/{attempt}/{n:06d}" for attempt in (1, 2) for n in range(50_000)]
    parts = [f"parts/part-{index:07d}.jsonl" for index in range(3)]
    s3 = Sorted([*names, *parts], clock)
    state = finished([TaskStatus.SUCCEEDED] * 3, [1, 2, 1])
    assert closed_in_parts(s3, state, clock, PartSize()) == 6
    assert s3.most_pages <= 2 * 21  # for one part
    assert clock.at - NOW <= 30.0 * (21 + 21 + 50 + 6 * 3)
    bodies = {each["Key"].removeprefix(ROOT): each["Body"] for each in s3.written}
    assert max(map(len, bodies.values())) < 2_000_000
    assert list(bodies)[1:5] == [
        "manifest/0/0000001-0000001.1.json",
        "manifest/0/0000001.1-0000001.20001.json",
        "manifest/0/0000001.20001-0000001.40001.json",
        "manifest/0/0000001.40001-0000003.json",
    ]
    entries = list(Manifest(BytesIO(bodies["manifest.json"]), lambda name: BytesIO(bodies[name])).entries())
    assert [len(entry["keys"]) for entry in entries] == [1, 50_001, 1]
    assert entries[1]["keys"] == [ROOT + parts[1], *(ROOT + name for name in names[50_000:])]
    assert entries[1]["bytes"] == 50_001


def test_a_look_up_reads_one_page_of_an_attempts_folder() -> None:
    clock = Clock()
    s3 = Sorted([f"attempts/0000000/2/{n:06d}" for n in range(5_000)], clock)
    assert verify(s3) == ResultSeen(RUN_ID, 0, 2, 1000)
    assert clock.at == NOW + 30.0


def test_a_reopened_run_takes_what_it_forgot_from_the_parts_of_its_earlier_manifest(s3: Any) -> None:
    state = finished([TaskStatus.SUCCEEDED, TaskStatus.FAILED] * 4, [1, 0] * 4)
    closed_in_parts(s3, state, Clock(), PartSize(3))
    again = finished([TaskStatus.SUCCEEDED] * 8, [1, 2] * 4)
    again.runs[RUN_ID].retries = 1
    again.instances.clear()  # forgotten
    put(s3, "manifest/0/0000003-0000006.json", b"damaged")
    closed_in_parts(s3, again, Clock(), PartSize(4))
    bodies = [
        json.loads(read(s3, name)) for name in ("manifest/1/0000000-0000004.json", "manifest/1/0000004-0000008.json")
    ]
    types = [entry["instanceType"] for body in bodies for entry in body["entries"]]
    assert types == ["c5.xlarge", None, "c5.xlarge", None, None, None, "c5.xlarge", None]
    assert [each["key"][:11] for each in json.loads(read(s3, "manifest.json"))["parts"]] == ["manifest/1/"] * 2


def test_a_task_in_pieces_keeps_what_is_forgotten_of_its_instance_in_all_of_them(s3: Any) -> None:
    for number in range(7):
        put(s3, f"attempts/0000000/1/{number}")
    closed_in_parts(s3, finished([TaskStatus.SUCCEEDED, TaskStatus.FAILED], [1, 0]), Clock(), PartSize(10, 3))
    again = finished([TaskStatus.SUCCEEDED, TaskStatus.FAILED], [1, 0])
    again.runs[RUN_ID].retries = 1
    again.instances.clear()
    assert closed_in_parts(s3, again, Clock(), PartSize(10, 2)) == 5
    parts = [each["key"] for each in json.loads(read(s3, "manifest.json"))["parts"]]
    entries = [entry for name in parts for entry in json.loads(read(s3, name))["entries"]]
    assert [entry["instanceType"] for entry in entries if not entry["index"]] == ["c5.xlarge"] * 4
    assert json.loads(read(s3, parts[0])).keys() == {"runId", "retries", "from", "to", "entries"}


@pytest.mark.parametrize("earlier", [b"", b"[]", b'{"parts": 7}', b'{"parts": [{}]}', b"\xff"])
def test_an_earlier_manifest_that_is_damaged_keeps_no_run_open(s3: Any, earlier: bytes) -> None:
    put(s3, "manifest.json", earlier)
    state = finished([TaskStatus.SUCCEEDED], [1])
    state.runs[RUN_ID].retries = 1
    assert closed_in_parts(s3, state, Clock(), PartSize(10)) == 1
