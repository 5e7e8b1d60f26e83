"""Planted bugs: how a controller leaves while nothing is due, and returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argosy.aws.dynamodb import DynamoStore
from argosy.engine.loop import Loop
from argosy.engine.tick import Engine
from argosy.messages import urgent
from argosy.model.instances import Instance
from argosy.model.moment import Moment
from argosy.model.policy import Policy
from argosy.model.runs import Run
from argosy.model.services.environments import Environment
from argosy.model.state import State
from argosy.ports import Caller
from argosy.scheduler import due
from tests.harness.simulation.injection import event_path
from tests.mutations.catalogue import Patch, planted, scenario
from tests.mutations.planted_services import served

QUIET, LOOPS = "tests.scenarios.test_quiet", "tests.unit.engine.test_loop"


@planted(
    "the controller leaves while a deployment goes on",
    check=scenario(
        QUIET, "test_the_controller_stays_while_a_deployment_waits_for_its_tasks_to_be_healthy_for_long_enough"
    ),
)
def it_leaves_in_the_middle_of_a_deployment(patch: Patch) -> None:
    def is_settled(moment: Moment, env: Environment) -> bool:
        return True

    patch.setattr(due, "_is_settled", is_settled)


@planted("the controller leaves while a run of a batch is open", check=served("interruption"))
def it_leaves_while_a_batch_is_open(patch: Patch) -> None:
    def is_kept_running(state: State, run: Run) -> bool:
        return True

    patch.setattr(due, "_is_kept_running", is_kept_running)


LAST_MOMENT = "test_a_warning_that_comes_while_the_controller_leaves_is_handled_at_once"


@planted("a call that is turned away while the controller leaves is lost", check=scenario(QUIET, LAST_MOMENT))
def a_call_is_lost_at_the_last_moment(patch: Patch) -> None:
    def lay_down_lease(self: DynamoStore, owner: str) -> bool:
        self.release_lease(owner)
        return True

    patch.setattr(DynamoStore, "lay_down_lease", lay_down_lease)


@planted(
    "a called controller looks for its message only once, before it arrives",
    check=scenario(QUIET, LAST_MOMENT),
)
def nobody_waits_for_the_message(patch: Patch) -> None:
    def receive_at_once(self: Loop, remaining_s: float) -> None:
        self.caller = Caller.CLOCK
        real(self, remaining_s)

    real = Loop.step
    patch.setattr(Loop, "step", receive_at_once)


@planted(
    "a quiet controller writes no heartbeat, and the watchdog takes it for dead",
    check=scenario(QUIET, "test_the_watchdog_takes_a_quiet_controller_for_alive"),
)
def quiet_is_taken_for_dead(patch: Patch) -> None:
    real = Loop._beat

    def beat(self: Loop) -> None:
        if self.caller is not Caller.CLOCK:
            real(self)

    patch.setattr(Loop, "_beat", beat)


@planted(
    "the heartbeat of a quiet controller says that all is at rest",
    check=scenario(QUIET, "test_a_tick_that_an_update_has_disabled_is_enabled_again_by_the_watchdog"),
)
def quiet_is_taken_for_rest(patch: Patch) -> None:
    real = DynamoStore.beat

    def beat(self: DynamoStore, now: float, *, at_rest: bool = False) -> None:
        real(self, now, at_rest=True)

    patch.setattr(DynamoStore, "beat", beat)


@planted(
    "the end of an instance's linger does not trigger a tick",
    check=scenario(QUIET, "test_an_idle_instance_is_released_as_soon_as_its_linger_ends"),
)
def the_end_of_a_linger_is_not_due(patch: Patch) -> None:
    def times_of_instance(instance: Instance, policy: Policy) -> Iterator[float]:
        return iter(())

    patch.setattr(due, "_times_of_instance", times_of_instance)


@planted(
    "the end of a pause after a crash is not due",
    check=scenario(QUIET, "test_a_task_is_started_again_as_soon_as_its_pause_ends"),
)
def the_end_of_a_pause_is_not_due(patch: Patch) -> None:
    real = due._times

    def times(moment: Moment) -> Iterator[float]:
        ends = {float(each) for run in moment.state.runs.values() for each in run.tasks["not_before"].tolist()}
        return (at for at in real(moment) if at not in ends)

    patch.setattr(due, "_times", times)


@planted(
    "an invocation goes on with what it has in memory although another one has committed",
    check=scenario(LOOPS, "test_a_quiet_controllers_memory_is_reused_unless_another_commit_came_in_between"),
)
def it_goes_on_with_an_old_state(patch: Patch) -> None:
    def resume(self: Engine) -> None:
        if not self.left_quiet:
            self.forget()
        self.left_quiet = False

    patch.setattr(Engine, "resume", resume)


@planted("no rule calls the controller when something is urgent", check=served("interruption"))
def nobody_calls(patch: Patch) -> None:
    def rule_of(message: dict[str, Any]) -> str:
        return ""

    assert urgent.rule_of is event_path.rule_of
    patch.setattr(event_path, "rule_of", rule_of)
