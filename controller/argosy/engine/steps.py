"""The steps of a tick between load and commit, which call nothing outside.

The tick, its rehearsal (`culprit`) and its replay (`replay`) share these steps, so that all three raise and decide the
same.
"""

from __future__ import annotations

import base64
import copy
import hashlib

from argosy.engine.bounds import begin_all
from argosy.lifecycle import cluster_history, series
from argosy.lifecycle.apply import apply
from argosy.lifecycle.hosts import measure
from argosy.lifecycle.pools import close_cells
from argosy.model.actions import Action
from argosy.model.events import ControllerStarted, Event
from argosy.model.instances import InstanceStatus
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.custom import OwnFunctions
from argosy.ports import Switches
from argosy.recording.recorder import Start
from argosy.scheduler.decide import decide
from argosy.scheduler.supply.roster import Roster

Fact = tuple[Event, float]
"""The fact, and its time if it carries none."""


def begin(state: State, how: Start, policy: Policy) -> bool:
    """Begin with a state that was just loaded, as recorded. Returns whether it is idle."""
    for suspended in state.suspended.values() if how.is_new else ():
        suspended.again_at = min(suspended.again_at, how.at)
    state.epoch = how.epoch
    return start(state, how.at, policy)


def epoch_of(state: State, now: float) -> str:
    """A new epoch for a state that has none yet."""
    digest = hashlib.sha256(f"{now:.6f}".encode()).digest()
    return state.epoch or base64.b32encode(digest)[:8].decode().lower()


def start(state: State, now: float, policy: Policy) -> bool:
    """Begin with a state that was just loaded. Returns whether it is idle."""
    apply(state, ControllerStarted(), now, policy)
    return is_idle(state)


def take(state: State, fact: Fact, policy: Policy) -> None:
    """Take one fact in."""
    event, at = fact
    if getattr(event, "stored", None) is not None:  # a run, which changes with the state
        event = copy.deepcopy(event)
    apply(state, event, at, policy)


def conclude(
    moment: Moment, switches: Switches, functions: OwnFunctions, deletions: int, roster: Roster | None = None
) -> list[Action]:
    """Decide once all facts are taken in, and mark the actions in the state as far as a commit can hold the marks.
    deletions: items that the commit removes. roster: as for `decide`."""
    close_cells(moment.state, switches.cells)
    actions = begin_all(moment, decide(moment, switches.deployment is None, functions, roster), deletions)
    measure(moment.state)
    series.sample(moment.state, moment.now, moment.policy, deletions)
    cluster_history.note(moment.state, moment.now)
    return actions


def is_idle(state: State) -> bool:
    """Whether no run is open, no user keeps instances, and nothing known costs money. Ordered instances count as
    alive."""
    targets = any(pool.target or not pool.confirmed for pool in state.pools.values())
    alive = any(instance.alive and instance.owned for instance in state.instances.values())
    is_open = any(not _sleeps(state, run) for run in state.runs.values())
    return not (is_open or state.suspended or state.floor.instances or targets or alive)


def _sleeps(state: State, run: Run) -> bool:
    """Whether it is the run of an environment with no task that should have none, or is frozen."""
    env = state.environments.get(run.name) if run.terms.service else None
    if env is None or env.deleting or run.halted or env.deployment is None:
        return False
    if not (env.deployment.has_ended or env.frozen_reason):
        return False
    counts = run.tasks.counts()
    is_wanted = env.desired and not env.frozen_reason
    return not (is_wanted or counts[[TaskStatus.PENDING, TaskStatus.STARTING, TaskStatus.RUNNING]].any())


def awaits_instances(state: State) -> bool:
    """Whether instances are ordered or joining the cluster: sweeps are then more frequent."""
    booting = any(instance.status is InstanceStatus.BOOTING for instance in state.instances.values())
    return booting or any(pool.ordered_since for pool in state.pools.values())
