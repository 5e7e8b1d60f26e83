"""The health and ports of a container in a spec, and the refusals."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.spec.parse import parse_spec, to_json
from argosy.spec.terms import terms_of_form
from tests.fakes.specs import container, faults, spec

CHECK = ["CMD", "/bin/check"]


def service(**fields: Any) -> dict[str, Any]:
    return spec(kind="service", array=None, service={"desired": 2}, container=container(**fields))


def test_a_service_says_how_its_tasks_are_asked_and_reached() -> None:
    form = to_json(parse_spec(service(health={"command": CHECK}, ports=[{"container": 80, "host": 8080}])))
    assert form["container"]["health"] == {
        "command": CHECK, "intervalSeconds": 30, "timeoutSeconds": 5, "retries": 3, "startSeconds": 0,
    }  # fmt: skip
    terms = terms_of_form(form)
    assert terms.health is not None
    assert terms.health.patience_s == 90.0
    assert terms.ports == ((80, 8080),)
    assert terms.host_ports == ((8080, "tcp"),), "a pinned port is held as any other"


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"health": {"command": ["/bin/check", "x"]}}, "container.health.command: must begin with CMD"),
        ({"health": {"command": ["CMD"]}}, "container.health.command"),
        ({"health": {"command": ["CMD-SHELL", "a", "b"]}}, "must have exactly one text after CMD-SHELL"),
        ({"health": {"command": ["CMD", " "]}}, "must name a program after CMD"),
        ({"health": {"command": CHECK, "intervalSeconds": 4, "timeoutSeconds": 2}}, "container.health.intervalSeconds"),
        ({"health": {"command": CHECK, "intervalSeconds": 301}}, "container.health.intervalSeconds"),
        ({"health": {"command": CHECK, "timeoutSeconds": 1}}, "container.health.timeoutSeconds"),
        ({"health": {"command": CHECK, "retries": 11}}, "container.health.retries"),
        ({"health": {"command": CHECK, "startSeconds": 301}}, "container.health.startSeconds"),
        ({"health": {"command": CHECK, "intervalSeconds": 5, "timeoutSeconds": 6}}, "at most intervalSeconds"),
        ({"ports": []}, "container.ports"),
        ({"ports": [{"container": n} for n in range(1, 6)]}, "container.ports"),
        ({"ports": [{"container": 0}]}, "container.ports[0].container"),
        ({"ports": [{"container": 80, "host": 22}]}, "is reserved on every instance"),
        ({"ports": [{"container": 80}, {"container": 80}]}, "names the container port 80 twice"),
        ({"ports": [{"container": 80, "host": 9}, {"container": 81, "host": 9}]}, "names the host port 9 twice"),
        ({"ports": [{"container": 80, "host": 9}], "hostPorts": [9]}, "container.ports[0].host: is 9, which"),
    ],
)
def test_what_ecs_would_refuse_is_refused_in_one_sentence(fields: dict[str, Any], fault: str) -> None:
    found = faults(service(**fields))
    assert len(found) == 1
    assert fault in found[0]


def test_ports_held_by_udp_or_written_badly_are_another_matter() -> None:
    assert parse_spec(service(ports=[{"container": 80, "host": 53}], hostPorts=["53/udp"]))
    assert not [
        each for each in faults(service(ports=[{"container": 80, "host": 53}], hostPorts=["x"])) if "is 53" in each
    ]


@pytest.mark.parametrize(("name", "value"), [("health", {"command": CHECK}), ("ports", [{"container": 80}])])
def test_a_batch_has_neither_and_a_definition_of_ones_own_says_them_itself(name: str, value: Any) -> None:
    (said,) = faults(spec(container=container(**{name: value})))
    assert said.startswith(f"container.{name}: is only possible with kind: service; ")
    own = spec(kind="service", array=None, service={"desired": 2}, container={name: value}, taskDefinition="web:3")
    (said,) = faults(own)
    assert said.startswith(f"container.{name}: cannot be combined with taskDefinition")
