"""Which CloudWatch stream holds the output of an attempt?

For one task DescribeTask has the answer, for each of its attempts, however long ago. For many tasks at once the stream
is found by the ARN of the attempt's ECS task: DescribeRun knows that while the attempt is alive, and ECS keeps a
stopped task for about an hour. The task definition gives the log group and the prefix; without it, those of the
deployment are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import error_code, is_denied
from argosy.layout import LOG_PREFIX, OWN_CONTAINER
from argosy.model.arns import cell_of, name_of

DESCRIBE_LIMIT = 100  # tasks in one DescribeTasks
NO_RIGHT = "without the permission ecs:ListTasks, the logs of ended attempts cannot be found."


@dataclass
class LogStream:
    """One attempt's log. token: where reading continues; region: the task's; run: its id, if logs of several runs are
    read
    together.
    """

    index: int
    group: str
    name: str
    region: str
    token: str | None = None
    run: str = ""


def stream_of(access: Access, index: int, attempt: Mapping[str, Any]) -> LogStream | None:
    """Of one attempt in DescribeTask's reply; None if no ECS task is known, or it logs elsewhere."""
    if not attempt["logStream"]:
        return None
    group = attempt["logGroup"] or access.deployment.log_group
    region = attempt["region"] or access.deployment.region
    return LogStream(index, group, attempt["logStream"], region)


def last_lines(access: Access, stream: LogStream, most: int) -> list[Mapping[str, Any]]:
    """At most that many events, the oldest first. A stream that does not exist yet has none."""
    try:
        reply = access.client("logs", stream.region).get_log_events(
            logGroupName=stream.group, logStreamName=stream.name, startFromHead=False, limit=most
        )
    except Exception as fault:
        if error_code(fault) == "ResourceNotFoundException":
            return []
        raise
    return list(reply["events"])


def find_streams(
    access: Access,
    view: Mapping[str, Any],
    tasks: Sequence[Mapping[str, Any]],
    warn: Callable[[str], None] = lambda _: None,
) -> dict[str, LogStream]:
    """Task ARN -> the stream of each task's latest attempt, as far as it can be found.

    tasks: rows of a run view's `taskList`. warn: called if the user's rights do not suffice.
    """
    failed = {(each["index"], each["attempt"]): each.get("taskArn") for each in view.get("failures", ())}
    known = {int(each["index"]): each["taskArn"] or failed.get((each["index"], each["attempts"])) for each in tasks}
    arns = {str(arn): index for index, arn in known.items() if arn}
    ended = {each["index"] for each in tasks if each["attempts"] and not known[each["index"]]}
    shown = {task["taskArn"]: task for task in _described(access, list(arns))}
    if ended:
        for index, task in _stopped(access, view["runId"], warn).items():
            if index in ended:
                arns[task["taskArn"]] = index
                shown[task["taskArn"]] = task
    definitions: dict[str, Any] = {}
    return {arn: _stream(access, index, arn, shown.get(arn), definitions) for arn, index in arns.items()}


def _described(access: Access, arns: list[str]) -> Iterator[Mapping[str, Any]]:
    """Empty if the user may not call ECS: then the deployment's own group and prefix are used."""
    cluster = access.deployment.cluster
    try:
        for region in sorted({cell_of(arn) for arn in arns}):
            ecs, there = access.client("ecs", region), [arn for arn in arns if cell_of(arn) == region]
            for first in range(0, len(there), DESCRIBE_LIMIT):
                yield from ecs.describe_tasks(cluster=cluster, tasks=there[first : first + DESCRIBE_LIMIT])["tasks"]
    except Exception as fault:
        if not is_denied(fault):
            raise


def _stopped(access: Access, run_id: str, warn: Callable[[str], None]) -> dict[int, Mapping[str, Any]]:
    """Task index -> the latest attempt that ECS still lists as stopped."""
    from argosy.messages.ecs import key_of_task

    latest: dict[int, tuple[int, Mapping[str, Any]]] = {}
    for task in _described(access, _listed(access, warn)):
        key = key_of_task(task)
        if key is not None and key.run_id == run_id and key.attempt > latest.get(key.index, (0, {}))[0]:
            latest[key.index] = (key.attempt, task)
    return {index: task for index, (_, task) in latest.items()}


def _listed(access: Access, warn: Callable[[str], None]) -> list[str]:
    """ARNs of all tasks that stopped recently. If this is denied, the logs of live tasks are still shown."""
    deployment, listed = access.deployment, []
    try:
        for region in deployment.cells or (deployment.region,):
            pages = access.client("ecs", region).get_paginator("list_tasks")
            listed += list(pages.paginate(cluster=deployment.cluster, desiredStatus="STOPPED"))
    except Exception as fault:
        if not is_denied(fault):
            raise
        warn(NO_RIGHT)
        return []
    return [arn for page in listed for arn in page["taskArns"]]


def _stream(
    access: Access, index: int, arn: str, task: Mapping[str, Any] | None, definitions: dict[str, Any]
) -> LogStream:
    task_id = name_of(arn)
    group, prefix, container = access.deployment.log_group, LOG_PREFIX, OWN_CONTAINER
    if task is not None:
        container = next((each["name"] for each in task["overrides"]["containerOverrides"]), container)
        options = _log_options(access, task, container, definitions)
        group = options.get("awslogs-group", group)
        prefix = options.get("awslogs-stream-prefix", prefix)
    return LogStream(index, group, f"{prefix}/{container}/{task_id}", cell_of(arn))


def _log_options(
    access: Access, task: Mapping[str, Any], container: str, definitions: dict[str, Any]
) -> Mapping[str, str]:
    arn = task["taskDefinitionArn"]
    if arn not in definitions:
        ecs = access.client("ecs", cell_of(task["taskArn"]))
        definitions[arn] = ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]
    for each in definitions[arn]["containerDefinitions"]:
        if each["name"] == container:
            options: Mapping[str, str] = each.get("logConfiguration", {}).get("options", {})
            return options
    return {}
