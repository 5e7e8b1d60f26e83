"""The controller's record in the results bucket, under a folder that no program may read."""

from __future__ import annotations

from typing import Any


class S3Archive:
    """`ports.Archive` over a boto3 S3 client."""

    def __init__(self, s3: Any, bucket: str) -> None:
        self._s3, self._bucket = s3, bucket

    def put(self, name: str, body: bytes) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=name, Body=body, ContentType="application/gzip")
