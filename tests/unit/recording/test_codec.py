"""A fact that was recorded comes back as it was, whatever it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.events import (
    ClusterScaled,
    EnvironmentAsked,
    Event,
    RunCancelled,
    RunResumed,
    RunRetried,
    RunSubmitted,
    RunUpdated,
    SharingAsked,
    TasksCancelled,
    TaskSeen,
)
from argosy.model.host_care import DrainAsked, DrainRequest
from argosy.model.inbox import (
    CancelRequest,
    CancelTasksRequest,
    EnvironmentRequest,
    RetryRequest,
    ScaleRequest,
    SharingRequest,
    SubmitRequest,
    UpdateRequest,
)
from argosy.model.run_record import RunRecord
from argosy.model.tasks import TaskStatus
from argosy.recording.codec import UnknownFact, fact_from_json, fact_to_json
from argosy.spec.terms import terms_of_form
from tests.builders import RUN_ID, prepared, spec, state_with, submitted

OF_USERS = (
    TasksCancelled,
    RunSubmitted,
    RunCancelled,
    RunRetried,
    RunUpdated,
    RunResumed,
    EnvironmentAsked,
    ClusterScaled,
    DrainAsked,
    SharingAsked,
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TERMS = terms_of_form(spec())
SUBMIT = SubmitRequest(
    RUN_ID, 1.5, {"name": "x", "odd": "\ud800", "list": [1, 2.0, None]}, TERMS, 3, "", "s3://b/x/", True
)


def again(event: Any) -> Any:
    name, values = json.loads(fact_to_json(event))
    return fact_from_json(name, values)


@pytest.fixture(autouse=True)
def numbers_of_json() -> Iterator[None]:
    """JSON has neither NaN nor infinity."""
    st.register_type_strategy(float, NUMBERS)
    yield
    st.register_type_strategy(float, st.floats())


@pytest.mark.parametrize("kind", [each for each in get_args(Event) if each not in OF_USERS])
def test_every_kind_of_fact_comes_back(kind: type) -> None:
    @settings(max_examples=15, deadline=None)
    @given(st.from_type(kind))
    def comes_back(event: Any) -> None:
        assert again(event) == event

    comes_back()


def test_a_request_comes_back_with_text_that_is_none() -> None:
    assert again(RunSubmitted(SUBMIT)) == RunSubmitted(SUBMIT)


def test_it_is_known_again_whether_a_run_was_suspended() -> None:
    run = state_with(submitted(), prepared()).runs[RUN_ID]
    for was_suspended in (True, False):
        run.committed = run.facts()._replace(was_suspended=was_suspended)
        assert again(RunResumed(RUN_ID, run)).stored.committed == run.committed


def test_what_a_user_asks_of_an_environment_comes_back_with_the_run_that_it_brings_along() -> None:
    submit = SubmitRequest(RUN_ID, 1.0, {"name": "web"}, TERMS, 3, "argosy/web", "s3://b/x/", False)
    for request in (
        EnvironmentRequest("web", 2.0, "scale", desired=4),
        EnvironmentRequest("web", 2.0, "deploy", revision=2, token="t", submit=submit),
    ):
        assert again(EnvironmentAsked(request)) == EnvironmentAsked(request)


def test_the_size_that_a_user_wants_the_cluster_kept_at_comes_back() -> None:
    event = ClusterScaled(ScaleRequest(2.0, 3, ("c5.xlarge",), 9.0))
    assert again(event) == event


def test_an_instance_that_a_user_drains_comes_back() -> None:
    event = DrainAsked(DrainRequest(2.0, "i-1", 9.0))
    assert again(event) == event


def test_what_a_user_changes_of_a_run_comes_back() -> None:
    cancelled = TasksCancelled(CancelTasksRequest(RUN_ID, 2.0, ((1, 3), (7, 7))))
    assert again(cancelled) == cancelled
    asked = RunUpdated(UpdateRequest(RUN_ID, 2.0, {"priority": 5, "deadline": None}, "it is urgent"))
    assert again(asked) == asked


def test_a_sharing_document_comes_back() -> None:
    asked = SharingAsked(SharingRequest({"version": 1, "queues": {"team": {"within": "owners"}}}, 3, 2.0))
    assert again(asked) == asked


def test_a_run_that_a_request_brings_along_comes_back_as_it_lay_in_the_store() -> None:
    state = state_with(submitted(tasks=3), prepared())
    run = state.runs[RUN_ID]
    run.tasks.set(1, status=TaskStatus.FAILED, attempts=2, exit_code=7)
    run.tasks.pack(0)
    for event in (
        RunCancelled(CancelRequest(RUN_ID, 2.0, "enough"), run),
        RunRetried(RetryRequest(RUN_ID, 2.0, tasks=((1, 3), (7, 7)), size={"memory": 4096}), run),
        RunResumed(RUN_ID, run),
    ):
        found = again(event)
        assert found == event
        assert RunRecord.of(found.stored) == RunRecord.of(run)
        assert found.stored.tasks["exit_code"].tolist() == run.tasks["exit_code"].tolist()
    assert again(RunCancelled(CancelRequest(RUN_ID, 2.0, "enough"))).stored is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("MeteorSeen", {}),
        ("TaskSeen", {"arn": "a", "version": "soon", "last_status": "RUNNING"}),
        ("TaskSeen", [1, 2]),
        ("TaskSeen", None),
        ("RunSubmitted", {"request": {"kind": "submit"}}),
        ("RunSubmitted", {"request": 7}),
        ("RunResumed", {"run_id": "x", "stored": {"record": {}, "documents": {}}}),
    ],
)
def test_what_this_version_does_not_write_is_refused(name: str, values: Any) -> None:
    with pytest.raises(UnknownFact):
        fact_from_json(name, values)


def test_fields_at_their_default_take_no_room() -> None:
    assert fact_to_json(TaskSeen("a", 1, "RUNNING")) == b'["TaskSeen",{"arn":"a","version":1,"last_status":"RUNNING"}]'
