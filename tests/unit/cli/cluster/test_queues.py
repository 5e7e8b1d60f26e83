"""`argosy queues`: the display, applying a document, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cli import World, api_error
from tests.fakes.sharing import queue, sharing

DOCUMENT = "version: 1\nqueues:\n  research: {weight: 3}\n"


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "queues.yaml").write_text(DOCUMENT)
    return str(tmp_path / "queues.yaml")


def lines(result: Any) -> list[str]:
    assert result.exit_code == 0, result.output
    return [line.rstrip() for line in result.stdout.splitlines()]


def test_the_queues_are_listed_in_order_of_service() -> None:
    shown = lines(World().answers("DescribeSharing", sharing()).argosy("queues"))
    assert [line.split()[0] for line in shown[:4]] == ["QUEUE", "research", "default", "night"]
    assert " ".join(shown[1].split()) == "research 3 50% 50% 1.50 1 100 900 - 1.5 of 40 USD/h, 0 of 16 GPUs -"
    assert shown[3].endswith("5 instances, not lent")
    assert shown[-1].startswith("Revision 3, applied 2026-11-22T06:27:33.000Z; 1 earlier one kept: 2.")


def test_dollars_of_the_deployment_are_shown_where_they_are_limited() -> None:
    view = sharing(usdPerHour={"used": 31.2, "limit": 120})
    said = lines(World().answers("DescribeSharing", view).argosy("queues"))
    assert "All instances together cost 31.20 of at most 120.00 USD an hour." in said


def test_queues_that_take_and_give_room_are_shown_where_any_may() -> None:
    none = {"preempts": False, "preemptible": None, "preempted": 0, "kept": 0}
    found = [
        queue("prod", **none | {"preempts": True, "kept": 2}),
        queue("batch", level=0.5, **none | {"preemptible": True, "preempted": 1_200}),
        queue("own", level=0.6, **none | {"preemptible": False}),
    ]
    shown = lines(World().answers("DescribeSharing", sharing(queues=found)).argosy("queues"))
    assert shown[0].split()[-5:] == ["TAKES", "ROOM", "GIVES", "ROOM", "STOPPED"]
    assert [line[line.index("-") :].split() for line in shown[1:4]] == [
        ["-", "-", "-", "yes,", "2", "instances", "kept", "if", "the", "run", "allows", "it", "0"],
        ["-", "-", "-", "-", "yes", "1,200"],
        ["-", "-", "-", "-", "no", "0"],
    ]


def test_without_a_document_there_is_one_queue() -> None:
    view = sharing(revision=0, document=None, appliedAt=None, earlier=[], queues=[])
    said = " ".join(lines(World().answers("DescribeSharing", view).argosy("queues")))
    assert "No sharing document is in force: there is one queue." in said


def test_a_file_is_applied(file: str) -> None:
    world = World().answers("ApplySharing", {"revision": 4, "document": {"queues": {"research": {}}}})
    world.answers("DescribeSharing", sharing(revision=3), sharing(revision=4))
    said = lines(world.argosy("queues", "apply", file, "--revision", "3"))
    assert said == ["Revision 4 is in force. Queues: research.", "next: argosy queues"]
    assert [each["action"] for each in world.functions.requests] == ["ApplySharing", *2 * ["DescribeSharing"]]
    assert world.functions.requests[0] == {
        "action": "ApplySharing", "revision": 3, "document": {"version": 1, "queues": {"research": {"weight": 3}}}
    }  # fmt: skip


def test_an_earlier_document_is_restored() -> None:
    world = World().answers("ApplySharing", {"revision": 5, "document": {"queues": {"a": {}, "b": {}}}})
    world.answers("DescribeSharing", sharing(revision=5))
    assert "Revision 5 is in force" in lines(world.argosy("queues", "restore", "2"))[0]
    assert world.functions.requests[0] == {"action": "ApplySharing", "restore": 2}


def test_a_document_that_a_busy_controller_has_not_applied_after_ten_seconds_is_said_to_come() -> None:
    world = World().answers("ApplySharing", {"revision": 5, "document": {"queues": {"a": {}}}})
    world.answers("DescribeSharing", sharing(revision=4))
    began = world.now
    assert "Revision 5 takes effect with" in lines(world.argosy("queues", "restore", "2"))[0]
    assert world.now - began == 10.0


@pytest.mark.parametrize(
    "words", [["aply", "x"], ["apply"], ["apply", "a", "b"], ["restore"], ["restore", "a"], ["--restore", "2"]]
)
def test_other_words_are_refused(words: list[str]) -> None:
    result = World().argosy("queues", *words)
    assert result.exit_code == 2


@pytest.mark.parametrize(("text", "said"), [("{", "cannot be read"), ("- 1", "is not a sharing document")])
def test_a_file_that_is_no_document_is_refused_before_anything_is_asked(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    world = World()
    result = world.argosy("queues", "apply", str(tmp_path / "x.yaml"))
    assert (result.exit_code, world.functions.requests) == (2, [])
    assert said in result.stderr


def test_a_document_that_was_overtaken_says_where_to_look(file: str) -> None:
    refused = api_error(
        409, "ConflictException", "revision 4 is in force now, not 3: read its current state, then try again"
    )
    result = World().answers("ApplySharing", refused).argosy("queues", "apply", file)
    assert result.exit_code == 2
    assert "type `argosy queues` to see what is in force" in result.stderr


def test_what_was_used_lately_is_shown_where_it_counts() -> None:
    owners = [{"owner": "alice", "use": 0.4, "factor": 0.5}, {"owner": "bob", "use": 0.0, "factor": 4.0}]
    found = [
        queue("a", lately=[{"owner": None, "use": 0.31, "factor": 1.609375}]),
        queue("team", level=0.5, within="owners", lately=owners),
        queue("idle", level=0.6, lately=[]),
    ]
    shown = lines(World().answers("DescribeSharing", sharing(queues=found, halfLifeSeconds=86_400)).argosy("queues"))
    assert shown[0].split()[-1] == "LATELY"
    assert shown[1].endswith("31%, weight x1.61")
    assert shown[2].endswith("alice 40%, weight x0.5; bob 0%, weight x4")
    assert shown[3].endswith("-")


def test_quotas_are_shown_with_their_users() -> None:
    of = {"region": "us-east-1", "purchase": "spot", "family": "g"}
    quotas = [{**of, "vcpus": 64, "left": 8, "used": {"prod": 48.0, "research": 4.5}}]
    said = lines(World().answers("DescribeSharing", sharing(quotas=quotas)).argosy("queues"))
    assert "vCPU quota of spot g in us-east-1: instances use 56 of 64; tasks reserve: prod 48, research 4.5." in said
    unused = [{**of, "vcpus": 64, "left": 64, "used": {}}]
    said = lines(World().answers("DescribeSharing", sharing(quotas=unused)).argosy("queues"))
    assert "vCPU quota of spot g in us-east-1: instances use 0 of 64." in said
