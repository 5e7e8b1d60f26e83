"""Refusal of a number below zero where a count is expected: the shell's words make an option of it."""

from __future__ import annotations

import re
from typing import Any

from argosy.cli.plain_help import PlainCommand
from argosy.cli.problems import CliError, reported

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
