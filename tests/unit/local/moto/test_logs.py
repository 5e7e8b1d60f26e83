"""Lines of tasks are among moto's logs, those of an earlier local mode too, and are read only when they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy.client.aws_clients import Connection, make_client
from argosy.local.clients import LocalClients
from argosy.local.moto.app import MotoApp
from argosy.local.moto.logs import MotoLogs, StreamName
from tests.fakes.serving import front

pytestmark = pytest.mark.slow
ACCOUNT, REGION, GROUP = "123456789012", "us-east-1", "/ecs/tasks"
NOW_MS = 1_795_000_000_000


@pytest.fixture
def clients() -> Iterator[LocalClients]:
    moto = MotoApp()
    with front(moto=moto) as made:
        made("logs").create_log_group(logGroupName=GROUP)
        yield made
        moto.stop_waiting()
    moto.close()


class Shelf:
    """A LineStore in memory."""

    def __init__(self, **lines: list[dict[str, Any]]) -> None:
        self.kept: dict[str, list[dict[str, Any]]] = dict(lines)
        self.reads: list[str] = []

    def opened(self, stream: StreamName) -> None:
        self.kept.setdefault(stream.name, [])

    def append(self, stream: StreamName, entries: Sequence[dict[str, Any]]) -> None:
        self.kept[stream.name] += entries

    def lines(self, stream: StreamName) -> list[dict[str, Any]]:
        self.reads.append(stream.name)
        return list(self.kept[stream.name])

    def streams(self, region: str, group: str) -> list[str]:
        return list(self.kept) if (region, group) == (REGION, GROUP) else []


def line(text: str, number: int = 0) -> dict[str, Any]:
    return {"timestamp": NOW_MS + number, "message": text}


def reply_of(logs: Any, stream: str) -> Any:
    """Lines and tokens, or the code of a refusal."""
    try:
        reply = logs.get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True)
    except ClientError as refused:
        return refused.response["Error"]
    return {name: value for name, value in reply.items() if name != "ResponseMetadata"}


def shown(clients: LocalClients, stream: str) -> list[str]:
    found = clients("logs").get_log_events(logGroupName=GROUP, logStreamName=stream, startFromHead=True)
    return [event["message"] for event in found["events"]]


def test_new_lines_are_shown_and_kept(clients: LocalClients) -> None:
    shelf = Shelf()
    logs = MotoLogs(ACCOUNT, REGION, shelf)
    logs.open(GROUP, "a")
    logs.put(GROUP, "a", [line("one"), line("two", 1)])
    assert shown(clients, "a") == [each["message"] for each in shelf.kept["a"]] == ["one", "two"]
    assert shelf.reads == []


def test_a_user_s_client_reads_the_replies_that_boto3_reads(clients: LocalClients) -> None:
    logs = MotoLogs(ACCOUNT, REGION)
    logs.open(GROUP, "a")
    logs.put(GROUP, "a", [line("é\ud83d \x00"), line("x", 1)])
    users = make_client(Connection(clients.endpoint, REGION), "logs")
    for stream in ("a", "unknown"):
        replies = [reply_of(each, stream) for each in (clients("logs"), users)]
        assert replies[0] == replies[1]
    assert [each["message"] for each in reply_of(users, "a")["events"]] == ["é\ud83d \x00", "x"]


def test_earlier_lines_are_read_on_demand_and_continue_with_new_ones(clients: LocalClients) -> None:
    shelf = Shelf(old=[line("of yesterday")], other=[])
    logs = MotoLogs(ACCOUNT, REGION, shelf)
    logs.restore(GROUP)
    names = clients("logs").get_paginator("describe_log_streams")
    assert shelf.reads == []
    assert shown(clients, "old") == shown(clients, "old") == ["of yesterday"]
    assert shelf.reads == ["old"]
    logs.put(GROUP, "old", [line("of today", 1)])
    assert shown(clients, "old") == ["of yesterday", "of today"]
    pages = names.paginate(logGroupName=GROUP)
    assert [each["logStreamName"] for page in pages for each in page["logStreams"]] == ["old", "other"]


def test_pages_continue_behind_the_line_before_whatever_they_began_with(clients: LocalClients) -> None:
    logs, ask = MotoLogs(ACCOUNT, REGION), clients("logs").get_log_events
    logs.open(GROUP, "a")
    logs.put(GROUP, "a", [line("a"), line("c", 2), line("b", 1), line("d", 3)])

    def following(**begin: Any) -> list[list[str]]:
        pages, token, place = list[list[str]](), "", {"logGroupName": GROUP, "logStreamName": "a"}
        while True:
            reply = ask(**place, **({"nextToken": token} if token else begin), limit=2, startFromHead=True)
            pages.append([event["message"] for event in reply["events"]])
            if reply["nextForwardToken"] == token:
                return pages
            token = reply["nextForwardToken"]

    assert following() == [["a", "b"], ["c", "d"], []]
    assert following(startTime=NOW_MS + 1) == [["b", "c"], ["d"], []]
    last = ask(logGroupName=GROUP, logStreamName="a", startFromHead=False, limit=1)
    logs.put(GROUP, "a", [line("e", 4)])
    place = {"logGroupName": GROUP, "logStreamName": "a", "startFromHead": True}
    assert [each["message"] for each in last["events"]] == ["d"]
    assert [each["message"] for each in ask(**place, nextToken=last["nextForwardToken"])["events"]] == ["e"]
    back = ask(**place, nextToken=last["nextBackwardToken"])
    assert [each["message"] for each in back["events"]] == ["a", "b", "c"]


def test_without_a_store_lines_are_shown_while_local_mode_runs(clients: LocalClients) -> None:
    logs = MotoLogs(ACCOUNT, REGION)
    logs.restore(GROUP)
    logs.open(GROUP, "a")
    logs.put(GROUP, "a", [line("one")])
    assert shown(clients, "a") == ["one"]


def test_a_functions_log_file_is_a_stream_of_its_last_lines(clients: LocalClients, tmp_path: Path) -> None:
    logs, file = clients("logs"), tmp_path / "argosy-api.log"
    MotoLogs(ACCOUNT, REGION).follow(GROUP, file)
    asked = {"logGroupName": GROUP, "orderBy": "LastEventTime", "descending": True}
    [stream] = logs.describe_log_streams(**asked)["logStreams"]
    assert stream["logStreamName"] == file.name
    for text in ("", "first\nsecond\n", "first\nsecond\nthird\n"):
        file.write_text(text)
        page = logs.get_log_events(logGroupName=GROUP, logStreamName=file.name, startFromHead=False, limit=2)
        assert [each["message"] for each in page["events"]] == text.splitlines()[-2:]
    assert logs.describe_log_streams(**asked)["logStreams"][0]["lastEventTimestamp"] >= file.stat().st_mtime * 1000 - 1
