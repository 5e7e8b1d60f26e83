"""Services under the real engine: deployments, scaling, hand-over, failures, freezing and the end."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.services.environments import DeploymentStatus
from argosy.spec.terms import terms_of_form
from tests.builders import submit_request
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import (
    FOR_EVER_S,
    ask,
    deploy,
    ending,
    form,
    run_of,
    running,
    service,
    state_of,
    status,
    until,
    up,
    up_partly,
    web,
)


def test_a_deployment_starts_the_desired_tasks_and_completes_once_they_are_healthy() -> None:
    cluster = service()
    up(cluster, 3)
    assert list(running(cluster).values()) == [3]
    cluster.run_for(600)
    assert list(running(cluster).values()) == [3]
    assert run_of(cluster, 1).attempts == 3


def test_scaling_needs_no_deployment_and_no_row_is_taken_away() -> None:
    cluster = service()
    up(cluster, 3)
    ask(cluster, "scale", desired=7)
    until(cluster, lambda: sum(running(cluster).values()) == 7)
    ask(cluster, "scale", desired=2)
    until(cluster, lambda: sum(running(cluster).values()) == 2)
    assert run_of(cluster, 1).task_count == 7
    ask(cluster, "scale", desired=4)
    until(cluster, lambda: sum(running(cluster).values()) == 4)
    assert run_of(cluster, 1).task_count == 7
    assert max(cluster.starts().values()) == 1 or len(cluster.starts()) == run_of(cluster, 1).attempts
    assert len(web(cluster).deployments) == 1


def test_an_update_never_leaves_fewer_healthy_tasks_and_ends_with_the_new_revision_alone() -> None:
    cluster = service()
    up(cluster, 4)
    deploy(cluster, 2, form(4, "serve2"))
    least = most = 4
    for _ in range(50):
        cluster.tick()
        now = sum(running(cluster).values())
        least, most = min(least, now), max(most, now)
    assert (status(cluster), least, most) == (DeploymentStatus.COMPLETED, 4, 5)
    assert len(running(cluster)) == 1
    assert web(cluster).completed == 2
    assert [run.id for run in state_of(cluster).runs.values()] == [run_of(cluster, 2).id]


def test_a_revision_whose_tasks_fail_is_rolled_back() -> None:
    cluster = service()
    up(cluster, 4)
    old = run_of(cluster, 1).id
    good = cluster.world.workload

    def broken(task: Any, instance: Any) -> TaskBehaviour:
        command = task["overrides"]["containerOverrides"][0]["command"]
        return TaskBehaviour(2.0, exit_code=1) if command == ["broken"] else good(task, instance)

    cluster.world.workload = broken
    deploy(cluster, 2, form(4, "broken"))
    until(cluster, lambda: len(web(cluster).deployments) == 3)
    cluster.run_for(300)
    failed, back = web(cluster).deployments[1:]
    assert (failed.status, back.status, back.is_rollback, back.revision) == ("FAILED", "COMPLETED", True, 1)
    assert failed.reason.startswith("3 of its tasks failed")
    assert running(cluster) == {old: 4}
    assert [each.cordon for each in state_of(cluster).instances.values() if each.cordon] == []


def test_a_first_revision_that_fails_freezes_and_costs_nothing_more() -> None:
    cluster = service()
    cluster.world.workload = lambda task, instance: TaskBehaviour(2.0, exit_code=1)
    deploy(cluster, 1, form(2))
    until(cluster, lambda: status(cluster) is DeploymentStatus.FAILED)
    cluster.run_for(1200)
    assert web(cluster).frozen_reason.startswith("deployment 1 failed")
    assert cluster.live_instances() == []
    cluster.world.workload = lambda task, instance: TaskBehaviour(FOR_EVER_S)
    deploy(cluster, 2, form(2, "mended"))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert list(running(cluster).values()) == [2]


def test_after_a_spot_warning_a_replacement_starts_before_the_task_is_stopped() -> None:
    cluster = service(starts_s=10.0)
    up(cluster, 2)
    [instance] = cluster.live_instances()
    cluster.world.interrupt(instance["InstanceId"])
    least = 2
    for _ in range(12):
        cluster.tick()
        least = min(least, sum(running(cluster).values()))
    cluster.run_for(300)
    assert sum(running(cluster).values()) == 2
    assert least == 2


def test_a_task_that_crashes_comes_back_after_pauses_that_grow() -> None:
    cluster = service()
    ending(cluster, 2.0, attempts=1000, index=1)
    up_partly(cluster)
    before = run_of(cluster, 1).attempts
    cluster.run_for(1800)
    assert 9 <= run_of(cluster, 1).attempts - before <= 16  # 1, 2, 4 ... 256 s apart, then 300
    assert sum(running(cluster).values()) == 2


def test_what_is_frozen_is_not_replaced_and_thawing_brings_it_back() -> None:
    cluster = service()
    ending(cluster, 100.0)
    up(cluster, 3)
    ask(cluster, "freeze")
    cluster.run_for(300)
    assert sum(running(cluster).values()) == 2
    ask(cluster, "thaw")
    until(cluster, lambda: sum(running(cluster).values()) == 3)


def test_a_deleted_environment_stops_everything_and_is_forgotten() -> None:
    cluster = service()
    up(cluster, 3)
    ask(cluster, "delete")
    cluster.run_to_rest()
    assert running(cluster) == {}
    assert state_of(cluster).environments == {}
    assert cluster.live_instances() == []


def test_another_controller_resumes_where_the_first_one_died() -> None:
    cluster = service()
    up(cluster, 4)
    deploy(cluster, 2, form(4, "serve2"))
    for _ in range(6):
        cluster.controllers = [cluster.controller()]
        cluster.tick()
        cluster.tick()
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert list(running(cluster).values()) == [4]


def test_an_environment_whose_run_is_given_up_says_so_and_is_frozen() -> None:
    cluster = service()
    up(cluster, 2)
    cluster.cancel(run_of(cluster, 1).id)
    cluster.run_for(60)
    assert web(cluster).frozen_reason == "deployment 1 failed: cancelled: enough"
    ask(cluster, "thaw")
    cluster.run_for(60)
    assert web(cluster).frozen_reason == "deployment 2 failed: its run no longer exists"  # thawing tried again
    deploy(cluster, 2, form(2, "again"))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert list(running(cluster).values()) == [2]


def test_a_service_without_tasks_lets_the_controller_rest_and_comes_back() -> None:
    cluster = service()
    up(cluster, 2)
    ask(cluster, "scale", desired=0)
    cluster.run_to_rest()
    assert cluster.live_instances() == []
    ask(cluster, "scale", desired=1)
    cluster.run_for(300)
    assert list(running(cluster).values()) == [1]


def test_what_was_scaled_stays_so_until_a_spec_says_another_number() -> None:
    cluster = service()
    up(cluster, 2)
    ask(cluster, "scale", desired=4)
    deploy(cluster, 2, form(2, "serve2"))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED and web(cluster).completed == 2)
    assert list(running(cluster).values()) == [4]
    deploy(cluster, 3, form(3, "serve2"))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED and web(cluster).completed == 3)
    assert list(running(cluster).values()) == [3]


@pytest.mark.parametrize("ticks", range(2, 16))
def test_a_frozen_environment_starts_nothing_not_even_in_the_tick_of_the_freeze(ticks: int) -> None:
    cluster = service()
    deploy(cluster, 1, form(3))
    for _ in range(ticks):
        cluster.tick()
    before = sum(cluster.starts().values())
    ask(cluster, "freeze")
    cluster.run_for(600)
    assert sum(cluster.starts().values()) == before


def test_a_service_without_pending_tasks_is_not_reported_as_waiting() -> None:
    cluster = service()
    cluster.world.workload = lambda task, instance: TaskBehaviour(2.0, exit_code=1)
    deploy(cluster, 1, form(2, rollback=False))
    until(cluster, lambda: run_of(cluster, 1).waiting.startswith("waits before a retry after"))
    ask(cluster, "scale", desired=0)
    cluster.tick()
    assert run_of(cluster, 1).waiting == ""


def test_a_server_that_answers_a_spot_interruption_with_exit_code_0_has_not_failed() -> None:
    cluster = service(starts_s=200.0)
    cluster.world.workload = lambda task, instance: TaskBehaviour(FOR_EVER_S, obeys_with=0)
    up(cluster, 3)
    [instance] = cluster.live_instances()
    cluster.world.interrupt(instance["InstanceId"])
    cluster.run_for(130)
    assert sum(running(cluster).values()) == 0
    assert not run_of(cluster, 1).tasks["user_failures"].any()
    until(cluster, lambda: sum(running(cluster).values()) == 3)
    assert run_of(cluster, 1).interruptions == 3


def cost_of(cluster: Controlled) -> float:
    """The charged cost of the environment."""
    env, runs = web(cluster), state_of(cluster).runs
    return env.past_usd + sum(runs[run_id].cost_usd for run_id in env.all_runs() if run_id in runs)


def test_a_revision_of_the_same_content_adopts_the_tasks_and_scales_them() -> None:
    cluster = service()
    up(cluster, 2)
    first = run_of(cluster, 1).id
    deploy(cluster, 2, {**form(4, healthySeconds=1), "placement": {"strategy": ["binpack:cpu"]}})
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert (run_of(cluster, 2).id, running(cluster)) == (first, {first: 4})
    assert run_of(cluster, 2).attempts == 4
    assert run_of(cluster, 2).terms.service == terms_of_form(form(4, healthySeconds=1)).service
    assert web(cluster).completed == 2
    cluster.controllers = [cluster.controller()]
    cluster.tick()
    assert run_of(cluster, 2).terms.strategy == ("binpack:cpu",)
    deploy(cluster, 3, form(4, "other"))
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert first not in running(cluster)


def test_what_a_deleted_service_leaves_runs_on_and_ends_with_a_second_deletion() -> None:
    cluster = service()
    up(cluster, 2)
    ask(cluster, "delete", leaves_tasks=True)
    ending(cluster, 1.0, index=0, attempts=99)
    cluster.run_for(1200)
    assert list(running(cluster).values()) == [2]
    assert web(cluster).left
    ask(cluster, "scale", desired=5)
    cluster.run_for(60)
    assert list(running(cluster).values()) == [2]
    ask(cluster, "delete")
    until(cluster, lambda: "web" not in state_of(cluster).environments)
    assert running(cluster) == {}


def test_a_service_that_was_left_is_forgotten_when_its_last_task_has_ended() -> None:
    cluster = service()
    up(cluster, 1)
    ask(cluster, "delete", leaves_tasks=True)
    until(cluster, lambda: web(cluster).left)
    [arn] = cluster.ecs.list_tasks(cluster=cluster.world.cluster, desiredStatus="RUNNING")["taskArns"]
    cluster.ecs.stop_task(cluster=cluster.world.cluster, task=arn, reason="by hand")
    until(cluster, lambda: "web" not in state_of(cluster).environments)
    cluster.run_for(600)
    assert running(cluster) == {}


@pytest.mark.parametrize(("command", "adopted"), [("serve", True), ("another", False)])
def test_an_environment_that_is_created_again_adopts_or_replaces_what_was_left(command: str, adopted: bool) -> None:
    cluster = service()
    up(cluster, 2)
    first = run_of(cluster, 1).id
    ask(cluster, "delete", leaves_tasks=True)
    until(cluster, lambda: web(cluster).left)
    submit = submit_request(
        "web-261121-0700-k3f9", cluster.world.now, form(2, command), 2, "argosy/web", "s3://r/x/", False
    )
    ask(cluster, "create", revision=2, desired=2)
    cluster.run_for(60)
    assert running(cluster) == {first: 2}
    ask(cluster, "deploy", revision=2, token="again", submit=submit)
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert running(cluster) == {first if adopted else "web-261121-0700-k3f9": 2}
    cluster.run_for(120)
    assert (web(cluster).past_usd > 0) is not adopted


def test_the_cost_of_an_environment_counts_the_runs_that_it_has_given_up() -> None:
    cluster = service()
    up(cluster, 1)
    given_up = [run_of(cluster, 1).id]
    for number, command in enumerate(("two", "serve", "two", "three"), start=2):
        deploy(cluster, number, form(1, command))
        until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
        given_up.append(run_of(cluster, number).id)
        cluster.run_for(600)
    records = [cluster.record(run_id) for run_id in dict.fromkeys(given_up)]
    assert web(cluster).past_usd > 0
    assert cost_of(cluster) == pytest.approx(sum(each.cost_usd for each in records))
