"""What happens to instances that are warned, drain, fall silent, never register, lack GPUs or fail everything?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.api.waiting.explanation import explain_run
from argosy.catalogue.lookup import load_catalogue
from argosy.cli.runs.explain import lines_of
from argosy.model.events import Observed
from argosy.model.host_care import DrainRequest
from argosy.model.instance_types import XID_ATTRIBUTE
from argosy.model.instances import InstanceStatus
from argosy.model.moment import Moment
from argosy.model.runs import RunStatus
from argosy.model.tasks import TaskStatus
from tests.fakes.aws import refusal
from tests.harness.simulation.world.agent import AgentBehaviour
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled

ZONE = ("us-east-1a",)
NEEDS, OTHER = "needs-261121-062733-k3f9", "other-261121-062734-aaaa"


def one_busy_instance(work_s: float = 20_000.0, tasks: int = 4, **policy: float) -> tuple[Controlled, str]:
    cluster = Controlled(zones=ZONE, work_s=work_s, **policy)
    cluster.submit(tasks)
    cluster.run_for(120.0)
    (instance,) = cluster.live_instances()
    assert cluster.run.tasks.counts()[TaskStatus.RUNNING] == tasks
    return cluster, str(instance["InstanceId"])


def arn_of(cluster: Controlled, instance_id: str) -> str:
    return cluster.world.agents[instance_id].arn


def make_deaf(cluster: Controlled, instance_id: str) -> None:
    """The agent stays connected and takes no work any more, nor stops (aws/amazon-ecs-agent#731)."""
    agent = cluster.world.agents[instance_id]
    agent.behaviour = replace(agent.behaviour, poll_s=1e9)


def until(cluster: Controlled, condition: Any, limit_s: float) -> float:
    """How long it took until `condition` held."""
    began = cluster.world.now
    while not condition():
        cluster.step()
        assert cluster.world.now - began < limit_s, "it took too long"
    return cluster.world.now - began


def is_alive(cluster: Controlled, instance_id: str) -> bool:
    return any(each["InstanceId"] == instance_id for each in cluster.live_instances())


def calls(cluster: Controlled) -> list[str]:
    """The controller's calls to AWS from now on, in order."""
    made: list[str] = []

    class Recording:
        def __init__(self, client: Any) -> None:
            self._client = client

        def __getattr__(self, name: str) -> Any:
            if name in ("run_task", "stop_task", "modify_fleet", "terminate_instances"):
                made.append(name)
            return getattr(self._client, name)

    cluster.ecs, cluster.ec2 = Recording(cluster.ecs), Recording(cluster.ec2)
    return made


def test_a_warning_stops_tasks_requeues_them_and_buys_the_shortfall_in_one_tick() -> None:
    cluster, victim = one_busy_instance()
    made = calls(cluster)
    engine = cluster.controllers[0] = cluster.controller()
    engine.tick()  # it loads, and settles the tasks that it finds
    made.clear()
    cluster.world.interrupt(victim)
    report = engine.tick()
    assert report.events >= 1
    assert made.count("stop_task") == 4
    assert made.count("modify_fleet") == 1
    assert made.count("run_task") == 0
    assert sum(cluster.fleet_targets().values()) == 2  # the warned one, which EC2 still counts, and its replacement
    assert engine.state is not None
    assert not engine.state.instances[victim].placeable
    cluster.run_for(40.0)  # SIGTERM and its grace period
    assert cluster.run.tasks.counts()[TaskStatus.PENDING] + cluster.run.tasks.counts()[TaskStatus.STARTING] == 4
    assert cluster.run.tasks["user_failures"].sum() == 0
    assert cluster.run.interruptions == 4


def test_a_warning_that_never_comes_true_holds_nothing_for_longer_than_ten_minutes() -> None:
    """The agent is deaf to stops, and EC2 leaves the instance alone after all."""
    cluster, victim = one_busy_instance()
    make_deaf(cluster, victim)
    cluster.world.interrupt(victim, notice_s=1e9)
    took = until(cluster, lambda: not is_alive(cluster, victim), 1200.0)
    assert 600.0 <= took <= 700.0
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert max(cluster.starts().values()) == 1


def test_tasks_on_a_draining_instance_may_end_by_themselves_and_nothing_new_is_placed_there() -> None:
    cluster, drained = one_busy_instance(work_s=1000.0)
    cluster.ecs.update_container_instances_state(
        cluster="argosy", containerInstances=[arn_of(cluster, drained)], status="DRAINING"
    )
    assert until(cluster, lambda: seen(cluster, drained) is InstanceStatus.DRAINING, 130.0) <= 130.0  # the next sweep
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.SUCCEEDED, 4)


