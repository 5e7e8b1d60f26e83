"""Any message is a fact, nothing or poison; and no fact makes the state too large to be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.aws.sqs import parse
from argosy.lifecycle.apply import apply
from argosy.messages.eventbridge import MESSAGE_KINDS, PoisonMessage, to_event
from argosy.model.events import TaskSeen
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.stored import documents
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    container_instance,
    host,
    instance_id,
    launched,
    state_with,
    state_with_instance,
)
from tests.sample_messages import ACCOUNT, INSTANCE, MESSAGES, TASK

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from(["x" * 300_000, "9" * 40, "Infinity", "-1", [], {}, [[]], [None], [{}], {"name": None}, "i-1"]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.none(), max_size=2),
)


def places(thing: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = thing.items() if isinstance(thing, Mapping) else enumerate(thing) if isinstance(thing, list) else ()
    for key, value in entries:
        found += places(value, (*path, key))
    return found


messages, one_to_three, flags, names = st.sampled_from(MESSAGES), st.integers(1, 3), st.booleans(), st.text(max_size=8)


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A real message with one to three of its fields missing, of another type or value, or doubled with junk next to
    it."""
    message: dict[str, Any] = deepcopy(draw(messages))
    for _ in range(draw(one_to_three)):
        *way, last = draw(st.sampled_from(places(message)))
        spot: Any = message
        try:
            for key in way:
                spot = spot[key]
            if draw(flags) and isinstance(spot, dict):
                spot.pop(last, None)
                spot[draw(names)] = deepcopy(draw(ODD))
            else:
                spot[last] = deepcopy(draw(ODD))
        except (LookupError, TypeError):  # an earlier change has taken that place away
            continue
    return message


def busy() -> State:
    state = state_with_instance(tasks=3)
    launched(state)
    documents.committed(state)
    return state


@given(broken())
def test_a_broken_message_is_a_fact_nothing_or_poison_and_leaves_a_state_that_can_be_stored(
    message: dict[str, Any],
) -> None:
    state = busy()
    try:
        event = to_event(message)
    except PoisonMessage:
        return
    if event is None:
        return
    for _ in range(2):
        apply(state, event, NOW + 5, POLICY)
    for body in documents.changed(state).values():
        assert len(body) < 100_000
    text = json.dumps([RunRecord.of(run).to_json() for run in state.runs.values()], allow_nan=False)
    assert len(text) < 50_000


@pytest.mark.parametrize("message", MESSAGES, ids=[kind.rule for kind in MESSAGE_KINDS])
def test_unknown_fields_are_tolerated(message: dict[str, Any]) -> None:
    extra = {**message, "new": 1, "detail": {**message["detail"], "new": {"deep": [1]}}}
    assert to_event(extra) == to_event(message)


def test_a_message_of_a_megabyte_is_cut_to_what_an_item_can_hold() -> None:
    state = busy()
    huge = {**MESSAGES[0], "detail": {**TASK, "stoppedReason": "x" * 1_000_000, "containers": []}}
    body = json.dumps(huge)
    assert len(body) > 1_000_000
    event = to_event(parse(body))
    assert event is not None
    apply(state, event, NOW + 5, POLICY)
    assert max(map(len, documents.changed(state).values())) < 10_000
    assert len(RunRecord.of(state.runs[RUN_ID]).reasons[-1]) <= 300


@pytest.mark.parametrize("cluster", ["other", "argosy-dev"])
@pytest.mark.parametrize("where", ["us-east-1:123456789012", "eu-west-1:123456789012", "us-east-1:999999999999"])
def test_a_task_of_another_cluster_changes_nothing_even_if_it_calls_itself_ours(cluster: str, where: str) -> None:
    state = state_with_instance(tasks=3)
    from argosy.lifecycle.begin import begin
    from argosy.model.actions import Launch
    from argosy.model.attempts import AttemptKey
    from tests.builders import CELL, instance_id

    key = AttemptKey(RUN_ID, 0, 1, 0)
    begin(state, Launch(key, 1, state.started_by(1), instance_id(1), CELL), NOW, POLICY)
    before = documents.changed(state)
    foreign = f"arn:aws:ecs:{where}:task/{cluster}/{'0' * 32}"
    apply(state, TaskSeen(foreign, 9, "STOPPED", key=key, exit_code=1), NOW, POLICY)
    assert documents.changed(state) == before


def test_a_container_instance_of_another_cluster_does_not_take_an_instances_place() -> None:
    state = busy()
    foreign = {**INSTANCE, "containerInstanceArn": f"arn:aws:ecs:us-east-1:{ACCOUNT}:container-instance/other/{2:032x}"}
    event = to_event({**MESSAGES[1], "detail": {**foreign, "status": "DRAINING"}})
    before = deepcopy(state.instances)
    assert event is not None
    apply(state, event, NOW, POLICY)
    assert state.instances == before


