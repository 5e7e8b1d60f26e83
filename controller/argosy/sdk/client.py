"""A deployment as a Python program sees it: it submits runs and finds existing ones."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from argosy.client.access import Access
from argosy.client.aws_clients import Connection, with_local_mode
from argosy.client.run_names import LAST, run_id_of
from argosy.sdk.environments import Environments
from argosy.sdk.errors import explained, faults_of
from argosy.sdk.run import RunHandle
from argosy.sdk.schedules import Schedules
from argosy.sdk.spec_source import given
from argosy.sdk.views import ClusterView, RunPlan

logger = logging.getLogger("argosy")
_ENDPOINT_VARIABLES = ("ARGOSY_ENDPOINT_URL", "AWS_ENDPOINT_URL")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")

Spec = str | os.PathLike[str] | Mapping[str, Any]


class Client:
    """One deployment, with this user's access. Nothing is called before it is needed."""

    def __init__(
        self,
        endpoint_url: str | None = None,
        stage: str | None = None,
        profile: str | None = None,
        region: str | None = None,
        queue: str | None = None,
    ) -> None:
        """Omitted arguments come from the same places as for the command: ARGOSY_ENDPOINT_URL or AWS_ENDPOINT_URL,
        ARGOSY_STAGE, AWS_REGION and your AWS configuration; if these name no AWS, and a local mode of yours runs, it is
        used, and a warning says so. endpoint_url: of another AWS, such as `argosy local`'s. stage: which
        deployment. queue: through whose entrance (else ARGOSY_QUEUE): then only runs of this queue can be changed.
        """
        named = Connection(
            endpoint_url=endpoint_url or _of_shell(_ENDPOINT_VARIABLES),
            region=region or _of_shell(_REGION_VARIABLES),
            profile=profile,
            stage=stage or os.environ.get("ARGOSY_STAGE") or "main",
            signs=not os.environ.get("ARGOSY_UNSIGNED"),
            entrance=queue if queue is not None else os.environ.get("ARGOSY_QUEUE", ""),
        )
        self.access = Access(with_local_mode(named, logger.warning))
        self._now: Callable[[], float] = time.time
        self._sleep: Callable[[float], None] = time.sleep

    @classmethod
    def through(
        cls, access: Access, now: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
    ) -> Client:
        """A client with this access. now, sleep: seconds, as of `time`."""
        client = cls()
        client.access, client._now, client._sleep = access, now, sleep
        return client

    def submit(
        self,
        spec: Spec,
        *,
        client_token: str | None = None,
        after: RunHandle | Sequence[RunHandle] = (),
    ) -> RunHandle:
        """Start a run. spec: the path of its file, or a mapping of the same form. client_token: repeating the same
        token and spec gives the same run. after: runs that have to succeed first (`dependsOn` of the spec allows more);
        the spec may name their results, `${dependency.NAME.output}`.

        A program's folder (`workdir`) and its packages are uploaded first, unless they are there. Raises
        `argosy.InvalidSpec` with every fault, and ArgosyError.
        """
        from argosy.client.dependencies import with_run_ids
        from argosy.client.packing.program import pack

        wanted = given(spec, [each.id for each in ([after] if isinstance(after, RunHandle) else after)])
        with explained(), faults_of(wanted.name):
            data = with_run_ids(wanted.data, partial(run_id_of, self.access.api))
            packed = pack(data, wanted.folder, self.access)
            view = self.access.api.submit(packed, client_token or uuid.uuid4().hex)
        return self._run(view)

    def plan(self, spec: Spec) -> RunPlan:
        """What a run would buy, cost and take; nothing is uploaded or started. Raises `argosy.InvalidSpec` and
        ArgosyError."""
        from argosy.client.packing.program import unpacked

        wanted = given(spec)
        with explained(), faults_of(wanted.name):
            return RunPlan(self.access.api.plan(unpacked(wanted.data)))

    def run(self, run_id: str = LAST) -> RunHandle:
        """A run by its id, by the beginning of it if no other run's id begins so, by its name (the newest one), or the
        `last` one
        submitted. Raises ArgosyError if there is none.
        """
        with explained():
            return self._run(self.access.api.describe(run_id_of(self.access.api, run_id)))

    def update(self, run_id: str = LAST, *, reason: str = "", **changes: Any) -> RunHandle:
        """Change what an open run asks for, as `RunHandle.update` does. run_id: as in `run`. Raises ArgosyError."""
        return self.run(run_id).update(reason=reason, **changes)

    def runs(self, limit: int = 20) -> list[RunHandle]:
        """The newest runs, the last one submitted first. Raises ArgosyError."""
        with explained():
            return [self._run(view) for view in self.access.api.runs(limit)["runs"]]

    @property
    def environments(self) -> Environments:
        """Services, which are kept running."""
        return Environments(self.access, self._now, self._sleep)

    @property
    def schedules(self) -> Schedules:
        """Schedules, which start runs at set times."""
        return Schedules(self.access, self._run)

    def cluster(self) -> ClusterView:
        """The instances and their cost. Raises ArgosyError."""
        with explained():
            return ClusterView(self.access.api.cluster_columns())

    def _run(self, view: Mapping[str, Any]) -> RunHandle:
        return RunHandle(self.access, view, self._now, self._sleep)

    def __repr__(self) -> str:
        connection = self.access.connection
        return f"<argosy.Client {connection.endpoint_url or connection.region or 'AWS'} {connection.stage}>"


def _of_shell(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)