def seen(cluster: Controlled, instance_id: str) -> InstanceStatus:
    """As `argosy cluster` shows it."""
    state = cluster.controllers[0].state
    assert state is not None
    return state.instances[instance_id].status


def test_an_instance_that_drains_for_an_hour_is_emptied_and_let_go() -> None:
    cluster, drained = one_busy_instance()
    cluster.ecs.update_container_instances_state(
        cluster="argosy", containerInstances=[arn_of(cluster, drained)], status="DRAINING"
    )
    took = until(cluster, lambda: not is_alive(cluster, drained), 2 * 3600.0)
    assert 3600.0 <= took <= 3800.0
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.interruptions) == (RunStatus.SUCCEEDED, 0)
    assert record.attempts == 8


def test_a_draining_instance_that_stops_nothing_is_ended_ten_minutes_later() -> None:
    cluster, drained = one_busy_instance()
    make_deaf(cluster, drained)
    cluster.ecs.update_container_instances_state(
        cluster="argosy", containerInstances=[arn_of(cluster, drained)], status="DRAINING"
    )
    took = until(cluster, lambda: not is_alive(cluster, drained), 3 * 3600.0)
    assert 4200.0 <= took <= 4400.0


def test_an_instance_that_is_active_again_has_its_full_hour_next_time() -> None:
    cluster, drained = one_busy_instance()
    for status in ("DRAINING", "ACTIVE"):
        cluster.ecs.update_container_instances_state(
            cluster="argosy", containerInstances=[arn_of(cluster, drained)], status=status
        )
        cluster.run_for(3000.0 if status == "DRAINING" else 10.0)
    cluster.ecs.update_container_instances_state(
        cluster="argosy", containerInstances=[arn_of(cluster, drained)], status="DRAINING"
    )
    cluster.run_for(3000.0)
    assert cluster.run.tasks.counts()[TaskStatus.RUNNING] == 4


def test_a_task_that_never_leaves_pending_is_stopped_and_its_instance_gets_no_more_work_after_three() -> None:
    cluster = Controlled(zones=ZONE, work_s=5.0)
    stuck: set[str] = set()

    def course(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        stuck.add(stuck.pop() if stuck else instance.instance_id)  # the first instance pulls forever
        return TaskBehaviour(pull_s=float("inf")) if instance.instance_id in stuck else TaskBehaviour(5.0)

    cluster.world.workload = course
    cluster.submit(8)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.interruptions) == (RunStatus.SUCCEEDED, 0)
    assert record.attempts - 8 <= 4  # tasks on the stuck instance at once
    assert not cluster.live_instances()


def test_instances_that_never_register_are_let_go_and_after_three_their_pool_is_given_up() -> None:
    cluster = Controlled(zones=ZONE)
    usual = cluster.world.agent_behaviour
    cluster.world.agent_behaviour = lambda instance: AgentBehaviour(registers=False)
    cluster.submit(12)
    launched: set[str] = set()
    end = cluster.world.now + 3600.0
    while cluster.world.now < end:
        cluster.step()
        launched |= {each["InstanceId"] for each in cluster.live_instances()}
    assert len(launched) == 3  # an hour later: the three of the order, and none after them
    assert not cluster.live_instances()
    pool = cluster.controllers[0].state.pools["us-east-1/c5.xlarge/us-east-1a"]  # type: ignore[union-attr]
    assert "never joined" in pool.short_reason
    cluster.world.agent_behaviour = usual
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert pool.unregistered in (0, 3)


