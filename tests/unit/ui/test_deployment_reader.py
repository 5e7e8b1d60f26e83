"""The data of a page is read once for all tabs, pages of attempts that cannot change are read only once, and a failed
part leaves the rest of the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from argosy import figures
from argosy.client.api import ApiError
from argosy.figures.document import Page, parts
from argosy.figures.history import column, stored
from argosy.ui import tasks
from argosy.ui.deployment_reader import CLUSTER_S, ENDED_S, RUN_S, DeploymentReader, NoSuchPage
from tests.fakes.cli import NOW, RUN_ID
from tests.fakes.reader import Api, Reached, reader

STYLE = Path(figures.__file__).parent / "static" / "page.css"


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> float:
        return self.time


def with_clock(instances: int = 5, attempts: int = 60) -> tuple[DeploymentReader, Api, Clock]:
    api, clock = Api(instances, attempts), Clock()
    access: Any = Reached(api, b"{}")
    return DeploymentReader(access, clock), api, clock


def keys(page: Page) -> dict[str, str]:
    return {each.key: each.empty for each in page.figures}


def test_many_tabs_are_one_look_until_it_is_old() -> None:
    shown, api, clock = with_clock()
    first = shown.run(RUN_ID)
    assert shown.run(RUN_ID) is first
    assert api.asked.count("describe") == 1
    clock.time += RUN_S
    assert shown.run(RUN_ID) is not first


def test_a_page_of_attempts_that_another_follows_is_read_once() -> None:
    shown, api, clock = with_clock()
    [page] = api.pages
    api.pages = [
        {**page, "nextToken": "1"},
        {**page, "columns": {name: stored(column(each)[:0]) for name, each in page["columns"].items()}},
    ]
    for _ in range(3):
        shown.run(RUN_ID)
        clock.time += RUN_S
    assert [each for each in api.asked if each.startswith("attempts")] == ["attempts None", *["attempts 1"] * 3]


def test_every_colour_of_the_pages_is_in_the_style_sheet() -> None:
    shown, _, _ = with_clock(instances=40)
    known = set(re.findall(r"\.(s-[\w-]+)", STYLE.read_text(encoding="utf-8")))
    pages = [shown.run(RUN_ID), shown.cluster(), shown.queues()]
    used = {
        name for page in pages for text in parts(page).values() for name in re.findall(r"[\" ](s-[\w-]+)[\" ]", text)
    }
    assert used - known == set()


def test_the_page_of_a_run_has_the_use_of_its_tasks_and_their_gpus() -> None:
    shown, _, _ = with_clock()
    notes = {each.key: each.note for each in shown.run(RUN_ID).figures}
    assert notes["gpu-use"] == "9.0 of 22.5 GiB, 60 % of the time, 150 W."
    assert notes["use"].startswith("0.26 of ")


def test_an_unknown_run_has_no_page() -> None:
    with pytest.raises(NoSuchPage, match="no run 'other'"):
        reader().run("other")


@pytest.mark.parametrize("action", ["history", "attempts"])
def test_a_deployment_that_does_not_know_an_action_shows_the_rest(action: str) -> None:
    shown, api, _ = with_clock()

    def refused(*given: Any) -> Any:
        raise ApiError(400, {"code": "ValidationException", "message": "action is unknown", "requestId": "r"})

    setattr(api, action, refused)
    page = shown.run(RUN_ID)
    assert keys(page)["attempts"]
    assert next(tile.value for tile in page.tiles if tile.label == "Attempts") == "60"


def test_the_plan_of_a_run_is_made_from_the_spec_among_its_results() -> None:
    shown, api, clock = with_clock()
    assert shown.plan(RUN_ID).heading == "Plan of digits"
    clock.time += ENDED_S / 2
    shown.plan(RUN_ID)
    assert api.asked.count("plan") == 1


def test_a_run_without_a_spec_has_no_plan() -> None:
    access: Any = Reached(Api(5, 60), None)
    with pytest.raises(NoSuchPage, match="cannot be read"):
        DeploymentReader(access, lambda: NOW).plan(RUN_ID)


def test_a_cell_of_the_cluster_names_its_tasks_and_their_gpus() -> None:
    shown, api, clock = with_clock()
    [page] = api.pages
    outcome, mask = (column(page["columns"][name]).copy() for name in ("outcome", "gpuMask"))
    outcome[7], mask[7] = 0, 5
    page["columns"] |= {"outcome": stored(outcome), "gpuMask": stored(mask)}
    api.view = {**api.view, "stoppedAt": None}
    page_of_cluster = shown.cluster()
    data = next(each.data for each in page_of_cluster.figures if each.key == "map")
    assert data is not None
    index = column(page["columns"]["index"])[7]
    place = data["ids"].index(page["instances"][column(page["columns"]["instance"])[7]])
    first, told, gpus = (column(data["work"][name]).tolist() for name in ("first", "index", "gpus"))
    assert (told[first[place] : first[place + 1]], gpus[first[place]]) == ([index], 5)
    assert (first[-1], data["runs"]) == (1, [RUN_ID])
    assert f"{RUN_ID}: {index} (GPU 0, 2)" in parts(page_of_cluster)["instances"]
    clock.time += CLUSTER_S / 2
    shown.cluster()
    assert api.asked.count("cluster") == 1


def test_the_market_asks_for_prices_again_when_there_are_other_pools() -> None:
    shown, _, clock = with_clock()
    asked: list[Any] = []
    shown.access.client = lambda service, region=None: asked.append(region) or Reached(Api(1, 1), None).client(service)  # type: ignore[func-returns-value,method-assign]
    shown.market()
    clock.time += CLUSTER_S
    shown.market()
    assert asked == ["us-east-1"]
    api: Any = shown.access.api
    cluster = api.cluster()
    api.cluster = lambda: {**cluster, "fleets": [{**each, "instanceType": "m5.large"} for each in cluster["fleets"]]}
    clock.time += CLUSTER_S
    assert "m5.large in us-east-1a" in parts(shown.market())["verdicts"]
    assert len(asked) == 2


def test_a_cell_whose_prices_cannot_be_read_is_named_and_hides_nothing_else() -> None:
    shown, _, _ = with_clock()

    class Refusing:
        def get_paginator(self, name: str) -> None:
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeSpotPriceHistory")

    shown.access.client = lambda service, region=None: Refusing()  # type: ignore[method-assign]
    page = shown.market()
    assert ("prices cannot be read in", "us-east-1") in page.facts
    assert "c5.xlarge in us-east-1a" in parts(page)["verdicts"]


def test_a_fault_of_ours_is_not_taken_for_one_of_the_prices() -> None:
    shown, _, _ = with_clock()
    shown.access.client = lambda service, region=None: None  # type: ignore[method-assign]
    with pytest.raises(AttributeError):
        shown.market()


def test_the_page_of_a_run_says_what_failed_attempts_printed_last_and_reads_it_once() -> None:
    look = reader()
    shown = "".join(parts(look.run(RUN_ID)).values())
    assert "the last line of argosy/main/3" in shown
    asked = look.access.api.asked  # type: ignore[attr-defined]
    look.now = lambda: NOW + 10
    look.run(RUN_ID)
    assert [each for each in asked if each.startswith("task")] == ["task 3", "task 9"]


def test_the_page_of_a_run_leads_to_its_tasks_which_are_one_look_until_they_are_old() -> None:
    shown, api, clock = with_clock()
    assert f'<a href="/runs/{RUN_ID}/tasks">' in parts(shown.run(RUN_ID))["summary"]
    for query in ("", "state=failed", "sort=-duration"):
        assert tasks.tasks(shown, "last", query).heading == f"Tasks of {RUN_ID}"
    assert api.asked.count("statuses") == 1
    clock.time += RUN_S
    tasks.tasks(shown, RUN_ID, "")
    assert api.asked.count("statuses") == 2
    with pytest.raises(NoSuchPage):
        tasks.tasks(shown, "other", "")


def test_the_table_of_tasks_leads_to_the_log_of_each_which_is_read_again_when_it_is_old() -> None:
    shown, api, clock = with_clock()
    assert f'<a href="/runs/{RUN_ID}/tasks/3">' in parts(tasks.tasks(shown, RUN_ID, ""))["tasks"]
    for _ in range(2):
        page = tasks.task(shown, "last", "3", "attempt=1")
        assert "06:27:33 the last line of argosy/main/3" in parts(page)["log"]
    assert api.asked.count("task 3") == 1
    clock.time += RUN_S
    assert "Log of attempt 2" in parts(tasks.task(shown, "last", "3", ""))["log"]
    with pytest.raises(NoSuchPage):
        tasks.task(shown, "other", "3", "")


@pytest.mark.parametrize(
    ("code", "said"),
    [("AccessDeniedException", "permission logs:GetLogEvents"), ("ResourceNotFoundException", "No line has arrived")],
)
def test_a_log_that_cannot_be_read_hides_no_attempt(code: str, said: str) -> None:
    shown, _, _ = with_clock()

    class Refusing:
        def get_log_events(self, **asked: Any) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetLogEvents")

        get_object = get_log_events

    shown.access.client = lambda service, region=None: Refusing()  # type: ignore[method-assign]
    page = parts(tasks.task(shown, RUN_ID, "3", ""))
    assert said in page["log"]
    assert "i-0000000000000000a" in page["attempts"]


def test_the_page_of_a_task_has_the_use_of_the_attempt_that_it_shows() -> None:
    shown, _, _ = with_clock()
    assert "0.26 of" in parts(tasks.task(shown, RUN_ID, "3", ""))["use"]


def test_a_log_that_goes_elsewhere_says_so() -> None:
    shown, api, _ = with_clock()
    api.live |= {"logStream": None}
    assert "does not write to CloudWatch" in parts(tasks.task(shown, RUN_ID, "3", ""))["log"]


def test_a_page_is_found_by_name_and_as_that_of_the_last_run() -> None:
    look = reader()
    assert look.run("last").heading == look.run(RUN_ID).heading == look.run("digits").heading
    with pytest.raises(NoSuchPage, match="There is no run 'nothing'"):
        look.run("nothing")


def test_the_page_of_the_queues_is_one_look_until_it_is_old() -> None:
    shown, api, clock = with_clock()
    for _ in range(2):
        assert "research" in parts(shown.queues())["queues"]
    assert api.asked == ["sharing"]
    clock.time += CLUSTER_S
    shown.queues()
    assert api.asked == ["sharing", "sharing"]


def test_the_page_of_a_run_leads_to_the_queues() -> None:
    shown, api, _ = with_clock()
    api.view = {**api.view, "queue": "prod"}
    assert '<a href="/queues">prod</a>' in parts(shown.run(RUN_ID))["summary"]


def test_the_task_stream_reads_a_run_that_has_ended_once() -> None:
    shown, api, clock = with_clock(instances=20, attempts=300)
    clock.time += 7_000
    for _ in range(3):
        found = tasks.stream(shown)
        clock.time += CLUSTER_S
    assert [api.asked.count(each) for each in ("history", "attempts None", "runs")] == [1, 1, 3]
    assert f"/runs/{RUN_ID}" in parts(found)["stream"]
    clock.time += 7_000
    assert "No task has run" in parts(tasks.stream(shown))["stream"]
