"""A model of S3: objects with metadata, conditional creation, listings in pages."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any

from argosy.emulator.operations import EmulatedService, Refusal, operation

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object."""

    body: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        return f'"{md5(self.body, usedforsecurity=False).hexdigest()}"'


class S3Model(EmulatedService):
    """Buckets that exist on first use. Strongly consistent, as S3 is."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[tuple[str, str], StoredObject] = {}
        """By (bucket, key)."""

    @operation
    def put_object(self, request: JSON) -> JSON:
        """With IfNoneMatch="*" only if there is none; with IfMatch only if it is still that one."""
        address = (request["Bucket"], request["Key"])
        there = self.objects.get(address)
        if "IfMatch" in request and there is None:
            raise Refusal("NoSuchKey", "Not Found")
        changed = there is not None and "IfMatch" in request and request["IfMatch"] != there.etag
        if changed or (request.get("IfNoneMatch") == "*" and there is not None):
            raise Refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        body = request.get("Body", b"")
        content = body if isinstance(body, (bytes, bytearray)) else body.read()
        self.objects[address] = StoredObject(bytes(content), dict(request.get("Metadata") or {}))
        return {"ETag": self.objects[address].etag}

    @operation
    def delete_object(self, request: JSON) -> JSON:
        """Deleting a missing object succeeds."""
        self.objects.pop((request["Bucket"], request["Key"]), None)
        return {}

    @operation
    def get_object(self, request: JSON) -> JSON:
        found = self._found(request, "NoSuchKey")
        return {"Body": io.BytesIO(found.body), "ContentLength": len(found.body), "Metadata": dict(found.metadata)}

    @operation
    def head_object(self, request: JSON) -> JSON:
        """A HEAD has no body to name an error in: a missing object is a bare 404."""
        found = self._found(request, "404")
        return {"ETag": found.etag, "ContentLength": len(found.body), "Metadata": dict(found.metadata)}

    @operation
    def list_objects_v2(self, request: JSON) -> JSON:
        prefix, most = request.get("Prefix") or "", min(request.get("MaxKeys") or 1000, 1000)
        after = request.get("ContinuationToken") or request.get("StartAfter") or ""
        keys = sorted(key for bucket, key in self.objects if bucket == request["Bucket"] and key.startswith(prefix))
        rest = [key for key in keys if key > after]
        listed = [{"Key": key, "Size": len(self.objects[request["Bucket"], key].body)} for key in rest[:most]]
        reply: JSON = {"Contents": listed, "KeyCount": len(listed), "IsTruncated": len(rest) > most}
        return {**reply, "NextContinuationToken": rest[most - 1]} if len(rest) > most else reply

    def _found(self, request: JSON, code: str) -> StoredObject:
        found = self.objects.get((request["Bucket"], request["Key"]))
        if found is None:
            raise Refusal(code, "Not Found")
        return found
