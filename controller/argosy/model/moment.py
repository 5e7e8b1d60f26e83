"""What does a decision look at? The state, the instance types, the time, and the numbers that steer the controller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argosy.model.instance_types import InstanceType
from argosy.model.policy import Policy
from argosy.model.state import State


@dataclass(frozen=True, slots=True)
class Moment:
    """One look at one state. now: epoch seconds."""

    state: State
    catalogue: Mapping[str, InstanceType]  # by name
    now: float
    policy: Policy