def test_where_instances_join_without_the_runner_no_more_are_bought_for_runs_that_need_it_but_for_others() -> None:
    """Otherwise they would be bought, found unfit and released repeatedly; one with the runner ends that."""
    cluster = Controlled()
    usual = cluster.world.agent_behaviour
    cluster.world.agent_behaviour = lambda instance: AgentBehaviour(attributes={})
    cluster.submit(12, NEEDS, placement={"constraints": ["attribute:argosy.runner == 1"]})
    cluster.run_for(1500.0)
    launched = {*cluster.world.ec2.ledger.instances}
    cluster.run_for(1500.0)
    assert {*cluster.world.ec2.ledger.instances} == launched
    assert not cluster.live_instances()
    assert "instances joined without the runner" in cluster.record(NEEDS).waiting
    cluster.submit(12, OTHER)
    cluster.run_for(900.0)
    assert cluster.record(OTHER).status == RunStatus.SUCCEEDED
    cluster.world.agent_behaviour = usual
    cluster.run_to_rest()
    assert cluster.record(NEEDS).status == RunStatus.SUCCEEDED
    state = cluster.controllers[0].state
    assert state is not None
    assert not [each for each in state.pools.values() if each.without_runner_at]


def test_an_ami_without_the_runner_keeps_no_other_ami_from_being_bought_and_is_not_excused_by_it() -> None:
    types = ("g4dn.xlarge", "c5.xlarge")
    cluster = Controlled(types=types, zones=ZONE, work_s=30.0)
    usual = cluster.world.agent_behaviour
    cluster.world.agent_behaviour = lambda instance: (
        AgentBehaviour(attributes={}) if instance.instance_type.startswith("g4dn") else usual(instance)
    )
    constraints = {"constraints": ["attribute:argosy.runner == 1"]}
    gpu = {"vcpus": 1, "memory": 1024, "gpus": 1}
    cluster.submit(2, NEEDS, resources=gpu, placement=constraints)
    cluster.run_for(1200.0)
    launched = {*cluster.world.ec2.ledger.instances}
    assert launched
    cluster.submit(4, OTHER, placement=constraints)
    cluster.run_for(1200.0)
    assert cluster.record(OTHER).status == RunStatus.SUCCEEDED
    assert "instances joined without the runner" in cluster.record(NEEDS).waiting
    bought = {*cluster.world.ec2.ledger.instances} - launched
    assert {cluster.world.ec2.ledger.instances[each].instance_type for each in bought} == {"c5.xlarge"}


def test_an_instance_that_registers_without_its_gpus_gets_no_work_and_is_replaced() -> None:
    cluster = Controlled(types=("g4dn.xlarge",), zones=ZONE, work_s=60.0)
    bad: list[str] = []

    def behaviour(instance: Any) -> AgentBehaviour:
        if not bad:
            bad.append(instance.instance_id)
        return AgentBehaviour(gpus=0 if instance.instance_id in bad else None)

    cluster.world.agent_behaviour = behaviour
    cluster.submit(1, resources={"vcpus": 1, "memory": 1024, "gpus": 1})
    until(cluster, lambda: bad and not is_alive(cluster, bad[0]), 1200.0)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts) == (RunStatus.SUCCEEDED, 1)


def test_a_black_hole_burns_at_most_three_attempts_of_others_than_lay_there_at_once() -> None:
    """One task at a time on each instance, so that every attempt it takes is one that the strikes could have saved."""
    cluster = Controlled(zones=ZONE, types=("c5.large",))
    hole: list[str] = []

    def course(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        if not hole:
            hole.append(instance.instance_id)
        if instance.instance_id in hole:
            return TaskBehaviour(1.0, exit_code=1, reason="CUDA_ERROR_UNKNOWN")
        return TaskBehaviour(60.0)

    cluster.world.workload = course
    cluster.submit(
        20, resources={"vcpus": 2, "memory": 1024}, capacity={"maxInstances": 4}, retryStrategy={"attempts": 5}
    )
    cluster.run_to_rest()
    record = cluster.record()
    assert record.status == RunStatus.SUCCEEDED
    assert record.attempts - 20 <= 3


def test_an_instance_whose_agent_is_silent_is_ended_before_its_tasks_are_started_elsewhere() -> None:
    cluster, silent = one_busy_instance()
    cluster.world.agents[silent].disconnect()
    took = until(cluster, lambda: not is_alive(cluster, silent), 1800.0)
    assert took >= 600.0
    assert max(cluster.starts().values()) == 1
    assert all(attempt == "1" for _, attempt in cluster.starts())  # nothing was restarted while it lived
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0, 120.0, -120.0])
def test_a_clock_that_jumps_loses_nothing_and_starts_nothing_twice(jump_s: float) -> None:
    cluster = Controlled(zones=ZONE, work_s=100.0)
    cluster.submit(12)
    cluster.run_for(90.0)  # in the middle of launching
    engine, world = cluster.controllers[0], cluster.world
    engine.now = lambda: world.now + jump_s
    cluster.run_for(300.0)
    engine.now = world.clock
    cluster.run_to_rest()
    assert cluster.record().counts[TaskStatus.SUCCEEDED] == 12
    assert max(cluster.starts().values()) == 1


