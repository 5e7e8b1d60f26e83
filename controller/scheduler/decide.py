"""What should be done next? One pure function from a snapshot to inert actions.

`plan`, `explain`, the simulation and the live controller all call it (DESIGN D1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.catalogue.types import InstanceType
from controller.market.buy import Order
from controller.market.offers import offers_of
from controller.model.actions import Action, Remark
from controller.model.attempts import AttemptStatus
from controller.model.policy import Policy
from controller.model.state import State
from controller.placement.custom import FitnessFailed, OwnFunctions
from controller.placement.fitness import Fitness
from controller.scheduler import capacity, upkeep
from controller.scheduler.places import Places, assign
from controller.scheduler.reasons import why_nothing_is_bought

NO_FUNCTIONS = OwnFunctions()


def decide(
    state: State,
    catalogue: Mapping[str, InstanceType],
    now: float,
    policy: Policy,
    launching: bool = True,
    functions: OwnFunctions = NO_FUNCTIONS,
) -> list[Action]:
    """The actions of one tick. With `launching` False (the kill switch) nothing is started or bought any more.
    `functions`: the fitness functions of users' own that strategies may name."""
    actions: list[Action] = [*upkeep.repairs(state), *upkeep.stops(state, now, policy), *upkeep.orphans(state)]
    actions += upkeep.resolutions(state, now, policy)
    if launching and not state.losses.blind:
        actions += upkeep.preparations(state, now, functions)
        placed, functions = _without_failures(
            functions, lambda ready: _place_and_buy(state, catalogue, now, policy, ready)
        )
        actions += placed
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
) -> list[Action]:
    offers = offers_of(state.pools.values(), catalogue, now)
    unsent = list(upkeep.unsent(state, now, policy))
    intended = len(state.attempts.with_status(AttemptStatus.INTENT))  # whether or not they may be sent now
    places = assign(state, catalogue, now, policy, fitness)
    order = capacity.order_for(state, places, offers, policy, fitness)
    leaving = capacity.leaving_instances(state, places, now, policy)
    return [
        *capacity.targets(state, places, order, leaving, now, policy),
        *capacity.terminations(leaving),
        *unsent,
        *places.launches[: max(0, policy.max_launches_per_tick - intended)],
        *_remarks(state, places, order, catalogue, now),
    ]


def _remarks(
    state: State, places: Places, order: Order, catalogue: Mapping[str, InstanceType], now: float
) -> list[Remark]:
    """Why a run's tasks wait, when that has changed."""
    remarks = []
    for run, left_over, uncovered, coming in zip(
        places.runs, places.left_over, order.uncovered, places.coming_per_run, strict=True
    ):
        sentence = ""
        if uncovered:
            sentence = why_nothing_is_bought(state, left_over, catalogue, now)
        elif left_over.count or coming:
            sentence = "waiting for ordered instances to join the cluster"
        if sentence != run.waiting:
            remarks.append(Remark(run.id, sentence))
    return remarks
