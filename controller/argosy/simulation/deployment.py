"""What runs in a simulated AWS? Controllers whose every call may go wrong, and the services that they call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.api import reading
from argosy.aws.call_rates import CallRates
from argosy.aws.cell import AwsDeployment, Cell, HomeClients, PartSize
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.executor import AwsExecutor
from argosy.aws.results import Coordination
from argosy.aws.sqs import SqsQueue
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.bus import BusModel
from argosy.emulator.dynamodb.service import DynamoModel
from argosy.emulator.s3 import S3Model
from argosy.emulator.sqs import SqsModel
from argosy.engine.loop import BEAT_S
from argosy.engine.tick import Engine
from argosy.model import inbox
from argosy.model.damage import NewerFormat
from argosy.model.policy import Policy
from argosy.ports import StaleState
from argosy.simulation.boundary import Boundary, CallConditions, Crash
from argosy.simulation.deployed_fleets import STAGE
from argosy.simulation.next_version import NextVersionStore
from argosy.simulation.own_faults import OwnFaults
from argosy.simulation.regions import Regions
from argosy.simulation.world import World

TABLE, QUEUE = "argosy-state", "events"
ROLE = "arn:aws:iam::123456789012:role/argosy"
DEPLOYMENT = AwsDeployment(
    STAGE, "argosy", "/ecs/argosy/tasks", f"{ROLE}-execution", f"{ROLE}-task", part_size=PartSize(5, 5), threads=1
)
INTRUDING = 0.02  # the chance of another controller to work in the middle of a call


@dataclass(slots=True)
class SimulatedController:
    """One controller process, dead or alive, with its own clock."""

    name: str
    skew_s: float = 0.0
    is_next: bool = False
    """Of the invented next version, which reads this version's state and stores a format that this version refuses."""
    engine: Engine = field(init=False)
    down_until: float = 0.0
    working: bool = False
    at_rest: bool = False
    busy: bool = False
    """Whether the last tick did anything, or failed."""
    beaten_at: float = 0.0
    """When it last wrote the heartbeat, by its own clock."""
    ticks: int = 0
    conflicts: int = 0
    failures: int = 0
    """Ticks that an AWS call ended."""


@dataclass(slots=True)
class SimulatedServices:
    """The models besides ECS and EC2."""

    sqs: SqsModel
    dynamodb: DynamoModel = field(default_factory=DynamoModel)
    s3: S3Model = field(default_factory=S3Model)
    bus: BusModel = field(default_factory=BusModel)


def _raise(sentence: str) -> None:
    raise AssertionError(sentence)


