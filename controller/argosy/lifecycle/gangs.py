"""How do launches and ends of members change a gang?

The end of a member is only noted. When no member is alive, the gang is settled: it is done, tried again as a whole, or
given up, and one account is charged for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.gangs.members import gang_of, live_rows, members
from argosy.gangs.rendezvous import address_of, port_of
from argosy.lifecycle import charges
from argosy.lifecycle.accounts import Account, AttemptEnd, charge_infrastructure, charge_user
from argosy.lifecycle.run_stops import stop_if_all_alike
from argosy.model.actions import Launch
from argosy.model.attempts import StopCause
from argosy.model.costs import Work
from argosy.model.events import TaskSeen
from argosy.model.gangs import Gang, MemberEnd
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus

AGAIN_S = 10.0  # until a gang starts again that did not start as a whole; doubled each time, up to 32 x
# Of several ends, the last in this order is charged: peers of a lost member fail too, and so do those of one that
# could not start.
_ORDER = (Account.PEER, Account.USER, Account.BUSY, Account.START, Account.LOST, Account.CANCELLED)
_MIRRORED = ("status", "not_before", "user_failures", "losses", "reason")


def note_launch(state: State, run: Run, launch: Launch, now: float) -> None:
    """Store where a member goes. Those of a gang come one after the other, by rank."""
    instance, number = state.instances[launch.instance_id], gang_of(run, launch.key.index)
    gang = run.gangs.get(number)
    if gang is None:
        taken = {each.port for each in _first_on(state, instance.id)}
        gang = Gang(now, port_of(run.number, number, launch.key.attempt, taken), (), ())
    hosts, addresses = (*gang.hosts, instance.id), (*gang.addresses, address_of(instance))
    run.gangs[number] = gang._replace(hosts=hosts, addresses=addresses)


def _first_on(state: State, instance_id: str) -> Iterator[Gang]:
    """The gangs whose rank 0 is on the instance."""
    for run in state.runs.values():
        yield from (gang for gang in run.gangs.values() if gang.hosts[0] == instance_id)


def note_end(state: State, run: Run, end: AttemptEnd, now: float, policy: Policy) -> None:
    """A member's attempt has ended. One that ended well waits for the others."""
    number = gang_of(run, end.index)
    gang = run.gangs.get(number)
    if gang is None:  # all members ended well, and then rank 0 had left no result
        _restart(state, run, _stored(end), now, policy)
    elif end.account is Account.SUCCESS:
        run.note_duration(float(run.tasks["seconds"][end.index]))
        state.set_task(run, end.index, status=TaskStatus.VERIFYING, stop_cause=end.cause)
    else:
        if gang.end is None or _rank(end.account) > _rank(Account(gang.end.account)):
            run.gangs[number] = gang._replace(end=_stored(end))
        state.set_task(run, end.index, status=TaskStatus.PENDING, reason=run.reason_row(end.reason))


def _rank(account: Account) -> int:
    return _ORDER.index(account) if account in _ORDER else _ORDER.index(Account.LOST)


def pass_time(state: State, now: float, policy: Policy) -> None:
    """Settle the gangs whose last member has ended, as many as this commit can hold."""
    for run in state.runs.values():
        for number in [*run.gangs]:
            if not state.may_settle_more(policy):
                return
            if not live_rows(state, run, number):
                _settle(state, run, number, now, policy)


def _settle(state: State, run: Run, number: int, now: float, policy: Policy) -> None:
    gang, rows = run.gangs.pop(number), members(run, number)
    state.changed_runs.add(run.id)
    statuses = {int(run.tasks["status"][index]) for index in rows}
    if statuses == {TaskStatus.VERIFYING}:
        if not run.expects_result:
            succeed(state, run, number, int(run.tasks["attempts"][rows.start]))
        return  # otherwise the result of rank 0 is looked up
    end = gang.end
    if end is None:  # some launches never happened, and no attempt failed
        why = "not all members of its gang could be started"
        account = Account.CANCELLED if TaskStatus.CANCELLED in statuses else Account.PEER
        end = MemberEnd(rows.start, account.value, StopCause.GANG, why, None, "", "", "", "")
    leaves = (each.leaves for name in gang.hosts if (each := state.instances.get(name)) is not None)
    if end.account == Account.PEER.value and any(leaves):
        end = end._replace(account=Account.LOST.value)
    _restart(state, run, end, now, policy)


def succeed(state: State, run: Run, number: int, attempt: int, size_bytes: int = 0) -> None:
    """All members of the gang have ended well. attempt: whose result counts, which rank 0 left. size_bytes: of it."""
    for rank, index in enumerate(members(run, number)):
        own = int(run.tasks["attempts"][index]) if rank else attempt
        its = 0 if rank else size_bytes
        state.set_task(run, index, status=TaskStatus.SUCCEEDED, committed=own, bytes=its, reason=0)


def _restart(state: State, run: Run, stored: MemberEnd, now: float, policy: Policy) -> None:
    """All members wait for the next attempt, or none has another one."""
    rows, end = members(run, gang_of(run, stored.index)), _end_of(stored)
    launch = int(run.tasks["launch"][end.index])  # of a launch that never happened: its token is not used again
    for index in rows:
        if index != end.index and run.tasks["status"][index] == TaskStatus.VERIFYING.value:
            charges.unbook(state, run, index, Work.REDONE)
    if end.account is Account.CANCELLED:
        state.set_task(run, end.index, status=TaskStatus.CANCELLED, reason=run.reason_row(end.reason))
    elif end.account is Account.USER:
        charge_user(state, run, end, now, policy)
    elif end.account in (Account.PEER, Account.BUSY, Account.START):
        delay_s = AGAIN_S * 2.0 ** min(int(run.tasks["losses"][end.index]), 5)
        limit = policy.max_start_failures if end.account is Account.START else policy.max_losses
        charge_infrastructure(state, run, end, limit, now + delay_s)
    else:
        charge_infrastructure(state, run, end, policy.max_losses, now)
    state.set_task(run, end.index, launch=launch)
    values = {name: run.tasks[name][end.index] for name in _MIRRORED}
    if values["status"] == TaskStatus.FAILED.value:
        values["exit_code"] = run.tasks["exit_code"][end.index]
    for index in rows:
        if index != end.index:
            state.set_task(run, index, **values)
    if end.account in (Account.USER, Account.START):
        stop_if_all_alike(state, run, policy)


def _stored(end: AttemptEnd) -> MemberEnd:
    seen = end.seen
    texts = (seen.container_reason, seen.status_reason, seen.arn, end.instance or "")
    return MemberEnd(end.index, end.account.value, int(end.cause), end.reason, seen.exit_code, *texts)


def _end_of(end: MemberEnd) -> AttemptEnd:
    seen = TaskSeen(
        arn=end.task_arn,
        version=0,
        last_status="STOPPED",
        exit_code=end.exit_code,
        status_reason=end.status_reason,
        container_reason=end.container_reason,
    )
    return AttemptEnd(end.index, Account(end.account), StopCause(end.cause), end.reason, seen, end.instance or None)
