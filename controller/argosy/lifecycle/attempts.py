"""How do facts about ECS tasks change attempts and their tasks?"""

from __future__ import annotations

from argosy.lifecycle import charges, gangs, gpu_resets, health, history, reclaim, services, start_ups, suspended_tasks
from argosy.lifecycle.accounts import (
    Account,
    AttemptEnd,
    account_for,
    account_without_result,
    charge_infrastructure,
    charge_nobody,
    charge_user,
    end_attempt,
    host_was_lost,
    is_open,
    is_result_open,
    shown_reason,
)
from argosy.lifecycle.health import note_end
from argosy.lifecycle.run_stops import give_up, stop_if_all_alike
from argosy.lifecycle.setbacks import is_refused_for_long, set_back
from argosy.model.arns import cell_of, cluster_of, name_of
from argosy.model.attempts import AttemptKey, AttemptStatus, StopCause
from argosy.model.events import LaunchAccepted, LaunchRefused, Observed, TaskSeen
from argosy.model.open_ends import MissingResult
from argosy.model.policy import Policy
from argosy.model.runs import Run, RunStatus
from argosy.model.setbacks import Act, Subject
from argosy.model.state import State
from argosy.model.tasks import NO_EXIT_CODE, TaskStatus

REFUSED_BACKOFF_S = 2.0  # our picture of the instance was stale; the next sweep mends it
START_BACKOFF_S = 10.0


def accept(state: State, event: LaunchAccepted, now: float) -> None:
    row = state.row_of(event.key)
    if row is None:
        state.orphans[event.arn] = cell_of(event.arn)
        return
    _adopt(state, event.key, row, event.arn, now)
    _note_gpus(state, row, event.gpu_ids)
    health.note_acceptance(state, bytes(state.attempts["instance"][row]).decode())


def refuse(state: State, event: LaunchRefused, now: float, policy: Policy) -> None:
    """ECS started nothing. The task is placed again without a charge. Our view of the instance was wrong: sweep again
    soon.

    If ECS refuses the run itself, Argosy retries after growing pauses, for a quarter of an hour.
    """
    run = state.runs.get(event.key.run_id)
    if event.whole_run and run is not None:
        _refuse_run(state, run, event, now, policy)
        return
    if (row := state.row_of(event.key)) is not None:
        health.note_refusal(state, bytes(state.attempts["instance"][row]).decode(), event.reason, now, policy)
    disprove(state, event.key, now, _sentence(event))
    state.observed_at = 0.0


def _sentence(event: LaunchRefused) -> str:
    return f"{event.reason}: {event.detail}" if event.detail else event.reason


def _refuse_run(state: State, run: Run, event: LaunchRefused, now: float, policy: Policy) -> None:
    reason = _sentence(event)
    disprove(state, event.key, now, reason)
    setback = set_back(state, Subject(Act.LAUNCH, run.id), reason, now)
    run.waiting = f"no task can be started: {reason}"
    state.changed_runs.add(run.id)
    if event.final or is_refused_for_long(setback, now, policy):
        give_up(state, run, run.waiting)


def disprove(state: State, key: AttemptKey, now: float, reason: str) -> None:
    """The launch did not happen: the same attempt gets a new launch number, and with it a new token."""
    row = state.row_of(key)
    if row is None or state.attempts["status"][row] not in (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT):
        return
    run = state.runs[key.run_id]
    is_unwanted = run.halted or state.attempts["stop_cause"][row] == StopCause.CANCELLED.value
    status = TaskStatus.CANCELLED if is_unwanted else TaskStatus.PENDING
    not_before = now + REFUSED_BACKOFF_S
    state.set_task(
        run,
        key.index,
        status=status,
        launch=key.launch + 1,
        not_before=not_before,
        reason=run.reason_row(reason),
    )
    end_attempt(state, row, now)


def note_missed(state: State, key: AttemptKey, now: float) -> None:
    """A complete listing does not show a launch in doubt. It counts as proof only after a second listing."""
    row = state.row_of(key)
    if row is None or state.attempts["status"][row] not in (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT):
        return
    state.attempts.set(row, absent_since=now)
    set_back(state, Subject(Act.RESOLVE, str(state.attempts["wave"][row])), "a listing lacked it", now, passing=True)


def miss_launch(state: State, key: AttemptKey, now: float, policy: Policy) -> None:
    """ECS does not show a launch in doubt. It never happened, as long as ECS would still show it otherwise. Later, it
    may have happened and ended unseen: then it was an attempt, and is lost."""
    row = state.row_of(key)
    if row is None or now - float(state.attempts["intended_at"][row]) < policy.ecs_memory_s:
        disprove(state, key, now, "the launch never happened")
    elif state.attempts["status"][row] in (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT):
        _lose_launch(state, key, row, now, policy)


