"""The command `query`: the instances that a placement expression chooses, on a cluster or in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.outside_text import say
from argosy.cli.problems import CliError
from argosy.cli.session import Session

if TYPE_CHECKING:
    from argosy.placement.query import Query
    from argosy.placement.supply import Supply

PAGE = 100  # rows per List and Describe call


def register(app: typer.Typer) -> None:
    command(app, "query", panel=panels.CLUSTER)(query)


def query(
    session: Session,
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="e.g. 'attribute:ecs.instance-type =~ c5.*'")],
    instances: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with DescribeContainerInstances output, used instead of the cluster."),
    ] = None,
) -> None:
    """Show which instances a placement expression matches.

    All cells of the deployment are searched.
    """
    from argosy.placement.query import QuerySyntaxError, matching, parse

    try:
        parsed = parse(expression)
    except QuerySyntaxError as error:
        pointer = " " * (error.column - 1) + "^"
        raise CliError(f"The expression cannot be understood: {error}.", details=_shown(expression, pointer)) from None
    supply = _from_cluster(session, parsed) if instances is None else _from_file(instances)
    found = [row_id for row_id, chosen in zip(supply.ids, matching(parsed, supply).tolist(), strict=True) if chosen]
    if session.wants_json:
        session.print_json({"matches": found})
        return
    say("\n".join([*found, f"{len(found)} of {len(supply)} instances match."]))


def _shown(expression: str, pointer: str) -> list[str]:
    """The expression with a mark under the fault, where both fit on a line."""
    return [expression, pointer] if len(expression) <= PAGE and expression.isprintable() else []


def _from_file(path: Path) -> Supply:
    from argosy.placement.descriptions import rows_of
    from argosy.placement.supply import Supply

    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        listed = document.get("containerInstances") if isinstance(document, dict) else document
        tasks = document.get("tasks", []) if isinstance(document, dict) else []
        if not isinstance(listed, list) or not isinstance(tasks, list):
            raise ValueError('must be a list of instances, or {"containerInstances": [...]}')
        return Supply.of(rows_of(listed, tasks))
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}.") from None
    except RecursionError:
        raise CliError(f"{path}is nested too deeply.") from None
    except ValueError as error:  # not JSON, not UTF-8, or not of the shape
        raise CliError(f"{path}: {error}.") from None


def _from_cluster(session: Session, parsed: Query) -> Supply:
    from argosy.placement.descriptions import rows_of
    from argosy.placement.supply import Supply

    deployment, asks_tasks = session.deployment, "task:" in parsed.expression
    instances: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    for cell in deployment.cells or (deployment.region,):
        ecs = session.client("ecs", cell)
        instances += _described(ecs, "list_container_instances", "describe_container_instances", deployment.cluster)
        tasks += _described(ecs, "list_tasks", "describe_tasks", deployment.cluster) if asks_tasks else []
    return Supply.of(rows_of(instances, tasks))


def _described(ecs: Any, list_: str, describe: str, cluster: str) -> list[dict[str, Any]]:
    what, arns_key = ("containerInstances", "containerInstanceArns") if "instance" in list_ else ("tasks", "taskArns")
    found: list[dict[str, Any]] = []
    token: dict[str, str] = {}
    while True:
        page = getattr(ecs, list_)(cluster=cluster, maxResults=PAGE, **token)
        if page[arns_key]:
            found += getattr(ecs, describe)(cluster=cluster, **{what: page[arns_key]})[what]
        if not page.get("nextToken"):
            return found
        token = {"nextToken": page["nextToken"]}
