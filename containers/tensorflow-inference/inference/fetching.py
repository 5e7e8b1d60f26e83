"""What are the bytes of one image? From a file, from S3, or from an HTTP server that may be long dead.

An answer about the image itself is Dead. A server that is busy or away is tried three times; then it is dead as well
if anything else answers. As long as nothing does, it may be this instance that has no way out, and that is Temporary.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable

import argosy_storage as storage

from inference.arguments import Request
from inference.sources import Picture

TIMEOUT_S = 10.0  # of an HTTP server that does not answer
LIMIT_BYTES = 64 << 20  # a larger answer is no image
WAITS_S = (0.5, 2.0)  # before the second and the third try
_LATER_CODES = (408, 429)  # and all from 500 on
_NO_SUCH_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))  # the second is glibc's
_Pause = Callable[[float], None]


class DeadImage(Exception):
    """This image cannot be had; the others can. The message is for its row."""


class _BusyServer(Exception):
    """A server that is busy, or does not answer: this time. The message is for the row."""


def fetcher_of(request: Request, pause: _Pause = time.sleep) -> Fetcher:
    """That the list or the model came from S3 shows that this instance has a way out. A first attempt does not take it
    for an answer: S3 may be reachable through a gateway endpoint while the internet is not."""
    from_s3 = any(storage.is_s3(address) for address in (request.source, request.model))
    return Fetcher(answers=request.attempt > 1 and from_s3, pause=pause)


class Fetcher:
    """Fetches the images of one attempt, by many threads at once.

    answers: whether something outside has answered this attempt already, so that the network is known to work.
    """

    def __init__(self, *, answers: bool = False, pause: _Pause = time.sleep) -> None:
        self._answers = threading.Event()
        if answers:
            self._answers.set()
        self._pause = pause
        self._silent: set[str] = set()  # hosts that were given up on, and have not answered since: not waited for again

    def fetch(self, picture: Picture) -> bytes:
        """Raises DeadImage, storage.Temporary, storage.Refused."""
        if picture.listed and not storage.is_s3(picture.address):
            return self._over_http(picture.address)
        try:
            data = storage.read(picture.address)
        except storage.Refused as fault:
            if storage.is_s3(picture.address) and not isinstance(fault, storage.Missing):
                raise  # no right to read one object is no right to read the others
            raise DeadImage(str(fault)) from fault
        if storage.is_s3(picture.address):
            self._answers.set()
        return data

    def _over_http(self, address: str) -> bytes:
        try:
            data = self._persistently(address)
        except _BusyServer as fault:
            if self._answers.is_set():
                raise DeadImage(str(fault)) from fault
            raise storage.Temporary(f"{address}: {fault}; nothing else has answered either") from fault
        self._answers.set()
        return data

    def _persistently(self, address: str) -> bytes:
        host = _host(address)
        for wait_s in () if host in self._silent else WAITS_S:
            try:
                return self._download(address, host)
            except _BusyServer:
                self._pause(wait_s)
        try:
            return self._download(address, host)
        except _BusyServer as fault:
            if not isinstance(fault.__cause__, urllib.error.HTTPError):
                self._silent.add(host)
            raise

    def _download(self, address: str, host: str) -> bytes:
        try:
            data = _download(address)
        except DeadImage as fault:
            if isinstance(fault.__cause__, urllib.error.HTTPError):
                self._answers.set()  # 404 is an answer too
            raise
        self._silent.discard(host)
        return data


def _host(address: str) -> str:
    try:
        return urllib.parse.urlsplit(address).netloc
    except ValueError:
        return address  # no address at all, which is dead at the first try


def _download(address: str) -> bytes:
    """Raises DeadImage, _BusyServer."""
    if not address.startswith(("http://", "https://")):
        raise DeadImage("not an http://, https:// or s3:// address")
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(LIMIT_BYTES + 1)
    except urllib.error.HTTPError as fault:
        fault.close()  # it holds the connection
        sentence = f"HTTP {fault.code} {fault.reason}"
        if fault.code >= 500 or fault.code in _LATER_CODES:
            raise _BusyServer(sentence) from fault
        raise DeadImage(sentence) from fault
    except (ValueError, http.client.InvalidURL) as fault:
        raise DeadImage(f"no answer: {fault}") from fault
    except (OSError, http.client.HTTPException) as fault:
        reason = fault.reason if isinstance(fault, urllib.error.URLError) else fault
        if is_final(reason):
            raise DeadImage(f"no answer: {reason}") from fault
        raise _BusyServer(f"no answer: {reason}") from fault
    if len(data) > LIMIT_BYTES:
        raise DeadImage(f"larger than {LIMIT_BYTES >> 20} MiB")
    return data


def is_final(reason: object) -> bool:
    """No host in the address (urllib's own text), a name that DNS says does not exist or has no address, a certificate
    that is none."""
    unknown = isinstance(reason, socket.gaierror) and reason.errno in _NO_SUCH_NAME
    return unknown or isinstance(reason, str | ssl.SSLCertVerificationError)
