"""The api of a trial: its own actions answer users, and every call that they make may fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from argosy.api.actions import Api
from argosy.api.admission.specs import DeploymentLimits, Sources
from argosy.aws.preparation import EcsDefinitions
from argosy.layout import split_s3
from argosy.model import inbox
from argosy.model.entrances import alias_of
from argosy.ports import ImageResolver, Key
from tests.harness.simulation.controllers.deployment import TABLE, TARGET_GROUP, SimulatedDeployment
from tests.harness.simulation.controllers.next_version import NextVersionStore
from tests.harness.simulation.injection.boundary import ProcessLife
from tests.harness.simulation.world.members import UNNAMED, Arrival
from tests.harness.simulation.world.workload import BUCKET
from tests.harness.simulation.world.world import target_group_arn

JSON = dict[str, Any]
ANSWER_S = 30.0  # the longest that Lambda lets the function take


class _WatchedStore(NextVersionStore):
    """The table, which reports each run and each retry that is about to be stored. The api reads the state of both
    versions.
    """

    def __init__(
        self,
        client: Any,
        named: Callable[[inbox.SubmitRequest], None],
        before_retry: Callable[[inbox.RetryRequest], None],
    ) -> None:
        super().__init__(client, TABLE)
        self._named, self._before_retry = named, before_retry

    def create(
        self,
        items: Mapping[Key, bytes],
        expires_at: Mapping[Key, float] | None = None,
        replacing: Mapping[Key, bytes] | None = None,
    ) -> None:
        for key, body in items.items():
            request = inbox.from_bytes(body) if key[0] == inbox.INBOX else None
            submit = request.submit if isinstance(request, inbox.EnvironmentRequest) else request
            if isinstance(submit, inbox.SubmitRequest):
                self._named(submit)
            if isinstance(request, inbox.RetryRequest):
                self._before_retry(request)
        super().create(items, expires_at, replacing)


class AnyImage:
    """Every image is published."""

    def resolve(self, image: str) -> str | None:
        return image


class NoItems:
    """No run of a trial has its items in an object."""

    def read_items(self, uri: str) -> list[Any]:
        raise NotImplementedError("no run of a trial has its items in an object")


class FrontDesk:
    """The api of one trial's deployment. named: receives each run before it is stored."""

    def __init__(
        self,
        deployment: SimulatedDeployment,
        named: Callable[[inbox.SubmitRequest], None],
        images: ImageResolver | None = None,
    ) -> None:
        self._deployment, self._named, self._images = deployment, named, images or AnyImage()
        self._count = 0
        self.before_retry: Callable[[inbox.RetryRequest], None] = lambda request: None
        """Receives each retry that has passed every check and is not stored yet."""

    def ask(self, request: JSON, came: Arrival = UNNAMED) -> JSON:
        """The answer of one invocation of the function. came: how the caller comes in. Raises the errors that end it,
        like boto3 and a dead process.
        """
        self._count += 1
        event = self._deployment.members.event(request, came.owner, self._deployment.world.now)
        alias = alias_of(came.queue) if came.queue else ""
        return self._api(request).handle(event, f"request-{self._count}", alias)

    def read(self, request: JSON) -> JSON:
        """The answer where no call fails."""
        self._count += 1
        return replace(self._api(request), store=self._deployment.store).handle(request, f"read-{self._count}")

    def _api(self, request: JSON) -> Api:
        """A fresh process: one that dies answers nothing any more."""
        deployment = self._deployment
        world = deployment.world
        clients = deployment.clients(ProcessLife(ends_at=world.now + ANSWER_S))
        output = request.get("spec", {}).get("output", f"s3://{BUCKET}/")
        return Api(
            store=_WatchedStore(clients["dynamodb"], self._named, self.before_retry),
            wake=deployment.wake_of(clients),
            sources=Sources(self._images, NoItems(), EcsDefinitions(lambda: clients["ecs"])),
            limits=DeploymentLimits(
                f"s3://{BUCKET}/",
                frozenset({BUCKET, split_s3(output)[0]}),
                {},
                policy=deployment.policy,
                target_groups={TARGET_GROUP: target_group_arn(world.region)},
            ),
            cluster=world.cluster,
            cells=deployment.named,
            now=world.clock,
            policy=deployment.policy,
            fleets=deployment.pools,
            identities=deployment.members,
        )
