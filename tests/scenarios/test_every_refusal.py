"""Each refusal that AWS can give, at each call that a run waits for: within three ticks its sentences name that refusal
and no other reason, and once it ends the run goes on."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from importlib.resources import files

import pytest
from rich.console import Console

from argosy.api.views import full_run_view
from argosy.aws.errors import NO_CLUSTER, FailureKind, classify
from argosy.cli.runs.next_steps import next_steps
from argosy.cli.runs.views import facts
from argosy.cli.session import Session, Tools
from argosy.client.aws_clients import Connection
from argosy.figures.run import run_page
from argosy.model.runs import RunStatus
from tests.fakes.aws import operations, refusal
from tests.fakes.refusing import refusing
from tests.scenarios.controlled import Controlled

TICKS = 3
WORDS = "as AWS words it"
OTHER_REASONS = ("maxInstances", "no fleets yet", "ordered instances", "did not arrive", "on their way", "starts with")
EC2_CALLS = ("modify_fleet", "describe_fleets", "create_fleet", "describe_instances")
ECS_CALLS = ("run_task", "register_task_definition", "describe_task_definition", "list_container_instances")
S3_CALLS = ("put_object", "head_object", "list_objects_v2", "delete_object")  # before a run starts, and as it closes
S3_CODES = ("AccessDenied", "SlowDown", "InternalError")
OF_EC2 = json.loads(files("argosy.emulator.ec2").joinpath("error_codes.json").read_text(encoding="utf-8"))
SESSION = Session(Tools(), Connection())
KIND_OF = {code: kind for kind, codes in OF_EC2["codes"].items() for code in codes} | {
    code: each["kind"] for code, each in OF_EC2["elsewhere"].items()
}
ONE_OF_EACH = (
    "UnauthorizedOperation",
    "InvalidFleetId.NotFound",
    "InternalError",
    "RequestTimeTooSkewed",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
)


def all_cases() -> Iterator[tuple[str, str, str]]:
    for code in KIND_OF:
        yield from (("ec2", call, code) for call in EC2_CALLS)
    for call in ECS_CALLS:
        codes = [shape.name for shape in operations("ecs")[call].error_shapes]
        yield from (("ecs", call, code) for code in codes)
    yield from (("s3", call, code) for call in S3_CALLS for code in S3_CODES)


def shown(cluster: Controlled) -> list[str]:
    """Why the run waits, as `argosy status`, `argosy explain` and the page say it."""
    view = full_run_view(cluster.record())
    status = Console(file=io.StringIO(), width=10_000)
    status.print(facts(view))
    told = [line for line in status.file.getvalue().splitlines() if line.startswith("waiting")]
    (on_page,) = [each for each in run_page(view, None, None).warnings if each.startswith("Waiting: ")]
    assert next_steps(SESSION, view)[0] == f"next: argosy explain {view['runId']}"
    return [*told, on_page, cluster.explained()]


def check(service: str, call: str, code: str) -> None:
    cluster = Controlled(zones=("us-east-1a",), max_instances=2)
    client = refusing(cluster, service)
    client.answers[call] = code, WORDS
    cluster.submit(12, capacity={"purchase": "on-demand" if call == "create_fleet" else "spot"})
    cluster.tick()
    refused_for, checked = int(bool(client.refused)), 0
    while refused_for < 12 and not cluster.record().status_reason:
        refused_for += bool(client.refused)
        cluster.tick()
        if refused_for > TICKS and not cluster.record().status_reason:
            checked += 1
            for sentence in shown(cluster):
                assert code in sentence, refused_for
                assert WORDS in sentence
                assert not [other for other in OTHER_REASONS if other in sentence]
    ended = cluster.record().status_reason
    assert checked or ended
    assert not ended or code in ended
    client.answers.clear()
    cluster.run_to_rest()
    assert cluster.record().status == (RunStatus.FAILED if ended else RunStatus.SUCCEEDED)
    assert not cluster.live_instances()


def test_the_table_names_at_least_forty_codes_and_each_is_classed_as_its_source_says() -> None:
    assert len(KIND_OF) >= 40
    found = {}
    for code in KIND_OF:
        fault = classify(refusal(code, WORDS))
        passing = fault.passing or fault.kind is FailureKind.CONFLICT
        found[code] = "capacity" if fault.kind is FailureKind.CAPACITY else "passing" if passing else "lasting"
    assert found == KIND_OF


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        *(("ec2", "modify_fleet", code) for code in ONE_OF_EACH),
        *(("ec2", call, "UnauthorizedOperation") for call in ("describe_fleets", "create_fleet")),
        ("ec2", "create_fleet", "VcpuLimitExceeded"),
        ("ecs", "run_task", NO_CLUSTER),
        *(("ecs", call, code) for call in ECS_CALLS[:3] for code in ("AccessDeniedException", "RequestTimeTooSkewed")),
        ("s3", "put_object", "AccessDenied"),
    ],
)
def test_a_refusal_of_each_class_is_named_at_once_and_the_run_goes_on_afterwards(
    service: str, call: str, code: str
) -> None:
    """A quota of 0, a half-deleted fleet, a clock that is off, and a policy that denies one call, too."""
    check(service, call, code)


@pytest.mark.deep
@pytest.mark.parametrize(("service", "call", "code"), [*all_cases()])
def test_each_refusal_of_the_tables_is_named_at_once_and_the_run_goes_on_afterwards(
    service: str, call: str, code: str
) -> None:
    check(service, call, code)


@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("ec2", "describe_spot_price_history"),
        ("ec2", "describe_launch_templates"),
        ("ecs", "list_tasks"),
        ("ecs", "list_container_instances"),
        ("ecs", "deregister_task_definition"),
    ],
)
def test_a_denied_call_for_which_no_run_waits_holds_none_up(service: str, call: str) -> None:
    cluster = Controlled(zones=("us-east-1a",), work_s=30.0)
    client = refusing(cluster, service)
    client.answers[call] = "AccessDeniedException", WORDS
    cluster.submit(4)
    cluster.run_for(600)
    assert client.refused
    assert cluster.record().status == RunStatus.SUCCEEDED
