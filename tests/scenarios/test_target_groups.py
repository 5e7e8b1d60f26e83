"""Services behind a load balancer: tasks are registered while they serve, and drained before they are stopped."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.aws.cell import Cell
from argosy.model.actions import RegisterTargets
from argosy.model.services.targets import MOST_TARGETS, TargetEntry, TargetPlace
from argosy.scheduler.services.targets import target_steps
from argosy.spec.parse import parse_spec, to_json
from tests.builders import moment_of
from tests.fakes.aws import refusal
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import target_group_arn
from tests.scenarios.controlled import Controlled
from tests.scenarios.services import FOR_EVER_S, ask, deploy, ending, running, state_of, status, until, web

GROUP = target_group_arn("us-east-1")


class Died(BaseException):
    """The controller's process ends."""


class Balanced(Controlled):
    """A cluster with a target group. It writes down calls about targets, and stops."""

    def __init__(self, **fields: Any) -> None:
        self.log: list[tuple[float, str, Any]] = []
        self.fails: ClientError | None = None
        self.dies = False  # the controller, when the next call about targets has taken effect
        super().__init__(work_s=FOR_EVER_S, **fields)

    def cells(self, ecs: Any = None) -> list[Cell]:
        cluster, (home,) = self, super().cells(ecs)

        class Elbv2:
            def __getattr__(self, name: str) -> Any:
                def call(**request: Any) -> Any:
                    if cluster.fails is not None:
                        raise cluster.fails
                    places = [(each["Id"], each["Port"]) for each in request["Targets"]]
                    cluster.log.append((cluster.world.now, name, places))
                    reply = getattr(cluster.world.elbv2, name)(**request)
                    if cluster.dies:
                        raise Died
                    return reply

                return call

        class Ecs:
            def __getattr__(self, name: str) -> Any:
                def stop(**request: Any) -> Any:
                    cluster.log.append((cluster.world.now, "stop", request["task"]))
                    return home.ecs.stop_task(**request)

                return stop if name == "stop_task" else getattr(home.ecs, name)

        return [Cell(home.name, home.cluster, Ecs(), home.ec2, home.rates, elbv2=Elbv2())]

    @property
    def targets(self) -> set[tuple[str, int]]:  # type: ignore[override]
        return self.world.elbv2.targets[GROUP]

    @targets.setter
    def targets(self, value: Any) -> None:
        """For the fleets, which do not matter here."""

    def at(self, what: str) -> list[float]:
        return [when for when, name, _ in self.log if name == what]


def form(
    desired: int, command: str = "serve", drain_s: int = 30, health: dict[str, Any] | None = None, **update: Any
) -> dict[str, Any]:
    container = {"image": "argosy/web", "command": [command], "ports": [{"container": 8080}], "health": health}
    return to_json(
        parse_spec(
            {
                "version": 1,
                "kind": "service",
                "name": "web",
                "container": {name: value for name, value in container.items() if value},
                "resources": {"vcpus": 0.5, "memory": 512},
                "service": {
                    "desired": desired,
                    "update": update,
                    "targetGroup": "web",
                    "drainSeconds": drain_s,
                },
            }
        )
    )


def balanced(desired: int, drain_s: int = 30, **fields: Any) -> Balanced:
    cluster = Balanced(**fields)
    deploy(cluster, 1, form(desired, drain_s=drain_s))
    until(cluster, lambda: len(cluster.targets) == desired)
    until(cluster, lambda: status(cluster) == "COMPLETED")
    return cluster


def test_tasks_that_serve_are_registered_with_their_instance_and_port() -> None:
    cluster = balanced(3)
    cluster.run_for(60)
    assert len(cluster.targets) == 3
    assert {place[1:] for place in web(cluster).targets} == cluster.targets
    assert all(target.registered_at for target in web(cluster).targets.values())
    gone = [TargetPlace("web", f"i-{number:017x}", 8080) for number in range(MOST_TARGETS - 2)]
    web(cluster).targets = {place: TargetEntry(registered_at=1.0) for place in gone}
    steps = target_steps(moment_of(state_of(cluster), cluster.world.now))
    assert [len(each.places) for each in steps if isinstance(each, RegisterTargets)] == [2]  # as many as there is room


def test_a_task_leaves_its_group_and_drains_before_it_is_stopped() -> None:
    cluster = balanced(3, drain_s=60)
    ask(cluster, "scale", desired=2)
    until(cluster, lambda: sum(running(cluster).values()) == 2)
    (out,), (stopped,) = cluster.at("deregister_targets"), cluster.at("stop")
    assert 60 <= stopped - out <= 80
    cluster.run_for(30)
    assert len(cluster.targets) == len(web(cluster).targets) == 2


def test_a_task_with_a_health_command_is_registered_when_that_says_that_it_is_well() -> None:
    cluster = Balanced(tick_s=5.0)
    cluster.world.workload = lambda task, host: TaskBehaviour(FOR_EVER_S, is_well=lambda age_s: age_s >= 100)
    health = {"command": ["CMD", "check"], "intervalSeconds": 5, "startSeconds": 200}
    deploy(cluster, 1, form(1, health=health))
    until(cluster, lambda: running(cluster))
    began = cluster.world.now
    until(cluster, lambda: cluster.targets)
    assert 90 <= cluster.world.now - began <= 130


