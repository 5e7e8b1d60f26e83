"""How soon is a controller replaced that dies in the middle of its work? The loop, its lease and the schedule, in
virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.aws.wake import AwsWake
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.ec2.service import Ec2Setup
from argosy.emulator.sqs import SqsModel
from argosy.engine.loop import Loop, LoopReport
from argosy.model.policy import Policy
from argosy.ports import Wake
from tests.fakes.trials import LATE_JOB, SMALL_JOB
from tests.harness.simulation.audit.auditor import Auditor
from tests.harness.simulation.controllers.deployment import SimulatedDeployment, SimulatedServices
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.injection.boundary import CallConditions, Crash
from tests.harness.simulation.upkeep.watchdogs import Watchdogs
from tests.harness.simulation.world.bus import LambdaModel
from tests.harness.simulation.world.deployed_fleets import add_fleets
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import Behaviour, World

JOB, LATE = (
    replace(job, spec={**job.spec, "container": {"image": "argosy/digits", "command": ["work"]}})
    for job in (SMALL_JOB, LATE_JOB)
)
SCHEDULE_S = 60.0
LIMIT_S = 900.0
RECOVERY_S = 120.0
WATCHDOG_S = 900.0


class Cloud:
    """A deployment whose controller is invoked every minute, as the schedule does."""

    def __init__(self) -> None:
        self.world = World(Ec2Setup(load_catalogue()), Behaviour(lambda task, instance: TaskBehaviour(duration_s=60.0)))
        self.auditor = Auditor(Regions(self.world), {job.run_id: job for job in (JOB, LATE)}, Policy())
        self.world.sinks.append(self.auditor.hear)
        add_fleets(self.world, ("c5.xlarge",), ("us-east-1a",))
        self.conditions = CallConditions(Faults(0, ()), self.auditor)
        services = SimulatedServices(SqsModel(self.world.clock))
        self.deployment = SimulatedDeployment(Regions(self.world), services, Policy(linger_s=30.0), self.conditions)
        self.invocations = 0
        bus = SimulatedClient(self.deployment.services.bus, "events")
        self.wake = AwsWake(SimulatedClient(LambdaModel(), "lambda"), bus, "argosy-controller", "argosy-tick")

    def invoke(self, wake: Wake | None = None) -> LoopReport:
        """One invocation; its time passes in its calls and between its ticks."""
        self.invocations += 1
        process = self.deployment.add_controller()
        ends = self.world.now + LIMIT_S
        store = process.engine.store
        loop = Loop(process.engine, store, wake or self.wake, f"invocation-{self.invocations}", self.world.clock)
        loop.on_tick = lambda report: self.world.run_for(1.0)
        return loop.run(lambda: ends - self.world.now)

    def die_at(self, call: int) -> None:
        """A dead process does not give its lease back."""
        self.conditions.script = {call: "crash-after"}


class RequestComesAtRest:
    """The controller is about to rest and disables its tick. Just before, a user has submitted a run; just after, the
    process is gone."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.stay, self.controller = cloud, cloud.wake.stay, cloud.wake.controller

    def rest(self) -> None:
        self.cloud.deployment.submit(LATE.request(self.cloud.world.now))
        self.cloud.wake.rest()
        raise Crash


def test_a_request_is_not_lost_if_the_controller_dies_on_its_way_to_rest() -> None:
    cloud = Cloud()
    cloud.deployment.submit(JOB.request(cloud.world.now))
    with pytest.raises(Crash):
        cloud.invoke(RequestComesAtRest(cloud))
    assert not cloud.deployment.invocations.is_scheduled, "nobody will invoke a controller"
    Watchdogs(cloud.deployment, None, lambda who, told: None).begin()
    cloud.world.run_for(WATCHDOG_S)
    assert cloud.deployment.invocations.is_scheduled
    assert cloud.invoke().reason == "rest"
    assert {sum(record.counts) for record in cloud.auditor.stored.records.values()} == {2}
    assert cloud.auditor.stored.records[LATE.run_id].has_ended
    assert not cloud.auditor.violations


@pytest.mark.parametrize("call", [3, 20, 33, 60, 150, 250])
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
