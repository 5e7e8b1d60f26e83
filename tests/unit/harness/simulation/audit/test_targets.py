"""What does the auditor find wrong with registrations in target groups, and with stops of registered tasks?"""

from __future__ import annotations

from typing import Any

from argosy.model.policy import Policy
from argosy.model.services.environments import Environment
from tests.fakes.worlds import grown, run, task, world
from tests.harness.simulation.audit.facts import TrialFacts, TrialResults
from tests.harness.simulation.audit.targets import GIVES_UP_S, TargetChecker
from tests.harness.simulation.world.deployed_fleets import Bill
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import target_group_arn

RUN_ID = "web-261121-062733-aaaa"
SPEC = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "service": {"desired": 1, "targetGroup": "web", "drainSeconds": 30},
}
OURS = {
    "ARGOSY_RUN_ID": RUN_ID, "ARGOSY_TASK_INDEX": "0", "ARGOSY_TASK_ATTEMPT": "1", "ARGOSY_LAUNCH": "0",
}  # fmt: skip


class Served:
    """A service's only task, which runs, and the findings about calls that took effect."""

    def __init__(self, **facts: Any) -> None:
        self.world = world(TaskBehaviour(float("inf")))
        [host] = grown(self.world)
        self.instance = str(host["ec2InstanceId"])
        ports = [{"containerPort": 8080, "hostPort": 0}]
        container = {"name": "main", "image": "argosy/web", "cpu": 512, "memory": 512, "portMappings": ports}
        self.world.ecs.register_task_definition(family="web", containerDefinitions=[container])
        self.start()
        self.facts = TrialFacts(Regions(self.world), {RUN_ID: SimulatedJob(RUN_ID, SPEC, 1)}, Policy(), **facts)
        self.checker = TargetChecker(self.facts)

    def start(self, wait_s: float = 60.0) -> None:
        environment = [{"name": name, "value": value} for name, value in OURS.items()]
        self.arn = run(
            self.world, "web", overrides={"containerOverrides": [{"name": "main", "environment": environment}]}
        )
        self.world.run_for(wait_s)
        self.port = int(task(self.world, self.arn)["containers"][0]["networkBindings"][0]["hostPort"])

    def told(self, service: str, operation: str, request: dict[str, Any], reply: dict[str, Any]) -> list[str]:
        known = len(self.facts.violations)
        self.checker.effects()[service, operation](request, reply)
        return [each.invariant for each in self.facts.violations[known:]]

    def change(self, verb: str) -> list[str]:
        targets = [{"Id": self.instance, "Port": self.port}]
        request = {"TargetGroupArn": target_group_arn("us-east-1"), "Targets": targets}
        return self.told("elbv2", f"{verb}_targets", request, {})

    def stop(self, reason: str = "scaled down") -> list[str]:
        return self.told("ecs", "stop_task", {"task": self.arn, "reason": reason}, {"task": task(self.world, self.arn)})

    def store(self, leaves_since: float = 0.0) -> None:
        """The entry of its place."""
        entry = {f"web {self.instance} {self.port}": {"leaves_since": leaves_since}}
        self.facts.stored.environments["web"] = Environment.from_json(
            {
                "name": "web",
                "created_at": 0.0,
                "desired": 1,
                "spec_desired": 1,
                "revisions": [{"number": 1, "created_at": 0.0, "run_id": RUN_ID}],
                "deployments": [],
                "targets": entry,
            }
        )

    def at_rest(self) -> list[str]:
        self.checker.at_rest(TrialResults({}, Bill(), 0.0))
        return [each.invariant for each in self.facts.violations]


def test_a_task_is_not_stopped_while_it_is_registered() -> None:
    served = Served()
    assert served.change("register") == []
    assert served.stop() == ["G1"]


def test_a_task_is_not_stopped_before_it_has_drained() -> None:
    served = Served()
    served.change("register")
    served.change("deregister")
    served.world.run_for(25)
    assert served.stop() == ["G1"]
    served.world.run_for(5)
    assert served.stop() == []


def test_a_task_that_was_never_registered_is_stopped_at_once() -> None:
    assert Served().stop() == []


def test_a_task_at_the_port_of_one_that_was_taken_out_is_stopped_at_once() -> None:
    served = Served()
    served.change("register")
    served.change("deregister")
    earlier, port = served.arn, served.port
    [agent] = served.world.agents.values()
    next(each for each in agent.tasks.values() if each.arn == earlier).kill(1)
    served.world.run_for(5)
    served.start(20.0)
    assert (served.port, served.arn != earlier) == (port, True)
    assert served.stop() == []


def test_an_orphaned_task_is_always_stopped() -> None:
    served = Served()
    served.change("register")
    assert served.stop("belongs to no live attempt") == []
    assert served.told("ecs", "stop_task", {"task": "arn:of:nobody"}, {"task": {}}) == []


def test_a_warning_leaves_no_time_to_drain_when_most_of_it_has_passed() -> None:
    served = Served()
    served.change("register")
    served.world.interrupt(served.instance)
    served.world.run_for(70)
    assert served.stop() == ["G1"]
    served.world.run_for(10)
    assert served.stop() == []


def test_a_task_that_aws_does_not_take_out_is_stopped_in_the_end() -> None:
    served = Served()
    served.change("register")
    served.store(leaves_since=served.world.now)
    served.world.run_for(GIVES_UP_S - 1)
    assert served.stop() == ["G1"]
    served.world.run_for(1)
    assert served.stop() == []


def test_nothing_is_registered_before_it_is_stored() -> None:
    assert Served(one_controller=True).change("register") == ["G3"]
    stored = Served(one_controller=True)
    stored.store()
    assert stored.change("register") == []


def test_at_rest_nothing_is_registered() -> None:
    served = Served()
    served.change("register")
    assert served.at_rest() == ["G2"]
    served.facts.violations.clear()
    served.change("deregister")
    assert served.at_rest() == []


def test_remains_of_a_teardown_are_not_a_violation() -> None:
    served = Served(torn_down=True)
    served.change("register")
    assert served.at_rest() == []
