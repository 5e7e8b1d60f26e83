"""The command `ui`: a deployment in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.options import AnyRunId
from argosy.cli.outside_text import say
from argosy.cli.problems import CliError
from argosy.cli.session import Session


def register(app: typer.Typer) -> None:
    command(app, "ui", panel=panels.RUNS, as_json=False)(ui)


def ui(
    session: Session,
    run: AnyRunId = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port; 0 chooses a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only print the address.")] = False,
) -> None:
    """Runs, cluster and prices in your browser, until Ctrl-C."""
    from argosy.ui.deployment_reader import DeploymentReader
    from argosy.ui.serving import serve

    if run is not None:
        session.api.describe(run)  # refused here, in words, rather than in the browser
    deployment = session.deployment
    reader = DeploymentReader(session.access, session.tools.now)

    def opened(address: str) -> None:
        say(f"{address}\nFor this browser and this user only; Ctrl-C ends it.")
        if not no_open:
            session.tools.open_page(address)

    try:
        serve(reader, f"{deployment.prefix} in {deployment.region}", f"/runs/{run}" if run else "/", port, opened)
    except OSError as fault:
        step = f"choose another port: argosy ui --port {port + 1}" if port else ""
        raise CliError(f"Cannot listen on 127.0.0.1:{port}: {fault.strerror or fault}.", next_step=step) from fault