def test_a_message_that_named_another_cluster_first_is_put_right_by_the_listing() -> None:
    state = state_with(host(1))
    foreign = f"arn:aws:ecs:us-east-1:{ACCOUNT}:container-instance/other/{1:032x}"
    apply(state, replace(container_instance(1), arn=foreign, version=50), NOW, POLICY)
    ours = replace(container_instance(1), version=7, agent_connected=False)
    apply(state, ours, NOW, POLICY)
    assert state.instances[instance_id(1)].arn == foreign
    apply(state, replace(ours, listed=True), NOW, POLICY)
    assert state.instances[instance_id(1)].arn == ours.arn
    assert not state.instances[instance_id(1)].agent_connected


def test_versions_that_go_backwards_change_nothing() -> None:
    state = busy()
    newer = to_event({**MESSAGES[1], "detail": {**INSTANCE, "version": 20, "status": "DRAINING"}})
    older = to_event({**MESSAGES[1], "detail": {**INSTANCE, "version": 19}})
    assert newer is not None
    assert older is not None
    apply(state, newer, NOW, POLICY)
    before = deepcopy(state.instances)
    apply(state, older, NOW, POLICY)
    assert state.instances == before
    running = to_event({**MESSAGES[0], "detail": {**TASK, "version": 5, "lastStatus": "RUNNING", "containers": []}})
    stale = to_event({**MESSAGES[0], "detail": {**TASK, "version": 4}})
    assert running is not None
    assert stale is not None
    apply(state, running, NOW, POLICY)
    apply(state, stale, NOW, POLICY)
    assert state.runs[RUN_ID].tasks["user_failures"][0] == 0


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, {"startedAt": 1e12}),
        (0, {"stoppedAt": float("nan")}),
        (0, {"version": -1}),
        (0, {"version": 2**70}),
        (0, {"version": float("inf")}),
        (0, {"containers": [{"exitCode": 2**40}]}),
        (0, {"containers": [{"gpuIds": [f"GPU-{n}" for n in range(33)]}]}),
        (0, {"taskArn": "arn:" + "x:" * 2000}),
        (1, {"registeredResources": [{"name": "CPU", "integerValue": -5}]}),
        (2, {"instance-id": "i-" + "0" * 5000}),
        (4, {"state": None}),
    ],
)
def test_values_that_the_state_cannot_hold_are_poison(number: int, change: dict[str, Any]) -> None:
    message = MESSAGES[number]
    with pytest.raises(PoisonMessage):
        to_event({**message, "detail": {**message["detail"], **change}})


def test_an_instance_that_is_not_of_ec2_is_ignored() -> None:
    event = to_event({**MESSAGES[1], "detail": {**INSTANCE, "ec2InstanceId": "mi-0123456789abcdef0"}})
    state = busy()
    before = deepcopy(state.instances)
    assert event is not None
    apply(state, event, NOW, POLICY)
    assert state.instances == before


HALF = "\ud865"  # of a surrogate pair, which JSON can spell and UTF-8 cannot


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, {"taskArn": TASK["taskArn"] + HALF}),
        (0, {"overrides": {"containerOverrides": [{"environment": [
            {**entry, "value": entry["value"] + HALF} if entry["name"] == "ARGOSY_RUN_ID" else entry
            for entry in TASK["overrides"]["containerOverrides"][0]["environment"]
        ]}]}}),
        (1, {"containerInstanceArn": INSTANCE["containerInstanceArn"] + HALF}),
        (2, {"instance-id": "i-" + HALF}),
        (4, {"state": HALF}),
    ],
)  # fmt: skip
def test_a_name_that_no_store_can_hold_is_poison(number: int, change: dict[str, Any]) -> None:
    message = MESSAGES[number]
    with pytest.raises(PoisonMessage, match="surrogates not allowed"):
        to_event({**message, "detail": {**message["detail"], **change}})


def test_a_reason_that_no_store_can_hold_is_kept_with_question_marks() -> None:
    event = to_event({**MESSAGES[0], "detail": {**TASK, "stoppedReason": f"killed {HALF}!"}})
    assert isinstance(event, TaskSeen)
    assert event.status_reason == "killed ?!"


@pytest.mark.parametrize("field", ["stoppedReason", "lastStatus", "startedBy"])
def test_a_list_that_is_nested_without_end_is_poison_where_a_text_should_be(field: str) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(PoisonMessage, match="not text: list"):
        to_event({**MESSAGES[0], "detail": {**TASK, field: nested}})
    with pytest.raises(PoisonMessage, match="not a name: list"):
        to_event({**MESSAGES[2], "detail": {"instance-id": nested}})
    assert to_event({**MESSAGES[0], "source": nested, "detail-type": nested}) is None
