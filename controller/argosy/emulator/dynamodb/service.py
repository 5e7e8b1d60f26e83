"""What would DynamoDB do? Tables of pk and sk with conditional writes, transactions and consistent queries.

Only what the project asks for, with AWS's limits: 100 actions and 4 MB a transaction, 400 KB an item, 1 MB a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.emulator.dynamodb.expressions import assign, holds, partition_of
from argosy.emulator.operations import EmulatedService, Refusal, operation

JSON = dict[str, Any]
Item = dict[str, JSON]
Address = tuple[str, str, str]  # table, pk, sk

MAX_ACTIONS = 100
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
MAX_ITEM_BYTES = 400 * 1024
MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES = 2_048, 1_024
PAGE_BYTES = 1024 * 1024


class DynamoModel(EmulatedService):
    """One region's DynamoDB. Tables are made on first use; keys are strings `pk` and `sk`. All reads are consistent.

    `write_units` counts what writes are charged: one a started KB, twice in a transaction.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, dict[tuple[str, str], Item]] = {}
        self.write_units = 0

    @operation
    def get_item(self, request: JSON) -> JSON:
        item = self._table(request).get(_key(request["Key"]))
        return {} if item is None else {"Item": dict(item)}

    @operation
    def put_item(self, request: JSON) -> JSON:
        self._check(request, _address(request["TableName"], request["Item"]))
        self._write({"Put": request}, times=1)
        return {}

    @operation
    def update_item(self, request: JSON) -> JSON:
        self._check(request, _address(request["TableName"], request["Key"]))
        self._write({"Update": request}, times=1)
        return {}

    @operation
    def delete_item(self, request: JSON) -> JSON:
        self._check(request, _address(request["TableName"], request["Key"]))
        self._write({"Delete": request}, times=1)
        return {}

    @operation
    def query(self, request: JSON) -> JSON:
        """One partition by `pk = :name`, in sort-key order, in pages."""
        partition = partition_of(request)
        rows = sorted((sk, item) for (pk, sk), item in self._table(request).items() if pk == partition)
        if not request.get("ScanIndexForward", True):
            rows.reverse()
        if "ExclusiveStartKey" in request:
            after = _key(request["ExclusiveStartKey"])[1]
            forward = request.get("ScanIndexForward", True)
            rows = [row for row in rows if (row[0] > after if forward else row[0] < after)]
        page = list(_page(rows, request.get("Limit")))
        reply: JSON = {"Items": [dict(item) for _, item in page], "Count": len(page), "ScannedCount": len(page)}
        if len(page) < len(rows):
            reply["LastEvaluatedKey"] = {"pk": {"S": partition}, "sk": {"S": page[-1][0]}}
        return reply

    @operation
    def transact_write_items(self, request: JSON) -> JSON:
        """All or nothing; every action's own condition must hold."""
        actions = [next(iter(action.items())) for action in request["TransactItems"]]
        addresses = [_address(body["TableName"], body.get("Item") or body["Key"]) for _, body in actions]
        _check_limits(request["TransactItems"], addresses)
        reasons = [
            {"Code": "None"}
            if holds(body, self._item(address))
            else {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
            for (_, body), address in zip(actions, addresses, strict=True)
        ]
        if any(reason["Code"] != "None" for reason in reasons):
            codes = ", ".join(reason["Code"] for reason in reasons)
            message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
            raise Refusal("TransactionCanceledException", message, CancellationReasons=reasons)
        for kind, body in actions:
            self._write({kind: body}, times=2)
        return {}

    def _table(self, request: JSON) -> dict[tuple[str, str], Item]:
        return self.tables.setdefault(request["TableName"], {})

    def _item(self, address: Address) -> Item | None:
        return self.tables.setdefault(address[0], {}).get(address[1:])

    def _check(self, request: JSON, address: Address) -> None:
        if not holds(request, self._item(address)):
            raise Refusal("ConditionalCheckFailedException", "The conditional request failed")

    def _write(self, action: Mapping[str, JSON], times: int) -> None:
        kind, body = next(iter(action.items()))
        table = self._table(body)
        if kind == "Put":
            item = dict(body["Item"])
        elif kind == "Update":
            item = assign(body, table.get(_key(body["Key"])) or dict(body["Key"]))
        else:
            table.pop(_key(body["Key"]), None)
            self.write_units += times
            return
        size = size_of(item)
        if size > MAX_ITEM_BYTES:
            raise Refusal("ValidationException", "Item size has exceeded the maximum allowed size")
        table[_key(item)] = item
        self.write_units += times * -(-size // 1024)


def size_of(item: Item) -> int:
    """Bytes that count towards the limits: names and values."""
    size = 0
    for name, value in item.items():
        for kind, content in value.items():
            size += len(name) + (len(content) if kind in ("B", "S") else 21)
    return size


def _page(rows: list[tuple[str, Item]], limit: int | None) -> Iterator[tuple[str, Item]]:
    size = 0
    for number, (sk, item) in enumerate(rows):
        if number == limit or size > PAGE_BYTES:
            return
        size += size_of(item)
        yield sk, item


def _check_limits(actions: list[JSON], addresses: list[Address]) -> None:
    if len(actions) > MAX_ACTIONS:
        raise Refusal("ValidationException", f"Member must have length less than or equal to {MAX_ACTIONS}")
    if len(set(addresses)) < len(addresses):
        raise Refusal("ValidationException", "Transaction request cannot include multiple operations on one item")
    size = 0
    for action in actions:
        (_, body), *_ = action.items()
        item_size = size_of(body.get("Item") or body["Key"])
        if item_size > MAX_ITEM_BYTES:
            raise Refusal("ValidationException", "Item size has exceeded the maximum allowed size")
        size += item_size
    if size > MAX_TRANSACTION_BYTES:
        raise Refusal("ValidationException", "Collection size of all items exceeded the limit of 4 MB")


def _key(item: Item) -> tuple[str, str]:
    try:
        pk, sk = item["pk"]["S"], item["sk"]["S"]
    except KeyError:
        raise Refusal("ValidationException", "The provided key element does not match the schema") from None
    if not pk or not sk:
        raise Refusal("ValidationException", "One or more parameter values are not valid: a key is empty")
    if len(pk.encode()) > MAX_PARTITION_KEY_BYTES or len(sk.encode()) > MAX_SORT_KEY_BYTES:
        raise Refusal("ValidationException", "One or more parameter values were invalid: a key is too long")
    return pk, sk


def _address(table: str, item: Item) -> Address:
    return (table, *_key(item))