def test_rebalance_advice_stops_placing_and_lets_the_tasks_end() -> None:
    cluster, advised = one_busy_instance(work_s=600.0)
    cluster.world.ec2.recommend_rebalance(advised)
    cluster.tick()
    state = cluster.controllers[0].state
    assert state is not None
    assert not state.instances[advised].placeable
    assert state.instances[advised].status is InstanceStatus.ACTIVE
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().attempts) == (RunStatus.SUCCEEDED, 4)


def test_a_least_size_is_not_bought_for_a_run_that_no_instance_could_take() -> None:
    cluster = Controlled(zones=ZONE, min_instances=2)
    cluster.submit(1, resources={"vcpus": 64, "memory": 1024})
    cluster.run_for(60.0)
    assert sum(cluster.fleet_targets().values()) == 0
    cluster.cancel()
    cluster.run_to_rest()


def is_draining(cluster: Controlled, instance_id: str) -> bool:
    shown = cluster.ecs.describe_container_instances(
        cluster="argosy", containerInstances=[arn_of(cluster, instance_id)]
    )
    return bool(shown["containerInstances"][0]["status"] == "DRAINING")


def check_runtime(cluster: Controlled, instance_id: str) -> None:
    arn = arn_of(cluster, instance_id)
    cluster.world.ecs.check_health(arn, "CONTAINER_RUNTIME", "IMPAIRED", "Docker does not answer")


SICK = {
    "an event": check_runtime,
    "its agent": lambda cluster, sick: cluster.world.ecs.check_health(
        arn_of(cluster, sick), "AGENT_CONNECTIVITY", "IMPAIRED", "Agent disconnected since 2026-11-22T09:00:04Z"
    ),
    "a sweep": check_runtime,
    "EC2's system check": lambda cluster, sick: cluster.world.ec2.set_failed_checks(sick, "system"),
}


def explained(cluster: Controlled) -> list[str]:
    """What `argosy explain` says."""
    state = cluster.controllers[0].state
    assert state is not None
    return lines_of(explain_run(Moment(state, load_catalogue(), cluster.world.now, cluster.policy), cluster.run))


@pytest.mark.parametrize("told", SICK)
def test_a_sick_host_is_drained_and_replaced_in_the_first_tick_that_knows_of_it(told: str) -> None:
    """An event reaches the next tick. Status checks, and health whose event is lost, are read by sweeps. The tasks may
    end where they are for ten minutes. An instance for them is ordered at once, and used by them alone."""
    lose = (lambda message: "Health Change" in message["detail-type"]) if told == "a sweep" else (lambda message: False)
    cluster = Controlled(zones=ZONE, work_s=20_000.0, lose=lose)
    cluster.submit(4)
    cluster.run_for(130.0)
    (sick,) = (str(each["InstanceId"]) for each in cluster.live_instances())
    SICK[told](cluster, sick)
    state = cluster.controllers[0].state
    assert state is not None
    most = 1 if told in ("an event", "its agent") else 1 + cluster.policy.sweep_s / cluster.tick_s
    while not state.instances[sick].impaired:
        assert most > 0
        assert sum(cluster.fleet_targets().values()) == 1
        cluster.tick()
        most -= 1
    assert is_draining(cluster, sick)
    assert sum(cluster.fleet_targets().values()) == 2
    ecs = "Agent disconnected since" if told == "its agent" else "Docker does not answer"
    said = f"{told.removesuffix(' check')} status check failed" if told.startswith("EC2") else ecs
    assert said in " ".join(explained(cluster))
    assert "its 4 tasks have until" in " ".join(explained(cluster))
    took = until(cluster, lambda: not is_alive(cluster, sick), 1800.0)
    assert 400.0 < took < 800.0
    assert len(cluster.live_instances()) == 1
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0)
    cluster.run_to_rest()
    assert cluster.record().status == RunStatus.SUCCEEDED
    assert max(cluster.starts().values()) == 1
    assert len(cluster.world.ec2.ledger.instances) == 2


