"""The deployment in a simulated AWS: controllers whose every call may fail, and the services that they call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from argosy.api import reading
from argosy.aws import cell_records
from argosy.aws.call_rates import CallRates
from argosy.aws.cell import AwsDeployment, Cell, Coordination, HomeClients, PartSize
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.executor import AwsExecutor
from argosy.aws.wake import AwsWake
from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.dynamodb import DynamoModel
from argosy.emulator.sqs import SqsModel
from argosy.engine.report import TickReport
from argosy.engine.tick import Engine
from argosy.model import inbox
from argosy.model.damage import NewerFormat
from argosy.model.policy import Policy
from tests.harness.simulation.controllers.controllers import OpenLease, Process, SimulatedController
from tests.harness.simulation.controllers.invocations import FUNCTION, OF_RULE, TICK_RULE, Invocations, PatientQueue
from tests.harness.simulation.controllers.kept_rows import drifted
from tests.harness.simulation.controllers.next_version import NextVersionStore
from tests.harness.simulation.controllers.recorded import RecordedTrial
from tests.harness.simulation.injection.boundary import Boundary, CallConditions, Crash, ProcessLife
from tests.harness.simulation.injection.own_faults import OwnFaults
from tests.harness.simulation.world.bus import BusModel, LambdaModel
from tests.harness.simulation.world.deployed_fleets import STAGE, fleet_is_ours
from tests.harness.simulation.world.members import Members
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.s3 import S3Model
from tests.harness.simulation.world.world import World, target_group_arn

TABLE, QUEUE = "argosy-state", "events"
ROLE = "arn:aws:iam::123456789012:role/argosy"
TARGET_GROUP = "web"
DEPLOYMENT = AwsDeployment(
    STAGE,
    "argosy",
    "/ecs/argosy/tasks",
    f"{ROLE}-execution",
    f"{ROLE}-task",
    part_size=PartSize(5, 5),
    target_groups={TARGET_GROUP: target_group_arn("us-east-1")},
    threads=1,
)
WORKING_S = 5.0  # between two ticks of a controller that has come back, for as long as it waits for messages
TICKS_AT_ONCE = 4  # a controller that comes back and sweeps needs two
# Kept rows are compared with fresh ones once in KEPT_TICKS, and by placing tasks on both once in PLACED_TICKS. A
# difference lasts.
KEPT_TICKS, PLACED_TICKS = 3, 6
INTRUDING = 0.02  # the chance that another controller works in the middle of a call


@dataclass(slots=True)
class SimulatedServices:
    """The models besides ECS and EC2."""

    sqs: SqsModel
    dynamodb: DynamoModel = field(default_factory=DynamoModel)
    s3: S3Model = field(default_factory=S3Model)
    bus: BusModel = field(default_factory=BusModel)
    functions: LambdaModel = field(default_factory=LambdaModel)


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
        on_tick: Callable[[TickReport, int | None], None] = lambda report, version: None,
    ) -> None:
        """on_error is called when a tick ends in an error of our own. on_tick is called when a tick completes, with its
        report
        and the version of the state that it describes.
        """
        self.regions, self.world, self.services, self.policy = regions, regions.home, services, policy
        self.named = tuple(world.region for world in regions.worlds)
        """The cells that the settings name."""
        self.is_torn_down = False
        """Whether the deletion of its stacks has begun."""
        self.members = Members()
        """How its users come in."""
        self.recorded: RecordedTrial | None = None
        """Where controllers that are added from now on record what they do."""
        self.boundary = Boundary(regions, conditions, self._intrude)
        self.controllers: list[SimulatedController] = []
        self.store = NextVersionStore(self._client("dynamodb", services.dynamodb), TABLE)
        """The table, through calls that never fail. It reads the documents of both versions."""
        self._conditions, self._faults = conditions, conditions.faults
        self._on_error, self._on_tick = on_error, on_tick
        self._came_back: SimulatedController | None = None
        self._own_faults = OwnFaults(conditions.faults, regions.home.clock)
        self.invocations = Invocations(self.world, services.functions, services.bus, self.store, self._is_at_work)

    @property
    def lease_holds(self) -> bool:
        """Otherwise only the conditional commit keeps controllers apart."""
        return self.invocations.lease_holds

    def add_controller(self, skew_s: float = 0.0, *, is_next: bool = False) -> SimulatedController:
        controller = SimulatedController(f"controller-{len(self.controllers)}", skew_s, is_next)
        controller.process = self._process(controller)
        self.controllers.append(controller)
        return controller

    def keep_controllers(self, most: int, *, upgrade: bool) -> None:
        """The lease leaves one controller; without it others cause conflicts. upgrade: to the next version."""
        del self.controllers[most:]
        for controller in self.controllers:
            controller.down_until = 0.0
            if upgrade and not controller.is_next:
                controller.is_next = True
                controller.process = self._process(controller)

    def name_cells(self, named: tuple[str, ...]) -> None:
        """New settings. Every other controller has them at once, the rest when their process ends."""
        self.named = named
        for controller in self.controllers[::2]:
            controller.process = self._process(controller)

    def restart(self) -> None:
        """Every controller, with empty memory."""
        for controller in self.controllers:
            controller.process = self._process(controller)

    def submit(self, request: inbox.SubmitRequest) -> None:
        """Without the api; so is `cancel`."""
        self.put(request, request.run_id)

    def cancel(self, run_id: str) -> None:
        self.put(inbox.CancelRequest(run_id, self.world.now, "enough"), f"{run_id}#cancel")

    def put(self, request: inbox.Request, name: str) -> None:
        """Without the api, into the inbox."""
        self.store.create({(inbox.INBOX, inbox.inbox_key(self.world.now, name)): inbox.to_bytes(request)})
        AwsWake(self.services.functions, self.services.bus, FUNCTION, TICK_RULE).controller()

    def call(self) -> None:
        """Invocations of the controller's function by a rule."""
        self.services.functions.invoke(FunctionName=FUNCTION, InvocationType="Event", Payload=OF_RULE)

    @property
    def is_at_rest(self) -> bool:
        """Whether no controller works, and none will before a user asks for something."""
        if self._is_at_work() or self.invocations.is_scheduled or self.invocations.is_called:
            return False
        dynamodb = self._client("dynamodb", self.services.dynamodb)
        records = cell_records.read(dynamodb, TABLE)
        # Otherwise the watchdog enables the tick.
        return records is None or not cell_records.means_to_go_on(dynamodb, TABLE, records)

    @property
    def is_quiet(self) -> bool:
        """Whether no controller works, and one comes back with the next minute."""
        return self.invocations.is_quiet and not self._is_at_work()

    @property
    def awaits_minute(self) -> bool:
        """Whether it also does so without a call."""
        return self.is_quiet and self.invocations.is_scheduled and not self.is_torn_down

    def _is_at_work(self) -> bool:
        return any(controller.process.loop is not None for controller in self.controllers)

    def pass_time(self, seconds: float) -> None:
        """Quiet controllers come back and work until they leave; the others work at each step of the trial."""
        end, timeline = self.world.now + seconds, self.world.timeline
        while self.world.now < end:
            if self.is_quiet:
                until = min(end, self.invocations.next_at)
                timeline.run_until(until, lambda: self.invocations.is_called)
                if self.invocations.is_due:
                    self._come_back()
            elif self._came_back is None or self._came_back.process.loop is None:
                timeline.run_until(end)
            else:
                timeline.run_until(min(end, self.world.now + WORKING_S))
                self.tick(self._came_back)

    def _come_back(self) -> None:
        """One controller, which ticks at once until it has left again or has something to do."""
        number = int(self.world.share("invoked", self.world.now) * len(self.controllers))
        controller = self._came_back = self.controllers[number]
        if controller.down_until > self.world.now:
            self.invocations.taken()
            return
        self.tick(controller)
        for _ in range(TICKS_AT_ONCE):
            if controller.process.loop is None or controller.busy:
                return
            self.tick(controller)

    def tick(self, controller: SimulatedController) -> None:
        """One tick of one controller, if it is alive and at work, or due. It may crash, lose to another, or give up a
        call.
        """
        if controller.working or controller.down_until > self.world.now:
            return
        if controller.process.loop is None and not self.invocations.is_due:
            controller.busy = False
            return
        controller.working, controller.busy = True, False
        self._own_faults.strike(controller.engine)
        try:
            controller.step(self.world.clock, partial(self._ticked, controller), self.invocations)
            return
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
        controller.busy = True

    def _ticked(self, controller: SimulatedController, report: TickReport) -> None:
        controller.ticks += 1
        controller.busy = bool(report.events or report.actions)
        for trouble in report.troubles:
            self._on_error(f"{trouble.what}: {trouble.reason}")
        if controller.ticks % KEPT_TICKS == 0:
            for difference in drifted(controller.engine, places=controller.ticks % PLACED_TICKS == 0):
                self._on_error(difference)
        state = controller.engine.state
        self._on_tick(report, None if state is None else state.version)

    def _restart_later(self, controller: SimulatedController) -> None:
        """A crashed controller stays away for a while, and comes back with empty memory. Its lease stays."""
        controller.down_until = self.world.now + self._faults.between(1, 120)
        controller.process = self._process(controller)

    def _intrude(self) -> None:
        """Another controller may work in the middle of a call."""
        if not self._conditions.interleaved or len(self.controllers) < 2 or not self._faults.active:
            return
        if self._faults.between(0, 1) < INTRUDING:
            number = int(self._faults.between(0, len(self.controllers)))
            self.tick(self.controllers[number])

    def _client(self, service: str, model: Any) -> Any:
        return SimulatedClient(model, service, strict=self.boundary.conditions.strict, region=self.world.region)

    def _cell(self, world: World, clock: Callable[[], float], life: ProcessLife) -> Cell:
        def client(name: str, model: Any) -> Any:
            strict = self._conditions.strict
            return self.boundary.client(name, SimulatedClient(model, name, strict=strict, region=world.region), life)

        rates = CallRates.of_aws(clock, world.run_for)
        ecs, ec2, elbv2 = (client(name, getattr(world, name)) for name in ("ecs", "ec2", "elbv2"))
        named = frozenset(world.ec2.ledger.reservations)
        return Cell(world.region, world.cluster, ecs, ec2, rates, elbv2=elbv2, reservations=named)

    def _process(self, controller: SimulatedController) -> Process:
        """A new process with empty memory."""

        def clock() -> float:
            return self.world.now + controller.skew_s

        life = ProcessLife()
        clients = self.clients(life)
        cells = [self._cell(self.regions.of(region), clock, life) for region in self.named]
        store = DynamoStore(clients["dynamodb"], TABLE)
        if controller.is_next:
            store = NextVersionStore(clients["dynamodb"], TABLE, partial(self._faults.note, "two-versions"))
        executor = AwsExecutor(
            DEPLOYMENT,
            cells,
            HomeClients(clients["s3"], clients["events"]),
            clock,
            Coordination(
                keep_alive=controller.keep_alive,
                retries_of=partial(reading.retries_of, store),
                appended=partial(reading.appended, store),
            ),
        )
        queue = PatientQueue(clients["sqs"], QUEUE, self.world, self.services.sqs)
        engine = Engine(store, queue, executor, load_catalogue(), self.policy, clock, keep_alive=controller.keep_alive)
        if self.recorded is not None:
            engine.recorder = self.recorded.recorder(self.policy)
        with_lease = (DynamoStore if self.lease_holds else OpenLease)(clients["dynamodb"], TABLE)
        return Process(engine, with_lease, self.wake_of(clients), life)

    def clients(self, life: ProcessLife) -> dict[str, Any]:
        """Home's, of one process: their calls pass the boundary."""
        services = self.services
        models: Mapping[str, Any] = {
            "dynamodb": services.dynamodb,
            "sqs": services.sqs,
            "s3": services.s3,
            "events": services.bus,
            "lambda": services.functions,
            "ecs": self.world.ecs,
        }
        return {name: self.boundary.client(name, self._client(name, model), life) for name, model in models.items()}

    @property
    def pools(self) -> list[tuple[str, str, str]]:
        """Region, instance type and zone of our fleets at home."""
        fleets = [each for each in self.world.ec2.ledger.fleets.values() if fleet_is_ours(each)]
        pools = {(pool.instance_type, pool.zone) for fleet in fleets for pool in fleet.pools}
        return [(self.world.region, *pool) for pool in sorted(pools)]

    def wake_of(self, clients: Mapping[str, Any]) -> AwsWake:
        return AwsWake(clients["lambda"], clients["events"], FUNCTION, TICK_RULE)
