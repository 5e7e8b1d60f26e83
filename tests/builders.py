"""Valid objects for tests: each builder gives one that works and merges what the test cares about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.catalogue.lookup import load_catalogue, overheads_of
from argosy.lifecycle.apply import apply
from argosy.lifecycle.begin import begin
from argosy.model.actions import Action, Launch
from argosy.model.attempts import AttemptKey
from argosy.model.events import (
    ContainerInstanceSeen,
    Event,
    FleetSeen,
    HostSeen,
    LaunchAccepted,
    RunPrepared,
    RunSubmitted,
    TaskSeen,
)
from argosy.model.inbox import SubmitRequest
from argosy.model.instance_types import InstanceType
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import AlreadyExists, Key, StaleState, Switches
from argosy.spec.terms import terms_of_form

NOW = 1_800_000_000.0
POLICY = Policy(fate_s=0.0)  # failures are booked at once; tests/unit/lifecycle/test_fates.py has them wait
CELL = "us-east-1"
RUN_ID = "digits-261121-062733-k3f9"
SERVICE_SPEC = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "service": {"desired": 2},
}


def spec(**overrides: Any) -> dict[str, Any]:
    """A validated run spec."""
    document = {
        "version": 1,
        "name": "digits",
        "container": {"image": "argosy/digits", "command": ["--range", "${range}", "--output", "${part}"]},
        "resources": {"vcpus": 1, "memory": 1024, "gpus": 0},
        "array": {"range": "0:100", "shardSize": 10},
        "retryStrategy": {"attempts": 3},
    }
    return {**document, **overrides}


def submit_request(
    run_id: str, at: float, form: Mapping[str, Any], tasks: int, image: str, output: str, expects_result: bool,
    proven_owner: str = "",
) -> SubmitRequest:  # fmt: skip
    """The api's form of an admitted spec."""
    terms = terms_of_form(form)
    return SubmitRequest(run_id, at, form, terms, tasks, image, output, expects_result, proven_owner)


def submitted(run_id: str = RUN_ID, tasks: int = 10, expects_result: bool = False, **overrides: Any) -> RunSubmitted:
    output = f"s3://results/{run_id}/"
    image = "" if "taskDefinition" in overrides else "argosy/digits"
    proven = str(overrides.get("owner", ""))  # an owner who is named here has proven to be it
    request = submit_request(run_id, NOW, spec(**overrides), tasks, image, output, expects_result, proven)
    return RunSubmitted(request)


def prepared(run_id: str = RUN_ID, **overrides: Any) -> RunPrepared:
    needs = terms_of_form(spec(**overrides)).needs
    arn = f"arn:aws:ecs:{CELL}:123456789012:task-definition/argosy-0a1b2c3d4e5f:1"
    return RunPrepared(run_id, arn, "main", *needs[:3])


def fleet(instance_type: str = "c5.xlarge", zone: str = "us-east-1a", **overrides: Any) -> FleetSeen:
    values: dict[str, Any] = {"fleet_id": f"fleet-{instance_type}-{zone}", "spot_target": 0}
    return FleetSeen(CELL, instance_type, zone, **{**values, **overrides})


def host(number: int = 1, instance_type: str = "c5.xlarge", zone: str = "us-east-1a", **overrides: Any) -> HostSeen:
    values: dict[str, Any] = {"purchase": "spot", "state": "running", "launched_at": NOW}
    return HostSeen(instance_id(number), CELL, instance_type, zone, **{**values, **overrides})


def whole(ec2_usd_per_hour: float, instance_type: str = "c5.xlarge", cell: str = CELL) -> float:
    """EC2's price of an instance, with its disk and its public address."""
    disk_gib = POLICY.billed_disk_gib_of(load_catalogue()[instance_type])
    return ec2_usd_per_hour + overheads_of(cell, disk_gib, has_address=True).usd_per_hour


def instance_id(number: int) -> str:
    return f"i-{number:017x}"


