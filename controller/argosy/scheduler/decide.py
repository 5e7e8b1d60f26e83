"""What should be done next? One pure function from a snapshot to inert actions.

`plan`, `explain`, the simulation and the live controller all call it (DESIGN D1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from argosy.market.buy import Order
from argosy.market.cover import alike
from argosy.market.offers import as_registered, offers_of
from argosy.model.actions import Action, CapRun, HaltRun, NoteOrder, Remark
from argosy.model.attempts import AttemptStatus
from argosy.model.instance_types import InstanceType
from argosy.model.orders import OrderNote
from argosy.model.policy import Policy
from argosy.model.state import State
from argosy.placement.custom import FitnessFailed, OwnFunctions
from argosy.placement.demand import Batch
from argosy.placement.fitness import Fitness
from argosy.scheduler import budget, capacity, upkeep
from argosy.scheduler.attempt_seconds import attempt_seconds
from argosy.scheduler.bounds import AT_ONCE
from argosy.scheduler.budget import Purse
from argosy.scheduler.budget_places import Till
from argosy.scheduler.places import Places, assign
from argosy.scheduler.reasons import why_nothing_is_bought
from argosy.scheduler.steering import steers

NO_FUNCTIONS = OwnFunctions()


def decide(
    state: State,
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy,
    launching: bool = True,
    functions: OwnFunctions = NO_FUNCTIONS,
) -> list[Action]:
    """The actions of one tick. With `launching` False (the kill switch) nothing is started or bought any more, and
    what idles goes.
    `functions`: the fitness functions of users' own that strategies may name."""
    purses = budget.purses(state, now, policy)
    ends: list[CapRun | HaltRun] = [*budget.used_up(purses), *upkeep.run_timeouts(state, now)]
    actions: list[Action] = [*upkeep.repairs(state), *ends, *upkeep.stops(state, now, policy)]
    actions += [*upkeep.orphans(state), *upkeep.resolutions(state, now, policy)]
    if launching and not state.losses.blind:
        actions += upkeep.preparations(state, now, functions)
        ended = {each.run_id for each in ends}
        placed, functions = _without_failures(
            functions, lambda ready: _place_and_buy(state, catalogue, now, policy, ready, purses, ended)
        )
        actions += placed
    else:
        actions += capacity.let_go(state, now, policy, down=not launching)
    actions += upkeep.halts(state, functions)
    actions += upkeep.verifications(state, now, policy)
    actions += upkeep.closings(state, now)
    return actions


def _without_failures(
    functions: OwnFunctions, act: Callable[[Mapping[str, Fitness]], list[Action]]
) -> tuple[list[Action], OwnFunctions]:
    """What `act` gives with the functions that work, and those functions: one that fails takes only its runs down."""
    while True:
        try:
            return act(functions.ready), functions
        except FitnessFailed as failure:
            functions = functions.without(failure)


def _place_and_buy(
    state: State,
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy,
    fitness: Mapping[str, Fitness],
    purses: Mapping[str, Purse],
    ended: Collection[str],
) -> list[Action]:
    """`ended`: ids of runs that are stopped in this very tick."""
    catalogue = as_registered(catalogue, state.pools.values())
    offers = offers_of(state.pools.values(), catalogue, now, policy, attempt_seconds(state))
    till = Till(state, catalogue, now, policy, {run_id: purse.afresh() for run_id, purse in purses.items()})
    unsent = [launch for launch in upkeep.unsent(state, now, policy) if launch.key.run_id not in ended]
    intended = len(state.attempts.with_status(AttemptStatus.INTENT))  # whether or not they may be sent now
    at_most = till.at_most(offers) | dict.fromkeys(ended, 0)
    places = till.allowed(assign(state, catalogue, now, policy, fitness, at_most))
    places, order = capacity.order_in_turn(state, places, offers, catalogue, policy, fitness)
    leaving = capacity.leaving_instances(state, places, now, policy)
    capped = [action for action in till.judged(places, order) if action.run_id not in ended]
    return [
        *capacity.targets(state, places, order, leaving, now, policy),
        *capacity.terminations(leaving),
        *unsent,
        *places.launches[: max(0, policy.max_launches_per_tick - intended)],
        *till.claims(places),
        *capped,
        *_remarks(state, places, order, catalogue, now, policy, till.sentences),
        *steers(state, places, order, now, policy),
        *_notes(order, now),
    ]


def _notes(order: Order, now: float) -> list[NoteOrder]:
    """What is bought, where anything is."""
    if not order.instances.total():
        return []
    usd, low = order.usd_per_hour, order.lower_bound_usd_per_hour
    return [NoteOrder(OrderNote(now, order.instances.total(), usd, low, order.gap, order.method, order.patterns))]


def _remarks(
    state: State,
    places: Places,
    order: Order,
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy,
    short_of_money: Mapping[str, str],
) -> list[Remark]:
    """Why a run's tasks wait, when that has changed. `short_of_money`: run id -> sentence."""
    remarks = []
    known: dict[tuple[Batch, str], str] = {}  # many small runs may be alike
    for run, left_over, uncovered, coming, limit in zip(
        places.runs, places.left_over, order.uncovered, places.coming_per_run, order.held_back, strict=True
    ):
        sentence = short_of_money.get(run.id, "")
        if run.id not in short_of_money and uncovered and limit != AT_ONCE:
            key = alike(left_over), limit
            if key not in known:
                known[key] = why_nothing_is_bought(state, left_over, catalogue, now, policy, limit)
            sentence = known[key]
        elif run.id not in short_of_money and (left_over.count or coming):
            sentence = "waiting for ordered instances to join the cluster"
        if sentence != run.waiting:
            remarks.append(Remark(run.id, sentence))
    return remarks
