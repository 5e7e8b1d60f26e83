"""What does ECS say about a task definition?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify


class EcsDefinitions:
    """`ports.DefinitionReader`. ecs: gives the boto3 client, which is made only when a spec names a definition."""

    def __init__(self, ecs: Callable[[], Any]) -> None:
        self._ecs = ecs

    def describe(self, name: str) -> dict[str, Any] | None:
        """Raises AWS_ERRORS other than "there is none of this name"."""
        return described(self._ecs(), name)


def described(ecs: Any, name: str) -> dict[str, Any] | None:
    """The revision, or a family's newest active one; None if there is none. Raises AWS_ERRORS."""
    try:
        return dict(ecs.describe_task_definition(taskDefinition=name)["taskDefinition"])
    except AWS_ERRORS as error:
        if classify(error).kind is FailureKind.NOT_FOUND:
            return None
        raise
