"""The sentences about a place in line: figures with no more digits than say something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.api.standing import PlaceInLine
from argosy.api.standing_words import not_in_line, sentences, standing_view

TOLD = PlaceInLine(
    queue="research",
    owner="",
    queue_place=3,
    queues=7,
    run_place=1,
    runs=1,
    use=0.31,
    share=0.29,
    factor=1.0,
    limit="cpu",
    most_instances=0,
    used_by=[("prod", 0.52), ("research", 0.31)],
    ahead=1_204,
    runs_ahead=5,
    ends_per_minute=38.2,
    starts_in_s=1_920.0,
    low_s=1_200.0,
    high_s=3_300.0,
)
ASSUMED = "if nothing else is submitted and tasks take as long as before."


def test_the_whole_answer_is_three_sentences() -> None:
    assert list(sentences(TOLD, has_started=False)) == [
        "3rd of 7 queues: research uses 31 % of the cluster's cpu; by weight it is due 29 %.",
        "The cluster's cpu is used up: prod has 52 %, research has 31 %.",
        f"1,204 tasks of 5 runs come first, about 38 end a minute: first start in about 32 min (20-55), {ASSUMED}",
    ]


@pytest.mark.parametrize(
    ("seconds", "low", "high", "words"),
    [
        (0.0, 0.0, 60.0, "within 1 min"),
        (30.0, 0.0, 90.0, "within 2 min"),
        (90.0, 30.0, 150.0, "in about 1.5 min (0.5-2.5)"),
        (7_000.0, 3_600.0, 14_400.0, "in about 117 min (60-240)"),
        (12_600.0, 7_200.0, 25_200.0, "in about 3.5 h (2-7)"),
        (400_000.0, 200_000.0, 800_000.0, "in about 4.6 days (2.3-9.3)"),
    ],
)
def test_far_off_times_are_told_in_larger_units(seconds: float, low: float, high: float, words: str) -> None:
    told = replace(TOLD, starts_in_s=seconds, low_s=low, high_s=high, ahead=0, ends_per_minute=None)
    assert list(sentences(told, has_started=True))[-1] == (
        f"No task of another run comes first: next start {words}, {ASSUMED}"
    )


@pytest.mark.parametrize(
    ("place", "words"), [(1, "1st"), (2, "2nd"), (4, "4th"), (11, "11th"), (112, "112th"), (123, "123rd")]
)
def test_places_are_counted_as_people_do(place: int, words: str) -> None:
    told = replace(TOLD, queue_place=place, queues=200)
    assert next(iter(sentences(told, has_started=False))).startswith(f"{words} of 200 queues:")


def test_what_is_not_known_is_said_and_null_in_figures() -> None:
    view = standing_view(replace(TOLD, starts_in_s=None, why_unknown="nobody knows"), has_started=False)
    assert (view["startsIn"], view["whyUnknown"]) == (None, "nobody knows")
    assert view["sentences"][-1] == "When its first start comes is not known: nobody knows."
    assert not_in_line("it waits for its time")["sentences"] == ["It has no place in line: it waits for its time."]


def test_what_ends_meanwhile_is_told_where_nothing_comes_first() -> None:
    told = replace(TOLD, ahead=0, runs_ahead=0, limit="")
    assert list(sentences(told, has_started=False))[-1].startswith(
        "No task of another run comes first, and about 38 tasks end a minute: first start in about 32 min (20-55)"
    )


@pytest.mark.parametrize(("factor", "than", "times"), [(0.25, "more", "0.25"), (2.5, "less", "2.5")])
def test_what_was_used_lately_is_told_where_it_counts(factor: float, than: str, times: str) -> None:
    said = list(sentences(replace(TOLD, factor=factor), has_started=False))
    assert said[1] == f"research used {than} lately than it is due, so its weight counts {times} times."
