"""How does the controller perform at full size?

It plays one huge run over several cells and thousands of instances. Controller, adapters and the models of ECS, EC2,
DynamoDB and S3 are those of every trial. Some things are left out, so that a million tasks end within minutes: faults
at each call, the check of every call, JSON between EventBridge and the queue (`calls`), and the events by which ECS
reports what is free on an instance whenever a task starts or ends there, which give the controller nothing new. A
census counts the real tasks instead, and at the end the manifest is read entry by entry (`report`).
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from argosy.api.reading import appended
from argosy.aws.call_rates import CallRates
from argosy.aws.cell import PART_SIZE, Cell, Coordination, HomeClients
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.executor import AwsExecutor
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.dynamodb import DynamoModel
from argosy.emulator.ec2.service import Ec2Setup
from argosy.engine.tick import Engine
from argosy.model import inbox
from argosy.model.policy import Policy
from tests.harness.simulation.controllers.deployment import DEPLOYMENT, TABLE
from tests.harness.simulation.controllers.recorded import RecordedTrial
from tests.harness.simulation.scale.calls import DirectQueue, TimedCalls
from tests.harness.simulation.scale.census import Census
from tests.harness.simulation.world.bus import BusModel
from tests.harness.simulation.world.deployed_fleets import Bill, add_fleets
from tests.harness.simulation.world.s3 import S3Model
from tests.harness.simulation.world.timeline import Timeline
from tests.harness.simulation.world.workload import SimulatedJob
from tests.harness.simulation.world.world import START, World

JSON = dict[str, Any]

REGIONS = (
    "us-east-1",
    "us-west-2",
    "eu-west-1",
    "eu-central-1",
    "us-east-2",
    "ap-northeast-1",
    "eu-north-1",
    "sa-east-1",
)
INSTANCE_TYPE = "c5.xlarge"  # four tasks of one vCPU
SHORTEST_S, LONGEST_S = 30.0, 70.0  # of a task
INTERRUPTED_PER_HOUR = 0.2  # of the instances
LOOK_EVERY_S = 30.0
DECIDING_S = 1.2  # virtual time of a tick, for the real time of loading, deciding and committing
LIMIT_S = 7 * 86_400.0
RARELY = (100_000, 50, 1_000)  # of the garbage collector


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the run. interrupted_per_hour: share of instances. invocation_s: the time after which a controller
    ends, and the next one begins from the stored state.
    """

    tasks: int = 1_000_000
    instances: int = 5_000
    cells: int = 8
    seed: int = 0
    interrupted_per_hour: float = INTERRUPTED_PER_HOUR
    invocation_s: float = 870.0  # Lambda ends it after 15 minutes