def _lose_launch(state: State, key: AttemptKey, row: int, now: float, policy: Policy) -> None:
    run = state.runs[key.run_id]
    run.attempts += 1
    state.set_task(run, key.index, attempts=key.attempt, launch=0)
    lose(state, row, "ECS no longer knows whether it was launched", now, policy)


def see(state: State, seen: TaskSeen, now: float, policy: Policy) -> bool:
    """One ECS task as an event or a listing showed it. False when it belongs to no live attempt."""
    row = state.attempts.row_of_task_id.get(name_of(seen.arn).encode())
    if row is None and seen.key is not None:
        row = state.row_of(seen.key)
        if row is None or state.attempts["task_id"][row] or not _is_of_its_cluster(state, row, seen.arn):
            return False  # not ours, a second copy of this attempt, or another cluster's task with the same tags
        _adopt(state, seen.key, row, seen.arn, now)
    if row is None:
        return False
    if state.attempts["absent_since"][row]:
        state.attempts.set(row, absent_since=0.0)
    services.note_sighting(state, row, seen)
    start_ups.note_pull(state, row, seen)
    if seen.version <= state.attempts["version"][row]:
        return True
    _note_gpus(state, row, seen.gpu_ids)
    if _is_open(state, row, seen, now, policy):
        return True  # the version stays: to a controller that starts again, the task is news
    state.attempts.set(row, version=seen.version)
    if seen.last_status == "RUNNING":
        _run(state, row, seen, now)
    elif seen.last_status == "STOPPED":
        end(state, row, seen, now, policy)
    return True


def _is_open(state: State, row: int, seen: TaskSeen, now: float, policy: Policy) -> bool:
    """Whether the end waits until it is known whether its instance was ending (`lifecycle.open_ends`)."""
    cause, instance = _cause_in(state, row, seen), state.instance_of(row)
    if state.attempts["left_at"][row]:  # the fate of its instance became known while its run was suspended
        return False
    run = state.run_by_number(int(state.attempts["run"][row]))
    serves = run is not None and run.terms.serves
    fate_s = policy.fate_s if run is None else policy.fate_s_of(run.needs, serves=serves)
    if not fate_s or seen.last_status != "STOPPED" or not is_open(seen, cause, instance, serves=serves):
        return False
    state.open_ends.keep(row, seen, now, now + fate_s)
    return True


def _is_of_its_cluster(state: State, row: int, task_arn: str) -> bool:
    """As far as the instance's ARN shows."""
    instance = state.instance_of(row)
    return instance is None or not instance.arn or cluster_of(instance.arn) == cluster_of(task_arn)


def see_all(state: State, sweep: Observed, policy: Policy) -> None:
    """A sweep's tasks: ours without a live attempt are orphans, and those that stay absent for long are lost."""
    shown = set()
    for seen in sweep.tasks:
        shown.add(name_of(seen.arn).encode())
        if state.suspended and suspended_tasks.is_of_suspended(state, seen):
            known = suspended_tasks.see(state, seen, sweep.at)
        else:
            known = see(state, seen, sweep.at, policy)
        ours = seen.key is not None and seen.started_by.startswith(f"argosy-{state.epoch}-")
        if not known and ours and seen.desired_status == "RUNNING" and seen.last_status != "STOPPED":
            state.orphans[seen.arn] = cell_of(seen.arn)
    if sweep.tasks_complete:
        _miss(state, shown, sweep.at, policy)
        _miss_launches(state, sweep.at, policy)
        if state.suspended:
            suspended_tasks.miss_launches(state, sweep, policy)


def _miss(state: State, shown: set[bytes], at: float, policy: Policy) -> None:
    table, suspended = state.attempts, state.suspended_numbers()
    for row in table.with_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING).tolist():
        is_suspended = int(table["run"][row]) in suspended
        if is_suspended and table["left_at"][row]:
            continue  # its end is looked up when its run is tried again
        if bytes(table["task_id"][row]) in shown or at - table["launched_at"][row] < policy.absence_s:
            continue
        since = float(table["absent_since"][row])
        if not since:
            table.set(row, absent_since=at)
        elif at - since >= policy.absence_s and state.may_settle_more(policy):  # else after the next sweep
            if is_suspended:
                suspended_tasks.miss(state, row, at)
            else:
                lose(state, row, "ECS no longer knows the task", at, policy)


