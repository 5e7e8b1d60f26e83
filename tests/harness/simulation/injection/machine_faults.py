"""Faults of the simulated machines: some are defective, and others fail as time passes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from zlib import crc32

from argosy.emulator.ec2.records import MachineType
from argosy.emulator.ec2.service import Ec2Instance
from argosy.model.policy import Policy
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.world.agent import WITH_RUNNER, AgentBehaviour, VirtualAgent
from tests.harness.simulation.world.deployed_fleets import is_ours, is_steered
from tests.harness.simulation.world.timeline import Timeline
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import World

LOOK_EVERY_S = 30.0
CHECKS = ("CONTAINER_RUNTIME", "AGENT_CONNECTIVITY", "system")  # the last is EC2's
SAID_WITHIN_S = 45.0
SHUTDOWN_CODES = (143, 137, 1)
PULL_ERRORS = (  # in the agent's words (aws.md 9.6; reliability.md rows 48 and 49)
    "CannotPullContainerError: pull image manifest has been retried 5 time(s): toomanyrequests: Rate exceeded",
    "CannotPullContainerError: failed to register layer: write /usr/lib/x.so: no space left on device",
)


RESET_CODES = (1, 134, 139)  # a traceback, SIGABRT and SIGSEGV: CUDA reports the same error to all
LASTED_S = Policy().quick_failure_s  # as soon as this, programs that cannot run fail together as well
RESET_TAKES_S = 2.0  # until the last of its tasks has ended
UNTOLD = ("events-lost", "events-late", "events-reordered", "partition", "absence", "freeze", "listing-lag")


class MachineDefects:
    """Which instances are defective, and how agents and tasks behave there."""

    def __init__(self, faults: Faults, timeline: Timeline, catalogue: Mapping[str, MachineType]) -> None:
        self._faults, self._timeline, self._catalogue = faults, timeline, catalogue
        self.black_holes: set[str] = set()
        """Instances on which every task fails at once."""
        self._no_pulls: dict[str, float] = {}
        """Pools on whose instances no image can be pulled, and until when."""
        self.reset: set[str] = set()
        """Ids of tasks that ended because a GPU was reset that they shared, where ECS soon says so."""

    def agent(self, instance: Ec2Instance) -> AgentBehaviour:
        """How the agent of a new instance behaves."""
        gpus = self._catalogue[instance.instance_type].gpus
        if self._faults.strikes("black-hole"):
            self.black_holes.add(instance.instance_id)
        return AgentBehaviour(
            register_s=self._faults.between(10, 40),
            registers=not self._faults.strikes("no-register"),
            gpus=0 if gpus and self._faults.strikes("bad-gpu") else None,
            shares_gpus=not (gpus and self._faults.strikes("no-gpu-sharing")),
            attributes={} if self._faults.strikes("no-runner") else WITH_RUNNER,
            shutdown_code=self._shutdown_code(instance) if self._faults.strikes("os-shutdown") else None,
        )

    def _shutdown_code(self, instance: Ec2Instance) -> int:
        """SIGTERM, SIGKILL, or the program's answer to SIGTERM."""
        return SHUTDOWN_CODES[crc32(instance.instance_id.encode()) % len(SHUTDOWN_CODES)]

    def task(self, instance: Ec2Instance) -> TaskBehaviour | None:
        """How every task behaves on this instance, whatever its program does; None if the instance is sound."""
        if instance.instance_id in self.black_holes and self._faults.active:
            return TaskBehaviour(duration_s=1.0, exit_code=1, reason="CUDA_ERROR_UNKNOWN")
        if self._faults.active and self._timeline.now < self._no_pulls.get(instance.pool.name, 0.0):
            return TaskBehaviour(pull_s=5.0, cannot_start=self._pull_error())
        if self._faults.strikes("stuck"):
            return TaskBehaviour(pull_s=float("inf"))
        return None

    def refuse_pulls(self, pool: str, seconds: float) -> None:
        """The registry refuses every instance of the pool."""
        self._no_pulls[pool] = self._timeline.now + seconds

    def _pull_error(self) -> str:
        return PULL_ERRORS[int(self._faults.between(0, len(PULL_ERRORS)))]


