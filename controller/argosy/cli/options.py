"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

PROPOSED = 100  # the newest runs
WAIT_S = 3.0  # for each call: a shell that waits longer is a nuisance


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """`last`, and names and ids that begin with the typed text, newest first; none where no deployment answers."""
    from argosy.cli.session import Tools
    from argosy.client.access import Access
    from argosy.client.aws_clients import Connection, make_client, with_local_mode
    from argosy.client.errors import answer_or
    from argosy.client.run_names import LAST

    tools = ctx.obj if isinstance(ctx.obj, Tools) else Tools()
    given: dict[str, Any] = {name: ctx.params.get(name) for name in ("endpoint_url", "region", "profile")}
    stage, entrance = ctx.params.get("stage") or "main", ctx.params.get("entrance") or ""
    connection = Connection(**given, stage=stage, entrance=entrance, patience_s=WAIT_S)

    def answer() -> Any:
        there = with_local_mode(connection, lambda _: None) if tools.clients is make_client else connection
        return Access(there, tools.clients).api.runs(PROPOSED)

    reply = answer_or(None, answer)
    if reply is None:
        return []
    found = reply["runs"]
    words = [LAST, *dict.fromkeys(view["name"] for view in found), *(view["runId"] for view in found)]
    return [word for word in words if word.startswith(incomplete)]


_MEANT = "a run's id, the start of its id, its name (the newest run), or `last`"
RunId = Annotated[str, typer.Argument(metavar="RUN", help=f"{_MEANT[0].upper()}{_MEANT[1:]}.", autocompletion=runs)]
RunsOf = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help=f"{_MEANT[0].upper()}{_MEANT[1:]}; an environment's name means all its runs.",
        autocompletion=runs,
    ),
]
AnyRunId = Annotated[
    str | None,
    typer.Argument(metavar="RUN", help=f"Only this run: {_MEANT}.", show_default=False, autocompletion=runs),
]
SpecFile = Annotated[Path, typer.Argument(metavar="FILE", help="Run spec in YAML or JSON; - reads standard input.")]
SpecFiles = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Run specs in YAML or JSON; - reads standard input.")
]
WaitTimeout = Annotated[
    float | None,
    typer.Option("--wait-timeout", min=0, metavar="SECONDS", help="Stop waiting after this long, with exit code 4."),
]
