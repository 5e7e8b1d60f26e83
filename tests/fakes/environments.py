"""The api's answers about a service's environment, for tests of the modules that show it."""

from __future__ import annotations

from typing import Any

RUN = "web-261121-062643-k3f9"
CREATED_AT = "2026-11-21T06:26:33.000Z"
SERVICE = """version: 1
kind: service
name: web
container: {image: argosy/web, command: [serve]}
resources: {vcpus: 0.5, memory: 256}
service: {desired: 3}
"""

ENDPOINT = {
    "task": 0, "instance": "i-0a", "privateIp": "10.0.0.7", "publicIp": None, "hostPort": 32768,
    "containerPort": 8080, "revision": 2, "healthy": True,
}  # fmt: skip


def deployment(number: int, revision: int = 1, status: str = "COMPLETED", **changes: Any) -> dict[str, Any]:
    under_way = status in ("IN_PROGRESS", "WAITING", "STUCK")
    return {
        "deployment": number,
        "revision": revision,
        "status": status,
        "reason": None,
        "startedAt": "2026-11-21T06:26:43.000Z",
        "endedAt": None if under_way else "2026-11-21T06:27:13.000Z",
        "failures": 0,
        "isRollback": False,
        **changes,
    }


def revision(number: int, run_id: str | None = None, **changes: Any) -> dict[str, Any]:
    return {"revision": number, "createdAt": CREATED_AT, "runId": run_id, "healthy": 0, "running": 0, **changes}


def environment(**changes: Any) -> dict[str, Any]:
    """Three healthy tasks of the only revision."""
    return {
        "name": "web",
        "kind": "service",
        "status": "COMPLETED",
        "statusReason": None,
        "frozenByUser": False,
        "createdAt": CREATED_AT,
        "desired": 3,
        "healthy": 3,
        "running": 3,
        "total": 3,
        "outdated": 0,
        "pending": 0,
        "registeredTargets": 0,
        "latestRevision": 1,
        "targetRevision": 1,
        "completedRevision": 1,
        "costUsd": 0.25,
        "revisions": [revision(1, RUN, healthy=3, running=3)],
        "deployments": [deployment(1)],
        **changes,
    }


def created() -> dict[str, Any]:
    """Nothing was deployed yet."""
    nothing = {
        "healthy": 0,
        "running": 0,
        "total": 0,
        "targetRevision": None,
        "completedRevision": None,
        "costUsd": 0.0,
    }
    return environment(status="CREATED", revisions=[revision(1)], deployments=[], **nothing)


def deploying(number: int, created: bool = True, **changes: Any) -> dict[str, Any]:
    """The reply to StartDeployment and RollBackDeployment: the environment as it was before."""
    return {**environment(**changes), "deploying": number, "created": created}


FAILED = "3 of its tasks failed before one more became healthy"


def in_use() -> dict[str, Any]:
    """Revision 2 has failed and was rolled back, revision 3 is being deployed and one of its tasks waits; 4 is new."""
    at = ["2026-11-21T06:26:43.000Z", "2026-11-21T06:27:13.000Z", "2026-11-21T06:27:20.000Z"]
    at += ["2026-11-21T06:27:28.000Z", "2026-11-21T06:27:30.000Z"]
    ran = [revision(1, RUN, healthy=2, running=2), revision(2, f"{RUN[:-4]}fail")]
    ran += [revision(3, RUN_3, healthy=1, running=1), revision(4)]
    done = [
        deployment(1, startedAt=at[0], endedAt=at[1]),
        deployment(2, 2, "FAILED", startedAt=at[1], endedAt=at[2], reason=FAILED, failures=3),
        deployment(3, 1, startedAt=at[2], endedAt=at[3], isRollback=True, reason="deployment 2 failed"),
        deployment(4, 3, "WAITING", startedAt=at[4], reason="waits for instances: no capacity for c5.large"),
    ]
    counts = {"healthy": 3, "running": 3, "total": 3, "outdated": 2, "pending": 1}
    numbers = {"latestRevision": 4, "targetRevision": 3, "completedRevision": 1}
    reason = done[-1]["reason"]
    return environment(status="WAITING", statusReason=reason, revisions=ran, deployments=done, **counts, **numbers)


RUN_3 = "web-261121-062730-m2p4"


def live_tasks(run_id: str) -> list[dict[str, Any]]:
    """As ListTasks answers them of the runs of `in_use`."""
    at = {"gpuIds": [], "taskArn": None, "runId": run_id, "exitCode": None, "reason": None}
    running = {**at, "status": "RUNNING", "attempts": 1, "seconds": 12.5}
    if run_id == RUN:
        return [{**running, "index": index, "instance": f"i-{index:017x}"} for index in range(2)]
    again = {**running, "index": 0, "instance": f"i-{0:017x}", "attempts": 3, "reason": "exit code 3"}
    waits = {**at, "status": "PENDING", "index": 1, "attempts": 0, "instance": None, "seconds": None}
    return [again, waits] if run_id == RUN_3 else []
