"""Tasks that keep failing after their deployment: users are informed until the tasks recover."""

from __future__ import annotations

from typing import Any

from argosy.api.environments.views import environment_view
from argosy.model.services.environments import CALM_S
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import (
    FOR_EVER_S,
    ask,
    deploy,
    ending,
    form,
    run_of,
    service,
    state_of,
    up,
    up_partly,
    web,
)


def shown(cluster: Controlled) -> dict[str, Any]:
    run = run_of(cluster, 1)
    return environment_view(web(cluster), {run.id: cluster.record(run.id)}, state_of(cluster), cluster.world.now)


def test_a_task_that_keeps_crashing_is_reported_until_all_have_been_healthy_for_a_while() -> None:
    cluster = service()
    ending(cluster, 2.0, attempts=1000, index=1)
    up_partly(cluster)
    cluster.run_for(1800)
    assert (web(cluster).deployments[-1].status, shown(cluster)["status"]) == ("COMPLETED", "FAILING")
    told = f"its tasks failed soon after their start {web(cluster).failures} times and are being restarted: "
    assert shown(cluster)["statusReason"] == told + "the program ended with an error"
    cluster.world.workload = lambda task, instance: TaskBehaviour(FOR_EVER_S)
    mended_at = web(cluster).failed_at
    cluster.run_for(CALM_S - 60)
    while web(cluster).is_failing:
        cluster.tick()
    assert CALM_S <= cluster.world.now - mended_at <= CALM_S + 60
    assert (shown(cluster)["status"], shown(cluster)["statusReason"]) == ("COMPLETED", None)


def test_what_ends_after_a_while_or_is_frozen_does_not_fail() -> None:
    cluster = service()
    ending(cluster, 400.0, attempts=1000)
    up(cluster, 1)
    cluster.run_for(3600)
    assert run_of(cluster, 1).attempts >= 4
    assert not web(cluster).failures
    ending(cluster, 2.0, attempts=1000)
    cluster.run_for(1800)
    assert shown(cluster)["status"] == "FAILING"
    ask(cluster, "freeze", reason="looked at")
    cluster.run_for(60)
    assert (shown(cluster)["status"], shown(cluster)["statusReason"]) == ("FROZEN", "looked at")


def test_a_deployment_restarts_the_failure_count() -> None:
    cluster = service()
    ending(cluster, 2.0, attempts=1000, index=1)
    up_partly(cluster)
    cluster.run_for(600)
    assert web(cluster).is_failing
    deploy(cluster, 2, form(1, "mended"))
    cluster.run_for(60)
    assert not web(cluster).failures
