"""The fields that may and may not be combined with the base of a service."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.spec.faults import SpecError
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import terms_of_form

SERVICE: dict[str, Any] = {
    "version": 1,
    "kind": "service",
    "name": "web",
    "container": {"image": "argosy/web"},
    "service": {"desired": 3},
}
BATCH = {"version": 1, "name": "web", "container": {"image": "argosy/web"}, "array": {"size": 3}}


def test_a_service_has_a_base_and_without_one_it_is_0() -> None:
    form = to_json(parse_spec({**SERVICE, "capacity": {"onDemandBase": 2}}))
    assert terms_of_form(form).on_demand_base == 2
    assert terms_of_form(to_json(parse_spec(SERVICE))).on_demand_base == 0


@pytest.mark.parametrize(
    ("spec", "capacity", "sentence"),
    [
        (SERVICE, {"onDemandBase": 2, "purchase": "on-demand"}, "is only possible with purchase: spot"),
        (SERVICE, {"onDemandBase": -1}, "must be at least 0"),
        (SERVICE, {"onDemandBase": 10_001}, "must be at most 10,000"),
        (BATCH, {"onDemandBase": 0}, "is only possible with kind: service; a run has capacity.fallback"),
    ],
)
def test_what_it_does_not_go_with_is_refused(spec: dict[str, Any], capacity: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec({**spec, "capacity": capacity})
    (fault,) = [each for each in caught.value.faults if each.path == "capacity.onDemandBase"]
    assert sentence in fault.message