def _miss_launches(state: State, at: float, policy: Policy) -> None:
    """Launches on unknown instances (their documents were damaged) cannot be sent or looked up. They end once they are
    too old to send and show no task for the quiet time: one that was sent may have ended unseen, and counts as lost."""
    table = state.attempts
    for row in table.with_status(AttemptStatus.INTENT, AttemptStatus.IN_DOUBT).tolist():
        key = state.key_of(row)
        if key is None or state.instance_of(row) is not None or at - table["intended_at"][row] < policy.intent_age_s:
            continue
        since = float(table["absent_since"][row])
        if not since:
            table.set(row, absent_since=at)
        elif at - since >= policy.absence_s and state.may_settle_more(policy):
            if table["status"][row] == AttemptStatus.INTENT.value:
                disprove(state, key, at, "it was never sent, and its instance no longer exists")
            else:
                _lose_launch(state, key, row, at, policy)


def lose(state: State, row: int, reason: str, now: float, policy: Policy) -> None:
    """End the attempt as one whose end was not seen."""
    end(state, row, TaskSeen("", 0, "STOPPED", stop_code="TerminationNotice", reason=reason), now, policy)


def end(state: State, row: int, seen: TaskSeen, now: float, policy: Policy) -> None:
    """The ECS task stopped: book the attempt and free its row."""
    table = state.attempts
    run = state.run_by_number(int(table["run"][row]))
    instance = state.instance_of(row)
    if run is not None:  # otherwise the run is closed; facts about suspended runs do not reach this
        ran = _book(state, run, row, seen, now)
        ended = _end_of(run, row, seen, state)
        history.note_end(state, run, row, ended, ran)
        gpu_resets.note_end(state, run, row, seen, ran)
        _settle(state, run, ended, now, policy)
        if ended.account is Account.LOST:
            run.interruptions += ended.cause is StopCause.INTERRUPTED or host_was_lost(seen, instance)
        if instance is not None:
            note_end(state, run, instance, ended, policy)
            reclaim.book(state, run, instance, row, ended)
    end_attempt(state, row, now)


def miss_result(state: State, run: Run, index: int, now: float, policy: Policy) -> None:
    """The task's attempt ended with exit code 0 and left no result. The charge may have to wait until it is known
    whether its instance was ending (`lifecycle.open_ends`)."""
    instance_id = bytes(run.tasks["instance"][index]).decode()
    cause = StopCause(int(run.tasks["stop_cause"][index]))
    if policy.fate_s and is_result_open(cause, state.instances.get(instance_id)):
        missing = MissingResult(int(run.tasks["attempts"][index]), instance_id, now, now + policy.fate_s)
        state.open_ends.missing_results[run.id, index] = missing
    else:
        end_without_result(state, run, index, now, policy)


def end_without_result(state: State, run: Run, index: int, now: float, policy: Policy) -> None:
    """Book an attempt that ended with exit code 0 and wrote no result."""
    instance_id = bytes(run.tasks["instance"][index]).decode()
    cause = StopCause(int(run.tasks["stop_cause"][index]))
    account = account_without_result(cause, state.instances.get(instance_id))
    missing = "the program succeeded but wrote no result"
    if account is not Account.USER:
        missing = "the program was stopped before it wrote a result"
    seen = TaskSeen(arn="", version=0, last_status="STOPPED", exit_code=0, status_reason=missing)
    ended = AttemptEnd(index, account, cause, missing, seen, instance_id)
    history.amend(state, run, ended, now)
    _settle(state, run, ended, now, policy)
    run.interruptions += account is Account.LOST and cause is not StopCause.STUCK
    charges.unbook(state, run, index, reclaim.work_of(run, ended))


def _end_of(run: Run, row: int, seen: TaskSeen, state: State) -> AttemptEnd:
    """The end of the attempt in a row, and the account that is charged for it."""
    table, instance = state.attempts, state.instance_of(row)
    cause = _cause_in(state, row, seen)
    return AttemptEnd(
        index=int(table["index"][row]),
        account=account_for(seen, cause, instance, has_runner=run.terms.needs_runner, serves=run.terms.serves),
        cause=cause,
        reason=shown_reason(run, seen, cause, instance),
        seen=seen,
        instance=instance.id if instance else None,
    )


def _cause_in(state: State, row: int, seen: TaskSeen) -> StopCause:
    """Why we asked for its stop. An attempt that ended by itself before the stop did not time out."""
    cause = StopCause(int(state.attempts["stop_cause"][row]))
    by_itself = cause in (StopCause.TIMED_OUT, StopCause.UNHEALTHY) and seen.stop_code == "EssentialContainerExited"
    return StopCause.NONE if by_itself else cause


