"""Planted bugs of GPUs that tasks share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from argosy.emulator.ecs import resources as emulated
from argosy.emulator.ecs.records import ContainerInstance, PhysicalGpu, TaskNeeds
from argosy.lifecycle import gpu_resets, health, hosts
from argosy.market.allocation import ways
from argosy.model.events import ContainerInstanceSeen
from argosy.model.instance_types import GPU_SHARING_ATTRIBUTE, XID_ATTRIBUTE, InstanceType
from argosy.model.instances import Instance
from argosy.model.resources import Resources
from argosy.placement.arrays import IntArray
from argosy.placement.demand import Batch
from argosy.placement.gpu_shares import ShareColumns
from argosy.scheduler.supply import roster, rows
from argosy.scheduler.turns import asks
from tests.mutations.catalogue import Patch, planted, scenario, trials

CHOICES = "tests.properties.test_gpu_share_properties"
RESETS = "tests.scenarios.test_gpu_resets"
PARTS = "tests.scenarios.test_gpu_parts"
SICK = "tests.scenarios.test_sick_instances"
ROWS = "tests.unit.scheduler.supply.test_shared_gpus"
UNTROUBLED, OLD_AGENTS = trials(frozenset(), gpu_shares=1.0), trials(frozenset({"no-gpu-sharing"}), gpu_shares=1.0)
REFUSED = "test_no_placed_task_is_refused_for_any_choice_and_any_order"


@planted("a share is counted as if ECS filled one GPU after the other", check=scenario(CHOICES, REFUSED))
def ecs_fills_gpus_in_order(patch: Patch) -> None:
    def room(self: ShareColumns, rows: IntArray, idle: IntArray, share_mib: int) -> IntArray:
        gpus = self.unshared[rows]
        found: IntArray = np.maximum(gpus * self.memory[rows] - self.known[:, rows].sum(axis=0) - self.total[rows], 0)
        return found // share_mib

    patch.setattr(ShareColumns, "room", room)


@planted("a whole GPU is counted although a share may be on it", check=scenario(CHOICES, REFUSED))
def shares_open_no_gpu(patch: Patch) -> None:
    real = ShareColumns.take

    def take(self: ShareColumns, rows: IntArray, counts: IntArray, idle: IntArray, batch: Batch) -> IntArray:
        return real(self, rows, counts, np.zeros_like(idle), batch)

    patch.setattr(ShareColumns, "take", take)


@planted(
    "a task pays for a whole GPU of which it asked for a part",
    check=scenario(ROWS, "test_a_task_pays_for_the_part_of_the_memory_that_it_asked_for"),
)
def a_share_costs_a_gpu(patch: Patch) -> None:
    real = Resources.share_of

    def share_of(self: Resources, total: Resources) -> float:
        whole = self._replace(gpus=self.gpus or int(self.gpu_share_mib > 0), gpu_share_mib=0)
        return real(whole, total)

    patch.setattr(Resources, "share_of", share_of)


@planted(
    "the GPU that ECS names for a task changes nothing",
    check=scenario(ROWS, "test_a_share_may_be_on_any_gpu_until_ecs_says_on_which"),
)
def named_gpus_are_forgotten(patch: Patch) -> None:
    patch.setattr(roster, "on_known_gpus", lambda row, state, uses: row)


@planted("the size of the largest share on a GPU not known is lost", check=scenario(CHOICES, REFUSED))
def every_share_is_like_the_next(patch: Patch) -> None:
    real = ShareColumns.room

    def room(self: ShareColumns, rows: IntArray, idle: IntArray, share_mib: int) -> IntArray:
        return real(replace(self, largest=np.zeros_like(self.largest)), rows, idle, share_mib)

    patch.setattr(ShareColumns, "room", room)


@planted("ECS gives a GPU more shares than it has memory", check=UNTROUBLED)
def ecs_overfills_gpus(patch: Patch) -> None:
    def with_room(instance: ContainerInstance, needs: TaskNeeds) -> list[PhysicalGpu]:
        return [gpu for gpu in instance.gpus.values() if gpu.mode != "DEDICATED"]

    patch.setattr(emulated, "_with_room", with_room)


@planted("ECS shares a GPU that one task has whole", check=UNTROUBLED)
def ecs_shares_whole_gpus(patch: Patch) -> None:
    patch.setattr(PhysicalGpu, "free_mib", property(lambda self: self.total_mib - self.shared_mib))


@planted("GPUs that cannot be shared are shared", check=UNTROUBLED)
def every_gpu_is_shared(patch: Patch) -> None:
    patch.setattr(InstanceType, "shared_gpu_mib", property(lambda self: self.gpu_memory_mib * 15 // 16))


@planted("GPUs are shared although the agent has not said that it can", check=OLD_AGENTS)
def old_agents_share_gpus(patch: Patch) -> None:
    real = hosts._take_resources

    def take(instance: Instance, seen: ContainerInstanceSeen) -> None:
        real(instance, seen)
        if instance.total.gpus:
            instance.gpu_memory_mib, instance.attributes = 15_360, {**instance.attributes, GPU_SHARING_ATTRIBUTE: ""}

    patch.setattr(hosts, "_take_resources", take)


@planted("a task is charged for the reset of its GPU", check=trials(frozenset({"gpu-reset"}), gpu_shares=1.0))
def resets_are_charged(patch: Patch) -> None:
    patch.setattr(gpu_resets, "mark", lambda state, row, policy: None)


@planted(
    "programs that fail alike at once count as ended by the reset of a GPU",
    check=scenario(
        RESETS, "test_programs_that_fail_alike_are_charged_at_once_or_when_they_no_longer_end_together", 3.0, 0
    ),
)
def every_failure_together_is_a_reset(patch: Patch) -> None:
    patch.setattr(gpu_resets, "_are_together", lambda mine, other, policy: abs(mine[0] - other[0]) <= 5.0)


@planted(
    "tasks whose GPU was reset start together again",
    check=scenario(RESETS, "test_they_start_again_one_after_the_other"),
)
def the_reset_start_together(patch: Patch) -> None:
    patch.setattr(gpu_resets, "APART_S", 0.0)


@planted(
    "tasks of several owners share a GPU that ECS chooses",
    check=trials(frozenset({"queue"}), gpu_shares=1.0),
)
def owners_share_gpus(patch: Patch) -> None:
    patch.setattr(ShareColumns, "open_to", lambda self, rows, owner: np.ones(len(rows), dtype=np.bool_))


@planted(
    "an instance forgets whose tasks share its GPUs",
    check=scenario("tests.scenarios.test_shared_gpus", "test_owners_share_no_gpu_and_each_gets_instances_of_its_own"),
)
def owners_of_gpus_are_forgotten(patch: Patch) -> None:
    patch.setattr(rows, "gpu_owner_of", lambda run: 0)


@planted(
    "a part of a GPU counts as a whole one",
    check=scenario(
        "tests.scenarios.test_gpu_parts", "test_a_whole_gpu_is_not_bought_as_a_part_although_that_is_cheaper"
    ),
)
def parts_count_as_whole_gpus(patch: Patch) -> None:
    patch.setattr(asks, "_whole_gpus", lambda run, moment: ())


@planted(
    "an error that NVIDIA's driver logs says nothing about the GPU, so its tasks fail for their user",
    check=scenario(SICK, "test_an_xid_in_the_drivers_log_counts_as_a_broken_gpu_and_is_named_with_its_meaning"),
)
def xids_are_not_read(patch: Patch) -> None:
    patch.setattr(hosts, "driver_fault", lambda attributes: "")


@planted(
    "an error of an application's drains its instance",
    check=scenario(SICK, "test_an_xid_of_an_application_drains_nothing"),
)
def every_xid_is_the_hosts(patch: Patch) -> None:
    patch.setattr(hosts, "driver_fault", lambda attributes: f"Xid {attributes.get(XID_ATTRIBUTE, '')}".rstrip("Xid "))


@planted(
    "shares that are not ours take no memory of GPUs",
    check=scenario(ROWS, "test_shares_that_are_not_ours_take_memory_of_the_gpus_on_which_ecs_shows_them"),
)
def strangers_share_nothing(patch: Patch) -> None:
    patch.setattr(health, "_foreign_shares", lambda _state, _instance, _devices: None)


@planted(
    "shares on several GPUs are bought for as if their memory were one",
    check=scenario(
        "tests.properties.test_shared_buying_properties",
        "test_an_instance_holds_exactly_what_placement_takes_in_any_order",
    ),
)
def several_gpus_are_bought_as_one(patch: Patch) -> None:
    real = ways._ways
    patch.setattr(ways, "_ways", lambda count, memory, need, shares: real(min(count, 1), memory * count, need, shares))
