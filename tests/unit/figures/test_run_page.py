"""The page of a run: its figures are the replies', hostile texts stay texts, and nothing is left blank."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.client.failures import kinds_of
from argosy.figures import lanes
from argosy.figures.document import Page, one_file, parts
from argosy.figures.history import Attempts, Fate, attempts_of, column, stored
from argosy.figures.run import how_long, lives_of, run_page
from tests.fakes.cli import NOW, ended, run_view, tasks
from tests.fakes.histories import history

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J\u202e'\""
MB = 1_000_000


def page_of(instances: int = 40, attempts: int = 900) -> Page:
    view, told, pages = history(instances, attempts)
    return run_page(view, told, attempts_of(pages))


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html))


def tiles(page: Page) -> dict[str, str]:
    return {tile.label: tile.value for tile in page.tiles}


def test_the_tiles_are_the_views_figures() -> None:
    view, told, pages = history(40, 900)
    shown = tiles(run_page(view, told, attempts_of(pages)))
    assert shown["Succeeded"] == f"{view['tasks']['succeeded']:,}"
    assert shown["Attempts"] == "900"
    assert shown["Cost"] == f"${view['costUsd']:.2f}"
    assert "Start-up" not in shown


def test_a_tile_splits_the_start_up_of_a_run_whose_tasks_have_started() -> None:
    view, told, pages = history(40, 900)
    view["startUp"] = {"bootSeconds": 93.0, "pullSeconds": 81.0, "startSeconds": 2.0, "starts": 9, "usd": 1.5}
    found = next(each for each in run_page(view, told, attempts_of(pages)).tiles if each.label == "Start-up")
    assert (found.value, found.note) == ("$1.50", "boot 1m 33s, pull 1m 21s, start 2.0 s")


def test_every_picture_has_a_table_whose_last_row_is_the_end() -> None:
    page = page_of()
    assert all(each.table for each in page.figures if each.picture is not None)
    states = next(each for each in page.figures if each.key == "states")
    assert states.table is not None
    assert states.table.rows[-1][1] == tiles(page)["Succeeded"]


def test_the_histogram_counts_each_attempt_once() -> None:
    page = page_of()
    [seconds] = [each for each in page.figures if each.key == "seconds"]
    assert seconds.table is not None
    assert sum(int(str(cell).replace(",", "")) for row in seconds.table.rows for cell in row[2:]) == 900


def test_attempts_that_took_very_different_times_get_an_axis_of_powers() -> None:
    view, told, [page] = history(10, 200)
    started = column(page["columns"]["started"])
    ran = np.geomspace(1, 100_000, len(started)).astype("u4")
    page["columns"]["stopped"] = stored(started + ran)
    seconds = next(each for each in run_page(view, told, attempts_of([page])).figures if each.key == "seconds")
    assert seconds.table is not None
    assert "10 min" in str(seconds.picture)
    assert sum(int(str(cell).replace(",", "")) for row in seconds.table.rows for cell in row[2:]) == 200


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.lists(st.integers(0, 10**6), max_size=5))
def test_a_histogram_holds_each_attempt_that_ended_once_however_short(usual: list[int], long: list[int]) -> None:
    _, _, [page] = history(1, len(usual) + len(long))
    started = column(page["columns"]["started"])
    page["columns"]["stopped"] = stored(started + np.array(usual + long, "u4"))  # tenths of a second
    found = how_long(attempts_of([page]))
    assert found.table is not None
    assert sum(int(str(cell).replace(",", "")) for row in found.table.rows for cell in row[2:]) == len(started)
    assert len(found.table.rows) <= 33


def test_attempts_of_less_than_a_second_have_an_axis_with_ticks_and_no_comb() -> None:
    _, _, [page] = history(1, 60)
    page["columns"]["stopped"] = stored(column(page["columns"]["started"]) + np.tile(np.arange(6, dtype="u4"), 10))
    found = how_long(attempts_of([page]))
    assert "0.2 s" in str(found.picture)
    assert found.table is not None
    counts = [sum(map(int, row[2:])) for row in found.table.rows]
    assert [each for each in counts if each] == [10] * 6


def test_a_table_with_text_names_each_cell_for_narrow_pages_and_keeps_its_roles() -> None:
    made = parts(page_of())
    assert 'data-head="Why: "' in made["failures"]
    assert 'role="cell"' in made["failures"]
    assert "data-head" not in made["states"]  # only numbers: it keeps its columns


def test_failures_are_grouped_by_cause_with_the_way_to_a_log() -> None:
    shown = text_of(parts(page_of())["failures"])
    assert re.search(r"7\s+exit 1\s+3 to 412", shown)
    assert "out of memory: killed (OutOfMemoryError)" in shown
    assert "Essential container" not in shown
    assert "argosy logs digits-261121-062733-k3f9 --task 3" in shown


def test_the_last_line_of_a_failed_attempt_is_shown_with_its_cause_and_never_as_markup() -> None:
    view, told, [page] = history(3, 20)
    kinds = [replace(each, said="<script>boom</script>\x1b[2J") for each in kinds_of(view)]
    shown = parts(run_page(view, told, attempts_of([page]), kinds=kinds))["failures"]
    assert "&lt;script&gt;boom" in shown
    assert "\x1b" not in shown


def test_without_groups_the_last_failures_are_grouped() -> None:
    failure = {"index": 3, "attempt": 1, "exitCode": 1, "reason": "boom", "instance": "i-1", "taskArn": None}
    view = ended("FAILED", failures=[failure, {**failure, "index": 9}], cost={"byWaste": {}})
    shown = text_of(parts(run_page(view, None, None))["failures"])
    assert re.search(r"2\s+exit 1: boom\s+3 to 9", shown)


def test_a_run_that_has_just_begun_says_so_in_every_figure() -> None:
    page = run_page(run_view(tasks=tasks(pending=9), startedAt=None), None, None, None, NOW)
    assert all(each.empty for each in page.figures)
    assert "no task has started yet" in {tile.note for tile in page.tiles}


def test_an_open_run_explains_itself_and_says_what_is_bought_late_or_used_up() -> None:
    reason = {"refused": 3, "detail": "needs 4 GPUs"}
    explained = {"sentence": "no instance fits", "cluster": {"reasons": [reason]}, "coming": None, "market": None}
    explained["standing"] = {"sentences": ["2nd of 7 queues"]}
    view = run_view(
        waiting="no capacity",
        purchase={"now": "on-demand", "reason": "14 min of slack left"},
        deadline="2026-11-21T18:00:00Z",
        late=True,
        budget={"usedUp": True, "budgetUsd": 2.0},
    )
    shown = text_of(" ".join(parts(run_page(view, None, None, explained, NOW)).values()))
    for text in (
        "no instance fits",
        "2nd of 7 queues",
        "needs 4 GPUs",
        "no capacity",
        "14 min of slack",
        "missed",
        "$2.00 is used up",
    ):
        assert text in shown


def test_hostile_names_and_reasons_stay_text() -> None:
    view, told, pages = history(3, 20)
    view["failureGroups"][0]["reason"] = HOSTILE
    told["instances"][0]["type"] = HOSTILE
    view |= {"statusReason": HOSTILE, "runId": HOSTILE, "output": HOSTILE}
    made = one_file(run_page(view, told, attempts_of(pages)), HOSTILE)
    assert len(re.findall(r"<script", made)) == 2
    assert "<img" not in made
    assert not {"\x1b", "\u202e"} & set(made)


def test_a_file_loads_nothing_and_allows_only_its_own_script_and_style() -> None:
    made = one_file(page_of(), "argosy report run x")
    assert not re.search(r"https?://", re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL))
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', made)
    assert "unsafe" not in policy
    assert unescape(policy).count("'sha256-") == 2
    assert not re.search(r"\sstyle=|\son[a-z]+=", re.sub(r"<(script|style).*?</\1>", "", made, flags=re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize(("instances", "attempts", "most"), [(1_000, 20_000, 1.0), (5_000, 100_000, 2.5)])
def test_a_report_stays_small(instances: int, attempts: int, most: float) -> None:
    made = one_file(page_of(instances, attempts), "argosy report run x")
    assert len(made.encode()) <= most * MB


def test_the_picture_of_attempts_has_each_of_them_in_the_lane_of_its_instance() -> None:
    view, told, pages = history(20, 300)
    attempts = attempts_of(pages)
    data = next(each for each in run_page(view, told, attempts).figures if each.key == "attempts").data
    assert data is not None
    lane = column(data["attempts"]["lane"])
    start = column(data["attempts"]["start"])
    found = sorted(
        (data["instances"]["ids"][place], int(index), int(at))
        for place, index, at in zip(lane, column(data["attempts"]["index"]), start, strict=True)
    )
    names = [attempts.instances[place] for place in attempts.instance.tolist()]
    assert found == sorted(
        (name, int(index), round(at * 10))
        for name, index, at in zip(names, attempts.index, attempts.started.tolist(), strict=True)
    )
    assert (np.diff(lane.astype("i8")) >= 0).all()
    launched = column(data["instances"]["launched"])
    assert (np.diff(launched.astype("i8")) >= 0).all()


def test_a_huge_run_shows_every_nth_instance_with_all_of_its_attempts() -> None:
    _, told, pages = history(50, 1_000)
    attempts = attempts_of(pages)
    lives = lives_of(told, attempts)
    kept, shown, step = lanes.thinned(lives, attempts, 300)
    assert (step, len(kept)) == (4, 13)
    counts = np.bincount(attempts.instance, minlength=50)
    wanted = sum(int(counts[attempts.instances.index(life.id)]) for life in kept)
    assert len(shown) == wanted


def test_pages_of_attempts_are_joined_whatever_they_call_their_instances() -> None:
    _, _, [page] = history(5, 60)
    whole = attempts_of([page])
    half = {name: stored(column(each)[:30]) for name, each in page["columns"].items()}
    order = list(reversed(range(5)))
    other = {name: stored(column(each)[30:]) for name, each in page["columns"].items()}
    other["instance"] = stored(np.array(order, "u4")[column(other["instance"])])
    renamed = [page["instances"][place] for place in order]
    joined = attempts_of([{**page, "columns": half}, {**page, "columns": other, "instances": renamed}])
    names = lambda found: [found.instances[place] for place in found.instance.tolist()]  # noqa: E731
    assert names(joined) == names(whole)
    assert (joined.started == whole.started).all()


def test_no_pages_are_no_attempts() -> None:
    none = attempts_of([])
    assert (len(none), none.instances) == (0, [])


def test_attempts_have_one_fate_each_and_those_that_never_started_ran_no_time() -> None:
    found = Attempts(
        *(np.arange(9, dtype="u4") for _ in range(2)),
        instance=np.zeros(9, "u4"),
        started=np.array([0.0, 1, 1, 1, 1, 1, 0, 1, 1]),
        stopped=np.array([5.0, 5, 5, 5, 5, 5, 5, 5, 5]),
        outcome=np.arange(9, dtype="u1"),
        exit_code=np.zeros(9, "i4"),
        reason=np.zeros(9, "u4"),
        gpu_mask=np.zeros(9, "u4"),
        pulled=np.zeros(9),
        instances=["i-1"],
        reasons=[""],
    )
    assert found.ran.tolist() == [0, 4, 4, 4, 4, 4, 0, 4, 4]
    assert [Fate(each).name for each in found.fate.tolist()][1:8] == [
        "SUCCEEDED", "FAILED", "FAILED", "LOST", "LOST", "FAILED", "CANCELLED",
    ]  # fmt: skip


def test_an_instance_that_lives_still_ends_with_the_last_thing_that_is_known() -> None:
    _view, told, pages = history(5, 60)
    told["instances"][0]["endedAt"] = None
    lives = lives_of(told, attempts_of(pages))
    assert lives[0].ended == max(life.ended for life in lives)
    assert not lives[0].interrupted


def test_the_same_replies_give_the_same_bytes() -> None:
    assert one_file(page_of(), "x") == one_file(page_of(), "x")


def test_what_is_left_out_of_a_long_table_is_counted() -> None:
    page = page_of(300, 900)
    assert "100 more rows are not shown." in text_of(parts(page)["attempts"])


def test_a_row_that_amends_replaces_what_became_of_an_attempt_of_an_earlier_page() -> None:
    _, _, [page] = history(5, 60)
    of = {name: column(each) for name, each in page["columns"].items()}
    later = {name: each[[7]].copy() for name, each in of.items()}
    later |= {"outcome": np.array([2], "u1"), "exitCode": np.array([9], "i2"), "amends": np.array([1], "u1")}
    unknown = {**later, "index": np.array([10_000], "u4")}
    further = [{**page, "columns": {name: stored(each) for name, each in part.items()}} for part in (later, unknown)]
    found = attempts_of([page, *further])
    assert len(found) == 60
    assert (found.outcome[7], found.exit_code[7]) == (2, 9)
    assert found.instances[found.instance[7]] == page["instances"][of["instance"][7]]


def test_an_attempt_that_is_alive_is_drawn_until_now() -> None:
    view, told, [page] = history(5, 60)
    outcome, stopped = (column(page["columns"][name]).copy() for name in ("outcome", "stopped"))
    outcome[3], stopped[3] = 0, 0
    page["columns"] |= {"outcome": stored(outcome), "stopped": stored(stopped)}
    data = next(each for each in run_page(view, told, attempts_of([page])).figures if each.key == "attempts").data
    assert data is not None
    [row] = np.flatnonzero(column(data["attempts"]["outcome"]) == 0)
    end = column(data["attempts"]["start"])[row] + column(data["attempts"]["ran"])[row]
    assert int(end) == pytest.approx(10 * data["seconds"], abs=2)


def test_what_was_bought_for_a_run_says_why_and_what_came_of_it() -> None:
    view, told, pages = history(30, 100)
    shown = " ".join(text_of(parts(run_page(view, told, attempts_of(pages)))["bought"]).split())
    assert "3 orders for all runs whose tasks had no place at the time." in shown
    assert "spot 10 10 $0.070 for tasks without a place" in shown
    told["orders"][0]["usdPerHour"] = None
    assert text_of(parts(run_page(view, told, attempts_of(pages)))["bought"]).count("$0.07") == 2
    none = run_page(view, {**told, "orders": []}, attempts_of(pages))
    assert "No purchases for it" in text_of(parts(none)["bought"])


def test_unreadable_parts_of_a_history_are_reported_at_the_top() -> None:
    view, told, [page] = history(30, 100)
    assert not run_page(view, told, attempts_of([page])).warnings
    told = {**told, "damaged": 2, "instancesLeftOut": 1_000}
    warnings = run_page(view, told, attempts_of([{**page, "damaged": 1}])).warnings
    assert warnings == [
        "3 pieces of the run's history cannot be read, and may be missing here.",
        "1,000 instances that ended long ago are known by name only.",
    ]


def test_the_page_of_a_run_that_is_being_cancelled_does_not_offer_to_cancel_it() -> None:
    page = run_page(run_view(status="CANCELLING"), None, None, None, NOW)
    assert page.status == "CANCELLING"
    assert [command for _, command in page.next_steps] == ["argosy watch digits-261121-062733-k3f9"]
