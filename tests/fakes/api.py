"""The api over a store in memory, and the services that it calls: images, items, the controller's wake."""

from __future__ import annotations

import json
from typing import Any

from argosy.api.actions import Api
from argosy.api.admission.specs import DeploymentLimits, Sources
from argosy.engine.intake import event_of
from argosy.lifecycle.apply import apply
from argosy.model import inbox
from argosy.model.attempts import AttemptKey
from argosy.model.costs import Costs, market_of
from argosy.model.instances import Instance, InstanceStatus
from argosy.model.journal.commit import documents_of_commit
from argosy.model.pools import Pool
from argosy.model.resources import Resources
from argosy.model.runs import Failure, RunStatus
from argosy.model.stored import documents
from argosy.model.tasks import TaskStatus
from argosy.ports import ItemsUnreadable, Key
from tests.builders import NOW, POLICY, MemoryStore, state_with

SPEC: dict[str, Any] = {
    "version": 1,
    "name": "digits",
    "container": {"image": "argosy/digits", "command": ["${range}", "${part}"]},
    "array": {"range": "0:100", "shardSize": 10},
}


class Wake:
    def __init__(self) -> None:
        self.calls = 0
        self.fails = False

    def controller(self) -> None:
        self.calls += 1
        if self.fails:
            raise ConnectionError("no answer")

    def rest(self) -> None:
        raise AssertionError("not the api's")

    def stay(self) -> None:
        raise AssertionError("not the api's")


class Images:
    def resolve(self, image: str) -> str | None:
        return None if image == "argosy/unknown" else image


class Items:
    def __init__(self) -> None:
        self.items: list[Any] | None = ["a", "b", "c"]

    def read_items(self, uri: str) -> list[Any]:
        if self.items is None:
            raise ItemsUnreadable(f"{uri} does not exist")
        return self.items


class Definitions:
    """Every family is registered, and harmless except those of `others`."""

    def __init__(self, **others: dict[str, Any] | None) -> None:
        self.others = others

    def describe(self, name: str) -> dict[str, Any] | None:
        return self.others.get(name.partition(":")[0], {"containerDefinitions": [{"name": "main"}]})


class Desk:
    """An api over a store in memory, a clock that is set by hand, and a controller that takes requests in when
    called."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.wake = Wake()
        self.items = Items()
        self.time = NOW
        self.state = state_with()
        limits = DeploymentLimits("s3://own/", frozenset({"own"}), {"p3.8xlarge": Resources(32768, 230000, 4)})
        sources = Sources(Images(), self.items, Definitions())
        self.api = Api(self.store, self.wake, sources, limits, "argosy", ["us-east-1"], lambda: self.time)
        self.api.fleets = [("us-east-1", "p3.8xlarge", "us-east-1a")]

    def ask(self, action: str, request_id: str = "request-1", **fields: Any) -> dict[str, Any]:
        return self.api.handle({"action": action, **fields}, request_id)

    def body(self, action: str, **fields: Any) -> dict[str, Any]:
        answer = self.ask(action, **fields)
        assert answer["statusCode"] == 200, answer
        json.dumps(answer)  # what Lambda has to do with it
        return dict(answer["body"])

    def submit(self, token: str = "t-1", **fields: Any) -> dict[str, Any]:
        return self.body("SubmitRun", clientToken=token, spec={**SPEC, **fields})

    def fold_in(self) -> None:
        """The controller's next tick, as far as it concerns the inbox."""
        waiting = self.store.read_partition(inbox.INBOX)
        for body in waiting.values():
            request = inbox.from_bytes(body)
            apply(self.state, event_of(self.store, self.state, request), self.time, POLICY)
        self.commit(*((inbox.INBOX, key) for key in waiting))

    def commit(self, *deletes: Key) -> None:
        puts, expires_at = documents_of_commit(self.state, self.time)
        self.store.commit(self.state.version, puts, deletes, expires_at)
        documents.committed(self.state)


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    return dict(answer["body"]["error"])


def running(desk: Desk) -> str:
    """A run of ten tasks on a p3.8xlarge: task 0 has failed, task 1 runs on two GPUs, task 2 is about to be sent."""
    run_id = str(desk.submit(resources={"gpus": 2, "vcpus": 4, "memory": 2048})["runId"])
    desk.fold_in()
    state, run = desk.state, desk.state.runs[run_id]
    instance = Instance(
        "i-0000000000000000a", "us-east-1", "p3.8xlarge", "us-east-1a",
        status=InstanceStatus.ACTIVE,
        arn="arn:aws:ecs:us-east-1:123456789012:container-instance/argosy/abc",
        total=Resources(32768, 230000, 4),
        gpu_ids=("g0", "g1", "g2", "g3"),
        price_usd_per_hour=3.0,
        on_demand_usd_per_hour=12.0,
        disk_usd_per_hour=0.02,
        address_usd_per_hour=0.005,
        launched_at=NOW - 1800, registered_at=NOW - 1740,
    )  # fmt: skip
    gone = Instance(
        "i-0000000000000000b", "us-east-1", "c5.large", "us-east-1b",
        status=InstanceStatus.GONE, price_usd_per_hour=1.0, launched_at=NOW - 7200, stopped_at=NOW - 3600,
    )  # fmt: skip
    state.instances = {instance.id: instance, gone.id: gone}
    state.changed_instances |= {instance.id, gone.id}
    pool = Pool("us-east-1", "p3.8xlarge", "us-east-1a", "fleet-1", spot_target=1)
    state.pools = {pool.key: pool}
    state.changed_pools = True
    state.spent_usd, state.spent_on_demand_usd, state.peak_gpus = 1.0, 4.0, 0.5
    run.tasks.set(
        0, status=TaskStatus.FAILED, attempts=1, exit_code=3, reason=run.reason_row("exit code 3"),
        seconds=2.5, instance=instance.id.encode(), gpu_mask=0b1100,
    )  # fmt: skip
    run.tasks.set(1, status=TaskStatus.RUNNING, attempts=2)
    run.tasks.set(2, status=TaskStatus.STARTING, attempts=1)
    run.tasks.set(3, status=TaskStatus.VERIFYING, attempts=1)
    row = state.attempts.add(run.number, AttemptKey(run_id, 1, 2, 0), 1, instance.id, NOW)
    state.attempts.name_task(row, "f00")
    state.attempts.set(row, status=4, started_at=NOW - 30, gpu_mask=0b0011)
    state.attempts.add(run.number, AttemptKey(run_id, 2, 1, 0), 1, instance.id, NOW)
    run.failures = [Failure(number, 1, 3, "exit code 3", instance.id) for number in range(12)]
    run.status, run.started_at, run.waiting = RunStatus.RUNNING, NOW - 60, "waits for p3.8xlarge"
    run.instances, run.cost_usd, run.costs = {instance.id}, 0.25, {market_of(instance): Costs(idle=0.25)}
    state.next_wave = 2
    state.changed_runs.add(run_id)
    desk.commit()
    return run_id
