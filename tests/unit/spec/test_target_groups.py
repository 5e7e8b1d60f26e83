"""The target group of a service, and the refusals."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.spec.parse import parse_spec, to_json
from argosy.spec.services import target_group_faults
from argosy.spec.terms import terms_of_form
from tests.fakes.specs import container, faults, spec

ARN = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef"
PORTS = [{"container": 80}]


def service(ports: Any = PORTS, **fields: Any) -> dict[str, Any]:
    its = container(ports=ports) if ports else container()
    return spec(kind="service", array=None, service={"desired": 2, **fields}, container=its)


def test_a_service_names_its_group_and_drains_for_half_a_minute() -> None:
    terms = terms_of_form(to_json(parse_spec(service(targetGroup="web")))).service
    assert terms is not None
    assert (terms.target_group, terms.drain_s) == ("web", 30.0)


def test_a_service_may_drain_at_once() -> None:
    terms = terms_of_form(to_json(parse_spec(service(targetGroup="web", drainSeconds=0)))).service
    assert terms is not None
    assert terms.drain_s == 0.0


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (service(drainSeconds=5), "service.drainSeconds: is only possible with service.targetGroup"),
        (service(ports=None, targetGroup="web"), "service.targetGroup: needs container.ports"),
        (service(targetGroup="web", desired=1001), "service.desired: must be at most 1,000 with service.targetGroup"),
        (service(targetGroup="web", drainSeconds=3601), "service.drainSeconds"),
        (service(targetGroup="Not a name"), "service.targetGroup"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], fault: str) -> None:
    assert any(fault in each for each in map(str, faults(given)))


@pytest.mark.parametrize(
    ("groups", "cells", "capacity", "fault"),
    [
        ({"api": ARN}, ("us-east-1",), {}, "'web' is not in the deployment's setting targetGroups: there are api"),
        ({}, ("us-east-1",), {}, "it has none"),
        ({"web": ARN}, ("us-east-1", "eu-west-1"), {}, "'web' is in us-east-1: set capacity.cells to [us-east-1]"),
    ],
)
def test_a_group_that_cannot_be_used_is_refused(groups: Any, cells: Any, capacity: Any, fault: str) -> None:
    data = {**service(targetGroup="web"), "capacity": capacity}
    (found,) = target_group_faults(data, groups, cells)
    assert found.path == "service.targetGroup"
    assert fault in found.message


def test_a_service_that_stays_in_the_groups_region_may_use_it() -> None:
    data = {**service(targetGroup="web"), "capacity": {"cells": ["us-east-1"]}}
    assert list(target_group_faults(data, {"web": ARN}, ("us-east-1", "eu-west-1"))) == []
