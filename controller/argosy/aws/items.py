"""The items of an `itemsFrom` array, read from the copy that preparing the run has pinned.

The user's object may change at any time, but the launches of a run must not. So the copy is kept in the run's results
folder.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from threading import Lock
from typing import Any

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.layout import items_uri, split_s3
from argosy.ports import ItemsUnreadable

LARGEST_BYTES = 32 * 1024 * 1024  # what the api function's memory can hold once it is parsed
MOST_ITEMS = 1_000_000  # as many as a run may have tasks


class S3ItemsReader:
    """`ports.ItemsReader` over a boto3 S3 client; remembers pinned copies, as text. Safe to share between threads."""

    def __init__(self, s3: Any) -> None:
        self._s3, self._lock = s3, Lock()
        self._pinned: dict[str, list[bytes]] = {}  # lines by address, oldest first, at most LARGEST_BYTES in all

    def read_items(self, uri: str) -> list[Any]:
        return _parsed(uri, self.fetch(uri))

    def fetch(self, uri: str) -> bytes:
        """The object's bytes. Raises ItemsUnreadable."""
        try:
            bucket, key = split_s3(uri)
            answer = self._s3.get_object(Bucket=bucket, Key=key)
            if answer["ContentLength"] > LARGEST_BYTES:
                raise ItemsUnreadable(f"{uri} has {answer['ContentLength']} bytes; the limit is {LARGEST_BYTES}")
            return bytes(answer["Body"].read())
        except AWS_ERRORS as error:
            raise ItemsUnreadable(_sentence(uri, error)) from error
        except ValueError as fault:
            raise ItemsUnreadable(str(fault)) from fault

    def pinned_item(self, output: str, index: int) -> Any:
        """Item `index` of the run's own copy. Raises ItemsUnreadable."""
        uri = items_uri(output)
        with self._lock:
            if uri not in self._pinned:
                self._pinned[uri] = self.fetch(uri).splitlines()
                self._forget_oldest()
            lines = self._pinned[uri]
        try:
            return json.loads(lines[index])
        except (IndexError, ValueError) as fault:
            raise ItemsUnreadable(f"{uri} has changed since it was written: it has no item {index}") from fault

    def _forget_oldest(self) -> None:
        sizes = {uri: sum(map(len, lines)) for uri, lines in self._pinned.items()}
        for uri in list(sizes)[:-1]:
            if sum(sizes.values()) > LARGEST_BYTES:
                del sizes[uri], self._pinned[uri]


def passes(error: ItemsUnreadable) -> bool:
    """Whether the object may be readable at a later try: AWS did not answer, or its refusal may pass."""
    cause = error.__cause__
    if not isinstance(cause, AWS_ERRORS):
        return False
    fault = classify(cause)
    return fault.passing or (fault.lasting and not fault.final)


def _sentence(uri: str, error: Exception) -> str:
    fault = classify(error)
    if fault.kind is FailureKind.NOT_FOUND:
        return f"{uri} does not exist"
    if fault.kind is FailureKind.ACCESS_DENIED:
        return f"Argosy has no permission to read {uri}: {fault.text}"
    return f"{uri} could not be read: {fault.text}"


def _parsed(uri: str, body: bytes) -> list[Any]:
    items: list[Any] = []
    for number, line in enumerate(body.removeprefix(BOM_UTF8).split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            items.append(json.loads(line))
        except (ValueError, RecursionError) as fault:
            raise ItemsUnreadable(f"{uri}, line {number} is not JSON: {fault}") from fault
        if len(items) > MOST_ITEMS:
            raise ItemsUnreadable(f"{uri} has more than {MOST_ITEMS} items")
    if not items:
        raise ItemsUnreadable(f"{uri} has no items")
    return items
