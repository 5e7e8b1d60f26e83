"""Planted bugs of the protocol, first half: small switches, each a plausible mistake."""

from __future__ import annotations

from typing import Any

from argosy.aws import ecs_requests, launcher
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.fleets import AwsFleets
from argosy.aws.launcher import TaskLauncher
from argosy.engine import tick as engine_module
from argosy.engine.tick import Engine
from argosy.lifecycle import accounts, attempts, hosts
from argosy.lifecycle import apply as apply_module
from argosy.market import release
from argosy.model.attempts import AttemptStatus
from argosy.model.events import LaunchDisproved
from argosy.model.instances import Instance, InstanceStatus
from argosy.scheduler.upkeep import upkeep
from tests.mutations.catalogue import LIFE, PROTOCOL, Patch, planted, scenario


@planted("a request without a token starts a second copy", "failure-lies")
def token_dropped(patch: Patch) -> None:
    real = launcher.run_task_request

    def without(*args: Any, **rest: Any) -> dict[str, Any]:
        request = real(*args, **rest)
        del request["clientToken"]
        return request

    patch.setattr(launcher, "run_task_request", without)


@planted(
    "a refusal counts as proof that a launch did not happen, which another controller is about to send",
    check=scenario(PROTOCOL, "test_a_controller_that_pauses_in_the_middle_of_a_launch_starts_no_second_copy"),
)
def refusals_disprove_what_another_sends(patch: Patch) -> None:
    patch.setattr(launcher, "_doubted", lambda event, state, launch: event)


@planted("a token that changes with the plan protects nothing", "reply-lost", "listing-lag", "pages")
def token_of_the_moment(patch: Patch) -> None:
    count = iter(range(10**9))
    patch.setattr(ecs_requests, "client_token", lambda key: f"token-{next(count)}")


@planted("an intent in doubt is taken for one that never happened", "reply-lost", "listing-lag")
def doubt_is_a_refusal(patch: Patch) -> None:
    def disproved(self: Any, action: Any, state: Any, deadline: float) -> list[Any]:
        return [LaunchDisproved(launch.key) for launch in action.launches]

    patch.setattr(TaskLauncher, "resolve", disproved)


@planted("what was sent before the crash counts as unsent, under a new launch number")
def intents_forgotten_at_start(patch: Patch) -> None:
    def forget(event: Any, state: Any, now: float, policy: Any) -> None:
        for row in state.attempts.with_status(AttemptStatus.INTENT).tolist():
            attempts.disprove(state, state.key_of(row), now, "the controller was restarted")
        state.observed_at = 0.0

    registry = apply_module._apply
    real = registry.registry[apply_module.events.ControllerStarted]
    registry.register(apply_module.events.ControllerStarted, forget)
    patch.setattr(
        apply_module, "UNDO", lambda: registry.register(apply_module.events.ControllerStarted, real), raising=False
    )


@planted("effects come before the commit")
def commit_after_launch(patch: Patch) -> None:
    commit = Engine._commit

    def late(self: Engine, state: Any, *rest: Any) -> None:
        from argosy.model.moment import Moment
        from argosy.scheduler.decide import decide

        moment = Moment(state, self.catalogue, self.now(), self.policy)
        actions = [action for action in decide(moment) if not hasattr(action, "sentence")]
        self.executor.carry_out(actions, state, self.now() + self.execute_s)
        commit(self, state, *rest)

    patch.setattr(Engine, "_commit", late)


@planted("two controllers write over each other")
def commit_without_condition(patch: Patch) -> None:
    real = DynamoStore._raise_version

    def unconditional(self: Any, version: int, digest: str) -> dict[str, Any]:
        update = real(self, version, digest)
        del update["ConditionExpression"]
        update["ExpressionAttributeValues"].pop(":old", None)
        return update

    patch.setattr(DynamoStore, "_raise_version", unconditional)


@planted("an older event undoes a newer one, or books an end twice")
def events_of_any_attempt(patch: Patch) -> None:
    def any_row(state: Any, key: Any) -> int | None:
        run = state.runs.get(key.run_id)
        return state.attempts.row_of_task.get((run.number, key.index)) if run else None

    real = attempts.see

    def see(state: Any, seen: Any, now: float, policy: Any) -> bool:
        row = any_row(state, seen.key) if seen.key else None
        if row is not None and seen.last_status == "STOPPED":
            attempts.end(state, row, seen, now, policy)
            return True
        return real(state, seen, now, policy)

    patch.setattr(attempts, "see", see)


@planted("absence from one listing counts as an end", "listing-lag", "reply-lost")
def absence_is_proof_at_once(patch: Patch) -> None:
    def miss(state: Any, shown: set[bytes], at: float, policy: Any) -> None:
        table = state.attempts
        for row in table.with_status(AttemptStatus.LAUNCHED, AttemptStatus.RUNNING).tolist():
            if bytes(table["task_id"][row]) not in shown:
                attempts.lose(state, row, "not listed", at, policy)

    patch.setattr(attempts, "_miss", miss)


