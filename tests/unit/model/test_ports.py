"""Ports of a task in one number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from argosy.model.services.ports import MOST_TASK_PORTS, PortBinding, TaskPort, packed, unpacked

numbers = st.integers(1, 65_535)


@given(st.lists(st.tuples(numbers, numbers), max_size=MOST_TASK_PORTS, unique_by=lambda pair: pair[0]))
def test_what_is_packed_comes_back(pairs: list[tuple[int, int]]) -> None:
    ports, bindings = [TaskPort(container) for container, _ in pairs], [PortBinding(*pair) for pair in pairs]
    number = packed(ports, reversed(bindings))
    assert 0 <= number < 2**64
    assert unpacked(ports, number) == bindings


def test_an_unbound_port_is_absent_and_an_unnamed_one_is_dropped() -> None:
    ports = [TaskPort(80), TaskPort(81)]
    assert unpacked(ports, packed(ports, [PortBinding(81, 40_000), PortBinding(90, 41_000)])) == [
        PortBinding(81, 40_000)
    ]
    assert unpacked(ports, 0) == []