class MachineFaults:
    """The faults of a world's instances while they are active, from `begin` on."""

    def __init__(self, world: World, faults: Faults, defects: MachineDefects) -> None:
        self._world, self._faults, self._defects = world, faults, defects

    def begin(self) -> None:
        self._world.later(LOOK_EVERY_S, self._look)
        if self._faults.strikes("storm"):
            for _ in range(1 + int(self._faults.between(0, 3))):
                self._world.later(self._faults.between(100, 600), self._storm)
        if self._faults.strikes("pull-storm"):
            self._world.later(self._faults.between(40, 400), self._refuse_pulls)
        for pool in self._pools():
            if self._faults.strikes("shortage"):
                self._short(pool, self._faults.between(0, 300))
        if self._faults.strikes("fleet-replaced"):
            self._world.later(self._faults.between(30, 900), self._replace_fleet)

    def end(self) -> None:
        """Every shortage is over. Agents that are cut off for good stay so."""
        for pool in self._pools():
            self._world.ec2.set_shortage(pool, None)

    def _look(self) -> None:
        """Each instance may be struck."""
        if not self._faults.active:
            return
        share = LOOK_EVERY_S / 3600.0
        for instance in list(self._world.ec2.ledger.instances.values()):
            if instance.state == "running" and is_ours(self._world, instance):
                self._strike(instance, share)
        self._world.later(LOOK_EVERY_S, self._look)

    def _strike(self, instance: Ec2Instance, share: float) -> None:
        if instance.purchase == "spot" and self._faults.strikes("interruption", share):
            self._world.interrupt(instance.instance_id)
        if self._faults.strikes("rebalance", share):
            self._world.ec2.recommend_rebalance(instance.instance_id)
        if self._faults.strikes("partition", share):
            self._cut_off(instance.instance_id)
        if self._faults.strikes("deregistered", share):
            self._deregister(instance)
        if self._faults.strikes("host-loss", share):
            self._world.ec2.lose(instance.instance_id)
        agent = self._world.agents.get(instance.instance_id)
        if agent is not None and agent.gpus_left and self._faults.strikes("sick-gpu", share):
            agent.break_gpu(self._faults.between(0, SAID_WITHIN_S))
        if agent is not None and agent.gpus_left and self._faults.strikes("xid", share):
            agent.break_gpu(self._world.share("xid", instance.instance_id) * SAID_WITHIN_S, by_driver=True)
        if agent is not None and agent.arn and self._faults.strikes("sick-host", share):
            self._fail_a_check(agent)
        self._strike_gpu(instance.instance_id, share)

    def _fail_a_check(self, agent: VirtualAgent) -> None:
        """What runs there runs on."""
        check = CHECKS[int(self._faults.between(0, len(CHECKS)))]

        def say(fails: bool) -> None:
            if check == "system":
                self._world.ec2.set_failed_checks(agent.instance.instance_id, *([check] if fails else []))
            elif agent.alive:
                status, reason = ("IMPAIRED", "it does not answer") if fails else ("OK", None)
                self._world.ecs.check_health(agent.arn, check, status, reason)

        say(True)
        minutes = self._faults.between(0.5, 25)
        if minutes < 15:  # the others stay sick
            self._world.later(60 * minutes, partial(say, False))

    def _strike_gpu(self, instance_id: str, share: float) -> None:
        """One of those that tasks share, if there is one."""
        agent = self._world.agents.get(instance_id)
        gpus = sorted({task.gpu_shared for task in agent.tasks.values()} - {""}) if agent else []
        if gpus and self._faults.strikes("gpu-reset", share):
            self._reset(instance_id, gpus[int(len(gpus) * self._world.share("reset", self._world.now, instance_id))])

    def _reset(self, instance_id: str, gpu: str) -> None:
        """MPS fails every task on the GPU, whichever of them has caused it."""
        agent = self._world.agents[instance_id]
        hit = [task for task in agent.tasks.values() if task.gpu_shared == gpu]
        lasted = any(self._world.now - task.started_at >= LASTED_S for task in hit)
        if len(hit) > 1 and lasted and not any(map(self._faults.on, UNTOLD)):
            self._defects.reset |= {task.arn.rpartition("/")[2] for task in hit}
        for task in hit:
            chance = self._world.share("reset", task.arn)
            code = RESET_CODES[int(len(RESET_CODES) * chance)]
            self._world.later(RESET_TAKES_S * chance, partial(task.fail, code, "CUDA error: the GPU was reset"))

    def _deregister(self, instance: Ec2Instance) -> None:
        """By hand. Not where tasks run: they would continue as orphans that no agent reports."""
        cluster = self._world.ecs.ledger.clusters[self._world.cluster]
        for member in list(cluster.instances.values()):
            if member.ec2_instance_id == instance.instance_id and member.status == "ACTIVE" and not member.tasks:
                self._world.ecs.deregister_container_instance(
                    cluster=self._world.cluster, containerInstance=member.arn, force=True
                )

    def _replace_fleet(self) -> None:
        """Like CloudFormation: the new fleet exists before the old one is deleted."""
        fleets = [each for each in self._world.ec2.ledger.fleets.values() if is_steered(each)]
        if not self._faults.active or not fleets:
            return
        old = max(fleets, key=lambda each: len(each.members))
        (pool,) = old.pools
        tags: dict[str, Any] = dict(old.tags)
        self._world.add_fleet(pool.instance_type, pool.zone, **tags)
        self._world.ec2.delete_fleets(FleetIds=[old.fleet_id], TerminateInstances=False)

    def _cut_off(self, instance_id: str) -> None:
        agent = self._world.agents.get(instance_id)
        if agent is None or not agent.connected:
            return
        agent.disconnect()

        def heal() -> None:
            if agent.alive and not agent.connected:
                agent.reconnect()

        minutes = self._faults.between(0.5, 40)
        if minutes < 20:  # the others never come back
            self._world.later(60 * minutes, heal)

    def _storm(self) -> None:
        """Every spot instance of the pool that has most of them."""
        _, instances = self._largest_pool()
        for instance in instances if self._faults.active else []:
            self._world.interrupt(instance.instance_id)

    def _refuse_pulls(self) -> None:
        """In the pool that has most instances."""
        pool, _ = self._largest_pool()
        self._defects.refuse_pulls(pool, self._faults.between(60, 600))

    def _largest_pool(self) -> tuple[str, list[Ec2Instance]]:
        every = self._world.ec2.ledger.instances.values()
        alive = [each for each in every if each.alive and each.purchase == "spot"]
        pools = [each.pool.name for each in alive]
        largest = max(sorted(set(pools)), key=pools.count, default="")
        return largest, [each for each in alive if each.pool.name == largest]

    def _short(self, pool: str, delay_s: float) -> None:
        def over() -> None:
            self._world.ec2.set_shortage(pool, None)

        def begin() -> None:
            if self._faults.active:
                self._world.ec2.set_shortage(pool, int(self._faults.between(0, 2)))
                self._world.later(self._faults.between(200, 900), over)

        self._world.later(delay_s, begin)

    def _pools(self) -> list[str]:
        return [pool.name for fleet in self._world.ec2.ledger.fleets.values() for pool in fleet.pools]
