"""The entry points of Lambda: `api` for users, `controller` for the loop.

Everything is built once per process, on first use, from the environment that the stacks and local mode set in the same
way. Clients are made lazily: each function has only those that it has rights for (DESIGN D12).
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache, partial
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from pydantic import ValidationError

from argosy.aws.clients import AwsClients
from argosy.aws.dynamodb import DynamoStore
from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.aws.wake import AwsWake
from argosy.engine.report import TickReport
from argosy.model.damage import UNREADABLE
from argosy.model.entrances import alias_in
from argosy.model.policy import Policy
from argosy.ports import Caller, Identities
from argosy.settings.settings import Settings

logger = Logger(service="argosy")


def api(event: Any, context: Any) -> dict[str, Any]:
    """The users' actions. Every answer is one envelope; users' errors and AWS's are returned, not raised.

    When AWS throttles a call, the answer is ThrottlingException (429). For any other failure of AWS (a missing right, a
    service that does not answer) it is InternalError (500); the failure is logged with its stack trace and counted by
    the metric ApiFaults, which has an alarm. A fault in our own code is raised: the function's Errors metric has an
    alarm too, and the invoker sees it as FunctionError. So is any failure of an action
    without a waiting caller: returned as an answer, it would look like a success to the service that delivers it.
    """
    alias = alias_in(context.invoked_function_arn)
    reply = _reply(event, context.aws_request_id, alias)
    if reply["statusCode"] != HTTPStatus.OK and not alias and _is_unattended(event):
        raise UnattendedFault(json.dumps(reply["body"]))
    return reply


class OtherVersion(Exception):
    """Code and template of this function were deployed by different versions of Argosy."""

    def __init__(self, sign: str) -> None:
        super().__init__(
            f"the code and the template of this function are of different versions of Argosy ({sign}): deploy both, "
            "with `make deploy`"
        )


class UnattendedFault(Exception):
    """An action without a waiting caller failed. Lambda retries it; then it is a dead letter, which has an alarm."""


def _is_unattended(event: Any) -> bool:
    from argosy.api.schedules.actions import UNATTENDED

    action = event.get("action") if isinstance(event, Mapping) else None
    return isinstance(action, str) and action in UNATTENDED


def _reply(event: Any, request_id: str, alias: str) -> dict[str, Any]:
    try:
        return dict(api_of_process().handle(event, request_id, alias))
    except AWS_ERRORS as error:
        return _aws_failed(error, request_id)
    except UNREADABLE as fault:
        return _unreadable(fault, request_id)
    except OtherVersion as fault:
        return _other_version(fault, request_id)


def controller(event: Any, context: Any) -> dict[str, Any]:
    """The loop. Only the invocation that holds the lease works."""
    from argosy.engine.loop import Loop

    # Local mode has shorter times.
    seconds: dict[str, Any] = {name: float(value) for name, value in _json("ARGOSY_LOOP").items()}
    store, wake, engine = controller_of_process()
    owner, caller = context.aws_request_id, _caller(event)
    loop = Loop(engine, store, wake, owner, time.time, TickLog().note, caller=caller, **seconds)
    signs_of_life.renew = loop.renew
    report = asdict(loop.run(lambda: context.get_remaining_time_in_millis() / 1000))
    logger.info("loop ended", extra=report)
    return report


def _caller(event: Any) -> Caller:
    """EventBridge's messages name their kind, and those of the api do not."""
    kind = event.get("detail-type") if isinstance(event, Mapping) else None
    if kind is None:
        return Caller.API
    return Caller.CLOCK if kind == "Scheduled Event" else Caller.RULE


def _unreadable(fault: Exception, request_id: str) -> dict[str, Any]:
    """A stored document is corrupt, or of a version that this one must not read."""
    from argosy.api.refusals import envelope_of_error

    logger.error("a stored document cannot be read", extra={"requestId": request_id, "damage": str(fault)})
    metrics = _metrics()
    metrics.add_metric("ApiFaults", MetricUnit.Count, 1)
    _write(metrics)
    return envelope_of_error("InternalError", f"the stored data cannot be read: {fault}", request_id)


