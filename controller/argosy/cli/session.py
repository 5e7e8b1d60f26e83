"""A command's connection to AWS and its output.

Everything that reaches outside the process (boto3 clients, the clock, pauses) is in `Tools`, which tests pass in as the
typer context object.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from argosy.cli.outside_text import say
from argosy.client.access import Access
from argosy.client.api import ApiClient
from argosy.client.aws_clients import Connection, find_credentials, make_client
from argosy.client.deployment import Deployment

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 10_000  # columns when the output is not a terminal: a row stays one line
ENDPOINT_VARIABLES = ["ARGOSY_ENDPOINT_URL", "AWS_ENDPOINT_URL"]
REGION_VARIABLES = ["AWS_REGION", "AWS_DEFAULT_REGION"]


def _open_page(address: str) -> None:
    import webbrowser

    webbrowser.open(address)


@dataclass
class Tools:
    """The process's access to the outside. clients: (connection, service name) -> boto3 client."""

    clients: Callable[[Connection, str], Any] = make_client
    now: Callable[[], float] = time.time  # epoch seconds
    sleep: Callable[[float], None] = time.sleep
    new_token: Callable[[], str] = lambda: uuid.uuid4().hex
    is_terminal: Callable[[], bool] = lambda: bool(sys.stdout.isatty())
    open_page: Callable[[str], object] = _open_page
    credentials: Callable[[Connection], Any] = find_credentials


@dataclass
class Session:
    """One command's connection and output."""

    tools: Tools
    connection: Connection
    wants_json: bool = False
    wants_lines: bool = False  # of JSON, as they come; then wants_json holds as well
    _gathered: list[Any] | None = None

    @cached_property
    def access(self) -> Access:
        """This user's access to the deployment."""
        return Access(self.connection, self.tools.clients, self.tools.credentials)

    @property
    def deployment(self) -> Deployment:
        """Raises ArgosyError when there is none."""
        return self.access.deployment

    @property
    def api(self) -> ApiClient:
        """Raises ArgosyError when there is no deployment."""
        return self.access.api

    def run_id(self, wanted: str) -> str:
        """The whole id of the run that the user means. Raises ArgosyError."""
        from argosy.client.run_names import is_run_id, run_id_of

        return wanted if is_run_id(wanted) else run_id_of(self.api, wanted)

    def client(self, service: str, region: str | None = None) -> Any:
        """The boto3 client of a service. region: when it is not the deployment's own."""
        return self.access.client(service, region)

    @cached_property
    def console(self) -> Console:
        from argosy.cli.console import PlainTextConsole

        if self.tools.is_terminal():
            return PlainTextConsole()
        return PlainTextConsole(width=PIPED_WIDTH, soft_wrap=True)

    @property
    def can_redraw(self) -> bool:
        """Whether a picture can be redrawn in its place; a dumb terminal gets lines, like a pipe."""
        return self.tools.is_terminal() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")

    def print_json(self, document: Any) -> None:
        """The answer of a command with --json."""
        if self._gathered is not None:
            self._gathered.append(document)
            return
        say(json.dumps(document, indent=None if self.wants_lines else 2, default=str))

    def print_json_line(self, document: Any) -> None:
        """A piece of the answer of a command with --json-lines."""
        say(json.dumps(document, default=str))

    @contextmanager
    def one_document(self, together: Callable[[list[Any]], Any]) -> Iterator[None]:
        """The JSON printed inside becomes one document, even if an exception is raised."""
        self._gathered = []
        try:
            yield
        finally:
            found, self._gathered = self._gathered, None
            if found:
                self.print_json(together(found))

    def again(self, words: str) -> str:
        """A command line that reaches the same AWS: `argosy watch RUN --endpoint-url ...`."""
        connection, shell = self.connection, os.environ
        flags = []
        if connection.endpoint_url and connection.endpoint_url not in map(shell.get, ENDPOINT_VARIABLES):
            flags.append(f"--endpoint-url {connection.endpoint_url}")
        if connection.region and connection.region not in map(shell.get, REGION_VARIABLES):
            flags.append(f"--region {connection.region}")
        if connection.profile and connection.profile != shell.get("AWS_PROFILE"):
            flags.append(f"--profile {connection.profile}")
        if connection.stage != shell.get("ARGOSY_STAGE", "main"):
            flags.append(f"--stage {connection.stage}")
        if connection.entrance != shell.get("ARGOSY_QUEUE", ""):
            flags.append(f"--as-queue {shlex.quote(connection.entrance)}")
        if not connection.signs and not shell.get("ARGOSY_UNSIGNED"):
            flags.append("--unsigned")
        return " ".join(["argosy", words, *flags])


def warn(sentence: str) -> None:
    """On standard error, so that piped output stays clean."""
    say(f"warning: {sentence}", err=True)