def _settle(state: State, run: Run, end: AttemptEnd, now: float, policy: Policy) -> None:
    """The new status of the task."""
    index, account = end.index, end.account
    if run.terms.service is not None:
        services.settle(state, run, end, now)
    elif run.terms.gang is not None:
        gangs.note_end(state, run, end, now, policy)
    elif account is Account.SUCCESS:
        run.note_duration(float(run.tasks["seconds"][index]))
        done = {"status": TaskStatus.SUCCEEDED, "committed": int(run.tasks["attempts"][index])}
        unproved = {"status": TaskStatus.VERIFYING, "stop_cause": _cause_of(state, end)}
        state.set_task(run, index, **(unproved if run.expects_result else done))
    elif account is Account.CANCELLED:
        state.set_task(run, index, status=TaskStatus.CANCELLED, reason=run.reason_row(end.reason))
    elif account is Account.PREEMPTED:
        charge_nobody(state, run, end, now)
    elif account is Account.USER:
        charge_user(state, run, end, now, policy)
        stop_if_all_alike(state, run, policy)
    elif account is Account.BUSY:
        delay_s = START_BACKOFF_S * 2.0 ** min(int(run.tasks["losses"][index]), 5)
        charge_infrastructure(state, run, end, policy.max_losses, now + delay_s)
    elif account is Account.START:
        charge_infrastructure(state, run, end, policy.max_start_failures, now + START_BACKOFF_S)
        stop_if_all_alike(state, run, policy)
    else:
        charge_infrastructure(state, run, end, policy.max_losses, now)


def _cause_of(state: State, end: AttemptEnd) -> StopCause:
    """What may have stopped the attempt, if it turns out to have written nothing."""
    return StopCause.INTERRUPTED if host_was_lost(end.seen, state.instances.get(end.instance or "")) else end.cause


def _adopt(state: State, key: AttemptKey, row: int, arn: str, now: float) -> None:
    """The launch is known to have started this task."""
    table = state.attempts
    if table["status"][row] not in (AttemptStatus.INTENT, AttemptStatus.IN_DOUBT):
        return
    table.name_task(row, name_of(arn))
    if table["left_at"][row]:
        _take_place_again(state, row)
    table.set(row, status=AttemptStatus.LAUNCHED, launched_at=now, absent_since=0.0)
    run = state.runs[key.run_id]
    run.attempts += 1
    start_ups.note_boot(run, state.instance_of(row))
    run.note_instance(bytes(table["instance"][row]).decode(), state.instances)
    state.set_task(run, key.index, attempts=key.attempt, launch=0)


def _take_place_again(state: State, row: int) -> None:
    """Take room again: the launch was in doubt while its run was suspended, and freed its room."""
    instance = state.instance_of(row)
    state.attempts.come_back(row)
    if instance is not None:
        is_work = int(state.attempts["run"][row]) not in state.daemons
        instance.idle_since = 0.0 if is_work else instance.idle_since
        state.changed_instances.add(instance.id)


def _run(state: State, row: int, seen: TaskSeen, now: float) -> None:
    started_at = seen.started_at or now
    run = state.run_by_number(int(state.attempts["run"][row]))
    if run is not None:
        start_ups.note_start(state, run, row, seen)
    state.attempts.set(row, status=AttemptStatus.RUNNING, started_at=started_at)
    if run is None:
        return
    state.set_task(run, int(state.attempts["index"][row]), status=TaskStatus.RUNNING)
    run.started_at = run.started_at or started_at
    if run.status is RunStatus.PROVISIONING:
        run.status = RunStatus.RUNNING


def _note_gpus(state: State, row: int, gpu_ids: tuple[str, ...]) -> None:
    instance = state.instance_of(row)
    if not gpu_ids or instance is None:
        return
    mask = sum(1 << instance.gpu_ids.index(gpu) for gpu in gpu_ids if gpu in instance.gpu_ids)
    state.attempts.note_gpus(row, mask)


def _book(state: State, run: Run, row: int, seen: TaskSeen, now: float) -> tuple[float, float]:
    """Book what the attempt used: seconds, instance, GPUs. Returns from when to when it ran; 0 = not known."""
    table = state.attempts
    started_at = seen.started_at or float(table["started_at"][row])
    ended_at = seen.stopped_at or float(table["left_at"][row]) or now
    seconds = max(0.0, ended_at - started_at) if started_at else 0.0
    start_ups.note_start(state, run, row, seen)
    state.set_task(
        run,
        int(table["index"][row]),
        exit_code=NO_EXIT_CODE if seen.exit_code is None else seen.exit_code,
        seconds=seconds,
        instance=bytes(table["instance"][row]),
        gpu_mask=int(table["gpu_mask"][row]),
    )
    run.started_at = run.started_at or started_at
    if run.status is RunStatus.PROVISIONING and started_at:
        run.status = RunStatus.RUNNING
    return started_at, ended_at
