"""Clusters of a few instances that several queues share, for tests of one decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from argosy.model.actions import Action, Launch
from argosy.model.events import SharingAsked
from argosy.model.inbox import SharingRequest
from argosy.model.state import State
from argosy.scheduler.decide import decide
from tests.builders import (
    NOW,
    POLICY,
    fleet,
    joined,
    moment_of,
    prepared,
    state_with,
    submitted,
    told,
)

QUEUES = {"version": 1, "queues": {"default": {}, "research": {"weight": 3}, "night": {"weight": 0}}}


def shared(state: State, document: dict[str, Any] | None = None) -> State:
    return told(state, SharingAsked(SharingRequest(document or QUEUES, state.sharing.revision, NOW)))


def run_id(number: int) -> str:
    return f"run-261121-0627{number:02d}-aaaa"


def run(state: State, number: int, tasks: int, **spec: Any) -> str:
    told(state, submitted(run_id(number), tasks, **spec), prepared(run_id(number), **spec))
    return run_id(number)


def cluster(instances: int, *types: str) -> State:
    """Each takes four tasks; there may be no more of them. types: of further fleets, without instances."""
    state = state_with(fleet(spot_target=instances), *(fleet(each) for each in types))
    told(state, *joined(range(instances)))
    return state


def decided(state: State, **policy: Any) -> list[Action]:
    return decide(moment_of(state, policy=replace(POLICY, **policy)))


def launches(actions: Iterable[Action]) -> Counter[str]:
    return Counter(each.key.run_id for each in actions if isinstance(each, Launch))
