"""What is deployed in a simulated AWS? Fleets, table, queue, bucket, and controllers whose every call may go wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.api import reading
from argosy.aws.call_rates import CallRates
from argosy.aws.cell import AwsDeployment, Cell, HomeClients
from argosy.aws.dynamodb import KILL_KEY, DynamoStore
from argosy.aws.executor import AwsExecutor
from argosy.aws.results import Coordination
from argosy.aws.sqs import SqsQueue
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.bus import BusModel
from argosy.emulator.dynamodb.service import DynamoModel
from argosy.emulator.s3 import S3Model
from argosy.emulator.sqs import SqsModel
from argosy.engine.tick import Engine
from argosy.model import inbox
from argosy.model.damage import NewerFormat
from argosy.model.policy import Policy
from argosy.ports import StaleState
from argosy.simulation.boundary import Boundary, Crash
from argosy.simulation.next_version import NextVersionStore
from argosy.simulation.world import World

STAGE, TABLE, QUEUE = "main", "argosy-state", "events"
ROLE = "arn:aws:iam::123456789012:role/argosy"
DEPLOYMENT = AwsDeployment(STAGE, "argosy", "/ecs/argosy/tasks", f"{ROLE}-execution", f"{ROLE}-task", threads=1)


@dataclass(slots=True)
class Process:
    """One controller, dead or alive, with a clock of its own."""

    name: str
    engine: Engine
    skew_s: float = 0.0
    is_next: bool = False
    """Of the invented next version, which reads this version's state and stores a format that this version refuses."""
    down_until: float = 0.0
    working: bool = False
    at_rest: bool = False
    busy: bool = False
    """Whether the last tick did anything, or failed."""
    ticks: int = 0
    conflicts: int = 0
    failures: int = 0  # ticks that an AWS call ended
    crashes: int = 0


@dataclass(slots=True)
class Services:
    """The models besides ECS and EC2."""

    dynamodb: DynamoModel
    sqs: SqsModel
    s3: S3Model
    bus: BusModel = field(default_factory=BusModel)


def _raise(sentence: str) -> None:
    raise AssertionError(sentence)


class SimulatedDeployment:
    """A deployment on a world: submit, cancel, tear down, and let controllers tick."""

    def __init__(
        self, world: World, boundary: Boundary, policy: Policy, *, strict: bool = False, sqs: SqsModel | None = None
    ) -> None:
        self.world, self.boundary, self.policy, self.strict = world, boundary, policy, strict
        self.services = Services(DynamoModel(), sqs or SqsModel(world.moment), S3Model())
        self.processes: list[Process] = []
        self.down_s: Callable[[], float] = lambda: 60.0
        """How long a crashed controller stays away: lease and schedule."""
        self.versions_met: Callable[[], None] = lambda: None
        """Called when one version reads, or refuses, what the other has stored."""
        self.fell_over: Callable[[str], None] = _raise
        """Called when a tick ends in an error of our own."""
        self._inside = NextVersionStore(self._client("dynamodb", self.services.dynamodb), TABLE)  # reads both

    def add_fleets(self, types: Sequence[str], zones: Sequence[str]) -> None:
        self.world.ec2.add_launch_template("argosy", image_id="ami-1", tags={"argosy:stage": STAGE})
        for kind in types:
            for zone in zones:
                tags: dict[str, Any] = {"argosy:stage": STAGE, "argosy:pool": f"{kind}/{zone}"}
                self.world.add_fleet(kind, zone, **tags)

    def add_controller(self, skew_s: float = 0.0, *, is_next: bool = False) -> Process:
        process = Process(f"controller-{len(self.processes)}", None, skew_s, is_next)  # type: ignore[arg-type]
        process.engine = self._engine(process)
        self.processes.append(process)
        return process

    def deploy(self, process: Process) -> None:
        """The controller is replaced by one of the next version, with nothing in memory."""
        process.is_next = True
        process.engine = self._engine(process)

    def submit(self, request: inbox.SubmitRequest) -> None:
        self._put(request, request.run_id)

    def cancel(self, run_id: str) -> None:
        self._put(inbox.CancelRequest(run_id, self.world.now, "enough"), f"{run_id}#cancel")

    def kill(self) -> None:
        """The kill switch, as teardown sets it."""
        item = {"pk": {"S": KILL_KEY[0]}, "sk": {"S": KILL_KEY[1]}, "reason": {"S": "the stack is being deleted"}}
        self.services.dynamodb.put_item(TableName=TABLE, Item=item)

    @property
    def store(self) -> DynamoStore:
        """The table as someone sees it whose calls never fail."""
        return self._inside

    def tick(self, process: Process) -> None:
        """One tick of one controller, if it is alive. It may crash, come second, or give up on a call."""
        if process.working or process.down_until > self.world.now:
            return
        process.working = process.busy = True
        process.ticks += 1
        try:
            report = process.engine.tick()
            process.at_rest, process.busy = report.at_rest, bool(report.events or report.actions)
        except StaleState:
            process.conflicts += 1
            process.at_rest = False
        except Crash:
            process.crashes += 1
            process.down_until = self.world.now + self.down_s()
            process.engine = self._engine(process)
            process.at_rest = False
        except NewerFormat:
            self.versions_met()
            process.failures += 1
            process.at_rest = False
        except (ClientError, BotoCoreError):
            process.failures += 1
            process.at_rest = False
        except Exception as fault:  # noqa: BLE001 - whatever it is, a controller must not fall over
            self.fell_over(f"{type(fault).__name__}: {fault}")
            process.at_rest = False
        finally:
            process.working = False

    def _put(self, request: inbox.Request, name: str) -> None:
        key = (inbox.INBOX, inbox.inbox_key(self.world.now, name))
        self._inside.create({key: inbox.to_bytes(request)})

    def _client(self, service: str, model: Any) -> Any:
        return SimulatedClient(model, service, strict=self.strict, region=self.world.region)

    def _faulty(self, service: str, model: Any) -> Any:
        return self.boundary.client(service, self._client(service, model))

    def _store(self, client: Any) -> DynamoStore:
        return DynamoStore(client, TABLE)

    def _engine(self, process: Process) -> Engine:
        """A fresh process: nothing in memory."""

        def clock() -> float:
            return self.world.now + process.skew_s

        models: Mapping[str, Any] = {
            "ecs": self.world.ecs,
            "ec2": self.world.ec2,
            "dynamodb": self.services.dynamodb,
            "sqs": self.services.sqs,
            "s3": self.services.s3,
            "events": self.services.bus,
        }
        clients = {name: self._faulty(name, model) for name, model in models.items()}
        rates = CallRates.of_aws(clock, self.world.run_for)
        cell = Cell(self.world.region, self.world.cluster, clients["ecs"], clients["ec2"], rates)
        store = self._store(clients["dynamodb"])
        if process.is_next:
            store = NextVersionStore(clients["dynamodb"], TABLE, self.versions_met)
        executor = AwsExecutor(
            DEPLOYMENT,
            [cell],
            HomeClients(clients["s3"], clients["events"]),
            clock,
            Coordination(retries_of=partial(reading.retries_of, store)),
        )
        queue = SqsQueue(clients["sqs"], QUEUE, self.world.run_for, threads=1)
        return Engine(store, queue, executor, load_catalogue(), self.policy, clock)
