"""Daemons through the api: creating, changing and scaling them, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.api.admission.matching_instances import daemon_faults, daemon_notes
from argosy.model.policy import Policy
from argosy.model.run_terms import RunTerms
from argosy.spec.parse import parse_spec
from argosy.spec.terms import terms_of
from tests.fakes.api import Desk, error_of

SPEC: dict[str, Any] = {
    "version": 1,
    "kind": "daemon",
    "name": "web",
    "container": {"image": "argosy/web"},
    "resources": {"vcpus": 0.5, "memory": 256},
}
POOLS = (("us-east-1", "c5.xlarge", "us-east-1a"), ("us-east-1", "m5.4xlarge", "us-east-1b"))


def created(desk: Desk, **fields: Any) -> dict[str, Any]:
    body = desk.body("CreateEnvironment", spec={**SPEC, **fields})
    desk.time += 1
    return body


def refused(desk: Desk, action: str, **fields: Any) -> str:
    answer = desk.ask(action, **fields)
    assert answer["statusCode"] in (400, 404, 409), answer
    error = error_of(answer)
    return "; ".join([error["message"], *(f"{each['path']}: {each['message']}" for each in error["fieldList"])])


def test_a_daemon_is_created_deployed_and_shown_as_one(desk: Desk) -> None:
    assert created(desk)["revision"] == 1
    desk.body("StartDeployment", name="web", clientToken="once")
    desk.fold_in()
    view = desk.body("DescribeEnvironment", name="web")
    assert (view["kind"], view["status"], view["desired"]) == ("daemon", "IN_PROGRESS", 0)
    (run,) = desk.state.runs.values()
    assert run.is_daemon
    assert desk.state.daemons == {run.number}
    assert desk.body("DescribeRun", runId=run.id)["queue"] is None  # it is of no queue


def test_the_number_of_tasks_of_a_daemon_cannot_be_set(desk: Desk) -> None:
    created(desk)
    assert "one task on each matching instance" in refused(desk, "ScaleEnvironment", name="web", desired=3)
    desk.fold_in()
    assert "change daemon.instances" in refused(desk, "ScaleEnvironment", name="web", desired=3)


def test_a_daemon_stays_a_daemon_and_a_service_a_service(desk: Desk) -> None:
    created(desk)
    service = {**SPEC, "kind": "service", "service": {"desired": 1}}
    said = refused(desk, "UpdateEnvironment", name="web", baseRevision=1, spec=service)
    assert "spec.kind: must stay daemon: use another name for the other kind" in said
    desk.fold_in()
    assert "must stay daemon" in refused(desk, "UpdateEnvironment", name="web", baseRevision=1, spec=service)


def test_a_daemon_is_neither_submitted_nor_planned(desk: Desk) -> None:
    assert "a daemon never ends: deploy it instead" in refused(desk, "SubmitRun", spec=SPEC)
    assert "a daemon never ends" in refused(desk, "PlanRun", spec=SPEC)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"array": {"size": 2}}, "array: is not possible with kind: daemon: one task runs on each instance"),
        ({"service": {"desired": 2}}, "service: is only possible with kind: service"),
        ({"capacity": {"purchase": "spot"}}, "capacity: is not possible with kind: daemon: nothing is bought"),
        ({"placement": {"group": "a"}}, "placement: is not possible with kind: daemon: daemon.instances says"),
        ({"retryStrategy": {"attempts": 2}}, "retryStrategy: is not possible with kind: daemon"),
        ({"timeout": {"attemptDurationSeconds": 60}}, "timeout: is not possible with kind: daemon"),
        ({"output": "s3://results/"}, "output: is not possible with kind: daemon"),
        ({"resources": {"gpus": 1}}, "resources.gpus: is not possible with kind: daemon"),
        ({"daemon": {"instances": "attribute:"}}, "daemon.instances: "),
        (
            {"daemon": {"instances": "runningTasksCount == 0"}},
            "daemon.instances: may only refer to attributes of instances",
        ),
        ({"daemon": {"instances": "distinctInstance"}}, "daemon.instances: may only refer to attributes"),
        ({"daemon": {"update": {"minHealthyPercent": 101}}}, "daemon.update.minHealthyPercent: "),
        ({"daemon": {"update": {"order": "both"}}}, "daemon.update.order: "),
        (
            {
                "container": {"image": "argosy/web", "hostPorts": [8080]},
                "daemon": {"update": {"order": "start-first"}},
            },
            "daemon.update.order: must be stop-first where container.hostPorts are given",
        ),
    ],
)
def test_what_a_daemon_cannot_have_is_refused_in_a_sentence(desk: Desk, fields: dict[str, Any], said: str) -> None:
    assert said in refused(desk, "CreateEnvironment", spec={**SPEC, **fields})


def test_a_program_of_a_daemon_leaves_no_result(desk: Desk) -> None:
    spec = {name: value for name, value in SPEC.items() if name != "container"}
    said = refused(desk, "CreateEnvironment", spec={**spec, "run": "watch"})
    assert "result: must be none with kind: daemon" in said


def test_only_a_daemon_has_a_daemon_part(desk: Desk) -> None:
    for kind in ({"kind": "service", "service": {"desired": 1}}, {"kind": "batch", "array": {"size": 1}}):
        said = refused(desk, "CreateEnvironment", spec={**SPEC, **kind, "daemon": {}})
        assert "daemon: is only possible with kind: daemon" in said


def terms(vcpus: float = 0.5, query: str | None = None, **resources: Any) -> RunTerms:
    daemon = {"daemon": {"instances": query}} if query else {}
    return terms_of(parse_spec({**SPEC, "resources": {"vcpus": vcpus, "memory": 256, **resources}, **daemon}))


def test_what_is_larger_than_every_type_that_matches_is_refused() -> None:
    (fault,) = daemon_faults(terms(8, "attribute:ecs.instance-type =~ c5.*"), POOLS, Policy())
    assert (fault.path, fault.message) == (
        "resources",
        "ask for 8 vCPUs and 256 MiB, but every matching instance type is smaller: c5.xlarge",
    )
    assert daemon_faults(terms(8), POOLS, Policy()) == []
    (fault,) = daemon_faults(terms(0.5, diskGiB=500), POOLS, Policy())
    assert "and 500 GiB of disk" in fault.message


def test_what_is_larger_than_some_type_is_warned_of() -> None:
    assert daemon_notes(terms(8), POOLS, Policy()) == [
        "it does not run on c5.xlarge: its task is larger than these instances"
    ]
    assert daemon_notes(terms(), POOLS, Policy()) == []


def test_what_matches_no_type_is_warned_of() -> None:
    (said,) = daemon_notes(terms(query="attribute:colour == red"), POOLS, Policy())
    assert said.startswith("no instance type of this deployment matches daemon.instances")
    assert daemon_notes(terms(query="attribute:colour == red"), (), Policy()) == []


def test_a_request_taken_in_between_two_reads_is_there(desk: Desk) -> None:
    created(desk)
    look = desk.store.page

    def page(*asked: Any, **more: Any) -> Any:
        found = look(*asked, **more)
        desk.fold_in()
        return found

    desk.store.page = page  # type: ignore[method-assign]
    desk.body("StartDeployment", name="web", clientToken="once")
    assert "the environment 'web' already" in refused(desk, "CreateEnvironment", spec=SPEC)
