"""A spot notice for an instance. On AWS, that is an experiment of the Fault Injection Service with one instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.client.access import Access
from argosy.client.errors import ArgosyError
from argosy.client.local_requests import interrupt, tasks_on
from argosy.model.arns import cell_of

SETTING = "allowInterrupt"
PATIENCE_S, PAUSE_S = 60.0, 2.0  # for the experiment to begin
_BEGINS = ("pending", "initiating")
_FAILED = ("failed", "stopping", "stopped", "cancelled")


class NotInterrupted(ArgosyError):
    """The experiment failed; for example, the instance is not on spot."""


def may_interrupt(access: Access) -> bool:
    """In local mode, and on AWS where the deployment's owner allows it."""
    return access.connection.is_loopback or access.deployment.allow_interrupt


def give_notice(
    access: Access, view: Mapping[str, Any], chosen: Mapping[str, Any], notice_s: float, sleep: Callable[[float], None]
) -> list[int]:
    """A spot notice for the instance of a running task; the tasks of the run that get SIGTERM. view: DescribeRun with
    its tasks; notice_s: in local mode. Raises LocalRequestRefused, NotInterrupted, and AWS's refusals."""
    instance = str(chosen["instance"])
    if access.connection.is_loopback:
        return interrupt(access.connection, view, instance, notice_s)
    send_notice(access, str(chosen["taskArn"]), instance, sleep)
    return tasks_on(view, instance)


def send_notice(access: Access, task_arn: str, instance: str, sleep: Callable[[float], None]) -> None:
    """Returns once EC2 has sent it. task_arn: of a task on the instance. Raises NotInterrupted, and AWS's refusals."""
    fis = access.client("fis", cell_of(task_arn))
    tags = {"argosy:stage": access.connection.stage}
    asked = _experiment(access.deployment.prefix, task_arn, instance)
    template = fis.create_experiment_template(**asked, tags=tags)["experimentTemplate"]["id"]
    try:
        began = fis.start_experiment(experimentTemplateId=template, tags=tags)["experiment"]
        state, waited_s = began["state"], 0.0
        while state["status"] in _BEGINS and waited_s < PATIENCE_S:
            sleep(PAUSE_S)
            waited_s += PAUSE_S
            state = fis.get_experiment(id=began["id"])["experiment"]["state"]
    finally:
        fis.delete_experiment_template(id=template)  # the experiment continues
    if state["status"] in _FAILED:
        raise NotInterrupted(f"{instance} was not interrupted: {state.get('reason') or state['status']}")


def _experiment(prefix: str, task_arn: str, instance: str) -> dict[str, Any]:
    partition, _, region, account = task_arn.split(":")[1:5]
    return {
        "description": f"argosy interrupt: a spot notice for {instance}",
        "roleArn": f"arn:{partition}:iam::{account}:role/{prefix}-interrupt",
        "stopConditions": [{"source": "none"}],
        "targets": {
            "one": {
                "resourceType": "aws:ec2:spot-instance",
                "resourceArns": [f"arn:{partition}:ec2:{region}:{account}:instance/{instance}"],
                "selectionMode": "ALL",
            }
        },
        "actions": {
            "interrupt": {
                "actionId": "aws:ec2:send-spot-instance-interruptions",
                "parameters": {"durationBeforeInterruption": "PT2M"},
                "targets": {"SpotInstances": "one"},
            }
        },
    }
