"""What happens to a run that AWS refuses to prepare or launch: permanently, temporarily, repeatedly?"""

from __future__ import annotations

import pytest

from argosy.model.actions import Launch
from argosy.model.attempts import AttemptKey
from argosy.model.events import (
    LaunchRefused,
    NotCarriedOut,
    PoolShort,
    RunClosed,
    RunNotPrepared,
)
from argosy.model.runs import RunStatus
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from tests.builders import (
    NOW,
    POLICY,
    RUN_ID,
    begun,
    fleet,
    instance_id,
    launched,
    state_with,
    state_with_instance,
    status_of,
    stored,
    submitted,
    task,
    the_run,
    told,
)


def test_a_run_whose_definition_is_refused_for_good_fails_and_says_why() -> None:
    state = state_with(submitted(tasks=2), RunNotPrepared(RUN_ID, "image argosy/nothing is unknown", final=True))
    assert the_run(state).complete
    told(state, RunClosed(RUN_ID))
    assert the_run(state).status is RunStatus.FAILED
    assert the_run(state).status_reason == "image argosy/nothing is unknown"


def test_a_preparation_that_fails_for_the_moment_is_tried_again_later() -> None:
    state = state_with(submitted(), RunNotPrepared(RUN_ID, "throttled", final=False))
    assert not the_run(state).complete
    assert the_run(state).prepare_after > NOW


def test_a_refused_launch_gets_a_new_launch_number_for_the_same_attempt() -> None:
    state = state_with_instance()
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchRefused(key, "RESOURCE:CPU"))
    run = the_run(state)
    assert (status_of(state), run.tasks["launch"][0], run.tasks["attempts"][0]) == (TaskStatus.PENDING, 1, 0)
    assert run.attempts == 0
    assert state.observed_at == 0.0


def test_a_refusal_for_good_stops_the_run() -> None:
    state = state_with_instance(tasks=3)
    key = AttemptKey(RUN_ID, 0, 1, 0)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")])
    told(state, LaunchRefused(key, "InvalidParameterException", "no such container", final=True))
    assert the_run(state).complete
    assert "no such container" in the_run(state).status_reason


def denied_at(state: State, launch: int, now: float) -> None:
    """The run's first task is launched and denied."""
    key = AttemptKey(RUN_ID, 0, 1, launch)
    begun(state, [Launch(key, 1, "p", instance_id(1), "us-east-1")], now)
    told(state, LaunchRefused(key, "AccessDeniedException", "iam:PassRole", denied=True), now=now)


def test_a_run_that_is_denied_says_so_is_asked_again_and_is_given_up_after_a_quarter_of_an_hour() -> None:
    state = state_with_instance(tasks=3)
    observed_at = state.observed_at
    denied_at(state, 0, NOW)
    assert the_run(state).waiting == "no task can be started: AccessDeniedException: iam:PassRole"
    assert not state.may_try(Act.LAUNCH, RUN_ID, NOW)
    assert state.observed_at == observed_at, "nothing is wrong with our picture"
    assert not state.instances[instance_id(1)].refusals
    items: documents.Documents = {}
    for minute in range(1, 15):
        denied_at(state, minute, NOW + 60 * minute)
        assert not the_run(state).halted
        state = stored(state, items)
    denied_at(state, 15, NOW + POLICY.refusal_patience_s)
    assert the_run(state).complete
    assert "iam:PassRole" in the_run(state).status_reason


def test_a_refusal_after_a_quarter_of_an_hour_of_overload_is_the_first_one() -> None:
    state = state_with_instance(tasks=3)
    overload = NotCarriedOut("ServiceUnavailable", about=Subject(Act.LAUNCH, RUN_ID), passing=True)
    for minute in range(120):
        told(state, overload, now=NOW + 60 * minute)
    denied_at(state, 0, NOW + 60 * 120)
    assert not the_run(state).halted
    told(state, overload, now=NOW + 60 * 121)
    denied_at(state, 1, NOW + 60 * 136)
    assert not the_run(state).halted, "another answer lay between the two"


@pytest.mark.parametrize("apart_s", [1200.0, 7200.0])
def test_two_refusals_far_apart_without_a_launch_between_end_no_run(apart_s: float) -> None:
    state = state_with_instance(tasks=3)
    denied_at(state, 0, NOW)
    denied_at(state, 1, NOW + apart_s)
    assert not the_run(state).halted


