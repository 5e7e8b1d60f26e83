"""One Region of the embedded AWS: its ECS, its EC2, the agents of its instances, and its clock."""

from __future__ import annotations

import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.ec2.market import walking_prices
from argosy.emulator.ec2.service import Ec2Instance, Ec2Model, Ec2Setup
from argosy.emulator.ecs.service import EcsModel
from argosy.emulator.region import AwsRegion
from argosy.local.agents.agent import AgentOptions, Agents, Host
from argosy.local.agents.log_shipper import LogShipper, LogStore
from argosy.local.containers.container import LOOPBACK
from argosy.local.containers.runtime import Runtime
from argosy.local.gpus import Gpu, GpuStock
from argosy.local.mps import MpsDaemon
from argosy.local.options import LocalOptions
from argosy.model.readings import DOCKER_BLOCKS

DOCKER_BLOCKS_S = 18.0  # 180 s on AWS, in proportion to the patience here
CLOCK_PERIOD_S = 0.05  # fleets and notices react this fast
_WARNING = "EC2 Spot Instance Interruption Warning"
_IMAGES = {False: "ami-0c0ffee0000000001", True: "ami-0c0ffee0000000002"}  # without and with GPU


class LocalCell:
    """One Region. forward: gets its events, which on AWS its rules send to the home Region's bus."""

    def __init__(
        self, region: str, account: str, options: LocalOptions, forward: Callable[[dict[str, Any]], None]
    ) -> None:
        settings = options.settings
        self.region = region
        self._catalogue = load_catalogue(region)
        self._policy = settings.policy()
        self._forward = forward
        self._stock: GpuStock | None = None
        self._daemons: Mapping[str, MpsDaemon] = {}
        self._readings = set(options.readings)
        aws = AwsRegion(time.time, region, account, self._emit, lambda service: _new_id, self._readings)
        prices = walking_prices(self._catalogue)
        self.ecs = EcsModel(aws)
        # Half of all messages. ECS sends them too, but nothing here reads them: the events of tasks contain as much.
        self.ecs.ledger.tells_resources = False
        zones = settings.zones_of(region)
        setup = Ec2Setup(self._catalogue, zones, prices, options.boot_s, private_ip=LOOPBACK, why_not=self._why_not)
        self.ec2 = Ec2Model(aws, setup)
        for name in settings.instance_types.all:
            image_id = _IMAGES[self._catalogue[name].gpus > 0]
            tags = {"argosy:stage": settings.stage, "Name": settings.prefix}
            self.ec2.add_launch_template(f"{settings.prefix}-{name}", image_id=image_id, tags=tags)

    def use(self, stock: GpuStock, daemons: Mapping[str, MpsDaemon]) -> None:
        """Its instances get GPUs of this machine, which all Regions share; otherwise GPUs are simulated. daemons: by
        the id of a GPU that tasks can share."""
        self._stock, self._daemons = stock, daemons
        self.ec2.on_launched.append(lambda each: stock.take(each.instance_id, self._gpus(each.instance_type)))

    def start(
        self, images: Runtime, options: AgentOptions, logs: LogStore, complain: Callable[[str], None]
    ) -> ExitStack:
        """Starts agents and clock; closing the result ends them. logs: of the Region."""
        with ExitStack() as parts:  # what was started before a fault is ended again
            shipper = LogShipper(logs, complain)
            parts.callback(shipper.close)
            self._agents = Agents(self.ecs, images, shipper, options)
            self._agents.start()
            parts.callback(self._agents.close)
            self.ecs.ledger.on_execute = self._agents.session
            self.ec2.on_running.append(self._up)
            self.ec2.on_terminated.append(lambda instance: self._agents.post_down(instance.instance_id))
            if self._stock is not None:
                self._agents.on_gone = self._stock.give_back
            parts.callback(ModelClock(self.ec2).close)
            return parts.pop_all()

    def has(self, instance_id: str) -> bool:
        """Whether it is an instance of this Region, alive or remembered."""
        return instance_id in self.ec2.ledger.instances

    def _gpus(self, instance_type: str) -> int:
        return self._catalogue[instance_type].gpus

    def _why_not(self, instance_type: str) -> str:
        return self._stock.why_not(instance_type, self._gpus(instance_type)) if self._stock else ""

    def _up(self, instance: Ec2Instance) -> None:
        kind = self._catalogue[instance.instance_type]
        gpus = self._stock.of(instance.instance_id) if self._stock else ()
        if self._stock and len(gpus) < kind.gpus:
            self.ec2.lose(instance.instance_id)  # another Region took the last one at the same moment
        elif DOCKER_BLOCKS in self._readings:
            host = self._host(instance, self._policy.own_attributes_of(kind.name), gpus)
            joins_at = time.time() + DOCKER_BLOCKS_S
            self.ec2.ledger.later(joins_at, partial(self._agents.post_up, host, instance.image_id))
        else:
            host = self._host(instance, self._policy.attributes_of(kind.name), gpus)
            self._agents.post_up(host, instance.image_id)

    def _host(self, instance: Ec2Instance, attributes: Mapping[str, str], gpus: tuple[Gpu, ...]) -> Host:
        daemons = {gpu.id: self._daemons[gpu.id] for gpu in gpus if gpu.id in self._daemons}
        kind = self._catalogue[instance.instance_type]
        return Host(instance.instance_id, kind, instance.zone, attributes, gpus, daemons)

    def _emit(self, message: dict[str, Any]) -> None:
        """Called under the models' locks, in order."""
        if message["detail-type"] == _WARNING:
            self._agents.post_warning(message["detail"]["instance-id"])
        self._forward(message)


def _new_id() -> str:
    return uuid.uuid4().hex


class ModelClock:
    """Calls `advance` of the EC2 model on the real clock."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="argosy-clock")
        self._thread.start()

    def close(self) -> None:
        """End and wait."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(CLOCK_PERIOD_S):
            try:
                self._model.advance()
            except Exception:  # noqa: BLE001 - time must advance; the fault is ours and is printed
                traceback.print_exc()