class SimulatedDeployment:
    """A deployment on a world: submit, cancel, set the kill switch, and let controllers tick."""

    def __init__(
        self,
        regions: Regions,
        services: SimulatedServices,
        policy: Policy,
        conditions: CallConditions,
        on_error: Callable[[str], None] = _raise,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """on_error is called when a tick ends in an error of our own, on_tick when one was carried through."""
        self.regions, self.world, self.services, self.policy = regions, regions.home, services, policy
        self.named = tuple(world.region for world in regions.worlds)
        """The cells that the settings name."""
        self.is_torn_down = False
        """Whether the deletion of its stacks has begun."""
        self.boundary = Boundary(regions, conditions, self._intrude)
        self.controllers: list[SimulatedController] = []
        self.store = NextVersionStore(self._client("dynamodb", services.dynamodb), TABLE)
        """The table, through calls that never fail. It reads what either version has stored."""
        self._conditions, self._faults = conditions, conditions.faults
        self._on_error, self._on_tick = on_error, on_tick
        self._own_faults = OwnFaults(conditions.faults, regions.home.clock)

    def add_controller(self, skew_s: float = 0.0, *, is_next: bool = False) -> SimulatedController:
        controller = SimulatedController(f"controller-{len(self.controllers)}", skew_s, is_next)
        controller.engine = self._engine(controller)
        self.controllers.append(controller)
        return controller

    def keep_one_controller(self, *, upgrade: bool) -> None:
        """The lease leaves one: without it the others would only cause conflicts. upgrade: to the next version."""
        del self.controllers[1:]
        (controller,) = self.controllers
        controller.down_until = 0.0
        controller.at_rest = False
        if upgrade and not controller.is_next:
            controller.is_next = True
            controller.engine = self._engine(controller)

    def name_cells(self, named: tuple[str, ...]) -> None:
        """New settings. Every other controller knows them at once, the others when their process ends."""
        self.named = named
        for controller in self.controllers[::2]:
            controller.engine = self._engine(controller)

    def submit(self, request: inbox.SubmitRequest) -> None:
        self._put(request, request.run_id)

    def cancel(self, run_id: str) -> None:
        self._put(inbox.CancelRequest(run_id, self.world.now, "enough"), f"{run_id}#cancel")

    def tick(self, controller: SimulatedController) -> None:
        """One tick of one controller, if it is alive. It may crash, come second, or give up on a call."""
        if controller.working or controller.down_until > self.world.now:
            return
        controller.working = controller.busy = True
        controller.ticks += 1
        self._own_faults.strike(controller.engine)
        try:
            report = controller.engine.tick()
            for trouble in report.troubles:
                self._on_error(f"{trouble.what}: {trouble.reason}")
            self._on_tick()
            self._beat(controller)
            controller.at_rest, controller.busy = report.at_rest, bool(report.events or report.actions)
            return
        except StaleState:
            controller.conflicts += 1
        except Crash:
            self._restart_later(controller)
        except NewerFormat:
            controller.failures += 1
            self._faults.note("two-versions")
        except (ClientError, BotoCoreError):
            controller.failures += 1
        except Exception as fault:  # noqa: BLE001 - whatever it is, a controller must not fall over
            self._on_error(f"{type(fault).__name__}: {fault}")
        finally:
            controller.working = False
        controller.at_rest = False

    def _beat(self, controller: SimulatedController) -> None:
        """As the loop does after a tick that was carried through."""
        now = self.world.now + controller.skew_s
        if abs(now - controller.beaten_at) >= BEAT_S:
            controller.engine.store.beat(now)
            controller.beaten_at = now

    def _restart_later(self, controller: SimulatedController) -> None:
        """A crashed controller stays away for as long as lease and schedule take, and has nothing in memory then."""
        controller.down_until = self.world.now + self._faults.between(1, 120)
        controller.engine = self._engine(controller)

    def _intrude(self) -> None:
        """Another controller may work in the middle of a call."""
        if not self._conditions.interleaved or len(self.controllers) < 2 or not self._faults.active:
            return
        if self._faults.between(0, 1) < INTRUDING:
            number = int(self._faults.between(0, len(self.controllers)))
            self.tick(self.controllers[number])

    def _put(self, request: inbox.Request, name: str) -> None:
        key = (inbox.INBOX, inbox.inbox_key(self.world.now, name))
        self.store.create({key: inbox.to_bytes(request)})

    def _client(self, service: str, model: Any) -> Any:
        return SimulatedClient(model, service, strict=self.boundary.conditions.strict, region=self.world.region)

    def _faulty(self, service: str, model: Any) -> Any:
        return self.boundary.client(service, self._client(service, model))

    def _cell(self, world: World, clock: Callable[[], float]) -> Cell:
        def client(name: str, model: Any) -> Any:
            strict = self._conditions.strict
            return self.boundary.client(name, SimulatedClient(model, name, strict=strict, region=world.region))

        rates = CallRates.of_aws(clock, world.run_for)
        return Cell(world.region, world.cluster, client("ecs", world.ecs), client("ec2", world.ec2), rates)

    def _store(self, client: Any) -> DynamoStore:
        return DynamoStore(client, TABLE)

    def _engine(self, controller: SimulatedController) -> Engine:
        """A fresh process: nothing in memory."""

        def clock() -> float:
            return self.world.now + controller.skew_s

        models: Mapping[str, Any] = {
            "dynamodb": self.services.dynamodb,
            "sqs": self.services.sqs,
            "s3": self.services.s3,
            "events": self.services.bus,
        }
        clients = {name: self._faulty(name, model) for name, model in models.items()}
        cells = [self._cell(self.regions.of(region), clock) for region in self.named]
        store = self._store(clients["dynamodb"])
        if controller.is_next:
            store = NextVersionStore(clients["dynamodb"], TABLE, partial(self._faults.note, "two-versions"))
        executor = AwsExecutor(
            DEPLOYMENT,
            cells,
            HomeClients(clients["s3"], clients["events"]),
            clock,
            Coordination(retries_of=partial(reading.retries_of, store)),
        )
        queue = SqsQueue(clients["sqs"], QUEUE, self.world.run_for, threads=1)
        return Engine(store, queue, executor, load_catalogue(), self.policy, clock)
