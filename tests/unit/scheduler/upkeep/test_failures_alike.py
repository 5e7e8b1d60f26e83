"""A run whose first tasks fail alike is stopped; where only their logs tell, these are read first."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.failure_texts import FailuresRead, ReadFailures, differ
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.decide import decide
from argosy.scheduler.turns.asks import asks_of
from tests.builders import RUN_ID, launched, moment_of, state_with_instance, status_of, task, task_arn, the_run, told


def failed(count: int, state: State | None = None, first: int = 0, **terms: Any) -> State:
    """Tasks of which ECS says an exit code and nothing else."""
    made = state or state_with_instance(tasks=50, retryStrategy={"attempts": 1, **terms})
    for index in range(first, first + count):
        launched(made, index=index, number=index + 1)
        told(made, task(index + 1, "STOPPED", 3, exit_code=1))
    return made


def reads(state: State) -> list[ReadFailures]:
    return [each for each in decide(moment_of(state)) if isinstance(each, ReadFailures)]


def asked_for(state: State) -> int:
    """Tasks for which the run asks for places."""
    return sum(each.batch.count for each in asks_of(moment_of(state), [the_run(state)]))


def test_their_logs_are_read_and_nothing_starts_before() -> None:
    state = failed(4)
    assert (reads(state), asked_for(state)) == ([], 46)
    failed(1, state, first=4)
    assert reads(state) == [ReadFailures(RUN_ID, tuple(task_arn(number) for number in range(1, 6)))]
    assert asked_for(state) == 0
    assert status_of(state, 49) is TaskStatus.PENDING


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ("ValueError: row 3", "ValueError: row 17", ""),
            "error; the last line of a log: ValueError: row 17 (",
        ),
        (("", ""), "ended with an error (retry"),
        ((), "ended with an error (retry"),
    ],
)
def test_a_run_stops_whose_logs_say_the_same_or_cannot_be_read(lines: tuple[str, ...], said: str) -> None:
    state = failed(5)
    told(state, FailuresRead(RUN_ID, lines))
    assert said in the_run(state).status_reason
    assert status_of(state, 49) is TaskStatus.CANCELLED
    assert not reads(state)


def test_a_run_whose_logs_differ_continues_until_twice_as_many_tasks_have_failed() -> None:
    state = failed(5)
    told(state, FailuresRead(RUN_ID, ("ValueError: row 3", "KeyError: 'a'")))
    assert asked_for(state) == 45
    failed(4, state, first=5)
    assert not reads(state)
    failed(1, state, first=9)
    [action] = reads(state)
    assert action.task_arns == tuple(task_arn(number) for number in range(6, 11))
    told(state, FailuresRead(RUN_ID, ("KeyError: 'a'",) * 5))
    assert the_run(state).status_reason.startswith("stopped early: the first 10 tasks failed alike")


def test_an_answer_that_comes_late_changes_nothing() -> None:
    state = failed(5, stopAfterAlike=6)
    told(state, FailuresRead(RUN_ID, ("same", "same")))
    told(state, FailuresRead("gone-261121-062733-aaaa"))
    assert the_run(state).status_reason == ""


def test_addresses_and_digests_do_not_make_a_difference() -> None:
    assert not differ(["<object at 0x7f31>: 3f2a9c01d4 is gone", "<object at 0x7fa2>: 99ab01cd02 is gone"])
