"""Which text lies at an address? A file, an S3 object, or an HTTP server's reply."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path

import argosy_storage as storage

from recommender.faults import BadInput

TIMEOUT_S = 60.0  # of an HTTP server that does not answer


def text(address: str) -> str:
    """Raises BadInput, storage.Temporary or storage.Refused."""
    data = _download(address) if address.startswith(("http://", "https://")) else storage.read(address)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{address} is no text: {error}") from error


def exists(address: str) -> bool:
    """Whether there is something to read. Raises storage.Temporary or storage.Refused."""
    if not storage.is_s3(address):
        return Path(address).exists()
    try:
        storage.read(address)
    except storage.Missing:
        return False
    return True


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read()
    except urllib.error.HTTPError as fault:
        sentence = f"{address}: HTTP {fault.code} {fault.reason}"
        if fault.code >= 500 or fault.code in (408, 429):
            raise storage.Temporary(sentence) from fault
        raise storage.Refused(sentence) from fault
    except (OSError, http.client.HTTPException) as fault:
        raise storage.Temporary(f"{address}: {getattr(fault, 'reason', fault)}") from fault
    except ValueError as fault:
        raise storage.Refused(f"{address}: {fault}") from fault
    return data
