"""What does the api answer about a run at full size?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argosy.api.actions import Api
from argosy.api.admission.specs import DeploymentLimits, Sources
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.items import S3ItemsReader
from argosy.aws.preparation import EcsDefinitions
from tests.harness.simulation.controllers.deployment import TABLE
from tests.harness.simulation.scale.run import ScaleRun
from tests.harness.simulation.users.front_desk import AnyImage
from tests.harness.simulation.world.workload import BUCKET

JSON = dict[str, Any]


class _NoWake:
    """Reading does not wake the controller."""

    def controller(self) -> None:
        raise NotImplementedError

    rest = stay = controller


def ask(run: ScaleRun, action: str, **fields: Any) -> JSON:
    """The body of the answer. Raises ValueError for a refusal."""
    world, objects = run.worlds[0], S3ItemsReader(run.s3)
    api = Api(
        store=DynamoStore(run.dynamodb, TABLE),
        wake=_NoWake(),
        sources=Sources(AnyImage(), objects, EcsDefinitions(lambda: world.ecs)),
        limits=DeploymentLimits(f"s3://{BUCKET}/", frozenset({BUCKET}), {}, policy=run.engine.policy),
        cluster=world.cluster,
        cells=[each.region for each in run.worlds],
        now=run.timeline.clock,
        policy=run.engine.policy,
        objects=objects,
    )
    reply = api.handle({"action": action, **fields}, "request-1")
    if reply["statusCode"] != 200:
        raise ValueError(str(reply["body"]["error"]))
    body: JSON = reply["body"]
    return body


def attempts_pages(run: ScaleRun) -> Iterator[JSON]:
    """Every page of ListAttempts."""
    token = None
    while True:
        page = ask(run, "ListAttempts", runId=run.job.run_id, **({"nextToken": token} if token else {}))
        yield page
        token = page.get("nextToken")
        if not token:
            return