@pytest.mark.parametrize("ends_s", [60.0, FOR_EVER_S])
def test_what_a_controller_registered_before_it_died_is_known_to_the_next_one(ends_s: float) -> None:
    cluster = Balanced()
    ending(cluster, ends_s)
    deploy(cluster, 1, form(1))
    cluster.dies = True
    with pytest.raises(Died):
        until(cluster, lambda: False)
    assert len(cluster.targets) == 1
    cluster.dies, cluster.controllers = False, [cluster.controller()]
    cluster.world.run_for(120)
    until(
        cluster, lambda: bool(cluster.at("deregister_targets")) is (ends_s == 60.0) and status(cluster) == "COMPLETED"
    )
    until(
        cluster, lambda: {place[1:] for place in web(cluster).targets} == cluster.targets and len(cluster.targets) == 1
    )
    assert cluster.at("stop") == []


def test_what_a_controller_took_out_before_it_died_drains_under_the_next_one() -> None:
    cluster = balanced(2, drain_s=60)
    cluster.dies = True
    ask(cluster, "scale", desired=1)
    with pytest.raises(Died):
        until(cluster, lambda: False)
    assert (len(cluster.targets), cluster.at("stop")) == (1, [])
    cluster.dies, cluster.controllers = False, [cluster.controller()]
    until(cluster, lambda: sum(running(cluster).values()) == 1)
    assert cluster.at("stop")[0] - cluster.at("deregister_targets")[0] >= 60
    cluster.run_for(30)
    assert {place[1:] for place in web(cluster).targets} == cluster.targets


def test_an_update_registers_the_new_tasks_and_drains_the_old_ones() -> None:
    cluster = balanced(2)
    old = set(cluster.targets)
    deploy(cluster, 2, form(2, "serve2"))
    least = 2
    for _ in range(40):
        cluster.tick()
        least = min(least, len(cluster.targets))
    assert (status(cluster), least, len(cluster.targets)) == ("COMPLETED", 2, 2)
    assert not old & cluster.targets


def test_a_task_that_ended_by_itself_is_taken_out() -> None:
    cluster = Balanced()
    ending(cluster, 100.0)
    deploy(cluster, 1, form(1))
    until(cluster, lambda: len(cluster.targets) == 1)
    until(cluster, lambda: cluster.at("deregister_targets"))
    until(cluster, lambda: len(cluster.targets) == 1)
    assert cluster.at("stop") == []


def test_a_spot_warning_cuts_the_time_to_drain_short() -> None:
    cluster = balanced(2, drain_s=30, starts_s=60.0)
    [instance] = cluster.live_instances()
    warned_at = cluster.world.now
    cluster.world.interrupt(instance["InstanceId"])
    until(cluster, lambda: cluster.at("stop"))
    outs, stops = cluster.at("deregister_targets"), cluster.at("stop")
    assert min(stops) - min(outs) >= 30 - 1
    assert min(stops) - warned_at <= 95
    until(cluster, lambda: len(cluster.targets) == 2)


def test_a_deleted_service_leaves_nothing_registered() -> None:
    cluster = balanced(2)
    ask(cluster, "delete")
    cluster.run_to_rest()
    assert cluster.targets == set()
    assert min(cluster.at("stop")) - min(cluster.at("deregister_targets")) >= 30


def test_a_missing_group_is_reported_and_does_not_keep_tasks_from_stopping() -> None:
    cluster = balanced(1)
    cluster.fails = refusal("TargetGroupNotFound", "One or more target groups not found")
    ask(cluster, "scale", desired=2)
    until(cluster, lambda: web(cluster).targets_reason)
    assert web(cluster).targets_reason.startswith("target group 'web': TargetGroupNotFound")
    ask(cluster, "delete")
    cluster.run_to_rest()


def test_a_task_is_not_kept_for_ever_because_it_cannot_be_taken_out() -> None:
    cluster = balanced(1)
    cluster.fails = refusal("AccessDenied", "not authorized to perform: elasticloadbalancing:DeregisterTargets")
    began = cluster.world.now
    ask(cluster, "scale", desired=0)
    until(cluster, lambda: cluster.at("stop"))
    assert 600 <= cluster.world.now - began <= 700
    cluster.fails = None
    until(cluster, lambda: cluster.targets == set())


def test_a_deleted_service_is_remembered_for_as_long_as_something_of_it_is_registered() -> None:
    cluster = balanced(1)
    cluster.fails = refusal("AccessDenied", "not authorized to perform: elasticloadbalancing:DeregisterTargets")
    ask(cluster, "delete")
    until(cluster, lambda: cluster.at("stop"))
    until(cluster, lambda: not running(cluster) and not state_of(cluster).attempts.live().size)
    for _ in range(10):
        cluster.tick()
    assert len(cluster.targets) == len(web(cluster).targets) == 1
    cluster.fails = None
    cluster.run_to_rest()
    assert (cluster.targets, state_of(cluster).environments) == (set(), {})
