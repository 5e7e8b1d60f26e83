"""From a function to a command with a `Session` and the options that choose an AWS and the output.

A parameter of the type `RunId` is a whole id when the function gets it, whatever names the run on the command line. A
parameter whose type is a dataclass stands for one option per field, so that related options are passed together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from argosy.cli.options import AnyRunId, RunId
from argosy.cli.outside_text import say
from argosy.cli.plain_help import PlainCommand
from argosy.cli.problems import reported
from argosy.cli.session import ENDPOINT_VARIABLES, REGION_VARIABLES, Session, Tools
from argosy.client.aws_clients import DEFAULT_REGION, Connection, make_client, with_local_mode

Body = Callable[..., None]
_PANEL = "Which AWS"

_Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint-url",
        metavar="URL",
        envvar=ENDPOINT_VARIABLES,
        show_envvar=False,
        help="URL of another AWS, such as `argosy local`. [env ARGOSY_ENDPOINT_URL, AWS_ENDPOINT_URL]",
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
        help="Stage of the deployment. [env ARGOSY_STAGE]",
        rich_help_panel=_PANEL,
    ),
]
_Queue = Annotated[
    str,
    typer.Option(
        "--as-queue",
        metavar="QUEUE",
        envvar="ARGOSY_QUEUE",
        show_envvar=False,
        help="Use this queue's entrance, which can change nothing outside it. [env ARGOSY_QUEUE]",
        rich_help_panel=_PANEL,
    ),
]
_Unsigned = Annotated[
    bool,
    typer.Option(
        "--unsigned",
        envvar="ARGOSY_UNSIGNED",
        show_envvar=False,
        help="Do not prove who owns what is started. [env ARGOSY_UNSIGNED]",
        rich_help_panel=_PANEL,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

_JsonLines = Annotated[bool, typer.Option("--json-lines", help="Print one JSON document per line as results arrive.")]

_CONNECTION: dict[str, tuple[Any, Any]] = {
    "endpoint_url": (_Endpoint, None),
    "region": (_Region, None),
    "profile": (_Profile, None),
    "stage": (_Stage, "main"),
    "entrance": (_Queue, ""),
    "unsigned": (_Unsigned, False),
}


def command(
    app: typer.Typer,
    name: str,
    *,
    panel: str,
    as_json: bool = True,
    as_lines: bool = False,
    connected: bool = True,
    form: type[TyperCommand] = PlainCommand,
    is_group: bool = False,
) -> Callable[[Body], Body]:
    """Makes `body(session, ...)` the command `name` of `app`.

    as_json: it has --json (`session.wants_json`): always one document. as_lines: it also has --json-lines
    (`session.wants_lines`), for answers that come piece by piece. connected: it has the options that choose an AWS.
    form: how it reads its words. is_group: it runs when `app` is called without the name of a command.
    """
    added = dict(_CONNECTION) if connected else {}
    if as_lines:
        added = {"wants_lines": (_JsonLines, False), **added}
    if as_json:
        added = {"wants_json": (_Json, False), **added}

    def register(body: Body) -> Body:
        own = [each for each in inspect.signature(body, eval_str=True).parameters.values() if each.name != "session"]
        runs = [each.name for each in own if each.annotation in (RunId, AnyRunId)]

        def run(ctx: typer.Context, **values: Any) -> None:
            if ctx.invoked_subcommand is not None:
                _refuse_options_before(ctx)
                return
            given = {option: values.pop(option) for option in added}
            wants_json, wants_lines = given.pop("wants_json", False), given.pop("wants_lines", False)
            tools = ctx.obj if isinstance(ctx.obj, Tools) else Tools()
            signs = not given.pop("unsigned", False)
            with reported():
                connection = Connection(**given, signs=signs)
                if connected and tools.clients is make_client:
                    connection = with_local_mode(connection, partial(say, err=True))
                session = Session(tools, connection, wants_json or wants_lines, wants_lines)
                for each in runs:
                    values[each] = session.run_id(values[each]) if values[each] else None
                body(session, **_grouped(own, values))

        keyword = inspect.Parameter.KEYWORD_ONLY
        options = [inspect.Parameter(key, keyword, default=d, annotation=a) for key, (a, d) in added.items()]
        context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
        parameters = [context, *(each.replace(kind=keyword) for each in _expanded(own)), *options]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = body.__doc__
        if is_group:
            app.callback(invoke_without_command=True)(run)
        else:
            app.command(name, cls=form, rich_help_panel=panel)(run)
        return body

    return register


def _refuse_options_before(ctx: typer.Context) -> None:
    """Refuses options before the name of a group's command: they would be ignored, such as another stage."""
    for each in ctx.command.params:
        source = ctx.get_parameter_source(str(each.name))
        if source is not None and source.name == "COMMANDLINE":
            names = "/".join(each.opts)
            raise typer.BadParameter(f"{names} must come after {ctx.invoked_subcommand}, not before it", ctx=ctx)


def _expanded(parameters: Iterable[inspect.Parameter]) -> Iterable[inspect.Parameter]:
    """Every dataclass among the parameters replaced by its fields."""
    for each in parameters:
        if not is_dataclass(each.annotation):
            yield each
            continue
        hints = get_type_hints(each.annotation, include_extras=True)
        for field in fields(each.annotation):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            yield each.replace(name=field.name, default=default, annotation=hints[field.name])


def _grouped(parameters: Iterable[inspect.Parameter], values: dict[str, Any]) -> dict[str, Any]:
    """The values as the body takes them: a dataclass's fields become one value again."""
    grouped: dict[str, Any] = {}
    for each in parameters:
        kind: Any = each.annotation
        if is_dataclass(kind):
            grouped[each.name] = kind(**{field.name: values[field.name] for field in fields(kind)})  # type: ignore[operator]
        else:
            grouped[each.name] = values[each.name]
    return grouped
