"""No exception of one run, request or message stops the others, whichever function throws it.

Which functions a tick calls for one of them is seen by watching. The auditor of the simulation judges afterwards: the
ledgers add up to the cost of the instances, no instance and no order remains, and no attempt was started twice.
"""

from __future__ import annotations

import logging
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from argosy.model.events import RebalanceAdvised
from tests.fakes.audited import OTHER, VICTIM, VICTIMS_TASKS, AuditedRuns
from tests.fakes.throwing import About, any_of, functions_of, is_row_of, names_run, throwing, watching

ROOMS = (
    "api", "aws", "catalogue", "engine", "lifecycle", "market", "messages", "model", "placement", "scheduler",
    "settings", "spec",
)  # fmt: skip
SAMPLE = 4  # functions of each kind; the deep run takes all
FINISHED_S = {"run": 1800.0, "request": 3600.0, "message": 1800.0}
REST_S = 6 * 3600.0

# The functions that need not work, and why.
LEFT_OUT = {
    "aws.shielding.shielded": "it is the guard around an action",
    "engine.tick.Engine._take": "it is the guard around a fact",
    "engine.own_faults.Exclusions.refuses": "it is the guard around a request",
    "model.columns.ColumnTable.committed": "it empties two members after the commit, and reads no run",
    "model.run_record.RunRecord.to_json": "without it nothing can be stored of a run, even that it is suspended",
    "model.runs.sort_key": "the same",
}
# For these the fault has to end before the run can be cancelled.
NOT_CANCELLED = {
    "lifecycle.accounts.end_attempt": "it frees the rows of runs that were closed: they are nobody's any more",
}


def is_about(kind: str, cluster: AuditedRuns) -> About:
    def of_run(arguments: Mapping[str, Any]) -> bool:
        record = cluster.record(VICTIM)
        is_row = record is not None and is_row_of(arguments, record.number)
        return is_row or any(names_run(value, VICTIM, VICTIMS_TASKS) for value in arguments.values())

    def of_message(value: Any) -> bool:
        kind = value.get("detail-type") if isinstance(value, dict) else None
        return isinstance(value, RebalanceAdvised) or kind == "EC2 Instance Rebalance Recommendation"

    return any_of(of_message) if kind == "message" else of_run


@cache
def called(kind: str) -> dict[str, types.FunctionType]:
    """The functions that ticks call for the culprit, from the submission of both runs to rest. For a request: what they
    call for the run besides, when it is cancelled and tried again."""
    seen: dict[str, types.FunctionType] = {}
    cluster = AuditedRuns(advised=kind == "message", retried=kind == "request")
    with watching(functions_of(*ROOMS), is_about(kind, cluster), seen):
        cluster.run_until(lambda: cluster.at_rest and cluster.has_succeeded(VICTIM), REST_S)
    assert not cluster.judged_at_rest()
    known = {*LEFT_OUT, *(called("run") if kind == "request" else ())}
    return {name: function for name, function in sorted(seen.items()) if name not in known}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of faults are logged."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def play(kind: str, name: str, cancel: bool) -> int:
    """How often the function threw. cancel: the victim is cancelled while the fault lasts; otherwise it ends."""
    cluster = AuditedRuns(advised=kind == "message", retried=kind == "request")
    try:
        with throwing(called(kind)[name], is_about(kind, cluster)) as thrown:
            cluster.run_until(lambda: cluster.has_succeeded(OTHER) and cluster.has_answered(), FINISHED_S[kind])
            if cancel:
                cluster.run_until(cluster.rest_or_cancel, REST_S)
        cluster.run_until(lambda: cluster.at_rest, REST_S)
    except Exception as error:
        raise AssertionError(f"a fault in {name} for one {kind} reaches the others") from error
    violations = cluster.judged_at_rest()
    assert not violations, (kind, name, cancel, violations[:3])
    assert cluster.troubles or not thrown[0], f"nobody is told of the fault in {name}"
    return thrown[0]


def spread(names: list[str], count: int) -> list[str]:
    return names[:: max(1, len(names) // count)]


# The least number of functions that are called for one; of a request those that are not called for a run.
KINDS = {"run": 100, "request": 15, "message": 3}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_in_a_function_that_a_tick_calls_for_one_culprit_costs_the_others_nothing(kind: str) -> None:
    names = list(called(kind))
    assert len(names) >= KINDS[kind], names
    assert sum(play(kind, name, cancel=False) > 0 for name in spread(names, SAMPLE)) > 0.5 * min(SAMPLE, len(names))


def test_a_run_at_which_a_function_throws_can_be_cancelled_and_leaves_nothing_behind() -> None:
    for name in spread([name for name in called("run") if name not in NOT_CANCELLED], SAMPLE):
        play("run", name, cancel=True)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("run", "lifecycle.attempts.end"),
        ("run", "lifecycle.charges.close_run"),
        ("run", "lifecycle.definitions.release"),
        ("run", "lifecycle.accounts.end_attempt"),
        ("run", "messages.ecs.storable"),
        ("request", "lifecycle.run_stops.give_up"),
    ],
)
def test_what_once_reached_the_others_does_not(kind: str, name: str) -> None:
    assert play(kind, name, cancel=kind == "run" and name not in NOT_CANCELLED) > 0


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_whichever_function_throws_for_one_culprit_the_others_finish_and_nothing_leaks(kind: str) -> None:
    for name in called(kind):
        play(kind, name, cancel=False)
        if kind == "run" and name not in NOT_CANCELLED:
            play(kind, name, cancel=True)


def test_what_is_left_out_here_is_called() -> None:
    """Or its name has changed, and the list is stale."""
    names = {name.rpartition(".")[2] for name in (*LEFT_OUT, *NOT_CANCELLED)}
    assert names <= {function.__name__ for function in functions_of(*ROOMS).values()}
