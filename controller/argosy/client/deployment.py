"""Where is the deployment? The user's own credentials read one SSM parameter or, failing that, the stack's outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from argosy.client.aws_clients import Connection
from argosy.client.errors import ArgosyError, error_code
from argosy.client.local_key import announced_at
from argosy.model.arns import cell_of
from argosy.model.signed_requests import SignedFor
from argosy.settings.stage import STAGE, prefix_of_stage
from argosy.spec.program import STOCK_PYTHON

Client = Callable[[str], Any]


@dataclass(frozen=True)
class Deployment:
    """What `/<prefix>/deployment` says. Names, not ARNs, unless a field says otherwise."""

    prefix: str
    region: str
    cluster: str
    api_function: str
    bucket: str
    log_group: str
    cells: tuple[str, ...] = ()
    python: str = STOCK_PYTHON  # of the image argosy/python
    signed_for: SignedFor | None = None  # the audience that requests are signed for; None = signatures are not verified
    input_days: int = 0  # after which uploaded inputs are deleted; 0 = never
    allow_exec: bool | None = None  # whether commands may be run in its tasks; None = unknown
    allow_interrupt: bool = False  # whether its users may send spot notices to instances


def prefix_of(stage: str) -> str:
    """The prefix of every name in a deployment. Raises ArgosyError for an invalid stage."""
    if not re.fullmatch(STAGE, stage):
        sentence = f"{stage!r} is not a valid stage: 1 to 16 lower-case letters, digits and -, a letter first."
        raise ArgosyError(sentence, is_users_fault=True)
    return prefix_of_stage(stage)


def find_deployment(connection: Connection, client: Client) -> Deployment:
    """client: service name -> boto3 client. Raises ArgosyError if there is no deployment, InvalidInput for an endpoint
    that is no address."""
    connection.check()
    prefix = prefix_of(connection.stage)
    here = announced_at(connection.endpoint_url or "") if connection.is_loopback else {}
    if here.get("stage") == connection.stage and connection.region in (None, here["region"]):
        return _from_body(prefix, here)
    # Local mode has no stacks.
    found = _from_parameter(client, prefix) or (None if connection.is_loopback else _from_stack(client, prefix))
    if found is None and connection.is_loopback:
        raise ArgosyError(
            f"The AWS at {connection.endpoint_url} has no deployment of the stage {connection.stage}: it is still "
            "starting, or is not a local mode.",
            next_step=f"try again in a few seconds; start a local mode with `{_local(connection)}`",
        )
    if found is None:
        raise ArgosyError(
            f"No deployment found: there is no parameter /{prefix}/deployment and no stack {prefix}.",
            next_step="type `make deploy`, or name another --stage, --region or --profile (`argosy local` needs no "
            "account)",
        )
    return found


def _local(connection: Connection) -> str:
    port = urlsplit(connection.endpoint_url or "").port
    return f"argosy local{f' --port {port}' if port else ''}"


def _from_parameter(client: Client, prefix: str) -> Deployment | None:
    from botocore.exceptions import ClientError

    try:
        value = client("ssm").get_parameter(Name=f"/{prefix}/deployment")["Parameter"]["Value"]
    except ClientError as fault:
        if error_code(fault) == "ParameterNotFound":
            return None
        raise
    return _from_body(prefix, json.loads(value))


def _from_body(prefix: str, body: Mapping[str, Any]) -> Deployment:
    return Deployment(
        prefix=prefix,
        region=body["region"],
        cluster=body["cluster"],
        api_function=body["apiFunction"],
        bucket=body["bucket"],
        log_group=body["logGroup"],
        cells=tuple(body.get("cells") or ()),
        python=str(body.get("python") or STOCK_PYTHON),
        signed_for=_signed_for(body.get("identity")),
        allow_exec=body.get("allowExec"),
        allow_interrupt=bool(body.get("allowInterrupt")),
        input_days=int(body.get("inputDays") or 0),
    )


def _signed_for(said: Any) -> SignedFor | None:
    return SignedFor(str(said["host"]), str(said["deployment"])) if said else None


def _from_stack(client: Client, prefix: str) -> Deployment | None:
    """The stack's outputs, for a deployment whose parameter was deleted by hand."""
    from botocore.exceptions import ClientError

    try:
        [stack] = client("cloudformation").describe_stacks(StackName=prefix)["Stacks"]
    except ClientError as fault:
        if error_code(fault) == "ValidationError":  # "Stack with id argosy does not exist"
            return None
        raise
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())}
    if "ApiFunctionName" not in outputs:
        return None
    return Deployment(
        prefix=prefix,
        region=cell_of(stack["StackId"]),
        cluster=outputs.get("ClusterName", prefix),
        api_function=outputs["ApiFunctionName"],
        bucket=outputs.get("ResultsBucketName", ""),
        log_group=outputs.get("LogGroupName", f"/ecs/{prefix}/tasks"),
    )
