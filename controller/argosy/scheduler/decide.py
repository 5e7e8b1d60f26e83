"""One tick's decisions: a pure function that turns a snapshot into inert actions (DESIGN D1).

The live controller, local mode and trials call it through the engine; `plan` and `explain` call its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from argosy.market.buy import Order
from argosy.market.cover import alike
from argosy.market.daemons import daemons_of
from argosy.market.limits import AT_ONCE
from argosy.market.offers import as_registered, offers_of
from argosy.model.actions import (
    Action,
    CapRun,
    DrainTask,
    HaltRun,
    Launch,
    NoteFloor,
    NoteOrder,
    Remark,
    SetSlots,
    StopAttempt,
)
from argosy.model.moment import Moment
from argosy.model.pools import OrderNote
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.placement.custom import FitnessFailed, OwnFunctions
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.scheduler.buying import capacity
from argosy.scheduler.buying.budget import CappedRuns, RunBudget, run_budgets, used_up
from argosy.scheduler.buying.purchase_switch import steers
from argosy.scheduler.buying.reasons import why_all_back_off, why_nothing_is_bought
from argosy.scheduler.placing.kept_instances import idle_yields
from argosy.scheduler.placing.places import Places, assign, in_waves
from argosy.scheduler.services.environments import given_up_by, rollouts
from argosy.scheduler.services.targets import drained_first, target_steps
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.taking_room.reclaim import reclaims
from argosy.scheduler.upkeep import upkeep
from argosy.scheduler.upkeep.health_polls import looks
from argosy.scheduler.upkeep.held_runs import why_held, why_none_may_start

NO_FUNCTIONS = OwnFunctions()
ORDERED = "waiting for ordered instances to join the cluster"
NOT_ORDERED = "no instance is ordered for it yet: {} are ordered at once, those for others first; the next tick goes on"
TAKEN_DOWN = "nothing is started or bought any more: the deployment is being taken down"


def decide(
    moment: Moment,
    launching: bool = True,
    functions: OwnFunctions = NO_FUNCTIONS,
    roster: Roster | None = None,
) -> list[Action]:
    """The actions of one tick.

    launching: False (the kill switch) starts and buys nothing more, and releases what idles. functions: the users' own
    fitness functions that strategies may name. roster: what the ticks before kept of their looks at the state, which
    changes no answer.
    """
    state, now = moment.state, moment.now
    budgets = run_budgets(moment)
    ends: list[CapRun | HaltRun] = [*used_up(budgets), *upkeep.run_timeouts(state, now)]
    actions: list[Action] = [*upkeep.repairs(state), *ends, *drained_first(moment, upkeep.stops(moment))]
    actions += upkeep.host_look_ups(state, now, moment.policy)
    actions += looks(moment)
    wanted = rollouts(moment)
    steps = list(drained_first(moment, (each for each in wanted if not isinstance(each, Launch))))
    stopped = {each.key for each in (*actions, *steps) if isinstance(each, StopAttempt | DrainTask)}
    actions += [*upkeep.orphans(state), *upkeep.resolutions(moment), *steps, *target_steps(moment, stopped)]
    if launching and not state.losses.blind:
        actions += upkeep.preparations(state, now, functions)
        ended = {each.run_id for each in ends} | given_up_by(steps)
        placed, functions = _without_failures(
            functions, lambda ready: _place_and_buy(moment, roster or Roster(), ready, budgets, ended, wanted)
        )
        actions += [*placed, *upkeep.histories(moment), *upkeep.deregistrations(state, now)]
        actions += why_held(state)
    else:
        actions += capacity.let_go(moment, down=not launching)
        actions += [] if launching else _last_remarks(state)
    actions += upkeep.halts(state, functions)
    actions += upkeep.verifications(moment)
    actions += upkeep.waits_that_are_over(state)
    actions += upkeep.closings(state, now)
    actions += upkeep.folds(state, now)
    return actions


def _last_remarks(state: State) -> list[Remark]:
    """What a run said that it waits for will not come any more."""
    runs = [run for run in state.runs.values() if not (run.complete or run.halted or run.waiting == TAKEN_DOWN)]
    return [Remark(run.id, TAKEN_DOWN, unaffordable=False) for run in runs]


def _without_failures(
    functions: OwnFunctions, act: Callable[[Mapping[str, Fitness]], list[Action]]
) -> tuple[list[Action], OwnFunctions]:
    """What `act` gives with the functions that work, and those functions: a failing one stops only its own runs."""
    while True:
        try:
            return act(functions.ready), functions
        except FitnessFailed as failure:
            functions = functions.without(failure)


def _place_and_buy(
    moment: Moment,
    roster: Roster,
    fitness: Mapping[str, Fitness],
    budgets: Mapping[str, RunBudget],
    ended: Collection[str],
    rolled: Sequence[Action],
) -> list[Action]:
    """ended: ids of runs that are stopped, or give up tasks, in this very tick. rolled: what environments do.
    Launches of daemons come before all others: their room was kept for them. What services come to want in this tick is
    placed in the next one: until then nothing goes that could take it."""
    state, policy = moment.state, moment.policy
    moment = replace(moment, catalogue=as_registered(moment.catalogue, state.pools.values()))
    offers = offers_of(
        state.pools.values(), moment.catalogue, moment.now, policy, _attempt_seconds(state), daemons_of(state)
    )
    capped = CappedRuns(moment, {run_id: budget.copy() for run_id, budget in budgets.items()})
    unsent = [launch for launch in upkeep.unsent(moment) if launch.key.run_id not in ended]
    at_most = capped.at_most(offers) | dict.fromkeys(ended, 0)
    places = capped.allowed(assign(moment, roster, fitness, at_most))
    places, order = capacity.order_in_turn(moment, places, offers, fitness)
    places = replace(places, no_linger=places.no_linger | idle_yields(moment, places.wanted))
    leaving = capacity.leaving_instances(moment, places)
    if any(isinstance(each, SetSlots) and each.wanted and not state.runs[each.run_id].is_daemon for each in rolled):
        leaving = [instance for instance in leaving if not instance.placeable]
    gone = {instance.id for instance in leaving}
    staying = [each for each in rolled if isinstance(each, Launch) and each.instance_id not in gone]
    exhausted = [action for action in capped.exhausted(places, order) if action.run_id not in ended]
    return [
        *capacity.targets(moment, places, order, leaving),
        *capacity.departures(moment, leaving),
        *unsent,
        *in_waves(state, policy, [*staying, *places.launches]),
        *capped.claims(places),
        *exhausted,
        *_remarks(moment, places, order, capped),
        *steers(moment, places, order),
        *_notes(order, moment.now),
        *reclaims(moment, _with(places, staying, unsent), order, capped.budgets, offers, fitness),
        *([NoteFloor(order.why_small)] if order.why_small != state.floor.waiting else []),
    ]


def _with(places: Places, *launches: Sequence[Launch]) -> Places:
    """What else starts in this tick."""
    return replace(places, launches=(*places.launches, *(each for some in launches for each in some)))


def _attempt_seconds(state: State) -> float | None:
    """How long is the work that an interruption would have to do again (market/risk.py)? The mean over the pending
    tasks of the open runs for which it is known how long an attempt takes; None while there are none."""
    known = [(seconds, run) for run in state.runs.values() if (seconds := _known_seconds(run)) is not None]
    waiting = [int(run.tasks.counts()[TaskStatus.PENDING]) for _, run in known]
    if not sum(waiting):
        return None
    return sum(seconds * count for (seconds, _), count in zip(known, waiting, strict=True)) / sum(waiting)


def _known_seconds(run: Run) -> float | None:
    """As long as earlier attempts took, else as the spec expects. A time-out says nothing about it."""
    return run.mean_seconds(run.terms.expected_seconds)


def _notes(order: Order, now: float) -> list[NoteOrder]:
    """What is bought, where anything is."""
    if not order.instances.total():
        return []
    usd, low = order.usd_per_hour, order.lower_bound_usd_per_hour
    return [NoteOrder(OrderNote(now, order.instances.total(), usd, low, order.gap, order.method, order.patterns))]


def _remarks(moment: Moment, places: Places, order: Order, capped: CappedRuns) -> list[Remark]:
    """Why a run's tasks wait, when that has changed."""
    remarks, short_of_money = [], capped.sentences
    known: dict[tuple[Batch, str], str] = {}  # many small runs may be alike
    for its, shortfall in zip(places.runs, order.shortfalls, strict=True):
        run, limit = its.run, shortfall.reason
        if run.complete:
            continue  # what it says is how its closing goes
        sentence = short_of_money.get(run.id, "")
        if run.id not in short_of_money and shortfall.tasks and limit != AT_ONCE:
            key = alike(its.left_over), limit
            if key not in known:
                known[key] = why_nothing_is_bought(moment, its.left_over, limit)
            sentence = known[key]
        elif run.id not in short_of_money and (its.left_over.count or its.coming):
            is_ordered = its.coming or shortfall.tasks < its.left_over.count
            sentence = ORDERED if is_ordered else NOT_ORDERED.format(moment.policy.growth_per_tick)
        elif run.id not in short_of_money:
            sentence = why_all_back_off(run, moment.now) or why_none_may_start(moment.state, run)
        unaffordable = run.id in capped.unaffordable
        if sentence != run.waiting or unaffordable != bool(run.unaffordable_since):
            remarks.append(Remark(run.id, sentence, unaffordable))
    return remarks
