"""Planted bugs of pages and reports that a reader would not notice."""

from __future__ import annotations

from argosy.figures import history, markup
from argosy.loopback import server
from argosy.ui import guard, pages
from tests.mutations.catalogue import Patch, planted, scenario

RUN_PAGE = "tests.unit.figures.test_run_page"


@planted(
    "what tasks print is markup in a page",
    check=scenario(RUN_PAGE, "test_hostile_names_and_reasons_stay_text"),
)
def text_from_outside_is_markup(patch: Patch) -> None:
    patch.setattr(markup, "escape", lambda text: text)


@planted(
    "pictures draw a later fact about an attempt as a second attempt",
    check=scenario(RUN_PAGE, "test_a_row_that_amends_replaces_what_became_of_an_attempt_of_an_earlier_page"),
)
def amended_attempts_are_drawn_twice(patch: Patch) -> None:
    patch.setattr(history, "_amended", lambda columns: columns)


@planted(
    "the page of another origin may look at the deployment's",
    check=scenario("tests.unit.ui.test_guard", "test_a_stranger_is_refused_before_the_token_counts"),
)
def strangers_may_look(patch: Patch) -> None:
    patch.setattr(pages, "stranger", lambda environ: None)
    patch.setattr(server, "stranger", lambda environ: None)


@planted(
    "a form's token counts again and again",
    check=scenario("tests.unit.ui.test_guard", "test_only_the_newest_forms_have_a_token"),
)
def confirmations_count_twice(patch: Patch) -> None:
    patch.setattr(guard.Guard, "spent", lambda self, action, given: self.token_for(action) == given)
