"""A program's access to one deployment: its boto3 clients, its names and its api, each made at first use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from argosy.client.api import ApiClient, Signer
from argosy.client.aws_clients import Connection, find_credentials, make_client
from argosy.client.deployment import Deployment, find_deployment


@dataclass
class Access:
    """One user's access to one deployment. make: (connection, service name) -> boto3 client. credentials: used to sign
    its requests.
    """

    connection: Connection
    make: Callable[[Connection, str], Any] = make_client
    credentials: Callable[[Connection], Any] = find_credentials
    _clients: dict[tuple[str, str | None], Any] = field(default_factory=dict)

    def client(self, service: str, region: str | None = None) -> Any:
        """The boto3 client of a service. region: if it is not the deployment's own. Raises InvalidInput for an endpoint
        that is no
        address.
        """
        key = (service, region)
        if key not in self._clients:
            self.connection.check()
            connection = replace(self.connection, region=region) if region else self.connection
            self._clients[key] = self.make(connection, service)
        return self._clients[key]

    @cached_property
    def deployment(self) -> Deployment:
        """Raises ArgosyError if there is none."""
        return find_deployment(self.connection, self.client)

    @cached_property
    def api(self) -> ApiClient:
        """Raises ArgosyError if there is no deployment."""
        return ApiClient(self.client("lambda"), self.deployment.api_function, self.connection.entrance, self._signer())

    def _signer(self) -> Signer | None:
        signed_for = self.deployment.signed_for
        if signed_for is None or not self.connection.signs:
            return None
        return Signer(signed_for, partial(self.credentials, self.connection), self.deployment.region)