class ScaleRun:
    """One run at size; `run` plays it to its end. recorded: receives what the controller records, if given."""

    def __init__(self, size: Size, recorded: RecordedTrial | None = None) -> None:
        self.size, self.recorded = size, recorded
        self.timeline = Timeline(START)
        self.aws_calls = TimedCalls(self.timeline, size.cells)
        self.queue = DirectQueue()
        self.census = Census(size.tasks, SHORTEST_S, LONGEST_S)
        self.worlds = [self._world(region) for region in REGIONS[: size.cells]]
        self.bills = [Bill(world) for world in self.worlds]
        self.dynamodb, self.s3 = DynamoModel(), S3Model()
        self.job = _job(size)
        self.engine = self._engine()
        self.tick_s: list[float] = []
        """CPU time of each tick, without that of the simulated AWS."""
        self.busy_s = 0.0
        """Virtual time in which a cell had both tasks to start and room for them, tick by tick, over all cells."""
        self.busy_launches = 0
        self.warned = 0
        self.began_at = self.invoked_at = self.timeline.now
        self.took_s = self.cpu_s = 0.0
        """Real time, with that of the simulation."""

    def run(self) -> None:
        """Run until rest. Raises TimeoutError after a week of virtual time."""
        began, cpu_began = time.perf_counter(), time.process_time()
        usual = gc.get_threshold()
        gc.set_threshold(*RARELY)  # it would scan millions of records that stay
        try:
            self._run()
        finally:
            gc.set_threshold(*usual)
        self.took_s, self.cpu_s = time.perf_counter() - began, time.process_time() - cpu_began

    def _run(self) -> None:
        request = self.job.request(self.timeline.now)
        key = (inbox.INBOX, inbox.inbox_key(self.timeline.now, self.job.run_id))
        DynamoStore(self.dynamodb, TABLE).create({key: inbox.to_bytes(request)})
        self.timeline.later(LOOK_EVERY_S, self._interrupt)
        at_rest, submitted = False, False
        while not at_rest or not submitted:
            at_rest = self._tick()
            submitted = submitted or bool(self.engine.state and self.engine.state.next_run > 1)
            if self.timeline.now - START > LIMIT_S:
                raise TimeoutError(f"not over after {LIMIT_S / 86_400:.0f} days")

    def _tick(self) -> bool:
        at, launches, could_launch = self.timeline.now, self.census.launches.copy(), self._could_launch()
        if at - self.invoked_at > self.size.invocation_s:
            self._begin_anew()
        began, simulated_s = time.process_time(), self.aws_calls.seconds
        report = self.engine.tick()
        self.tick_s.append(time.process_time() - began - (self.aws_calls.seconds - simulated_s))
        idle = not (report.events or report.actions)
        self.timeline.run_for(5.0 if idle else DECIDING_S)
        for region in could_launch & self._could_launch():
            self.busy_s += self.timeline.now - at
            self.busy_launches += self.census.launches[region] - launches[region]
        return report.at_rest

    def _begin_anew(self) -> None:
        self.engine.flush_record()
        self.engine.forget()
        self.queue.give_back()
        self.invoked_at = self.timeline.now

    def _could_launch(self) -> set[str]:
        """Regions whose instances have room for all that two ticks can start, while that many tasks wait.

        Two ticks, because the controller learns in the next tick of a place that becomes free during a tick.
        """
        state = self.engine.state
        run = state.runs.get(self.job.run_id) if state else None
        if run is None or state is None:
            return set()
        most = 2 * self.engine.policy.launches_per_cell
        if run.tasks.startable_count(self.timeline.now) < most * self.size.cells:
            return set()
        return {world.region for world in self.worlds if _room(world) >= most}

    def _world(self, region: str) -> World:
        size = self.size
        zones = [f"{region}{letter}" for letter in "abc"]
        world = World(
            Ec2Setup(load_catalogue(), zones),
            region=region,
            seed=size.seed,
            timeline=self.timeline,
        )
        add_fleets(world, (INSTANCE_TYPE,), zones)
        world.ecs.ledger.tells_resources = False
        world.sinks.append(self.queue)
        self.census.attend(world)
        return world

    def _engine(self) -> Engine:
        clock, calls = self.timeline.clock, self.aws_calls
        cells = [
            Cell(
                world.region,
                world.cluster,
                calls.client("ecs", world.ecs),
                calls.client("ec2", world.ec2),
                CallRates.of_aws(clock, calls.pass_time),
            )
            for world in self.worlds
        ]
        s3, events = calls.client("s3", self.s3), calls.client("events", BusModel())
        policy = replace(Policy(), max_instances=self.size.instances, linger_s=60.0, growth_per_tick=50)
        store = DynamoStore(calls.client("dynamodb", self.dynamodb), TABLE)
        deployment, together = replace(DEPLOYMENT, part_size=PART_SIZE), Coordination(appended=partial(appended, store))
        executor = AwsExecutor(deployment, cells, HomeClients(s3, events), clock, together)
        recorder = self.recorded.recorder(policy) if self.recorded else None
        return Engine(store, self.queue, executor, load_catalogue(), policy, clock, recorder=recorder)

    def _interrupt(self) -> None:
        """EC2 may reclaim each instance."""
        chance = self.size.interrupted_per_hour * LOOK_EVERY_S / 3600
        for world in self.worlds:
            for instance in list(world.ec2.ledger.instances.values()):
                name = instance.instance_id
                if instance.state == "running" and world.share("warn", name, self.timeline.now) < chance:
                    world.interrupt(name)
                    self.warned += 1
        self.timeline.later(LOOK_EVERY_S, self._interrupt)


def _room(world: World) -> int:
    """How many more tasks the registered instances of the cell could take."""
    cluster = world.ecs.ledger.clusters[world.cluster]
    return sum(each.free_cpu_units // 1024 for each in cluster.instances.values() if each.status == "ACTIVE")


def _job(size: Size) -> SimulatedJob:
    spec: JSON = {
        "version": 1,
        "name": "scale",
        "container": {"image": "argosy/digits", "command": ["work"]},
        "resources": {"vcpus": 1, "memory": 1024, "gpus": 0},
        "array": {"size": size.tasks},
        "retryStrategy": {"attempts": 3},
    }
    return SimulatedJob(f"scale-270115-080000-{size.seed % 10_000:04d}", spec, size.tasks)
