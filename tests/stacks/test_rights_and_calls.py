"""Does each role hold the rights for the calls that its code can make, and no others? Both ways, from the sources.

The calls are found from each function's entry point, as the template names it (`tests/stacks/calls.py`), and for users
of the deployment from their commands. The roles' rights are read from the synthesised templates.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.stacks.calls import ROOT, Reached, operations_of
from tests.stacks.templates import Statement, Template

pytestmark = pytest.mark.stacks

# Where an operation's right has another name, or is not one alone.
RIGHTS = {
    "dynamodb:transact_write_items": (),  # those of the writes in it
    "lambda:invoke": ("lambda:InvokeFunction",),
    "sqs:delete_message_batch": ("sqs:DeleteMessage",),
    # ListBucket makes a missing object a 404 and not a 403.
    "s3:copy_object": ("s3:GetObject", "s3:PutObject"),
    "s3:head_object": ("s3:GetObject", "s3:ListBucket"),
    "s3:get_object": ("s3:GetObject", "s3:ListBucket"),
    "s3:list_objects_v2": ("s3:ListBucket",),
    "s3:list_object_versions": ("s3:ListBucketVersions",),
    "s3:delete_objects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
    # A role that is passed on, and tags that are given at creation, need rights of their own.
    "ecs:run_task": ("ecs:RunTask", "ecs:TagResource", "iam:PassRole to ecs-tasks.amazonaws.com"),
    "ecs:register_task_definition": (
        "ecs:RegisterTaskDefinition",
        "ecs:TagResource",
        "iam:PassRole to ecs-tasks.amazonaws.com",
    ),
    "scheduler:create_schedule": ("scheduler:CreateSchedule", "iam:PassRole to scheduler.amazonaws.com"),
    "scheduler:update_schedule": ("scheduler:UpdateSchedule", "iam:PassRole to scheduler.amazonaws.com"),
    "fis:create_experiment_template": (
        "fis:CreateExperimentTemplate",
        "fis:TagResource",
        "iam:PassRole to fis.amazonaws.com",
    ),
    **{
        f"elbv2:{verb.lower()}_targets": (f"elasticloadbalancing:{verb}Targets",) for verb in ("Register", "Deregister")
    },
    "ec2:create_fleet": ("ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "iam:PassRole to ec2.amazonaws.com"),
    "ec2:modify_fleet": ("ec2:ModifyFleet", "iam:PassRole to ec2.amazonaws.com"),
}
WRITES = {"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem", "Delete": "dynamodb:DeleteItem"}
# Lambda itself writes a function's log, and puts an event that failed into the queue for such events.
LAMBDAS_OWN = {
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "sqs:SendMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
}
# Calls that are found although the function never makes them, each with the reason.
# Only where the owner wants them.
SCORES = {
    f"ec2:{name}"
    for name in (
        "DescribeAvailabilityZones",
        "DescribeCapacityReservations",
        "GetGroupsForCapacityReservation",
        "GetSpotPlacementScores",
        "GetCapacityManagerMetricData",
    )
}
TARGETS = {
    f"elasticloadbalancing:{verb}Targets" for verb in ("Register", "Deregister")
}  # only of groups in the settings
EMPTYING = {"s3:DeleteObject", "s3:DeleteObjectVersion", "s3:ListBucketVersions"}  # only of a bucket that goes too
TICK = {"events:DisableRule"}  # of home; and `rest` is also the name of a field that the api reads

# Of users of the deployment, if the owner allows it.
INTERRUPT = {f"fis:{name}" for name in ("StartExperiment", "GetExperiment", "DeleteExperimentTemplate")}
ALLOWED = {"ecs:ExecuteCommand", *INTERRUPT, *RIGHTS["fis:create_experiment_template"]}

FUNCTIONS = {
    ("home", "argosy-api"): TICK,
    ("home", "argosy-controller"): SCORES | TARGETS,
    ("home", "argosy-watchdog"): set(),
    ("home", "argosy-cell-guard"): set(),
    ("home", "argosy-teardown-begin"): set(),
    ("home", "argosy-teardown-wait"): EMPTYING,
    ("argosy-dev", "argosy-dev-controller"): set(),
    ("argosy-dev", "argosy-dev-watchdog"): set(),
    ("argosy-dev", "argosy-dev-teardown-wait"): set(),
    ("argosy-dev-eu-west-1", "argosy-dev-watchdog"): set(),
    ("argosy-dev-eu-west-1", "argosy-dev-teardown-begin"): TICK,
    ("argosy-dev-eu-west-1", "argosy-dev-teardown-wait"): EMPTYING,
}
# The commands of a deployment's users. Its owner's, such as the doctor, need more than the submitter has.
USERS_COMMANDS = ("runs", "cluster")


def rights_for(reached: Reached) -> set[str]:
    calls, rights = reached.operations(), set()
    for call in calls:
        service, _, method = call.partition(":")
        rights |= set(RIGHTS.get(call, (f"{service}:{operations_of(service)[method]}",)))
    if "dynamodb:transact_write_items" in calls:
        rights |= {right for word, right in WRITES.items() if word in reached.texts}
    return rights


def held(statements: Iterable[Statement]) -> set[str]:
    return {
        f"{action} to {statement.conditions['StringEquals']['iam:PassedToService']}"
        if action == "iam:PassRole"
        else action
        for statement in statements
        for action in statement.actions
    }


@pytest.mark.parametrize(("stack", "name"), FUNCTIONS, ids=[f"{stack}:{name}" for stack, name in FUNCTIONS])
def test_a_function_has_the_rights_for_its_calls_and_no_others(
    stack: str, name: str, home: Template, wide: dict[str, Template]
) -> None:
    template = home if stack == "home" else wide[stack]
    entry = template.named("AWS::Lambda::Function", "FunctionName", name)["Handler"]
    module, _, function = entry.rpartition(".")
    needed = rights_for(Reached([(module, function)])) - FUNCTIONS[stack, name]
    rights = held(template.role_statements(template.function_role(name)))
    assert needed - rights == set(), "calls without a right"
    assert rights - needed - LAMBDAS_OWN == set(), "rights without a call"


def test_every_one_of_our_functions_is_checked(home: Template, wide: dict[str, Template]) -> None:
    """But for what CDK's provider framework makes, which has no name."""
    stacks = {"home": home, **wide}
    named = {
        (stack, p["FunctionName"])
        for stack, template in stacks.items()
        for p in template.of_type("AWS::Lambda::Function").values()
        if "FunctionName" in p
    }
    assert {name.replace("-dev", "") for _, name in named} == {name.replace("-dev", "") for _, name in FUNCTIONS}
    assert set(FUNCTIONS) <= named


