"""The api over a store in memory, and what it asks of others: images, items, the controller's wake."""

from __future__ import annotations

import json
from typing import Any

from argosy.api.actions import Api
from argosy.api.admission import DeploymentLimits, Sources
from argosy.lifecycle.apply import apply
from argosy.model import documents, inbox
from argosy.model.events import RunCancelled, RunSubmitted
from argosy.model.resources import Resources
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
    """Every family is registered, and harmless but for those of `others`."""

    def __init__(self, **others: dict[str, Any] | None) -> None:
        self.others = others

    def describe(self, name: str) -> dict[str, Any] | None:
        return self.others.get(name.partition(":")[0], {"containerDefinitions": [{"name": "main"}]})


class Desk:
    """An api over a store in memory, a clock that is set by hand, and a controller that folds in when it is told."""

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
        """What the controller's next tick does with the inbox."""
        waiting = self.store.read_partition(inbox.INBOX)
        for body in waiting.values():
            request = inbox.from_bytes(body)
            event = RunSubmitted(request) if isinstance(request, inbox.SubmitRequest) else RunCancelled(request)
            apply(self.state, event, self.time, POLICY)
        self.commit(*((inbox.INBOX, key) for key in waiting))

    def commit(self, *deletes: Key) -> None:
        self.store.commit(self.state.version, documents.changed(self.state), deletes)
        documents.committed(self.state)


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    return dict(answer["body"]["error"])
