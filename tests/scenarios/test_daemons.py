"""The engine keeps one task of a daemon on each instance, in room that is reserved for it, and never keeps or buys an
instance for a daemon."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from argosy.model.inbox import EnvironmentRequest
from argosy.model.instances import InstanceStatus
from argosy.model.runs import RunStatus
from argosy.model.services.environments import DeploymentStatus
from argosy.spec.parse import parse_spec, to_json
from tests.builders import submit_request
from tests.fakes.throwing import any_of, named, names_run, throwing
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.scenarios.controlled import Controlled, index_of
from tests.scenarios.services import FOR_EVER_S, run_of, state_of, status, web

FOLLOWED_S = 120.0
DAEMON, BATCH = "web", "work"
XLARGE = {"vcpus": 4, "memory": 2048}  # a task that takes all processors of a c5.xlarge


def cluster_of(batch_s: float = 600.0, **fields: Any) -> Controlled:
    """A cluster in which tasks of daemons never end by themselves, and those of batches end after a while."""
    cluster = Controlled(work_s=FOR_EVER_S, **fields)
    behave(cluster, batch_s)
    return cluster


def behave(cluster: Controlled, batch_s: float = 600.0, crash_s: float = FOR_EVER_S) -> None:
    def behaviour(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        is_daemon = task["group"].startswith("env:")
        return TaskBehaviour(crash_s, exit_code=3) if is_daemon else TaskBehaviour(batch_s)

    cluster.world.workload = behaviour


def form(command: str = "watch", resources: Any = None, container: Any = None, **daemon: Any) -> dict[str, Any]:
    spec = {
        "version": 1,
        "kind": "daemon",
        "name": DAEMON,
        "container": {"image": "argosy/web", "command": [command], **(container or {})},
        "resources": resources or {"vcpus": 0.5, "memory": 256},
        "daemon": daemon,
    }
    return to_json(parse_spec(spec))


def ask(cluster: Controlled, change: str, **fields: Any) -> None:
    cluster.put(EnvironmentRequest(DAEMON, cluster.world.now, change, **fields), f"{DAEMON}#{change}#{fields}")


def deploy(cluster: Controlled, revision: int = 1, spec: dict[str, Any] | None = None) -> None:
    spec = spec or form()
    run_id = f"{DAEMON}-261121-0627{revision:02d}-k3f9"
    now = cluster.world.now
    submit = submit_request(run_id, now, spec, 1, "argosy/web", f"s3://results/{run_id}/", False)
    if revision == 1:
        ask(cluster, "create", revision=1, is_daemon=True)
    else:
        ask(cluster, "update", revision=revision)
    ask(cluster, "deploy", revision=revision, token=f"{revision}@{now}", submit=submit)


def tasks(cluster: Controlled) -> list[dict[str, Any]]:
    """All that run."""
    ecs, name = cluster.ecs, cluster.world.cluster
    arns = ecs.list_tasks(cluster=name, desiredStatus="RUNNING")["taskArns"]
    found = ecs.describe_tasks(cluster=name, tasks=arns)["tasks"] if arns else []
    return [task for task in found if task["lastStatus"] == "RUNNING"]


def on_instances(cluster: Controlled) -> Counter[str]:
    """Daemons' tasks by container instance."""
    return Counter(task["containerInstanceArn"] for task in tasks(cluster) if task["group"] == f"env:{DAEMON}")


def registered(cluster: Controlled) -> set[str]:
    return {i.arn for i in state_of(cluster).instances.values() if i.status is InstanceStatus.ACTIVE}


def until(cluster: Controlled, condition: Any, limit_s: float = 1800.0) -> None:
    began = cluster.world.now
    cluster.tick()
    while not condition():
        cluster.step()
        assert cluster.world.now - began < limit_s, (status(cluster), on_instances(cluster))


def work(cluster: Controlled, tasks: int = 4, resources: Any = None, name: str = BATCH, **fields: Any) -> str:
    run_id = f"{name}-261121-062700-abcd"
    return cluster.submit(tasks, run_id, name=name, resources=resources or {"vcpus": 3, "memory": 2048}, **fields)


def is_followed(cluster: Controlled) -> bool:
    return bool(registered(cluster)) and on_instances(cluster) == Counter(dict.fromkeys(registered(cluster), 1))


