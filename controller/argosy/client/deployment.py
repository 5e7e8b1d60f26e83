"""Where is the deployment? The user's own credentials read one SSM parameter or, failing that, the stack's outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argosy.client.aws_clients import Place
from argosy.client.errors import ArgosyError, error_code

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


def prefix_of(stage: str) -> str:
    """The start of every name of a deployment. Raises ArgosyError for what cannot be a stage."""
    from pydantic import ValidationError

    from argosy.settings.settings import Settings

    try:
        return Settings(stage=stage).prefix
    except ValidationError as fault:
        sentence = f"{stage!r} is no stage: 1 to 16 lower-case letters, digits and -, a letter first."
        raise ArgosyError(sentence, is_users_fault=True) from fault


def find_deployment(place: Place, client: Client) -> Deployment:
    """client: boto3 client of a service, by its name. Raises ArgosyError when there is none."""
    prefix = prefix_of(place.stage)
    # Local mode has no stacks.
    found = _from_parameter(client, prefix) or (None if place.is_loopback else _from_stack(client, prefix))
    if found is None:
        raise ArgosyError(
            f"No deployment found: there is no parameter /{prefix}/deployment and no stack {prefix}.",
            next_step=_where_else(place),
        )
    return found


def _where_else(place: Place) -> str:
    if place.is_loopback:
        return f"type `argosy local --port {place.endpoint_url.rsplit(':')[-1].strip('/')}`"  # type: ignore[union-attr]
    return "type `make deploy`, or name another --stage, --region or --profile (`argosy local` needs no account)"


def _from_parameter(client: Client, prefix: str) -> Deployment | None:
    from botocore.exceptions import ClientError

    try:
        value = client("ssm").get_parameter(Name=f"/{prefix}/deployment")["Parameter"]["Value"]
    except ClientError as fault:
        if error_code(fault) == "ParameterNotFound":
            return None
        raise
    body = json.loads(value)
    return Deployment(
        prefix=prefix,
        region=body["region"],
        cluster=body["cluster"],
        api_function=body["apiFunction"],
        bucket=body["bucket"],
        log_group=body["logGroup"],
        cells=tuple(body.get("cells") or ()),
    )


def _from_stack(client: Client, prefix: str) -> Deployment | None:
    """The stack's outputs: for a user who may not read parameters, or one deleted by hand."""
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
        region=stack["StackId"].split(":")[3],
        cluster=outputs.get("ClusterName", prefix),
        api_function=outputs["ApiFunctionName"],
        bucket=outputs.get("ResultsBucketName", ""),
        log_group=outputs.get("LogGroupName", f"/ecs/{prefix}/tasks"),
    )
