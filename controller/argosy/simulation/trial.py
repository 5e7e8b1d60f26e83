"""Does everything end well, whatever goes wrong on the way? One trial: from a seed to a verdict.

First a phase of safety, in which the faults strike, then one of liveness, in which they have ended and everything has
to come to its end: every run closed, every instance given back, every count exact.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from argosy.aws.shutdown import free
from argosy.aws.teardown import QUIET_S
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.service import Ec2Instance, Ec2Setup
from argosy.emulator.rate_limits import Buckets
from argosy.emulator.sqs import SqsModel
from argosy.model.policy import Policy
from argosy.simulation import verdict
from argosy.simulation.agent import AgentBehaviour
from argosy.simulation.auditor import Auditor
from argosy.simulation.billing import Billing
from argosy.simulation.boundary import Boundary
from argosy.simulation.deployment import SimulatedDeployment
from argosy.simulation.event_path import EventPath
from argosy.simulation.faults import ALL, Faults
from argosy.simulation.job import Job, Programs
from argosy.simulation.mishaps import Mishaps
from argosy.simulation.shape import Shape, drawn_jobs
from argosy.simulation.users import Users
from argosy.simulation.virtual_task import TaskBehaviour
from argosy.simulation.world import Behaviour, World

ZONES = ("us-east-1a", "us-east-1b")
TYPES = ("c5.xlarge", "g4dn.xlarge")
TEST_POLICY = Policy(linger_s=60.0)
ANOTHER = 0.25  # the chance of each other controller to work in the same step
INTRUDING = 0.02  # the chance of another controller to work in the middle of a call
JUMP_S = 300.0
BUSY_S, IDLE_S = 15.0, 120.0  # between ticks once the faults have ended


@dataclass(frozen=True, slots=True)
class Plan:
    """What a trial is made of. `tasks` 0 = as many as the seed says."""

    seed: int
    kinds: frozenset[str] = ALL
    tasks: int = 0
    instances: int = 6
    controllers: int = 0
    jobs: tuple[Job, ...] = ()
    script: Mapping[int, str] = field(default_factory=dict)
    strict: bool = False
    buckets: bool = True  # AWS limits the rate of calls
    every_kind: bool = False
    words: tuple[str, ...] = ()  # of the command line that no other member stands for
    policy: Policy = TEST_POLICY
    types: tuple[str, ...] = TYPES
    faulty_s: float = 0.0  # how long faults strike; 0 = as the seed says
    limit_s: float = 4 * 3600.0


class Trial:
    """One seed's world and everything in it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.faults = Faults(plan.seed, plan.kinds, every=plan.every_kind)
        self.world = World(
            Ec2Setup(load_catalogue(), ZONES, self._price),
            Behaviour(self._course, self._habits),
            seed=plan.seed,
        )
        self.start = self.world.now
        self.shape = Shape.drawn(self.faults, plan.faulty_s, plan.controllers)
        jobs = plan.jobs or drawn_jobs(self.faults, plan.seed, plan.tasks)
        self.jobs = {job.run_id: job for job in jobs}
        self.boundary = Boundary(self.world, self.faults, meanwhile=self._meanwhile, script=plan.script)
        queue = SqsModel(self.world.moment)
        policy = replace(plan.policy, max_instances=plan.instances)
        self.deployment = SimulatedDeployment(self.world, self.boundary, policy, strict=plan.strict, sqs=queue)
        services = self.deployment.services
        self.auditor = Auditor(self.world, self.jobs, policy, services.s3)
        self.boundary.buckets = Buckets(self.world.moment) if plan.buckets else None
        self.boundary.watch, self.boundary.remember = self._watch, self.auditor.remember
        self.programs = Programs(self.world, services.s3, self.jobs)
        self.world.sinks += [self.auditor.hear, self.programs, EventPath(self.world, queue, self.faults)]
        self.mishaps = Mishaps(self.world, self.faults)
        self.billing = Billing(self.world)
        self.destroyed, self.quiet_at = False, 0.0
        self.absent = False
        self.faults_ended = self.start
        self._furnish()
        self.processes = list(self.deployment.processes)
        self.auditor.alone = len(self.processes) == 1
        self.users = Users(plan.seed, self.world, self.deployment, self.jobs, self.auditor.book)
        self.users.insist &= bool(plan.kinds)

    def run(self) -> verdict.Verdict:
        """Both phases, until rest or the first violation."""
        log = logging.getLogger("argosy")
        before = log.propagate
        log.addHandler(self.auditor)
        log.propagate = False  # thousands of expected warnings
        try:
            self.phase_of_faults()
            self.faults_ended = self.world.now
            self._phase_of_rest(self.faults_ended)
        finally:
            log.removeHandler(self.auditor)
            log.propagate = before
        return verdict.of(self, self.world.now - self.faults_ended)

    def _furnish(self) -> None:
        self.deployment.add_fleets(self.plan.types, ZONES)
        if self.plan.kinds:
            self._add_strangers()
        skewed = self.faults.on("clock-skew")
        self.deployment.versions_met = partial(self.faults.note, "two-versions")
        for number in range(self.shape.controllers):
            is_next = bool(self.shape.former) and number >= self.shape.former
            self.deployment.add_controller(self.faults.between(-120, 120) if skewed else 0.0, is_next=is_next)
        self.faults.seen["clock-skew"] += skewed
        self.deployment.fell_over = partial(self.auditor.found, "tick")
        self.deployment.down_s = lambda: self.faults.between(1, 120)

    def _add_strangers(self) -> None:
        """Somebody else's instances in the same account: one in our cluster, one that even carries our tag."""
        for tags in ({"argosy:stage": "other"}, {"argosy:stage": "main"}):
            name = f"stranger-{tags['argosy:stage']}"
            self.world.ec2.add_launch_template(name, image_id="ami-2", tags=tags)
            self.world.ec2.create_fleet(
                Type="maintain",
                TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
                LaunchTemplateConfigs=[
                    {
                        "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "1"},
                        "Overrides": [{"InstanceType": "c5.xlarge", "AvailabilityZone": ZONES[0]}],
                    }
                ],
            )

    def phase_of_faults(self) -> None:
        """Submit the runs and work while faults strike, until the shape's time is over or a violation is found."""
        world, shape = self.world, self.shape
        self.mishaps.begin()
        self.users.submit(shape.faulty_s)
        if self.faults.strikes("store-outage"):
            world.later(self.faults.between(0.05, 0.6) * shape.faulty_s, self._lose_the_store)
        if self.faults.strikes("destroy"):
            world.later(self.faults.between(10, shape.faulty_s), self._destroy)
        if self.faults.between(0, 1) < 0.1 and self.plan.kinds:
            self.users.cancel_later(self.faults.between(10, shape.faulty_s))
        until = self.start + shape.faulty_s
        while world.now < until and self.plan.kinds and not self.auditor.violations:
            if world.now - self.start >= shape.absent_at and not self.absent:
                self.stay_away()
                until += shape.absent_s
            self.jump_clocks()
            self._step(self.faults.between(0.3, 1.7) * shape.pace_s, everybody=False)

    def _phase_of_rest(self, began: float) -> None:
        self.faults.active = False
        self.boundary.store_down_until = 0.0
        self.programs.good = bool(self.plan.kinds)
        self.mishaps.end()
        del self.deployment.processes[1:]  # the lease leaves one; without it they would only get in each other's way
        for process in self.deployment.processes:
            process.down_until = 0.0
            process.at_rest = False
            if self.shape.former and not process.is_next:
                self.deployment.deploy(process)
        pause_s = BUSY_S
        while not self.auditor.violations:
            self._step(pause_s)
            busy = any(process.busy for process in self.deployment.processes)
            pause_s = BUSY_S if busy else min(IDLE_S, 2 * pause_s)
            if self._is_over() and not self._tries_again():
                self.auditor.violations += verdict.leftovers(self)
                return
            if self.world.now - began > self.plan.limit_s:
                self.auditor.found("liveness", verdict.why_not_over(self), *verdict.open_names(self))

    def _step(self, seconds: float, *, everybody: bool = True) -> None:
        """One controller works, or everybody does, and then time passes."""
        processes = self.deployment.processes
        chosen = int(self.faults.between(0, len(processes)))
        for number, process in enumerate(processes):
            if everybody or number == chosen or self.faults.between(0, 1) < ANOTHER:
                self.deployment.tick(process)
        self.world.run_for(seconds)
        self.auditor.look_around()
        if self.faults.active and not self.destroyed:
            self.users.try_again()

    def _is_over(self) -> bool:
        if self.destroyed:
            return self.world.now - self.faults_ended > 1800.0
        if self.quiet_at:  # the teardown has not ended yet
            return False
        submitted = len(self.auditor.book.records) == len(self.jobs)
        return submitted and all(process.at_rest for process in self.deployment.processes)

    def _tries_again(self) -> bool:
        """Even when everything is at rest and has been forgotten, somebody may want more of a run."""
        asked = not self.destroyed and self.users.try_again()
        for process in self.deployment.processes if asked else ():
            process.at_rest = False
        return asked

    def _meanwhile(self) -> None:
        """Another controller may work in the middle of a call."""
        if len(self.deployment.processes) > 1 and self.faults.active and self.faults.between(0, 1) < INTRUDING:
            number = int(self.faults.between(0, len(self.deployment.processes)))
            self.deployment.tick(self.deployment.processes[number])

    def _watch(self, service: str, operation: str, request: dict[str, Any], reply: dict[str, Any]) -> None:
        self.auditor.watch(service, operation, request, reply)
        if operation == "run_task" and self.faults.strikes("token-misbehaviour"):
            self.world.ecs.ledger.clusters[self.world.cluster].launches.clear()

    def _habits(self, instance: Ec2Instance) -> AgentBehaviour:
        return self.mishaps.habits(instance)

    def _course(self, task: dict[str, Any], instance: Ec2Instance) -> TaskBehaviour:
        return self.mishaps.spoiled(instance) or self.programs.course(task)

    def _price(self, instance_type: str, zone: str, at: float) -> float:
        typical = load_catalogue()[instance_type].typical_spot_usd_per_hour
        return typical * (0.7 + 0.6 * self.world.share("price", instance_type, zone, int(at // 1800)))

    def jump_clocks(self) -> None:
        """Some controllers' clocks may jump."""
        for process in self.deployment.processes:
            if self.faults.strikes("clock-jump", self.shape.pace_s / 3600):
                process.skew_s = self.faults.between(-JUMP_S, JUMP_S)

    def stay_away(self) -> None:
        """Nobody works for hours: what happens meanwhile has to be found out afterwards."""
        self.absent = True
        self.world.run_for(self.shape.absent_s)
        self.auditor.deaf_until = self.world.now

    def _lose_the_store(self) -> None:
        self.boundary.store_down_until = self.world.now + self.faults.between(30, 600)

    def _destroy(self) -> None:
        """Teardown's custom resource: the kill switch, then passes until nothing is left."""
        if self.faults.active:
            self.deployment.kill()
            self.quiet_at = self.world.now + QUIET_S
            self.world.later(20.0, self._free)

    def _free(self) -> None:
        ec2 = verdict.TeardownClient(self.world)
        if free(ec2, "main").clean and self.world.now >= self.quiet_at and not self.destroyed:
            self.destroyed = True
            self.auditor.launching = False
        self.world.later(20.0, self._free)
