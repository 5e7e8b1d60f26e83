"""A client over an AWS of a few dictionaries."""

from __future__ import annotations

from argosy.client.access import Access
from argosy.client.aws_clients import Connection
from argosy.sdk.client import Client
from tests.fakes.cli import World


def client_of(world: World, endpoint_url: str | None = None) -> Client:
    """A program's client; its clock is the world's."""
    access = Access(Connection(endpoint_url=endpoint_url), world.client)
    return Client.through(access, lambda: world.now, world.sleep)
