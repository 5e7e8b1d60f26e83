"""Reading the items of a run, and the copy that is pinned."""

from __future__ import annotations

import io
from typing import Any

import pytest

from argosy.aws import items
from argosy.aws.items import S3ItemsReader, passes
from argosy.layout import items_uri
from argosy.ports import ItemsUnreadable
from tests.fakes.aws import ScriptedClient, refusal, timed_out

URI = "s3://data/items.jsonl"


def reader(body: bytes | Exception, length: int | None = None) -> S3ItemsReader:
    def answer(**_: Any) -> dict[str, Any]:
        if isinstance(body, Exception):
            raise body
        return {"ContentLength": len(body) if length is None else length, "Body": io.BytesIO(body)}

    return S3ItemsReader(ScriptedClient("s3", get_object=answer))


def test_each_line_is_an_item_and_blank_lines_are_none() -> None:
    assert reader(b'{"a": 1}\n\n"two"\r\n3').read_items(URI) == [{"a": 1}, "two", 3]


def test_a_byte_order_mark_is_no_item() -> None:
    assert reader(b"\xef\xbb\xbf\n1").read_items(URI) == [1]
    assert reader(b"\xef\xbb\xbf1").read_items(URI) == [1]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "has no items"),
        (b"\n \n", "has no items"),
        (b'1\n{"a": \n', "line 2 is not JSON"),
        (b"\xff\xfe", "line 1 is not JSON"),
        (b"[" * 100_000, "line 1 is not JSON"),
        (refusal("NoSuchKey", "gone", 404), "does not exist"),
        (refusal("NoSuchBucket", "gone", 404), "does not exist"),
        (refusal("AccessDenied", "no", 403), "no permission to read"),
        (timed_out(), "could not be read"),
    ],
)
def test_an_unreadable_object_is_reported_in_one_sentence(body: bytes | Exception, sentence: str) -> None:
    with pytest.raises(ItemsUnreadable, match=sentence) as raised:
        reader(body).read_items(URI)
    assert passes(raised.value) == (sentence in ("no permission to read", "could not be read"))


def test_too_many_bytes_or_items_or_no_address_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ItemsUnreadable, match="the limit is"):
        reader(b"1", length=items.LARGEST_BYTES + 1).read_items(URI)
    monkeypatch.setattr(items, "MOST_ITEMS", 2)
    with pytest.raises(ItemsUnreadable, match="more than 2 items"):
        reader(b"1\n2\n3").read_items(URI)
    with pytest.raises(ItemsUnreadable, match="not an s3:// address"):
        reader(b"1").read_items("http://example.org/x")


def test_the_pinned_copy_is_fetched_once() -> None:
    client = ScriptedClient("s3", get_object=lambda **_: {"ContentLength": 4, "Body": io.BytesIO(b'1\n"b"\n')})
    source = S3ItemsReader(client)
    assert [source.pinned_item("s3://results/r/", index) for index in (0, 1, 0)] == [1, "b", 1]
    assert client.requests("get_object") == [{"Bucket": "results", "Key": "r/items.jsonl"}]
    assert items_uri("s3://results/r/") == "s3://results/r/items.jsonl"
    with pytest.raises(ItemsUnreadable, match="has no item 2"):
        source.pinned_item("s3://results/r/", 2)


def test_copies_are_forgotten_oldest_first_when_they_grow_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "LARGEST_BYTES", 5)
    client = ScriptedClient("s3", get_object=lambda **_: {"ContentLength": 3, "Body": io.BytesIO(b"111")})
    source = S3ItemsReader(client)
    for run in ("a", "b", "b", "a"):
        assert source.pinned_item(f"s3://results/{run}/", 0) == 111
    assert [request["Key"] for request in client.requests("get_object")] == [
        "a/items.jsonl",
        "b/items.jsonl",
        "a/items.jsonl",
    ]
