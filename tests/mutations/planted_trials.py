"""Planted bugs that trials find since their users, programs and owners do more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from argosy.aws import markers, results
from argosy.aws.fleet_templates import FleetTemplates
from argosy.engine import steps, tick
from argosy.engine.tick import Engine
from argosy.lifecycle import announcements, attempts, definitions, history, run_stops
from argosy.lifecycle.accounts import Account, AttemptEnd
from argosy.market.cover import RUN_LIMIT
from argosy.model.actions import StopAttempt
from argosy.model.events import Event, RebalanceAdvised
from argosy.model.instances import Instance, Purchase
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.pools import Pool
from argosy.model.run_terms import RUNNER_ATTRIBUTE
from argosy.model.runs import Run
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.recording.recorder import Recorder, TickRecord, digest_of
from argosy.scheduler import decide as decide_module
from argosy.scheduler.buying import capacity, orders, remarks
from argosy.scheduler.buying.budget import SHORT_OF_BUDGET, CappedRuns, RunBudget
from argosy.scheduler.turns import asks
from argosy.scheduler.upkeep import upkeep
from tests.fakes.trials import WARM
from tests.harness.simulation.plan import TrialPlan
from tests.mutations.catalogue import Patch, planned, planted, scenario

SHUTDOWNS = "tests.scenarios.test_shutdowns"
LOOKED_UP = "test_a_missing_result_uses_up_no_attempt_if_its_hosts_shutdown_is_reported_after_the_lookup"


@planted(
    "a program that answers the SIGTERM of an interruption with exit code 0 has failed for want of its result",
    "clean-exit",
    "interruption",
    "storm",
    "os-shutdown",
)
def clean_exits_are_the_users(patch: Patch) -> None:
    patch.setattr(attempts, "account_without_result", lambda cause, instance: Account.USER)


@planted(
    "an attempt without a result is the user's if its host's shutdown is heard of only after its result was looked up",
    check=scenario(SHUTDOWNS, LOOKED_UP, False),
)
def missing_results_do_not_wait(patch: Patch) -> None:
    patch.setattr(attempts, "is_result_open", lambda cause, instance: False)


@planted(
    "a cell whose stack is being destroyed is still used for purchases and work",
    "further-cell",
    "cell-destroyed",
    "cell-left-out",
)
def destroyed_cells_are_worked_in(patch: Patch) -> None:
    patch.setattr(steps, "close_cells", lambda state, closed: None)


@planted("budgets and hourly caps are ignored", "tight-budget", "tight-hourly-cap")
def caps_are_ignored(patch: Patch) -> None:
    patch.setattr(decide_module, "run_budgets", lambda moment: {})


@planted("a run continues when its budget is used up", "tight-budget", "bad-program", "interruption", "host-loss")
def budgets_end_nothing(patch: Patch) -> None:
    patch.setattr(decide_module, "used_up", lambda budgets: iter(()))
    patch.setattr(RunBudget, "left_usd", property(lambda budget: math.inf))


@planted("an hourly cap does not hold on instances that were bought for others", "tight-hourly-cap", "many-runs")
def hourly_caps_bind_orders_only(patch: Patch) -> None:
    real = CappedRuns._pay

    def pay(capped: CappedRuns, budget: RunBudget, instance: Instance) -> bool:
        is_new, before = instance.id not in budget.paid, budget.usd_per_hour
        budget.usd_per_hour = -math.inf
        paid = real(capped, budget, instance)
        budget.usd_per_hour = before + instance.price_usd_per_hour * (paid and is_new)
        return paid

    patch.setattr(CappedRuns, "_pay", pay)


@planted("the advice to leave an instance is known in memory only", "rebalance", "crash")
def advice_is_not_stored(patch: Patch) -> None:
    real = steps.apply

    def apply(state: State, event: Event, now: float, policy: Policy) -> None:
        changed = set(state.changed_instances)
        real(state, event, now, policy)
        if isinstance(event, RebalanceAdvised):
            state.changed_instances &= changed

    patch.setattr(steps, "apply", apply)


@planted("a warning or advice about an instance that is not known yet is dropped", "interruption", "rebalance", "storm")
def early_warnings_are_dropped(patch: Patch) -> None:
    patch.setattr(announcements, "keep", lambda state, instance_id, announced: None)


@planted("one document that cannot be read keeps every run from being read", "torn-document")
def torn_documents_stop_everybody(patch: Patch) -> None:
    patch.setattr(documents, "tried", lambda document, read, *rest: read())


@planted("messages are deleted before what they say is stored", "interruption", "rebalance", "storm")
def messages_are_deleted_before_the_commit(patch: Patch) -> None:
    real = Engine._commit

    def commit(engine: Engine, *rest: Any) -> None:
        engine.queue.delete([message.receipt for message in engine.taken.messages])
        real(engine, *rest)

    patch.setattr(Engine, "_commit", commit)


@planted("a stop is asked for again in every tick", "partition", "time-limit", "bad-program", "cancel")
def stops_every_tick(patch: Patch) -> None:
    real = upkeep.stops

    def stops(moment: Moment) -> Iterator[StopAttempt]:
        return real(replace(moment, policy=replace(moment.policy, stop_again_s=0.0)))

    patch.setattr(upkeep, "stops", stops)


@planted("the controller works on for an hour when everything is over", "bad-program")
def rests_an_hour_late(patch: Patch) -> None:
    patch.setattr(Engine, "_has_looked", lambda engine: engine.now() > engine.acted_at + 3600.0)


@planted("one more instance is ordered than is needed", "bad-program")
def orders_are_too_large(patch: Patch) -> None:
    real = capacity._RiseLimits.at_most

    def at_most(rises: capacity._RiseLimits, pool: Pool, purchase: Purchase, wanted: int, replaced: int) -> int:
        allowed = real(rises, pool, purchase, wanted, replaced)
        return allowed + 1 if allowed > pool.target else allowed

    patch.setattr(capacity._RiseLimits, "at_most", at_most)


@planted("a run's reason names a cap that it does not have", "bad-program", "quota")
def caps_that_nobody_set_are_named(patch: Patch) -> None:
    patch.setattr(remarks, "why_all_back_off", lambda run, now: SHORT_OF_BUDGET.format(cap="$0.00"))


@planted("what ended in one commit is appended to the history by the next one again", "bad-program")
def history_row_twice(patch: Patch) -> None:
    real = documents.committed

    def committed(state: State) -> None:
        ended = dict(state.ended)
        real(state)
        state.ended.update({run_id: rows for run_id, rows in ended.items() if run_id in state.runs})

    patch.setattr(documents, "committed", committed)


@planted("an attempt whose end was not observed leaves no trace in the history", "host-loss", "interruption")
def losses_are_not_history(patch: Patch) -> None:
    real = history.note_end

    def note_end(state: State, run: Run, row: int, end: AttemptEnd, ran: tuple[float, float]) -> None:
        if end.account is not Account.LOST:
            real(state, run, row, end, ran)

    patch.setattr(history, "note_end", note_end)


@planted("what a tick decides is recorded before its commit, which may fail")
def recorded_before_the_commit(patch: Patch) -> None:
    real = Engine._commit

    def commit(engine: Any, state: State, puts: Any, *rest: Any) -> bool:
        if engine.recorder is not None:
            engine.recorder.tick(engine.taken.record((), digest_of(puts), state.version + 1, is_whole=True))
        return real(engine, state, puts, *rest)

    patch.setattr(Engine, "_commit", commit)


@planted("a record says when it was made, instead of from when each fact counts")
def recorded_times_are_of_the_record(patch: Patch) -> None:
    real = Recorder.tick

    def tick(recorder: Any, record: TickRecord) -> None:
        record.facts = [(event, record.decided_at) for event, _ in record.facts]
        real(recorder, record)

    patch.setattr(Recorder, "tick", tick)


ROLL = TrialPlan(3, frozenset({"new-image"}), jobs=WARM.jobs, controllers=1, every_kind=True, faulty_s=300.0)
"""The second run comes when nothing of the first is left, and long after the last new image."""


@planted("fleets stay at the version of the launch template that they began with", check=planned(ROLL))
def images_are_never_rolled(patch: Patch) -> None:
    patch.setattr(FleetTemplates, "note", lambda templates, *rest: None)


@planted("a run still shows a reason to wait that no longer holds")
def reasons_are_never_taken_back(patch: Patch) -> None:
    real = decide_module.remarks
    patch.setattr(decide_module, "remarks", lambda *rest: [each for each in real(*rest) if each.sentence])


@planted("a limit of the run is named that it does not have, where the deployment's is reached")
def the_runs_limit_is_named(patch: Patch) -> None:
    patch.setattr(orders, "DEPLOYMENT", RUN_LIMIT)


@planted(
    "a run whose tasks are all cancelled still waits for instances",
    check=scenario("tests.unit.scheduler.test_decide", "test_a_run_that_is_stopped_waits_for_nothing"),
)
def halted_runs_wait_on(patch: Patch) -> None:
    real = run_stops.give_up

    def give_up(state: State, run: Run, reason: str) -> None:
        waiting = run.waiting
        real(state, run, reason)
        run.waiting = waiting

    patch.setattr(run_stops, "give_up", give_up)
    patch.setattr(definitions, "give_up", give_up)


@planted("instances that are gone are counted in the metrics", "bad-program")
def metrics_count_what_is_gone(patch: Patch) -> None:
    real = tick.figures_of

    def figures_of(state: State, actions: Any, now: float) -> dict[str, Any]:
        return {**real(state, actions, now), "instances": len(state.instances)}

    patch.setattr(tick, "figures_of", figures_of)


@planted("the metrics count the tasks that waited at the tick before")
def metrics_are_a_tick_old(patch: Patch) -> None:
    real, last = tick.figures_of, {"tasks_pending": 0}

    def figures_of(state: State, actions: Any, now: float) -> dict[str, Any]:
        figures = real(state, actions, now)
        figures["tasks_pending"], last["tasks_pending"] = last["tasks_pending"], figures["tasks_pending"]
        return figures

    patch.setattr(tick, "figures_of", figures_of)


@planted("a marker names the first try, whichever it is about", "bad-program", "retry")
def markers_name_the_first_try(patch: Patch) -> None:
    real = markers.put_marker
    patch.setattr(results, "put_marker", lambda s3, run, succeeded: real(s3, replace(run, retries=0), succeeded))


@planted("a run of which a part failed gets the marker of success", "bad-program")
def every_marker_is_of_success(patch: Patch) -> None:
    real = markers.put_marker
    patch.setattr(results, "put_marker", lambda s3, run, succeeded: real(s3, run, True))


@planted(
    "a program of a user's own is placed on instances without the runner that starts it", "own-program", "no-runner"
)
def programs_go_anywhere(patch: Patch) -> None:
    real = asks._where
    patch.setattr(asks, "_where", lambda terms: tuple(each for each in real(terms) if RUNNER_ATTRIBUTE not in each))


@planted("what S3 does to the runner is the user's failure", "own-program", "bad-program")
def the_runners_trouble_is_the_users(patch: Patch) -> None:
    real = attempts.account_for
    patch.setattr(attempts, "account_for", lambda seen, cause, instance, **terms: real(seen, cause, instance))
