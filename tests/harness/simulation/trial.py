"""One trial: from a seed to a verdict.

First comes a phase of safety, in which the faults strike. Then comes a phase of liveness, in which the faults have
ended and everything has to end: every run closed, every instance given back, every count exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.service import Ec2Setup, MachineType, PriceFunction
from argosy.emulator.sqs import SqsModel
from argosy.model.suspensions import MOST_S
from tests.harness.simulation.audit.auditor import Auditor
from tests.harness.simulation.audit.facts import TrialResults
from tests.harness.simulation.controllers.controllers import SimulatedController
from tests.harness.simulation.controllers.deployment import SimulatedDeployment, SimulatedServices
from tests.harness.simulation.controllers.invocations import TICK_RULE
from tests.harness.simulation.controllers.recorded import RecordedTrial
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.injection.boundary import HANG_S, LONGEST_FREEZE_S, CallConditions
from tests.harness.simulation.injection.event_path import EventPath
from tests.harness.simulation.injection.machine_faults import MachineDefects, MachineFaults
from tests.harness.simulation.plan import Outline, TrialPlan
from tests.harness.simulation.upkeep.cells import FurtherCell
from tests.harness.simulation.upkeep.owner import Owner
from tests.harness.simulation.upkeep.teardown import SimulatedTeardown
from tests.harness.simulation.upkeep.torn_documents import TornDocuments
from tests.harness.simulation.upkeep.watchdogs import Watchdogs
from tests.harness.simulation.users import crowd
from tests.harness.simulation.users.checkpointers import with_checkpoints
from tests.harness.simulation.users.clock_of_schedules import ClockOfSchedules
from tests.harness.simulation.users.daemon import TrialDaemon
from tests.harness.simulation.users.drains import Drains
from tests.harness.simulation.users.follower import Follower
from tests.harness.simulation.users.gang_users import with_gangs
from tests.harness.simulation.users.gpu_sharers import choose_by_chance, with_gpu_shares, with_gpus_to_share
from tests.harness.simulation.users.kept_size import KeptSize
from tests.harness.simulation.users.reader import Reader
from tests.harness.simulation.users.service import NAME, TrialService
from tests.harness.simulation.users.users import Users
from tests.harness.simulation.verdict import Evidence, Verdict, judged
from tests.harness.simulation.world.deployed_fleets import Bill, add_fleets, add_foreign_fleets
from tests.harness.simulation.world.members import Members
from tests.harness.simulation.world.rate_limits import Buckets
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.timeline import Timeline
from tests.harness.simulation.world.workload import Programs, SimulatedJob
from tests.harness.simulation.world.world import START, Behaviour, World, share

HOME = ("us-east-1", ("us-east-1a", "us-east-1b"))
FURTHER = ("eu-west-1", ("eu-west-1a",))
ANOTHER = 0.25  # the chance that each other controller works in the same step
STAY = 0.3  # share of trials without a lease in which two controllers continue until rest
LEASED = 0.5  # share of trials with a lease: in the others only the commit keeps controllers apart
JUMP_S = 300.0
SKEW_S = 120.0
BUSY_S, IDLE_S = 15.0, 110.0  # between ticks once the faults have ended; a sweep every 120 s leaves ticks without one
ONE_BY_ONE = ("hours", "quota", "tight-hourly-cap")  # with them one instance may be the whole supply
RECORDED = 5  # one of this many trials is recorded and replayed, which takes half of the trial's time again
FREED_S = 1800.0  # how long a trial continues after the faults once the deployment is torn down


class Trial:
    """One seed's world and everything in it. Parts that are built first do not depend on later ones."""

    def __init__(self, plan: TrialPlan) -> None:
        self.plan = plan = with_gpus_to_share(crowd.as_crowd(plan))
        self.faults = faults = crowd.faults_of(plan)
        timeline, catalogue = Timeline(START), load_catalogue()
        self.outline = Outline.drawn(faults, plan)
        self.jobs = {job.run_id: job for job in plan.jobs or _jobs(plan, faults)}
        self.services = SimulatedServices(SqsModel(timeline.clock))
        self.programs = programs = Programs(plan.seed, self.services.s3, self.jobs)
        defects = MachineDefects(faults, timeline, catalogue)
        behaviour = Behaviour(lambda task, at: defects.task(at) or programs.behaviour(task), defects.agent)
        further = (FURTHER,) if faults.strikes("further-cell") else ()
        worlds = [_world(plan.seed, region, zones, behaviour, timeline) for region, zones in (HOME, *further)]
        self.regions, self.world = Regions(*worlds), worlds[0]
        self.owner = Owner(self.regions, faults)
        self.owner.read_aws()
        policy = self.owner.policy(plan, max(catalogue[name].vcpus for name in plan.types))
        self.auditor = Auditor(
            self.regions,
            self.jobs,
            policy,
            one_controller=self.outline.controllers == 1,
            nothing_goes_wrong=not (plan.kinds or plan.script),
            stands_still_s=LONGEST_FREEZE_S * faults.on("freeze") + 4 * HANG_S * faults.on("time-out"),
            clocks_differ_s=2 * (JUMP_S * faults.on("clock-jump") + SKEW_S * faults.on("clock-skew")),
        )
        self.auditor.facts.follow(programs, defects.reset)
        events = EventPath(self.world, self.services.sqs, faults, self._call)
        for world in worlds:
            world.sinks += [self.auditor.hear, events]
        self.bill = Bill(*worlds)
        self.machine_faults = [MachineFaults(world, faults, defects) for world in worlds]
        self.owner.reserve(plan.types, HOME[1], self.outline.faulty_s)
        add_fleets(self.world, plan.types, HOME[1])
        if plan.kinds:
            add_foreign_fleets(self.world, HOME[1][0])
        limits = Buckets(timeline.clock) if plan.rate_limits else None
        conditions = CallConditions(faults, self.auditor, plan.script, limits, plan.strict, interleaved=True)
        on_error = partial(self.auditor.facts.violated, "tick")
        self.deployment = SimulatedDeployment(
            self.regions, self.services, policy, conditions, on_error, self.auditor.ticked
        )
        self.auditor.facts.is_quiet = lambda: self.deployment.awaits_minute
        self.deployment.invocations.lease_holds = share(plan.seed, "lease") < LEASED
        self.recorded = self.deployment.recorded = RecordedTrial() if plan.seed % RECORDED == 0 else None
        self.controllers = self._add_controllers()
        self.teardown = SimulatedTeardown(self.deployment, self.auditor)
        self.cell = FurtherCell(self.deployment, worlds[1], plan.types, faults) if further else None
        self.watchdogs = Watchdogs(self.deployment, self.cell, self._watchdog_said)
        self.torn_documents = TornDocuments(self.deployment, self.auditor.facts, faults)
        kinds_of_retry = {"retry": faults.strikes("retry"), "choose": crowd.is_crowd(plan)}
        self.users = Users(self.deployment, self.jobs, self.auditor.stored, **kinds_of_retry)
        self.service = TrialService(self.deployment, self.auditor.facts, plan.seed)
        self.queues = crowd.queues_of(plan, self.deployment, faults, self.users.ask_later)
        self.kept_size = KeptSize(self.users, self.deployment, faults, self.auditor.facts, plan.types)
        self.clock = None
        if share(plan.seed, "schedule") < plan.schedules:
            self.clock = ClockOfSchedules(self.deployment, self.jobs, self.auditor.facts)
        self.daemon = TrialDaemon(self.deployment, self.auditor.facts, plan.seed)
        self.follower = Follower(self.deployment.store, self.world)
        self.reader = Reader(self.deployment, self.jobs, self.auditor.facts)
        self.started_at = self.faults_ended_at = timeline.now
        self._was_absent = False

    def run(self) -> Verdict:
        """Both phases, until rest or the first violation."""
        with self.auditor.listening_to_the_log():
            self.run_faulty_phase()
            self.end_faults()
            self._run_to_rest()
        for fault in self.recorded.faults() if self.recorded else ():
            self.auditor.facts.violated("replay", fault)
        return judged(self._evidence())

    def run_faulty_phase(self) -> None:
        """The faults strike, and users submit, cancel and retry."""
        world, outline, seed = self.world, self.outline, self.plan.seed
        self.deployment.members = Members(seed, share(seed, "members") < self.plan.members)
        self.auditor.facts.came = self.deployment.members.came
        if self.cell is not None:
            self.cell.begin(self.auditor, outline.faulty_s)
        self.watchdogs.begin()
        for machines in self.machine_faults:
            machines.begin()
        self.auditor.stored.sharing = self.queues.plan(outline.faulty_s)  # no commit writes this document
        self.users.submit(outline.faulty_s)
        if self.clock is not None:
            self.clock.begin(outline.faulty_s)
        self.owner.plan_deployments(outline.faulty_s)
        if self.faults.strikes("service"):
            self.service.plan(outline.faulty_s, crowd.terms_of_service(self.plan))
        self.kept_size.plan(outline.faulty_s)
        Drains(self.users.ask_later, self.auditor.facts, self.faults).plan(outline.faulty_s)
        if self.faults.strikes("daemon"):
            self.daemon.plan(outline.faulty_s)
        self.torn_documents.plan(outline.faulty_s)
        self._schedule_incidents()
        until = self.started_at + outline.faulty_s
        while world.now < until and self.plan.kinds and not self.auditor.violations:
            if world.now - self.started_at >= outline.absent_at and not self._was_absent:
                self.be_absent()
                until += outline.absent_s
            self.jump_clocks()
            self._step(self.faults.between(0.3, 1.7) * outline.pace_s, all_controllers=False)

    def end_faults(self) -> None:
        """From now on nothing fails any more, and one controller works; in some trials without a lease, two."""
        self.faults_ended_at = self.world.now
        self.auditor.faults_ended()
        self.faults.active = False
        self.deployment.boundary.store_down_until = 0.0
        self.programs.good = bool(self.plan.kinds)
        if self.clock is not None:
            self.clock.end()
        for machines in self.machine_faults:
            machines.end()
        self.owner.mend()
        stay = not self.deployment.lease_holds and share(self.plan.seed, "controllers stay") < STAY
        self.deployment.keep_controllers(2 if stay else 1, upgrade=self.outline.current > 0)
        self.service.leave_alone()
        self.daemon.leave_alone()

    def jump_clocks(self) -> None:
        """The clocks of some controllers jump, forward or back."""
        for controller in self.deployment.controllers:
            if self.faults.strikes("clock-jump", self.outline.pace_s / 3600):
                controller.skew_s = self.faults.between(-JUMP_S, JUMP_S)

    def be_absent(self) -> None:
        """No controller works for hours: afterwards they have to find out the events of that time."""
        self._was_absent = True
        self.world.run_for(self.outline.absent_s)
        self.auditor.nobody_worked()

    def _add_controllers(self) -> list[SimulatedController]:
        skewed = self.faults.on("clock-skew")
        self.faults.seen["clock-skew"] += skewed
        current = self.outline.current or self.outline.controllers
        return [
            self.deployment.add_controller(
                self.faults.between(-SKEW_S, SKEW_S) if skewed else 0.0, is_next=number >= current
            )
            for number in range(self.outline.controllers)
        ]

    def _schedule_incidents(self) -> None:
        """A store that does not answer, a teardown, a user who loses patience: each at its own time."""
        faults, later, faulty_s = self.faults, self.world.later, self.outline.faulty_s
        if faults.strikes("store-outage"):
            later(faults.between(0.05, 0.6) * faulty_s, self._lose_the_store)
        if faults.strikes("destroy"):
            later(faults.between(10, faulty_s), self._tear_down)
        if faults.strikes("tick-disabled"):
            later(share(self.plan.seed, "update") * faulty_s, self._disable_tick)
        self.users.cancel_later(faults, faulty_s)
        self.users.cancel_tasks_later(faults, faulty_s)
        if crowd.is_crowd(self.plan) or share(self.plan.seed, "updates") < self.plan.updates:
            self.users.change_later(faulty_s, has_queues=faults.on("queue"))

    def _watchdog_said(self, who: str, told: Mapping[str, Any]) -> None:
        self.auditor.trail.add(self.world.now, who, dict(told))

    def _disable_tick(self) -> None:
        """CloudFormation resets the rule to the template, where a new version has changed it."""
        self.services.bus.enabled.discard(TICK_RULE)

    def _call(self) -> None:
        self.deployment.call()

    def _lose_the_store(self) -> None:
        self.deployment.boundary.store_down_until = self.world.now + self.faults.between(30, 600)

    def _tear_down(self) -> None:
        if self.faults.active:
            self.teardown.begin()

    def _step(self, seconds: float, *, all_controllers: bool = True) -> None:
        """Users send their requests, one or all controllers work, and then time passes."""
        self.users.act()
        self.service.ask()
        self.daemon.ask()
        if self.clock is not None and not self.teardown.begun:
            self.clock.act()
        controllers = self.deployment.controllers
        chosen = int(self.faults.between(0, len(controllers)))
        for number, controller in enumerate(controllers):
            if all_controllers or number == chosen or self.faults.between(0, 1) < ANOTHER:
                self.deployment.tick(controller)
        self.deployment.pass_time(seconds)
        self.auditor.time_passed()
        self.follower.step()
        self.reader.step()
        if self.faults.active and not self.teardown.complete:
            self.users.try_again()

    def _run_to_rest(self) -> None:
        pause_s, limit_s, since = BUSY_S, self.plan.limit_s, self.faults_ended_at
        if any(self.faults.seen[kind] for kind in ONE_BY_ONE) or crowd.is_pressed(self.plan):
            limit_s += sum(job.tasks * max(job.longest_s, job.longest_attempt_s) for job in self.jobs.values())
        if self.faults.seen["torn-document"]:
            limit_s += MOST_S  # what cannot be read stays suspended for this long before it is given up
        while not self.auditor.violations:
            self._step(pause_s)
            self.service.act(self.auditor.environments.is_settled(NAME))
            self.kept_size.act()
            self.daemon.act(self._are_others_done)
            busy = any(controller.busy for controller in self.deployment.controllers)
            pause_s = BUSY_S if busy else min(IDLE_S, 2 * pause_s)
            if self._is_over():
                if not self._is_asked_for_more():
                    self.follower.read_to_the_end()
                    self.auditor.journal.compare(self.follower.seen)
                    self.auditor.at_rest(self._rest())
                    return
                since = self.world.now  # what is asked for again may take as long again
            if self.world.now - since > limit_s:
                self.auditor.not_over(f"not over after {limit_s:.0f} s without faults")

    def _is_over(self) -> bool:
        if self.teardown.complete:
            return self.world.now - self.faults_ended_at > FREED_S
        if self.teardown.begun:
            return False
        if self.cell is not None and not self.cell.is_settled:
            return False
        if not (self._are_others_done and self.daemon.is_over):
            return False
        return len(self.auditor.stored.records) == len(self.jobs) and self.deployment.is_at_rest

    @property
    def _are_others_done(self) -> bool:
        """Whether services, the minimum size and schedules have nothing left to do."""
        is_done = self.service.is_over and self.kept_size.is_over
        return is_done and (self.clock is None or self.clock.is_done)

    def _is_asked_for_more(self) -> bool:
        """Even when everything is at rest and has been forgotten, a user may want more of a run."""
        return not self.teardown.complete and self.users.try_again()

    def _rest(self) -> TrialResults:
        absent_s = self.outline.absent_s if self._was_absent else 0.0
        return TrialResults(self.services.s3.objects, self.bill, absent_s, len(self.deployment.controllers))

    def _evidence(self) -> Evidence:
        return Evidence(
            seed=self.plan.seed,
            regions=self.regions,
            jobs=self.jobs,
            auditor=self.auditor,
            bill=self.bill,
            controllers=self.controllers,
            faults_seen=self.faults.seen,
            calls=self.deployment.boundary.calls,
            started_at=self.started_at,
            faults_ended_at=self.faults_ended_at,
            write_units=self.services.dynamodb.write_units,
            retries=self.users.retries,
            followers_deaths=self.follower.deaths,
        )


def _jobs(plan: TrialPlan, faults: Faults) -> list[SimulatedJob]:
    jobs = with_checkpoints(with_gpu_shares(crowd.jobs_of(plan, faults), plan), plan)
    return with_gangs(jobs, plan, faults)


def _world(seed: int, region: str, zones: tuple[str, ...], behaviour: Behaviour, timeline: Timeline) -> World:
    catalogue = load_catalogue(region)
    machines = Ec2Setup(catalogue, zones, _prices(seed, catalogue))
    world = World(machines, behaviour, region=region, seed=seed, timeline=timeline)
    choose_by_chance(world, seed)
    return world


def _prices(seed: int, catalogue: Mapping[str, MachineType]) -> PriceFunction:
    """Spot prices between 70 and 130 % of the typical one, new every half hour. In half of the trials with a further
    cell
    they are lower there.
    """
    is_cheap = share(seed, "the further cell is cheap") < 0.5

    def price(instance_type: str, zone: str, at: float) -> float:
        change = 0.7 + 0.6 * share(seed, "price", instance_type, zone, int(at // 1800))
        if is_cheap and zone in FURTHER[1]:
            change *= 0.5
        return catalogue[instance_type].typical_spot_usd_per_hour * change

    return price
