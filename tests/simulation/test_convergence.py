"""How soon is everything in order again once the faults have ended, and how soon does nothing cost money any more?"""

from __future__ import annotations

import pytest

from argosy.model.attempts import AttemptStatus
from tests.fakes.trials import SMALL
from tests.harness.simulation.plan import TEST_POLICY, TrialPlan
from tests.harness.simulation.trial import Trial
from tests.harness.simulation.world.deployed_fleets import fleet_is_ours

KINDS = frozenset(
    {"reply-lost", "effect-lost", "server-error", "throttle", "crash", "page-failure"}
    | {"events-lost", "events-doubled", "events-late", "events-reordered", "poison", "interruption", "rebalance"}
)
TICKS, TICK_S = 4, 60.0  # a failure waits two of them for the fate of its instance
IDLE_S = 300.0


def believed_alive(trial: Trial) -> set[str]:
    """Ids of the tasks that the store holds to be running or starting."""
    return {live.task_id for live in trial.auditor.stored.live.values() if live.status >= AttemptStatus.LAUNCHED}


def really_alive(trial: Trial) -> set[str]:
    tasks = trial.world.ecs.ledger.clusters[trial.world.cluster].tasks.values()
    return {task.arn.rsplit("/", 1)[-1] for task in tasks if task.last_status != "STOPPED"}


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6])  # with one controller
def test_four_ticks_after_the_faults_have_ended_the_store_knows_what_runs_and_the_fleets_have_their_targets(
    seed: int,
) -> None:
    trial = Trial(TrialPlan(seed, KINDS, tasks=12, instances=4, controllers=2, faulty_s=240.0, every_kind=True))
    trial.run_faulty_phase()
    trial.end_faults()
    (controller,) = trial.deployment.controllers
    for _ in range(TICKS):
        trial.deployment.tick(controller)
        trial.world.run_for(TICK_S)
    assert not trial.auditor.violations
    recent = {
        task_id
        for task_id in believed_alive(trial) ^ really_alive(trial)
        if not _moved_since(trial, task_id, trial.world.now - TICK_S - 5)
    }
    assert not recent
    state = controller.engine.state
    assert state is not None
    asked = {f"{pool.instance_type}/{pool.zone}": pool.target for pool in state.pools.values()}
    fleets = [fleet for fleet in trial.world.ec2.ledger.fleets.values() if fleet_is_ours(fleet) and fleet.is_live]
    assert {fleet.tags["argosy:pool"]: fleet.total_target for fleet in fleets} == asked


def _moved_since(trial: Trial, task_id: str, at: float) -> bool:
    """The last tick could not know of tasks that started or ended after its listing."""
    tasks = trial.world.ecs.ledger.clusters[trial.world.cluster].tasks.values()
    task = next((each for each in tasks if each.arn.endswith(task_id)), None)
    return task is not None and max(task.created_at, task.stopped_at or 0.0) >= at


def test_an_idle_cluster_is_gone_five_minutes_after_its_linger() -> None:
    trial = Trial(SMALL)
    verdict = trial.run()
    assert verdict.ok
    ends = [task.stopped_at for task in trial.world.ecs.ledger.clusters[trial.world.cluster].tasks.values()]
    last_task_ended = max(at for at in ends if at is not None)
    gone = max(each.ended_at or float("inf") for each in trial.world.ec2.ledger.instances.values())
    assert gone - last_task_ended <= TEST_POLICY.linger_s + IDLE_S
    assert not any(fleet.total_target for fleet in trial.world.ec2.ledger.fleets.values())
