"""What are the bytes of one image? From a file, from S3, or from an HTTP server that may be long dead.

What the answer says of the image is Dead; what may be said of the network or of a busy server is Temporary.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from inference import storage
from inference.sources import Picture

TIMEOUT_S = 10.0  # of an HTTP server that does not answer
LIMIT_BYTES = 64 << 20  # a larger answer is no image
WAITS_S = (0.5, 2.0)  # before the second and the third try
_LATER_CODES = (408, 429)  # and all from 500 on
_Pause = Callable[[float], None]


class Dead(Exception):
    """This image cannot be had; the others can. The message is for its row."""


def fetch(picture: Picture, pause: _Pause = time.sleep) -> bytes:
    """Raises Dead, storage.Temporary, storage.Refused."""
    if picture.listed and not storage.is_s3(picture.address):
        return _persistently(picture.address, pause)
    try:
        return storage.read(picture.address)
    except storage.Refused as fault:
        if storage.is_s3(picture.address) and not isinstance(fault, storage.Missing):
            raise  # no right to read one object is no right to read the others
        raise Dead(str(fault)) from fault


def _persistently(address: str, pause: _Pause) -> bytes:
    """A server may be busy for a moment. One that stays away is this instance's trouble until another has tried."""
    for wait_s in WAITS_S:
        try:
            return _download(address)
        except storage.Temporary:
            pause(wait_s)
    return _download(address)


def _download(address: str) -> bytes:
    if not address.startswith(("http://", "https://")):
        raise Dead("not an http://, https:// or s3:// address")
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(LIMIT_BYTES + 1)
    except urllib.error.HTTPError as fault:
        fault.close()  # it holds the connection
        sentence = f"HTTP {fault.code} {fault.reason}"
        if fault.code >= 500 or fault.code in _LATER_CODES:
            raise storage.Temporary(f"{address}: {sentence}") from fault
        raise Dead(sentence) from fault
    except (ValueError, http.client.InvalidURL) as fault:
        raise Dead(f"no answer: {fault}") from fault
    except (OSError, http.client.HTTPException) as fault:
        reason = fault.reason if isinstance(fault, urllib.error.URLError) else fault
        if _for_good(reason):
            raise Dead(f"no answer: {reason}") from fault
        raise storage.Temporary(f"{address}: no answer: {reason}") from fault
    if len(data) > LIMIT_BYTES:
        raise Dead(f"larger than {LIMIT_BYTES >> 20} MiB")
    return data


def _for_good(reason: object) -> bool:
    """No host in the address (urllib's own text), a name that DNS says does not exist, a certificate that is none."""
    unknown = isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
    return unknown or isinstance(reason, str | ssl.SSLCertVerificationError)
