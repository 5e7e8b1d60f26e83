"""Values that users type: times such as `10m`, `17:03` or `2026-11-21T17:03Z`, and counts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from argosy.cli.plain_help import PlainCommand
from argosy.cli.problems import CliError, reported

_AGO = re.compile(r"(\d{1,9}(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
FORMS = "a time (2026-11-21T17:03, 17:03:20, in UTC unless it has an offset) or how long ago (90s, 10m, 2h, 3d)"


def past_moment(text: str, now: float) -> float:
    """Epoch seconds. Raises CliError for text that is not a time, or for a time in the future."""
    try:
        at = moment(text, now)
    except ValueError as fault:
        raise CliError(f"--since: {fault}.") from fault
    if at >= now:
        raise CliError(f"--since {text[:60]} is in the future.")
    return at


def coming_moment(text: str, now: float) -> float:
    """Epoch seconds. A time without a date is the next one. Raises CliError for text that is not a time, or for one in
    the past."""
    try:
        if _AGO.fullmatch(text):
            raise ValueError(f"{text[:60]!r} is not a time (2026-11-21T17:03, 17:03, in UTC unless it has an offset)")
        at = moment(text, now)
    except ValueError as fault:
        raise CliError(f"--until: {fault}.") from fault
    if at <= now and ":" in text and "T" not in text:
        at += 86_400
    if at <= now:
        raise CliError(f"--until {text[:60]} is in the past.")
    return at


def moment(text: str, now: float) -> float:
    """Epoch seconds. A time without a date is the most recent one. Raises ValueError with a sentence."""
    if ago := _AGO.fullmatch(text):
        return now - float(ago[1]) * _SECONDS[ago[2]]
    today = datetime.fromtimestamp(now, UTC)
    try:
        clock = ":" in text and "T" not in text
        found = datetime.fromisoformat(f"{today:%Y-%m-%d}T{text}" if clock else text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not {FORMS}") from None
    at = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return at - 86_400 if clock and at > now else at


COUNTS: dict[str | None, str] = {"desired": "tasks", "instances": "instances"}  # by the name of the parameter
_NEGATIVE = re.compile(r"-[0-9]+", re.ASCII)


class CountCommand(PlainCommand):
    """A command whose only number is a count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        wrong = next((word for word in args if _NEGATIVE.fullmatch(word)), None)
        if wrong is not None and not ctx.resilient_parsing:
            with reported():
                raise CliError(f"{wrong} is not a number of {self.counted(ctx)}: give 0 or more; nothing was changed.")
        return super().parse_args(ctx, args)

    def counted(self, ctx: Any) -> str:
        """The noun that is counted."""
        return next(COUNTS[each.name] for each in self.get_params(ctx) if each.name in COUNTS)
