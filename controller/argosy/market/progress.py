"""Spot or on-demand for a run with a deadline, by the work and time left.

Slack is the time left beyond the duration of the remaining work on on-demand. It pays for waiting while spot is short,
and for the change-overs of returning to spot after a loss. A greedy policy spends it at once, and has none when spot is
available again. So on-demand starts while some slack is left. The *uniform progress* line ("Can't Be Late", NSDI'24) is
the upper limit of the reserve; a small share of the remaining work is enough (decision 10).
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.market.daemons import daemons_of
from argosy.market.offers import tasks_in
from argosy.market.on_demand import instances_of_others, most_tasks
from argosy.model.attempts import AttemptStatus
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.purchases import PurchaseStance
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TERMINAL, TaskStatus

# Chosen on recorded availability traces, where results are flat: half or double costs a few per cent more.
RESERVE_SHARE = 0.1  # of the duration of the remaining work: the slack kept in reserve
BACK_CHANGES = 6  # change-overs by which slack must exceed the reserve before on-demand is left without spot available
SETTLED_CHANGES = 2  # change-overs for which spot must have been back before on-demand is left for it


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run with a deadline. All in seconds; work is measured by its duration on on-demand."""

    total_s: float  # the whole work
    left_s: float
    window_s: float  # from the submission to the deadline
    time_left_s: float
    change_s: float  # from a decision to work on a new instance: order, boot, image
    look_s: float  # until the run is next checked
    at_risk_s: float = 0.0  # work that the loss of an instance undoes
    narrow: bool = False  # on-demand, by quotas or the hourly cap, has room for fewer tasks at once than spot
    changes: int = 2  # change-overs until on-demand works when spot is lost: one if the run works on spot already

    @property
    def slack_s(self) -> float:
        return self.time_left_s - self.left_s

    @property
    def margin_s(self) -> float:
        """The slack below which a loss on spot could no longer be made up."""
        return self.changes * self.change_s + self.look_s + self.at_risk_s

    @property
    def reserve_s(self) -> float:
        """The slack below which the run does not wait for spot."""
        share = self.left_s / self.total_s if self.total_s else 0.0
        line_s = max(0.0, self.window_s - self.total_s) * share
        return min(self.margin_s + RESERVE_SHARE * self.left_s, line_s)


def stance_of(progress: Progress, before: PurchaseStance, spot_for_s: float) -> PurchaseStance:
    """First the deadline, then spot where available, then on-demand where the slack is to be kept.

    spot_for_s: seconds since spot became available; 0 = it is not available. A stance ends only once the slack is past
    its limit by a margin: slack grows only when less work turns out to be left, or while on-demand lifts it above the
    reserve.
    """
    firm_below_s = progress.margin_s * (2 if before is PurchaseStance.FIRM else 1)
    if progress.slack_s < firm_below_s:
        return PurchaseStance.FIRM
    settled_s = SETTLED_CHANGES * progress.change_s if before is not PurchaseStance.SPOT else 0.0
    if spot_for_s > settled_s:
        return PurchaseStance.SPOT
    back_s = BACK_CHANGES * progress.change_s if before is PurchaseStance.ON_DEMAND else 0.0
    return PurchaseStance.ON_DEMAND if progress.slack_s < progress.reserve_s + back_s else PurchaseStance.SPOT


LOOK_S = 15.0  # a tick, and news of instances, come at least this often while any are owed


def progress_of(run: Run, moment: Moment) -> Progress | None:
    """None for a run without a deadline.

    The expected duration of a task is that of earlier ones, or else its spec's, or else the policy's estimate, and at
    least the age of the oldest attempt. Tasks running on spot count as work still to be done, because they may be lost.
    """
    deadline = run.deadline_at
    if deadline is None:
        return None
    now, policy = moment.now, moment.policy
    seconds = max(run.expected_seconds(policy.attempt_s), 0.0 if run.ended else _oldest_s(run, moment))
    longest_s = max(seconds, run.longest_s)
    at_once, narrow = _at_once(run, moment)
    return Progress(
        total_s=_time_for(run.task_count, run.task_count * seconds, longest_s, at_once),
        left_s=_left_s(run, moment, seconds, longest_s, at_once),
        window_s=deadline - run.opened_at,
        time_left_s=deadline - now,
        change_s=policy.boot_s,
        look_s=min(LOOK_S, policy.eager_sweep_s),
        at_risk_s=longest_s,
        narrow=narrow,
    )


def _time_for(tasks: int, work_s: float, longest_s: float, at_once: int) -> float:
    """Seconds that the tasks take at most, in any order: Graham's bound for tasks on equal workers."""
    if tasks <= at_once:
        return longest_s
    return (work_s - longest_s) / at_once + longest_s


def _left_s(run: Run, moment: Moment, seconds: float, longest_s: float, at_once: int) -> float:
    counts = run.tasks.counts()
    tasks = run.task_count - int(counts[list(TERMINAL)].sum()) - int(counts[TaskStatus.VERIFYING])
    if not tasks:
        return 0.0
    done = _done_on_demand(run, moment)
    work_s = tasks * seconds - sum(min(each, seconds) for each in done)
    whole = tasks > len(done)  # some task has all of its work to do
    return _time_for(tasks, work_s, longest_s if whole else max(0.0, longest_s - min(done)), at_once)


def _done_on_demand(run: Run, moment: Moment) -> list[float]:
    """The seconds for which each of the run's attempts on on-demand instances has been running: that work is safe."""
    held = [i for i in moment.state.instances.values() if i.alive and not i.purchase.may_be_taken_back]
    table = moment.state.attempts
    return [
        moment.now - float(table["started_at"][row])
        for instance in held
        for row in table.on_instance(instance.id)
        if table["run"][row] == run.number and table["status"][row] == AttemptStatus.RUNNING
    ]


def _oldest_s(run: Run, moment: Moment) -> float:
    """The seconds for which the oldest attempt has been running."""
    table = moment.state.attempts
    started = table["started_at"][table.here_of_run(run.number)]
    started = started[started > 0]
    return float(moment.now - started.min()) if len(started) else 0.0


def _at_once(run: Run, moment: Moment) -> tuple[int, bool]:
    """The minimum number of its tasks that on-demand can run at a time, and whether on-demand has less room than spot.
    Counts the allowed instances that other runs leave, of the type that takes the fewest tasks; or, if that is more,
    the tasks that run now.
    """
    state, policy = moment.state, moment.policy
    room = max(0, policy.max_instances - instances_of_others(run, state))
    instances = min(room, run.terms.max_instances or room)
    at_once = max(instances * _fewest(run, state, policy), len(state.attempts.here_of_run(run.number)), 1)
    at_once = min(at_once, run.terms.max_concurrent or at_once)
    bound = max(most_tasks(run, state, policy), len(_done_on_demand(run, moment)), 1)
    return int(min(at_once, bound)), bound < min(at_once, run.task_count)


def _fewest(run: Run, state: State, policy: Policy) -> int:
    """Tasks on an instance of the smallest type that takes any."""
    daemons = daemons_of(state)
    fits = [room for pool in state.pools.values() if (room := tasks_in(pool, run, policy, daemons))]
    return min(min(fits, default=1), run.terms.max_tasks_per_instance or 1_000_000)
