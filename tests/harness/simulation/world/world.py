"""A small AWS in which time passes: ECS, EC2 and the agents of its instances on one virtual clock.

Deterministic: the same seed, workload and calls give the same events, ids and times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.ec2.service import Ec2Instance, Ec2Model, Ec2Setup
from argosy.emulator.ecs.service import EcsModel
from argosy.emulator.elbv2 import TargetGroupsModel
from argosy.emulator.region import AwsRegion, counted_ids
from argosy.model.readings import DOCKER_BLOCKS, PULL_SURVIVES, PULL_TOLD
from tests.harness.simulation.world.agent import AgentBehaviour, VirtualAgent
from tests.harness.simulation.world.timeline import Timeline
from tests.harness.simulation.world.virtual_task import TaskBehaviour, Workload

JSON = dict[str, Any]
Sink = Callable[[JSON], None]

CLUSTER = "argosy"
START = 1_800_000_000.0  # 2027-01-15T08:00:00Z: any time will do
DOCKER_BLOCKS_S = 180.0  # under the reading docker-restart-blocks
LOSS_SEEN_S = 5.0  # from the end of an instance until ECS knows it


def target_group_arn(region: str) -> str:
    """For the target group that its owner has made in each Region."""
    return f"arn:aws:elasticloadbalancing:{region}:123456789012:targetgroup/web/0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How tasks and agents behave. Unless `agents` says otherwise, an agent registers after 15 to 30 seconds."""

    workload: Workload = lambda task, instance: TaskBehaviour()
    agents: Callable[[Ec2Instance], AgentBehaviour] | None = None


