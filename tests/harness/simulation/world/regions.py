"""Instances, fleets, agents and tasks of all Regions of a trial, found by their ids."""

from __future__ import annotations

from argosy.emulator.ec2.records import Ec2Fleet, Ec2Instance
from argosy.emulator.ecs.records import EcsTask
from tests.harness.simulation.world.agent import VirtualAgent
from tests.harness.simulation.world.deployed_fleets import is_ours
from tests.harness.simulation.world.world import World


class Regions:
    """Home's world and those of further cells, which share home's clock."""

    def __init__(self, home: World, *further: World) -> None:
        self.home, self.worlds = home, (home, *further)
        self.catalogue = home.catalogue

    @property
    def now(self) -> float:
        """Epoch seconds."""
        return self.home.now

    def of(self, region: str) -> World:
        return next(world for world in self.worlds if world.region == region)

    def instances(self) -> list[Ec2Instance]:
        return [each for world in self.worlds for each in world.ec2.ledger.instances.values()]

    def ours(self) -> list[Ec2Instance]:
        """Those of the deployment's fleets that are alive."""
        return [each for each in self.instances() if each.alive and self.is_ours(each)]

    def find(self, instance_id: str) -> Ec2Instance | None:
        return next((each for each in self.instances() if each.instance_id == instance_id), None)

    def is_ours(self, instance: Ec2Instance) -> bool:
        return is_ours(self.of(instance.zone[:-1]), instance)

    def fleets(self) -> list[Ec2Fleet]:
        return [each for world in self.worlds for each in world.ec2.ledger.fleets.values()]

    def fleet(self, fleet_id: str) -> Ec2Fleet:
        return next(each for each in self.fleets() if each.fleet_id == fleet_id)

    def agent(self, instance_id: str) -> VirtualAgent | None:
        """None unless its instance runs."""
        return next((world.agents[instance_id] for world in self.worlds if instance_id in world.agents), None)

    def task(self, arn: str) -> EcsTask | None:
        found = (world.ecs.ledger.clusters[world.cluster].tasks.get(arn) for world in self.worlds)
        return next((task for task in found if task is not None), None)

    def task_by_id(self, task_id: str) -> EcsTask | None:
        """By the last part of its ARN."""
        found = (world.ecs.ledger.find_task(world.ecs.ledger.clusters[world.cluster], task_id) for world in self.worlds)
        return next((task for task in found if task is not None), None)

    def host_of(self, container_instance_arn: str) -> Ec2Instance | None:
        """The instance that registered under this ARN, as long as ECS lists it."""
        for world in self.worlds:
            member = world.ecs.ledger.known_instance(container_instance_arn)
            if member is not None:
                return world.ec2.ledger.instances.get(member.ec2_instance_id)
        return None
