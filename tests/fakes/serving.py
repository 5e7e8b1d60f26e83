"""Reaches an application over a real socket, and waits without sleeping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from argosy.local.clients import LocalClients
from argosy.local.lambdas.function import LambdaFunction
from argosy.local.lambdas.invoke_api import LambdaApi
from argosy.local.server.front import Admin, Front, OwnPartService
from argosy.local.server.signatures import Signatures
from argosy.local.server.tables import OwnTable
from argosy.loopback.server import Application, Bounds, WsgiServer
from tests.fakes.signing import KEY

SIGNATURES = Signatures({KEY.id: KEY.secret}.get)


def no_moto(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """In place of moto: it answers with the request that reached it."""
    start_response("418 I'M A TEAPOT", [("Content-Type", "text/plain")])
    return [f"moto got {environ['REQUEST_METHOD']} {environ['PATH_INFO']}".encode(), environ["wsgi.input"].read()]


@dataclass
class Region:
    """The services of one Region."""

    ecs: Any = None
    ec2: Any = None


@contextmanager
def served(application: Application, bounds: Bounds | None = None) -> Iterator[WsgiServer]:
    """A server for one test."""
    server = WsgiServer(application, bounds=bounds)
    server.start()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def moto_clients() -> Iterator[LocalClients]:
    """Clients of a front with moto's services alone behind it."""
    from argosy.local.moto.app import MotoApp  # imports moto, which few of these tests need

    moto = MotoApp()
    with front(moto=moto) as clients:
        yield clients
        moto.stop_waiting()
    moto.close()


@contextmanager
def front(
    ecs: Any = None,
    ec2: Any = None,
    functions: Mapping[str, LambdaFunction] | None = None,
    admin: Admin | None = None,
    moto: Application = no_moto,
    away: Mapping[str, Region] | None = None,
    own: Iterable[OwnPartService] = (),
) -> Iterator[LocalClients]:
    """LocalClients of a front with these parts behind it (away: the services of other Regions than us-east-1).

    `clients.endpoint` is its address.
    """
    cells = {"us-east-1": Region(ecs, ec2), **(away or {})}
    application = Front(
        cells=cells,
        functions=LambdaApi(functions or {}),
        admin=admin or {},
        moto=moto,
        own=[OwnTable("argosy-state"), *own],
        signatures=SIGNATURES,
    )
    with served(application) as server:
        clients = LocalClients(f"http://127.0.0.1:{server.port}", "us-east-1", KEY)
        try:
            yield clients
        finally:
            clients.close()
