"""The interval between two requests of a waiting program, and how much silence it bears."""

from __future__ import annotations

from argosy.client.access import Access
from argosy.client.waiting import FAILURES_LIMIT, LOCAL_FAILURES_LIMIT

LOCAL_INTERVAL_S = 0.25
AWS_INTERVAL_S = 3.0  # each request is one invocation of the api


def interval_of(access: Access) -> tuple[float, int]:
    """Seconds between two requests, and how many may fail in a row."""
    if access.connection.is_loopback:
        return LOCAL_INTERVAL_S, LOCAL_FAILURES_LIMIT
    return AWS_INTERVAL_S, FAILURES_LIMIT