def _other_version(fault: OtherVersion, request_id: str) -> dict[str, Any]:
    from argosy.api.refusals import envelope_of_error

    logger.error("a request was refused", extra={"requestId": request_id, "fault": str(fault)})
    return envelope_of_error("InternalError", str(fault), request_id)


def _aws_failed(error: Exception, request_id: str) -> dict[str, Any]:
    from argosy.api.refusals import envelope_of_error

    fault = classify(error)
    if fault.kind is FailureKind.THROTTLED:
        logger.warning("a request was throttled by AWS", extra={"requestId": request_id, "fault": fault.text})
        message = "AWS is throttling requests: try again in a moment"
        return envelope_of_error("ThrottlingException", message, request_id)
    logger.error("a request failed at AWS", exc_info=error, extra={"requestId": request_id, "fault": fault.text})
    metrics = _metrics()
    metrics.add_metric("ApiFaults", MetricUnit.Count, 1)
    _write(metrics)
    message = f"a call to AWS failed ({fault.code}); a submission can be sent again with the same clientToken"
    return envelope_of_error("InternalError", message, request_id)


def _metrics() -> Metrics:
    metrics = Metrics(namespace="Argosy")
    metrics.set_default_dimensions(Cluster=os.environ["ARGOSY_CLUSTER"])
    return metrics


def _write(metrics: Metrics) -> None:
    print(json.dumps(metrics.serialize_metric_set()))
    metrics.clear_metrics()


class SignsOfLife:
    """The executor calls it during long work, to renew the lease of the invocation at work.

    It writes no heartbeat: only a completed tick counts as one (`argosy.engine.loop`).
    """

    def __init__(self, renew: Callable[[], bool] = lambda: True) -> None:
        """renew: extends the lease; False when it is lost."""
        self.renew = renew

    def __call__(self) -> None:
        """Raises nothing: an AWS error costs at worst the lease, and the conditional commit guards the rest."""
        try:
            self.renew()
        except AWS_ERRORS as error:
            logger.warning("the lease could not be renewed", extra={"fault": classify(error).text})


signs_of_life = SignsOfLife()


class TickLog:
    """A log line and metrics for every tick with effects."""

    def note(self, report: TickReport) -> None:
        """Raises nothing: a tick must not fail because it cannot be logged."""
        try:
            self._note(report)
        except Exception:
            logger.exception("a fault in Argosy's own code: a tick could not be logged")
            metrics = _metrics()
            metrics.add_metric("TickFaults", MetricUnit.Count, 1)
            _write(metrics)

    def _note(self, report: TickReport) -> None:
        for sentence in report.damage:
            logger.error("a stored document cannot be read", extra={"damage": sentence})
        for sentence in report.short:
            logger.warning("a fleet does not deliver", extra={"fleet": sentence})
        for trouble in report.troubles:
            logger.error("a fault in Argosy's own code: its cause is left out", extra=asdict(trouble))
        is_told = report.damage or report.troubles or report.suspended or report.services_in_trouble
        if not (report.events or report.actions or report.poison or is_told):
            return
        logger.info("tick", extra=asdict(report))
        metrics = _metrics()
        metrics.add_metric("Events", MetricUnit.Count, report.events)
        metrics.add_metric("Launches", MetricUnit.Count, report.launches)
        metrics.add_metric("PoisonMessages", MetricUnit.Count, report.poison)
        metrics.add_metric("RepairedBySweep", MetricUnit.Count, report.repaired)
        metrics.add_metric("CorruptDocuments", MetricUnit.Count, len(report.damage))
        metrics.add_metric("TickSeconds", MetricUnit.Seconds, report.seconds)
        metrics.add_metric("TasksPending", MetricUnit.Count, report.tasks_pending)
        metrics.add_metric("TasksRunning", MetricUnit.Count, report.tasks_running)
        metrics.add_metric("Instances", MetricUnit.Count, report.instances)
        if report.troubles or report.suspended:
            metrics.add_metric("TickFaults", MetricUnit.Count, len(report.troubles) + report.suspended)
        seldom = {
            "StubbornInstances": report.stubborn,
            "ServicesInTrouble": report.services_in_trouble,
            "FleetsToMend": report.to_mend,
            "ForeignGpuMemory": report.foreign_gpu_mib,
            "FleetsBehind": report.behind,
        }
        for name, count in seldom.items():
            if count:
                metrics.add_metric(name, MetricUnit.Count, count)
        if report.order_gap_pct is not None:
            metrics.add_metric("OrderGapPct", MetricUnit.Percent, report.order_gap_pct)
        _write(metrics)


