"""The health of a container instance, in ECS's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MOST_WORDS = 300  # characters that are kept


def impairment(checks: Iterable[Mapping[str, Any]]) -> str:
    """The failed ones of its checks. Raises AttributeError for checks that are none."""
    failed = [f"{each.get('type')} {each.get('statusReason') or ''}" for each in checks if each["status"] == "IMPAIRED"]
    return f"ECS says IMPAIRED: {', '.join(map(str.strip, failed))}"[:MOST_WORDS].encode(errors="replace").decode()