@pytest.mark.parametrize("is_allowed", [True, False])
def test_users_of_the_deployment_have_the_rights_for_their_commands_and_no_others(
    is_allowed: bool, home: Template, wide: dict[str, Template]
) -> None:
    template = wide["argosy-dev"] if is_allowed else home
    modules = [path for folder in USERS_COMMANDS for path in (ROOT / "argosy" / "cli" / folder).glob("*.py")]
    entries = [(".".join(path.relative_to(ROOT).with_suffix("").parts), "register") for path in modules]
    needed = rights_for(Reached(entries)) - (set() if is_allowed else ALLOWED)
    [policy] = [id for id in template.of_type("AWS::IAM::ManagedPolicy") if "Submitters" in id]
    rights = held(statement for statement in template.statements() if statement.policy == policy)
    assert needed - rights == set(), "calls without a right"
    assert rights - needed == set(), "rights without a call"
    [policy] = [id for id in template.of_type("AWS::IAM::ManagedPolicy") if "Members" in id]
    members = held(statement for statement in template.statements() if statement.policy == policy)
    assert rights - members - ALLOWED == {"lambda:InvokeFunction"}, (
        "a member comes through an entrance, and has no more"
    )
    assert members - rights == set()


def test_the_calls_are_found_through_modules_classes_constants_and_transfers() -> None:
    """The cases that the search has to find, in their simplest form."""
    closing = Reached([("argosy.aws.markers", "put_marker")])
    assert {"head_object", "put_object"} <= closing.attributes
    assert "modify_fleet" not in closing.attributes
    guard = Reached([("argosy.aws.cell_guard", "on_event")])
    assert guard.services == {"dynamodb", "ec2"}
    assert "ec2:modify_fleet" not in guard.operations()  # in the same module as what it calls, but not called
    assert "ec2:describe_fleets" in guard.operations()  # through a helper that is handed the method