@planted("a spot loss uses up a user attempt")
def retry_budget_shared(patch: Patch) -> None:
    patch.setattr(attempts, "account_for", _user_unless_well)


def _user_unless_well(seen: Any, cause: Any, instance: Any, **terms: bool) -> Any:
    account = accounts.account_for(seen, cause, instance, **terms)
    return accounts.Account.USER if account is accounts.Account.LOST else account


@planted("every failure is tried again, whatever the limit")
def retries_without_end(patch: Patch) -> None:
    real = accounts._next_status
    patch.setattr(accounts, "_next_status", lambda run, again: real(run, True))


@planted("work is placed on instances that are about to go", "rebalance")
def draining_instance_placed(patch: Patch) -> None:
    active = property(lambda self: self.status is InstanceStatus.ACTIVE and self.owned)
    patch.setattr(Instance, "placeable", active)


@planted("an instance with our tag counts as ours, even if no fleet of ours launched it")
def tag_alone_proves_ownership(patch: Patch) -> None:
    class Everything(dict[str, Any]):
        def __contains__(self, name: object) -> bool:
            return True

        def __getitem__(self, name: str) -> Any:
            return Everything()

        def setdefault(self, name: str, default: Any = None) -> Any:
            return set()

    real = AwsFleets.__init__

    def init(self: AwsFleets, *args: Any) -> None:
        real(self, *args)
        self._ours = Everything()

    patch.setattr(AwsFleets, "__init__", init)


@planted("an instance whose launch was refused is never given back")
def refused_launch_leaves_no_idle_time(patch: Patch) -> None:
    patch.setattr(attempts, "end_attempt", lambda state, row, now: state.attempts.remove(row))


@planted("tasks wait forever for an instance that never registers", "no-register")
def silent_instances_are_waited_for(patch: Patch) -> None:
    from argosy.scheduler.supply import roster

    booting = InstanceStatus.BOOTING
    patch.setattr(roster, "may_still_come", lambda instance, now, policy: instance.status is booting)


@planted("an instance with a dead agent keeps its tasks forever", "partition")
def silent_agents_are_waited_for(patch: Patch) -> None:
    real = release._may_go

    def may_go(moment: Any, instance: Instance, no_linger: bool) -> bool:
        return real(moment, instance, no_linger) if not instance.disconnected_at else False

    patch.setattr(release, "_may_go", may_go)


@planted(
    "an incomplete listing of instances decides which are gone",
    check=scenario(PROTOCOL, "test_listings_of_instances_that_break_off_lose_nothing"),
)
def broken_listing_is_believed(patch: Patch) -> None:
    real = hosts.miss_hosts

    def miss(state: Any, sweep: Any, policy: Any) -> None:
        from dataclasses import replace

        hurried = replace(policy, absence_s=0.0)
        real(state, replace(sweep, hosts_complete=True), hurried)

    patch.setattr(hosts, "miss_hosts", miss)


@planted("results count although they were never looked for")
def results_unverified(patch: Patch) -> None:
    from argosy.aws.results import Results
    from argosy.model.events import ResultSeen

    patch.setattr(Results, "verify", lambda self, action, state: ResultSeen(action.run_id, action.index, 7, 1))


@planted(
    "work is started while the deployment is torn down",
    check=scenario(LIFE, "test_the_kill_switch_launches_nothing_more"),
)
def the_kill_switch_is_not_read(patch: Patch) -> None:
    from argosy.engine import steps

    real = steps.decide

    def decide(moment: Any, launching: bool, *rest: Any) -> Any:
        return real(moment, True, *rest)

    patch.setattr(steps, "decide", decide)


@planted("an intent in doubt stays in doubt forever")
def launches_never_resolved(patch: Patch) -> None:
    patch.setattr(upkeep, "resolutions", lambda moment: iter(()))


@planted("a run is closed without its manifest")
def closed_without_a_manifest(patch: Patch) -> None:
    from argosy.aws.results import Results
    from argosy.model.events import RunClosed

    patch.setattr(Results, "close", lambda self, action, state: RunClosed(action.run_id))


@planted("instances are ended before their tasks")
def terminated_under_work(patch: Patch) -> None:
    def may_go(moment: Any, instance: Instance, no_linger: bool) -> bool:
        return instance.status is InstanceStatus.ACTIVE and moment.now - instance.registered_at > 120

    patch.setattr(release, "_may_go", may_go)


@planted("terminations are not marked before they are done")
def terminations_unmarked(patch: Patch) -> None:
    real = engine_module.begin

    def begin(state: Any, action: Any, now: float, policy: Any) -> None:
        if type(action).__name__ != "Terminate":
            real(state, action, now, policy)

    patch.setattr(engine_module, "begin", begin)