def test_a_sweep_reads_each_status_check_of_ec2() -> None:
    cluster, sick = one_busy_instance(tasks=1)
    engine = cluster.controllers[0]
    for check in ("system", "instance", "attached-ebs"):
        cluster.world.ec2.set_failed_checks(sick, check)
        sweep = engine.executor.observe(cluster.world.now, engine.state)  # type: ignore[arg-type]
        assert isinstance(sweep, Observed)
        assert [each.impaired for each in sweep.hosts] == [f"EC2's {check} status check failed"]


def test_a_sick_host_whose_tasks_end_is_let_go_with_its_replacement() -> None:
    cluster, sick = one_busy_instance(work_s=400.0)
    cluster.world.ec2.set_failed_checks(sick, "system")
    until(cluster, lambda: is_draining(cluster, sick), 200.0)
    cluster.run_to_rest()
    assert cluster.record().attempts == 4
    assert len(cluster.world.ec2.ledger.instances) == 2


@pytest.mark.parametrize("capacity", [{"budgetUsd": 50.0}, {"maxInstances": 1}], ids=["a budget", "one instance"])
def test_no_replacement_is_ordered_out_of_a_budget_or_beyond_the_instances_of_the_run(capacity: dict[str, Any]) -> None:
    cluster = Controlled(zones=ZONE, work_s=900.0)
    cluster.submit(4, capacity=capacity)
    cluster.run_for(130.0)
    (sick,) = (str(each["InstanceId"]) for each in cluster.live_instances())
    check_runtime(cluster, sick)
    cluster.run_for(300.0)
    assert is_draining(cluster, sick)
    assert sum(cluster.fleet_targets().values()) == 1
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().interruptions) == (RunStatus.SUCCEEDED, 4)


def test_waiting_tasks_do_not_wait_for_a_silent_host_with_room() -> None:
    """Its own tasks run on: agents disconnect for moments several times an hour."""
    cluster, silent = one_busy_instance(tasks=2)
    cluster.submit(2, OTHER)
    cluster.tick()  # prepares the run
    cluster.world.agents[silent].disconnect()
    cluster.tick()
    assert sum(cluster.fleet_targets().values()) == 2
    assert f"{silent} (c5.xlarge) gets no new tasks: its agent is not connected since" in " ".join(explained(cluster))


def test_a_host_that_recovers_takes_work_again() -> None:
    cluster, sick = one_busy_instance()
    for status in ("IMPAIRED", "OK"):
        cluster.world.ecs.check_health(arn_of(cluster, sick), "CONTAINER_RUNTIME", status)
        cluster.run_for(60.0)
        assert is_draining(cluster, sick) is (status == "IMPAIRED")
    state = cluster.controllers[0].state
    assert state is not None
    assert state.instances[sick].placeable
    assert (state.instances[sick].impaired, state.instances[sick].drain_until) == ({}, 0.0)
    cluster.run_for(1200.0)
    assert is_alive(cluster, sick)


def drain(cluster: Controlled, instance_id: str, for_s: float) -> None:
    request = DrainRequest(cluster.world.now, instance_id, cluster.world.now + for_s)
    cluster.put(request, f"cluster#drain#{cluster.world.now}")


