"""Names in dependsOn, and the order in which several runs are submitted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.client.dependencies import in_order, of_other_sizes, with_run_ids
from argosy.client.errors import InvalidInput


def of(name: str, *after: str) -> dict[str, Any]:
    return {"name": name, "dependsOn": [{"run": each} for each in after]}


@given(st.integers(1, 8).flatmap(lambda count: st.tuples(st.permutations(range(count)), st.integers(0, 2**32))))
def test_each_run_comes_after_those_that_it_depends_on(drawn: tuple[list[int], int]) -> None:
    order, bits = drawn
    specs = {
        place: of(f"run{place}", *(f"run{other}" for other in range(place) if bits >> (place * 7 + other) % 32 & 1))
        for place in range(len(order))
    }
    given_order = [specs[place] for place in order]
    found = [given_order[place] for place in in_order(given_order)]
    assert sorted(each["name"] for each in found) == sorted(each["name"] for each in given_order)
    done: set[str] = set()
    for each in found:
        assert {entry["run"] for entry in each["dependsOn"]} <= done
        done.add(each["name"])


def test_runs_that_wait_for_each_other_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"These runs wait for each other: .*(a -> b -> a|b -> a -> b)\."):
        in_order([of("a", "b"), of("b", "a"), of("c")])


def test_two_runs_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Two of the files name their run 'a'"):
        in_order([of("a"), of("a")])


def test_names_become_ids_and_all_else_stays() -> None:
    spec = {"name": "c", "dependsOn": [{"run": "a", "on": "end"}, {"run": "b"}, 7]}
    assert with_run_ids(spec, lambda name: f"{name}-id")["dependsOn"] == [
        {"run": "a-id", "on": "end"},
        {"run": "b-id"},
        7,
    ]
    assert with_run_ids({"name": "c"}, lambda name: "never") == {"name": "c"}


def test_runs_of_one_command_that_pair_their_tasks_have_equally_many() -> None:
    pairs = {"name": "b", "dependsOn": [{"run": "a", "type": "N_TO_N"}, {"run": "elsewhere", "type": "N_TO_N"}]}
    [(path, fault)] = of_other_sizes(pairs, {"a": 4, "b": 3})
    assert path == "dependsOn[0].type"
    assert "a has 4 tasks and this run 3" in fault
    assert not [*of_other_sizes(pairs, {"a": 3, "b": 3})]
    assert not [*of_other_sizes({"name": "b", "dependsOn": [{"run": "a"}]}, {"a": 4, "b": 3})]
