"""The server of the page, from its start to Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from argosy.loopback.server import LOOPBACK, WsgiServer
from argosy.ui.deployment_reader import DeploymentReader
from argosy.ui.guard import PARAMETER, Guard
from argosy.ui.pages import Pages


@contextmanager
def serving(reader: DeploymentReader, title: str, path: str = "/", port: int = 0) -> Iterator[str]:
    """The address to open first: it holds the token. path: of the page. Raises OSError when the port is taken."""
    guard = Guard()
    server = WsgiServer(Pages(reader, guard, title), port)
    server.start()
    try:
        yield f"http://{LOOPBACK}:{server.port}{path}?{PARAMETER}={guard.token}"
    finally:
        server.close()


def serve(reader: DeploymentReader, title: str, path: str, port: int, opened: Callable[[str], None]) -> None:
    """Until Ctrl-C. opened: gets the address. Raises OSError when the port is taken, KeyboardInterrupt at the end."""
    with serving(reader, title, path, port) as address:
        opened(address)
        threading.Event().wait()
