"""The decisions of one tick: a pure function from a snapshot to inert actions (DESIGN D1).

The live controller, local mode and trials call it through the engine; `plan` and `explain` call its parts. A tick is a
sequence of phases, each of which takes the result of the previous one (DESIGN D29):

    what is there --> whose turn --> what is placed --> what is bought --> what goes --> for whom room is taken
    Present           Turns          Places             OrderedPlaces      Departures    actions
    supply/           turns/         placing/           buying/            buying/       taking_room/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from argosy.market.order import Order
from argosy.model.actions import Action, CapRun, HaltRun, NoteFloor, NoteOrder
from argosy.model.moment import Moment
from argosy.model.pools import OrderNote, as_registered
from argosy.model.state import State
from argosy.placement.custom import FitnessFailed, OwnFunctions
from argosy.placement.fitness import Fitness
from argosy.scheduler.buying.budget import CappedRuns, run_budgets, used_up
from argosy.scheduler.buying.capacity import let_go, what_goes
from argosy.scheduler.buying.orders import MarketView, bought
from argosy.scheduler.buying.purchase_switch import steers
from argosy.scheduler.buying.remarks import last_remarks, remarks, why_held
from argosy.scheduler.buying.uncapped_runs import UncappedRuns
from argosy.scheduler.placing.launches import in_waves
from argosy.scheduler.placing.places import placed
from argosy.scheduler.services.environments import ServiceSteps, service_steps
from argosy.scheduler.supply.present import what_is_there
from argosy.scheduler.supply.roster import Roster
from argosy.scheduler.taking_room.reclaim import reclaims
from argosy.scheduler.turns.turns import whose_turn
from argosy.scheduler.upkeep import upkeep

NO_FUNCTIONS = OwnFunctions()


def decide(
    moment: Moment, launching: bool = True, functions: OwnFunctions = NO_FUNCTIONS, roster: Roster | None = None
) -> list[Action]:
    """The actions of one tick.

    launching: False (the kill switch) stops launches and purchases, and releases idle instances. functions: users' own
    fitness functions that strategies may name. roster: a cache from earlier ticks, which changes no answer.
    """
    state, now = moment.state, moment.now
    budgets = run_budgets(moment) if state.has_capped_runs else {}
    chores = upkeep.chores(moment)
    ends: list[CapRun | HaltRun] = [*(used_up(budgets) if budgets else ()), *chores.timeouts]
    services = service_steps(moment, chores.stops) if state.environments else ServiceSteps(chores.stops)
    actions: list[Action] = [*chores.repairs, *ends, *services.stops, *chores.look_ups, *services.looks]
    actions += [*chores.unknown, *services.steps]
    if launching and not state.losses.blind:
        actions += upkeep.preparations(state, now, functions)
        ended = {each.run_id for each in ends} | services.given_up

        def money() -> UncappedRuns:
            return CappedRuns.of(moment, budgets, ended) if state.has_capped_runs else UncappedRuns(moment, ended)

        started, functions = _without_failures(
            functions, lambda ready: _work(moment, roster or Roster(), ready, money, services)
        )
        actions += [*started, *upkeep.histories(moment), *upkeep.deregistrations(state, now)]
        actions += why_held(state)
    else:
        actions += let_go(moment, down=not launching)
        actions += [] if launching else last_remarks(state)
    return actions + upkeep.last_chores(moment, functions)


def _work(
    moment: Moment,
    roster: Roster,
    fitness: Mapping[str, Fitness],
    means: Callable[[], UncappedRuns],
    services: ServiceSteps,
) -> list[Action]:
    """The launches, the purchases for the rest, and the releases.

    Launches of daemons come before all others, because their room was kept for them.
    """
    moment = replace(moment, catalogue=as_registered(moment.catalogue, moment.state.pools.values()))
    market, money, there = MarketView(moment, fitness), means(), what_is_there(moment, roster, fitness)
    unsent = [launch for launch in upkeep.unsent(moment) if launch.key.run_id not in money.ended]
    places = money.allowed(placed(whose_turn(there, money.at_most(market))))
    if unpaid := money.unpaid(places):  # others get the part of a queue's cap that these runs cannot pay for
        money = means()
        places = money.allowed(placed(whose_turn(there, money.at_most(market, unpaid))))
    ordered = bought(market, places)
    takes_room = moment.state.sharing.takes_room
    goes = what_goes(moment, ordered, keep_placeable=services.grows)
    staying = [launch for launch in services.launches if launch.instance_id not in goes.leaving]
    exhausted = money.exhausted(ordered.runs(), ordered.places)
    return [
        *goes.actions,
        *unsent,
        *in_waves(moment.state, moment.policy, [*staying, *ordered.places.launches]),
        *money.claims(ordered.places),
        *exhausted,
        *remarks(moment, ordered, money),
        *(steers(moment, ordered) if any(run.is_steered for run in moment.state.runs.values()) else ()),
        *_notes(ordered.order, moment.now),
        *(reclaims(market, ordered.with_launches(*staying, *unsent), money) if takes_room else ()),
        *_floor_note(ordered.order, moment.state),
    ]


def _without_failures(
    functions: OwnFunctions, act: Callable[[Mapping[str, Fitness]], list[Action]]
) -> tuple[list[Action], OwnFunctions]:
    """The result of `act` with the functions that work, and those functions. A failing function stops only the runs
    that name it."""
    while True:
        try:
            return act(functions.ready), functions
        except FitnessFailed as failure:
            functions = functions.without(failure)


def _floor_note(order: Order, state: State) -> list[NoteFloor]:
    """Nothing if the state has the same reasons."""
    known = state.floor.waiting, state.floor.headroom_waiting
    told = order.why_small, order.why_no_headroom
    return [NoteFloor(*told)] if told != known else []


def _notes(order: Order, now: float) -> list[NoteOrder]:
    """The order's actions, if anything is bought."""
    if not order.instances.total():
        return []
    usd, low = order.usd_per_hour, order.lower_bound_usd_per_hour
    return [NoteOrder(OrderNote(now, order.instances.total(), usd, low, order.gap, order.method, order.patterns))]
