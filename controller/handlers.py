"""Where does Lambda enter? Two thin composition roots: `api` for users, `controller` for the loop.

Everything is built once per process and on first use, from the environment that the stacks and local mode set alike.
Clients are made lazily; each function holds only those it has the rights for (DESIGN D12).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from controller.aws.clients import Clients
from controller.aws.dynamodb import DynamoStore
from controller.aws.wake import AwsWake
from controller.engine import TickReport
from controller.settings import Settings

logger = Logger(service="argosy")


def api(event: Any, context: Any) -> dict[str, Any]:
    """The users' actions: one envelope, errors returned and not raised."""
    return dict(_api().handle(event, context.aws_request_id))


def controller(event: Any, context: Any) -> dict[str, Any]:
    """The loop. Whatever invoked it, only the holder of the lease works."""
    from controller.loop import Loop

    seconds = {name: float(value) for name, value in _json("ARGOSY_LOOP").items()}  # local mode is more eager
    store, wake, engine = _controller()
    loop = Loop(engine, store, wake, context.aws_request_id, time.time, _TickLog().note, **seconds)
    report = asdict(loop.run(lambda: context.get_remaining_time_in_millis() / 1000))
    logger.info("loop ended", extra=report)
    return report


class _TickLog:
    """A log line and metrics for every tick that did something."""

    def note(self, report: TickReport) -> None:
        if not (report.events or report.actions or report.poison):
            return
        logger.info("tick", extra=asdict(report))
        metrics = Metrics(namespace="Argosy")
        metrics.set_default_dimensions(Cluster=os.environ["ARGOSY_CLUSTER"])
        metrics.add_metric("Events", MetricUnit.Count, report.events)
        metrics.add_metric("Launches", MetricUnit.Count, report.launches)
        metrics.add_metric("PoisonMessages", MetricUnit.Count, report.poison)
        metrics.add_metric("TickSeconds", MetricUnit.Seconds, report.seconds)
        metrics.add_metric("TasksPending", MetricUnit.Count, report.tasks_pending)
        metrics.add_metric("TasksRunning", MetricUnit.Count, report.tasks_running)
        metrics.add_metric("Instances", MetricUnit.Count, report.instances)
        print(json.dumps(metrics.serialize_metric_set()))
        metrics.clear_metrics()


@cache
def _clients() -> Clients:
    return Clients(os.environ["AWS_REGION"])


@cache
def _settings() -> Settings:
    return Settings.from_json(os.environ["ARGOSY_SETTINGS"])


def _store_and_wake() -> tuple[DynamoStore, AwsWake]:
    clients = _clients()
    store = DynamoStore(clients.get("dynamodb"), os.environ["ARGOSY_TABLE"])
    function, rule = os.environ["ARGOSY_CONTROLLER_FUNCTION"], os.environ["ARGOSY_TICK_RULE"]
    return store, AwsWake(clients.get("lambda"), clients.get("events"), function, rule)


@cache
def _api() -> Any:
    from controller.admission import limits_of
    from controller.api import Api
    from controller.aws.images import SsmImages
    from controller.aws.items import S3ItemsReader

    clients, settings = _clients(), _settings()
    store, wake = _store_and_wake()
    return Api(
        store=store,
        wake=wake,
        images=SsmImages(clients.get("ssm"), settings.prefix),
        items=S3ItemsReader(clients.get("s3")),
        limits=limits_of(settings, os.environ["ARGOSY_BUCKET"]),
        cluster=os.environ["ARGOSY_CLUSTER"],
        cells=settings.cells,
        now=time.time,
    )


@cache
def _controller() -> tuple[DynamoStore, AwsWake, Any]:
    from controller.aws.cell import Cell, Deployment
    from controller.aws.hands import AwsHands
    from controller.aws.pace import Paces
    from controller.aws.sqs import SqsQueue
    from controller.catalogue.types import load_catalogue
    from controller.engine import Engine
    from controller.model.policy import Policy
    from controller.placement.custom import OwnFunctions

    clients, settings = _clients(), _settings()
    store, wake = _store_and_wake()
    deployment = Deployment(
        stage=settings.stage,
        prefix=settings.prefix,
        log_group=os.environ["ARGOSY_LOG_GROUP"],
        execution_role_arn=os.environ["ARGOSY_EXECUTION_ROLE_ARN"],
        task_role_arn=os.environ["ARGOSY_TASK_ROLE_ARN"],
        stop_timeout_s=settings.stop_timeout_s,
    )
    cells = [
        Cell(
            name=region,
            cluster=os.environ["ARGOSY_CLUSTER"],
            ecs=clients.get("ecs", region),
            ec2=clients.get("ec2", region),
            paces=Paces.of_aws(time.time, time.sleep),
        )
        for region in settings.cells
    ]
    hands = AwsHands(deployment, cells, s3=clients.get("s3"), events=clients.get("events"), clock=time.time)
    queue = SqsQueue(clients.get("sqs"), os.environ["ARGOSY_QUEUE_URL"], time.sleep)
    numbers = {"linger_s": settings.linger_s, "max_instances": settings.max_instances, **_json("ARGOSY_POLICY")}
    functions = OwnFunctions.load(settings.fitness_functions)
    for name, fault in functions.faults.items():
        logger.error("a fitness function cannot be used", extra={"function": name, "fault": fault})
    engine = Engine(store, queue, hands, load_catalogue(), Policy(**numbers), time.time, functions=functions)
    return store, wake, engine


def _json(name: str) -> Mapping[str, Any]:
    """An optional JSON object of the environment."""
    return dict(json.loads(os.environ.get(name, "{}")))
