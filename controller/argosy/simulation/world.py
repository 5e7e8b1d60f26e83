"""What happens in a small AWS when time passes? ECS, EC2 and the agents of its instances on one virtual clock.

Deterministic: the same seed, workload and calls give the same events, ids and times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.ec2.service import Ec2Instance, Ec2Model, MachineType, PriceFunction
from argosy.emulator.ecs.service import EcsModel
from argosy.emulator.ids import counted_ids
from argosy.simulation.agent import Course, Habits, VirtualAgent, Workload
from argosy.simulation.timeline import Timeline

JSON = dict[str, Any]
Sink = Callable[[JSON], None]

START = 1_800_000_000.0  # 2027-01-15T08:00:00Z: any moment will do
LOSS_SEEN_S = 5.0  # from the end of an instance to ECS knowing it


class World:
    """A cluster, the EC2 it runs on and the agents between them. Single-threaded.

    `workload` decides what becomes of each task, `habits` how each instance's agent behaves; `sinks` get every event in
    order. `events` keeps them all unless `keep_events` is False.
    """

    def __init__(  # noqa: PLR0913 - a composition root: each argument is one fact of this world
        self,
        *,
        catalogue: Mapping[str, MachineType],
        seed: int = 0,
        cluster: str = "argosy",
        region: str = "us-east-1",
        account: str = "123456789012",
        zones: Sequence[str] = ("us-east-1a", "us-east-1b", "us-east-1c"),
        workload: Workload | None = None,
        habits: Callable[[Ec2Instance], Habits] | None = None,
        prices: PriceFunction | None = None,
        boot_s: float = 30.0,
        sinks: Sequence[Sink] = (),
        start: float = START,
        keep_events: bool = True,
        timeline: Timeline | None = None,
    ) -> None:
        """timeline: the clock that worlds of several Regions share."""
        self.timeline = timeline or Timeline(start)
        self.moment, self.later = self.timeline.moment, self.timeline.later
        self.run_until, self.run_for = self.timeline.run_until, self.timeline.run_for
        self.seed = seed
        self.cluster = cluster
        self.catalogue = catalogue
        self.region = region
        self.events: list[JSON] = []
        self.sinks: list[Sink] = [*([self.events.append] if keep_events else []), *sinks]
        self.workload: Workload = workload or (lambda task, instance: Course())
        self.habits = habits or self._usual_habits
        self.agents: dict[str, VirtualAgent] = {}
        """By EC2 instance id, from running to terminated."""
        clouds: Any = {"now": self.moment, "region": region, "account": account, "emit": self._emit}
        self.ecs = EcsModel(**clouds, new_id=counted_ids(f"{seed}/ecs/{region}"))
        self.ec2 = Ec2Model(
            **clouds,
            catalogue=catalogue,
            zones=zones,
            boot_s=boot_s,
            prices=prices,
            new_id=counted_ids(f"{seed}/ec2/{region}"),
        )
        self.ecs.on_work.append(self._call_agent)
        self.ec2.on_running.append(self._boot)
        self.ec2.on_terminated.append(self._bury)
        self.timeline.sources.append(self.ec2)
        self.ecs.create_cluster(clusterName=cluster)

    @property
    def now(self) -> float:
        """Epoch seconds."""
        return self.timeline.now

    def ecs_client(self, *, strict: bool = True) -> Any:
        """A stand-in for boto3.client("ecs")."""
        return SimulatedClient(self.ecs, "ecs", strict=strict, region=self.region)

    def ec2_client(self, *, strict: bool = True) -> Any:
        """A stand-in for boto3.client("ec2")."""
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
        """A number in 0..1 that depends on the seed and the names alone: chance without an order of draws."""
        return crc32("/".join(map(str, (self.seed, *names))).encode()) / 2**32

    def _emit(self, message: JSON) -> None:
        for sink in self.sinks:
            sink(message)
        if message["detail-type"] == "EC2 Spot Instance Interruption Warning":
            agent = self.agents.get(message["detail"]["instance-id"])
            if agent is not None:  # agents read the same warning from their instance's metadata
                agent.warn()

    def _usual_habits(self, instance: Ec2Instance) -> Habits:
        return Habits(register_s=15.0 + 15.0 * self.share("register", instance.instance_id))

    def _boot(self, instance: Ec2Instance) -> None:
        agent = VirtualAgent(
            ecs=self.ecs,
            cluster=self.cluster,
            instance=instance,
            machine=self.catalogue[instance.instance_type],
            timetable=self,
            workload=self._workload_now,
            habits=self.habits(instance),
        )
        self.agents[instance.instance_id] = agent
        agent.boot()

    def _workload_now(self, task: JSON, instance: Ec2Instance) -> Course:
        """Looked up late, so that a test may change its mind in the middle."""
        return self.workload(task, instance)

    def _bury(self, instance: Ec2Instance) -> None:
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