def test_a_launch_that_is_accepted_in_between_shows_that_the_refusals_passed() -> None:
    state = state_with_instance(tasks=3)
    denied_at(state, 0, NOW)
    launched(state, index=1, now=NOW + 60)
    denied_at(state, 1, NOW + POLICY.refusal_patience_s + 60)
    assert not the_run(state).halted


@pytest.mark.parametrize(("passing", "patience_s"), [(False, 900.0), (True, 3600.0)])
def test_a_preparation_is_tried_for_a_quarter_of_an_hour_or_an_hour_without_any_answer(
    passing: bool, patience_s: float
) -> None:
    state = state_with(submitted())
    for minute in range(int(patience_s) // 60 + 1):
        assert not the_run(state).halted
        told(state, RunNotPrepared(RUN_ID, "not now", final=False, passing=passing), now=NOW + 60 * minute)
        assert (the_run(state).status_reason or the_run(state).waiting) == "not now"
    assert the_run(state).halted


def test_a_preparation_that_waits_for_its_turn_is_tried_again_soon_and_for_ever() -> None:
    state = state_with(submitted())
    queued = RunNotPrepared(RUN_ID, "waits for its turn", final=False, queued=True)
    for minute in range(300):
        told(state, queued, now=NOW + 60 * minute)
        assert the_run(state).waiting == "waits for its turn"
        assert NOW + 60 * minute < the_run(state).prepare_after <= NOW + 60 * minute + 10
    assert not state.setbacks
    told(state, RunNotPrepared(RUN_ID, "AccessDenied", final=False), now=NOW + 60 * 300)
    assert not the_run(state).halted


@pytest.mark.parametrize("passing", [False, True])
def test_two_bad_answers_hours_apart_end_no_preparation(passing: bool) -> None:
    state = state_with(submitted())
    for at in (NOW, NOW + 7200):
        told(state, RunNotPrepared(RUN_ID, "not now", final=False, passing=passing), now=at)
    assert not the_run(state).halted


def test_a_refusal_of_a_run_that_is_gone_changes_nothing() -> None:
    state = state_with_instance()
    told(state, LaunchRefused(AttemptKey("gone-261121-062733-aaaa", 0, 1, 0), "AccessDenied", denied=True))
    assert not state.setbacks


def test_a_launch_that_is_refused_over_and_over_is_paused_and_ends_no_run() -> None:
    state = state_with_instance()
    for minute in range(2 * POLICY.max_setbacks):
        told(state, NotCarriedOut("no items", about=Subject(Act.LAUNCH, RUN_ID)), now=NOW + 60 * minute)
    run = state.runs[RUN_ID]
    assert (run.done, run.halted, run.waiting) == (False, False, "no task can be started: no items")
    assert not state.may_try(Act.LAUNCH, RUN_ID, NOW + 60 * minute)


def test_what_passes_by_itself_is_given_up_only_after_an_hour_in_which_it_was_tried_again_and_again() -> None:
    state = state_with_instance(tasks=3, expects_result=True)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=0))
    overload = NotCarriedOut("SlowDown", about=Subject(Act.VERIFY, RUN_ID), passing=True)
    told(state, overload)
    told(state, overload, now=NOW + 7200)  # nothing was tried in the meantime
    for minute in range(1, 18):
        told(state, overload, now=NOW + 7200 + 60 * minute)
    assert status_of(state) is TaskStatus.VERIFYING
    told(state, overload, now=NOW + 9000)
    assert status_of(state) is TaskStatus.FAILED


def test_a_refused_order_shortens_no_cool_off_and_hides_no_reason_of_it() -> None:
    state = state_with(fleet())
    (pool,) = state.pools.values()
    pool.short_until = pool.on_demand_short_until = NOW + POLICY.cool_off_max_s
    pool.short_reason = "its subnet has no free address"
    told(state, PoolShort(pool.key, "EC2 refuses the order", lasting=True, refused=True))
    assert (pool.short_until, pool.on_demand_short_until) == (NOW + POLICY.cool_off_max_s,) * 2
    assert (pool.short_reason, pool.needs_mending) == ("its subnet has no free address", False)
    assert not state.may_try(Act.TARGET, pool.key, NOW)
