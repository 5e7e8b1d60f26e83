"""The deployment of a service that a program began: waiting for it, and its outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from argosy.client.access import Access
from argosy.client.deploying import UNDER_WAY, followed, since
from argosy.client.errors import ArgosyError
from argosy.client.waiting import LOCAL_PROGRAM_S, PatientLook, Pauses, interval_of
from argosy.sdk.errors import explained


@dataclass(frozen=True, slots=True)
class DeploymentView:
    """One change from the running revision to another. ended_at: None until it ends."""

    number: int
    revision: int
    status: str
    reason: str | None
    started_at: datetime
    ended_at: datetime | None
    failures: int
    is_rollback: bool


class DeploymentFailed(ArgosyError):
    """A deployment has ended otherwise than completed. `deployment` is its handle; the message gives its outcome, and
    the state of the environment.
    """

    def __init__(self, deployment: DeploymentHandle) -> None:
        first, *others = deployment.deployments
        said = [
            f"Deployment {first.number} of {deployment.environment} to revision {first.revision}: {_outcome(first)}"
        ]
        said += [f"deployment {each.number} to revision {each.revision}: {_outcome(each)}" for each in others]
        super().__init__("\n  ".join(said), next_step=f"`argosy env status {deployment.environment}` shows its runs")
        self.deployment = deployment
        self.add_note(f"next: {self.next_step}")


@dataclass(eq=False)
class DeploymentHandle:
    """A deployment at the last refresh; made by `deploy` and `rollback` of `client.environments`.

    begun: the reply to the request. view: DescribeEnvironment's last reply. now, sleep: seconds, as of `time`.
    """

    access: Access
    begun: Mapping[str, Any]
    now: Any = field(default=time.time, repr=False)
    sleep: Any = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        self.view: Mapping[str, Any] = self.begun

    @property
    def environment(self) -> str:
        """Its name."""
        return str(self.begun["name"])

    @property
    def revision(self) -> int:
        """What it deploys."""
        return int(self.begun["deploying"])

    @property
    def deployments(self) -> list[DeploymentView]:
        """This one, and those that came after it, such as its roll-back; none until the controller has taken it in."""
        return [_deployment(each) for each in since(self.begun, self.view["deployments"])]

    @property
    def status(self) -> str:
        """PENDING until the controller has taken it in, IN_PROGRESS, WAITING, STUCK, and at the end COMPLETED, FAILED,
        SUPERSEDED
        or STOPPED.
        """
        return next((each.status for each in self.deployments), "PENDING")

    @property
    def has_ended(self) -> bool:
        """Whether it is over, and its roll-back too."""
        ours = self.deployments
        return bool(ours) and ours[-1].status not in UNDER_WAY

    def refresh(self) -> DeploymentHandle:
        """Refresh it. Raises ArgosyError."""
        with explained():
            self.view = self.access.api.environment(self.environment)
        return self

    def watch(self, timeout: float | None = None) -> Iterator[DeploymentHandle]:
        """This deployment after each refresh, until it has ended, and its roll-back too. timeout: seconds. Raises
        `argosy.WaitTimedOut`, and ArgosyError if no deployment answers for a minute.
        """
        interval_s, limit = interval_of(self.access.connection.is_loopback, LOCAL_PROGRAM_S)
        look = PatientLook(lambda: self.access.api.environment(self.environment), self.sleep, failures_limit=limit)
        with explained():
            for view, _ in followed(self.begun, look, Pauses(self.now, self.sleep, interval_s, timeout)):
                self.view = view
                yield self

    def wait(self, timeout: float | None = None, check: bool = True) -> DeploymentHandle:
        """Wait for its end. timeout: seconds. Raises `argosy.DeploymentFailed` unless it was completed (check=False: it
        does not), and `argosy.WaitTimedOut`."""
        for _ in self.watch(timeout):
            pass
        return self._checked() if check else self

    def __await__(self) -> Generator[Any, None, DeploymentHandle]:
        return self._ended().__await__()

    async def _ended(self) -> DeploymentHandle:
        """Requests and pauses run in a thread; a cancelled wait ends after one of them."""
        looks = self.watch()
        while await asyncio.to_thread(next, looks, None) is not None:
            pass
        return self._checked()

    def _checked(self) -> DeploymentHandle:
        if self.status != "COMPLETED":
            raise DeploymentFailed(self)
        return self

    def __repr__(self) -> str:
        return f"<argosy deployment of {self.environment}, revision {self.revision}: {self.status}>"


def deployments_of(view: Mapping[str, Any]) -> list[DeploymentView]:
    """Of an environment's view, the newest last."""
    return [_deployment(each) for each in view["deployments"]]


def _deployment(view: Mapping[str, Any]) -> DeploymentView:
    return DeploymentView(
        number=view["deployment"],
        revision=view["revision"],
        status=view["status"],
        reason=view["reason"],
        started_at=datetime.fromisoformat(view["startedAt"]),
        ended_at=datetime.fromisoformat(view["endedAt"]) if view["endedAt"] else None,
        failures=view["failures"],
        is_rollback=view["isRollback"],
    )


def _outcome(deployment: DeploymentView) -> str:
    return f"{deployment.status}: {deployment.reason}" if deployment.reason else deployment.status
