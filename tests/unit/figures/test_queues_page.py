"""The page of the queues says what DescribeSharing's reply says."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from argosy.figures.document import Page, parts
from argosy.figures.queues import queues_page
from argosy.figures.run import run_page
from tests.fakes.cli import run_view
from tests.fakes.sharing import alone, in_full, queue, sharing


def text_of(page: Page, key: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", parts(page)[key]))).strip()


def tiles(page: Page) -> dict[str, tuple[str, str]]:
    return {each.label: (each.value, each.note) for each in page.tiles}


def row_of(page: Page, key: str, name: str) -> str:
    """The markup of the first row that begins with the name."""
    rows = re.findall(r"<tr role=\"row\">.*?</tr>", parts(page)[key])
    return next(each for each in rows if re.search(rf"<td[^>]*>{name}</td>", each))


def test_the_queues_are_a_row_each_in_order_of_service() -> None:
    page = queues_page(in_full())
    said = text_of(page, "queues")
    assert "default 1 - 0 % 0 0 0 $0.00 - prod 4 57 % 31 % 2 900 900 $22.50 - research 2 29 % 46 %" in said
    assert "6 4,200 1,234,567 $40.00 owners night 0 - 25 %" in said
    assert tiles(page) == {
        "With open runs": ("3", "of 4 queues; 9 runs"),
        "Running": ("5,200", "tasks that have a place"),
        "Waiting": ("1,236,367", "tasks"),
        "An hour costs": ("$71.20", "of at most $120.00"),
        "Stopped for other queues": ("1,200", "tasks of open runs"),
    }
    assert ("document", "revision 3, applied 2026-11-22 06:27:33 UTC") in page.facts
    assert ("kept earlier revisions", "2") in page.facts
    assert "argosy queues apply FILE --revision 3" in text_of(page, "summary")
    assert "argosy queues restore 2" in text_of(page, "summary")


def test_a_bar_is_as_long_as_the_use_and_a_line_marks_the_share() -> None:
    page = queues_page(in_full())
    prod = row_of(page, "queues", "prod")
    assert 'class="area s-plain" height="100%" x="0.0%" width="31.0%"' in prod
    assert 'class="mark" x1="57.1%" x2="57.1%"' in prod
    for name in ("night", "default"):  # of the weight 0, and without open runs: nothing is due to them
        assert 'class="mark"' not in row_of(page, "queues", name)


def test_caps_and_guarantees_say_what_of_them_is_used() -> None:
    page = queues_page(in_full())
    said = text_of(page, "caps")
    assert "prod guarantee 320 256 vCPUs" in said
    assert "research cap $40.00 $40.00 an hour at its cap" in said
    assert "research cap 4 16 GPUs" in said
    assert "night guarantee 4 5 instances not lent" in said
    drawn = parts(page)["caps"]
    assert 'class="area s-lost" height="100%" x="0.0%" width="100.0%"' in drawn
    assert 'class="area s-plain" height="100%" x="0.0%" width="25.0%"' in drawn


def test_a_cap_of_nothing_is_reached() -> None:
    found = [queue("none", cap={"gpus": 0})]
    assert "none cap 0 0 GPUs at its cap" in text_of(queues_page(sharing(queues=found)), "caps")


def test_shared_limits_show_each_queues_use_and_the_unreserved_rest() -> None:
    page = queues_page(in_full())
    said = text_of(page, "deployment")
    assert "Dollars $71.20 $120.00 an hour research $40.00 prod $22.50 night $1.50 unreserved $7.20" in said
    assert "vCPU quota of spot standard in us-east-1 848 1,000 vCPUs research 496 prod 320 unreserved 32" in said
    assert "vCPU quota of spot g in us-east-1 72 64 vCPUs research 72" in said
    drawn = parts(page)["deployment"]
    assert 'class="area s-0" height="100%" x="0.0%" width="33.3%"' in drawn
    assert 'class="area s-1" height="100%" x="33.3%" width="18.7%"' in drawn
    assert 'class="area s-0" height="100%" x="0.0%" width="100.0%"' in drawn  # of 72 of 64: no longer than the bar


def test_without_a_limit_in_dollars_the_bar_is_what_all_instances_cost() -> None:
    page = queues_page(alone())
    assert "Dollars $31.20 no limit default $1.50 unreserved $29.70" in text_of(page, "deployment")
    assert 'x="4.8%" width="95.2%"' in parts(page)["deployment"]
    nothing = queues_page(alone(usdPerHour={"used": 0, "limit": None}) | {"queues": []})
    assert text_of(nothing, "deployment").endswith("Dollars $0.00 no limit -")


def test_of_many_queues_those_that_use_most_have_a_colour_and_the_others_one_together() -> None:
    used = {"vcpus": 0, "gpus": 0, "instances": 0}
    found = [queue(f"q{place}", used={**used, "usdPerHour": float(10 + place)}) for place in range(9)]
    said = text_of(queues_page(sharing(queues=found, usdPerHour={"used": 126.0, "limit": None})), "deployment")
    assert said.endswith("q8 $18.00 q7 $17.00 q6 $16.00 q5 $15.00 q4 $14.00 q3 $13.00 other queues $33.00")


def test_recent_use_is_shown_by_owner_where_a_queue_is_shared_by_owners() -> None:
    said = text_of(queues_page(in_full()), "lately")
    assert "; use 1d 00h ago counts half" in said
    assert "prod - 31 % 1.61 research alice 40 % 0.5 research the unproven 2 % 4" in said
    idle = sharing(halfLifeSeconds=600.0, queues=[queue("a", lately=[])])
    assert text_of(queues_page(idle), "lately").endswith("No queue has open runs.")


def test_the_page_shows_which_queues_take_and_give_room_and_what_was_stopped() -> None:
    said = text_of(queues_page(in_full()), "room")
    assert "After 2m 00s of waiting at a limit: tasks are stopped." in said
    assert "prod yes if the run allows it 0 2 research - yes 1,200 0" in said
    drains = in_full() | {"document": {"reclaim": {"afterSeconds": 30}}}
    assert "After 30 s of waiting at a limit: an instance takes no new" in text_of(queues_page(drains), "room")


def test_owners_are_proven_or_not() -> None:
    page = queues_page(in_full())
    said = text_of(page, "owners")
    assert "research no owner unproven 1 research alice proven 3 research bob unproven 2" in said
    assert 'class="status status-unproven"' in parts(page)["owners"]
    idle = sharing(queues=[queue("team", within="owners", owners=[])])
    assert text_of(queues_page(idle), "owners").endswith("has open runs.")


def test_without_a_document_it_says_so_and_what_to_type() -> None:
    page = queues_page(alone())
    assert "default 1 100 % 25 % 1 100 900" in text_of(page, "queues")
    assert page.facts == [("document", "none in force: there is one queue")]
    assert text_of(page, "summary").endswith("Share the cluster between several queues: argosy queues apply FILE")
    assert {each.key for each in page.figures if each.empty} == {"caps", "lately", "room", "owners"}


def test_a_deployment_of_before_tells_less() -> None:
    page = queues_page(sharing())
    assert {each.key for each in page.figures if each.empty} == {"lately", "room", "owners"}
    assert "argosy queues restore 2" in text_of(page, "summary")
    assert "restore" not in text_of(queues_page(sharing(earlier=[])), "summary")


@pytest.mark.parametrize(("changes", "said"), [({}, []), ({"queue": "prod"}, [("queue", "prod")])])
def test_the_page_of_a_run_names_its_queue(changes: dict[str, Any], said: list[tuple[str, str]]) -> None:
    page = run_page(run_view(**changes), None, None)
    assert [each for each in page.facts if each[0] == "queue"] == said
