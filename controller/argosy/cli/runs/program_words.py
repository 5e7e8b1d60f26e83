"""Which words of `argosy run` are Argosy's own options, and which belong to the program?

Options that Argosy knows are its own, before PROGRAM and after it. The first option after PROGRAM that it does not know
belongs to the program, and so does everything behind it. What could be meant in two ways is refused by name: an option
of Argosy's behind one of the program's, and one that is nearly Argosy's. With `--` nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from argosy.cli.plain_help import PlainCommand
from argosy.cli.problems import CliError, reported

NEARLY = 0.8  # of the letters of two options, in their order: --rnage and --range have 0.86, --output and --out 0.77
ABBREVIATED = 5  # characters, dashes included, from which the beginning of an option is taken for it: --mem

Takes = Mapping[str, bool]  # an option's name -> whether a value follows it


class ProgramCommand(PlainCommand):
    """A command whose PROGRAM has options of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes = {
            name: not getattr(each, "is_flag", False) and not getattr(each, "count", False)
            for each in self.get_params(ctx)
            if each.param_type_name == "option"
            for name in (*each.opts, *each.secondary_opts)
        }
        if not ctx.resilient_parsing:  # the shell completes what is not whole yet
            with reported():
                args = with_dashes(args, takes)
        return super().parse_args(ctx, args)


def with_dashes(words: Sequence[str], takes: Takes) -> list[str]:
    """The same words, with `--` before those that are the program's. Raises CliError for what could mean either."""
    own = _first_of_program(words, takes)
    if own is None:
        return list(words)
    for word in words[own:]:
        meant = _nearly(_name(word), takes)
        if meant:
            raise CliError(
                f"argosy run has no option {_name(word)}; did you mean {meant}?",
                next_step=f"if {_name(word)} is the program's, write -- before the program's own options",
            )
    behind = next((word for word in words[own:] if _name(word) in takes), None)
    if behind is not None:
        raise CliError(
            f"{_name(behind)} stands behind {_name(words[own])}, which is the program's: is it the program's, too?",
            next_step=f"if not, write it before {_name(words[own])}; if so, write -- before the program's own options",
        )
    return [*words[:own], "--", *words[own:]]


def _first_of_program(words: Sequence[str], takes: Takes) -> int | None:
    """Where the program's own options begin; None if `--` says so, or if there are none."""
    if "--" in words:
        return None
    at, program = 0, False
    while at < len(words):
        word = words[at]
        if len(word) < 2 or not word.startswith("-"):
            program = True
        elif _name(word) not in takes:
            return at if program else None
        elif takes[_name(word)] and "=" not in word:
            at += 1
        at += 1
    return None


def _name(word: str) -> str:
    return word.partition("=")[0]


def _nearly(name: str, takes: Takes) -> str | None:
    """The option of Argosy's that was probably meant."""
    if not name.startswith("--") or name in takes:
        return None
    shortened = [known for known in takes if len(name) >= ABBREVIATED and known.startswith(name)]
    alike = {known: SequenceMatcher(None, name, known).ratio() for known in takes if known.startswith("--")}
    best = max(alike, key=lambda known: alike[known])
    return shortened[0] if shortened else best if alike[best] >= NEARLY else None
