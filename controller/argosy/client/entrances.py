"""The queues with their own entrance, an alias of the api function.

With the caller's rights: lambda:CreateAlias and the like on the function, which only its owner has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.client.errors import error_code
from argosy.model.entrances import LATEST, alias_of, queue_of


@dataclass(frozen=True, slots=True)
class Entrances:
    """Of one deployment. functions: the boto3 client of Lambda. Errors of botocore are passed on."""

    functions: Any
    function_name: str

    def make(self, queue: str) -> tuple[str, bool]:
        """The ARN of the queue's entrance, and whether it is new. One that points elsewhere is repaired."""
        named = {"FunctionName": self.function_name, "Name": alias_of(queue)}
        about = f"Argosy: callers of this alias act within the queue {queue}"
        try:
            made = self.functions.create_alias(**named, FunctionVersion=LATEST, Description=about)
            return str(made["AliasArn"]), True
        except Exception as fault:
            if error_code(fault) != "ResourceConflictException":
                raise
        known = self.functions.get_alias(**named)
        if known["FunctionVersion"] != LATEST or known.get("RoutingConfig"):
            known = self.functions.update_alias(**named, FunctionVersion=LATEST, RoutingConfig={})
        return str(known["AliasArn"]), False

    def remove(self, queue: str) -> bool:
        """Whether there was one."""
        was_there = queue in self.all()
        self.functions.delete_alias(FunctionName=self.function_name, Name=alias_of(queue))
        return was_there

    def all(self) -> dict[str, str]:
        """The ARNs of the existing ones, by queue; also of queues that no longer exist."""
        found: dict[str, str] = {}
        marker: dict[str, str] = {}
        while True:
            page = self.functions.list_aliases(FunctionName=self.function_name, **marker)
            named = ((queue_of(each["Name"]), each["AliasArn"]) for each in page["Aliases"])
            found |= {queue: arn for queue, arn in named if queue is not None}
            if not page.get("NextMarker"):
                return dict(sorted(found.items()))
            marker = {"Marker": page["NextMarker"]}


def policy_for(arn: str) -> dict[str, Any]:
    """The IAM policy that lets people in through this entrance only."""
    statement = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": arn}
    return {"Version": "2012-10-17", "Statement": [statement]}
