"""Planted bugs: services and their deployments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

from argosy.lifecycle import attempts, services
from argosy.lifecycle import environments as lifecycle_environments
from argosy.lifecycle.accounts import Account, AttemptEnd
from argosy.model.actions import ForgetEnvironment, NoteDeployment, RetireRun
from argosy.model.run_terms import ServiceTerms
from argosy.model.runs import Run
from argosy.model.services.environments import DeploymentStatus, Environment
from argosy.model.state import State
from argosy.model.tasks import TaskStatus
from argosy.scheduler.services import environments, rollout
from argosy.scheduler.services.rollout import Slot, SlotStatus, Step
from argosy.scheduler.turns import asks
from argosy.scheduler.upkeep import upkeep
from argosy.spec import terms as spec_terms
from tests.harness.simulation.campaign import run_trial
from tests.harness.simulation.plan import TrialPlan
from tests.mutations.catalogue import SEEDS, Check, Found, Patch, planted, scenario

PROPERTIES = "tests.properties.test_rollout_properties"
WORLDS = "test_no_act_of_ours_undercuts_or_exceeds_the_bounds_and_all_worlds_settle"

SERVICES = "tests.scenarios.test_services"
ROLLOUTS, LONG_LIFE = (
    "tests.unit.scheduler.services.test_rollouts",
    "tests.unit.lifecycle.test_environments_of_long_life",
)
DRAINED = "test_a_task_that_ends_with_its_drained_instance_is_no_reason_to_stop_another_one_in_the_same_tick"
HELD = "test_with_a_suspended_run_of_an_earlier_revision_the_others_continue_and_its_tasks_count"
GIVEN_UP = "test_in_the_tick_that_gives_a_revision_up_nothing_is_stopped_for_it"
NOT_STARTED = "test_in_the_tick_that_gives_a_revision_up_its_pending_tasks_do_not_start"
NOW_AND_THEN = "test_tasks_that_are_healthy_now_and_then_do_not_keep_the_breaker_from_counting"
WAITS_FOR_THAW = "test_a_deployment_of_what_a_user_has_frozen_waits_for_the_thaw"
BASE = "tests.scenarios.test_on_demand_base"
COUNTED = "test_the_commit_that_completes_a_deployment_stops_none_of_the_tasks_that_it_counts"
ENDS_WELL = "test_a_server_that_answers_a_spot_interruption_with_exit_code_0_has_not_failed"


def served(*kinds: str) -> Check:
    """Trials that have a service nearly always, and all of these faults."""

    def check() -> Found | None:
        for seed in range(SEEDS):
            plan = TrialPlan(seed, frozenset({"service", *kinds}), every_kind=True, limit_s=7200.0)
            verdict = run_trial(plan)
            if not verdict.ok:
                return Found(f"simulation: {verdict.violations[0].invariant}", seed + 1)
        return None

    return check


@planted("a service's task that is no longer wanted counts its attempts from zero again", check=served())
def rows_are_reset_on_scale_down(patch: Patch) -> None:
    real = State.set_task

    def set_task(state: State, run: Run, index: int, **values: Any) -> None:
        restarted = {"attempts": 0} if run.terms.serves and values.get("status") is TaskStatus.CANCELLED else {}
        real(state, run, index, **values, **restarted)

    patch.setattr(State, "set_task", set_task)


@planted("spot losses open the breaker of a deployment", check=served("interruption", "storm", "host-loss"))
def breaker_counts_spot_losses(patch: Patch) -> None:
    real = services.settle

    def settle(state: State, run: Run, end: AttemptEnd, now: float) -> None:
        real(state, run, end, now)
        env = state.environments.get(run.name)
        if end.account is Account.LOST and env is not None and env.deployment is not None:
            env.deployment.failures += not env.deployment.has_ended
            state.changed_environments.add(env.name)

    patch.setattr(services, "settle", settle)


@planted("a deployment is complete as soon as none of its tasks is pending", check=served())
def not_pending_is_complete(patch: Patch) -> None:
    real = environments.progress

    def progress(moment: Any, env: Any, target: Any, standing: Any) -> Iterator[NoteDeployment]:
        alive = target is not None and any(target.tasks.counts()[[TaskStatus.STARTING, TaskStatus.RUNNING]])
        if alive and not env.deployment.has_ended and not target.tasks.counts()[TaskStatus.PENDING]:
            yield NoteDeployment(env.name, DeploymentStatus.COMPLETED, "", 0, 0)
        else:
            yield from real(moment, env, target, standing)

    patch.setattr(environments, "progress", progress)


@planted("a deployment completes on tasks that the same commit stops", check=scenario(BASE, COUNTED))
def counted_and_stopped(patch: Patch) -> None:
    real = environments._standing
    patch.setattr(environments, "_standing", lambda env, target, tasks, now: real(env, target, tasks, Step()))


@planted("a task on an instance that is about to go is stopped before another one has taken its place",
         check=scenario(PROPERTIES, WORLDS))  # fmt: skip
def hand_over_stops_first(patch: Patch) -> None:
    real = rollout._stops

    def stops(going: Sequence[Slot], spare: int) -> tuple[Slot, ...]:
        leaving = [slot for slot in going if slot.leaves and slot.status is SlotStatus.HEALTHY]
        return tuple({*real(going, spare), *leaving})

    patch.setattr(rollout, "_stops", stops)


@planted("what is frozen is replaced and scaled all the same", check=served())
def frozen_is_replaced(patch: Patch) -> None:
    def step(slots: Sequence[Slot], desired: int, terms: ServiceTerms, *, is_frozen: bool, base: int) -> Step:
        return rollout.step(slots, desired, terms, base=base)

    patch.setattr(environments, "step", step)


@planted("a deployment thaws what a user has frozen", check=scenario(LONG_LIFE, WAITS_FOR_THAW))
def deployments_thaw(patch: Patch) -> None:
    def freeze_by_itself(env: Environment, why: str) -> None:
        env.frozen_reason, env.frozen_by_user = why, bool(why) and env.frozen_by_user

    patch.setattr(lifecycle_environments, "_freeze_by_itself", freeze_by_itself)


@planted("how many healthy tasks can be done without is computed from all tasks", check=served())
def all_tasks_count_as_healthy(patch: Patch) -> None:
    real = rollout.step

    def step(slots: Sequence[Slot], desired: int, terms: ServiceTerms, *, is_frozen: bool, base: int) -> Step:
        found = real(slots, desired, terms, is_frozen=is_frozen, base=base)
        staying = rollout._staying(slots, desired, base)
        going = [slot for slot in slots if slot not in staying]
        spare = len(slots) - rollout.least_healthy(terms, desired)
        return found if is_frozen else Step(found.starts, found.parks, rollout._stops(going, spare))

    patch.setattr(environments, "step", step)


@planted("a task that a service gives up is launched in the same tick", check=served())
def parked_tasks_are_launched(patch: Patch) -> None:
    patch.setattr(environments, "given_up_by", lambda steps: {e.run_id for e in steps if isinstance(e, RetireRun)})


@planted("a server that ends well when its instance goes has failed", check=scenario(SERVICES, ENDS_WELL))
def well_ended_servers_have_failed(patch: Patch) -> None:
    real = attempts.account_for

    def account_for(seen: Any, cause: Any, instance: Any, *, serves: bool, **terms: bool) -> Account:
        if serves and seen.exit_code == 0:
            return Account.USER
        return real(seen, cause, instance, serves=serves, **terms)

    patch.setattr(attempts, "account_for", account_for)


@planted("a deleted environment is forgotten before its tasks have ended", check=served())
def deleted_is_forgotten_at_once(patch: Patch) -> None:
    real = environments.retirements

    def retirements(env: Any, *rest: Any) -> Iterator[Any]:
        if env.deleting:
            yield ForgetEnvironment(env.name)
        else:
            yield from real(env, *rest)

    patch.setattr(environments, "retirements", retirements)


@planted("the tasks that a service stops are chosen without regard to its base", check=scenario(PROPERTIES, WORLDS))
def base_is_let_go(patch: Patch) -> None:
    real = rollout._staying
    patch.setattr(rollout, "_staying", lambda slots, desired, base: real(slots, desired, 0))


@planted("tasks of a service's base are asked for wherever there is room", check=served())
def base_is_asked_for_anywhere(patch: Patch) -> None:
    patch.setattr(asks, "on_demand", lambda batch: batch)


@planted("a revision of the same content restarts its tasks", check=served())
def nothing_is_adopted(patch: Patch) -> None:
    digests = map(str, count())
    patch.setattr(spec_terms, "content_of", lambda form: next(digests))


@planted("an environment forgets what its earlier runs have cost", check=served())
def costs_are_forgotten(patch: Patch) -> None:
    patch.setattr(lifecycle_environments, "note_closed", lambda state, run: None)


@planted("a task that ends with its drained instance counts as healthy", check=scenario(ROLLOUTS, DRAINED))
def drained_counts_as_healthy(patch: Patch) -> None:
    patch.setattr(environments, "ends_with_instance", upkeep.has_handed_over)


@planted("the tick that gives a revision up still replaces tasks by it", check=scenario(ROLLOUTS, GIVEN_UP))
def given_up_is_still_rolled_out(patch: Patch) -> None:
    patch.setattr(environments, "DeploymentStatus", SimpleNamespace(FAILED=None))


@planted("the tick that gives a revision up launches its pending tasks", check=scenario(ROLLOUTS, NOT_STARTED))
def given_up_is_launched(patch: Patch) -> None:
    real = environments._slots
    patch.setattr(environments, "_slots", lambda now, target, moment: real(now, target, moment) if target else ())


@planted("a task that is healthy again closes the breaker of a deployment", check=scenario(LONG_LIFE, NOW_AND_THEN))
def healthy_again_closes_the_breaker(patch: Patch) -> None:
    real = lifecycle_environments.note_deployment

    def note_deployment(state: State, action: NoteDeployment, now: float) -> None:
        deployment = state.environments[action.name].deployment
        if deployment is not None:
            deployment.most_healthy = deployment.healthy
        real(state, action, now)

    patch.setattr(lifecycle_environments, "note_deployment", note_deployment)


@planted("what fails outside of a deployment is not counted", check=served())
def crash_loop_is_not_told(patch: Patch) -> None:
    real = services._count

    def count(state: State, env: Environment | None, *rest: Any) -> None:
        if env is not None and env.deployment is not None and not env.deployment.has_ended:
            real(state, env, *rest)

    patch.setattr(services, "_count", count)


@planted("tasks of a suspended run count as nothing beside those of the others", check=scenario(ROLLOUTS, HELD))
def suspended_tasks_are_not_counted(patch: Patch) -> None:
    patch.setattr(environments, "placed_rows", lambda state, env: [])
