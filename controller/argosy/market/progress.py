"""How much work has a run left, and how much time?"""

from __future__ import annotations

from argosy.market.daemons import daemons_of
from argosy.market.deadline import Progress
from argosy.market.offers import tasks_in
from argosy.market.on_demand import instances_of_others, most_tasks
from argosy.model.attempts import AttemptStatus
from argosy.model.instances import Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TERMINAL, TaskStatus

LOOK_S = 15.0  # a tick, and what is known of instances, come at least this often while any are owed


def progress_of(run: Run, moment: Moment) -> Progress | None:
    """None for a run without a deadline.

    A task is expected to take as long as those before it, else as its spec says, else as the policy guesses, and at
    least as long as the oldest attempt has been running. What runs on spot counts as work that is still to be done,
    because it may be lost.
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
    """Seconds that the tasks take at most, whatever their order: Graham's bound for tasks on equal workers."""
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
    """For how many seconds each of the run's attempts on on-demand instances has been running: that work is safe."""
    held = [i for i in moment.state.instances.values() if i.alive and i.purchase is Purchase.ON_DEMAND]
    table = moment.state.attempts
    return [
        moment.now - float(table["started_at"][row])
        for instance in held
        for row in table.on_instance(instance.id)
        if table["run"][row] == run.number and table["status"][row] == AttemptStatus.RUNNING
    ]


def _oldest_s(run: Run, moment: Moment) -> float:
    """For how many seconds the oldest attempt has been running."""
    table = moment.state.attempts
    started = table["started_at"][table.here_of_run(run.number)]
    started = started[started > 0]
    return float(moment.now - started.min()) if len(started) else 0.0


def _at_once(run: Run, moment: Moment) -> tuple[int, bool]:
    """How many of its tasks on-demand can run at a time, at least, and whether on-demand has less room than spot.

    Counted are the instances that are allowed and that other runs leave, of the type that takes the fewest tasks; or,
    if that is more, the tasks that run now.
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
