"""Does an environment run as many tasks of the revision as its users have asked for, and go back only where it may?

E14: the desired number is the one that was asked for last: by scaling, or by deploying a revision whose `desired`
differs from that of the revision deployed before; a roll-back of the controller's own keeps it. E15: a deployment fails
by its tasks only after as many failures as half of the desired tasks, at least 3 and at most 200. After a failed
deployment either the revision that was completed last is deployed again, or the environment is frozen: always after a
roll-back that failed, where the revision says so, and where no other revision was ever completed. A deployment that a
user has stopped leaves it frozen. Only a failure leads to a deployment that no user has asked for, apart from a thaw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model import inbox
from argosy.model.inbox import INBOX, EnvironmentRequest
from argosy.model.services.environments import DeploymentStatus, Environment
from tests.harness.simulation.audit.facts import Checker, Commit, EffectCheck, Operation, TrialFacts

JSON = dict[str, Any]
BY_TASKS = "of its tasks failed"  # in the reason of a deployment


class DeploymentChecker(Checker):
    """Every commit that changes a service, against the requests that it takes out of the inbox."""

    def __init__(self, facts: TrialFacts) -> None:
        super().__init__(facts)
        self.failed = self.went_back = 0
        """Deployments that failed; roll-backs by the controller."""
        self._stored: dict[str, EnvironmentRequest] = {}
        """By place in the inbox."""
        self._taken: list[EnvironmentRequest] = []
        """Of the transaction that is being checked, in the order of the inbox."""
        self._before: dict[str, Environment] = {}

    def effects(self) -> Mapping[Operation, EffectCheck]:
        return {("dynamodb", "transact_write_items"): self._written}

    def committed(self, commit: Commit) -> None:
        before, self._before = self._before, dict(self.facts.stored.environments)
        taken, self._taken = self._taken, []
        for name, env in self._before.items():
            was = before.get(name)
            if was is None or was is env or env.is_daemon or was.created_at != env.created_at or was.deleting:
                continue
            asked = [each for each in taken if each.name == name]
            if not (env.deleting or env.left or was.left):
                self._is_as_asked(was, env, asked)
            self._goes_back(was, env, asked)

    def _written(self, request: JSON, reply: JSON) -> None:
        for action in request["TransactItems"]:
            item = action.get("Put", {}).get("Item", {})
            if item.get("pk") == {"S": INBOX}:
                asked = inbox.from_bytes(item["body"]["B"])
                if isinstance(asked, EnvironmentRequest):
                    self._stored[item["sk"]["S"]] = asked
        keys = [action["Delete"]["Key"] for action in request["TransactItems"] if "Delete" in action]
        places = sorted(key["sk"]["S"] for key in keys if key["pk"] == {"S": INBOX})
        self._taken += [self._stored.pop(place) for place in places if place in self._stored]

    def _is_as_asked(self, was: Environment, env: Environment, asked: list[EnvironmentRequest]) -> None:
        desired, of_spec = was.desired, was.spec_desired
        for each in _first_of_each(was, asked):
            if each.change == "scale" and each.desired is not None:
                desired = each.desired
            elif each.submit is not None and each.submit.terms.service is not None:
                wanted = each.submit.terms.service.desired
                desired, of_spec = (wanted, wanted) if wanted != of_spec else (desired, of_spec)
        if env.desired != desired:
            self._violated("E14", env, f"has {env.desired} desired tasks, and {desired} were asked for last")

    def _goes_back(self, was: Environment, env: Environment, asked: list[EnvironmentRequest]) -> None:
        earlier = {each.number: each for each in was.deployments}
        for each in env.deployments:
            before = earlier.get(each.number)
            if each.status is DeploymentStatus.FAILED and not (before and before.has_ended):
                self.failed += 1
                self._after_failure(was, env, each.number)
            is_stopped = each.status is DeploymentStatus.STOPPED and not (before and before.has_ended)
            if is_stopped and each is env.deployment and not (env.frozen_reason or env.deleting):
                self._violated("E15", env, f"has the stopped deployment {each.number}, and is not frozen")
            if before is None and not each.is_rollback and not any(one.change in ("deploy", "thaw") for one in asked):
                self._violated("E15", env, f"begins deployment {each.number}, which no user has asked for")

    def _after_failure(self, was: Environment, env: Environment, number: int) -> None:
        failed = next(each for each in env.deployments if each.number == number)
        most = min(200, max(3, -(-env.desired // 2)))
        if BY_TASKS in failed.reason and failed.failures < most:
            self._violated("E15", env, f"fails by {failed.failures} failures; {most} make a deployment fail")
        later = next((each for each in env.deployments if each.number == number + 1), None)
        if later is None:
            if not env.frozen_reason:
                self._violated("E15", env, f"has the failed deployment {number}, and is neither rolled back nor frozen")
            return
        self.went_back += later.is_rollback
        if not later.is_rollback:
            return
        if failed.is_rollback:
            self._violated("E15", env, f"rolls back by deployment {later.number} from a roll-back that failed")
        if later.revision in (failed.revision, 0) or later.revision != env.completed:
            told = f"goes back to revision {later.revision} from {failed.revision}; {env.completed} was completed last"
            self._violated("E15", env, told)
        run_id = next((each.run_id for each in was.revisions if each.number == failed.revision), "")
        job = self.facts.jobs.get(run_id)
        if job is not None and not self.facts.spec_of(run_id)["service"]["update"]["rollback"]:
            self._violated("E15", env, f"rolls deployment {number} back, and its revision says not to")

    def _violated(self, invariant: str, env: Environment, sentence: str) -> None:
        self.facts.violated(invariant, f"environment {env.name} {sentence}", *env.runs())


def _first_of_each(was: Environment, asked: list[EnvironmentRequest]) -> list[EnvironmentRequest]:
    """Without repeated deployments, until it is deleted."""
    tokens, found = {each.token for each in was.deployments}, []
    for each in asked:
        if each.change == "delete":
            break
        if each.change != "deploy" or each.token not in tokens:
            found.append(each)
            tokens |= {each.token} if each.change == "deploy" else set()
    return found
