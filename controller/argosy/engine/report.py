"""A tick's report: for logs, metrics and the loop that decides whether to rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from argosy.engine.own_faults import OwnFailure
from argosy.model.actions import Action, Inside, Launch, NoteDeployment, NoteOrder
from argosy.model.pools import OrderNote
from argosy.model.services.environments import DeploymentStatus
from argosy.model.setbacks import Act
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

BEHIND_S = 86_400.0  # a roll that moved nothing for so long leaves instances without security patches


@dataclass(frozen=True, slots=True)
class TickReport:
    """The results of one tick."""

    events: int
    poison: int
    actions: int = 0
    launches: int = 0
    at_rest: bool = False  # no run is open and no instance is alive
    due_at: float = 0.0  # epoch seconds: when something is due next if nothing happens; in the past: there is work
    seconds: float = 0.0
    tasks_pending: int = 0
    tasks_running: int = 0
    instances: int = 0
    foreign_gpu_mib: int = 0  # memory of GPUs that shares that are not ours were seen to take
    repaired: int = 0  # ends of tasks and instances that a sweep showed and no event reported
    damage: tuple[str, ...] = ()  # stored documents that could not be read, in sentences
    stubborn: int = 0  # instances that EC2 refuses to terminate
    services_in_trouble: int = 0  # environments that fail or are stuck, and those whose deployment failed in this tick
    to_mend: int = 0  # fleets that launch nothing until a person acts
    behind: int = 0  # fleets that EC2 has refused for a day to move to the newest launch template
    short: tuple[str, ...] = ()  # sentences for fleets that began to cool off, or whose reason changed
    bought: int = 0  # instances ordered
    suspended: int = 0  # open runs left out because Argosy's own code failed at them
    troubles: tuple[OwnFailure, ...] = ()  # faults of this tick
    order_gap_pct: float | None = None  # what they cost above the least, at most; None = nothing bought, or unknown


@dataclass(slots=True)
class ReportedShortages:
    """The cooling fleets that this process has reported, by pool: each reason of each fleet once."""

    reasons: dict[str, str] = field(default_factory=dict)

    def new(self, state: State, now: float) -> tuple[str, ...]:
        """A sentence for each fleet that began to cool off since the last call, or whose reason has changed."""
        reasons = {pool.key: pool.short_reason for pool in state.pools.values() if pool.cools_off(now)}
        before, self.reasons = self.reasons, reasons
        return tuple(f"{key}: {reason}" for key, reason in reasons.items() if before.get(key) != reason)


def figures_of(state: State, actions: Sequence[Action], now: float) -> dict[str, Any]:
    """A report's figures of the cluster and of the tick's actions."""
    counts = sum((run.tasks.counts() for run in state.runs.values()), np.zeros(len(TaskStatus), dtype=np.int64))
    return {
        "actions": sum(not isinstance(action, Inside) for action in actions),
        "launches": sum(isinstance(action, Launch) for action in actions),
        "tasks_pending": int(counts[TaskStatus.PENDING]),
        "tasks_running": int(counts[TaskStatus.RUNNING]),
        "instances": sum(instance.alive for instance in state.instances.values()),
        "foreign_gpu_mib": sum(sum(instance.foreign_shares) for instance in state.instances.values()),
        "suspended": len(state.suspended),
        "stubborn": sum(subject.what is Act.TERMINATE for subject in state.setbacks),
        "to_mend": sum(pool.needs_mending and pool.cools_off(now) for pool in state.pools.values()),
        "behind": sum(0 < pool.behind_since <= now - BEHIND_S for pool in state.pools.values()),
        "services_in_trouble": _in_trouble(state, actions),
        **_bought_in(actions),
    }


def _in_trouble(state: State, actions: Sequence[Action]) -> int:
    """A rolled back service runs again. The report says so once."""
    failed = {
        each.name for each in actions if isinstance(each, NoteDeployment) and each.status is DeploymentStatus.FAILED
    }
    return len(failed | {name for name, env in state.environments.items() if env.is_in_trouble})


def reported_damage(state: State) -> tuple[str, ...]:
    """Damage that the load found; reported once."""
    sentences = tuple(damage.sentence for damage in state.losses.found)
    state.losses.found.clear()
    return sentences


def _bought_in(actions: Sequence[Action]) -> dict[str, Any]:
    """A report's figures of orders."""
    note = next((action.note for action in actions if isinstance(action, NoteOrder)), OrderNote())
    return {"bought": note.instances, "order_gap_pct": note.to_json()["gapPct"]}
