"""Which chains are strategies, and which faults have the others?"""

from __future__ import annotations

import pytest

from argosy.placement.feasibility import check_ports
from argosy.placement.strategy import check_strategy, steps_of

GOOD = [
    "random", "random:42", "spread:instanceId", "spread:host", "spread:attribute:ecs.availability-zone",
    "binpack:cpu", "binpack:memory",
    "binpack:gpu", "mix:cpu=2+memory=1", "best-fit", "cpu-memory", "cpu-memory-gpu", "least-allocated", "dot-product",
    "least-waste",
    "fragmentation",     "cheapest", "least-interrupted", "finish-together", "keep-gpus-free", "busy-first",
    "image-first",
]  # fmt: skip
BAD = [
    "", "Random", "random:-1", "random:x", "spread", "spread:zone", "spread:attribute:", "binpack", "binpack:disk",
    "mix:cpu", "mix:cpu=0",
    "mix:cpu=1+cpu=2", "mix:cpu=1000", "best", "os:system", "binpack:cpu,binpack:memory",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_documented_name_is_a_strategy(name: str) -> None:
    assert check_strategy([name]) == []
    assert steps_of([name], {})


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_refused_in_one_sentence(name: str) -> None:
    assert len(check_strategy([name])) == 1
    with pytest.raises(ValueError, match=r"mix|is not a strategy"):
        steps_of([name], {})


def test_all_faults_of_a_chain_are_reported_at_once() -> None:
    assert len(check_strategy(["best-fit"] * 4 + ["x", "y"])) == 3


def test_a_users_function_is_admitted_by_name_only() -> None:
    assert check_strategy(["mine:f"], allowed=["mine:f"]) == []
    assert check_strategy(["mine:g"], allowed=["mine:f"]) != []


@pytest.mark.parametrize(
    ("ports", "faults"),
    [([(80, "tcp"), (80, "udp")], 0), ([(0, "tcp"), (70_000, "tcp")], 2), ([(1, "x")], 1), ([(1, "tcp")] * 2, 1)],
)
def test_impossible_host_ports_are_reported(ports: list[tuple[int, str]], faults: int) -> None:
    assert len(check_ports(ports)) == faults
