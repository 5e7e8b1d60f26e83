"""Which CloudWatch stream holds what an attempt printed?

Found by the ARN of the attempt's ECS task: DescribeRun knows it while the attempt is alive, and ECS remembers a stopped
task for about an hour. The task definition says which group and prefix; without it the deployment's own are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from argosy.cli.problems import is_denied
from argosy.model.arns import cell_of, task_id_of

if TYPE_CHECKING:
    from argosy.cli.session import Session

DESCRIBE_LIMIT = 100  # tasks in one DescribeTasks
OWN_CONTAINER = "main"  # of task definitions that Argosy registers


@dataclass
class Stream:
    """One attempt's log. token: where reading goes on; region: that of its task."""

    index: int
    group: str
    name: str
    region: str
    token: str | None = None


def find_streams(session: Session, view: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> dict[str, Stream]:
    """The stream of each task's latest attempt by task ARN, as far as it can be found."""
    failed = {(each["index"], each["attempt"]): each.get("taskArn") for each in view.get("failures", ())}
    known = {int(each["index"]): each["taskArn"] or failed.get((each["index"], each["attempts"])) for each in tasks}
    arns = {str(arn): index for index, arn in known.items() if arn}
    ended = {each["index"] for each in tasks if each["attempts"] and not known[each["index"]]}
    shown = {task["taskArn"]: task for task in _described(session, list(arns))}
    if ended:
        for index, task in _stopped(session, view["runId"]).items():
            if index in ended:
                arns[task["taskArn"]] = index
                shown[task["taskArn"]] = task
    definitions: dict[str, Any] = {}
    return {arn: _stream(session, index, arn, shown.get(arn), definitions) for arn, index in arns.items()}


def _described(session: Session, arns: list[str]) -> Iterator[Mapping[str, Any]]:
    """Nothing when the user may not ask ECS: the deployment's own group and prefix then have to do."""
    cluster = session.deployment.cluster
    try:
        for region in sorted({cell_of(arn) for arn in arns}):
            ecs, here = session.client("ecs", region), [arn for arn in arns if cell_of(arn) == region]
            for first in range(0, len(here), DESCRIBE_LIMIT):
                yield from ecs.describe_tasks(cluster=cluster, tasks=here[first : first + DESCRIBE_LIMIT])["tasks"]
    except Exception as fault:
        if not is_denied(fault):
            raise


def _stopped(session: Session, run_id: str) -> dict[int, Mapping[str, Any]]:
    """Task index -> the latest attempt that ECS still remembers as stopped."""
    from argosy.messages.ecs import key_of_task

    latest: dict[int, tuple[int, Mapping[str, Any]]] = {}
    for task in _described(session, _listed(session)):
        key = key_of_task(task)
        if key is not None and key.run_id == run_id and key.attempt > latest.get(key.index, (0, {}))[0]:
            latest[key.index] = (key.attempt, task)
    return {index: task for index, (_, task) in latest.items()}


def _listed(session: Session) -> list[str]:
    """ARNs of all tasks that stopped lately; the logs of those that are alive are shown even if this is denied."""
    deployment, listed = session.deployment, []
    try:
        for region in deployment.cells or (deployment.region,):
            pages = session.client("ecs", region).get_paginator("list_tasks")
            listed += list(pages.paginate(cluster=deployment.cluster, desiredStatus="STOPPED"))
    except Exception as fault:
        if not is_denied(fault):
            raise
        typer.echo("warning: without the right ecs:ListTasks, logs of ended attempts cannot be found.", err=True)
        return []
    return [arn for page in listed for arn in page["taskArns"]]


def _stream(
    session: Session, index: int, arn: str, task: Mapping[str, Any] | None, definitions: dict[str, Any]
) -> Stream:
    from argosy.aws.ecs_requests import LOG_STREAM_PREFIX

    task_id = task_id_of(arn)
    group, prefix, container = session.deployment.log_group, LOG_STREAM_PREFIX, OWN_CONTAINER
    if task is not None:
        container = next((each["name"] for each in task["overrides"]["containerOverrides"]), container)
        options = _log_options(session, task, container, definitions)
        group = options.get("awslogs-group", group)
        prefix = options.get("awslogs-stream-prefix", prefix)
    return Stream(index, group, f"{prefix}/{container}/{task_id}", cell_of(arn))


def _log_options(
    session: Session, task: Mapping[str, Any], container: str, definitions: dict[str, Any]
) -> Mapping[str, str]:
    arn = task["taskDefinitionArn"]
    if arn not in definitions:
        ecs = session.client("ecs", cell_of(task["taskArn"]))
        definitions[arn] = ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]
    for each in definitions[arn]["containerDefinitions"]:
        if each["name"] == container:
            options: Mapping[str, str] = each.get("logConfiguration", {}).get("options", {})
            return options
    return {}
