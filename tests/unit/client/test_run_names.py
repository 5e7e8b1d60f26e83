"""Which run is meant: ids, beginnings of ids, names and `last`; and the messages for none or several."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.client.errors import InvalidInput
from argosy.client.run_names import SEARCHED, NamedRuns, run_id_of, runs_meant

NEWEST, OLDER, OTHER = "sweep-261121-062733-k3f9", "sweep-261120-000000-aaaa", "digits-261119-111111-bbbb"


class Listed:
    """The newest first. asked: the requested number."""

    def __init__(self, *ids: str) -> None:
        self.ids, self.asked = ids, list[int]()

    def runs(self, limit: int) -> dict[str, Any]:
        self.asked.append(limit)
        return {"runs": [view(each) for each in self.ids[:limit]]}


def view(run_id: str) -> dict[str, Any]:
    name = run_id.split("-", maxsplit=1)[0]
    return {"runId": run_id, "name": name, "environment": name if name == "web" else None}


@pytest.mark.parametrize(
    ("wanted", "meant", "asked"),
    [
        (OLDER, OLDER, []),
        ("gone-261119-111111-bbbb", "gone-261119-111111-bbbb", []),
        ("last", NEWEST, [1]),
        ("sweep", NEWEST, [SEARCHED]),
        ("sweep-261120", OLDER, [SEARCHED]),
        ("d", OTHER, [SEARCHED]),
    ],
)
def test_a_run_is_found_by_its_id_the_start_of_its_id_its_name_or_last(
    wanted: str, meant: str, asked: list[int]
) -> None:
    api = Listed(NEWEST, OLDER, OTHER)
    assert run_id_of(api, wanted) == meant
    assert api.asked == asked


def test_several_are_named() -> None:
    ids = [f"sweep-26112{number}-000000-aaaa" for number in range(7)]
    with pytest.raises(InvalidInput) as refused:
        run_id_of(Listed(*ids), "sweep-2")
    assert refused.value.message == f"'sweep-2' matches the ids of 7 runs: {', '.join(ids[:5])}, and 2 more."


@pytest.mark.parametrize(("wanted", "meant"), [("swep", " Did you mean sweep?"), ("xyz", ""), ("", "")])
def test_an_unknown_run_is_reported_with_a_suggestion(wanted: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        run_id_of(Listed(NEWEST), wanted)
    assert refused.value.message == f"There is no run {wanted!r}.{meant}"
    assert "argosy runs" in refused.value.next_step


def test_the_last_run_is_no_services_unless_there_is_no_other() -> None:
    services = ["web-261121-070000-0002", "web-261121-065900-0001"]
    api = Listed(*services, OLDER)
    assert run_id_of(api, "last") == OLDER
    assert api.asked == [1, SEARCHED]
    assert run_id_of(Listed(*services), "last") == services[0]


def test_before_the_first_run_there_is_no_last_one() -> None:
    with pytest.raises(InvalidInput, match="No run has been submitted"):
        run_id_of(Listed(), "last")


@given(st.lists(st.from_regex(r"[ab]{1,3}-[0-9]{6}-[0-9]{6}-[a-z0-9]{4}", fullmatch=True), unique=True, max_size=8),
       st.text("ab-0123456789", max_size=12))  # fmt: skip
def test_what_is_found_is_there_and_is_named_or_begins_so(ids: list[str], wanted: str) -> None:
    try:
        found = run_id_of(Listed(*ids), wanted)
    except InvalidInput:
        assert wanted not in ids
        assert sum(each.startswith(wanted) for each in ids) != 1 or not wanted
    else:
        assert found in ids
        assert found.startswith(wanted)


class OfEnvironment(Listed):
    """All runs named `sweep` are an environment's."""

    def runs(self, limit: int) -> dict[str, Any]:
        found = super().runs(limit)["runs"]
        return {"runs": [{**each, "environment": "sweep" if each["name"] == "sweep" else None} for each in found]}


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("sweep", NamedRuns((NEWEST, OLDER), "sweep")),
        ("digits", NamedRuns((OTHER,))),
        ("sweep-261120", NamedRuns((OLDER,))),
        ("last", NamedRuns((OTHER,))),
        (OLDER, NamedRuns((OLDER,))),
    ],
)
def test_the_name_of_an_environment_means_all_of_its_runs(wanted: str, meant: NamedRuns) -> None:
    assert runs_meant(OfEnvironment(NEWEST, OLDER, OTHER), wanted) == meant