def share(seed: int, *names: object) -> float:
    """A number in 0..1 that depends on the seed and the names alone: chance without an order of draws.

    A CRC alone gives names that differ in their last characters, such as the tasks of a run, almost the same number.
    """
    mixed = crc32("/".join(map(str, (seed, *names))).encode()) * 0x9E3779B97F4A7C15 % 2**64
    return (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64 / 2**64


class World:
    """A cluster, the EC2 it runs on and the agents between them. Single-threaded.

    `sinks` get every event in order. `workload` may be replaced at any time.
    """

    def __init__(
        self,
        machines: Ec2Setup,
        behaviour: Behaviour | None = None,
        *,
        region: str = "us-east-1",
        seed: int = 0,
        timeline: Timeline | None = None,
    ) -> None:
        """timeline: the clock that the worlds of several Regions share."""
        self.timeline = timeline or Timeline(START)
        self.clock, self.later = self.timeline.clock, self.timeline.later
        self.run_until, self.run_for = self.timeline.run_until, self.timeline.run_for
        self.seed = seed
        self.region = region
        self.cluster = CLUSTER
        self.catalogue = machines.catalogue
        self.events: list[JSON] = []
        """Those since `record_events` was called."""
        self.sinks: list[Sink] = []
        behaviour = behaviour or Behaviour()
        self.workload = behaviour.workload
        self.agent_behaviour = behaviour.agents or self._usual_agent
        self.agents: dict[str, VirtualAgent] = {}
        """By EC2 instance id, from running to terminated."""
        aws = AwsRegion(
            self.clock,
            region,
            emit=self._emit,
            id_source=lambda service: counted_ids(f"{seed}/{service}/{region}"),
        )
        self.readings = aws.readings
        """Contracts of AWS that are read in the less usual way (argosy/emulator/readings.py)."""
        self.ecs = EcsModel(aws)
        self.ec2 = Ec2Model(aws, machines)
        self.elbv2 = TargetGroupsModel(self.ec2.runs)
        self.elbv2.add_group(target_group_arn(region))
        self.ecs.on_work.append(self._call_agent)
        self.ec2.on_running.append(self._boot)
        self.ec2.on_shutting_down.append(self._shut_down_agent)
        self.ec2.on_terminated.append(self._end_agent)
        self.timeline.sources.append(self.ec2)
        self.ecs.create_cluster(clusterName=CLUSTER)

    def record_events(self) -> None:
        """Keep every event from now on in `events`."""
        self.sinks.append(self.events.append)

    @property
    def now(self) -> float:
        """Epoch seconds."""
        return self.timeline.now

    def ecs_client(self, *, strict: bool = True) -> Any:
        """A replacement for boto3.client("ecs")."""
        return SimulatedClient(self.ecs, "ecs", strict=strict, region=self.region)

    def ec2_client(self, *, strict: bool = True) -> Any:
        """A replacement for boto3.client("ec2")."""
        return SimulatedClient(self.ec2, "ec2", strict=strict, region=self.region)

    def add_fleet(self, instance_type: str, zone: str, *, spot: int = 0, on_demand: int = 0, **tags: str) -> str:
        """One fleet for one pool, as the stacks make them; its id."""
        total = {
            "TotalTargetCapacity": spot + on_demand,
            "SpotTargetCapacity": spot,
            "OnDemandTargetCapacity": on_demand,
        }
        pool = {"InstanceType": instance_type, "AvailabilityZone": zone}
        template = {"LaunchTemplateName": "argosy", "Version": "1"}
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        tagging: JSON = {"TagSpecifications": [{"ResourceType": "fleet", "Tags": listed}]} if listed else {}
        reply = self.ec2.create_fleet(
            Type="maintain",
            ExcessCapacityTerminationPolicy="no-termination",
            TargetCapacitySpecification={**total, "DefaultTargetCapacityType": "spot"},
            LaunchTemplateConfigs=[{"LaunchTemplateSpecification": template, "Overrides": [pool]}],
            **tagging,
        )
        return str(reply["FleetId"])

    def interrupt(self, instance_id: str, notice_s: float = 120.0) -> None:
        """EC2 reclaims the spot instance. KeyError; ValueError if it is on-demand."""
        self.ec2.interrupt(instance_id, notice_s)

    def share(self, *names: object) -> float:
        """As `share` of the world's seed."""
        return share(self.seed, *names)

    def _emit(self, message: JSON) -> None:
        for sink in self.sinks:
            sink(message)
        if message["detail-type"] == "EC2 Spot Instance Interruption Warning":
            agent = self.agents.get(message["detail"]["instance-id"])
            if agent is not None:  # agents read the same warning from their instance's metadata
                agent.warn()

    def _usual_agent(self, instance: Ec2Instance) -> AgentBehaviour:
        return AgentBehaviour(register_s=15.0 + 15.0 * self.share("register", instance.instance_id))

    def _as_read(self, behaviour: AgentBehaviour) -> AgentBehaviour:
        if DOCKER_BLOCKS in self.readings:
            behaviour = replace(behaviour, register_s=behaviour.register_s + DOCKER_BLOCKS_S, attributes={})
        pulls_go_on, tells_pulls = PULL_SURVIVES in self.readings, PULL_TOLD in self.readings
        return replace(behaviour, pulls_go_on=pulls_go_on, tells_pulls=tells_pulls)

    def _boot(self, instance: Ec2Instance) -> None:
        agent = VirtualAgent(
            ecs=self.ecs,
            cluster=self.cluster,
            instance=instance,
            machine=self.catalogue[instance.instance_type],
            timetable=self,
            workload=self._workload_now,
            behaviour=self._as_read(self.agent_behaviour(instance)),
        )
        self.agents[instance.instance_id] = agent
        agent.boot()

    def _workload_now(self, task: JSON, instance: Ec2Instance) -> TaskBehaviour:
        """Looked up at each start, because a test may replace the workload in the middle."""
        return self.workload(task, instance)

    def _shut_down_agent(self, instance: Ec2Instance) -> None:
        agent = self.agents.get(instance.instance_id)
        if agent is not None:
            agent.shut_down()

    def _end_agent(self, instance: Ec2Instance) -> None:
        agent = self.agents.pop(instance.instance_id, None)
        if agent is None:
            return
        agent.die()
        if agent.arn:
            self.later(LOSS_SEEN_S, lambda: self.ecs.lose_instance(agent.arn))

    def _call_agent(self, container_instance_arn: str) -> None:
        agent = self.agents.get(self.ecs.ledger.instance(container_instance_arn).ec2_instance_id)
        if agent is not None and agent.arn == container_instance_arn:
            agent.called()
