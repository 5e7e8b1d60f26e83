"""A model of DynamoDB: tables of pk and sk with conditional writes, transactions and consistent queries.

It has only what the project needs, with AWS's limits: 100 actions and 4 MB a transaction, 400 KB an item, 1 MB a page.
Conditions are comparisons and attribute_exists / attribute_not_exists, joined by OR of AND without brackets; updates:
one SET of values; key conditions: `pk = :name`. Other forms are refused as AWS refuses a syntax error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from argosy.emulator.operations import EmulatedService, Refusal, operation

JSON = dict[str, Any]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<=": le, ">=": ge, "<": lt, ">": gt}
_COMPARISON = re.compile(r"(#?\w+)\s*(=|<>|<=|>=|<|>)\s*(:\w+)")
_EXISTENCE = re.compile(r"(attribute_exists|attribute_not_exists)\((#?\w+)\)")


def holds(request: JSON, item: JSON | None) -> bool:
    """Whether a request's ConditionExpression holds for the item. Without one it does."""
    condition = request.get("ConditionExpression")
    if condition is None:
        return True
    return any(
        all(_term(term, request, item or {}) for term in re.split(r"\s+AND\s+", part)) for part in _or(condition)
    )


def assign(request: JSON, item: JSON) -> JSON:
    """The item after an UpdateExpression of the form `SET a = :a, b = :b`."""
    expression = request["UpdateExpression"].strip()
    if not expression.startswith("SET "):
        raise Refusal("ValidationException", f"Invalid UpdateExpression: Syntax error: {expression!r}")
    after = dict(item)
    for part in expression.removeprefix("SET ").split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        after[_name(name, request)] = _value(value, request)
    return after


def partition_of(request: JSON) -> str:
    """The partition that a KeyConditionExpression names."""
    match = _COMPARISON.fullmatch(request["KeyConditionExpression"].strip())
    if match is None or match[2] != "=" or _name(match[1], request) != "pk":
        raise Refusal("ValidationException", "Query condition missed key schema element: pk")
    return str(_value(match[3], request)["S"])


def projected(request: JSON, item: JSON) -> JSON:
    """The item, or the part that a ProjectionExpression names: whole attributes, separated by commas."""
    if "ProjectionExpression" not in request:
        return dict(item)
    names = [_name(name.strip(), request) for name in request["ProjectionExpression"].split(",")]
    return {name: item[name] for name in names if name in item}


def _or(condition: str) -> list[str]:
    return re.split(r"\s+OR\s+", condition.strip())


def _term(term: str, request: JSON, item: JSON) -> bool:
    if match := _EXISTENCE.fullmatch(term.strip()):
        return (_name(match[2], request) in item) == (match[1] == "attribute_exists")
    if match := _COMPARISON.fullmatch(term.strip()):
        stored, given = item.get(_name(match[1], request)), _value(match[3], request)
        if stored is None or stored.keys() != given.keys():
            return match[2] == "<>"
        return _OPERATORS[match[2]](_comparable(stored), _comparable(given))
    raise Refusal("ValidationException", f"Invalid ConditionExpression: Syntax error: {term!r}")


def _comparable(value: JSON) -> Any:
    (kind, content), *_ = value.items()
    return Decimal(content) if kind == "N" else content


def _name(name: str, request: JSON) -> str:
    if not name.startswith("#"):
        return name
    try:
        return str(request["ExpressionAttributeNames"][name])
    except KeyError:
        raise Refusal("ValidationException", f"An expression attribute name is not defined: {name}") from None


def _value(name: str, request: JSON) -> JSON:
    try:
        return dict(request["ExpressionAttributeValues"][name])
    except KeyError:
        raise Refusal("ValidationException", f"An expression attribute value is not defined: {name}") from None


Item = dict[str, JSON]
Address = tuple[str, str, str]  # table, pk, sk
Change = tuple[Address, Item | None]  # None: it is deleted

MAX_ACTIONS = 100
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
MAX_ITEM_BYTES = 400 * 1024
MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES = 2_048, 1_024
PAGE_BYTES = 1024 * 1024
_FIRST_WORD = re.compile(r"[A-Z]*")
MAX_BATCH, BATCH_BYTES = 100, 16 * 1024 * 1024  # of a BatchGetItem