def container_instance(
    number: int = 1, cpu_units: int = 4096, memory_mib: int = 7000, gpus: int = 0, **overrides: Any
) -> ContainerInstanceSeen:
    values: dict[str, Any] = {
        "version": 1,
        "status": "ACTIVE",
        "agent_connected": True,
        "gpu_ids": tuple(f"GPU-{number}-{gpu}" for gpu in range(gpus)),
        "attributes": {"ecs.instance-type": "c5.xlarge", "ecs.availability-zone": "us-east-1a"},
        "registered_at": NOW,
    }
    arn = f"arn:aws:ecs:{CELL}:123456789012:container-instance/argosy/{number:032x}"
    values |= {"cpu_units": cpu_units, "memory_mib": memory_mib, **overrides}
    return ContainerInstanceSeen(arn, instance_id=instance_id(number), cell=CELL, **values)


def joined(numbers: Iterable[int]) -> list[Event]:
    """The sightings of instances with these numbers that run and have registered."""
    return [each for number in numbers for each in (host(number), container_instance(number))]


def task_arn(number: int) -> str:
    return f"arn:aws:ecs:{CELL}:123456789012:task/argosy/{number:032x}"


def task(number: int, last_status: str = "RUNNING", version: int = 2, **overrides: Any) -> TaskSeen:
    values: dict[str, Any] = {"desired_status": "STOPPED" if last_status == "STOPPED" else "RUNNING"}
    if last_status == "RUNNING":
        values["started_at"] = NOW
    return TaskSeen(task_arn(number), version, last_status, **{**values, **overrides})


def moment_of(
    state: State, now: float = NOW, policy: Policy = POLICY, catalogue: Mapping[str, InstanceType] | None = None
) -> Moment:
    """catalogue: None = the whole one."""
    return Moment(state, load_catalogue() if catalogue is None else catalogue, now, policy)


BUILT: list[State] = []  # in the test that is running; each is checked when it ends (conftest.py)


def state_with(*events: Event, policy: Policy = POLICY) -> State:
    state = State(epoch="testtest")
    return told(state, *events, policy=policy)


def told(state: State, *events: Event, now: float = NOW, policy: Policy = POLICY) -> State:
    if all(state is not each for each in BUILT):
        BUILT.append(state)
    for event in events:
        apply(state, event, now, policy)
    return state


def stored(state: State, items: documents.Documents) -> State:
    """Commit into `items` and read the state back from them."""
    items |= documents.changed(state)
    documents.committed(state)
    return read_back(state.version, items)


def read_back(version: int, items: documents.Documents) -> State:
    partition = {sk: body for (pk, sk), body in items.items() if pk == documents.STATE}
    runs = {}
    for run_id in documents.active_runs(partition):
        key = next(sk for (pk, sk) in items if pk == documents.RUNS and sk.endswith(f"#{run_id}"))
        own = {sk: body for (pk, sk), body in items.items() if pk == documents.run_partition(run_id)}
        runs[run_id] = (items[documents.RUNS, key], own)
    return documents.restore(version, partition, runs)


def the_run(state: State) -> Run:
    """The one that `submitted` makes."""
    return state.runs[RUN_ID]


def status_of(state: State, index: int = 0) -> TaskStatus:
    """For a task of `the_run`."""
    return TaskStatus(int(the_run(state).tasks.statuses()[index]))


def without_runs(state: State) -> State:
    """The state as it is loaded when no run can be read: live attempts belong to no run."""
    state.runs.clear()
    state.new_runs.clear()
    state.changed_runs.clear()
    state.losses.attempts = bool(len(state.attempts.live()))
    return state


def begun(state: State, actions: Iterable[Action], now: float = NOW, policy: Policy = POLICY) -> State:
    for action in actions:
        begin(state, action, now, policy)
    return state


def launched(
    state: State, index: int = 0, number: int = 1, on: int = 1, now: float = NOW, attempt: int = 1
) -> AttemptKey:
    """Task `index` of the only run is launched on instance `on` as ECS task `number`."""
    run = next(iter(state.runs.values()))
    key = AttemptKey(run.id, index, attempt, int(run.tasks["launch"][index]))
    wave = state.next_wave
    begun(state, [Launch(key, wave, state.started_by(wave), instance_id(on), CELL)], now)
    told(state, LaunchAccepted(key, task_arn(number)), now=now)
    return key


