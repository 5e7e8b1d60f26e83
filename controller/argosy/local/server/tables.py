"""DynamoDB requests about the deployment's own table, answered by the emulator's model.

moto copies all its tables for every transaction, and scans a whole table for every query: with a few hundred runs each
commit and each query took about 40 ms, one after the other. So the deployment's table is the emulator's, as in the
simulation. Tables that users make are moto's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from botocore import xform_name

from argosy.emulator.dynamodb import DynamoModel
from argosy.local.server.protocol import JsonWire, Reply, answer


class OwnTable:
    """The table of this name."""

    target = "DynamoDB_20120810."

    def __init__(self, name: str) -> None:
        self.model = DynamoModel()
        self._name, self._wire = name, JsonWire("dynamodb")

    def reply(self, headers: Mapping[str, str], body: bytes) -> Reply | None:
        """None for a request about another table, or of a kind that the model does not know (such as
        DescribeTable)."""
        operation = headers.get("x-amz-target", "").removeprefix(self.target)
        if not hasattr(self.model, xform_name(operation)) or self._name not in _tables(body):
            return None
        return answer(self._wire, self.model, headers, body)


def _tables(body: bytes) -> set[str]:
    """That a request names."""
    try:
        request = json.loads(body)
        parts = [request, *(part for item in request.get("TransactItems", ()) for part in item.values())]
        return {str(part.get("TableName")) for part in parts} | set(request.get("RequestItems", ()))
    except (ValueError, TypeError, AttributeError):
        return set()  # moto reports what is wrong with it
