"""Planted bugs that crowds of users, and users of schedules, find."""

from __future__ import annotations

from argosy.api.access import entrance
from argosy.api.environments.requests import ScaleEnvironment
from argosy.api.schedules import firing
from argosy.api.waiting import explanation
from argosy.lifecycle import dependencies, environments
from argosy.scheduler.services import deployments
from argosy.scheduler.taking_room import reclaim
from argosy.sharing import fill
from argosy.spec import overrides
from tests.fakes.trials import crowd
from tests.harness.simulation.faults import kinds_of
from tests.harness.simulation.plan import TrialPlan
from tests.mutations.catalogue import Check, Patch, planned, planted, scenario
from tests.mutations.planted_once_missed import reworded


def fired(seed: int) -> Check:
    """A trial with a schedule, one controller, and nothing that fails."""
    plan = TrialPlan(seed, kinds_of("cancel"), schedules=1.0, faulty_s=900.0, controllers=1)
    return planned(plan)


def kept_up(seed: int) -> Check:
    """A trial with a service, one controller, and nothing that fails."""
    return planned(TrialPlan(seed, kinds_of("service"), faulty_s=600.0, controllers=1))


@planted("a firing that is to be skipped or queued starts its run beside the open one", check=fired(0))
def open_runs_hold_up_nothing(patch: Patch) -> None:
    patch.setattr(firing, "open_runs", lambda context, schedule: ())


@planted("of several open runs of a schedule only the newest is replaced", check=fired(14))
def only_the_newest_is_replaced(patch: Patch) -> None:
    reworded(patch, firing._ran, "replaces = asked.open_runs if", "replaces = asked.open_runs[-1:] if")


@planted("the runs that a firing replaces go on", check=fired(0))
def replaced_runs_go_on(patch: Patch) -> None:
    reworded(patch, firing._finish, "for run_id in fire.replaces:", "for run_id in ():")


@planted("a paused schedule starts its runs", check=fired(2))
def paused_schedules_fire(patch: Patch) -> None:
    reworded(patch, firing._decide, "schedule.state is ScheduleState.PAUSED", "not schedule.state")


@planted("a firing starts its run however late it was delivered", check=fired(2))
def late_firings_start(patch: Patch) -> None:
    reworded(patch, firing._decide, "late_s > schedule.start_within_s", "late_s > 1e9")


@planted("a deployment resets the number of tasks that was scaled", check=kept_up(1))
def deployments_reset_the_number(patch: Patch) -> None:
    reworded(patch, environments._deploy, "wanted != env.spec_desired", "True")


@planted("a revision that says not to is rolled back", check=kept_up(24))
def wishes_are_not_looked_at(patch: Patch) -> None:
    reworded(patch, deployments._back_to, "or not wishes", "")


@planted("the first failure of a task fails the deployment", check=kept_up(24))
def one_failure_is_enough(patch: Patch) -> None:
    patch.setattr(deployments, "most_failures", lambda desired: 1)


@planted("room is taken at once, not after the time that the document says", check=scenario(
    "tests.simulation.test_preemption", "trials_find_nothing", range(2, 3)
))  # fmt: skip
def room_is_taken_at_once(patch: Patch) -> None:
    reworded(patch, reclaim.reclaims, ">= reclaim.after_s", ">= 0.0")


@planted("a full commit leaves a run waiting for what has ended", check=scenario(
    "tests.unit.lifecycle.test_dependencies",
    "test_a_run_whose_tasks_wait_for_their_own_ones_says_so_only_until_these_have_ended",
))  # fmt: skip
def reasons_outlive_their_dependencies(patch: Patch) -> None:
    reworded(patch, dependencies._meet, "run.waiting if run.unmet else", "run.waiting or")


@planted("a service is scaled through the entrance of another queue", check=planned(crowd(3)))
def services_are_open_to_all(patch: Patch) -> None:
    patch.setitem(entrance._CHECKS, ScaleEnvironment, lambda context, request, its: None)  # type: ignore[arg-type]


@planted("why a run waits is asked of an ended run, too", check=fired(0))
def ended_runs_are_explained(patch: Patch) -> None:
    patch.setattr(explanation, "not_open", lambda record: (_ for _ in ()).throw(KeyError(record.id)))


@planted("what is guaranteed to a queue comes after all other turns: S13", check=scenario(
    "tests.simulation.test_sharing", "with_guarantees", range(1, 4)
))  # fmt: skip
def guarantees_wait(patch: Patch) -> None:
    patch.setattr(fill, "_allot_guarantees", lambda allotment, *given: allotment.counts.copy())


@planted("the files of a task are measured as one address", check=scenario(
    "tests.properties.test_shards_properties", "test_no_list_of_inputs_is_longer_than_the_bound"
))  # fmt: skip
def files_need_no_room(patch: Patch) -> None:
    patch.setattr(overrides, "_beside_member", lambda form, values: 0)