@cache
def clients_of_process() -> AwsClients:
    return AwsClients(os.environ["AWS_REGION"])


@cache
def settings_of_process() -> Settings:
    try:
        return Settings.from_json(_given("ARGOSY_SETTINGS"))
    except ValidationError as fault:
        first = fault.errors()[0]
        raise OtherVersion(f"setting {'.'.join(map(str, first['loc']))}: {first['msg']}") from fault


def _given(name: str) -> str:
    """A variable of the function's template."""
    if name not in os.environ:
        raise OtherVersion(f"no variable {name}")
    return os.environ[name]


def forget_process() -> None:
    """Drop the objects that this process has built, so that the next call builds them from the environment as it is
    then."""
    for built in (clients_of_process, settings_of_process, api_of_process, controller_of_process):
        built.cache_clear()
    signs_of_life.renew = lambda: True  # the lease that it renewed was taken through clients that are forgotten


def _store_and_wake() -> tuple[DynamoStore, AwsWake]:
    clients = clients_of_process()
    store = DynamoStore(clients.get("dynamodb"), _given("ARGOSY_TABLE"))
    function, rule = _given("ARGOSY_CONTROLLER_FUNCTION"), _given("ARGOSY_TICK_RULE")
    return store, AwsWake(clients.get("lambda"), clients.get("events"), function, rule)


@cache
def api_of_process() -> Any:
    from argosy.api.actions import Api
    from argosy.api.admission.specs import Sources, limits_of
    from argosy.aws.folder_images import SsmImages
    from argosy.aws.image_sizes import EcrImageSizes
    from argosy.aws.items import S3ItemsReader
    from argosy.aws.preparation import EcsDefinitions
    from argosy.aws.schedule_clock import AwsScheduleClock, ScheduleTarget

    clients, settings = clients_of_process(), settings_of_process()
    store, wake = _store_and_wake()
    objects = S3ItemsReader(clients.get("s3"))
    images = SsmImages(clients.get("ssm"), settings.prefix, settings.python)
    sizes, definitions = EcrImageSizes(partial(clients.get, "ecr")), EcsDefinitions(partial(clients.get, "ecs"))
    sources = Sources(images, objects, definitions, image_bytes=sizes.bytes_of)
    if folders := _json("ARGOSY_IMAGES"):  # local mode's are folders
        from argosy.aws.folder_images import FolderImages
        from argosy.aws.local_definitions import LocalNotes

        found = FolderImages(images, **folders)
        notes = LocalNotes(definitions.describe, folders["runtime"], has_gpus="ARGOSY_GPUS" in os.environ)
        sources = replace(
            sources, images=found, unknown_image=found.unknown, image_notes=found.notes, local_notes=notes
        )
    target = ScheduleTarget(settings.prefix, _given("ARGOSY_API_FUNCTION_ARN"), _given("ARGOSY_SCHEDULES_ROLE_ARN"))
    return Api(
        store=store,
        wake=wake,
        sources=sources,
        limits=limits_of(settings, _given("ARGOSY_BUCKET")),
        cluster=_given("ARGOSY_CLUSTER"),
        cells=settings.cells,
        now=time.time,
        policy=_policy(),
        pause=time.sleep,
        objects=objects,
        fleets=[(cell, kind, zone) for cell in settings.cells for kind, zone in settings.pools(cell)],
        clock=AwsScheduleClock(partial(clients.get, "scheduler"), target, time.time),
        announce=Announcer(clients.get("events")).announce,
        identities=_identities(),
    )


def _identities() -> Identities | None:
    """None in local mode, which does not verify signatures."""
    from argosy.aws.identities import StsIdentities
    from argosy.model.signed_requests import SignedFor

    found = _json("ARGOSY_IDENTITY")
    return StsIdentities(SignedFor(**found)) if found else None