def test_an_instance_that_a_user_drains_gets_no_work_stays_and_takes_work_again_at_the_end() -> None:
    cluster, drained = one_busy_instance(tasks=2)
    drain(cluster, drained, 2 * 3600.0)
    cluster.tick()
    assert is_draining(cluster, drained)
    cluster.world.workload = lambda task, instance: TaskBehaviour(60.0)
    cluster.submit(2, OTHER)
    cluster.run_for(1.5 * 3600.0)
    assert cluster.record(OTHER).status == RunStatus.SUCCEEDED
    assert [each["InstanceId"] for each in cluster.live_instances()] == [drained]  # the other one idled and has gone
    cluster.run_for(0.5 * 3600.0 + 30.0)
    assert not is_draining(cluster, drained)
    cluster.submit(2, NEEDS)
    cluster.run_for(150.0)
    assert cluster.record(NEEDS).status == RunStatus.SUCCEEDED
    assert len(cluster.live_instances()) == 1
    assert cluster.record().attempts == 2  # the tasks on it ran on all the time


def test_an_instance_that_idles_while_it_drains_is_kept_for_the_user_and_let_go_afterwards() -> None:
    cluster, drained = one_busy_instance(work_s=300.0)
    drain(cluster, drained, 2 * 3600.0)
    cluster.run_for(1.9 * 3600.0)
    assert is_alive(cluster, drained)
    cluster.run_to_rest()
    assert not cluster.live_instances()


def test_a_user_may_end_a_drain_early_and_tasks_on_it_are_not_stopped_after_an_hour() -> None:
    cluster, drained = one_busy_instance()
    drain(cluster, drained, 4 * 3600.0)
    cluster.run_for(2 * 3600.0)
    assert cluster.run.tasks.counts()[TaskStatus.RUNNING] == 4
    drain(cluster, drained, 0.0)
    cluster.run_for(30.0)
    assert not is_draining(cluster, drained)
    assert cluster.record().attempts == 4


def test_a_drain_that_ecs_refuses_is_tried_again_and_keeps_work_away_meanwhile() -> None:
    cluster, drained = one_busy_instance(tasks=2)
    real, refused = cluster.ecs, list[Any]()

    class Refusing:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def update_container_instances_state(self, **request: Any) -> Any:
            refused.append(request)
            raise refusal("AccessDeniedException", "explicit deny in a service control policy")

    cluster.controllers = [cluster.controller(Refusing())]
    drain(cluster, drained, 3600.0)
    cluster.submit(2, OTHER)
    cluster.run_for(600.0)
    assert 3 <= len(refused) <= 20
    assert not is_draining(cluster, drained)
    assert len(cluster.live_instances()) == 2  # the other run has its own


def test_what_an_instance_that_never_joined_wrote_to_its_console_is_shown_redacted_and_bounded() -> None:
    cluster = Controlled(zones=ZONE)
    cluster.world.agent_behaviour = lambda instance: AgentBehaviour(registers=False)
    cluster.submit(4)
    cluster.run_for(60.0)
    lines = [f"line {number}" for number in range(100)]
    secret = "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12"
    for each in cluster.world.ec2.ledger.instances.values():
        each.console = "\n".join(
            [*lines, secret, "arn:aws:iam::123456789012:role/x denied\x1b[0m", "cloud-init failed"]
        )
    cluster.run_for(1200.0)
    state = cluster.controllers[0].state
    assert state is not None
    told = [each.console for each in state.instances.values() if each.console]
    assert told
    assert told[0].splitlines()[-3:] == [
        "AWS_SECRET_ACCESS_KEY=<redacted>", "arn:aws:iam::<account>:role/x denied", "cloud-init failed",
    ]  # fmt: skip
    assert len(told[0].splitlines()) <= 20
    explained = explain_run(Moment(state, load_catalogue(), cluster.world.now, cluster.policy), cluster.run)
    assert explained["consoles"][0]["console"] == told[0]
    assert any("its console ended with" in line for line in lines_of(explained))


GPU = {"vcpus": 1, "memory": 1024, "gpus": 1}


