"""`argosy events`: a sentence for each change, going on without a gap, and filters that the api gets as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from argosy.cli.runs.event_sentences import sentence
from argosy.model.journal.lines import LineType
from tests.fakes.cli import RUN_ID, World, api_error

AT = "2026-11-21T06:27:33.000Z"
WHERE = {"runId": RUN_ID, "tasks": [[3, 3]], "attempt": 1, "instance": "i-0abc"}


def change(sequence: str, kind: str = "run.running", **facts: Any) -> dict[str, Any]:
    return {"sequence": sequence, "at": AT, "type": kind, "runId": RUN_ID, "status": "RUNNING", **facts}


def page(next_: str, *changes: dict[str, Any], newest: str | None = None) -> dict[str, Any]:
    return {"changes": list(changes), "next": next_, "oldest": "0", "newest": next_ if newest is None else newest}


def test_each_change_is_a_line_with_its_sequence_and_its_time() -> None:
    world = World().answers("ListChanges", page("4", change("4.1"), change("4.2", "task.running", **WHERE)))
    result = world.argosy("events", RUN_ID, "--since", "3")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"       4.1  2026-11-21T06:27:33Z  {RUN_ID} is running",
        f"       4.2  2026-11-21T06:27:33Z  task 3 of {RUN_ID} running on i-0abc",
    ]
    (request,) = world.functions.requests
    assert request == {"action": "ListChanges", "runId": RUN_ID, "since": "3", "maxResults": 1000}


def test_all_pages_are_shown() -> None:
    first = page("4.1", change("4.1"), newest="5")
    world = World().answers("ListChanges", first, page("5", change("4.2"), change("5.1")))
    assert [line.split()[0] for line in world.argosy("events").stdout.splitlines()] == ["4.1", "4.2", "5.1"]
    assert [request.get("since") for request in world.functions.requests] == [None, "4.1"]
    assert world.functions.requests[0]["sinceSeconds"] == 3600


@pytest.mark.parametrize(("since", "says"), [("9", "9 is in the future: the newest change is 3."), ("3", "")])
def test_a_future_sequence_is_reported(since: str, says: str) -> None:
    page = {"changes": [], "next": since, "oldest": "0", "newest": "3"}
    result = World().answers("ListChanges", page).argosy("events", "--since", since)
    assert says in result.stderr
    assert bool(says) == ("in the future" in result.stderr)


@pytest.mark.parametrize(
    ("since", "sentence"),
    [("2099-01-01T00:00", "is in the future"), ("-1", "is not a time"), ("soon", "is not a time")],
)
def test_a_time_that_is_none_or_is_still_to_come_is_refused(since: str, sentence: str) -> None:
    result = World().argosy("events", f"--since={since}")
    assert result.exit_code == 2
    assert sentence in result.stderr


@pytest.mark.parametrize(("since", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86_400)])
def test_since_may_say_how_long_ago(since: str, seconds: int) -> None:
    world = World().answers("ListChanges", page("0"))
    world.argosy("events", "--since", since)
    assert world.functions.requests[0]["sinceSeconds"] == seconds


def test_following_continues_where_the_last_page_ended_and_misses_nothing() -> None:
    pages = [page("4", change("4.1")), page("4"), page("6", change("6.1"))]
    world = World().answers("ListChanges", *pages, KeyboardInterrupt())
    result = world.argosy("events", "--follow", "--json-lines")
    assert result.exit_code == 130
    assert [json.loads(line)["sequence"] for line in result.stdout.splitlines()] == ["4.1", "6.1"]
    assert [request.get("since") for request in world.functions.requests] == [None, "4", "4", "6"]
    assert world.slept == [2.0, 2.0, 2.0]


def test_filters_are_handed_on() -> None:
    world = World().answers("ListChanges", page("4"))
    world.argosy("events", "--type", "task.ended", "--type", "instance", "--instance", "i-0abc")
    request = world.functions.requests[0]
    assert (request["types"], request["instance"]) == (["task.ended", "instance"], "i-0abc")


def test_expired_changes_are_reported_with_the_next_step() -> None:
    refused = api_error(410, "ChangesExpired", "changes after 7 are no longer kept: they expire after 72 hours")
    result = World().answers("ListChanges", refused).argosy("events", "--since", "7")
    assert result.exit_code == 2
    assert "changes after 7 are no longer kept" in result.stderr
    assert "argosy cluster" in result.stderr


def test_control_characters_of_a_reason_are_shown_and_not_obeyed() -> None:
    hostile = change("4.1", "run.halted", reason="\x1b]52;c;x\x07\r\u202eok")
    result = World().answers("ListChanges", page("4", hostile)).argosy("events")
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(result.stdout)
    assert "starts no more tasks: " in result.stdout


FACTS: dict[str, dict[str, Any]] = {
    "run.submitted": {"taskCount": 1_000_000},
    "run.grown": {"taskCount": 7},
    "run.steered": {"buys": "on-demand", "late": True, "reason": "spot is short"},
    "run.waiting": {"reason": "no capacity"},
    "run.updated": {"changes": {"priority": 5, "deadline": None}, "reason": "it is urgent"},
    "run.closed": {"costUsd": 1.5, "status": "PARTIAL"},
    "task.ended": {"exitCode": 1, "chargedTo": "user", "status": "FAILED", "reason": "broken"},
    "task.refused": {"status": "PENDING", "reason": "RESOURCE:CPU"},
    "task.stopping": {"cause": "preempted", "forRun": "prod-261121-062733-k3f9", "forQueue": "prod"},
    "task.settled": {"status": "CANCELLED", "tasks": [[index, index] for index in range(0, 20, 2)]},
    "instance.booting": {
        "instanceType": "c5.xlarge", "zone": "us-east-1a", "purchase": "spot", "usdPerHour": 0.07,
    },
    "instance.cordoned": {"reason": "broken"},
    "instance.paused": {"until": AT},
    **{kind: {"environment": "web", "revision": 2, "desired": 3} for kind in LineType if kind.startswith("env.")},
    "deployment.started": {"environment": "web", "deployment": 2, "revision": 2},
    "deployment.changed": {"environment": "web", "deployment": 2, "status": "FAILED", "reason": "3 failed"},
    "cluster.scaled": {"instances": 3, "types": ["c5.xlarge"], "until": AT},
    "cluster.waiting": {"reason": "held back by maxInstances"},
    "cluster.headroom": {"reason": "held back by maxInstances"},
    "pool.found": {"spot": 1, "onDemand": 0},
    "pool.target": {"spot": 2, "onDemand": 0},
    "pool.short": {"until": AT, "reason": "no capacity"},
    "pool.closed": {"reason": "its cell is closed"},
    "order": {"instances": 2, "usdPerHour": 0.14, "gapPct": 1.0},
    "request.refused": {"request": "0001#x"},
    "state.damaged": {"reason": "wrong checksum"},
}  # fmt: skip


@pytest.mark.parametrize("kind", list(LineType))
def test_every_type_has_a_sentence(kind: str) -> None:
    said = sentence(change("4.1", kind, **{"pool": "us-east-1/c5.xlarge/us-east-1a", **WHERE, **FACTS.get(kind, {})}))
    assert not said.startswith("{")
    reason = FACTS.get(kind, {}).get("reason")
    assert said.endswith(f": {reason}" if reason else said)


def test_sentences_are_read_by_people() -> None:
    assert sentence(change("1.1", "task.ended", **WHERE, **FACTS["task.ended"])) == (
        f"attempt 1 of task 3 of {RUN_ID} ended on i-0abc with exit code 1, charged to user; now FAILED: broken"
    )
    assert sentence(change("1.1", "task.settled", **FACTS["task.settled"])) == (
        f"tasks 0, 2, 4, 6, 8, and 5 more ranges of {RUN_ID} are now CANCELLED"
    )
    assert sentence(change("1.1", "run.updated", **FACTS["run.updated"])) == (
        f"{RUN_ID} was changed: priority 5, no deadline: it is urgent"
    )
    warned = change("1.1", "instance.warned", instance="i-1")
    assert sentence(warned) == "i-1 is interrupted: EC2 reclaims it"
    assert sentence({**warned, "reason": "its Capacity Reservation ends"}) == (
        "i-1 is emptied: its Capacity Reservation ends"
    )
    assert sentence(change("1.1", "run.waiting")) == f"{RUN_ID} is no longer waiting"
    assert sentence({"type": "task.dropped", "runNumber": 7, "tasks": [[1, 2]]}) == (
        "tasks 1-2 of run number 7 no longer known"
    )
    assert sentence({"type": "order", "instances": 1, "usdPerHour": 0.1}) == "1 instance ordered for $0.1000 an hour"
    order = {"type": "order", "instances": 2, "usdPerHour": 0.1, "gapPct": 2.0}
    assert sentence(order) == "2 instances ordered for $0.1000 an hour, at most 2.0 % above the least it could cost"


def test_the_page_for_users_names_every_type_and_no_other() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-zA-Z.]+)` \|", page, flags=re.MULTILINE)
    assert rows == [str(kind) for kind in LineType]


def test_what_a_later_version_tells_is_shown_as_it_came() -> None:
    assert json.loads(sentence({"type": "comet.seen", "tail": 3})) == {"type": "comet.seen", "tail": 3}
