"""The sentences about a place in line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.api.waiting.line_position import LinePosition, not_in_line, sentences

POSITION = LinePosition(
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
    used_by=[("prod", 0.52), ("research", 0.31)],
    ahead=1_204,
    runs_ahead=5,
)


def test_the_whole_answer_is_three_sentences() -> None:
    assert list(sentences(POSITION)) == [
        "3rd of 7 queues: research uses 31 % of the cluster's cpu; its weight entitles it to 29 %.",
        "The cluster's cpu is used up: prod has 52 %, research has 31 %.",
        "1,204 waiting tasks of 5 runs are ahead of it.",
    ]


@pytest.mark.parametrize(
    ("place", "words"), [(1, "1st"), (2, "2nd"), (4, "4th"), (11, "11th"), (112, "112th"), (123, "123rd")]
)
def test_places_are_counted_as_people_do(place: int, words: str) -> None:
    said = next(iter(sentences(replace(POSITION, queue_place=place, queues=200))))
    assert said.startswith(f"{words} of 200 queues:")


@pytest.mark.parametrize(
    ("tasks", "runs", "words"),
    [
        (0, 0, "No waiting task of another run is ahead of it."),
        (1, 1, "1 waiting task of 1 run is ahead of it."),
        (2, 1, "2 waiting tasks of 1 run are ahead of it."),
    ],
)
def test_what_comes_first_is_counted(tasks: int, runs: int, words: str) -> None:
    assert list(sentences(replace(POSITION, ahead=tasks, runs_ahead=runs)))[-1] == words


def test_a_run_without_a_turn_says_what_it_waits_for() -> None:
    view = not_in_line("it waits for its start time")
    assert (view["reason"], view["sentences"]) == (
        "it waits for its start time",
        ["It has no place in line: it waits for its start time."],
    )


@pytest.mark.parametrize(("factor", "than", "times"), [(0.25, "more", "0.25"), (2.5, "less", "2.5")])
def test_recent_use_is_named_where_it_counts(factor: float, than: str, times: str) -> None:
    said = list(sentences(replace(POSITION, factor=factor)))
    assert said[1] == f"research recently used {than} than its share, so its weight is multiplied by {times}."
