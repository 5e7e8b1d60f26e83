"""Records of the deployment's cells, open and closed, in home's table next to the heartbeat.

They record what was deployed, not the current settings. Home's deployment writes a record for each cell that it names
(`cell_guard`); the teardown of a cell closes it (`teardown`). In a closed cell the controller launches nothing, and the
cell's watchdog ends what is there. The table's item is CONTROL / CELL <region>, with `closed` (S): why.

For the small functions only: it needs nothing but a DynamoDB client. The controller reads the same items through
`dynamodb.DynamoStore.switches`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

CONTROL, INBOX, STATE = "CONTROL", "INBOX", "STATE"
PREFIX = "CELL "  # of the sort keys of the cells' records, before the Region
LEFT_OUT = "the deployment no longer names this cell"
DESTROYED = "its stack is destroyed"


@dataclass(frozen=True)
class Records:
    """The contents of home's table. heartbeat: epoch seconds of the last tick that the controller completed."""

    heartbeat: float | None = None  # None: no tick was ever completed
    cells: Mapping[str, str | None] = field(default_factory=dict)  # Region -> why it is closed; None = it is open
    is_torn_down: bool = False  # whether the kill switch is on: nothing is launched any more
    awaits_tick: bool = False  # whether the controller was to continue after its last tick; unset in old versions


def read(dynamodb: Any, table: str) -> Records | None:
    """None when there is no such table. Raises ClientError for any other failure."""
    try:
        answer = dynamodb.query(
            TableName=table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": CONTROL}},
            ConsistentRead=True,
        )
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise
    items = {item["sk"]["S"]: item for item in answer["Items"]}
    beat = items.get("HEARTBEAT", {})
    return Records(
        heartbeat=float(beat["at"]["N"]) if "at" in beat else None,
        awaits_tick=beat.get("works") == {"N": "1"},
        cells={
            name.removeprefix(PREFIX): item.get("closed", {}).get("S")
            for name, item in items.items()
            if name.startswith(PREFIX)
        },
        is_torn_down="KILL" in items,
    )


def means_to_go_on(dynamodb: Any, table: str, records: Records) -> bool:
    """Whether a tick should follow: the last controller said so, or the first one stored a state and then failed before
    its first heartbeat. Raises ClientError."""
    return records.awaits_tick or (records.heartbeat is None and _has_items(dynamodb, table, STATE))


def is_asked_for_more(dynamodb: Any, table: str) -> bool:
    """Whether a request of the api waits in the inbox. Raises ClientError."""
    return _has_items(dynamodb, table, INBOX)


def _has_items(dynamodb: Any, table: str, partition: str) -> bool:
    answer = dynamodb.query(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": partition}},
        ConsistentRead=True,
        Limit=1,
    )
    return bool(answer["Items"])


def write(dynamodb: Any, table: str, region: str, closed: str | None) -> None:
    """closed: why nothing may be launched there; None opens the cell. Raises ClientError."""
    why = {} if closed is None else {"closed": {"S": closed}}
    dynamodb.put_item(TableName=table, Item={**_key(region), **why})


def forget(dynamodb: Any, table: str, region: str) -> None:
    """The cell is not part of the deployment any more. Raises ClientError."""
    dynamodb.delete_item(TableName=table, Key=_key(region))


def _key(region: str) -> dict[str, Any]:
    return {"pk": {"S": CONTROL}, "sk": {"S": f"{PREFIX}{region}"}}
