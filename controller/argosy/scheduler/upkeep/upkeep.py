"""Upkeep of existing runs and attempts: preparation, stops, resolution, verification, closing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from argosy.gangs.members import verifiable
from argosy.lifecycle.pools import CLOSED
from argosy.market.release import drains_for_a_user
from argosy.model.actions import (
    Action,
    CloseRun,
    DeregisterDefinition,
    FoldHistory,
    HaltRun,
    Launch,
    LookUpHosts,
    MendState,
    PrepareRun,
    ReadHistory,
    Remark,
    ResolveLaunches,
    ReviveTasks,
    StopAttempt,
    StopOrphan,
    VerifyResult,
)
from argosy.model.arns import cell_of, name_of, task_arn
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.history_parts import FOLDED_AFTER_S, ROWS_PER_PART
from argosy.model.instances import RESERVATION_ENDS, Instance, InstanceStatus, reservation_ends
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.custom import OwnFunctions
from argosy.scheduler.turns.fair_order import one_each, shares
from argosy.scheduler.upkeep import drains, failures, pending
from argosy.scheduler.upkeep.broken_gangs import members_of_broken_gangs

MOST_LOOKED_UP = 200  # instances of a cell in one call: the most values of a filter
UNUSED_S = 60.0  # a definition outlives its last run by this while others are open: the next run may use it too
DEREGISTERED_AT_ONCE = 2  # definitions in a tick: ECS allows one a second, and new runs register theirs as well
OVER_TIME = "argosy: the attempt took longer than its time-out allows"
LET_GO = "argosy: its instance is being terminated"
PREEMPTED = "argosy: it was stopped for a run of another queue"
UNHEALTHY = "argosy: the health command of the task's container kept failing"
REPLACED = "argosy: the service no longer needs this task"
# When a stop is repeated: the first request may have been lost, and ECS shows the reason of the one that arrived.
SAID_AGAIN = {
    StopCause.CANCELLED: "argosy: the task was cancelled",
    StopCause.CAPPED: "argosy: the run's budget is used up",
    StopCause.TIMED_OUT: OVER_TIME,
    StopCause.INTERRUPTED: "argosy: the instance is about to be interrupted",
    StopCause.STUCK: "argosy: the task or its instance was stuck",
    StopCause.UNPULLED: "argosy: its image did not come in time",
    StopCause.REPLACED: REPLACED,
    StopCause.PREEMPTED: PREEMPTED,
    StopCause.UNHEALTHY: UNHEALTHY,
    StopCause.GANG: "argosy: its gang starts again",
}
UNWATCHED = "argosy: the controller failed to process its run, so its tasks are not supervised"


@dataclass(frozen=True, slots=True)
class Chores:
    """The result of `chores`. Example: for a cancelled run with one running task, `stops` has one action."""

    repairs: Sequence[ReviveTasks | MendState]
    timeouts: Sequence[HaltRun]
    stops: Sequence[StopAttempt]
    look_ups: Sequence[LookUpHosts]
    unknown: Sequence[StopOrphan | ResolveLaunches]  # tasks without a row, and launches without a reply


def chores(moment: Moment) -> Chores:
    """The actions due in any tick, whether anything may start or not."""
    state, now = moment.state, moment.now
    look_ups = host_look_ups(state, now)
    unknown: list[StopOrphan | ResolveLaunches] = [*orphans(state), *resolutions(moment)]
    return Chores((*repairs(state),), (*run_timeouts(state, now),), (*stops(moment),), (*look_ups,), unknown)


def last_chores(moment: Moment, functions: OwnFunctions) -> list[Action]:
    """The actions due at the end of any tick. functions: the users' own that work."""
    state, now = moment.state, moment.now
    found: list[Action] = [*halts(state, functions), *verifications(moment), *waits_that_are_over(state)]
    if any(each.drain_until or each.impaired or each.cordon for each in state.instances.values()):
        found += [*drains.status_changes(moment), *drains.console_reads(moment)]
    return [*found, *closings(state, now), *folds(state, now), *failures.log_reads(moment)]


def repairs(state: State) -> Iterator[ReviveTasks | MendState]:
    """Changes of the state itself, in parts, at the start of the tick while the commit has most room. One run at a
    time."""
    if state.losses.attempts:
        yield MendState()
    for run in state.runs.values():
        if run.revives:
            yield ReviveTasks(run.id)
            return


def preparations(state: State, now: float, functions: OwnFunctions) -> Iterator[PrepareRun]:
    """Runs that have no task definition yet, except those that will be halted."""
    waiting = [run for run in state.unprepared() if run.prepare_after <= now and not _lacks(run, functions)]
    for run in one_each(state, waiting):
        yield PrepareRun(run.id)


