"""The changed documents of a commit, and the journal's lines about the changes."""

from __future__ import annotations

from collections.abc import Iterable

from argosy.model import cluster_history
from argosy.model.history_parts import KEPT_S as HISTORY_KEPT_S
from argosy.model.invariants import check
from argosy.model.journal import items
from argosy.model.journal.capacity import floor_lines, instance_lines, pool_lines
from argosy.model.journal.lines import Line, LineType, line
from argosy.model.journal.runs import environment_lines, run_lines
from argosy.model.journal.tasks import task_lines
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.documents import Documents
from argosy.model.stored.environments import ENVIRONMENT, MARK_KEPT_S

Expiries = dict[tuple[str, str], float]
"""Epoch seconds by key."""


def documents_of_commit(state: State, now: float, refused: Iterable[str] = ()) -> tuple[Documents, Expiries]:
    """The documents of the next commit, and their expiry.

    refused: requests that it sets aside. The state must be committed next, or dropped. Raises InconsistentState for a
    state that contradicts itself, which is never stored.
    """
    check(state)
    lines = lines_of_commit(state, refused)
    version = state.version + 1
    journal = items.items(version, now, state.lines_at, lines)
    if lines:
        state.lines_at = version
    puts = documents.changed(state)
    history = [key for key in puts if key[0].startswith(documents.history_partition(""))]
    expiries = dict.fromkeys(journal, now + items.KEPT_S) | dict.fromkeys(history, now + HISTORY_KEPT_S)
    gone = state.gone_environments.keys() - state.environments.keys()
    expiries |= {(documents.STATE, ENVIRONMENT + name): now + MARK_KEPT_S for name in gone}
    expiries |= {key: now + cluster_history.KEPT_S for key in puts if key[0] == cluster_history.PARTITION}
    return puts | journal, expiries


def lines_of_commit(state: State, refused: Iterable[str] = ()) -> list[Line]:
    """The lines of the commit: damage first, since a reader starts again there, and the ends of runs last."""
    runs = run_lines(state)
    closed = [each for each in runs if each["type"] == LineType.RUN_CLOSED]
    return [
        *(line(LineType.STATE_DAMAGED, reason=damage.sentence) for damage in state.losses.found),
        *(line(LineType.REQUEST_REFUSED, request=key) for key in refused),
        *(each for each in runs if each["type"] != LineType.RUN_CLOSED),
        *environment_lines(state),
        *_capacity_lines(state),
        *task_lines(state),
        *closed,
    ]


def _capacity_lines(state: State) -> list[Line]:
    before, found = state.committed, list[Line]()
    found += floor_lines(state.floor, before.floor)
    for name in sorted(state.changed_instances):
        instance = state.instances.get(name)
        if instance is not None and instance.owned:
            found += instance_lines(instance, before.instances.get(name))
        elif name in before.instances:  # inline: the controller's code may fail at this instance
            found.append(line(LineType.INSTANCE_FORGOTTEN, instance=name))
    if state.changed_pools:
        for key, pool in state.pools.items():
            found += pool_lines(pool, before.pools.get(key))
        found += [line(LineType.POOL_FORGOTTEN, pool=key) for key in sorted(before.pools.keys() - state.pools.keys())]
    if state.last_order.at != before.ordered_at:
        found.append(
            line(LineType.ORDER, **{name: value for name, value in state.last_order.to_json().items() if name != "at"})
        )
    return found
