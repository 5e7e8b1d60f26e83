"""`argosy explain`: the verdict first, then the refusals of each supply, the request against the best available."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from argosy.api.waiting.explanation import explain_run
from argosy.model.purchases import PurchaseChoice, PurchaseStance
from argosy.model.state import State
from argosy.scheduler.decide import decide
from tests.builders import (
    NOW,
    RUN_ID,
    begun,
    fleet,
    launched,
    moment_of,
    prepared,
    state_with,
    state_with_instance,
    submitted,
    task,
    told,
)
from tests.fakes.cli import World, api_error


def reply(state: State, index: int | None = None) -> dict[str, Any]:
    return explain_run(moment_of(state), state.runs[RUN_ID], index)


def printed(state: State, *arguments: str, index: int | None = None) -> str:
    world = World().answers("ExplainRun", reply(state, index)).answers("DescribeTask", {"attempts": []})
    result = world.argosy("explain", RUN_ID, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_a_full_cluster_is_explained_with_numbers_and_the_nearest_way_out() -> None:
    state = state_with_instance(tasks=10)
    for index in range(4):
        launched(state, index, index + 1)
    lines = printed(state).splitlines()
    assert lines[0].startswith(f"{RUN_ID}: waits; ")
    assert "Running instances: 0 of 1 would take the next task" in lines
    assert (
        "  1 refuse: needs 1024 cpu units; the most free is 0 on i-00000000000000001 (1 for this reason alone)" in lines
    )


def test_a_shape_without_an_instance_type_is_reported_as_impossible() -> None:
    gpus = {"vcpus": 1, "memory": 1024, "gpus": 3}
    state = state_with(submitted(resources=gpus), prepared(resources=gpus), fleet("p3.2xlarge"))
    text = printed(state)
    assert text.startswith(f"{RUN_ID}: can never run here; ")
    assert "most free is 1" in text


def test_one_task_tells_its_own_state() -> None:
    state = state_with_instance(tasks=2)
    launched(state)
    told(state, task(1, "STOPPED", 3, exit_code=7, reason="no such flag"))
    assert "task 0: PENDING, 1 attempts, in back-off for 1.0 s: no such flag" in printed(state, "--task", "0", index=0)


def test_json_is_the_reply_itself() -> None:
    state = state_with_instance()
    assert json.loads(printed(state, "--json")) == json.loads(json.dumps(reply(state)))


def test_an_ended_run_says_so() -> None:
    over = {"runId": RUN_ID, "status": "SUCCEEDED", "pending": 0, "verdict": "done", "sentence": "the run has ended"}
    none: dict[str, Any] = dict.fromkeys(("cluster", "coming", "market", "task"))
    result = World().answers("ExplainRun", {**over, **none}).argosy("explain", RUN_ID)
    assert result.stdout == f"{RUN_ID}: nothing waits; the run has ended\n"
    turn = {"status": "RUNNING", "sentence": "waits for a core of this machine, which runs 4 programs at once"}
    result = World().answers("ExplainRun", {**over, **none, **turn}).argosy("explain", RUN_ID)
    assert result.stdout == f"{RUN_ID}: {turn['sentence']}\n"


@pytest.mark.parametrize("code", ["ResourceNotFoundException"])
def test_an_unknown_run_is_refused(code: str) -> None:
    world = World().answers("ExplainRun", api_error(404, code, "there is no run 'x'"))
    result = world.argosy("explain", "gone-261121-062733-aaaa")
    assert result.exit_code == 2
    assert "there is no run" in result.stderr


def test_a_run_with_a_deadline_shows_what_it_buys_and_its_slack() -> None:
    overrides = {"array": {"size": 10, "expectedSeconds": 60}, "capacity": {"purchase": "spot-then-on-demand"}}
    overrides["capacity"]["deadline"] = "1h"  # type: ignore[assignment]
    state = state_with(submitted(**overrides), prepared(**overrides), fleet())
    assert "buys spot now; on-demand needs about 1m 00s for the rest: 59m 00s of slack" in printed(state)
    state.runs[RUN_ID].steering = PurchaseChoice(PurchaseStance.FIRM, NOW, "on-demand since 08:00 UTC")
    late = replace(state.runs[RUN_ID], submitted_at=NOW - 3660)
    state.runs[RUN_ID] = late
    said = "buys on-demand now (on-demand since 08:00 UTC); on-demand needs about 1m 00s for the rest:"
    assert f"{said} 2m 00s too long for the deadline" in printed(state)


def test_a_run_with_a_fallback_shows_what_it_buys() -> None:
    capacity = {"purchase": "spot-then-on-demand"}
    state = state_with(submitted(capacity=capacity), prepared(capacity=capacity), fleet())
    assert "buys spot now\n" in printed(state)
    assert "what is bought" not in printed(state_with_instance())


def test_the_limit_that_holds_a_run_back_and_the_last_purchase_are_shown() -> None:
    state = state_with(submitted(tasks=40, capacity={"maxInstances": 1}), prepared(), fleet())
    begun(state, decide(moment_of(state)))
    said = printed(state)
    assert "capacity.maxInstances" in said
    assert "The last purchase: 1 instance for $0.1" in said
    assert reply(state)["lastOrder"]["instances"] == 1


def test_a_purchase_of_all_the_work_is_shown_with_its_gap_to_the_least_possible() -> None:
    state = state_with(submitted(tasks=10), prepared(), fleet())
    begun(state, decide(moment_of(state)))
    assert "at most 20.0 %" in printed(state)


def test_a_place_in_line_is_shown_under_the_verdict() -> None:
    told_ = {"runId": RUN_ID, "verdict": "waiting", "sentence": "held back", "task": None}
    standing = {"inLine": True, "sentences": ["2nd of 7 queues.", "12 waiting tasks of 1 run are ahead of it."]}
    none: dict[str, Any] = dict.fromkeys(("cluster", "coming", "market"))
    said = World().answers("ExplainRun", {**told_, **none, "standing": standing}).argosy("explain", RUN_ID).stdout
    assert said.splitlines()[1:] == standing["sentences"]


def test_two_different_tasks_are_refused_in_a_sentence() -> None:
    result = World().argosy("explain", RUN_ID, "3", "--task", "4")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "TASK is 3 and --task is 4: name one task." in result.stderr
    state = state_with(submitted())
    assert printed(state, "1", "--task", "1", index=1)
