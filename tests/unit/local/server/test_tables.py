"""Which requests to DynamoDB does the deployment's own table answer?"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest

from argosy.local.moto import events
from argosy.local.server.tables import OwnTable

KEY = {"pk": {"S": "A"}, "sk": {"S": "1"}}


def asked(table: OwnTable, operation: str, body: bytes | dict[str, Any]) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return table.reply({"x-amz-target": OwnTable.target + operation}, raw)


def test_requests_about_the_table_are_answered_in_dynamodb_s_own_words() -> None:
    table = OwnTable("argosy-state")
    item = {**KEY, "body": {"B": "eA=="}}
    write = {"TransactItems": [{"Put": {"TableName": "argosy-state", "Item": item}}]}
    assert asked(table, "TransactWriteItems", write).status == 200
    found = json.loads(asked(table, "GetItem", {"TableName": "argosy-state", "Key": KEY}).body)
    assert found["Item"] == item
    batch = json.loads(asked(table, "BatchGetItem", {"RequestItems": {"argosy-state": {"Keys": [KEY]}}}).body)
    assert batch["Responses"] == {"argosy-state": [item]}
    assert json.loads(asked(table, "Scan", {"TableName": "argosy-state"}).body)["Count"] == 1
    once = {"TableName": "argosy-state", "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
    refused = asked(table, "PutItem", once)
    assert (refused.status, json.loads(refused.body)["__type"]) == (400, "ConditionalCheckFailedException")
    limited = asked(table, "Scan", {"TableName": "argosy-state", "Limit": 1})
    assert (limited.status, json.loads(limited.body)["__type"]) == (400, "ValidationException")


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("GetItem", {"TableName": "mine", "Key": KEY}),
        ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "mine", "Item": KEY}}]}),
        ("BatchGetItem", {"RequestItems": {"mine": {"Keys": [KEY]}}}),
        ("DescribeTable", {"TableName": "argosy-state"}),
        ("GetItem", b"{"),
        ("GetItem", b"[]"),
        ("TransactWriteItems", {"TransactItems": 7}),
    ],
)
def test_everything_else_is_left_to_moto(operation: str, body: Any) -> None:
    assert asked(OwnTable("argosy-state"), operation, body) is None


def test_parsers_of_paths_are_made_once_and_find_what_they_found() -> None:
    ext: Any = import_module("jsonpath_ng.ext")
    events.quicken()
    events.quicken()
    assert ext.parse("$.detail-type") is ext.parse("$.detail-type")
    assert [match.value for match in ext.parse("$.detail").find({"detail": {"a": 1}})] == [{"a": 1}]
