"""A desk with queues, and callers through the entrance of one of them."""

from __future__ import annotations

from typing import Any

from tests.fakes.api import Desk, error_of

DOCUMENT: dict[str, Any] = {"version": 1, "queues": {"research": {}, "prod": {}}}
SERVICE: dict[str, Any] = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "resources": {"vcpus": 0.5, "memory": 256},
    "service": {"desired": 3},
}


def shared_desk() -> Desk:
    """With the queues default, prod and research."""
    desk = Desk()
    desk.body("ApplySharing", document=DOCUMENT)
    desk.fold_in()
    desk.time += 1
    return desk


def through(desk: Desk, action: str, alias: str = "q-research", request_id: str = "r", **fields: Any) -> dict[str, Any]:
    """The answer to a call through the alias."""
    return desk.api.handle({"action": action, **fields}, request_id, alias)


def let(desk: Desk, action: str, **fields: Any) -> dict[str, Any]:
    """The body of the answer to an admitted call."""
    answer = through(desk, action, **fields)
    assert answer["statusCode"] == 200, answer
    return dict(answer["body"])


def refused(desk: Desk, action: str, alias: str = "q-research", **fields: Any) -> str:
    """Why, and that it changed nothing."""
    before = dict(desk.store.items)
    answer = through(desk, action, alias, **fields)
    assert desk.store.items == before
    assert answer["statusCode"] == 403, answer
    error = error_of(answer)
    assert error["code"] == "AccessDeniedException"
    return str(error["message"])
