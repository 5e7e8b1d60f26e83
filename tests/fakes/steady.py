"""A deployment with one service to which nothing happens, in virtual time: its controller ends and comes back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from argosy.catalogue.lookup import load_catalogue
from argosy.emulator.dynamodb import size_of
from argosy.emulator.ec2.service import Ec2Setup
from argosy.emulator.sqs import SqsModel
from argosy.engine.report import TickReport
from argosy.model.inbox import EnvironmentRequest
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import terms_of_form
from tests.builders import submit_request
from tests.harness.simulation.controllers.deployment import SimulatedDeployment, SimulatedServices
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.injection.boundary import Call, CallConditions
from tests.harness.simulation.injection.event_path import EventPath
from tests.harness.simulation.world.deployed_fleets import add_fleets
from tests.harness.simulation.world.regions import Regions
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import Behaviour, World

FOR_EVER_S = 1e9
WORKING_S = 2.0  # between two ticks of a controller at work
RUN = "web-261121-062701-k3f9"


@dataclass(slots=True)
class Invocation:
    """What one cost."""

    at: float
    ticks: int = 0
    seconds: float = 0.0  # of virtual time
    cpu_s: float = 0.0  # of this process, the models of AWS included
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    read_units: float = 0.0
    write_units: int = 0
    reason: str = ""


class SteadyService:
    """`desired` tasks, which run until they are stopped."""

    def __init__(
        self,
        desired: int = 10,
        work_s: float = FOR_EVER_S,
        kinds: dict[str, float] | None = None,
        seed: int = 0,
        healthy_s: int = 15,
        **policy: Any,
    ) -> None:
        """kinds: faults with their rates, on from the start."""
        self.world = World(
            Ec2Setup(load_catalogue()), Behaviour(lambda task, instance: TaskBehaviour(work_s)), seed=seed
        )
        self.faults = Faults(seed, ())
        self.faults.rates.update(kinds or {})
        self.services = SimulatedServices(SqsModel(self.world.clock))
        self.world.sinks.append(EventPath(self.world, self.services.sqs, self.faults, self._call))
        add_fleets(self.world, ("c5.xlarge",), ("us-east-1a", "us-east-1b"))
        conditions = CallConditions(self.faults, self)
        self.deployment = SimulatedDeployment(
            Regions(self.world), self.services, Policy(**policy), conditions, on_tick=self._ticked
        )
        self.controller = self.deployment.add_controller()
        self.finished: list[Invocation] = []
        self.ticked_at: list[float] = []
        self.listener: Callable[[TickReport], None] = lambda _: None
        self._now = Invocation(self.world.now)
        self._cpu = self._units = 0.0
        self.deployment.invocations.left = self._left  # type: ignore[method-assign]
        self.requests = 0
        spec = {
            "version": 1,
            "kind": "service",
            "name": "web",
            "container": {"image": "argosy/web", "command": ["serve"]},
            "resources": {"vcpus": 0.5, "memory": 512},
            "service": {"desired": desired, "update": {"healthySeconds": healthy_s}},
        }
        self.spec = to_json(parse_spec(spec))
        terms = terms_of_form(self.spec).service
        assert terms is not None
        self.ask("create", revision=1, desired=desired)
        now = self.world.now
        submit = submit_request(RUN, now, self.spec, desired, "argosy/web", f"s3://results/{RUN}/", False)
        self.ask("deploy", revision=1, token="1", submit=submit)

    def ask(self, change: str, **fields: Any) -> None:
        self.requests += 1
        request = EnvironmentRequest("web", self.world.now, change, **fields)
        self.deployment.put(request, f"web#{change}#{self.requests:03d}")

    @property
    def state(self) -> State:
        state = self.controller.engine.state
        assert state is not None
        return state

    @property
    def pause_ends_at(self) -> float:
        """The restart of a waiting task; 0 = no task waits."""
        (run,) = self.state.runs.values()
        return float(max(run.tasks["not_before"][run.tasks["status"] == TaskStatus.PENDING], default=0.0))

    def run_for(self, seconds: float) -> None:
        """Controllers at work tick every other second, quiet ones come back by themselves."""
        end = self.world.now + seconds
        while self.world.now < end:
            self.deployment.tick(self.controller)
            left = end - self.world.now
            self.deployment.pass_time(left if self.deployment.is_quiet else min(WORKING_S, left))

    def run_to_quiet(self, limit_s: float = 3600.0) -> None:
        began = self.world.now
        while not self.deployment.is_quiet:
            assert self.world.now - began < limit_s, "it never becomes quiet"
            self.run_for(WORKING_S)

    def _call(self) -> None:
        self.deployment.call()

    def took_effect(self, call: Call, reply: dict[str, Any]) -> None:
        if not self._now.calls:
            self._now.at, self._cpu = self.world.now, time.process_time()
        self._now.calls[call.service, call.operation] += 1
        if call.service == "dynamodb":
            found = [*reply.get("Items", ()), *([reply["Item"]] if "Item" in reply else ())]
            found += [item for items in reply.get("Responses", {}).values() for item in items]
            if call.operation in ("query", "get_item", "batch_get_item"):
                self._now.read_units += max(1.0, -(-sum(map(size_of, found)) // 4096))

    def ended(self, call: Call, outcome: str) -> None:
        """Nothing is refused here."""

    def _ticked(self, report: TickReport, version: int | None) -> None:
        self._now.ticks += 1
        self.ticked_at.append(self.world.now)
        self.listener(report)

    def _left(self, reason: str) -> None:
        type(self.deployment.invocations).left(self.deployment.invocations, reason)
        done, self._now = self._now, Invocation(self.world.now)
        done.reason, done.seconds, done.cpu_s = reason, self.world.now - done.at, time.process_time() - self._cpu
        done.write_units = int(self.services.dynamodb.write_units - self._units)
        self._units = self.services.dynamodb.write_units
        self.finished.append(done)
