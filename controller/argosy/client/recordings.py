"""The controller's recordings, for a user's program."""

from __future__ import annotations

from typing import Any


class S3Segments:
    """`replay.chains.Shelf` over a boto3 S3 client, with the user's own rights."""

    def __init__(self, s3: Any, bucket: str) -> None:
        self._s3, self._bucket = s3, bucket

    def names(self, folder: str) -> list[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=folder)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def get(self, name: str) -> bytes:
        return bytes(self._s3.get_object(Bucket=self._bucket, Key=name)["Body"].read())