def test_every_instance_gets_one_task_and_the_last_one_goes_with_its_instance() -> None:
    cluster = cluster_of()
    deploy(cluster)
    cluster.run_for(60)
    assert (cluster.live_instances(), status(cluster)) == ([], DeploymentStatus.COMPLETED)
    work(cluster)
    until(cluster, lambda: len(registered(cluster)) == 4)
    began = cluster.world.now
    until(cluster, lambda: is_followed(cluster))
    assert cluster.world.now - began <= FOLLOWED_S
    assert web(cluster).desired == 4
    cluster.run_to_rest()
    assert cluster.live_instances() == []
    assert web(cluster).desired == 0


def test_a_daemon_buys_nothing_and_does_not_keep_the_controller_awake() -> None:
    cluster = cluster_of()
    deploy(cluster)
    cluster.run_for(30)
    assert cluster.tick()
    assert set(cluster.fleet_targets().values()) == {0}


def test_no_type_is_bought_that_is_too_small_next_to_the_daemon() -> None:
    cluster = cluster_of(types=("c5.xlarge", "c5.2xlarge"))
    deploy(cluster)
    work(cluster, 2, XLARGE)
    until(cluster, lambda: len(tasks(cluster)) >= 3)
    kinds = {instance["InstanceType"] for instance in cluster.live_instances()}
    assert kinds == {"c5.2xlarge"}


def test_what_has_room_only_without_the_daemon_is_never_bought_for_and_says_so() -> None:
    cluster = cluster_of()
    deploy(cluster)
    run_id = work(cluster, 1, XLARGE)
    cluster.run_for(900)
    assert cluster.live_instances() == []
    assert "3584 cpu units instead of 4096" in cluster.record(run_id).waiting


def test_a_run_whose_only_type_has_no_place_beside_the_daemon_closes_the_cap_to_no_other_run_and_ends() -> None:
    cluster = cluster_of(60.0, types=("c5.xlarge", "g4dn.xlarge"), most_tasks_by_type=(("g*", 1),))
    cluster.share({"version": 1, "queues": {"default": {"cap": {"vcpus": 4}}}})
    deploy(cluster)
    cluster.tick()
    shut_out = cluster.submit(4, resources={"vcpus": 1, "memory": 512, "gpus": 1})
    cluster.run_for(60)
    other = cluster.submit(2, "other-261121-070000-bbbb", resources={"vcpus": 1, "memory": 512})
    cluster.run_for(600)
    assert cluster.record(other).status is RunStatus.SUCCEEDED
    assert "at most 0" in cluster.record(shut_out).waiting
    cluster.run_for(cluster.policy.unaffordable_patience_s)
    assert cluster.record(shut_out).status is RunStatus.FAILED


def test_a_new_daemon_waits_on_a_full_instance_and_says_what_it_is_short_of() -> None:
    cluster = cluster_of(batch_s=400.0)
    work(cluster, 1, XLARGE)
    until(cluster, lambda: len(tasks(cluster)) == 1)
    deploy(cluster)
    until(cluster, lambda: status(cluster) is DeploymentStatus.WAITING)
    (name,) = state_of(cluster).instances
    said = f"no room for it on {name} (short of 0.5 vCPU): it waits, and stops no other task"
    assert run_of(cluster).waiting == said
    deployment = web(cluster).deployment
    assert deployment is not None
    assert deployment.reason == said
    assert len(tasks(cluster)) == 1
    until(cluster, lambda: status(cluster) is DeploymentStatus.COMPLETED)
    assert run_of(cluster).waiting == ""


def test_a_daemon_larger_than_every_instance_matches_none_and_says_so() -> None:
    cluster = cluster_of()
    work(cluster, 1)
    until(cluster, lambda: len(tasks(cluster)) == 1)
    deploy(cluster, spec=form(resources={"vcpus": 64, "memory": 256}))
    cluster.run_for(60)
    assert web(cluster).desired == 0
    assert run_of(cluster).waiting.startswith("no instance runs it: its task is larger than every matching instance")


def test_a_daemon_runs_only_on_instances_that_match_its_query() -> None:
    cluster = cluster_of(zones=("us-east-1a", "us-east-1b"))
    zone = "us-east-1a"
    deploy(cluster, spec=form(instances=f"attribute:ecs.availability-zone == {zone}"))
    work(cluster, 6, placement={"strategy": ["spread:attribute:ecs.availability-zone"]})
    until(cluster, lambda: len({i.zone for i in state_of(cluster).instances.values() if i.registered_at}) == 2)
    cluster.run_for(FOLLOWED_S)
    ours = {i.arn for i in state_of(cluster).instances.values() if i.zone == zone and i.registered_at}
    assert on_instances(cluster) == Counter(dict.fromkeys(ours, 1))


