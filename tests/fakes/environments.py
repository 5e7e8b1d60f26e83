"""What the api answers about a service's environment, for tests of those who show it."""

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
        "createdAt": CREATED_AT,
        "desired": 3,
        "healthy": 3,
        "running": 3,
        "outdated": 0,
        "pending": 0,
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
    nothing = {"healthy": 0, "running": 0, "targetRevision": None, "completedRevision": None, "costUsd": 0.0}
    return environment(status="CREATED", revisions=[revision(1)], deployments=[], **nothing)


def deploying(number: int, created: bool = True, **changes: Any) -> dict[str, Any]:
    """The reply to StartDeployment and RollBackDeployment: the environment as it was before."""
    return {**environment(**changes), "deploying": number, "created": created}
