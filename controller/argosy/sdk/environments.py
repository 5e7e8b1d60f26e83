"""Services for Python programs: deploying them, changing them, and reading their state."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from argosy.client.access import Access
from argosy.sdk.deployment import DeploymentHandle, DeploymentView, deployments_of
from argosy.sdk.errors import explained, faults_of
from argosy.sdk.spec_source import SpecGiven, given

Spec = str | os.PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """The revision that `create` and `update` have stored; none of its tasks runs yet. created: False if it says the
    same as the previous one, which is returned then.
    """

    environment: str
    number: int
    created: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RevisionView:
    """One revision, and its running tasks. run_id: None before it was deployed."""

    number: int
    created_at: datetime
    run_id: str | None
    healthy: int
    running: int


@dataclass(frozen=True, eq=False)
class EnvironmentView:
    """An environment at the time of the request. reply: DescribeEnvironment's."""

    reply: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.reply["name"])

    @property
    def status(self) -> str:
        """CREATED, FROZEN, FAILING, SUSPENDED, LEFT, DELETING, or its latest deployment's."""
        return str(self.reply["status"])

    @property
    def reason(self) -> str | None:
        """A sentence: why it is frozen, what it waits for, why its deployment failed."""
        found: str | None = self.reply["statusReason"]
        return found

    @property
    def desired(self) -> int:
        """The desired number of tasks."""
        return int(self.reply["desired"])

    @property
    def healthy(self) -> int:
        """The number of running tasks, of all revisions."""
        return int(self.reply["healthy"])

    @property
    def cost(self) -> float:
        """US dollars so far."""
        return float(self.reply["costUsd"])

    @property
    def target(self) -> int | None:
        """The revision that should run; None before the first deployment."""
        found: int | None = self.reply["targetRevision"]
        return found

    @property
    def revisions(self) -> list[RevisionView]:
        """The latest fifty, the newest last."""
        return [_revision(each) for each in self.reply["revisions"]]

    @property
    def deployments(self) -> list[DeploymentView]:
        """The latest twenty, the newest last."""
        return deployments_of(self.reply)

    def __repr__(self) -> str:
        return f"<argosy environment {self.name} {self.status} {self.healthy:,}/{self.desired:,} healthy>"


def _revision(view: Mapping[str, Any]) -> RevisionView:
    created = datetime.fromisoformat(view["createdAt"])
    return RevisionView(view["revision"], created, view["runId"], view["healthy"], view["running"])


class Environments:
    """Those of one deployment of Argosy: `client.environments`."""

    def __init__(
        self, access: Access, now: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._access, self._now, self._sleep = access, now, sleep

    def create(self, spec: Spec) -> StoredRevision:
        """Store the first revision of a service; nothing is started. The environment has the spec's name. Its program
        is uploaded now, as it is.

        Raises `argosy.InvalidSpec` with every fault, and ArgosyError.
        """
        wanted = given(spec)
        return _stored(self._with_spec(wanted, self._access.api.create_environment))

    def update(self, spec: Spec, *, base: int | None = None) -> StoredRevision:
        """Store another revision; running tasks stay until it is deployed. base: the newest revision that you have
        seen; None =
        whichever is the newest. Raises as `create` does, and ArgosyError if there is a newer one.
        """
        wanted, api = given(spec), self._access.api
        name = str(wanted.data.get("name", ""))
        newest = base or self._asked(api.environment, name).reply["latestRevision"]
        return _stored(self._with_spec(wanted, lambda packed: api.update_environment(name, newest, packed)))

    def deploy(
        self,
        name: str,
        revision: int | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
        client_token: str | None = None,
    ) -> DeploymentHandle:
        """Replace the running revision by another, a few tasks at a time. revision None: the newest. wait: until its
        end, for at

        most `timeout` seconds. client_token: repeating the same token deploys nothing again.
        Raises ArgosyError, and with `wait` what `DeploymentHandle.wait` raises.
        """
        with explained():
            begun = self._access.api.start_deployment(name, revision, client_token or uuid.uuid4().hex)
        return self._begun(begun, wait, timeout)

    def rollback(
        self, name: str, *, wait: bool = False, timeout: float | None = None, client_token: str | None = None
    ) -> DeploymentHandle:
        """Go back to the revision that was completed before. Otherwise like `deploy`."""
        with explained():
            begun = self._access.api.roll_back(name, client_token or uuid.uuid4().hex)
        return self._begun(begun, wait, timeout)

    def show(self, name: str) -> EnvironmentView:
        """Raises ArgosyError if there is none."""
        return self._asked(self._access.api.environment, name)

    def all(self, prefix: str = "") -> list[EnvironmentView]:
        """By name. prefix: what their names begin with. Raises ArgosyError."""
        with explained():
            return [EnvironmentView(each) for each in self._access.api.environments(prefix)["environments"]]

    def scale(self, name: str, desired: int) -> EnvironmentView:
        """Set the desired number of tasks; makes no revision. This method and those below return the environment before
        the
        request, and raise ArgosyError.
        """
        return self._asked(self._access.api.scale_environment, name, desired)

    def freeze(self, name: str, reason: str = "") -> EnvironmentView:
        """Start, replace and scale nothing; running tasks stay."""
        return self._asked(self._access.api.freeze_environment, name, reason)

    def thaw(self, name: str) -> EnvironmentView:
        """Resume a frozen environment."""
        return self._asked(self._access.api.thaw_environment, name)

    def stop(self, name: str, reason: str = "") -> EnvironmentView:
        """Stop the deployment under way: its tasks stay, and the environment is frozen."""
        return self._asked(self._access.api.stop_deployment, name, reason)

    def delete(self, name: str, *, leave_tasks: bool = False) -> EnvironmentView:
        """Stop its tasks and forget it. leave_tasks: they keep running, and a new environment of the name takes them
        over."""
        return self._asked(self._access.api.delete_environment, name, "leave" if leave_tasks else "stop")

    def _begun(self, begun: Mapping[str, Any], wait: bool, timeout: float | None) -> DeploymentHandle:
        handle = DeploymentHandle(self._access, begun, self._now, self._sleep)
        return handle.wait(timeout) if wait else handle

    def _asked(self, call: Callable[..., Mapping[str, Any]], *asked: Any) -> EnvironmentView:
        with explained():
            return EnvironmentView(call(*asked))

    def _with_spec(self, wanted: SpecGiven, call: Callable[[Any], Mapping[str, Any]]) -> Mapping[str, Any]:
        from argosy.client.packing.program import pack

        with explained(), faults_of(wanted.name):
            return call(pack(wanted.data, wanted.folder, self._access))


def _stored(reply: Mapping[str, Any]) -> StoredRevision:
    return StoredRevision(reply["name"], reply["revision"], reply.get("created", True), tuple(reply["warnings"]))
