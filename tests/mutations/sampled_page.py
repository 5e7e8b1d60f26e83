"""The page about sampled mutants, made from `sampled.json` and the judgements kept by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutations.mutants import PACKAGES
from tests.mutations.sampled import TESTS_S
from tests.mutations.survivors import EQUIVALENT, MISSED_BY_TRIALS, SURVIVED_ONCE

DRAWN = 24  # for trials
RECORD = Path(__file__).with_name("sampled.json")
HEAD = """
## Sampled mutants

The bugs above were chosen by people; these {count} were drawn by seed {seed} from six packages, one per line, with
mutmut's operators and two more, which leave out a call or a branch
([decision 28](../maintainers/decisions/0028-sampled-mutants.md)). For each, the unit tests that execute its line ran,
the quickest first and for at most {seconds:.0f} seconds of tests, until one failed. What these did not find met the
files of scenarios, properties and contracts about it. {drawn} drawn from `lifecycle` and `scheduler` also ran in 200
random trials under all faults: no invariant judges the other packages' answers and choices.

    python -m tests.mutations.sampled --seed {seed} --mutants {count} --at /tmp/mutants
    python -m tests.mutations.sampled --seed {seed} --mutants {count} --at /tmp/mutants --trials {drawn}

| package | mutants | equivalent | found by the suite | not found | found of | by trials | of |
|---|---|---|---|---|---|---|---|
"""
SURVIVORS = """
{found_at_first} of the {real} that are not equivalent were found in the first pass, on the suite of 28 November 2026.
The others follow: an equivalent mutant changes nothing that can be observed; the rest is found now, by a test written
for it. So the share above says that these were dealt with, not what another seed would show: of 150 drawn from five
packages by seed 17, 118 had been found in the first pass, on the suite of 22 November.

| mutant | change | found by, or equivalent because |
|---|---|---|
"""

MISSED = """
Trials found {by_trials} of {asked}. Since the first half of them ran, users of trials also retry and cancel suspended
runs, retry a run twice at once, drain instances and apply sharing documents through the api, and leave a broken
revision deployed; and three invariants are new: what has ended waits for nothing, a stopped deployment leaves its
service frozen, past use is shown only where it is remembered. On the way trials found a fault of the product: a retry
with another size of a run with a corrupt spec ended in an error instead of a refusal. Trials did not find these:

| mutant | change | why |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one mutant. found, trials: by which test or trial; "" = by none; trials None = not asked."""

    name: str
    before: str
    after: str
    found: str
    trials: str | None

    @property
    def package(self) -> str:
        return self.name.partition("/")[0]

    @property
    def equivalent(self) -> bool:
        return self.name in EQUIVALENT


@dataclass(frozen=True, slots=True)
class Score:
    """The results for some mutants: figures are counts."""

    mutants: int
    equivalent: int
    found: int
    asked: int
    by_trials: int

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Score:
        listed = list(verdicts)
        real = [each for each in listed if not each.equivalent]
        asked = [each for each in real if each.trials is not None]
        found, by_trials = sum(bool(each.found) for each in real), sum(bool(each.trials) for each in asked)
        return cls(len(listed), len(listed) - len(real), found, len(asked), by_trials)

    @property
    def share(self) -> float:
        return self.found / max(1, self.mutants - self.equivalent)

    def row(self, name: str) -> str:
        left = self.mutants - self.equivalent - self.found
        trials = f"{self.by_trials} | {self.asked}" if self.asked else "- | -"
        return (
            f"| {name} | {self.mutants} | {self.equivalent} | {self.found} | {left} | {self.share:.0%} | {trials} |\n"
        )


def read() -> tuple[int, list[Verdict]]:
    """The seed, and the result for each mutant."""
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record["seed"], [
        Verdict(name, each["before"], each["after"], each["found"], each.get("trials"))
        for name, each in record["mutants"].items()
    ]


def text() -> str:
    """The section of the page."""
    seed, verdicts = read()
    total, real = Score.of(verdicts), len(verdicts) - len(EQUIVALENT)
    page = HEAD.format(
        seed=seed,
        count=len(verdicts),
        seconds=TESTS_S,
        drawn=DRAWN,
    )
    for package in PACKAGES:
        page += Score.of(each for each in verdicts if each.package == package).row(f"`{package}`")
    page += total.row("all") + SURVIVORS.format(real=real, found_at_first=real - len(SURVIVED_ONCE))
    page += "".join(_row(each) for each in verdicts if each.equivalent or each.name in SURVIVED_ONCE)
    page += MISSED.format(by_trials=total.by_trials, asked=total.asked)
    return page + "".join(_missed(each) for each in verdicts if each.name in MISSED_BY_TRIALS)


def _row(each: Verdict) -> str:
    why = f"equivalent: {EQUIVALENT[each.name]}" if each.equivalent else each.found.rpartition("/")[2]
    return f"| {each.name} | {_code(each.before)} becomes {_code(each.after)} | {why} |\n"


def _missed(each: Verdict) -> str:
    return f"| {each.name} | {_code(each.before)} becomes {_code(each.after)} | {MISSED_BY_TRIALS[each.name]} |\n"


def _code(line: str) -> str:
    return f"`` {line.partition('  #')[0]} ``".replace("|", "\\|")
