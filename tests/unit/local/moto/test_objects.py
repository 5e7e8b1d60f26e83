"""Objects of an earlier local mode are there with all that S3 says of them, and large ones leave the memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.local.keeping.database import Database
from argosy.local.keeping.objects import SMALL_BYTES, KeptBodies
from argosy.local.moto.app import MotoApp
from tests.fakes.serving import front

pytestmark = pytest.mark.slow
ACCOUNT = "123456789012"
LARGE = bytes(range(256)) * (SMALL_BYTES // 128)


@contextmanager
def s3_on(folder: Path) -> Iterator[Any]:
    """S3 of a local mode whose state is in the folder."""
    from argosy.local.moto.objects import KeptObjects

    database = Database(folder / "state.db")
    moto = MotoApp()
    objects = KeptObjects(ACCOUNT, KeptBodies(database, folder / "objects"))
    objects.restore()
    moto.objects = objects
    with front(moto=moto) as clients:
        yield clients("s3")
    moto.close()
    database.close()


def heads(s3: Any, *keys: str) -> list[dict[str, Any]]:
    told = ("ETag", "Metadata", "ContentType", "ContentLength", "LastModified")
    return [{name: s3.head_object(Bucket="mine", Key=key)[name] for name in told} for key in keys]


KEYS = ("small", "a large/one ü+%20", "in parts", "copied")


@pytest.fixture
def before(tmp_path: Path) -> list[dict[str, Any]]:
    """What S3 says of objects that were made in every way there is."""
    with s3_on(tmp_path) as s3:
        s3.create_bucket(Bucket="mine")
        s3.put_object(Bucket="mine", Key=KEYS[0], Body=b"s", Metadata={"who": "me"}, ContentType="text/plain")
        s3.put_object(Bucket="mine", Key=KEYS[1], Body=LARGE)
        upload = s3.create_multipart_upload(Bucket="mine", Key=KEYS[2])["UploadId"]
        whole = {"Bucket": "mine", "Key": KEYS[2], "UploadId": upload}
        sent = [s3.upload_part(**whole, PartNumber=n, Body=b"x" * 5 * 1024**2)["ETag"] for n in (1, 2)]
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(sent, 1)]
        s3.complete_multipart_upload(**whole, MultipartUpload={"Parts": parts})
        s3.copy_object(Bucket="mine", Key=KEYS[3], CopySource={"Bucket": "mine", "Key": KEYS[0]})
        for key in ("gone", "gone too", "gone as well"):
            s3.put_object(Bucket="mine", Key=key, Body=LARGE)
        s3.delete_object(Bucket="mine", Key="gone")
        s3.delete_objects(Bucket="mine", Delete={"Objects": [{"Key": "gone too"}, {"Key": "gone as well"}]})
        return heads(s3, *KEYS)


def test_objects_are_there_again_as_they_were(tmp_path: Path, before: list[dict[str, Any]]) -> None:
    with s3_on(tmp_path) as s3:
        assert heads(s3, *KEYS) == before
        assert s3.get_object(Bucket="mine", Key=KEYS[0])["Body"].read() == b"s"
        assert s3.get_object(Bucket="mine", Key=KEYS[1], Range="bytes=5-9")["Body"].read() == LARGE[5:10]
        assert s3.get_object(Bucket="mine", Key=KEYS[2])["Body"].read() == b"x" * 10 * 1024**2
        listed = s3.list_objects_v2(Bucket="mine")["Contents"]
        assert sorted(each["Key"] for each in listed) == sorted(KEYS)
        with pytest.raises(ClientError, match="PreconditionFailed"):
            s3.put_object(Bucket="mine", Key=KEYS[0], Body=b"", IfNoneMatch="*")


def test_objects_can_be_replaced_and_removed_after_a_restart(tmp_path: Path, before: list[dict[str, Any]]) -> None:
    with s3_on(tmp_path) as s3:
        s3.put_object(Bucket="mine", Key=KEYS[1], Body=b"now small")
        for key in (KEYS[0], KEYS[2]):
            s3.delete_object(Bucket="mine", Key=key)
    with s3_on(tmp_path) as s3:
        assert s3.get_object(Bucket="mine", Key=KEYS[1])["Body"].read() == b"now small"
        assert sorted(each["Key"] for each in s3.list_objects_v2(Bucket="mine")["Contents"]) == [KEYS[1], KEYS[3]]
        for key in (KEYS[1], KEYS[3]):
            s3.delete_object(Bucket="mine", Key=key)
        s3.delete_bucket(Bucket="mine")
    with s3_on(tmp_path) as s3:
        assert s3.list_buckets()["Buckets"] == []
    assert list((tmp_path / "objects").iterdir()) == []


def test_an_upload_by_a_presigned_address_is_kept_too(tmp_path: Path) -> None:
    import requests

    with s3_on(tmp_path) as s3:
        s3.create_bucket(Bucket="mine")
        address = s3.generate_presigned_url("put_object", Params={"Bucket": "mine", "Key": "k"})
        assert requests.put(address, data=b"presigned", timeout=30).status_code == 200
    with s3_on(tmp_path) as s3:
        assert s3.get_object(Bucket="mine", Key="k")["Body"].read() == b"presigned"
