"""The real engine over the real adapters in a simulated AWS on a virtual clock: minutes of cluster in milliseconds."""

from __future__ import annotations

import io
import os
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import md5
from typing import Any

from argosy.api import reading
from argosy.api.waiting.explanation import explain_run
from argosy.aws.call_rates import CallRates
from argosy.aws.cell import PART_SIZE, Cell, Coordination, HomeClients, PartSize
from argosy.aws.executor import AwsExecutor
from argosy.aws.on_demand_prices import OnDemandPrices
from argosy.catalogue.lookup import load_catalogue
from argosy.client.results.manifest import open_manifest
from argosy.emulator.ec2.service import Ec2Setup
from argosy.engine.tick import Engine
from argosy.model import inbox
from argosy.model.inbox import CancelRequest, RetryRequest, SharingRequest
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.run_record import RunRecord
from argosy.model.runs import Run
from argosy.ports import Message, StaleState
from tests.builders import CELL, RUN_ID, MemoryStore, spec, submit_request
from tests.fakes.aws import DEPLOYMENT, ScriptedClient, refusal
from tests.harness.simulation.controllers.kept_rows import drifted
from tests.harness.simulation.world.virtual_task import TaskBehaviour
from tests.harness.simulation.world.world import Behaviour, World
from tests.stored_alike import StoredState, forgotten

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
TICK_S = 10.0
LONGEST_PAUSE_S = 60.0  # added to a tick while nothing happens; the schedule comes each minute
PAUSE_TICKS = 6  # the same limit in ticks
CHECK_TICKS = 20  # between two comparisons with a load of the whole state, also while nothing is written
STATE_COMMITS, ROWS_COMMITS = 5, 6  # between two comparisons of the state and of the kept rows: differences last


STRICT_OF = 3  # one test in three checks the shapes of all requests and replies


def are_shapes_checked() -> bool:
    """Hundreds of scenarios make the same calls, and the check takes a twelfth of their time. The test's name decides,
    so that a failure can be reproduced."""
    return zlib.crc32(os.environ.get("PYTEST_CURRENT_TEST", "").partition(" (")[0].encode()) % STRICT_OF == 0


