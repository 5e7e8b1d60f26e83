"""The functions' calls of ECS, EC2, DynamoDB and SQS, which are models of local mode, on the shortest way there.

Problem: with tasks of milliseconds, most of the CPU time went into botocore's requests, HTTP and its parsers, on both
sides. Idea: the client of such a service is the one of the simulation, with botocore's checks, shapes and errors; the
model behind it is local mode's, at the other end of a socket.

What does not work this way goes the usual one: a boto3 client repeats the call, or says what is wrong.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from argosy.aws.clients import AwsClients
from argosy.emulator.botocore_check import SimulatedClient
from argosy.local.server.model_calls import ADDRESS, Link, ModelAnswer, ModelCall

SERVICES = ("dynamodb", "ec2", "ecs", "sqs")


class _UsualWay(Exception):
    """The call has to go it."""


class DirectCalls:
    """Connections that stay open. Thread-safe."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._idle: deque[Link] = deque()

    def client(self, service: str, region: str, usual: Callable[[], Any]) -> Any:
        """For a service that has no model, the usual one. usual: makes boto3's client."""
        return _DirectClient(self, service, region, usual) if service in SERVICES else usual()

    def close(self) -> None:
        """Close every connection."""
        while self._idle:
            self._idle.pop().close()

    def ask(self, call: ModelCall) -> dict[str, Any]:
        """The model's reply. Raises ClientError, _UsualWay."""
        try:
            answer = self._asked(pickle.dumps(tuple(call)))
        except OSError as fault:
            raise _UsualWay from fault
        if answer.usual:
            raise _UsualWay
        if answer.refused is not None:
            raise ClientError(*answer.refused)
        return answer.reply or {}

    def _asked(self, call: bytes) -> ModelAnswer:
        link = self._idle.pop() if self._idle else self._connected()
        try:
            link.send(call)
            answer = ModelAnswer(*pickle.loads(link.receive()))  # noqa: S301 - of this program
        except BaseException:
            link.close()
            raise
        self._idle.append(link)
        return answer

    def _connected(self) -> Link:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(self._address)
        except OSError:
            connection.close()
            raise
        return Link(connection)


class _DirectClient(SimulatedClient):
    """As boto3's client."""

    checks_replies = False

    def __init__(self, way: DirectCalls, service: str, region: str, usual: Callable[[], Any]) -> None:
        super().__init__(_RemoteModel(way, service, region), service, region=region)
        self._usual = usual

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        short = super().__getattr__(name)

        def call(**request: Any) -> dict[str, Any]:
            try:
                return short(**request)
            except _UsualWay:
                return dict(getattr(self._usual(), name)(**request))

        return call


class _RemoteModel:
    """A model at the other end."""

    def __init__(self, way: DirectCalls, service: str, region: str) -> None:
        self._way, self._service, self._region = way, service, region

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        return lambda **request: self._way.ask(ModelCall(self._service, self._region, name, request))


def take() -> None:
    """All clients that this process makes from now on go the short way, if its environment has one."""
    if address := os.environ.get(ADDRESS):
        AwsClients.made = DirectCalls(address).client
