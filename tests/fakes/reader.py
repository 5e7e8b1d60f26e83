"""A deployment of a few dictionaries that the pages of `argosy ui` show."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any

import numpy as np

from argosy.api.cluster.actions import in_columns
from argosy.client.api import ApiError
from argosy.client.aws_clients import Connection
from argosy.figures.history import column, stored
from argosy.model.tasks import TaskStatus
from argosy.ui.deployment_reader import DeploymentReader
from tests.fakes import environments
from tests.fakes.cli import NOW, RUN_ID, instance, refusal
from tests.fakes.histories import ZONES, cluster_history, history
from tests.fakes.schedule_views import schedule
from tests.fakes.sharing import in_full

JSON = dict[str, Any]
PLAN: JSON = {
    "name": "digits",
    "tasks": 500,
    "possible": True,
    "placesHere": 0,
    "startUp": {"bootSeconds": 90.0, "pullSeconds": None, "startSeconds": 5.0, "usd": 0.0036},
    "places": 120,
    "instances": [
        {
            "pool": "us-east-1/c6i.2xlarge/us-east-1a",
            "cell": "us-east-1",
            "zone": "us-east-1a",
            "instanceType": "c6i.2xlarge",
            "purchase": "spot",
            "count": 15,
            "tasksAtATime": 8,
            "priceUsdPerHour": 0.1432,
        }
    ],
    "costUsd": {"low": 0.8, "expected": 1.2, "high": 2.1},
    "seconds": {"low": 1500.0, "expected": 1900.0, "high": 3100.0},
    "instanceHours": 8.1,
    "taskSeconds": {"low": 30.0, "expected": 60.0, "high": 90.0},
    "onDemand": {"region": "us-east-1", "costUsd": 3.4, "seconds": 1700.0, "instanceTypes": ["c6i.xlarge"]},
    "image": {"bytes": 1_073_741_824, "pullSeconds": 20.48},
    "rejected": [{"reason": "needs 4 GPUs, has none", "pools": 12, "instanceTypes": ["c5.large", "c5.xlarge"]}],
    "relaxations": [
        {
            "sentence": "7,500 MiB lets one more task fit on an instance",
            "saves": 0.21,
            "costUsd": 0.95,
            "seconds": 1800.0,
        },
        {"sentence": "in any cell", "saves": 0.12, "costUsd": 1.06, "seconds": 1850.0},
    ],
    "assumptions": ["seconds of a task: 60 s, from 3 earlier runs"],
    "warnings": ["the run may miss its deadline"],
}


def fleet(instance_type: str, zone: str, **changes: Any) -> JSON:
    return {
        "instanceType": instance_type,
        "availabilityZone": zone,
        "cell": "us-east-1",
        "spotTarget": 0,
        "onDemandTarget": 0,
        "spotUsdPerHour": 0.07,
        "onDemandUsdPerHour": 0.17,
        "pricedAt": None,
        "priceIsStale": False,
        "assumedUsdPerHour": 0.07,
        "interruptionBand": "<5 %",
        "interruptionsPerHour": 0.001,
        "coolingOffUntil": None,
        "coolingOffAfter": None,
        "needsMending": False,
        "unsettledUntil": None,
        "placementScore": 7,
        "noOfferBecause": None,
        **changes,
    }


def _there(is_there: bool, view: JSON) -> JSON:
    if not is_there:
        raise ApiError(404, {"code": "ResourceNotFoundException", "message": "there is none", "requestId": "r"})
    return view


class Api:
    """Answers as `client.api.ApiClient` does. asked: the names of the actions, in order."""

    def __init__(self, instances: int, attempts: int) -> None:
        self.view, self.told, self.pages = history(instances, attempts)
        self.view |= {"gpus": 1, "vcpus": 1.0, "memoryMib": 3_000}
        self.asked: list[str] = []
        self.live: JSON = {"outcome": None, "stoppedAt": None}  # of the latest attempt of each task

    def runs(self, limit: int) -> JSON:
        self.asked.append("runs")
        return {"runs": [self.view], "nextToken": None}

    def sharing(self) -> JSON:
        self.asked.append("sharing")
        return in_full()

    def environments(self, prefix: str = "") -> JSON:
        self.asked.append("environments")
        found = [environments.in_use(), {**environments.created(), "name": "new"}]
        return {"environments": found}

    def environment(self, name: str) -> JSON:
        self.asked.append(f"environment {name}")
        if name == "new":
            return environments.created()
        return _there(name == "web", environments.in_use())

    def tasks(self, limit: int, **filters: Any) -> JSON:
        self.asked.append(f"tasks {filters['runId']}")
        return {"tasks": environments.live_tasks(filters["runId"]), "nextToken": None}

    def describe(self, run_id: str) -> JSON:
        return {**self.view, "runId": run_id}

    def schedules(self) -> JSON:
        self.asked.append("schedules")
        never = {"name": "later", "last": None, "fires": [], "next": None, "state": "PAUSED"}
        return {"schedules": [schedule(), schedule(**never)]}

    def schedule(self, name: str) -> JSON:
        self.asked.append(f"schedule {name}")
        return _there(name == "often", schedule())

    def describe_with_cost(self, run_id: str) -> JSON:
        self.asked.append("describe")
        return _there(run_id == RUN_ID, self.view)

    def describe_with_statuses(self, run_id: str) -> JSON:
        """Attempts that were lost are to be repeated."""
        self.asked.append("statuses")
        found = {name: column(self.pages[0]["columns"][name]) for name in ("index", "outcome")}
        states = np.zeros(len(found["index"]), "u1")
        states[found["index"]] = np.array([2, 4, 5, 5, 0, 0, 5, 6])[found["outcome"]]
        statuses = {**stored(states), "values": [each.name for each in TaskStatus]}
        return {**_there(run_id == RUN_ID, self.view), "statuses": statuses}

    def describe_with_tasks(self, run_id: str) -> JSON:
        return {"taskList": [], **self.view, "runId": run_id}

    def history(self, run_id: str) -> JSON:
        self.asked.append("history")
        return self.told

    def attempts(self, run_id: str, token: str | None = None) -> JSON:
        self.asked.append(f"attempts {token}")
        return self.pages[int(token or 0)]

    def task(self, run_id: str, index: int) -> JSON:
        self.asked.append(f"task {index}")
        _there(run_id == RUN_ID, self.view)
        log = {"logGroup": "/ecs/argosy/tasks", "region": "us-east-1", "logStream": f"argosy/main/{index}"}
        times = {"startedAt": self.view["submittedAt"], "stoppedAt": self.view["stoppedAt"]}
        about = {**log, **times, "attempt": 1, "instance": "i-0000000000000000a", "outcome": "FAILED"}
        ended = [each for each in self.view["failureGroups"] if each["firstIndex"] == index]
        found = [{**about, "reason": each["reason"], "exitCode": each["exitCode"]} for each in ended]
        found += [{**about, "attempt": 1 + len(found), "reason": None, "exitCode": None} | self.live]
        return {"runId": run_id, "index": index, "status": "FAILED", "attempts": found, "attemptsLeftOut": 0}

    def cancel(self, run_id: str, reason: str | None, dependents: bool = False, tasks: Any = ()) -> JSON:
        self.asked.append(f"cancel {run_id} {reason}{f' {tasks}' if tasks else ''}")
        return self.view

    def retry(self, run_id: str, wanted: JSON, client_token: str) -> JSON:
        self.asked.append(f"retry {run_id} {[name for name, is_meant in wanted.items() if is_meant]}")
        return self.view

    def explain(self, run_id: str, index: int | None) -> JSON:
        self.asked.append("explain")
        return {"sentence": "nothing waits"}

    def plan(self, spec: JSON) -> JSON:
        self.asked.append("plan")
        return PLAN

    def cluster(self) -> JSON:
        self.asked.append("cluster")
        rng = np.random.default_rng(1)
        return {
            "cluster": "argosy",
            "cells": ["us-east-1"],
            "instances": [self._instance(rng, life) for life in self.told["instances"]],
            "fleets": [fleet("c5.xlarge", zone, spotTarget=3 if place == 0 else 0) for place, zone in enumerate(ZONES)],
            "usdPerHour": 1.0,
            "spentUsd": 12.3,
            "onDemandUsd": 40.0,
            "peakUtilisation": {},
        }

    def cluster_columns(self) -> JSON:
        return in_columns({**self.cluster(), "attempts": self._at_work()})

    def cluster_history(self, hours: float) -> JSON:
        self.asked.append(f"history {hours:g}")
        return {"history": cluster_history(min(1000, int(hours * 12)))}

    def _at_work(self) -> JSON:
        """The attempts that the history says are alive."""
        [page] = self.pages
        found = {name: column(each) for name, each in page["columns"].items()}
        alive = np.flatnonzero(found["outcome"] == 0)
        alive = alive[np.argsort(found["instance"][alive], kind="stable")]
        return {
            "rows": len(alive),
            "left": 0,
            "columns": {
                "instance": stored(found["instance"][alive].astype("u4")),
                "run": {**stored(np.zeros(len(alive), "u2")), "values": [RUN_ID]},
                "index": stored(found["index"][alive]),
                "gpuMask": stored(found["gpuMask"][alive]),
            },
        }

    def _instance(self, rng: np.random.Generator, life: JSON) -> JSON:
        used, gpus = float(rng.beta(3, 1)), int(life["type"].startswith("g"))
        return instance(
            instanceId=life["id"],
            instanceType=life["type"],
            availabilityZone=life["zone"],
            purchase=life["purchase"],
            cpu={"total": 4.0, "used": 4 * used},
            memory={"total": 8192, "used": 6000 * used},
            gpus={"total": gpus, "used": gpus * round(used)},
            tasks=int(4 * used),
            noWorkBecause="drained by a user until 2026-11-21 14:00 UTC" if used > 0.97 else None,
            **({"gpuDevices": [device(used)]} if gpus else {}),
        )


def device(used: float) -> JSON:
    """A GPU that tasks share, or that is idle."""
    mode = "NVIDIA_MPS" if used > 0.5 else "IDLE"
    return {"gpuId": "GPU-1", "mode": mode, "freeMib": round(22_000 * (1 - used)), "totalMib": 22_000}


def use() -> JSON:
    """What the runner says that a task used."""
    return {"version": 1, "at": [1.0, 6.0, 11.0], "vcpus": [0.4, 0.2, 0.3], "memoryMib": [100, 310, 250]}


def gpu_use(samples: int = 30) -> JSON:
    """What a runner says about a task that uses half of its GPU."""
    at = [10.0 * (1 + number) for number in range(samples)]
    use = [40.0 + 20.0 * (number % 3) for number in range(samples)]
    memory = [min(9_216.0, 1_000.0 * (1 + number)) for number in range(samples)]
    about = {"version": 1, "gpus": 1, "name": "NVIDIA A10G", "totalMib": 23_028, "shareMib": 0}
    return {**about, "at": at, "use": use, "memoryMib": memory, "watts": [150.0] * samples}


class Objects:
    """S3 with a spec, EC2 without prices, and logs with a line each."""

    def __init__(self, spec: bytes | None) -> None:
        self.spec = spec

    def get_object(self, **place: str) -> JSON:
        if "/attempts/use/" in place["Key"]:
            return {"Body": io.BytesIO(json.dumps(use()).encode())}
        if "/gpu-use/" in place["Key"]:
            return {"Body": io.BytesIO(json.dumps(gpu_use()).encode())}
        if self.spec is None:
            raise refusal("NoSuchKey")
        return {"Body": io.BytesIO(self.spec)}

    def get_log_events(self, **asked: Any) -> JSON:
        return {"events": [{"message": f"the last line of {asked['logStreamName']}", "timestamp": 1000 * NOW}]}

    def get_paginator(self, operation: str) -> Objects:
        return self

    def paginate(self, **request: Any) -> list[JSON]:
        folder = request.get("Prefix", "")
        stored = [{"Key": f"{folder}{index:07d}/1.json", "LastModified": index} for index in range(3)]
        return [{"SpotPriceHistory": [], "Contents": stored}]


class Reached:
    """As `client.access.Access`."""

    def __init__(self, api: Any, spec: bytes | None) -> None:
        self.api, self.spec, self.deployment = (
            api,
            spec,
            SimpleNamespace(region="us-east-1", prefix="argosy", allow_interrupt=False),
        )
        self.connection = Connection(endpoint_url="http://127.0.0.1:1")

    def client(self, service: str, region: str | None = None) -> Objects:
        return Objects(self.spec)


def reader(instances: int = 20, attempts: int = 300, *, spec: JSON | None = None, now: float = NOW) -> DeploymentReader:
    access: Any = Reached(Api(instances, attempts), json.dumps(spec or {}).encode())
    return DeploymentReader(access, lambda: now)
