"""The bounds of one tick: documents per commit, outcomes that count as progress, sightings of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from argosy.gangs.members import units
from argosy.lifecycle.begin import begin
from argosy.model.actions import (
    Action,
    CapRun,
    CloseRun,
    DeregisterTargets,
    DrainTask,
    FoldHistory,
    ForgetEnvironment,
    HaltRun,
    Launch,
    NoteDeployment,
    NoteRecovered,
    PrepareRun,
    RegisterTargets,
    Remark,
    ResolveLaunches,
    RetireRun,
    SetSlots,
    Steer,
    StopAttempt,
    VerifyResult,
)
from argosy.model.events import Event, LaunchInDoubt, LaunchMissed, NotCarriedOut, Observed
from argosy.model.moment import Moment
from argosy.model.state import State

RECORD, HISTORY, ENVIRONMENT = -1, -2, -3  # stands for a chunk's number; the last with an environment's name
MOST_ITEMS = 99  # of a commit: a transaction of DynamoDB holds 100, the version among them


class CommitTooLarge(Exception):
    """A tick changed more documents than one commit holds: a fault of Argosy that a retry does not cure."""


def check_size(puts: int, deletions: int) -> None:
    """Raises CommitTooLarge, so that the log names the cause. DynamoDB's own error does not."""
    if puts + deletions > MOST_ITEMS:
        raise CommitTooLarge(
            f"a tick wants to write {puts} documents and remove {deletions}; a commit holds {MOST_ITEMS} of both"
        )


def touched(action: Action, state: State) -> set[tuple[str, int]]:
    """The documents that the action or its outcome writes: the run's record, the chunk of its tasks and the piece of
    its history, or the environment's record. Empty for actions that concern capacity only (Claim and NoteOrder
    included), which are never held back, and for those with bounds of their own (ReviveTasks, MendState)."""
    if isinstance(action, ResolveLaunches):
        return {touch for launch in action.launches for touch in _resolving(launch, state)}
    if isinstance(action, Launch | StopAttempt | DrainTask):
        run_id, index = action.key.run_id, action.key.index
    elif isinstance(action, VerifyResult):
        run_id, index = action.run_id, action.index
    elif isinstance(action, SetSlots):
        return _chunks_of(action, state)
    elif isinstance(action, CloseRun | FoldHistory | PrepareRun | Remark | HaltRun | RetireRun | Steer | CapRun):
        return {(action.run_id, RECORD)}
    elif isinstance(action, NoteDeployment | NoteRecovered | ForgetEnvironment):
        return {(action.name, ENVIRONMENT)}
    elif isinstance(action, RegisterTargets | DeregisterTargets):
        return {(action.environment, ENVIRONMENT)}
    else:
        return set()
    run = state.runs.get(run_id)
    if run is None:
        return set()
    ends = {(run_id, HISTORY)} if isinstance(action, StopAttempt | VerifyResult) else set()
    return {(run_id, RECORD), (run_id, index // run.tasks.chunk_rows), *ends}


def _chunks_of(action: SetSlots, state: State) -> set[tuple[str, int]]:
    rows = state.runs[action.run_id].tasks.chunk_rows
    chunks = {index // rows for index in (*action.wanted, *action.parked)}
    return {(action.run_id, RECORD), *((action.run_id, chunk) for chunk in chunks)}


def _resolving(launch: Launch, state: State) -> set[tuple[str, int]]:
    """A launch in doubt may turn out to be a lost attempt."""
    return touched(launch, state) | {(launch.key.run_id, HISTORY)}


def cut(action: Action, state: State, promised: Set[tuple[str, int]], at_most: int) -> Action:
    """A wave in doubt may hold launches of a hundred runs. This tick resolves as many runs as fit with the documents
    already promised; a later tick resolves the others."""
    if not isinstance(action, ResolveLaunches):
        return action
    reach, kept = set(promised), []
    for launch in action.launches:
        more = reach | _resolving(launch, state)
        if len(more) <= at_most:
            reach = more
            kept.append(launch)
    return replace(action, launches=tuple(kept)) if kept else action


def begin_all(moment: Moment, actions: Sequence[Action], deletions: int) -> list[Action]:
    """Mark the actions, as far as this commit can hold the marks and the next one can hold the outcomes. The next tick
    decides the rest again. deletions: items that the commit removes."""
    state, policy = moment.state, moment.policy
    begun: list[Action] = []
    promised: set[tuple[str, int]] = set()
    most = policy.max_promised_documents
    closings = _kept_for((CloseRun,), actions, state, most // 4)
    ends = _kept_for((VerifyResult, CloseRun), actions, state, most // 2)
    for unit in units(state, actions):
        wanted = [cut(each, state, promised, most) for each in unit]
        touches = {touch for each in wanted for touch in touched(each, state)}
        full = state.dirty_documents + deletions >= policy.full_commit_documents
        full = full or state.dirty_bytes >= policy.full_commit_bytes
        kept = ends if isinstance(unit[0], Launch) else closings if isinstance(unit[0], VerifyResult) else 0
        if touches and (full or len(promised | touches) > most - kept):
            continue
        for action in wanted:
            begin(state, action, moment.now, policy)
        promised |= touches
        begun += wanted
    return begun


def _kept_for(kinds: tuple[type[Action], ...], actions: Sequence[Action], state: State, at_most: int) -> int:
    """The number of documents that earlier actions leave to such actions. Results are looked up and runs closed last;
    without this share they would wait while many runs have tasks to launch."""
    kept: set[tuple[str, int]] = set()
    for action in actions:
        if isinstance(action, kinds):
            kept |= touched(action, state)
            if len(kept) >= at_most:
                return at_most
    return len(kept)


def is_progress(outcome: Event) -> bool:
    """Whether the outcome is a reason to continue at once. A setback waits for its pause."""
    set_back = isinstance(outcome, LaunchInDoubt | LaunchMissed)
    return not (set_back or (isinstance(outcome, NotCarriedOut) and outcome.about))


def one_by_one(sweep: Event) -> Iterator[Event]:
    """A sweep's sightings one by one, so that a tick can stop between two of them, then the sweep itself, which adds
    only what the sightings do not show."""
    if isinstance(sweep, Observed):
        yield from sweep.fleets
        yield from sweep.hosts
        yield from sweep.container_instances
        yield from (task for task in sweep.tasks if task.version)
    yield sweep
