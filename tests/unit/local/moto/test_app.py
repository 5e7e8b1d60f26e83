"""moto is composed once per process and ends when it is stopped."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.local.moto.app import MotoApp
from tests.fakes.serving import front


def test_a_long_poll_comes_home_when_the_end_is_near() -> None:
    moto = MotoApp()
    with front(moto=moto) as made:
        url = made("sqs").create_queue(QueueName="end")["QueueUrl"]
        moto.stop_waiting()
        began = time.monotonic()
        assert "Messages" not in made("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=20)
    moto.close()
    assert time.monotonic() - began < 10


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/dev/full", "/proc/self/mem"])
def test_a_full_disk_is_what_s3_says(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library's temporary files are replaced by a file that the kernel has no room for, and by one that
    it does not let be written for another reason."""
    moto = MotoApp()
    with front(moto=moto) as made:
        s3 = made("s3")
        s3.create_bucket(Bucket="full")
        s3.put_object(Bucket="full", Key="small", Body=b"x")

        def temporary_file(**options: Any) -> Any:
            return Path(path).open("r+b", buffering=0)

        monkeypatch.setattr(tempfile, "TemporaryFile", temporary_file)
        with pytest.raises(ClientError) as refused:
            s3.put_object(Bucket="full", Key="large", Body=b"x" * 17 * 1024**2)
    moto.close()
    said = "no space left on device: the disk of" if path == "/dev/full" else "Input/output error"
    assert said in str(refused.value)


def test_there_is_one_at_a_time_and_the_next_shares_nothing_with_it() -> None:
    first = MotoApp()
    with front(moto=first) as made:
        made("sqs").create_queue(QueueName="of-the-first")
        with pytest.raises(RuntimeError, match="already runs"):
            MotoApp()
    first.close()
    second = MotoApp()
    with front(moto=second) as made:
        assert "QueueUrls" not in made("sqs").list_queues()
    second.close()
