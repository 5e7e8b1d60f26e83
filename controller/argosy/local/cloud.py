"""The embedded AWS: how its parts are built, and how it ends without leaving anything behind."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from argosy.api.schedules.store import waiting
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.schedule_clock import AwsScheduleClock, ScheduleTarget
from argosy.catalogue.lookup import load_catalogue
from argosy.client.local_key import announced, key_at, published, random_key
from argosy.emulator.botocore_check import SimulatedClient
from argosy.emulator.price_list import PriceList
from argosy.local.agents.agent import AgentOptions
from argosy.local.cell import LocalCell
from argosy.local.clients import LocalClients, child_environment, container_environment, share_models
from argosy.local.containers.engine import EngineRuntime
from argosy.local.containers.engine_run import ContainerPort, label
from argosy.local.containers.followers import Followers
from argosy.local.containers.images import ImageStore
from argosy.local.containers.runtime import Runtime
from argosy.local.delivery import EventDelivery
from argosy.local.deployment import MAX_RECEIVES, VISIBILITY_S, Client, Names, create, register
from argosy.local.forks import Forks
from argosy.local.gpus import GpuStock
from argosy.local.keeping.store import LocalStore
from argosy.local.lambdas.clockwork import ClockSurroundings, Clockwork
from argosy.local.lambdas.function import LambdaFunction
from argosy.local.lambdas.functions import deploy, forks_of_functions, specs
from argosy.local.lambdas.invoke_api import LambdaApi
from argosy.local.lambdas.ticker import Ticker
from argosy.local.moto import queues
from argosy.local.moto.app import MotoApp, secret_of_moto
from argosy.local.moto.events import MotoRules
from argosy.local.moto.logs import MotoLogs
from argosy.local.moto.schedules import MotoSchedules
from argosy.local.mps import MpsDaemon, can_share
from argosy.local.options import LocalOptions
from argosy.local.server.front import Front, NotReadyError, UnknownThingError
from argosy.local.server.model_calls import models_of, short_way
from argosy.local.server.protocol import OwnService
from argosy.local.server.queue import OwnQueue
from argosy.local.server.signatures import Signatures
from argosy.local.server.tables import OwnTable
from argosy.local.server.target_groups import OwnTargetGroups
from argosy.local.state_folder import StateFolder
from argosy.loopback.server import LOOPBACK, Bounds, WsgiServer
from argosy.model.schedules.record import SCHEDULES, ScheduleState, schedule_from

ACCOUNT = "123456789012"  # moto's
INNER_CONNECTIONS = 256  # of functions and tasks, which no number of users' connections uses up


class LocalAws:
    """One embedded AWS with one deployment in it. One per process at a time: moto's state is global.

    `start` raises OSError if the port is taken. `on_shutdown` is called when a client asks for the end.
    """

    def __init__(self, port: int = 0, options: LocalOptions | None = None, forks: Forks | None = None) -> None:
        """forks: those of another embedded AWS, if it has them already."""
        self.options = options or LocalOptions()
        self._forks = forks
        self.region = self.options.settings.region
        self.names = Names(self.options.settings.prefix, ACCOUNT, self.region)
        self.endpoint_url = ""
        self.inner_url = ""  # the same for functions and tasks
        key = self.options.key or (key_at(port) if port else None) or random_key()
        self.key = replace(key, region=self.region)  # of users, functions and tasks
        self.state_dir = Path()
        self.on_shutdown: Callable[[], None] = lambda: None
        self.cells: dict[str, LocalCell] = {}  # by Region; the first is home
        self.functions: dict[str, LambdaFunction] = {}
        self.function_errors = 0  # failed invocations, other than killed ones: then the logs are kept
        self._kept: LocalStore | None = None
        self._table: Any = None  # the model of the deployment's own
        self._start_key = random_key()  # of this process's own requests, which are served before all others
        self._port = port
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> str:
        """Everything up and the deployment created; the endpoint."""
        with self._parts:  # what was started before a fault is ended again
            self._start()
            self._parts = self._parts.pop_all()
        return self.endpoint_url

    def close(self) -> None:
        """End every process and thread; forget everything. Harmless when repeated."""
        self._parts.close()

    def interrupt(self, instance_id: str, notice_s: float = 120.0) -> None:
        """A spot interruption warning now, the end of the instance `notice_s` later. Raises KeyError, ValueError."""
        self._cell_of(instance_id).ec2.interrupt(instance_id, notice_s)

    def _start(self) -> None:
        share_models()
        if self._forks is None:  # first: it gets warm while the rest is built
            self._forks = forks_of_functions()
            self._parts.callback(self._forks.close)
        self.state_dir = self.make_state_dir()
        if self.options.keep is not None:
            self._kept = self._parts.enter_context(
                LocalStore(self.options.keep, fresh=self.options.fresh, complain=_complain)
            )
        self._make_models()
        self._serve()
        clients = LocalClients(self.inner_url, self.region, self._start_key)
        self._parts.callback(clients.close)
        rules = MotoRules(ACCOUNT, self.region)
        self._deliver = EventDelivery(rules, self.region, self.names.prefix, self._queue.put, _complain, self._call)
        self._parts.callback(self._deliver.close)
        images = self._runtime()
        client = self._client_of_models(clients)
        deployment = create(client, self.options.settings, self.names, images.names(), images.python)
        for region in self.cells:
            names = replace(self.names, region=region)
            register(client("ecs", region), images, names, self.options.settings.stop_timeout_s)
        self._restore(clients)
        self._start_agents(clients, images)
        self._start_functions(clients, deployment["queueUrl"])
        self._parts.enter_context(announced(deployment, self._server.port))

    def _client_of_models(self, clients: LocalClients) -> Client:
        """Services with a model of our own are called without HTTP: a start makes forty such calls."""

        def client(service: str, region: str | None = None) -> Any:
            cell = self.cells[region or self.region]
            models = {"ec2": cell.ec2, "ecs": cell.ecs}
            return SimulatedClient(models[service], service) if service in models else clients(service, region)

        return client

    def _make_models(self) -> None:
        stock = GpuStock(self.options.gpus)
        self._daemons = self._mps_daemons()
        for region in self.options.settings.cells:
            self.cells[region] = LocalCell(region, ACCOUNT, self.options, self._send)
            if stock.gpus:
                self.cells[region].use(stock, self._daemons)

    def _mps_daemons(self) -> dict[str, MpsDaemon]:
        """By the id of each GPU of this machine that tasks can share."""
        if not can_share(self.options.gpus):
            return {}
        folder = self._scratch()
        found = {gpu.id: MpsDaemon(gpu, folder / str(place)) for place, gpu in enumerate(self.options.gpus)}
        for daemon in found.values():
            self._parts.callback(daemon.end)
        return found

    def _serve(self) -> None:
        self._moto = moto = MotoApp()
        self._parts.callback(moto.close)
        bury = partial(queues.send, ACCOUNT, self.region, self.names.dead_queue)
        self._queue = OwnQueue(self.names.queue, VISIBILITY_S, MAX_RECEIVES, bury)
        table = OwnTable(self.names.table)
        self._table = table.model
        functions = LambdaApi(self.functions)
        if self._kept is not None:
            self._kept.keep_models(table.model, self.cells)
            self._kept.keep_aliases(functions.aliases)
        groups = OwnTargetGroups(self.options.settings.target_groups.values(), self._runs)
        own = (table, self._queue, groups, OwnService("pricing", PriceList(_prices)))
        self._front = Front(
            cells=self.cells,
            functions=functions,
            admin=self._admin(),
            moto=moto,
            own=own,
            signatures=Signatures(self._secret_of),
            start_key=self._start_key.id,
        )
        self._server = WsgiServer(self._front, self._port)
        self._inner = WsgiServer(self._front, bounds=Bounds(connections=INNER_CONNECTIONS))
        for server in (self._server, self._inner):
            server.start()
            self._parts.callback(server.close)
        self._parts.callback(moto.stop_waiting)
        self._parts.callback(self._queue.close)
        self.endpoint_url, self.inner_url = (f"http://{LOOPBACK}:{each.port}" for each in (self._server, self._inner))
        self._publish_key()

    def _publish_key(self) -> None:
        """A key that was given can be used without its file, where the disk takes none."""
        lasts = bool(self._port) and self.options.key is None
        with suppress(OSError) if self.options.key else nullcontext():
            self._parts.enter_context(published(self.key, self._server.port, lasts=lasts))

    def _secret_of(self, key_id: str) -> str | None:
        """Of a key of this local mode, or of one that its users have made with IAM or STS."""
        known = {each.id: each.secret for each in (self.key, self._start_key)}
        return known.get(key_id) or secret_of_moto(ACCOUNT, key_id)

    def _restore(self, clients: LocalClients) -> None:
        """Objects, log lines, and the reports that its instances are gone, left by an earlier local mode."""
        if self._kept is None:
            return
        self._kept.keep_objects(ACCOUNT, self._moto)
        for region in self.cells:
            MotoLogs(ACCOUNT, region, self._kept.lines).restore(self.names.log_group)
        for message in self._kept.farewells(ACCOUNT):
            self._deliver(message)
        clients("events").enable_rule(Name=self.names.tick_rule)  # there may be work; the controller disables it

    def _runtime(self) -> Runtime:
        options = self.options
        followers = Followers()
        self._parts.callback(followers.close)
        for daemon in self._daemons.values():
            followers.shares(daemon.pipes)
        if options.engine is None:
            return ImageStore(options.images_root, options.pythons, self._scratch(), followers)
        followers.label(options.engine, label(self._server.port))
        door = ContainerPort(self._server.port, self._inner.serve_too)
        base = options.settings.base_image
        runtime = EngineRuntime(
            options.engine, options.images_root, bool(options.gpus), door, base, options.runner, tell=_complain
        )
        self._parts.callback(runtime.close)
        return runtime

    def _scratch(self) -> Path:
        """The folder of users' programs. It is removed with the process; the next process removes that of a killed
        one."""
        folder = StateFolder()
        self._parts.callback(folder.close, keep=False)
        return folder.path

    def _start_agents(self, clients: LocalClients, images: Runtime) -> None:
        """The cells share the capacity of this machine."""
        is_process = self.options.engine is None
        environment_for = child_environment if is_process else container_environment
        endpoint = self.inner_url if is_process else self.endpoint_url  # containers: their door's port
        processes = max(1, self.options.processes // len(self.cells))
        lines = None if self._kept is None else self._kept.lines
        for region, cell in self.cells.items():
            environment = environment_for(endpoint, region, self.key)
            options = AgentOptions(
                self.names.prefix,
                environment,
                processes,
                self.options.stop_timeout_s,
                min_free_bytes=self.options.min_free_bytes,
            )
            self._parts.push(cell.start(images, options, MotoLogs(ACCOUNT, region, lines), _complain))

    def _start_functions(self, clients: LocalClients, queue_url: str) -> None:
        models = models_of(self.cells, dynamodb=self._table, sqs=self._queue.model)
        way = self._parts.enter_context(short_way(self._scratch(), models))
        around = child_environment(self.inner_url, self.region, self.key) | way
        deployed = specs(self.options, self.names, around, queue_url)
        assert self._forks is not None
        self.functions.update(deploy(deployed, self._forks, self.state_dir, self.function_failed))
        logs = MotoLogs(ACCOUNT, self.region)
        for function in self.functions.values():  # all before the first has a process, which may not start
            self._parts.callback(function.close)
        for name, function in self.functions.items():
            function.warm()
            clients("logs").create_log_group(logGroupName=f"/aws/lambda/{name}")
            logs.follow(f"/aws/lambda/{name}", self.state_dir / f"{name}.log")
        self._front.open()
        controller = self.functions[self.names.controller_function]
        controller.on_wait = self._queue.nudge  # the process that waits for it has written something for it to read
        ticker = Ticker(
            controller, partial(MotoRules(ACCOUNT, self.region).is_enabled, self.names.tick_rule), self.options.tick_s
        )
        self._parts.callback(ticker.close)
        ticker.start()
        self._start_schedules(clients)
        # The first load of a state that an earlier local mode left; and the first run need not wait for the imports.
        controller.invoke_later(json.dumps({"source": "argosy.local"}).encode(), str(uuid.uuid4()))

    def _start_schedules(self, clients: LocalClients) -> None:
        """Those of an earlier local mode are created again, because moto has forgotten them."""
        api, store = self.names.api_function, DynamoStore(SimulatedClient(self._table, "dynamodb"), self.names.table)
        target = ScheduleTarget(self.names.prefix, self.names.function_arn(api), self.names.role_arn("schedules"))
        clock = AwsScheduleClock(lambda: clients("scheduler"), target, time.time)
        since = {}
        for body in store.read_partition(SCHEDULES).values():
            schedule = schedule_from(body)
            if schedule.state is not ScheduleState.DELETED:
                clock.set(schedule)
                since[schedule.name] = max(schedule.seen_until, schedule.begins)
        invoke = {name: function.invoke_later for name, function in self.functions.items()}
        around = ClockSurroundings(
            MotoSchedules(ACCOUNT, self.region), invoke, api, lambda: bool(waiting(store)), _complain
        )
        clockwork = Clockwork(around, since)
        self._parts.callback(clockwork.close)
        clockwork.start()

    def _send(self, message: dict[str, Any]) -> None:
        self._deliver(message)  # all cells' events come to home's bus, under the models' locks, in order

    def _call(self, body: str) -> None:
        """Calls the controller for an urgent message. A controller that waits for its turn sees it too."""
        controller = self.functions.get(self.names.controller_function)
        if controller is not None and not controller.waits:
            controller.invoke_later(body.encode(), str(uuid.uuid4()))

    def _cell_of(self, instance_id: str) -> LocalCell:
        """Raises KeyError."""
        for cell in self.cells.values():
            if cell.has(instance_id):
                return cell
        raise KeyError(instance_id)

    def _runs(self, instance_id: str) -> bool:
        return any(cell.ec2.runs(instance_id) for cell in self.cells.values())

    def make_state_dir(self) -> Path:
        """The folder of the functions' logs: the one in the options, which stays, or one that `close` removes."""
        if self.options.state_dir is not None:
            self.options.state_dir.mkdir(parents=True, exist_ok=True)
            return self.options.state_dir
        folder = StateFolder()
        self._parts.callback(self._forget, folder)
        return folder.path

    def _forget(self, folder: StateFolder) -> None:
        """The functions' logs are deleted with the process, unless a failure makes them worth reading."""
        folder.close(keep=bool(self.function_errors))

    def function_failed(self, what: str, log: Path) -> None:
        """An invocation failed without being killed: report it, and keep the logs."""
        self.function_errors += 1
        _complain(f"{what} (its log: {log})")

    def _admin(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        return {
            "GET health": lambda request: self._health(),
            "POST interrupt": lambda request: self._on_instance(
                request, lambda name: self.interrupt(name, float(request.get("noticeS", 120)))
            ),
            "POST rebalance": lambda request: self._on_instance(
                request, lambda name: self._cell_of(name).ec2.recommend_rebalance(name)
            ),
            "POST shortage": self._shortage,
            "POST kill-controller": lambda request: {"pids": self.functions[self.names.controller_function].kill()},
            "POST shutdown": self._ask_for_the_end,
        }

    def _health(self) -> dict[str, Any]:
        """Raises NotReadyError unless the functions are there and the api answers: it reads the state."""
        api = self.functions.get(self.names.api_function)
        if api is None or self.names.controller_function not in self.functions:
            raise NotReadyError("starting")
        outcome = api.invoke(json.dumps({"action": "ListRuns", "maxResults": 1}).encode(), str(uuid.uuid4()))
        if (
            outcome.error is not None
            or json.loads(outcome.payload).get("statusCode", 200) >= HTTPStatus.INTERNAL_SERVER_ERROR
        ):
            raise NotReadyError(f"the api does not answer: {outcome.payload.decode()}")
        return {"status": "ok", "endpoint": self.endpoint_url, "region": self.region}

    def _on_instance(self, request: dict[str, Any], act: Callable[[str], None]) -> dict[str, Any]:
        instance_id = str(request["instanceId"])
        try:
            act(instance_id)
        except KeyError as fault:
            raise UnknownThingError(f"there is no instance {instance_id}") from fault
        return {"instanceId": instance_id}

    def _shortage(self, request: dict[str, Any]) -> dict[str, Any]:
        pool, available = str(request["pool"]), request.get("available")
        zone = pool.split("/")[1] if "/" in pool else ""
        cell = self.cells.get(zone[:-1], self.cells[self.region])
        cell.ec2.set_shortage(pool, None if available is None else int(available))
        return {"pool": pool, "available": available}

    def _ask_for_the_end(self, request: dict[str, Any]) -> dict[str, Any]:
        self.on_shutdown()
        return {"status": "ending"}


def _prices(region: str) -> dict[str, float]:
    """The price list of local mode is the catalogue's."""
    return {name: kind.on_demand_usd_per_hour for name, kind in load_catalogue(region).items()}


def _complain(message: str) -> None:
    print(f"embedded AWS: {message}", file=sys.stderr)
