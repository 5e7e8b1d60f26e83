"""moto is composed once per process, and ends when it is told to."""

from __future__ import annotations

import time

import pytest

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


def test_there_is_one_at_a_time_and_the_next_knows_nothing_of_it() -> None:
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
