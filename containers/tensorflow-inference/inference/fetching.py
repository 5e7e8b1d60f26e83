"""What are the bytes of one image? From a file, from S3, or from an HTTP server that may be long dead."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

from inference import storage
from inference.sources import Picture

TIMEOUT_S = 10.0  # of an HTTP server that does not answer
LIMIT_BYTES = 64 << 20  # a larger answer is no image


class Dead(Exception):
    """This image cannot be had; the others can. The message is for its row."""


def fetch(picture: Picture) -> bytes:
    """Raises Dead, storage.Temporary, storage.Refused."""
    if picture.listed and not storage.is_s3(picture.address):
        return _download(picture.address)
    try:
        return storage.read(picture.address)
    except storage.Refused as fault:
        if storage.is_s3(picture.address) and not isinstance(fault, storage.Missing):
            raise  # no right to read one object is no right to read the others
        raise Dead(str(fault)) from fault


def _download(address: str) -> bytes:
    if not address.startswith(("http://", "https://")):
        raise Dead("not an http://, https:// or s3:// address")
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(LIMIT_BYTES + 1)
    except urllib.error.HTTPError as fault:
        fault.close()  # it holds the connection
        raise Dead(f"HTTP {fault.code} {fault.reason}") from fault
    except urllib.error.URLError as fault:
        raise Dead(f"no answer: {fault.reason}") from fault
    except (OSError, ValueError, http.client.HTTPException) as fault:
        raise Dead(f"no answer: {fault}") from fault
    if len(data) > LIMIT_BYTES:
        raise Dead(f"larger than {LIMIT_BYTES >> 20} MiB")
    return data