def deregistrations(state: State, now: float) -> Iterator[DeregisterDefinition]:
    """Our task definitions that no run uses any more, nor will use as far as is known (`aws/preparation`)."""
    if not state.unused_definitions:
        return
    still_open = any(not run.done for run in state.runs.values())
    in_use, patience_s = state.definitions_in_use(), UNUSED_S if still_open else 0.0  # the controller may rest soon
    old = (
        family
        for family, since in state.unused_definitions.items()
        if now - since >= patience_s and family not in in_use and state.may_try(Act.DEREGISTER, family, now)
    )
    for family in islice(old, DEREGISTERED_AT_ONCE):
        yield DeregisterDefinition(family)


def halts(state: State, functions: OwnFunctions) -> Iterator[HaltRun]:
    """Runs whose strategy names a function that is missing."""
    for run in state.runs.values():
        if not (run.halted or run.done) and (sentence := _lacks(run, functions)):
            yield HaltRun(run.id, sentence)


def _lacks(run: Run, functions: OwnFunctions) -> str:
    """Why the run's strategy cannot be followed; "" if it can. The default strategy names no function."""
    return functions.missing(run.terms.strategy) if run.terms.strategy else ""


def run_timeouts(state: State, now: float) -> Iterator[HaltRun]:
    """Runs that have exceeded their time limit."""
    for run in state.runs.values():
        if run.is_over_time(now) and not (run.halted or run.done):
            limit = f"timeout.runDurationSeconds allows: {run.terms.duration_limit_s:.0f} s"
            yield HaltRun(run.id, f"the run took longer than {limit}")


def waits_that_are_over(state: State) -> Iterator[Remark]:
    """A run whose tasks have all ended waits for none of them. A reason about its closing stays."""
    for run in state.runs.values():
        is_closing = run.manifest_bounds or run.manifest_after or Subject(Act.CLOSE, run.id) in state.setbacks
        if run.waiting and run.complete and not (run.done or is_closing):
            yield Remark(run.id, "", unaffordable=False)


def closings(state: State, now: float) -> Iterator[CloseRun]:
    ended = [
        run for run in state.runs.values() if run.complete and not run.done and state.may_try(Act.CLOSE, run.id, now)
    ]
    for run in one_each(state, ended):
        yield CloseRun(run.id)


def folds(state: State, now: float) -> Iterator[FoldHistory]:
    """Open runs whose history has grown by a part, or is about to expire."""
    for run in state.runs.values():
        is_due = run.unfolded_rows >= ROWS_PER_PART or 0 < run.unfolded_since <= now - FOLDED_AFTER_S
        if is_due and not (run.complete or run.done) and state.may_try(Act.FOLD, run.id, now):
            yield FoldHistory(run.id)


def verifications(moment: Moment) -> Iterator[VerifyResult]:
    """Results to look up, the lowest indexes first, within the tick's bounds, which the sharers divide. Results
    known to be missing that wait for the fate of their instance are left out."""
    state, room = moment.state, moment.policy.max_verifications_per_tick
    missing: defaultdict[str, list[int]] = defaultdict(list)
    for run_id, index in state.open_ends.missing_results:
        missing[run_id].append(index)
    ended: dict[str, NDArray[np.int64]] = {}
    for run in state.runs.values():
        if not state.may_try(Act.VERIFY, run.id, moment.now):
            continue
        rows = verifiable(run, np.flatnonzero(run.tasks["status"] == TaskStatus.VERIFYING.value))
        if run.id in missing:
            rows = rows[~np.isin(rows, missing[run.id])]
        if len(rows):
            ended[run.id] = run.tasks.in_few_chunks(rows[:room])
    for run_id, most in shares(state, {run_id: len(rows) for run_id, rows in ended.items()}, room).items():
        attempts = state.runs[run_id].tasks["attempts"]
        for index in ended[run_id][:most].tolist():
            yield VerifyResult(run_id, index, int(attempts[index]))


def histories(moment: Moment) -> Iterator[ReadHistory]:
    """Fleets that are short again, and for which EC2 may know the reason: the least recently queried first."""
    now, policy = moment.now, moment.policy
    again = [
        pool
        for pool in moment.state.pools.values()
        if pool.fleet_id and pool.shortages > 1 and pool.cools_off(now) and not (pool.needs_mending or pool.reservation)
        if now - pool.history_at >= policy.history_every_s
    ]
    again.sort(key=lambda pool: (pool.history_at, pool.key))
    for pool in again[: policy.history_reads_per_tick]:
        yield ReadHistory(pool.key)


def orphans(state: State) -> Iterator[StopOrphan]:
    """Tasks without a live attempt, and those of suspended runs that must stop (`lifecycle.suspended_tasks`)."""
    for arn, cell in state.orphans.items():
        row = state.attempts.row_of_task_id.get(name_of(arn).encode())
        if row is None:
            yield StopOrphan(arn, cell)
        else:
            is_late = state.attempts["stop_cause"][row] == StopCause.TIMED_OUT.value
            yield StopOrphan(arn, cell, OVER_TIME if is_late else UNWATCHED)