class MemoryS3:
    """The few S3 operations that close a run, over a dictionary."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.metadata: dict[str, dict[str, str]] = {}

    def put_object(
        self,
        *,
        Key: str,  # noqa: N803
        Body: Any = b"",  # noqa: N803
        Metadata: Mapping[str, str] | None = None,  # noqa: N803
        **rest: Any,
    ) -> dict[str, Any]:
        """IfMatch and IfNoneMatch as S3 takes them."""
        if "IfMatch" in rest and Key not in self.objects:
            raise refusal("NoSuchKey", "The specified key does not exist.", 404)
        taken = rest.get("IfNoneMatch") == "*" and Key in self.objects
        if taken or ("IfMatch" in rest and rest["IfMatch"] != self._etag(Key)):
            raise refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412)
        self.objects[Key] = Body if isinstance(Body, bytes) else Body.read()
        self.metadata[Key] = dict(Metadata or {})
        return {}

    def head_object(self, *, Key: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        if Key not in self.objects:
            raise refusal("404", "Not Found", 404)
        size = len(self.objects[Key])
        return {"ETag": self._etag(Key), "Metadata": self.metadata.get(Key, {}), "ContentLength": size}

    def _etag(self, key: str) -> str:
        return f'"{md5(self.objects[key], usedforsecurity=False).hexdigest()}"'

    def get_object(self, *, Key: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        if Key not in self.objects:
            raise refusal("NoSuchKey", "The specified key does not exist.")
        return {"Body": io.BytesIO(self.objects[Key]), "ContentLength": len(self.objects[Key])}

    def delete_object(self, *, Key: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        self.objects.pop(Key, None)
        return {}

    def upload_fileobj(self, stream: io.BytesIO, bucket: str, key: str, **rest: Any) -> None:
        self.objects[key] = stream.read()

    def list_objects_v2(self, *, Prefix: str, StartAfter: str = "", **rest: Any) -> dict[str, Any]:  # noqa: N803
        names = sorted(key for key in self.objects if key.startswith(Prefix) and key > StartAfter)
        found = [{"Key": key, "Size": len(self.objects[key])} for key in names]
        return {"Contents": found, "KeyCount": len(found), "IsTruncated": False}


class Events:
    """ports.EventQueue fed by the world; `lose` says which messages never arrive."""

    def __init__(self, lose: Callable[[dict[str, Any]], bool] = lambda message: False) -> None:
        self.lose = lose
        self.waiting: dict[str, dict[str, Any]] = {}
        self.count = 0

    def __call__(self, message: dict[str, Any]) -> None:
        if not self.lose(message):
            self.count += 1
            self.waiting[str(self.count)] = message

    def receive(self, wait_s: float) -> list[Message]:
        return [Message(receipt, body) for receipt, body in list(self.waiting.items())[:300]]

    def delete(self, receipts: Sequence[str]) -> None:
        for receipt in receipts:
            self.waiting.pop(receipt, None)


class Controlled:
    """A world with fleets and one or several controllers."""

    def __init__(
        self,
        types: Sequence[str] = ("c5.xlarge",),
        zones: Sequence[str] = ZONES,
        work_s: float = 60.0,
        lose: Callable[[dict[str, Any]], bool] = lambda message: False,
        prices: Callable[..., float] | None = None,
        tick_s: float = TICK_S,
        starts_s: float = 30.0,
        part_size: PartSize = PART_SIZE,
        **policy: Any,
    ) -> None:
        """starts_s: from the launch of an instance to a running one."""
        self.events, self.tick_s = Events(lose), tick_s
        self.deployment = replace(DEPLOYMENT, part_size=part_size)
        self.world = World(
            Ec2Setup(load_catalogue(), prices=prices, boot_s=starts_s),
            Behaviour(lambda task, instance: TaskBehaviour(duration_s=work_s)),
        )
        self.world.record_events()
        self.world.sinks.append(self.events)
        self.world.ec2.add_launch_template("argosy", image_id="ami-1", tags={"argosy:stage": "main"})
        for kind in types:
            for zone in zones:
                self.world.add_fleet(kind, zone, **{"argosy:stage": "main", "argosy:pool": f"{kind}/{zone}"})
        self.store, self.s3, self.stored = MemoryStore(), MemoryS3(), StoredState()
        strict = are_shapes_checked()
        self.ecs: Any = self.world.ecs_client(strict=strict)
        self.ec2: Any = self.world.ec2_client(strict=strict)
        self.price_list: Any = None  # a client of AWS's price list, for controllers that are made afterwards
        self.policy = replace(Policy(), **policy)
        self.controllers = [self.controller()]
        self.conflicts = self.repaired = self.ticks = self.checked_version = 0
        self.calm = 0  # ticks since the last request, message or action
        self.faulty = False  # whether the controller's own code may fail
        self.targets: Counter[str] = Counter()

    def controller(self, ecs: Any = None) -> Engine:
        """A fresh controller process: nothing in memory."""
        events = ScriptedClient("events", put_events={"FailedEntryCount": 0, "Entries": []})
        executor = AwsExecutor(
            self.deployment,
            self.cells(ecs),
            HomeClients(self.s3, events, self.price_list and OnDemandPrices(lambda: self.price_list)),
            self.world.clock,
            Coordination(retries_of=partial(reading.retries_of, self.store)),
        )
        return Engine(self.store, self.events, executor, load_catalogue(), self.policy, self.world.clock)

    def cells(self, ecs: Any = None) -> list[Cell]:
        """The environment of a controller."""
        rates = CallRates.of_aws(self.world.clock, self.pass_time)
        return [Cell(CELL, self.world.cluster, ecs or self.ecs, self.ec2, rates)]

    def pass_time(self, seconds: float) -> None:
        self.world.run_for(seconds)

    def submit(self, tasks: int, run_id: str = RUN_ID, expects_result: bool = False, **overrides: Any) -> str:
        now = self.world.now
        output = f"s3://results/{run_id}/"
        overrides = {
            "array": {"size": tasks},
            "container": {"image": "argosy/digits", "command": ["work"]},
            **overrides,
        }
        proven = str(overrides.get("owner", ""))  # an owner who is named here is proven
        image = overrides["container"]["image"]
        request = submit_request(run_id, now, spec(**overrides), tasks, image, output, expects_result, proven)
        self.put(request, run_id)
        return run_id

    def explained(self) -> str:
        """The first sentence of `argosy explain`."""
        state = self.controllers[0].state
        assert state is not None
        return str(explain_run(Moment(state, load_catalogue(), self.world.now, self.policy), self.run)["sentence"])

    def share(self, document: dict[str, Any], base: int = 0) -> None:
        """Applies a sharing document over the one of that version."""
        self.put(SharingRequest(document, base, self.world.now), f"sharing#{base}")

    def cancel(self, run_id: str = RUN_ID) -> None:
        self.put(CancelRequest(run_id, self.world.now, "enough"), f"{run_id}#cancel")

    def retry(self, run_id: str = RUN_ID, **which: Any) -> None:
        self.put(RetryRequest(run_id, self.world.now, **which), f"{run_id}#retry")

    def manifest(self, run_id: str = RUN_ID) -> list[dict[str, Any]]:
        """The entries that readers of the results follow."""
        manifest = open_manifest(self.s3, f"s3://results/{run_id}/")
        assert manifest is not None
        return list(manifest.entries())

    def put(self, request: inbox.Request, name: str) -> None:
        self.calm = -1
        self.store.create({(inbox.INBOX, inbox.inbox_key(self.world.now, name)): inbox.to_bytes(request)})

    def tick(self) -> bool:
        """Each controller ticks once, then time passes. True when all are at rest."""
        at_rest, self.calm = True, self.calm + 1
        for engine in self.controllers:
            try:
                report = engine.tick()
                assert not report.troubles or self.faulty, report.troubles
                at_rest &= report.at_rest
                self.calm = 0 if report.events or report.actions or report.repaired else self.calm
                self.repaired += report.repaired
                if not self.faulty:
                    self.check(engine)
            except StaleState:
                self.conflicts += 1
                at_rest = False
        self.pass_time(self.tick_s)
        return at_rest

    def step(self, most_s: float = float("inf")) -> bool:
        """Like `tick`, with longer pauses while nothing happens."""
        at_rest = self.tick()
        if not any(engine.sightings for engine in self.controllers):
            pause_s = self.tick_s * min(PAUSE_TICKS, 2**self.calm - 1)
            self.wait_for_message(min(LONGEST_PAUSE_S, most_s - self.tick_s, pause_s))
        return at_rest

    def wait_for_message(self, most_s: float) -> None:
        """A long poll: time passes until something is in the queue, or is over."""
        self.world.run_until(self.world.now + most_s, lambda: bool(self.events.waiting))

    def check(self, engine: Engine) -> None:
        """A controller that starts now has the same state and the same rows as this one. In trials they are compared
        after every tick."""
        state, self.ticks = engine.state, self.ticks + 1
        if state is None or state.version != self.store.version():
            return
        again = self.ticks % CHECK_TICKS == 0
        if state.version > self.checked_version or again:
            self.checked_version = state.version
            if again:
                assert forgotten(state, self.store) == []
            elif state.version % STATE_COMMITS == 0:
                assert self.stored.forgotten(state, self.store) == []
        if again or state.version % ROWS_COMMITS == 0:
            assert drifted(engine) == []

    def run_to_rest(self, limit_s: float = 4 * 3600.0) -> float:
        """Tick until nothing is left to do; how long it took."""
        began = self.world.now
        while not self.step():
            assert self.world.now - began < limit_s, "it does not come to rest"
        return self.world.now - began

    def run_for(self, seconds: float) -> None:
        end = self.world.now + seconds
        while self.world.now < end:
            self.step(end - self.world.now)

    @property
    def run(self) -> Run:
        """The only open run, as the first controller sees it."""
        state = self.controllers[0].state
        assert state is not None
        return next(iter(state.runs.values()))

    def record(self, run_id: str = RUN_ID) -> RunRecord:
        """The run as users see it."""
        record = reading.run(self.store, run_id)
        assert record is not None
        return record

    def starts(self) -> Counter[tuple[str, str]]:
        """How often each (index, attempt) became an ECS task, from the events of the world."""
        started: dict[str, tuple[str, str]] = {}
        for message in self.world.events:
            if message["detail-type"] == "ECS Task State Change":
                overrides = message["detail"]["overrides"]["containerOverrides"][0]
                values = {entry["name"]: entry["value"] for entry in overrides["environment"]}
                started[message["detail"]["taskArn"]] = (values["ARGOSY_TASK_INDEX"], values["ARGOSY_TASK_ATTEMPT"])
        return Counter(started.values())

    def fleet_targets(self) -> dict[str, int]:
        fleets = self.ec2.describe_fleets()["Fleets"]
        return {
            next(tag["Value"] for tag in fleet["Tags"] if tag["Key"] == "argosy:pool"): fleet[
                "TargetCapacitySpecification"
            ]["TotalTargetCapacity"]
            for fleet in fleets
        }

    def live_instances(self) -> list[dict[str, Any]]:
        reservations = self.ec2.describe_instances()["Reservations"]
        every = [instance for reservation in reservations for instance in reservation["Instances"]]
        return [instance for instance in every if instance["State"]["Name"] in ("pending", "running")]


def index_of(task: dict[str, Any]) -> int:
    values = task["overrides"]["containerOverrides"][0]["environment"]
    return int(next(each["value"] for each in values if each["name"] == "ARGOSY_TASK_INDEX"))


def failing(cluster: Controlled, *indexes: int) -> None:
    """From now on these tasks fail, the others succeed."""
    cluster.world.workload = lambda task, instance: TaskBehaviour(5.0, exit_code=int(index_of(task) in indexes))
