"""A deployment that admits runs: its limits, and its look-ups outside."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.admission.specs import DeploymentLimits, Sources, admit
from argosy.model.resources import Resources
from argosy.ports import ItemsUnreadable
from argosy.spec.faults import SpecError
from tests.fakes.api import Definitions

SHAPES = {
    "c5.xlarge": Resources(4096, 7500, 0),
    "m5.4xlarge": Resources(16384, 62000, 0),
    "p3.2xlarge": Resources(8192, 60000, 1),
}


LIMITS = DeploymentLimits("s3://own/", frozenset({"own", "shared"}), SHAPES)


class Images:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve(self, image: str) -> str | None:
        self.asked.append(image)
        return None if image in ("argosy/unknown", "argosy/digits-gpu", "argosy/a:3") else f"registry/{image}@sha256:1"


class Items:
    def __init__(self, items: list[Any] | None = None) -> None:
        self.items = items

    def read_items(self, uri: str) -> list[Any]:
        if self.items is None:
            raise ItemsUnreadable(f"{uri} does not exist")
        return self.items


def spec(**fields: Any) -> dict[str, Any]:
    return {"version": 1, "name": "n", "container": {"image": "argosy/digits"}, "array": {"size": 2}, **fields}


def sources(items: Items | None = None, **definitions: Any) -> Sources:
    return Sources(Images(), items or Items(), Definitions(**definitions))


SOURCES = sources()


def faults(data: Any, limits: DeploymentLimits = LIMITS, items: Items | None = None, **definitions: Any) -> list[str]:
    with pytest.raises(SpecError) as refusal:
        admit(data, limits, sources(items, **definitions))
    return [fault.text() for fault in refusal.value.faults]