def host_look_ups(state: State, now: float) -> Iterator[LookUpHosts]:
    """The instances to ask EC2 about now, by cell: ends of attempts there are not recorded yet."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    ends = state.open_ends
    due = [(state.instance_of(row), open_end.known_at) for row, open_end in ends.failures.items()]
    due += [(state.instances.get(each.instance), each.known_at) for each in ends.missing_results.values()]
    for instance, known_at in due:
        if instance is not None and now >= known_at:
            wanted[instance.cell].add(instance.id)
    for cell, instance_ids in wanted.items():
        yield LookUpHosts(cell, tuple(sorted(instance_ids)[:MOST_LOOKED_UP]))


def stops(moment: Moment) -> Iterator[StopAttempt]:
    """Attempts that must end, such as those of a cancelled run. A stop that had no effect is repeated."""
    state, long_ago = moment.state, moment.now - moment.policy.pending_patience_s
    slow = state.attempts.has_status(AttemptStatus.LAUNCHED) & (state.attempts["launched_at"] <= long_ago)
    overdue = members_of_broken_gangs(moment) | (dict(pending.overdue(moment)) if slow.any() else {})
    runs = {run.number: run for run in state.runs.values()}
    for row in _stop_candidates(moment, overdue).tolist():
        run = runs.get(int(state.attempts["run"][row]))
        key = state.key_of(row)
        if run is None or key is None:
            continue
        cause, reason = _why_stop(moment, row, run)
        cause, reason = (cause, reason) if cause is not StopCause.NONE else overdue.get(row, (cause, reason))
        if cause is not StopCause.NONE:
            arn = arn_of_row(state, row)
            if arn is None:
                continue  # its instance has not registered yet
            yield StopAttempt(arn, cell_of(arn), key, cause, reason)


def _stop_candidates(moment: Moment, overdue: Collection[int]) -> NDArray[np.int64]:
    """Rows that need a closer check, found by columns: of 80,000 live attempts few have to end."""
    state, now, policy = moment.state, moment.now, moment.policy
    table = state.attempts
    known = table.has_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING) & (table["left_at"] == 0)
    look = table["stop_cause"] != StopCause.NONE.value
    look[[*overdue]] = True
    for run in state.runs.values():
        if run.cancelled or run.capped_at or run.is_over_time(now):
            look |= table["run"] == run.number
        elif run.terms.attempt_timeout_s:
            late = (table["started_at"] > 0) & (now - table["started_at"] >= run.terms.attempt_timeout_s)
            look |= (table["run"] == run.number) & late
    for instance in state.instances.values():
        leaves = instance.interrupted_at or instance.let_go_at or _drained_too_long(instance, now, policy)
        if instance.alive and leaves:
            look[table.on_instance(instance.id)] = True
    lately_asked = (table["stop_at"] > 0) & (now - table["stop_at"] < policy.stop_again_s)
    found = np.flatnonzero(known & look & ~lately_asked)
    # Unstarted tasks come first, in the order of their launches: none of them should begin in the meantime.
    return found[np.lexsort((table["launched_at"][found], table["started_at"][found] > 0))]


def _why_stop(moment: Moment, row: int, run: Run) -> tuple[StopCause, str]:
    state, now, policy = moment.state, moment.now, moment.policy
    table, timeout_s = state.attempts, run.terms.attempt_timeout_s
    already = StopCause(int(table["stop_cause"][row]))
    if already is not StopCause.NONE:
        return already, SAID_AGAIN[already]
    instance = state.instance_of(row)
    started_at = float(table["started_at"][row])
    if stopped := _why_stop_run(run, started_at, now, policy):
        return stopped
    if instance is not None and run.is_daemon and instance.let_go_at:
        return StopCause.REPLACED, LET_GO
    if instance is not None and instance.interrupted_at and (has_handed_over(instance, moment) or not run.terms.serves):
        ends = reservation_ends(instance, instance.interrupted_at)
        return StopCause.INTERRUPTED, f"argosy: {RESERVATION_ENDS}" if ends else SAID_AGAIN[StopCause.INTERRUPTED]
    if instance is not None and _drained_too_long(instance, now, policy) and not run.is_daemon:
        return StopCause.STUCK, "argosy: the instance has been draining for too long"
    if started_at and timeout_s and now - started_at >= timeout_s:
        return StopCause.TIMED_OUT, f"argosy: the attempt took longer than {timeout_s:.0f} s"
    return StopCause.NONE, ""


def has_handed_over(instance: Instance | None, moment: Moment) -> bool:
    """Whether the hand-over time is over, in which services' tasks are replaced and all but daemons ends."""
    warned_at = instance.interrupted_at if instance is not None else 0.0
    return bool(warned_at) and moment.now - warned_at >= moment.policy.hand_over_s


