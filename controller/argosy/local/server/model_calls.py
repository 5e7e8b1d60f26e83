"""Calls of this local mode's functions on the models, without HTTP.

A caller connects to a socket in a folder that only this user may enter. Each call and each answer is a pickle, with its
length before it: both ends are this program. `lambdas.short_way` is the other end.
"""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, NamedTuple

from botocore.exceptions import ClientError

SOCKET = "calls"  # its name in the folder
ADDRESS = "ARGOSY_MODEL_CALLS"  # its path, in the environment of functions
_LENGTH = 8


class ModelCall(NamedTuple):
    """One call. name: boto3's of the operation."""

    service: str
    region: str
    name: str
    request: dict[str, Any]


class ModelAnswer(NamedTuple):
    """refused: response and operation of a ClientError. usual: the call has to go the usual way, over HTTP."""

    reply: dict[str, Any] | None = None
    refused: tuple[Any, str] | None = None
    usual: bool = False


class Link:
    """A connection, one message after the other. Raises OSError once the other end has hung up."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._reading: IO[bytes] = connected.makefile("rb")

    def send(self, message: bytes) -> None:
        self._socket.sendall(len(message).to_bytes(_LENGTH) + message)

    def receive(self) -> bytes:
        length = int.from_bytes(self._read(_LENGTH))
        return self._read(length)

    def hang_up(self) -> None:
        """The other end, and a thread that waits here, see the end."""
        with suppress(OSError):  # it has hung up already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._reading.close()
        self._socket.close()

    def _read(self, length: int) -> bytes:
        found = self._reading.read(length)
        if len(found) < length:
            raise ConnectionResetError("the other end hung up")
        return found


class ModelCalls:
    """The socket and its threads, until `close`."""

    def __init__(self, folder: Path, model_of: Callable[[str, str], Any]) -> None:
        """folder: only this user may enter it. model_of: by service and Region. Raises OSError if the folder's path is
        too long for a socket."""
        self._model_of = model_of
        self._guard = threading.Lock()
        self._links: dict[Link, threading.Thread] = {}
        self.address = str(folder / SOCKET)
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(self.address)
            self._listener.listen(socket.SOMAXCONN)
        except OSError:
            self._listener.close()
            raise
        self._ending = False
        self._thread = threading.Thread(target=self._accept, name="argosy-calls")
        self._thread.start()

    def close(self) -> None:
        """End every connection, wait for every thread."""
        self._ending = True
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self.address)  # wakes the thread that accepts
        self._thread.join()
        self._listener.close()
        with self._guard:
            links = dict(self._links)
        for link, thread in links.items():
            link.hang_up()
            thread.join()

    def _accept(self) -> None:
        while True:
            connected, _ = self._listener.accept()
            if self._ending:
                return connected.close()
            link = Link(connected)
            thread = threading.Thread(target=self._serve, args=(link,), name="argosy-call")
            with self._guard:
                self._links[link] = thread
            thread.start()

    def _serve(self, link: Link) -> None:
        with suppress(OSError):
            while True:
                link.send(self._answer(ModelCall(*pickle.loads(link.receive()))))  # noqa: S301 - of this program
        with self._guard:
            del self._links[link]
        link.close()

    def _answer(self, call: ModelCall) -> bytes:
        method = getattr(self._model_of(call.service, call.region), call.name, None)
        if method is None:
            return _as_bytes(ModelAnswer(usual=True))
        try:
            return _as_bytes(ModelAnswer(method(**call.request) or {}))
        except ClientError as refusal:
            status = refusal.response["ResponseMetadata"]["HTTPStatusCode"]
            is_own = status >= HTTPStatus.INTERNAL_SERVER_ERROR  # botocore repeats the call
            return _as_bytes(ModelAnswer(refused=(refusal.response, refusal.operation_name), usual=is_own))
        except Exception:  # noqa: BLE001 - the usual way, which the caller takes then, says what is wrong
            return _as_bytes(ModelAnswer(usual=True))


@contextmanager
def short_way(folder: Path, model_of: Callable[[str, str], Any]) -> Iterator[dict[str, str]]:
    """What the environment of functions has meanwhile: nothing where the folder's path is too long for a socket, and
    then every call goes the usual way."""
    try:
        calls = ModelCalls(folder, model_of)
    except OSError:
        yield {}
        return
    try:
        yield {ADDRESS: calls.address}
    finally:
        calls.close()


def models_of(cells: Mapping[str, Any], **shared: Any) -> Callable[[str, str], Any]:
    """By service and Region. cells: the first answers for Regions that have none. shared: the models of all Regions."""
    home = next(iter(cells.values()))
    return lambda service, region: shared.get(service) or getattr(cells.get(region, home), service)


def _as_bytes(answer: ModelAnswer) -> bytes:
    return pickle.dumps(tuple(answer))
