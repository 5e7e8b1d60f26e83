"""Where a run that waits stands, and when it starts: figures and sentences of ExplainRun's `standing`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from argosy.api.explaining import explain_run
from argosy.model.actions import Launch
from argosy.model.policy import VcpuQuota
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


def run(state: State, number: int, tasks: int, seconds: float | None = 55.0, **spec: Any) -> str:
    """A task takes its place for `seconds` and 5 s to start; None = nobody knows."""
    array = {"size": tasks} if seconds is None else {"size": tasks, "expectedSeconds": seconds}
    told(state, submitted(run_id(number), tasks, array=array, **spec), prepared(run_id(number), **spec))
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
    """Of a run of four tasks of another queue, where no name is given."""
    name = name or run(state, 2, 4, queue="research")
    policy = {"max_instances": instances, **policy}
    found = explain_run(moment_of(state, policy=replace(POLICY, **policy)), state.runs[name])["standing"]
    assert found is not None
    return dict(found)


def test_a_run_behind_another_one_is_told_what_comes_first_and_when_it_starts() -> None:
    state = full()
    told_ = standing(state, run(state, 2, 4))
    assert (told_["queues"], told_["runPlace"], told_["runs"]) == (1, 2, 2)
    assert (told_["tasksAhead"], told_["runsAhead"], told_["limit"], told_["maxInstancesReached"]) == (992, 1, "cpu", 2)
    assert told_["usedBy"] == [{"queue": "default", "use": 1.0}]
    assert 0.9 < told_["startsIn"]["seconds"] / (1_000 / 8 * 60) < 1.1
    assert told_["startsIn"]["lowSeconds"] < told_["startsIn"]["seconds"] < told_["startsIn"]["highSeconds"]
    assert told_["sentences"][:2] == [
        "2nd of 2 runs that wait in default.",
        "The cluster's cpu is used up and maxInstances of the deployment (2) is reached: default has 100 %.",
    ]
    assert told_["sentences"][2].startswith(
        "992 tasks of 1 run come first, about 7.7 end a minute: first start in about"
    )
    assert told_["sentences"][2].endswith("if nothing else is submitted and tasks take as long as before.")


def test_a_run_of_a_queue_that_has_nothing_is_next() -> None:
    state = full("queues")
    told_ = standing(state, run(state, 2, 4, queue="research"))
    assert (told_["queuePlace"], told_["queues"], told_["use"], told_["share"]) == (1, 2, 0.0, 0.75)
    assert told_["startsIn"]["seconds"] <= 60
    assert told_["sentences"][0] == "1st of 2 queues: research uses 0 % of the cluster's cpu; by weight it is due 75 %."


def test_what_nobody_else_wants_is_waited_for_last() -> None:
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


def test_what_would_start_it_earlier_is_named_where_it_is_worth_it() -> None:
    state = full()
    name = run(state, 2, 4)
    found = {each["what"]: each for each in standing(state, name)["wouldHelp"]}
    assert found["priority"]["value"] == 1
    assert found["priority"]["startsInSeconds"] <= 60
    assert (found["maxInstances"]["value"], found["maxInstances"]["now"]) == (251, 2)  # 992 tasks of four each, and one
    said = standing(state, name)["sentences"]
    assert "With maxInstances 251 (now 2) an instance would be bought for it at once." in said
    assert any(
        each.startswith("With priority 1 (now 0) it would be the first in its queue, and start") for each in said
    )


def due_in(seconds: float) -> dict[str, Any]:
    return {"deadline": datetime.fromtimestamp(NOW + seconds, UTC).isoformat()}


def test_what_is_late_because_of_its_share_is_told_which_weight_would_do() -> None:
    """Eight places, 60 s a task: alone it would take ten minutes, with a quarter of them forty."""
    state = full("queues", queue="research")
    name = run(state, 2, 80, capacity=due_in(1_500.0))
    told_ = standing(state, name)
    assert told_["late"]["queueWeight"] == 1
    assert 600 < told_["late"]["seconds"] < 1_200
    assert 2 <= told_["late"]["enoughWeight"] <= 4  # with 2 it has two fifths of them, and is just late or just not
    enough = told_["late"]["enoughWeight"]
    said = [each for each in told_["sentences"] if each.startswith("The share of default makes it late by about ")]
    assert [each.split(": ")[1] for each in said] == [f"with weight {enough} (now 1) it would do."]
    state.sharing = state.sharing.with_document(
        {"version": 1, "queues": {"default": {"weight": enough}, "research": {"weight": 3}}}, NOW
    )
    assert standing(state, name)["late"] is None


def test_what_no_share_would_help_is_told_how_late_it_is() -> None:
    state = full("queues", queue="research")
    for name in (run(state, 2, 80, capacity=due_in(300.0)), run(state, 3, 80, queue="night", capacity=due_in(-60.0))):
        told_ = standing(state, name)
        assert told_["late"]["enoughWeight"] is None
        assert any(each.startswith("As things stand it ends about ") for each in told_["sentences"])


def test_who_makes_his_deadline_or_has_none_is_told_nothing_of_it() -> None:
    state = full("queues", queue="research")
    for name in (run(state, 2, 8), run(state, 3, 8, capacity=due_in(86_400.0))):
        assert standing(state, name)["late"] is None


def test_who_can_still_make_his_deadline_is_before_the_others_of_his_queue() -> None:
    state = full()
    assert standing(state, run(state, 2, 4, capacity=due_in(3_600.0)))["runPlace"] == 1


def test_nobody_is_above_the_highest_priority() -> None:
    state = full(priority=100)
    assert "priority" not in {each["what"] for each in standing(state, run(state, 2, 4))["wouldHelp"]}


def test_no_time_is_made_up_where_nothing_is_known_of_durations() -> None:
    state = full(seconds=None)
    told_ = standing(state, run(state, 2, 4))
    assert told_["startsIn"] is None
    assert told_["whyUnknown"] == (
        f"none of the tasks of {run_id(1)} has ended yet, and no array.expectedSeconds says how long they take"
    )
    assert told_["sentences"][-1].startswith("When its first start comes is not known: none of the tasks of")


def test_a_few_unknown_tasks_do_not_hide_what_is_known() -> None:
    state = full()
    run(state, 2, 10, seconds=None)
    assert standing(state, run(state, 3, 4))["startsIn"] is not None


def test_an_instance_that_may_be_bought_takes_its_boot() -> None:
    state = full()
    told_ = standing(state, run(state, 2, 4), max_instances=1_000)
    assert told_["startsIn"]["seconds"] == 180
    assert told_["maxInstancesReached"] is None


def test_for_another_type_of_instance_one_has_to_go_first() -> None:
    state = full(types=("p3.2xlarge",))
    gpus = {"resources": {"vcpus": 1, "memory": 1024, "gpus": 1}}
    told_ = standing(state, run(state, 2, 1, **gpus))
    assert "No instance that is here could take its tasks, and maxInstances of the deployment (2) is reached" in (
        " ".join(told_["sentences"])
    )
    assert told_["startsIn"]["seconds"] >= 1_000 / 8 * 60  # nothing goes before its queue's work is done
    assert told_["wouldHelp"] == []


def test_a_large_task_waits_for_the_small_ones_that_fit_where_it_does_not() -> None:
    big = {"resources": {"vcpus": 4, "memory": 1024, "gpus": 0}}
    state = full("queues")
    told_ = standing(state, run(state, 2, 1, queue="research", **big))
    assert (told_["queuePlace"], told_["tasksAhead"] > 900) == (1, True)


def test_a_run_that_waits_for_its_time_has_no_place_in_line() -> None:
    state = full()
    name = run(state, 2, 4)
    state.runs[name].not_before = NOW + 600
    state.runs[name].waiting = "starts not before 2027-01-15 08:10:00 UTC"
    told_ = standing(state, name)
    assert (told_["inLine"], told_["startsIn"]) == (False, None)
    assert told_["sentences"] == ["It has no place in line: starts not before 2027-01-15 08:10:00 UTC."]
    reply = explain_run(moment_of(state), state.runs[name])
    assert (reply["verdict"], reply["sentence"]) == ("waiting", state.runs[name].waiting)


def test_a_run_at_its_own_limit_waits_for_itself() -> None:
    state = full()
    name = run(state, 2, 400, capacity={"maxInstances": 1})
    state.runs[name].waiting = "held back by capacity.maxInstances of the run"
    assert "waits for its own tasks to end" in standing(state, name)["whyUnknown"]


def test_a_run_of_which_all_tasks_back_off_has_no_turn() -> None:
    state = full()
    name = run(state, 2, 1)
    state.runs[name].tasks["not_before"][:] = NOW + 10_000
    assert standing(state, name)["inLine"] is False


def test_a_run_that_starts_in_the_next_tick_is_told_no_place() -> None:
    state = cluster(2)
    assert explain_run(moment_of(state), state.runs[run(state, 1, 4)])["standing"] is None


def test_a_quota_that_is_reached_is_named_with_who_uses_it() -> None:
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
