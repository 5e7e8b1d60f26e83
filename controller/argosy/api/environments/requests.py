"""Models of the requests about environments, one for each action."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from argosy.api.requests import PAGE_LIMIT, TOKEN_LIMIT, printable
from argosy.spec.fields import Strict
from argosy.spec.services import SERVICE_LIMIT

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
Token = Annotated[str, Field(min_length=1, max_length=TOKEN_LIMIT), AfterValidator(printable)]
Reason = Annotated[str, Field(max_length=255), AfterValidator(printable)]


class CreateEnvironment(Strict):
    """Store the first revision of a service or a daemon; nothing is started."""

    action: Literal["CreateEnvironment"]
    spec: dict[str, Any]


class UpdateEnvironment(Strict):
    """Store another revision; nothing is started. base_revision: the newest that the caller knows of."""

    action: Literal["UpdateEnvironment"]
    name: Name
    base_revision: int = Field(ge=1)
    spec: dict[str, Any]


class StartDeployment(Strict):
    """Replace what runs by a revision. revision None: the newest. client_token: the same one deploys once."""

    action: Literal["StartDeployment"]
    name: Name
    revision: int | None = Field(default=None, ge=1)
    client_token: Token | None = None


class RollBackDeployment(Strict):
    """Go back to the revision that was completed before the present one."""

    action: Literal["RollBackDeployment"]
    name: Name
    client_token: Token | None = None


class StopDeployment(Strict):
    """Stop the deployment under way: its tasks stay as they are, and the environment is frozen."""

    action: Literal["StopDeployment"]
    name: Name
    reason: Reason = ""


class ScaleEnvironment(Strict):
    """How many tasks of a service are to run; makes no revision."""

    action: Literal["ScaleEnvironment"]
    name: Name
    desired: int = Field(ge=0, le=SERVICE_LIMIT)


class FreezeEnvironment(Strict):
    """Start, replace and scale nothing until it is thawed. Tasks that run stay."""

    action: Literal["FreezeEnvironment"]
    name: Name
    reason: Reason = ""


class ThawEnvironment(Strict):
    """Thaw a frozen environment."""

    action: Literal["ThawEnvironment"]
    name: Name


class DeleteEnvironment(Strict):
    """Stop its tasks and forget it, or leave them: they run until they end, or until it is deleted with its tasks. An
    environment that is created under the same name takes them over."""

    action: Literal["DeleteEnvironment"]
    name: Name
    tasks: Literal["stop", "leave"] = "stop"


class DescribeEnvironment(Strict):
    """One environment. include: the specs of its revisions; where its tasks are reached."""

    action: Literal["DescribeEnvironment"]
    name: Name
    include: list[Literal["specs", "endpoints"]] = Field(default_factory=list)


class ListEnvironments(Strict):
    """Environments by name, in pages. prefix: what their names begin with."""

    action: Literal["ListEnvironments"]
    prefix: Annotated[str, Field(pattern=r"^[a-z0-9-]{0,63}$")] = ""
    max_results: int = Field(default=50, ge=1, le=PAGE_LIMIT)
    next_token: str | None = None
