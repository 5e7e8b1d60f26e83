"""The owner of a trial's deployment: its settings, and deployments during the trial.

The account's quotas, which the settings may name or not, the most tasks on an instance, and new versions of the launch
templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from argosy.emulator.ec2.reservations import BLOCK, BLOCK_ENDS_EARLIER_S, INTERRUPTIBLE, ON_DEMAND
from argosy.emulator.readings import READINGS
from argosy.model.policy import Policy, SparePlaces, VcpuQuota
from argosy.model.readings import DELETED_OVER_LIMIT, DOCKER_BLOCKS
from argosy.model.resources import Resources
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.plan import TrialPlan
from tests.harness.simulation.world.deployed_fleets import add_deleted_fleets, add_image
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.workload import PLAIN_MIB, VCPUS

SPOT_CLASSES = {"standard": "Standard", "g": "G and VT"}  # the quota's names in settings and in EC2
MOST_INSTANCES = 4  # that a quota lets through
MOST_IMAGES = 3
MOST_RESERVATIONS, MOST_RESERVED = 3, 3  # of a trial; instances of one
READ_OTHERWISE = 0.35  # share of readings in a trial that has any
MOST_TASKS, MOST_TASKS_OF = 3, ("*", "c5.*", "g*")  # an instance has 4 vCPUs, so up to 4 tasks fill it


MOST_FIRST = 3  # instances of a first order
MOST_SPARE, MOST_SPARE_CPU, SPARE_GPUS = 4, 1024, 0.2  # places; cpu units of half of one; share of trials with GPUs


class Owner:
    """The owner of a trial."""

    def __init__(self, regions: Regions, faults: Faults) -> None:
        self._regions, self._world, self._faults = regions, regions.home, faults
        self._images = 1

    def policy(self, plan: TrialPlan, largest: int) -> Policy:
        """With the owner's quotas and limits. largest: vCPUs of the largest type."""
        policy = self.set_headroom(replace(plan.policy, max_instances=plan.instances))
        if self._faults.strikes("first-order"):
            policy = replace(policy, first_order=1 + int(MOST_FIRST * self._world.share("first order")))
        return self.set_most_tasks(self.set_quotas(policy, largest))

    def set_headroom(self, policy: Policy) -> Policy:
        """For tasks with and without a GPU."""
        if not self._faults.strikes("headroom"):
            return policy
        share = partial(self._world.share, "headroom")
        needs = Resources(int(MOST_SPARE_CPU * (1 + share("cpu"))), PLAIN_MIB, int(share("gpu") < SPARE_GPUS))
        return replace(policy, headroom=(SparePlaces(1 + int(MOST_SPARE * share("places")), needs),))

    def set_quotas(self, policy: Policy, largest_vcpus: int = VCPUS) -> Policy:
        """EC2's own quota, for the whole trial. Half of the settings name it. largest_vcpus: of an instance."""
        if not self._faults.strikes("quota"):
            return policy
        world, known = self._world, []
        for key, name in SPOT_CLASSES.items():
            vcpus = largest_vcpus * (1 + int(MOST_INSTANCES * world.share("quota", key)))
            world.ec2.set_spot_quota(name, vcpus)
            known.append(VcpuQuota(world.region, "spot", key, vcpus))
        return replace(policy, vcpu_quotas=tuple(known)) if world.share("quota is known") < 0.5 else policy

    def reserve(self, types: Sequence[str], zones: Sequence[str], faulty_s: float) -> None:
        """Capacity Reservations and Capacity Blocks, whose ids the settings name. Others take places of them, some
        begin later, and some end or are cancelled in the phase of faults."""
        self._borrow(types, zones, faulty_s)
        if not self._faults.strikes("reservation"):
            return
        world = self._world
        for number in range(1 + int(MOST_RESERVATIONS * world.share("reservations"))):
            share = partial(world.share, "reservation", number)
            is_block, ends = share("block") < 0.5, share("ends") < 0.7
            lasts_s = faulty_s * (0.3 + share("end")) + (BLOCK_ENDS_EARLIER_S if is_block else 0.0)
            reserved = world.ec2.reserve(
                f"{types[int(len(types) * share('type'))]}/{zones[int(len(zones) * share('zone'))]}",
                1 + int(MOST_RESERVED * share("count")),
                kind=BLOCK if is_block else ON_DEMAND,
                lasts=(
                    world.now + (0.3 * faulty_s * share("start") if share("later") < 0.3 else 0.0),
                    world.now + lasts_s if ends else 0.0,
                ),
            )
            if share("others") < 0.4:
                world.later(faulty_s * share("others come"), partial(setattr, reserved, "taken", 1))
            if share("cancel") < 0.3:
                world.later(faulty_s * share("cancelled"), partial(setattr, reserved, "is_cancelled", True))

    def _borrow(self, types: Sequence[str], zones: Sequence[str], faulty_s: float) -> None:
        """An interruptible Capacity Reservation, whose owner takes places back in the phase of faults."""
        if not self._faults.strikes("reclaimed"):
            return
        world, share = self._world, partial(self._world.share, "lent")
        pool = f"{types[int(len(types) * share('type'))]}/{zones[int(len(zones) * share('zone'))]}"
        lent = world.ec2.reserve(pool, 1 + int(MOST_RESERVED * share("count")), kind=INTERRUPTIBLE)
        for number in range(lent.total):
            if share("back", number) < 0.7:
                world.later(faulty_s * share("at", number), partial(world.ec2.reclaim, lent, 1))

    def set_most_tasks(self, policy: Policy) -> Policy:
        """Of one type, or of all."""
        if not self._faults.strikes("most-tasks"):
            return policy
        world = self._world
        glob = MOST_TASKS_OF[int(len(MOST_TASKS_OF) * world.share("most tasks", "of"))]
        most = 1 + int(MOST_TASKS * world.share("most tasks"))
        return replace(policy, most_tasks_by_type=((glob, most),))

    def read_aws(self) -> None:
        """AWS reads some contracts in the less usual way, everywhere."""
        if not self._faults.strikes("readings"):
            return
        chosen = {name for name in READINGS if self._world.share("reading", name) < READ_OTHERWISE}
        for world in self._regions.worlds:
            world.readings |= chosen

    def mend(self) -> None:
        """Once the faults have ended: an AMI that boots, and fleets again where EC2 has deleted one over its limit."""
        for world in self._regions.worlds:
            world.readings -= {DOCKER_BLOCKS, DELETED_OVER_LIMIT}
            add_deleted_fleets(world)

    def plan_deployments(self, faulty_s: float) -> None:
        """At random times in the phase of faults."""
        if self._faults.strikes("new-image"):
            for number in range(1 + int(MOST_IMAGES * self._world.share("images"))):
                self._world.later(faulty_s * self._world.share("image", number), self._deploy_new_image)

    def _deploy_new_image(self) -> None:
        self._images += 1
        for world in self._regions.worlds:
            add_image(world, f"ami-{self._images}")
        self._faults.note("new-image")
