"""How are the entrances of queues called? They are aliases of the api function, which IAM lets some people invoke.

Who invokes the function without an alias has the whole deployment. An alias is named after its queue, and does not
itself say whether there is such a queue.
"""

from __future__ import annotations

QUEUE_NAME = r"^[a-z][a-z0-9-]{0,62}$"
PREFIX = "q-"
LATEST = "$LATEST"  # what every alias of ours stands for: there are no versions of the function
_WHOLE, _QUALIFIED = 7, 8  # parts of a function's ARN, without and with a qualifier


def alias_of(queue: str) -> str:
    """The alias through which members of the queue come."""
    return f"{PREFIX}{queue}"


def queue_of(alias: str) -> str | None:
    """The queue that the alias is named after; None for an alias of another kind, or a version."""
    return alias.removeprefix(PREFIX) if alias.startswith(PREFIX) else None


def alias_in(arn: str) -> str:
    """The alias or version with which a function was invoked; "" = with none, or with the latest version, which is the
    same. Raises ValueError for what is no ARN of a function: nobody is taken for the deployment's owner by mistake."""
    parts = arn.split(":")
    if len(parts) not in (_WHOLE, _QUALIFIED) or parts[5] != "function":
        raise ValueError(f"{arn} is no ARN of a function")
    qualifier = parts[7] if len(parts) == _QUALIFIED else ""
    return "" if qualifier == LATEST else qualifier
