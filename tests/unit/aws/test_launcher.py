"""The launch protocol at its outer end: the calls, and the meaning of every answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from argosy.emulator.ecs.ledger import TOKEN_OUTLIVES_TASK_S
from argosy.model.actions import Launch, ResolveLaunches, StopAttempt, StopOrphan
from argosy.model.attempts import AttemptKey, StopCause
from argosy.model.events import (
    ActionFailed,
    Event,
    LaunchAccepted,
    LaunchDisproved,
    LaunchInDoubt,
    LaunchMissed,
    LaunchRefused,
    NotCarriedOut,
    TaskSeen,
)
from argosy.model.instances import InstanceStatus
from argosy.model.policy import Policy
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from tests.builders import (
    CELL,
    NOW,
    RUN_ID,
    begun,
    instance_id,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task_arn,
    told,
)
from tests.fakes.aws import KEY, LAUNCH, SOON, Clock, ScriptedClient, cell, launching, refusal, timed_out

MOST_SKEW_S = 240.0  # two clocks that are two minutes off, each the other way
STARTED = {"tasks": [{"taskArn": task_arn(1), "containers": [{"gpuIds": ["GPU-a"]}]}], "failures": []}
NO_ROOM = {"tasks": [], "failures": [{"arn": "x", "reason": "RESOURCE:GPU", "detail": "none left"}]}
DENIED = refusal("AccessDeniedException", "not authorized to perform: iam:PassRole")
LOST = timed_out()


def launched_with(*answers: Any, state: State | None = None) -> tuple[list[Event], ScriptedClient]:
    ecs = ScriptedClient("ecs", run_task=list(answers))
    return launching(ecs).launch(LAUNCH, state or state_with_instance(), SOON), ecs


def test_no_intent_is_sent_again_after_its_token_may_have_died() -> None:
    """A token outlives its task by an hour, however short the task was (aws.md 2.3)."""
    assert Policy().intent_age_s + MOST_SKEW_S < TOKEN_OUTLIVES_TASK_S


def test_the_same_token_names_a_task_that_has_stopped_meanwhile() -> None:
    """AWS then tells its ARN and its statuses, and nothing else (aws.md 2.3)."""
    stopped = {"tasks": [{"taskArn": task_arn(1), "lastStatus": "STOPPED", "desiredStatus": "STOPPED"}], "failures": []}
    events, _ = launched_with(NO_ROOM, stopped)
    assert events == [LaunchAccepted(KEY, task_arn(1))]


def test_a_launch_that_is_answered_with_a_task_is_accepted_with_its_gpus() -> None:
    events, ecs = launched_with(STARTED)
    assert events == [LaunchAccepted(KEY, task_arn(1), ("GPU-a",))]
    assert len(ecs.calls) == 1


@pytest.mark.parametrize(
    ("answers", "event"),
    [
        ([NO_ROOM, NO_ROOM], LaunchRefused(KEY, "RESOURCE:GPU", "none left")),
        ([NO_ROOM, STARTED], LaunchAccepted(KEY, task_arn(1), ("GPU-a",))),
        (
            [DENIED, DENIED],
            LaunchRefused(KEY, "AccessDeniedException", "not authorized to perform: iam:PassRole", denied=True),
        ),
        (
            [refusal("ClientException", "TaskDefinition is inactive")] * 2,
            LaunchRefused(KEY, "ClientException", "TaskDefinition is inactive", denied=True),
        ),
        (  # there is no other cell
            [refusal("ClusterNotFoundException", "gone")] * 2,
            LaunchRefused(KEY, "ClusterNotFoundException", "gone", denied=True),
        ),
        (
            [NO_ROOM, LOST],
            LaunchInDoubt(KEY, 'ReadTimeoutError: Read timeout on endpoint URL: "https://ecs.us-east-1.amazonaws.com"'),
        ),
        (
            [NO_ROOM, refusal("ThrottlingException", "Rate exceeded")],
            LaunchInDoubt(KEY, "RESOURCE:GPU, not checked: ThrottlingException: Rate exceeded"),
        ),
    ],
)
def test_a_refusal_is_checked_once_with_the_very_same_request(answers: list[Any], event: Event) -> None:
    events, ecs = launched_with(*answers)
    assert events == [event]
    first, second = ecs.requests("run_task")
    assert first == second


def test_a_users_own_definition_that_is_deregistered_ends_the_run() -> None:
    """There is no other: this revision was checked at submission."""
    state = state_with_instance()
    run = state.runs[RUN_ID]
    run.terms = replace(run.terms, task_definition="train")
    events, _ = launched_with(*[refusal("ClientException", "TaskDefinition is inactive")] * 2, state=state)
    assert events == [LaunchRefused(KEY, "ClientException", "TaskDefinition is inactive", final=True)]


@pytest.mark.parametrize("lost", [LOST, refusal("ServerException", "oops", 500), {"tasks": [], "failures": []}])
def test_a_reply_that_proves_nothing_leaves_the_launch_in_doubt(lost: Any) -> None:
    events, ecs = launched_with(lost)
    assert isinstance(events[0], LaunchInDoubt)
    assert len(ecs.calls) == 1


def test_throttling_in_any_dress_leaves_the_intent_and_slows_down() -> None:
    clock = Clock()
    ecs = ScriptedClient("ecs", run_task=refusal("InvalidParameterException", "Rate exceeded"))
    home = cell(clock, ecs, pace=40)
    here = launching(ecs, clock, home=home)
    assert here.launch(LAUNCH, state_with_instance(), SOON) == [
        NotCarriedOut("InvalidParameterException: Rate exceeded", KEY, Subject(Act.SEND, RUN_ID))
    ]
    assert home.rates.launches.rate_per_s == 20


def test_a_conflict_names_the_task_that_the_token_started() -> None:
    events, _ = launched_with(refusal("ConflictException", "conflict", resourceIds=[task_arn(7)]))
    assert events == [LaunchAccepted(KEY, task_arn(7))]
    events, _ = launched_with(refusal("ConflictException", "conflict"))
    assert isinstance(events[0], LaunchInDoubt)


def test_what_has_no_time_or_no_run_any_more_is_not_begun() -> None:
    ecs = ScriptedClient("ecs")
    assert launching(ecs).launch(LAUNCH, state_with_instance(), NOW - 1) == [
        NotCarriedOut("the time limit was reached", KEY)
    ]
    assert isinstance(launching(ecs).launch(LAUNCH, state_with(), SOON)[0], NotCarriedOut)
    elsewhere = Launch(KEY, 1, "argosy-testtest-1", instance_id(1), "mars-north-1")
    assert isinstance(launching(ecs).launch(elsewhere, state_with_instance(), SOON)[0], NotCarriedOut)


def items_state() -> State:
    array = {"itemsFrom": "s3://data/items"}
    container = {"image": "x", "command": ["${item.url}"]}
    return state_with(submitted(array=array, container=container), prepared())


def test_a_launch_reads_its_item_from_the_pinned_copy() -> None:
    ecs = ScriptedClient("ecs", run_task=STARTED)
    s3 = ScriptedClient("s3", get_object={"ContentLength": 9, "Body": __import__("io").BytesIO(b'{"url":"u"}\n')})
    here = launching(ecs, s3=s3)
    assert isinstance(here.launch(LAUNCH, items_state(), SOON)[0], LaunchAccepted)
    assert ecs.calls[0][1]["overrides"]["containerOverrides"][0]["command"] == ["u"]


def test_what_is_too_long_for_ecs_is_in_an_object_before_the_task_starts() -> None:
    state = state_with_instance(run=["echo", "${item}"], container={"image": "x"}, array={"items": ["x" * 9000] * 10})
    state.runs[RUN_ID].output = f"s3://results/{RUN_ID}/"
    ecs, s3 = ScriptedClient("ecs", run_task=STARTED), ScriptedClient("s3", put_object={})
    here = launching(ecs, s3=s3)
    for _ in range(2):
        assert isinstance(here.launch(LAUNCH, state, SOON)[0], LaunchAccepted)
    sent = ecs.requests("run_task")
    [override] = sent[0]["overrides"]["containerOverrides"]
    [address] = [each["value"] for each in override["environment"] if each["name"] == "ARGOSY_OVERRIDES"]
    written = s3.requests("put_object")
    assert address == f"s3://{written[0]['Bucket']}/{written[0]['Key']}"
    assert json.loads(written[0]["Body"])["command"] == ["echo", "x" * 9000]
    assert len(json.dumps(sent[0]["overrides"])) < 8192
    assert (sent[0], written[0]) == (sent[1], written[1])
    fails = launching(ScriptedClient("ecs"), s3=ScriptedClient("s3", put_object=timed_out()))
    assert isinstance(fails.launch(LAUNCH, state, SOON)[0], NotCarriedOut)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"ContentLength": 2, "Body": b"{}"}, LaunchRefused),
        (refusal("NoSuchKey", "", 404), LaunchRefused),
        (timed_out(), NotCarriedOut),
    ],
)
def test_an_item_that_cannot_be_had_is_refused_or_waited_for(answer: Any, kind: type) -> None:
    if isinstance(answer, dict):
        answer = {**answer, "Body": __import__("io").BytesIO(answer["Body"])}
    event = launching(ScriptedClient("ecs"), s3=ScriptedClient("s3", get_object=answer)).launch(
        LAUNCH, items_state(), SOON
    )[0]
    assert isinstance(event, kind)
    assert getattr(event, "whole_run", True)


def test_a_definition_that_another_cell_cannot_give_now_leaves_the_intent() -> None:
    state = state_with_instance()
    state.runs[RUN_ID].task_definition = "arn:aws:ecs:eu-west-1:123456789012:task-definition/x:1"
    ecs = ScriptedClient("ecs", describe_task_definition=timed_out())
    assert isinstance(launching(ecs).launch(LAUNCH, state, SOON)[0], NotCarriedOut)


# Doubt


def described(*keys: tuple[AttemptKey, int], status: str = "RUNNING") -> dict[str, Any]:
    return {"tasks": [shown(key, number, status) for key, number in keys]}


def shown(key: AttemptKey, number: int, status: str) -> dict[str, Any]:
    names = ("ARGOSY_RUN_ID", "ARGOSY_TASK_INDEX", "ARGOSY_TASK_ATTEMPT", "ARGOSY_LAUNCH")
    environment = [{"name": name, "value": str(value)} for name, value in zip(names, key, strict=True)]
    overrides = {"containerOverrides": [{"name": "main", "environment": environment}]}
    return {"taskArn": task_arn(number), "lastStatus": status, "version": 4, "overrides": overrides}


def listing(running: list[str], stopped: list[str]) -> Any:
    return lambda **request: {"taskArns": running if request["desiredStatus"] == "RUNNING" else stopped}


def resolve(resend: bool, launches: tuple[Launch, ...] = (LAUNCH,), intended_at: float = NOW) -> ResolveLaunches:
    return ResolveLaunches(1, LAUNCH.started_by, launches, intended_at, resend)


def test_what_a_listing_shows_is_adopted_running_or_stopped() -> None:
    other = Launch(KEY._replace(index=1), 1, LAUNCH.started_by, instance_id(1), CELL)
    tasks = {"tasks": [shown(KEY, 1, "RUNNING"), shown(other.key, 2, "STOPPED")]}
    ecs = ScriptedClient("ecs", list_tasks=listing([task_arn(1)], [task_arn(2)]), describe_tasks=tasks)
    events = launching(ecs).resolve(resolve(False, (LAUNCH, other)), state_with_instance(), SOON)
    assert [type(event) for event in events] == [LaunchAccepted, TaskSeen] * 2
    assert [event.arn for event in events if isinstance(event, LaunchAccepted)] == [task_arn(1), task_arn(2)]
    assert [request["desiredStatus"] for request in ecs.requests("list_tasks")] == ["RUNNING", "STOPPED"]
    assert all(request["startedBy"] == LAUNCH.started_by for request in ecs.requests("list_tasks"))


def test_what_is_absent_is_sent_again_while_it_is_young() -> None:
    ecs = ScriptedClient("ecs", list_tasks=listing([], []), run_task=STARTED)
    events = launching(ecs).resolve(resolve(True), state_with_instance(), SOON)
    assert events == [LaunchAccepted(KEY, task_arn(1), ("GPU-a",))]
    direct, again = launched_with(STARTED)[1].requests("run_task"), ecs.requests("run_task")
    assert direct == again


def test_nothing_is_sent_again_before_a_listing_was_complete() -> None:
    ecs = ScriptedClient("ecs", list_tasks=timed_out(), run_task=STARTED)
    assert launching(ecs).resolve(resolve(True), state_with_instance(), SOON) == [
        LaunchInDoubt(KEY, "a listing was incomplete", is_answer=False)
    ]
    assert ecs.requests("run_task") == []


def test_a_task_that_our_code_cannot_read_is_logged_and_keeps_no_other_launch_in_doubt() -> None:
    """The answer to the same request says which attempt it belongs to."""
    answers = {"tasks": [{"taskArn": "not an ARN"}, shown(KEY._replace(index=1), 2, "RUNNING")]}
    ecs = ScriptedClient(
        "ecs", list_tasks=listing([task_arn(1), task_arn(2)], []), describe_tasks=answers, run_task=STARTED
    )
    failed, again = launching(ecs).resolve(resolve(True), state_with_instance(), SOON)
    assert isinstance(failed, ActionFailed)
    assert "not an ARN" in failed.reason
    assert again == LaunchAccepted(KEY, task_arn(1), ("GPU-a",))
    failed, doubt = launching(ecs).resolve(resolve(False, intended_at=NOW - 1201.0), missed_before(1), SOON)
    assert isinstance(failed, ActionFailed)
    assert isinstance(doubt, LaunchInDoubt), "it may be the one that cannot be read"


def test_what_could_not_be_sent_again_stays_in_doubt() -> None:
    ecs = ScriptedClient("ecs", list_tasks=listing([], []), run_task=refusal("ThrottlingException"))
    assert launching(ecs).resolve(resolve(True), state_with_instance(), SOON) == [
        LaunchInDoubt(KEY, "ThrottlingException")
    ]
    assert isinstance(launching(ecs).resolve(resolve(True), state_with(), SOON)[0], LaunchInDoubt)


def test_a_refusal_proves_nothing_while_another_controller_may_send_the_same() -> None:
    ecs = ScriptedClient("ecs", list_tasks=listing([], []), run_task=NO_ROOM)
    contended = replace(resolve(True), is_contended=True)
    (doubt,) = launching(ecs).resolve(contended, state_with_instance(), SOON)
    assert isinstance(doubt, LaunchInDoubt)
    assert "RESOURCE:GPU" in doubt.reason
    (refused,) = launching(ecs).resolve(resolve(True), state_with_instance(), SOON)
    assert isinstance(refused, LaunchRefused)


def test_a_refusal_is_proof_for_an_instance_that_is_gone_and_for_a_request_that_is_wrong() -> None:
    contended, gone = replace(resolve(True), is_contended=True), state_with_instance()
    gone.instances[instance_id(1)].status = InstanceStatus.GONE
    wrong = refusal("InvalidParameterException", "Override for container named main is not a container")
    for answer, state in ((NO_ROOM, gone), (wrong, state_with_instance())):
        ecs = ScriptedClient("ecs", list_tasks=listing([], []), run_task=answer)
        (refused,) = launching(ecs).resolve(contended, state, SOON)
        assert isinstance(refused, LaunchRefused)


def missed_before(times: int) -> State:
    """The launch is in doubt, and that many complete listings have not shown it."""
    state = begun(state_with_instance(), [LAUNCH])
    return told(state, LaunchInDoubt(KEY, "no reply"), *[LaunchMissed(KEY)] * times)


def test_only_the_second_complete_listing_without_it_disproves_a_launch() -> None:
    ecs = ScriptedClient("ecs", list_tasks=listing([], []))
    old = resolve(False, intended_at=NOW - 1201.0)
    for state, event in ((missed_before(0), LaunchMissed(KEY)), (missed_before(1), LaunchDisproved(KEY))):
        assert launching(ecs).resolve(old, state, SOON) == [event]
    broken = ScriptedClient("ecs", list_tasks=timed_out())
    assert isinstance(launching(broken).resolve(old, missed_before(1), SOON)[0], LaunchInDoubt)


@pytest.mark.parametrize(("age_s", "kind"), [(1199.0, LaunchInDoubt), (1201.0, LaunchMissed)])
def test_an_old_intent_is_never_sent_again_and_disproved_only_after_a_quiet_time(age_s: float, kind: type) -> None:
    ecs = ScriptedClient("ecs", list_tasks=listing([], []))
    events = launching(ecs).resolve(resolve(False, intended_at=NOW - age_s), state_with_instance(), SOON)
    assert [type(event) for event in events] == [kind]
    assert ecs.requests("run_task") == []


@pytest.mark.parametrize(
    "scripts",
    [
        {"list_tasks": timed_out()},
        {"list_tasks": refusal("ThrottlingException", "Rate exceeded")},
        {"list_tasks": listing([task_arn(1)], []), "describe_tasks": timed_out()},
        {
            "list_tasks": listing([task_arn(1)], []),
            "describe_tasks": {"tasks": [], "failures": [{"reason": "MISSING"}]},
        },
    ],
)
def test_a_listing_that_is_not_complete_disproves_nothing(scripts: dict[str, Any]) -> None:
    old = resolve(False, intended_at=NOW - 3600)
    events = launching(ScriptedClient("ecs", **scripts)).resolve(old, state_with_instance(), SOON)
    assert [type(event) for event in events] == [LaunchInDoubt]


def test_doubt_that_there_is_no_time_to_settle_remains() -> None:
    old = resolve(False, intended_at=NOW - 3600)
    assert isinstance(launching(ScriptedClient("ecs")).resolve(old, state_with_instance(), NOW - 1)[0], LaunchInDoubt)
    clock = Clock()
    ecs = ScriptedClient("ecs", list_tasks=listing([task_arn(1)], []))
    events = launching(ecs, clock, home=cell(clock, ecs, pace=2)).resolve(
        old, state_with_instance(), NOW + 0.1
    )  # two listings, no description
    assert isinstance(events[0], LaunchInDoubt)
    gone = ResolveLaunches(1, "x", (Launch(KEY, 1, "x", instance_id(1), "mars-north-1"),), NOW - 3600, False)
    assert isinstance(launching(ecs).resolve(gone, state_with_instance(), SOON)[0], LaunchInDoubt)


# Stops


def stop(cell_name: str = CELL) -> StopAttempt:
    return StopAttempt(task_arn(1), cell_name, KEY, StopCause.CANCELLED, "cancelled by the user " * 50)


def test_a_stop_names_its_reason_and_shows_the_task() -> None:
    ecs = ScriptedClient("ecs", stop_task={"task": {"taskArn": task_arn(1), "desiredStatus": "STOPPED", "version": 3}})
    events = launching(ecs).stop(stop(), SOON)
    assert [event.desired_status for event in events if isinstance(event, TaskSeen)] == ["STOPPED"]
    request = ecs.requests("stop_task")[0]
    assert (request["task"], len(request["reason"])) == (task_arn(1), 255)
    assert launching(ScriptedClient("ecs", stop_task={})).stop(StopOrphan(task_arn(2), CELL), SOON) == []


@pytest.mark.parametrize(
    "error", [refusal("InvalidParameterException", "The referenced task was not found."), timed_out()]
)
def test_a_stop_that_fails_is_decided_again(error: Exception) -> None:
    events = launching(ScriptedClient("ecs", stop_task=error)).stop(stop(), SOON)
    assert [event.key for event in events if isinstance(event, NotCarriedOut)] == [KEY]


def test_stops_use_the_reserve_slow_down_and_know_their_cells() -> None:
    clock = Clock()
    ecs = ScriptedClient("ecs", stop_task=refusal("ThrottlingException", "Rate exceeded"))
    home = cell(clock, ecs, pace=40)
    here, launches = launching(ecs, clock, home=home), home.rates.launches
    launches.reserve = 20
    while launches.take(NOW):
        pass
    assert here.stop(stop(), NOW) == [NotCarriedOut("ThrottlingException: Rate exceeded", KEY, passing=True)]
    assert launches.throttles == 1
    assert here.stop(stop(), NOW - 1) == [NotCarriedOut("the time limit was reached", KEY, passing=True)]
    assert isinstance(here.stop(stop("mars-north-1"), SOON)[0], NotCarriedOut)


def test_a_definition_that_has_to_wait_for_its_turn_delays_the_launch() -> None:
    """Its run was prepared in another Region; here the definition would have to be registered first."""
    state = state_with_instance()
    run = state.runs[RUN_ID]
    run.task_definition = run.task_definition.replace(CELL, "eu-west-1")
    gone = refusal("ClientException", "Unable to describe task definition.")
    ecs = ScriptedClient("ecs", describe_task_definition=gone)
    (event,) = launching(ecs).launch(LAUNCH, state, NOW - 1)
    assert event == NotCarriedOut("the time limit was reached", KEY)


@pytest.mark.parametrize(
    ("code", "kind"), [("AccessDeniedException", LaunchRefused), ("ServerException", NotCarriedOut)]
)
def test_a_definition_that_may_not_be_registered_here_is_a_refusal_and_one_that_cannot_for_now_is_none(
    code: str, kind: type
) -> None:
    state = state_with_instance()
    run = state.runs[RUN_ID]
    run.task_definition = run.task_definition.replace(CELL, "eu-west-1")
    ecs = ScriptedClient("ecs", describe_task_definition=refusal(code, "no"))
    (event,) = launching(ecs).launch(LAUNCH, state, SOON)
    assert isinstance(event, kind)
    assert getattr(event, "whole_run", True)
    assert getattr(event, "passing", True), "an outage of AWS is no refusal of the run"