class Announcer:
    """Reports events that need a person's attention, by an event on the default bus and a metric that has an alarm."""

    def __init__(self, events: Any) -> None:
        self._events = events

    def announce(self, what: str, detail: Mapping[str, Any]) -> None:
        """Raises nothing: the alarm goes off although the event is not sent."""
        logger.warning(what, extra={"detail": dict(detail)})
        metrics = _metrics()
        metrics.add_metric("SchedulesMissed", MetricUnit.Count, 1)
        _write(metrics)
        entry = {"Source": "argosy", "DetailType": what, "Detail": json.dumps(dict(detail))}
        try:
            self._events.put_events(Entries=[entry])
        except AWS_ERRORS as error:
            logger.error("an event could not be sent", extra={"event": what, "fault": classify(error).text})


def _policy() -> Policy:
    """The parameters of the controller and of plans: the owner's settings, with shorter times in local mode."""
    return replace(settings_of_process().policy(), **_json("ARGOSY_POLICY"))


@cache
def controller_of_process() -> tuple[DynamoStore, AwsWake, Any]:
    from argosy.api import reading
    from argosy.aws.archive import S3Archive
    from argosy.aws.call_rates import CallRates
    from argosy.aws.cell import AwsDeployment, Cell, Coordination, HomeClients
    from argosy.aws.executor import AwsExecutor
    from argosy.aws.on_demand_prices import PRICE_LIST_REGION, OnDemandPrices
    from argosy.aws.sqs import SqsQueue
    from argosy.catalogue.lookup import load_catalogue
    from argosy.engine.tick import Engine
    from argosy.placement.custom import OwnFunctions
    from argosy.recording.recorder import Recorder

    clients, settings = clients_of_process(), settings_of_process()
    store, wake = _store_and_wake()
    deployment = AwsDeployment(
        stage=settings.stage,
        prefix=settings.prefix,
        log_group=_given("ARGOSY_LOG_GROUP"),
        execution_role_arn=_given("ARGOSY_EXECUTION_ROLE_ARN"),
        task_role_arn=_given("ARGOSY_TASK_ROLE_ARN"),
        stop_timeout_s=settings.stop_timeout_s,
        placement_scores=settings.placement_scores,
        capacity_manager=settings.capacity_manager,
        allow_exec=settings.allow_exec,
        target_groups=settings.target_groups,
    )
    with_groups = {arn.split(":")[3] for arn in settings.target_groups.values()}
    cells = [
        Cell(
            name=region,
            cluster=_given("ARGOSY_CLUSTER"),
            ecs=clients.get("ecs", region),
            ec2=clients.get("ec2", region),
            logs=clients.get("logs", region),
            rates=CallRates.of_aws(time.time, time.sleep, _json("ARGOSY_CALL_RATES").get("times", 1)),
            elbv2=clients.get("elbv2", region) if region in with_groups else None,
            reservations=frozenset(settings.capacity_reservations.get(region, ())),
        )
        for region in settings.cells
    ]
    price_list = partial(clients.get, "pricing", PRICE_LIST_REGION)
    home = HomeClients(clients.get("s3"), clients.get("events"), OnDemandPrices(price_list))
    retries, appended = partial(reading.retries_of, store), partial(reading.appended, store)
    executor = AwsExecutor(deployment, cells, home, time.time, Coordination(signs_of_life, retries, appended))
    queue = SqsQueue(clients.get("sqs"), _given("ARGOSY_QUEUE_URL"), time.sleep)
    functions = OwnFunctions.load(settings.fitness_functions)
    for name, fault in functions.faults.items():
        logger.error("a fitness function cannot be used", extra={"function": name, "fault": fault})
    engine = Engine(
        store, queue, executor, load_catalogue(), _policy(), time.time, functions=functions, keep_alive=signs_of_life
    )
    if settings.journal_days:
        archive = S3Archive(clients.get("s3"), _given("ARGOSY_BUCKET"))
        engine.recorder = Recorder(archive, engine.policy, secrets.token_hex(4))
    return store, wake, engine


def _json(name: str) -> Mapping[str, Any]:
    """An optional JSON object of the environment."""
    return dict(json.loads(os.environ.get(name, "{}")))