def state_with_instance(tasks: int = 10, expects_result: bool = False, **overrides: Any) -> State:
    """One prepared run and one active c5.xlarge."""
    return state_with(
        submitted(tasks=tasks, expects_result=expects_result, **overrides),
        prepared(**overrides),
        fleet(spot_target=1),
        host(1),
        container_instance(1),
    )


def _check_key(key: Key) -> None:
    """DynamoDB refuses an empty key, and one of more than 2,048 (partition) or 1,024 (sort) bytes."""
    assert all(0 < len(part.encode()) <= most for part, most in zip(key, (2_048, 1_024), strict=True)), key


class MemoryStore:
    """ports.Store in a dictionary; the contract suite runs it alongside DynamoStore."""

    def __init__(self) -> None:
        self.items: dict[Key, bytes] = {}
        self.stored_version = 0
        self.lease: tuple[str, float] | None = None
        self.heartbeat: float | None = None
        self.is_asked_for = False  # whether the lease was refused to a controller
        self.at_rest = False
        self.expires_at: dict[Key, float] = {}
        self.killed: str | None = None
        self.closed: dict[str, str] = {}
        self.commits = 0

    def read(self, key: Key) -> bytes | None:
        _check_key(key)
        return self.items.get(key)

    def read_partition(self, partition: str) -> dict[str, bytes]:
        return self._rows(partition)

    def _rows(self, partition: str) -> dict[str, bytes]:
        return dict(sorted((sk, body) for (pk, sk), body in self.items.items() if pk == partition))

    def read_many(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        return {key: body for key in keys if (body := self.read(key)) is not None}

    def page(
        self, partition: str, limit: int, after: str | None = None, oldest_first: bool = False
    ) -> tuple[list[tuple[str, bytes]], str | None]:
        _check_key((partition, "any" if after is None else after))
        rows = sorted(self._rows(partition).items(), reverse=not oldest_first)
        rows = [row for row in rows if after is None or (row[0] > after if oldest_first else row[0] < after)]
        return rows[:limit], rows[limit - 1][0] if len(rows) > limit else None

    def create(
        self,
        items: Mapping[Key, bytes],
        expires_at: Mapping[Key, float] | None = None,
        replacing: Mapping[Key, bytes] | None = None,
    ) -> None:
        if any(key in self.items for key in items):
            raise AlreadyExists(str(list(items)))
        items = {**items, **(replacing or {})}
        assert all(len(body) <= 400_000 for body in items.values()), "an item holds 400 KB"
        self.items.update(items)
        self.expires_at.update(expires_at or {})

    def commit(
        self,
        version: int,
        puts: Mapping[Key, bytes],
        deletes: Iterable[Key],
        expires_at: Mapping[Key, float] | None = None,
    ) -> None:
        if version != self.stored_version:
            raise StaleState(f"{version} is not {self.stored_version}")
        deletes = list(deletes)
        assert len(puts) + len(deletes) <= 99, "a transaction holds 100 items, the version among them"
        assert sum(map(len, puts.values())) <= 4_000_000, "a transaction holds 4 MB"
        assert all(len(body) <= 400_000 for body in puts.values()), "an item holds 400 KB"
        self.items.update(puts)
        self.expires_at.update(expires_at or {})
        for key in deletes:
            self.items.pop(key, None)
        self.stored_version += 1
        self.commits += 1

    def version(self) -> int:
        return self.stored_version

    def take_lease(self, owner: str, now: float, seconds: float) -> bool:
        if self.lease is not None and self.lease[0] != owner and self.lease[1] > now:
            self.is_asked_for = True
            return False
        self.lease = (owner, now + seconds)
        return True

    def release_lease(self, owner: str) -> None:
        if self.lease is not None and self.lease[0] == owner:
            self.lease, self.is_asked_for = None, False

    def lay_down_lease(self, owner: str) -> bool:
        if self.lease is None or self.lease[0] != owner:
            return True
        asked, self.is_asked_for = self.is_asked_for, False
        self.lease = self.lease if asked else None
        return not asked

    def beat(self, now: float, *, at_rest: bool = False) -> None:
        self.heartbeat, self.at_rest = now, at_rest

    def is_at_rest(self) -> bool:
        return self.at_rest

    def switches(self) -> Switches:
        return Switches(self.killed, dict(self.closed))
