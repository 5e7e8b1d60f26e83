"""How is room taken from one queue for another recorded, and which run pays for the lost work?"""

from __future__ import annotations

from dataclasses import replace

from argosy.lifecycle import charges, services
from argosy.lifecycle.accounts import Account, AttemptEnd
from argosy.model.actions import NoteHeld, StopAttempt, YieldInstance
from argosy.model.attempts import since_checkpoint_s
from argosy.model.costs import Work
from argosy.model.instances import Instance
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

HOUR_S = 3600.0


def begin_stop(state: State, action: StopAttempt, row: int, now: float) -> None:
    """Ask the attempt to stop. A repeated request keeps the run that it was stopped for."""
    state.attempts.set(row, stop_at=now, stop_cause=action.cause)
    if action.for_run and action.for_run in state.runs:
        state.attempts.set(row, for_run=state.runs[action.for_run].number)


def begin_yield(state: State, action: YieldInstance, now: float) -> None:
    """Keep the instance for a run from now on. The run counts on it, so it does not pay for earlier waiting."""
    instance, run = state.instances[action.instance_id], state.runs[action.run_id]
    charges.count_on(state, run, instance, now)
    instance.yields_to, instance.yields_tasks, instance.yields_until = run.number, action.tasks, action.until
    instance.yields_since, instance.is_emptied = now, action.is_emptied
    state.changed_instances.add(instance.id)
    if action.lost_usd:
        lately = tuple(each for each in state.sharing.displaced if each[0] > now - HOUR_S)
        state.sharing = replace(state.sharing, displaced=(*lately, (now, action.lost_usd)))
        state.changed_sharing = True


def note_launch(state: State, run: Run, instance: Instance) -> None:
    """One of the tasks for which the instance was kept has arrived. After the last one it takes work from any run
    again."""
    if instance.yields_to == run.number and instance.yields_tasks:
        instance.yields_tasks -= 1
        if not instance.yields_tasks:
            instance.yields_to, instance.yields_until, instance.yields_since = 0, 0.0, 0.0
            instance.is_emptied = False
        state.changed_instances.add(instance.id)


def note_held(state: State, action: NoteHeld, now: float) -> None:
    """Note since when each of these runs waits."""
    before = state.sharing.held_since
    state.sharing = replace(state.sharing, held_since={run_id: before.get(run_id, now) for run_id in action.run_ids})
    state.changed_sharing = True


def book(state: State, run: Run, instance: Instance, row: int, end: AttemptEnd) -> None:
    """Book the time of an attempt that ended and is settled. Work until its last checkpoint was useful to its own run,
    if it is resumed. The run that it was stopped for pays for the displaced rest, or its own run if that run is over.
    """
    table, seconds = state.attempts, float(run.tasks["seconds"][end.index])
    payer = state.run_by_number(int(table["for_run"][row])) if end.account is Account.PREEMPTED else None
    work = work_of(run, end)
    if end.account is Account.PREEMPTED or (work is Work.REDONE and not table["left_at"][row]):
        lost_s = float(since_checkpoint_s(seconds, run.terms.checkpoint_s))
        charges.book(state, run, instance, seconds - lost_s, Work.USEFUL if work is Work.REDONE else work)
        seconds = lost_s
    if table["left_at"][row]:
        if work is not Work.USEFUL:
            charges.unbook(state, run, end.index, work)
    elif payer is None:
        charges.book(state, run, instance, seconds, work)
    else:
        charges.book_for(state, payer, instance, seconds * run.needs.share_of(instance.size), Work.DISPLACED)


def work_of(run: Run, end: AttemptEnd) -> Work:
    """The use of the attempt's time, now that its task is settled. A loss that is not repeated is a failure."""
    if run.terms.service is not None:
        return services.work(run, end)
    account, status = end.account, TaskStatus(int(run.tasks["status"][end.index]))
    if account is Account.SUCCESS:
        return Work.USEFUL
    lost = account in (Account.LOST, Account.START, Account.BUSY, Account.PREEMPTED, Account.PEER)
    return Work.REDONE if lost and status is TaskStatus.PENDING else Work.FAILED