def ends_with_instance(instance: Instance | None, moment: Moment) -> bool:
    """Whether a service's task there is due to stop because its instance ends. Then it serves no requests,
    and is no reason to stop another one in the same tick."""
    drained = instance is not None and _drained_too_long(instance, moment.now, moment.policy)
    return drained or has_handed_over(instance, moment)


def _why_stop_run(run: Run, started_at: float, now: float, policy: Policy) -> tuple[StopCause, str] | None:
    """The reason why all attempts of a run end, this one among them."""
    if run.cancelled:
        return StopCause.CANCELLED, "argosy: the run was cancelled"
    if run.is_over_time(now):
        return StopCause.CANCELLED, f"argosy: the run took longer than {run.terms.duration_limit_s:.0f} s"
    if run.capped_at and (run.terms.drains_at_cap or (started_at and now - started_at >= finish_seconds(run, policy))):
        return StopCause.CAPPED, SAID_AGAIN[StopCause.CAPPED]
    return None


def finish_seconds(run: Run, policy: Policy) -> float:
    """How long an attempt may run that is allowed to finish after the budget is used up: up to its time-out;
    without one, twice the duration of earlier attempts or of the spec; otherwise, the policy's limit."""
    known_s = max(run.longest_s, run.terms.expected_seconds or 0.0)
    return run.terms.attempt_timeout_s or 2 * known_s or policy.finish_s


def _drained_too_long(instance: Instance, now: float, policy: Policy) -> bool:
    is_late = bool(instance.draining_since) and now - instance.draining_since >= policy.drain_patience_s
    return is_late and not drains_for_a_user(instance, now, policy)


def arn_of_row(state: State, row: int) -> str | None:
    """None while its instance has no ARN. ECS accepts the full ARN only together with its cluster: both follow from
    the instance's own ARN."""
    instance = state.instance_of(row)
    return None if instance is None else task_arn(instance.arn, bytes(state.attempts["task_id"][row]).decode())


def resolutions(moment: Moment) -> Iterator[ResolveLaunches]:
    """Waves whose replies were lost, and intents that could not be sent for too long: one action a wave."""
    state, now, policy = moment.state, moment.now, moment.policy
    by_wave: dict[int, list[int]] = {}
    old = [row for row in state.attempts.with_status(AttemptStatus.INTENT).tolist() if not _young(moment, row)]
    for row in state.attempts.with_status(AttemptStatus.IN_DOUBT).tolist() + old:
        by_wave.setdefault(int(state.attempts["wave"][row]), []).append(row)
    for wave, rows in by_wave.items():
        if not state.may_try(Act.RESOLVE, str(wave), now):
            continue
        launches = tuple(launch for row in rows if (launch := launch_of(state, row)) is not None)
        intended_at = float(min(state.attempts["intended_at"][row] for row in rows))
        if launches:
            age_s = now - intended_at
            contended = intended_at <= state.begun_at and age_s < policy.takeover_s
            young = age_s < policy.intent_age_s
            yield ResolveLaunches(wave, state.started_by(wave), launches, intended_at, young, contended)


def _young(moment: Moment, row: int) -> bool:
    """Whether it is young enough to be sent, so that its token is still valid (DESIGN D4)."""
    return bool(moment.now - moment.state.attempts["intended_at"][row] < moment.policy.intent_age_s)


def unsent(moment: Moment) -> Iterator[Launch]:
    """Intents that were committed but not sent before the tick's time was up: exactly the same launches again. Those
    of a run stopped since then are dropped as soon as a commit has room for it; those for a cell closed since then
    are resolved when they are old."""
    state = moment.state
    for row in state.attempts.with_status(AttemptStatus.INTENT).tolist():
        if not _young(moment, row):
            continue
        launch = launch_of(state, row)
        instance = state.instance_of(row)
        if launch is None or instance is None or instance.status is InstanceStatus.GONE or instance.let_go_at:
            continue
        if state.runs[launch.key.run_id].halted or instance.cordon.startswith(CLOSED):
            continue
        if state.may_try(Act.LAUNCH, launch.key.run_id, moment.now):
            yield launch


def launch_of(state: State, row: int) -> Launch | None:
    """The launch that a row intends: a pure function of the committed state."""
    key = state.key_of(row)
    instance = state.instance_of(row)
    if key is None or instance is None:
        return None
    wave = int(state.attempts["wave"][row])
    return Launch(key, wave, state.started_by(wave), instance.id, instance.cell)


def next_key(run_id: str, index: int, attempts: int, launch: int) -> AttemptKey:
    """The key of the attempt after `attempts` real ones. launch: how many of its launches never happened."""
    return AttemptKey(run_id, index, attempts + 1, launch)
