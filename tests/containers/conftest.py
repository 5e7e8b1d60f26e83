"""An S3 for the programs of images."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers import s3


@pytest.fixture(scope="module")
def bucket() -> Iterator[s3.Bucket]:
    with s3.bucket() as found:
        yield found