class DynamoModel(EmulatedService):
    """One region's DynamoDB. Tables are made on first use; keys are strings `pk` and `sk`. All reads are consistent.

    `units` counts the write units charged, one for each started KB, twice in a transaction: by the first words of both
    keys.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, dict[str, dict[str, Item]]] = {}
        """Items by table, partition and sort key."""
        self.on_change: list[Callable[[Sequence[Change]], None]] = []
        """Called with all changes of an operation, before they show. If one of these fails, so does the operation."""
        self.units: Counter[str] = Counter()

    @property
    def write_units(self) -> int:
        return self.units.total()

    @operation
    def get_item(self, request: JSON) -> JSON:
        item = self._item(_address(request["TableName"], request["Key"]))
        return {} if item is None else {"Item": dict(item)}

    @operation
    def batch_get_item(self, request: JSON) -> JSON:
        """At most 100 items; those beyond 16 MB are named as unprocessed."""
        wanted = [(table, key) for table, keys in request["RequestItems"].items() for key in keys["Keys"]]
        addresses = [_address(table, key) for table, key in wanted]
        if len(addresses) > MAX_BATCH:
            raise Refusal("ValidationException", f"Too many items requested for the BatchGetItem call ({MAX_BATCH})")
        if len(set(addresses)) < len(addresses):
            raise Refusal("ValidationException", "Provided list of item keys contains duplicates")
        reply: JSON = {"Responses": {table: [] for table in request["RequestItems"]}, "UnprocessedKeys": {}}
        size = 0
        for (table, key), address in zip(wanted, addresses, strict=True):
            item = self._item(address)
            size += size_of(item or {})
            if size > BATCH_BYTES:
                left = reply["UnprocessedKeys"].setdefault(table, {**request["RequestItems"][table], "Keys": []})
                left["Keys"].append(key)
            elif item is not None:
                reply["Responses"][table].append(dict(item))
        return reply

    @operation
    def put_item(self, request: JSON) -> JSON:
        self._check(request, _address(request["TableName"], request["Item"]))
        self._write([("Put", request)], times=1)
        return {}

    @operation
    def update_item(self, request: JSON) -> JSON:
        self._check(request, _address(request["TableName"], request["Key"]))
        self._write([("Update", request)], times=1)
        return {}

    @operation
    def delete_item(self, request: JSON) -> JSON:
        self._check(request, _address(request["TableName"], request["Key"]))
        self._write([("Delete", request)], times=1)
        return {}

    @operation
    def query(self, request: JSON) -> JSON:
        """One partition by `pk = :name`, in sort-key order, in pages."""
        partition = partition_of(request)
        rows = sorted(self._partition(request["TableName"], partition).items())
        if not request.get("ScanIndexForward", True):
            rows.reverse()
        if "ExclusiveStartKey" in request:
            after = _key(request["ExclusiveStartKey"])[1]
            forward = request.get("ScanIndexForward", True)
            rows = [row for row in rows if (row[0] > after if forward else row[0] < after)]
        page = list(_page(rows, request.get("Limit")))
        reply: JSON = {
            "Items": [projected(request, item) for _, item in page],
            "Count": len(page),
            "ScannedCount": len(page),
        }
        if len(page) < len(rows):
            reply["LastEvaluatedKey"] = {"pk": {"S": partition}, "sk": {"S": page[-1][0]}}
        return reply

    @operation
    def scan(self, request: JSON) -> JSON:
        """Every item, in one page, for people who inspect a small table."""
        unknown = set(request) - {"TableName", "ConsistentRead"}
        if unknown:
            raise Refusal("ValidationException", f"this model's Scan has no {', '.join(sorted(unknown))}")
        items = [dict(item) for rows in self.tables.get(request["TableName"], {}).values() for item in rows.values()]
        return {"Items": items, "Count": len(items), "ScannedCount": len(items)}

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
        self._write(actions, times=2)
        return {}

    def _partition(self, table: str, pk: str) -> dict[str, Item]:
        return self.tables.setdefault(table, {}).setdefault(pk, {})

    def _item(self, address: Address) -> Item | None:
        table, pk, sk = address
        return self._partition(table, pk).get(sk)

    def _check(self, request: JSON, address: Address) -> None:
        if not holds(request, self._item(address)):
            raise Refusal("ConditionalCheckFailedException", "The conditional request failed")

    def _write(self, actions: Sequence[tuple[str, JSON]], times: int) -> None:
        """All or nothing."""
        changes = [self._change(kind, body) for kind, body in actions]
        for tell in self.on_change:
            tell(changes)
        for (table, pk, sk), item in changes:
            if item is None:
                self._partition(table, pk).pop(sk, None)
            else:
                self._partition(table, pk)[sk] = item
            self.units[_words(pk, sk)] += times * (1 if item is None else -(-size_of(item) // 1024))

    def _change(self, kind: str, body: JSON) -> Change:
        address = _address(body["TableName"], body["Item"] if kind == "Put" else body["Key"])
        if kind == "Delete":
            return address, None
        item = dict(body["Item"]) if kind == "Put" else assign(body, self._item(address) or dict(body["Key"]))
        if size_of(item) > MAX_ITEM_BYTES:
            raise Refusal("ValidationException", "Item size has exceeded the maximum allowed size")
        return address, item


def _words(pk: str, sk: str) -> str:
    """`RUN SERIES` of RUN#a-261121-120000-0a1b and SERIES, `CHANGES` of CHANGES and 000000000123."""
    return " ".join(word for key in (pk, sk) if (word := _FIRST_WORD.match(key)[0]))  # type: ignore[index]


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