def test_a_crashing_daemon_pauses_longer_each_time_and_does_not_keep_its_instance() -> None:
    cluster = cluster_of(batch_s=100.0)
    behave(cluster, 100.0, crash_s=5.0)
    deploy(cluster, spec=form(update={"rollback": False}))
    work(cluster, 1)
    until(cluster, lambda: bool(registered(cluster)))
    cluster.run_to_rest()
    assert cluster.live_instances() == []


def up_on(cluster: Controlled, instances: int, **update: Any) -> None:
    deploy(cluster, spec=form(update=update))
    work(cluster, instances)
    until(cluster, lambda: len(registered(cluster)) == instances and is_followed(cluster))
    cluster.run_for(30)
    assert status(cluster) is DeploymentStatus.COMPLETED


def least_and_most(cluster: Controlled, after_s: float = 400.0) -> tuple[int, int]:
    """The number of instances with at least one task, and the highest number of tasks on one instance."""
    least, most, end = len(registered(cluster)), 1, cluster.world.now + after_s
    while (cluster.world.now < end and status(cluster) is not DeploymentStatus.COMPLETED) or env_pending(cluster):
        cluster.step()
        now = on_instances(cluster)
        least, most = min(least, len(now)), max([most, *now.values()])
    return least, most


def env_pending(cluster: Controlled) -> bool:
    """Whether a request is on its way."""
    return len(web(cluster).deployments) < 2


def test_a_stop_first_update_leaves_the_least_and_never_has_two_on_one_instance() -> None:
    cluster = cluster_of(batch_s=FOR_EVER_S)
    up_on(cluster, 5, minHealthyPercent=60)
    deploy(cluster, 2, form("watch2", update={"minHealthyPercent": 60}))
    least, most = least_and_most(cluster)
    assert (status(cluster), most) == (DeploymentStatus.COMPLETED, 1)
    assert least >= 3
    assert is_followed(cluster)
    assert web(cluster).completed == 2


def test_a_start_first_update_always_has_a_task_on_every_instance() -> None:
    cluster = cluster_of(batch_s=FOR_EVER_S)
    up_on(cluster, 4, order="start-first")
    deploy(cluster, 2, form("watch2", update={"order": "start-first"}))
    assert least_and_most(cluster) == (4, 2)
    assert status(cluster) is DeploymentStatus.COMPLETED
    assert is_followed(cluster)


