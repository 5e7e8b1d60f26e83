"""Which AWS does a command talk to, with what, and where does it write?

`command` gives a function its connection options (--endpoint-url --region --profile --stage) and a `Session`. What
reaches outside (boto3 clients, the clock, pauses) hangs on `Tools`, which tests hand in as the typer context object.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli.problems import reported
from argosy.client.aws_clients import DEFAULT_REGION, Place, make_client

if TYPE_CHECKING:
    from rich.console import Console

    from argosy.client.api import Api
    from argosy.client.deployment import Deployment

PIPED_WIDTH = 200  # columns when the output is no terminal: wide enough that no id is ever cut


@dataclass
class Tools:
    """What reaches outside the process. clients: (place, service name) -> boto3 client."""

    clients: Callable[[Place, str], Any] | None = None
    now: Callable[[], float] = time.time  # epoch seconds
    sleep: Callable[[float], None] = time.sleep
    new_token: Callable[[], str] = lambda: uuid.uuid4().hex
    is_terminal: Callable[[], bool] = lambda: bool(sys.stdout.isatty())


@dataclass
class Session:
    """One command's connection and output."""

    tools: Tools
    place: Place
    wants_json: bool = False
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str, region: str | None = None) -> Any:
        """The boto3 client of a service, made at first use. region: another one than the deployment's own."""
        key = f"{service} {region or ''}"
        if key not in self._clients:
            make = self.tools.clients or make_client
            self._clients[key] = make(replace(self.place, region=region) if region else self.place, service)
        return self._clients[key]

    @cached_property
    def deployment(self) -> Deployment:
        """Raises ArgosyError when there is none."""
        from argosy.client.deployment import find_deployment

        return find_deployment(self.place, self.client)

    @cached_property
    def api(self) -> Api:
        from argosy.client.api import Api

        return Api(self.client("lambda"), self.deployment.api_function)

    @cached_property
    def console(self) -> Console:
        from rich.console import Console

        if self.tools.is_terminal():
            return Console(highlight=False)
        return Console(width=PIPED_WIDTH, highlight=False, soft_wrap=True)

    def print_json(self, document: Any) -> None:
        typer.echo(json.dumps(document, indent=2, default=str))

    def again(self, words: str) -> str:
        """A command line that reaches the same AWS: `argosy watch RUN --endpoint-url ...`."""
        place, shell = self.place, os.environ
        flags = []
        if place.endpoint_url and place.endpoint_url not in map(shell.get, ENDPOINT_VARIABLES):
            flags.append(f"--endpoint-url {place.endpoint_url}")
        if place.region and place.region not in map(shell.get, REGION_VARIABLES):
            flags.append(f"--region {place.region}")
        if place.profile and place.profile != shell.get("AWS_PROFILE"):
            flags.append(f"--profile {place.profile}")
        if place.stage != shell.get("ARGOSY_STAGE", "main"):
            flags.append(f"--stage {place.stage}")
        return " ".join(["argosy", words, *flags])


ENDPOINT_VARIABLES = ["ARGOSY_ENDPOINT_URL", "AWS_ENDPOINT_URL"]
REGION_VARIABLES = ["AWS_REGION", "AWS_DEFAULT_REGION"]
_PANEL = "Which AWS"

_Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint-url",
        metavar="URL",
        envvar=ENDPOINT_VARIABLES,
        show_envvar=False,
        help="Another AWS, such as `argosy local`. [env ARGOSY_ENDPOINT_URL, AWS_ENDPOINT_URL]",
        rich_help_panel=_PANEL,
    ),
]
_Region = Annotated[
    str | None,
    typer.Option(
        "--region",
        metavar="REGION",
        envvar=REGION_VARIABLES,
        show_envvar=False,
        help=f"Region of the deployment. [default: your AWS configuration, else {DEFAULT_REGION}]",
        rich_help_panel=_PANEL,
    ),
]
_Profile = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="Profile of your AWS configuration.", rich_help_panel=_PANEL),
]
_Stage = Annotated[
    str,
    typer.Option(
        "--stage",
        metavar="NAME",
        envvar="ARGOSY_STAGE",
        show_envvar=False,
        help="Which deployment. [env ARGOSY_STAGE]",
        rich_help_panel=_PANEL,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="The answer as one JSON document.")]

_CONNECTION: dict[str, tuple[Any, Any]] = {
    "endpoint_url": (_Endpoint, None),
    "region": (_Region, None),
    "profile": (_Profile, None),
    "stage": (_Stage, "main"),
}


def command(
    app: typer.Typer, name: str, *, panel: str, as_json: bool = True, connected: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes `body(session, ...)` the command `name` of `app`.

    as_json: it has --json (`session.wants_json`). connected: it has the options that choose an AWS.
    """
    added = dict(_CONNECTION) if connected else {}
    if as_json:
        added = {"wants_json": (_Json, False), **added}

    def register(body: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(body, eval_str=True).parameters.values() if each.name != "session"]

        def run(ctx: typer.Context, **values: Any) -> None:
            given = {option: values.pop(option) for option in added}
            wants_json = given.pop("wants_json", False)
            tools = ctx.obj if isinstance(ctx.obj, Tools) else Tools()
            with reported():
                body(Session(tools, Place(**given), wants_json), **values)

        keyword = inspect.Parameter.KEYWORD_ONLY
        options = [inspect.Parameter(key, keyword, default=d, annotation=a) for key, (a, d) in added.items()]
        context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
        parameters = [context, *(each.replace(kind=keyword) for each in own), *options]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = body.__doc__
        app.command(name, rich_help_panel=panel)(run)
        return body

    return register
