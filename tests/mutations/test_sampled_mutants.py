"""Are nineteen of twenty sampled mutants found, and does the program that samples them work as its page says?"""

from __future__ import annotations

import ast
import random

import pytest

from tests.mutations import sampled_page
from tests.mutations.mutants import ROOT, Source
from tests.mutations.sampled import BATCHES_S, TESTS_S, batches, chosen
from tests.mutations.survivors import EQUIVALENT, MISSED_BY_TRIALS, SURVIVED_ONCE

PAGE = ROOT / "docs" / "reference" / "planted-bugs.md"
_, VERDICTS = sampled_page.read()


def test_the_page_tells_of_the_recorded_run() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(sampled_page.text())


def test_the_suite_finds_nineteen_of_twenty() -> None:
    score = sampled_page.Score.of(VERDICTS)
    assert score.mutants == 150
    assert score.share >= 0.95


def test_what_was_not_found_at_first_is_explained_or_found_now() -> None:
    names = {each.name for each in VERDICTS}
    assert {*EQUIVALENT, *SURVIVED_ONCE} <= names
    assert not {*EQUIVALENT} & {*SURVIVED_ONCE}
    found = {each.name for each in VERDICTS if each.found}
    assert {*SURVIVED_ONCE} <= found
    assert names - found == {*EQUIVALENT}


def test_trials_find_half_of_those_that_they_were_asked_for_and_the_others_are_explained() -> None:
    asked = [each for each in VERDICTS if each.trials is not None]
    assert len(asked) == sampled_page.DRAWN
    assert 2 * sum(bool(each.trials) for each in asked) >= len(asked)
    assert {each.name for each in asked if not each.trials} == {*MISSED_BY_TRIALS}


SHORT = "controller/argosy/engine/intake.py"


def test_a_mutant_is_the_file_with_one_statement_changed() -> None:
    source = Source(SHORT)
    before = (ROOT / SHORT).read_text(encoding="utf-8")
    for each in [source.drawn(line, random.Random(1)) for _, line in source.lines]:
        ast.parse(each.text)
        assert each.before != each.after
        assert each.text != before
        assert 0 <= each.first <= each.last


def test_the_handlers_of_facts_are_changed_although_they_are_decorated() -> None:
    path = "controller/argosy/lifecycle/apply.py"
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    places = {line for _, line in Source(path).lines}
    handlers = [number for number, line in enumerate(lines, 1) if line.startswith("@_apply.register")]
    assert len(handlers) > 10
    assert all(any(start < place < start + 8 for place in places) for start in handlers)


def test_no_text_for_people_is_changed() -> None:
    source = Source("controller/argosy/scheduler/buying/reasons.py")
    drawn = {(line, source.number_drawn(line, random.Random(0))) for _, line in source.lines}
    texts = [source.mutant(line, number).after for line, number in drawn]
    assert not [text for text in texts if "XX" in text and " " in text.split("XX")[1]]


@pytest.mark.parametrize("seconds", [0.5, 5.0, 50.0])
def test_quick_tests_come_first_and_none_twice(seconds: float) -> None:
    tests = {f"test_{number}": seconds for number in range(20)}
    taken = chosen(tests)
    assert sum(taken.values()) <= TESTS_S
    parts = list(batches(taken))
    assert [test for part in parts for test in part] == list(taken)
    assert all(sum(part.values()) <= BATCHES_S[-1] for part in parts[:-1])
