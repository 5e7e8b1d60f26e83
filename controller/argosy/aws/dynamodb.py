"""The state in one DynamoDB table: items of pk, sk and body, with the version in a separate item.

STATE / VERSION    version (N), digest (S): the digest tells whose commit made this version
CONTROL / LEASE    owner (S), until (N, epoch seconds), asked (N, 1 = another was refused it): deleted with its release
CONTROL / HEARTBEAT  at (N, epoch seconds): when a tick was last completed; works (N, 0 = all is at rest, 1 = another
                   tick is to follow); never deleted, the watchdog reads it
CONTROL / KILL     reason (S): nothing is launched in the whole deployment
CONTROL / CELL <region>  closed (S): why nothing is launched there; absent while the cell is open (cell_records.py)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from argosy.aws.errors import AWS_ERRORS, FailureKind, classify
from argosy.ports import AlreadyExists, Key, StaleState, Switches

VERSION_KEY: Key = ("STATE", "VERSION")
LEASE_KEY: Key = ("CONTROL", "LEASE")
HEARTBEAT_KEY: Key = ("CONTROL", "HEARTBEAT")
KILL_KEY: Key = ("CONTROL", "KILL")
CELL_PREFIX = "CELL "  # of the sort keys of the cells' records, before the Region
BATCH = 100  # items of a BatchGetItem
CONFLICT_TRIES = 3  # how often a transaction is sent that another one cancels


class DynamoStore:
    """`ports.Store` over a boto3 DynamoDB client."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def read(self, key: Key) -> bytes | None:
        item = self._get(key)
        return bytes(item["body"]["B"]) if "body" in item else None

    def read_partition(self, partition: str) -> dict[str, bytes]:
        return dict(_bodies(self._items(partition)))

    def read_many(self, keys: Iterable[Key]) -> dict[Key, bytes]:
        found: dict[Key, bytes] = {}
        pending = [_key(key) for key in dict.fromkeys(keys)]
        left_out = 0  # times in a row that DynamoDB answered with nothing
        while pending:
            asked = {self._table: {"Keys": pending[:BATCH], "ConsistentRead": True}}
            answer = self._client.batch_get_item(RequestItems=asked)
            items = answer.get("Responses", {}).get(self._table, [])
            found |= {(item["pk"]["S"], item["sk"]["S"]): bytes(item["body"]["B"]) for item in items if "body" in item}
            # More than 16 MB, or too much at once: the rest is requested again.
            unread = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            left_out = left_out + 1 if len(unread) == len(pending[:BATCH]) else 0
            if left_out >= CONFLICT_TRIES:
                raise ClientError(
                    {"Error": {"Code": "ThrottlingException", "Message": "nothing is read"}}, "BatchGetItem"
                )
            pending = unread + pending[BATCH:]
        return found

    def page(
        self, partition: str, limit: int, after: str | None = None, oldest_first: bool = False
    ) -> tuple[list[tuple[str, bytes]], str | None]:
        start = {} if after is None else {"ExclusiveStartKey": _key((partition, after))}
        page = self._query(partition, Limit=limit, ScanIndexForward=oldest_first, **start)
        last = page.get("LastEvaluatedKey")
        return _bodies(page["Items"]), str(last["sk"]["S"]) if last else None

    def create(
        self,
        items: Mapping[Key, bytes],
        expires_at: Mapping[Key, float] | None = None,
        replacing: Mapping[Key, bytes] | None = None,
    ) -> None:
        ends = expires_at or {}
        puts = [
            {"Put": {**self._put(key, body, ends.get(key)), "ConditionExpression": "attribute_not_exists(pk)"}}
            for key, body in items.items()
        ]
        puts += [{"Put": self._put(key, body, ends.get(key))} for key, body in (replacing or {}).items()]
        try:
            self._transact(puts)
        except AWS_ERRORS as error:
            if _condition_failed(error):
                raise AlreadyExists(", ".join("/".join(key) for key in items)) from error
            if any(self.read(key) != body for key, body in items.items()):
                raise

    def commit(
        self,
        version: int,
        puts: Mapping[Key, bytes],
        deletes: Iterable[Key],
        expires_at: Mapping[Key, float] | None = None,
    ) -> None:
        deleted, ends = list(deletes), expires_at or {}
        digest = _digest(version, puts, deleted)
        actions = [
            {"Update": self._raise_version(version, digest)},
            *({"Put": self._put(key, body, ends.get(key))} for key, body in puts.items()),
            *({"Delete": {"TableName": self._table, "Key": _key(key)}} for key in deleted),
        ]
        try:
            self._transact(actions)
        except AWS_ERRORS as error:
            self._settle(version, digest, error)

    def version(self) -> int:
        return int(self._get(VERSION_KEY).get("version", {"N": "0"})["N"])

    def take_lease(self, owner: str, now: float, seconds: float) -> bool:
        if self._took_lease(owner, now, seconds):
            return True
        # A refused caller marks the lease. If the lease is gone by then, the caller can take it.
        return not self._mark_lease("attribute_exists(pk)", "1") and self._took_lease(owner, now, seconds)

    def _took_lease(self, owner: str, now: float, seconds: float) -> bool:
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(LEASE_KEY),
                UpdateExpression="SET #owner = :owner, #until = :until",
                ConditionExpression="attribute_not_exists(pk) OR #until <= :now OR #owner = :owner",
                ExpressionAttributeNames={"#owner": "owner", "#until": "until"},
                ExpressionAttributeValues={
                    ":owner": {"S": owner},
                    ":until": {"N": repr(now + seconds)},
                    ":now": {"N": repr(now)},
                },
            )
        except ClientError as error:
            if _condition_failed(error):
                return False
            raise
        return True

    def _mark_lease(self, condition: str, asked: str, owner: str = "") -> bool:
        """Whether the condition held. asked: "1" if another controller was refused the lease."""
        about_owner = {":owner": {"S": owner}} if owner else {}
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(LEASE_KEY),
                UpdateExpression="SET #asked = :asked",
                ConditionExpression=condition,
                ExpressionAttributeNames={"#asked": "asked", **({"#owner": "owner"} if owner else {})},
                ExpressionAttributeValues={":asked": {"N": asked}, **about_owner},
            )
        except ClientError as error:
            if _condition_failed(error):
                return False
            raise
        return True

    def release_lease(self, owner: str) -> None:
        self._delete_lease(owner)

    def lay_down_lease(self, owner: str) -> bool:
        if self._delete_lease(owner, unless_asked=True):
            return True
        # A refused caller left its mark, which is now read; or the lease belongs to another controller.
        return not self._mark_lease("#owner = :owner", "0", owner)

    def _delete_lease(self, owner: str, *, unless_asked: bool = False) -> bool:
        """Whether the lease was ours and, with `unless_asked`, bore no unread mark."""
        condition, names = "#owner = :owner", {"#owner": "owner"}
        values = {":owner": {"S": owner}}
        if unless_asked:
            condition = f"{condition} AND attribute_not_exists(#asked) OR {condition} AND #asked = :heard"
            names, values = {**names, "#asked": "asked"}, {**values, ":heard": {"N": "0"}}
        try:
            self._client.delete_item(
                TableName=self._table,
                Key=_key(LEASE_KEY),
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )
        except ClientError as error:
            if _condition_failed(error):
                return False
            raise
        return True

    def beat(self, now: float, *, at_rest: bool = False) -> None:
        item = {**_key(HEARTBEAT_KEY), "at": {"N": repr(now)}, "works": {"N": "0" if at_rest else "1"}}
        self._client.put_item(TableName=self._table, Item=item)

    def is_at_rest(self) -> bool:
        return bool(self._get(HEARTBEAT_KEY).get("works") == {"N": "0"})

    def switches(self) -> Switches:
        deployment, cells = None, {}
        for item in self._query(KILL_KEY[0])["Items"]:
            name = str(item["sk"]["S"])
            if name == KILL_KEY[1]:
                deployment = str(item.get("reason", {}).get("S", "the kill switch is set"))
            elif name.startswith(CELL_PREFIX) and "closed" in item:
                cells[name.removeprefix(CELL_PREFIX)] = str(item["closed"]["S"])
        return Switches(deployment, cells)

    def _settle(self, version: int, digest: str, error: Exception) -> None:
        """A commit failed, or its reply was lost: whose version is stored now? Raises unless it is ours."""
        stored = self._get(VERSION_KEY)
        stands_at = int(stored.get("version", {"N": "0"})["N"])
        if stands_at == version + 1 and stored.get("digest", {}).get("S") == digest:
            return
        if stands_at != version or _condition_failed(error):
            raise StaleState(f"version {version} was expected, {stands_at} is stored") from error
        raise error

    def _transact(self, actions: Sequence[Mapping[str, Any]]) -> None:
        for last in [False] * (CONFLICT_TRIES - 1) + [True]:
            try:
                self._client.transact_write_items(TransactItems=actions)
                return
            except ClientError as error:
                # Another transaction touched the same items at the same time: nothing was written.
                if last or "TransactionConflict" not in _reasons(error) or _condition_failed(error):
                    raise

    def _raise_version(self, version: int, digest: str) -> dict[str, Any]:
        condition = "#version = :old" if version else "attribute_not_exists(pk)"
        values = {":new": {"N": str(version + 1)}, ":digest": {"S": digest}}
        return {
            "TableName": self._table,
            "Key": _key(VERSION_KEY),
            "UpdateExpression": "SET #version = :new, #digest = :digest",
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#version": "version", "#digest": "digest"},
            "ExpressionAttributeValues": values | ({":old": {"N": str(version)}} if version else {}),
        }

    def _put(self, key: Key, body: bytes, expires_at: float | None = None) -> dict[str, Any]:
        item: dict[str, Any] = {**_key(key), "body": {"B": body}}
        if expires_at is not None:
            item["expires_at"] = {"N": str(int(expires_at))}  # the table's TTL attribute: whole seconds
        return {"TableName": self._table, "Item": item}

    def _get(self, key: Key) -> dict[str, Any]:
        answer = self._client.get_item(TableName=self._table, Key=_key(key), ConsistentRead=True)
        return dict(answer.get("Item", {}))

    def _items(self, partition: str) -> Iterator[dict[str, Any]]:
        """All pages."""
        start: dict[str, Any] = {}
        while True:
            page = self._query(partition, **start)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _query(self, partition: str, **paging: Any) -> dict[str, Any]:
        return dict(
            self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": partition}},
                ConsistentRead=True,
                **paging,
            )
        )


def _key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def _bodies(items: Iterable[Mapping[str, Any]]) -> list[tuple[str, bytes]]:
    """Items without a body (the version) are not documents."""
    return [(item["sk"]["S"], bytes(item["body"]["B"])) for item in items if "body" in item]


def _digest(version: int, puts: Mapping[Key, bytes], deletes: Iterable[Key]) -> str:
    content = hashlib.sha256(str(version).encode())
    for key in sorted(puts):
        content.update("\0".join(key).encode() + hashlib.sha256(puts[key]).digest())
    content.update(repr(sorted(deletes)).encode())
    return content.hexdigest()


def _reasons(error: Exception) -> set[str]:
    response: Mapping[str, Any] = error.response if isinstance(error, ClientError) else {}
    return {str(reason.get("Code")) for reason in response.get("CancellationReasons") or ()}


def _condition_failed(error: Exception) -> bool:
    fault = classify(error)
    single = fault.kind is FailureKind.CONFLICT and fault.code == "ConditionalCheckFailedException"
    return single or "ConditionalCheckFailed" in _reasons(error)