def test_a_broken_update_stops_at_the_least_and_is_rolled_back() -> None:
    cluster = cluster_of(batch_s=FOR_EVER_S)
    up_on(cluster, 4, minHealthyPercent=50)

    def behaviour(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        broken = task["overrides"]["containerOverrides"][0].get("command") == ["broken"]
        return TaskBehaviour(2.0, exit_code=3) if broken else TaskBehaviour(FOR_EVER_S)

    cluster.world.workload = behaviour
    deploy(cluster, 2, form("broken", update={"minHealthyPercent": 50}))
    until(cluster, lambda: len(web(cluster).deployments) == 3 and status(cluster) is DeploymentStatus.COMPLETED)
    assert [each.status for each in web(cluster).deployments][1] is DeploymentStatus.FAILED
    assert is_followed(cluster)
    assert not any(instance.cordon for instance in state_of(cluster).instances.values())


@pytest.mark.parametrize("dead", [{0, 1}, {1}])
def test_an_update_counts_no_task_that_has_died_unheard(dead: set[int]) -> None:
    cluster, update = cluster_of(batch_s=FOR_EVER_S), {"minHealthyPercent": 50}

    def behaviour(task: dict[str, Any], instance: Any) -> TaskBehaviour:
        command = task["overrides"]["containerOverrides"][0].get("command")
        dies = command == ["watch"] and index_of(task) in dead
        return TaskBehaviour(300.0, exit_code=1) if dies else TaskBehaviour(FOR_EVER_S)

    cluster.world.workload = behaviour
    up_on(cluster, 2, **update)
    cluster.pass_time(300)
    for revision in (2, 3):  # one tick receives both, and that the dead have ended
        deploy(cluster, revision, form(f"watch{revision}", update=update))
    assert least_and_most(cluster) == (2 - len(dead), 1)
    assert is_followed(cluster)
    numbers = [(each.number, each.status, each.failures) for each in web(cluster).deployments]
    assert numbers[-1] == (3, DeploymentStatus.COMPLETED, 0)


def test_on_an_instance_that_is_warned_the_batch_ends_first_and_then_the_daemon() -> None:
    cluster = cluster_of(batch_s=FOR_EVER_S)
    up_on(cluster, 2)
    warned = sorted(state_of(cluster).instances)[0]
    cluster.world.ec2.interrupt(warned)
    arn = state_of(cluster).instances[warned].arn
    ends: list[str] = []
    for _ in range(40):
        cluster.pass_time(1)
        cluster.controllers[0].tick()
        groups = {task["group"] for task in tasks(cluster) if task["containerInstanceArn"] == arn}
        ends += [str(sorted(groups))] if not ends or ends[-1] != str(sorted(groups)) else []
    assert ends[-1] == "[]"
    assert f"['env:{DAEMON}']" in ends


def test_daemons_are_stopped_before_their_idle_instance_is_terminated() -> None:
    cluster = cluster_of(batch_s=100.0)
    deploy(cluster)
    work(cluster, 1)
    until(cluster, lambda: is_followed(cluster))
    until(cluster, lambda: not on_instances(cluster))
    stopped = [
        message["detail"]
        for message in cluster.world.events
        if message["detail-type"] == "ECS Task State Change" and message["detail"]["group"] == f"env:{DAEMON}"
    ]
    assert stopped[-1]["stoppedReason"] == "argosy: its instance is being terminated"
    assert cluster.live_instances() or state_of(cluster).instances
    cluster.run_to_rest()
    assert cluster.live_instances() == []


def test_what_is_frozen_follows_no_instance_and_a_deleted_daemon_leaves_nothing() -> None:
    cluster = cluster_of(batch_s=900.0)
    up_on(cluster, 2)
    ask(cluster, "freeze", reason="looking")
    cluster.run_for(20)
    work(cluster, 2, name="more")
    until(cluster, lambda: len(registered(cluster)) > 2)
    cluster.run_for(FOLLOWED_S)
    assert len(on_instances(cluster)) == 2
    ask(cluster, "thaw")
    until(cluster, lambda: is_followed(cluster))
    ask(cluster, "delete")
    until(cluster, lambda: DAEMON not in state_of(cluster).environments)
    assert not on_instances(cluster)


@pytest.mark.parametrize("is_first_deleted", [True, False], ids=["deleted, then suspended", "suspended, then deleted"])
def test_the_controller_rests_once_a_suspended_daemon_is_deleted_and_its_tasks_have_ended(
    is_first_deleted: bool,
) -> None:
    cluster = cluster_of(batch_s=300.0)
    deploy(cluster)
    work(cluster, 3, {"vcpus": 1, "memory": 512})  # the daemon has one task
    until(cluster, lambda: is_followed(cluster))
    (run_id,) = state_of(cluster).environments[DAEMON].runs()
    cluster.faulty = True
    with throwing(named("model.tasks.TaskTable.counts"), any_of(lambda value: names_run(value, run_id, 1))):
        if is_first_deleted:
            ask(cluster, "delete")
        until(cluster, lambda: run_id in state_of(cluster).suspended or is_first_deleted)
        if not is_first_deleted:
            ask(cluster, "delete")
        cluster.run_to_rest(1800.0)
    assert not on_instances(cluster)
    assert not cluster.live_instances()
    record = cluster.record(run_id)
    assert record.status is RunStatus.CANCELLED
    assert record.status_reason.startswith("its environment was deleted; ")
    assert not state_of(cluster).environments


def test_rows_are_taken_again_and_never_taken_away() -> None:
    cluster = cluster_of(batch_s=300.0)
    up_on(cluster, 3)
    rows = run_of(cluster).task_count
    cluster.run_to_rest()
    cluster.world.workload = cluster.world.workload
    work(cluster, 3, name="again")
    until(cluster, lambda: len(registered(cluster)) == 3 and is_followed(cluster))
    assert run_of(cluster).task_count == rows == 3
    assert int(run_of(cluster).tasks["attempts"].max()) >= 2


def test_two_daemons_share_an_instance_and_a_task_that_needs_the_rest_gets_it() -> None:
    cluster = cluster_of()
    deploy(cluster)
    work(cluster, 1, {"vcpus": 3.5, "memory": 1024})
    until(cluster, lambda: len(tasks(cluster)) == 2)
    assert len(cluster.live_instances()) == 1
