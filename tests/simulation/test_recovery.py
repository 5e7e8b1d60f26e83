"""How soon is a controller replaced that dies in the middle? The loop, its lease and the schedule, in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.aws.wake import AwsWake
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.bus import LambdaModel
from argosy.emulator.ec2.service import Ec2Setup
from argosy.emulator.sqs import SqsModel
from argosy.engine.loop import Loop, LoopReport
from argosy.model.policy import Policy
from argosy.simulation.audit.auditor import Auditor
from argosy.simulation.boundary import CallConditions, Crash
from argosy.simulation.deployed_fleets import add_fleets
from argosy.simulation.deployment import SimulatedDeployment, SimulatedServices
from argosy.simulation.faults import Faults
from argosy.simulation.regions import Regions
from argosy.simulation.virtual_task import TaskBehaviour
from argosy.simulation.world import Behaviour, World
from tests.fakes.trials import SMALL_JOB

JOB = replace(SMALL_JOB, spec={**SMALL_JOB.spec, "container": {"image": "argosy/digits", "command": ["work"]}})
SCHEDULE_S = 60.0
LIMIT_S = 900.0
RECOVERY_S = 120.0


class Cloud:
    """A deployment whose controller is invoked every minute, as the schedule does."""

    def __init__(self) -> None:
        self.world = World(Ec2Setup(load_catalogue()), Behaviour(lambda task, instance: TaskBehaviour(duration_s=60.0)))
        self.auditor = Auditor(Regions(self.world), {JOB.run_id: JOB}, Policy())
        self.world.sinks.append(self.auditor.hear)
        add_fleets(self.world, ("c5.xlarge",), ("us-east-1a",))
        self.conditions = CallConditions(Faults(0, ()), self.auditor)
        services = SimulatedServices(SqsModel(self.world.clock))
        self.deployment = SimulatedDeployment(Regions(self.world), services, Policy(linger_s=30.0), self.conditions)
        self.invocations = 0
        bus = SimulatedClient(self.deployment.services.bus, "events")
        self.wake = AwsWake(SimulatedClient(LambdaModel(), "lambda"), bus, "argosy-controller", "argosy-tick")

    def invoke(self) -> LoopReport:
        """One invocation; its time passes in its calls and between its ticks."""
        self.invocations += 1
        process = self.deployment.add_controller()
        ends = self.world.now + LIMIT_S
        store = process.engine.store
        loop = Loop(process.engine, store, self.wake, f"invocation-{self.invocations}", self.world.clock)
        loop.on_tick = lambda report: self.world.run_for(1.0)
        return loop.run(lambda: ends - self.world.now)

    def die_at(self, call: int) -> None:
        """A dead process does not give its lease back."""
        self.conditions.script = {call: "crash-after"}


@pytest.mark.parametrize("call", [3, 20, 33, 60, 150, 400])
def test_a_controller_that_is_killed_anywhere_is_replaced_within_two_minutes(call: int) -> None:
    cloud = Cloud()
    cloud.deployment.submit(JOB.request(cloud.world.now))
    cloud.die_at(call)
    with pytest.raises(Crash):
        cloud.invoke()
    died_at = cloud.world.now
    report = LoopReport("no lease")
    while report.reason == "no lease":
        cloud.world.run_for(SCHEDULE_S)
        taken_over_at = cloud.world.now
        report = cloud.invoke()
    assert taken_over_at - died_at <= RECOVERY_S
    assert report.reason == "rest"
    assert not cloud.auditor.violations
    assert cloud.auditor.launches == 2
    assert {sum(record.counts) for record in cloud.auditor.stored.records.values()} == {2}
