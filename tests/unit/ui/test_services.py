"""The requests of the pages of services and schedules, and their content if something is unavailable."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.client.api import ApiError
from argosy.figures.document import Page, parts
from argosy.ui import services
from argosy.ui.deployment_reader import RUN_S, DeploymentReader, NoSuchPage
from tests.fakes.cli import NOW
from tests.fakes.environments import RUN, RUN_3, environment
from tests.fakes.reader import Api, Reached, reader


def with_clock() -> tuple[DeploymentReader, Api, list[float]]:
    api, moment = Api(5, 60), [NOW]
    access: Any = Reached(api, b"{}")
    return DeploymentReader(access, lambda: moment[0]), api, moment


def empty(page: Page) -> set[str]:
    return {each.key for each in page.figures if each.empty}


def test_the_page_of_an_environment_reads_the_tasks_of_the_revisions_that_have_any() -> None:
    shown, api, _ = with_clock()
    page = services.service(shown, "web")
    assert [each for each in api.asked if each.startswith("tasks")] == [f"tasks {RUN}", f"tasks {RUN_3}"]
    assert api.asked.count("explain") == 1
    assert empty(page) == set()
    assert f'href="/runs/{RUN_3}"' in parts(page)["revisions"]


def test_many_tabs_are_one_look_and_what_its_runs_say_is_asked_more_seldom() -> None:
    shown, api, moment = with_clock()
    first = services.service(shown, "web")
    assert services.service(shown, "web") is first
    moment[0] += RUN_S
    assert services.service(shown, "web") is not first
    assert (api.asked.count("environment web"), api.asked.count("history")) == (2, 3)
    moment[0] += services.ANSWER_S
    services.service(shown, "web")
    assert api.asked.count("history") == 6


def test_a_service_of_which_nothing_waits_is_not_asked_why() -> None:
    shown, api, _ = with_clock()
    api.environment = lambda name: environment()  # type: ignore[method-assign]
    services.service(shown, "web")
    assert "explain" not in api.asked


@pytest.mark.parametrize(
    ("action", "lost"), [("tasks", {"tasks", "instances"}), ("history", {"over-time"}), ("describe", {"failures"})]
)
def test_what_a_deployment_cannot_answer_leaves_the_rest_of_the_page(action: str, lost: set[str]) -> None:
    shown, api, _ = with_clock()

    def refused(*given: Any, **wanted: Any) -> Any:
        raise ApiError(400, {"code": "ValidationException", "message": "action is unknown", "requestId": "r"})

    setattr(api, action, refused)
    assert empty(services.service(shown, "web")) == lost


def test_instances_of_a_cluster_that_does_not_answer_have_no_pool() -> None:
    shown, api, _ = with_clock()

    def refused() -> Any:
        raise ApiError(500, {"code": "InternalFailure", "message": "later", "requestId": "r"})

    api.cluster_columns = refused  # type: ignore[method-assign]
    page = services.service(shown, "web")
    assert "us-east-1" not in parts(page)["instances"]
    assert "instances" not in empty(page)


def test_names_that_are_not_there_have_no_page() -> None:
    with pytest.raises(NoSuchPage, match="There is none"):
        services.service(reader(), "other")
    with pytest.raises(NoSuchPage, match="There is none"):
        services.schedule(reader(), "other")


def test_a_refusal_of_another_kind_is_not_taken_for_a_name_that_is_not_there() -> None:
    shown, api, _ = with_clock()

    def refused(name: str) -> Any:
        raise ApiError(409, {"code": "ConflictException", "message": "it is corrupt", "requestId": "r"})

    api.environment = refused  # type: ignore[method-assign]
    with pytest.raises(ApiError, match="corrupt"):
        services.service(shown, "web")


def test_the_lists_and_a_schedule_are_read_once_for_all_tabs() -> None:
    shown, api, _ = with_clock()
    for _ in range(2):
        assert "web" in parts(services.services(shown))["services"]
        assert "often" in parts(services.schedules(shown))["schedules"]
        assert services.schedule(shown, "often").heading == "often"
    assert api.asked == ["environments", "schedules", "schedule often"]


def test_the_page_of_a_service_s_run_leads_to_the_service() -> None:
    shown, api, _ = with_clock()
    api.view = {**api.view, "environment": "web"}
    assert 'href="/services/web"' in parts(shown.run(api.view["runId"]))["summary"]
    assert 'href="/services/web"' not in parts(shown.read_run(api.view["runId"]))["summary"]