def one_broken_gpu(*, by_driver: bool = False, **policy: float) -> tuple[Controlled, str]:
    """Two tasks with a GPU each. One GPU falls off the bus, and ECS or its driver says so 40 s after its program has
    failed."""
    cluster = Controlled(types=("g4dn.xlarge",), zones=ZONE, work_s=600.0, **policy)
    cluster.submit(2, resources=GPU, retryStrategy={"attempts": 1})
    cluster.tick()
    until(cluster, lambda: cluster.run.tasks.counts()[TaskStatus.RUNNING] == 2, 600.0)
    sick = str(cluster.live_instances()[0]["InstanceId"])
    cluster.world.agents[sick].break_gpu(40.0, by_driver=by_driver)
    return cluster, sick


def test_what_fails_for_a_broken_gpu_is_lost_and_not_the_users_and_the_instance_is_replaced() -> None:
    cluster, sick = one_broken_gpu()
    cluster.run_for(30.0)
    assert cluster.run.tasks.counts()[TaskStatus.FAILED] == 0  # ECS has not said so yet
    state = cluster.controllers[0].state
    assert state is not None
    until(cluster, lambda: state.instances[sick].impaired, 60.0)
    explained = explain_run(Moment(state, load_catalogue(), cluster.world.now, cluster.policy), cluster.run)
    (line,) = (each for each in lines_of(explained) if "gets no new tasks" in each)
    assert line.startswith(f"{sick} (g4dn.xlarge) gets no new tasks: impaired: ECS says IMPAIRED: ACCELERATED_COMPUTE")
    assert any("ACCELERATED_COMPUTE Xid 79 on GPU-" in reason for reason in cluster.run.reasons)
    until(cluster, lambda: not is_alive(cluster, sick), 60.0)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts, record.interruptions) == (RunStatus.SUCCEEDED, 3, 1)


def test_an_xid_in_the_drivers_log_counts_as_a_broken_gpu_and_is_named_with_its_meaning() -> None:
    cluster, sick = one_broken_gpu(by_driver=True)
    state = cluster.controllers[0].state
    assert state is not None
    until(cluster, lambda: state.instances[sick].impaired, 60.0)
    explained = explain_run(Moment(state, load_catalogue(), cluster.world.now, cluster.policy), cluster.run)
    (line,) = (each for each in lines_of(explained) if "gets no new tasks" in each)
    assert "impaired: NVIDIA's driver says Xid 79: GPU has fallen off the bus" in line
    until(cluster, lambda: not is_alive(cluster, sick), 90.0)
    cluster.run_to_rest()
    record = cluster.record()
    assert (record.status, record.attempts, record.interruptions) == (RunStatus.SUCCEEDED, 3, 1)


def test_an_xid_of_an_application_drains_nothing() -> None:
    cluster = Controlled(types=("g4dn.xlarge",), zones=ZONE, work_s=300.0)
    cluster.submit(1, resources=GPU)
    cluster.tick()
    until(cluster, lambda: cluster.run.tasks.counts()[TaskStatus.RUNNING], 600.0)
    (agent,) = cluster.world.agents.values()
    attribute = {"name": XID_ATTRIBUTE, "value": "13", "targetId": agent.arn}
    cluster.world.ecs.put_attributes(cluster=agent.cluster, attributes=[attribute])
    state = cluster.controllers[0].state
    assert state is not None
    until(cluster, lambda: any(XID_ATTRIBUTE in each.attributes for each in state.instances.values()), 150.0)
    assert not any(each.impaired or each.cordon for each in state.instances.values())
    cluster.run_to_rest()
    assert (cluster.record().status, cluster.record().attempts) == (RunStatus.SUCCEEDED, 1)


def test_a_program_that_fails_on_a_sound_gpu_is_the_users_failure_after_a_minute() -> None:
    cluster = Controlled(types=("g4dn.xlarge",), zones=ZONE)
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0, exit_code=1)
    cluster.submit(1, resources=GPU, retryStrategy={"attempts": 1})
    cluster.tick()
    until(cluster, lambda: cluster.run.tasks.counts()[TaskStatus.RUNNING], 600.0)
    took = until(cluster, lambda: cluster.record().status == RunStatus.FAILED, 300.0)
    assert cluster.policy.gpu_fate_s <= took <= cluster.policy.gpu_fate_s + 60.0
