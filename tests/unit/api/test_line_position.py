"""A waiting run's place in line: figures and sentences of ExplainRun's `standing`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from argosy.api.waiting.explanation import explain_run
from argosy.model.actions import Launch
from argosy.model.policy import VcpuQuota
from argosy.model.run_terms import DaemonTerms
from argosy.model.state import State
from argosy.scheduler.decide import decide
from tests.builders import (
    CELL,
    NOW,
    POLICY,
    begun,
    moment_of,
    prepared,
    submitted,
    told,
)
from tests.shared_clusters import cluster, run_id, shared


def run(state: State, number: int, tasks: int, **spec: Any) -> str:
    told(state, submitted(run_id(number), tasks, **spec), prepared(run_id(number), **spec))
    return run_id(number)


def full(*queues: str, instances: int = 2, types: tuple[str, ...] = (), **spec: Any) -> State:
    """A cluster that the first run has filled; more of its tasks wait. queues: given = there are some."""
    state = cluster(instances, *types)
    if queues:
        shared(state)
    run(state, 1, 1_000, **spec)
    actions = decide(moment_of(state, policy=replace(POLICY, max_instances=instances)))
    begun(state, [each for each in actions if isinstance(each, Launch)])
    return state


def standing(state: State, name: str, instances: int = 2, **policy: Any) -> dict[str, Any]:
    """The place of a run of four tasks of another queue, if no name is given."""
    name = name or run(state, 2, 4, queue="research")
    policy = {"max_instances": instances, **policy}
    found = explain_run(moment_of(state, policy=replace(POLICY, **policy)), state.runs[name])["standing"]
    assert found is not None
    return dict(found)


def test_a_run_behind_another_one_says_what_comes_first() -> None:
    state = full()
    told_ = standing(state, run(state, 2, 4))
    assert (told_["queues"], told_["runPlace"], told_["runs"]) == (1, 2, 2)
    assert (told_["tasksAhead"], told_["runsAhead"], told_["limit"], told_["maxInstancesReached"]) == (992, 1, "cpu", 2)
    assert told_["usedBy"] == [{"queue": "default", "use": 1.0}]
    assert told_["sentences"][:3] == [
        "2nd of 2 runs waiting in default.",
        "The cluster's cpu is used up and maxInstances of the deployment (2) is reached: default has 100 %.",
        "992 waiting tasks of 1 run are ahead of it.",
    ]


def test_a_run_of_a_queue_that_has_nothing_is_next() -> None:
    state = full("queues")
    told_ = standing(state, run(state, 2, 4, queue="research"))
    assert (told_["queuePlace"], told_["queues"], told_["use"], told_["share"]) == (1, 2, 0.0, 0.75)
    assert told_["tasksAhead"] == 0
    assert (
        told_["sentences"][0]
        == "1st of 2 queues: research uses 0 % of the cluster's cpu; its weight entitles it to 75 %."
    )


def test_a_queue_without_weight_comes_last() -> None:
    state = full("queues")
    told_ = standing(state, run(state, 2, 4, queue="night"))
    assert (told_["queuePlace"], told_["share"], told_["tasksAhead"]) == (2, 0.0, 992)


def test_an_owner_is_named_where_a_queue_is_shared_by_owners() -> None:
    state = cluster(2)
    shared(state, {"version": 1, "queues": {"team": {"within": "owners"}}})
    run(state, 1, 1_000, queue="team", owner="alice")
    begun(
        state, [a for a in decide(moment_of(state, policy=replace(POLICY, max_instances=2))) if isinstance(a, Launch)]
    )
    told_ = standing(state, run(state, 2, 4, queue="team", owner="bob"))
    assert (told_["queue"], told_["owner"]) == ("team", "bob")
    assert told_["sentences"][0].startswith("1st of 2 queues: team/bob uses 0 %")


def test_changes_that_would_start_a_run_earlier_are_named() -> None:
    state = full()
    name = run(state, 2, 4)
    found = {each["what"]: each for each in standing(state, name)["wouldHelp"]}
    assert found["priority"]["value"] == 1
    assert (found["maxInstances"]["value"], found["maxInstances"]["now"]) == (251, 2)  # 992 tasks of four each, and one
    said = standing(state, name)["sentences"]
    assert "With maxInstances 251 (now 2) an instance would be bought for it immediately." in said
    assert "With priority 1 (now 0) it would be first in its queue." in said


def due_in(seconds: float) -> dict[str, Any]:
    return {"deadline": datetime.fromtimestamp(NOW + seconds, UTC).isoformat()}


def test_a_run_that_can_still_make_its_deadline_is_before_the_others_of_its_queue() -> None:
    state = full()
    assert standing(state, run(state, 2, 4, capacity=due_in(3_600.0)))["runPlace"] == 1


def test_a_run_for_which_an_instance_may_be_bought_is_at_no_limit_of_the_deployment() -> None:
    state = full()
    told_ = standing(state, run(state, 2, 4), max_instances=1_000)
    assert told_["maxInstancesReached"] is None
    assert told_["wouldHelp"] == [{"what": "priority", "value": 1, "now": 0}]


def test_tasks_of_a_queue_come_first_until_it_uses_as_much_for_its_weight() -> None:
    """Default, of weight 1, has all eight places. 104 tasks of research, of weight 3, lift it to 34.7 for its weight:
    27 more tasks of default have their turn until then."""
    state = full("queues")
    run(state, 2, 20, queue="research")
    first = standing(state, run(state, 3, 4, queue="research"))
    assert (first["runsAhead"], first["tasksAhead"]) == (1, 20)
    run(state, 4, 80, queue="research")
    last = standing(state, run(state, 5, 4, queue="research"))
    assert (last["runsAhead"], last["tasksAhead"]) == (4, 20 + 4 + 80 + 27)


def test_no_priority_above_the_highest_one_is_proposed() -> None:
    state = full(priority=100)
    assert "priority" not in {each["what"] for each in standing(state, run(state, 2, 4))["wouldHelp"]}


def test_for_another_type_of_instance_one_has_to_go_first() -> None:
    state = full(types=("p3.2xlarge",))
    gpus = {"resources": {"vcpus": 1, "memory": 1024, "gpus": 1}}
    told_ = standing(state, run(state, 2, 1, **gpus))
    assert "No current instance could take its tasks, and maxInstances of the deployment (2) is reached" in (
        " ".join(told_["sentences"])
    )
    assert told_["wouldHelp"] == []


def test_a_run_that_waits_for_its_time_has_no_place_in_line() -> None:
    state = full()
    name = run(state, 2, 4)
    state.runs[name].not_before = NOW + 600
    state.runs[name].waiting = "does not start 2027-01-15 08:10:00 UTC"
    told_ = standing(state, name)
    assert told_["inLine"] is False
    assert told_["sentences"] == ["It has no place in line: does not start 2027-01-15 08:10:00 UTC."]
    reply = explain_run(moment_of(state), state.runs[name])
    assert (reply["verdict"], reply["sentence"]) == ("waiting", state.runs[name].waiting)


def test_a_run_at_its_own_limit_waits_for_itself() -> None:
    state = full()
    name = run(state, 2, 400, capacity={"maxInstances": 1})
    state.runs[name].waiting = "held back by capacity.maxInstances of the run"
    assert "waits for its own tasks to end" in standing(state, name)["reason"]


def test_a_daemon_with_waiting_tasks_has_no_turn() -> None:
    state = full()
    name = run(state, 2, 2)
    state.runs[name].terms = replace(state.runs[name].terms, daemon=DaemonTerms("", starts_first=False))
    state.daemons.add(state.runs[name].number)
    assert standing(state, name)["sentences"] == [
        "It has no place in line: a daemon runs one task on each matching instance."
    ]


def test_a_run_of_which_all_tasks_back_off_has_no_turn() -> None:
    state = full()
    name = run(state, 2, 1)
    state.runs[name].tasks["not_before"][:] = NOW + 10_000
    assert standing(state, name)["inLine"] is False


def test_a_run_that_starts_in_the_next_tick_has_no_place_in_line() -> None:
    state = cluster(2)
    assert explain_run(moment_of(state), state.runs[run(state, 1, 4)])["standing"] is None


def test_a_quota_that_is_reached_is_shown_with_its_users() -> None:
    quota = (VcpuQuota(CELL, "spot", "standard", 8),)
    told_ = standing(full("shared"), "", max_instances=100, vcpu_quotas=quota)
    assert told_["maxInstancesReached"] is None
    (reached,) = told_["quotasReached"]
    assert reached == {
        "region": CELL,
        "purchase": "spot",
        "family": "standard",
        "vcpus": 8,
        "usedBy": [{"queue": "default", "use": 1.0}],
    }
    assert f"The vCPU quota of spot Standard in {CELL} (8) is reached: default has 100 %." in told_["sentences"]
    nobody = standing(cluster(0), "", max_instances=100, vcpu_quotas=(VcpuQuota(CELL, "spot", "standard", 0),))
    assert f"The vCPU quota of spot Standard in {CELL} (0) is reached." in nobody["sentences"]


def test_a_quota_that_has_room_for_an_instance_is_not_named() -> None:
    quota = (VcpuQuota(CELL, "spot", "standard", 12),)
    assert standing(full("shared"), "", max_instances=100, vcpu_quotas=quota)["quotasReached"] == []
