"""While the disk is full, clients get an error that they retry, and the terminal shows it once a minute."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import pytest
import requests

from argosy.local.server.front import QUIET_S, FullDisk
from argosy.local.server.protocol import Reply
from tests.fakes.serving import front
from tests.fakes.signing import send

FULL = OSError(errno.ENOSPC, "No space left on device", "/data/state.db")


def test_each_client_gets_what_it_can_read_and_the_terminal_one_line_a_minute() -> None:
    said: list[str] = []
    clock = [0.0]
    disk = FullDisk(said.append, lambda: clock[0])
    as_json = disk.reply(FULL, {"HTTP_X_AMZ_TARGET": "DynamoDB_20120810.PutItem"})
    as_xml = disk.reply(FULL, {})
    assert (as_json.status, as_xml.status) == (503, 503)
    assert "the disk of /data/state.db is full" in json.loads(as_json.body)["message"]
    assert ElementTree.fromstring(as_xml.body).findtext("Code") == "ServiceUnavailable"
    clock[0] = QUIET_S
    disk.reply(OSError(errno.ENOSPC, ""), {})
    assert [line.partition(":")[0] for line in said] == ["embedded AWS", "embedded AWS"]
    assert "/data/state.db" in said[0]


class FullTable:
    """A part of our own whose disk is full."""

    target = "DynamoDB_20120810."

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply | None:
        raise FULL


@pytest.mark.slow
def test_a_full_disk_is_not_reported_as_our_fault(capsys: pytest.CaptureFixture[str]) -> None:
    def moto(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        raise FULL if environ["PATH_INFO"] == "/b/k" else OSError(errno.EIO, "broken")

    with front(moto=moto, own=[FullTable()]) as clients:
        put = send("PUT", f"{clients.endpoint}/b/k", body=b"x")
        item = send("POST", clients.endpoint, "dynamodb", b"{}", {"X-Amz-Target": "DynamoDB_20120810.PutItem"})
        assert (put.status_code, item.status_code) == (503, 503)
        assert "Traceback" not in capsys.readouterr().err
        with pytest.raises(requests.ConnectionError):
            send("PUT", f"{clients.endpoint}/b/other", body=b"x")
    assert "broken" in capsys.readouterr().err
