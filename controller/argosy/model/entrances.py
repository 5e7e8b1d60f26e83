"""How are the entrances of queues named?

An entrance is an alias of the api function, which IAM lets some people invoke. People who invoke the function without
an alias have the whole deployment. An alias is named after its queue; the queue itself may not exist.
"""

from __future__ import annotations

QUEUE_NAME = r"^[a-z][a-z0-9-]{0,62}$"
PREFIX = "q-"
LATEST = "$LATEST"  # the version that all our aliases name: the function has no others
_WHOLE, _QUALIFIED = 7, 8  # number of parts in a function's ARN, without and with a qualifier


def alias_of(queue: str) -> str:
    """The alias that members of the queue use."""
    return f"{PREFIX}{queue}"


def queue_of(alias: str) -> str | None:
    """The queue that the alias is named after; None for another kind of alias, or a version."""
    return alias.removeprefix(PREFIX) if alias.startswith(PREFIX) else None


def alias_in(arn: str) -> str:
    """The alias or version with which a function was invoked; "" = none, or the latest version, which is the same.
    Raises ValueError for text that is not a function's ARN, so that no caller counts as the deployment's owner by
    mistake."""
    parts = arn.split(":")
    if len(parts) not in (_WHOLE, _QUALIFIED) or parts[5] != "function":
        raise ValueError(f"{arn} is not the ARN of a function")
    qualifier = parts[7] if len(parts) == _QUALIFIED else ""
    return "" if qualifier == LATEST else qualifier
