"""The templates, deployed into an independent CloudFormation (moto's), and what AWS then reports.

Template tests read our own text; here another implementation resolves references, conditions and the order of creation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from argosy import handlers
from argosy.client.access import Access
from argosy.client.aws_clients import Connection
from argosy.messages.eventbridge import RULE_PATTERNS
from argosy.messages.urgent import URGENT_KINDS
from argosy.settings.settings import Settings
from tests.stacks.rehearsal import FLEET, Rehearsal, deploy
from tests.stacks.templates import Template

pytestmark = [pytest.mark.stacks, pytest.mark.slow]

# Reported; to be shortened when a newer moto supports them: nothing here checks these.
UNKNOWN_TO_MOTO = {
    FLEET,  # made by CreateFleet instead
    "AWS::CloudWatch::Alarm",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::S3::BucketPolicy",
    "AWS::Scheduler::ScheduleGroup",
    "AWS::SQS::QueuePolicy",
}
# Nothing runs here: an invoked function answers at once. moto would start a container otherwise.
NOBODY_RUNS: Any = {"lambda": {"use_docker": False}}


@pytest.fixture(scope="module")
def stage(home: Template) -> Iterator[Rehearsal]:
    """The default deployment."""
    with mock_aws(config=NOBODY_RUNS):
        yield deploy("argosy", "us-east-1", home)


def test_it_is_accepted_and_all_that_is_known_is_made(stage: Rehearsal) -> None:
    (stack,) = stage.client("cloudformation").describe_stacks(StackName="argosy")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    assert stage.unknown() == UNKNOWN_TO_MOTO
    assert stage.missing() == set()
    assert len(stage.ids) > 100


def test_each_pool_has_a_fleet_at_rest_from_a_template_that_there_is(stage: Rehearsal) -> None:
    ec2, settings = stage.client("ec2"), Settings()
    fleets = ec2.describe_fleets(FleetIds=list(stage.fleets.values()))["Fleets"]
    pools = {tag["Value"] for each in fleets for tag in each["Tags"] if tag["Key"] == "argosy:pool"}
    assert pools == {f"{name}/{zone}" for name, zone in settings.pools("us-east-1")}
    for each in fleets:
        assert each["TargetCapacitySpecification"]["TotalTargetCapacity"] == 0
        (config,) = each["LaunchTemplateConfigs"]
        named = config["LaunchTemplateSpecification"]
        ec2.describe_launch_template_versions(LaunchTemplateId=named["LaunchTemplateId"], Versions=[named["Version"]])
        (subnet,) = ec2.describe_subnets(SubnetIds=[config["Overrides"][0]["SubnetId"]])["Subnets"]
        assert f"/{subnet['AvailabilityZone']}" in next(t["Value"] for t in each["Tags"] if t["Key"] == "argosy:pool")
    assert ec2.describe_instances()["Reservations"] == []


def test_the_lists_of_fleets_are_those_that_the_template_means(stage: Rehearsal) -> None:
    """CloudFormation resolves the condition; a type that the Region lacks has none."""
    ssm = stage.client("ssm")
    assert ssm.get_parameter(Name="/argosy/fleets/p3.2xlarge")["Parameter"]["Value"] == "none"
    assert ssm.get_parameter(Name="/argosy/fleets/c5.large")["Parameter"]["Value"] != "none"


def test_instances_get_to_the_internet_and_nothing_gets_to_them(stage: Rehearsal) -> None:
    ec2 = stage.client("ec2")
    template = ec2.describe_launch_templates()["LaunchTemplates"][0]["LaunchTemplateId"]
    (version,) = ec2.describe_launch_template_versions(LaunchTemplateId=template)["LaunchTemplateVersions"]
    data = version["LaunchTemplateData"]
    groups = data.get("SecurityGroupIds") or data["NetworkInterfaces"][0]["Groups"]
    for group in ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"]:
        assert group["IpPermissions"] == []
    vpc = group["VpcId"]
    tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    ways_out = [route for table in tables for route in table["Routes"] if route.get("GatewayId", "").startswith("igw-")]
    assert len(ways_out) == len(Settings().zones_of("us-east-1"))
    assert data["MetadataOptions"]["HttpTokens"] == "required"


def test_events_reach_the_queue_and_the_tick_is_off(stage: Rehearsal) -> None:
    events, queues = stage.client("events"), stage.client("sqs")
    rules = {each["Name"]: each for each in events.list_rules()["Rules"]}
    url = queues.get_queue_url(QueueName="argosy-events")["QueueUrl"]
    arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    for name, _ in RULE_PATTERNS:
        assert rules[f"argosy-{name}"]["State"] == "ENABLED"
        assert [t["Arn"] for t in events.list_targets_by_rule(Rule=f"argosy-{name}")["Targets"]] == [arn]
    assert rules["argosy-tick"]["State"] == "DISABLED"
    assert rules["argosy-tick"]["ScheduleExpression"] == "rate(1 minute)"


@pytest.mark.parametrize(("rule", "function"), [("argosy-tick", "argosy-controller"), (None, "argosy-watchdog")])
def test_schedules_may_invoke_their_functions(stage: Rehearsal, rule: str | None, function: str) -> None:
    statements = invokers(stage, function)
    assert any(f":rule/{rule or 'argosy'}" in json.dumps(each["Condition"]) for each in statements)
    if rule is None:
        assert len(statements) == 1


def test_only_the_tick_and_what_is_urgent_may_invoke_the_controller(stage: Rehearsal) -> None:
    names = {kind.rule for kind in URGENT_KINDS} | {"tick"}
    sources = [json.dumps(each["Condition"]) for each in invokers(stage, "argosy-controller")]
    assert len(sources) == len(names)
    assert all(any(f":rule/argosy-{name}" in source for source in sources) for name in names)


def invokers(stage: Rehearsal, function: str) -> list[dict[str, Any]]:
    """The statements of its policy: rules, which may invoke it and nothing else."""
    policy = json.loads(stage.client("lambda").get_policy(FunctionName=function)["Policy"])
    statements: list[dict[str, Any]] = policy["Statement"]
    assert {each["Action"] for each in statements} == {"lambda:InvokeFunction"}
    assert all(each["Principal"] == {"Service": "events.amazonaws.com"} for each in statements)
    return statements


def test_users_find_the_deployment_and_every_name_in_it_refers_to_something(stage: Rehearsal) -> None:
    found = Access(Connection(region="us-east-1")).deployment
    stage.client("lambda").get_function(FunctionName=found.api_function)
    stage.client("s3").head_bucket(Bucket=found.bucket)
    (cluster,) = stage.client("ecs").describe_clusters(clusters=[found.cluster])["clusters"]
    assert cluster["status"] == "ACTIVE"
    groups = stage.client("logs").describe_log_groups(logGroupNamePrefix=found.log_group)["logGroups"]
    assert [each["retentionInDays"] for each in groups] == [14]


def environment_of(stage: Rehearsal, function: str) -> dict[str, str]:
    answer = stage.client("lambda").get_function_configuration(FunctionName=function)
    return {**answer["Environment"]["Variables"], "AWS_REGION": stage.region}


class Context:
    """An invocation with time for some turns of the loop, whatever each of them takes."""

    aws_request_id = "request-1"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:argosy-api"

    def __init__(self, turns: int = 6) -> None:
        self._turns = turns

    def get_remaining_time_in_millis(self) -> int:
        self._turns -= 1
        return 120_000 if self._turns >= 0 else 0


SPEC = {
    "version": 1,
    "name": "first",
    "container": {"image": "public.ecr.aws/docker/library/busybox", "command": ["true"]},
    "resources": {"vcpus": 1, "memory": 512},
    "array": {"size": 3},
}


def invoke(stage: Rehearsal, monkeypatch: pytest.MonkeyPatch, function: str, event: dict[str, Any]) -> Any:
    """The handler in a process with the environment that the template gives the function."""
    for name, value in environment_of(stage, function).items():
        monkeypatch.setenv(name, value)
    handlers.forget_process()
    try:
        return {"argosy-api": handlers.api, "argosy-controller": handlers.controller}[function](event, Context())
    finally:
        handlers.forget_process()


def test_the_functions_work_with_the_names_that_the_template_gives_them(
    stage: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own code against what CloudFormation made: submit, store, wake, prepare, and up to the first order.

    It ends at the order, because moto lacks ModifyFleet: the controller treats that as a fault of its own and goes on.
    """
    request = {"action": "SubmitRun", "clientToken": "t-1", "spec": SPEC}
    answer = invoke(stage, monkeypatch, "argosy-api", request)
    assert answer["statusCode"] == 200, answer
    run = answer["body"]["runId"]
    assert stage.client("events").describe_rule(Name="argosy-tick")["State"] == "ENABLED"
    report = invoke(stage, monkeypatch, "argosy-controller", {})
    assert (report["reason"], report["ticks"]) == ("time", 6)
    reply = invoke(stage, monkeypatch, "argosy-api", {"action": "DescribeRun", "runId": run})
    assert reply["body"]["tasks"]["pending"] == SPEC["array"]["size"]
    bucket = environment_of(stage, "argosy-api")["ARGOSY_BUCKET"]
    written = json.loads(stage.client("s3").get_object(Bucket=bucket, Key=f"{run}/spec.json")["Body"].read())
    assert written["name"] == "first"
    ecs = stage.client("ecs")
    families = ecs.list_task_definitions()["taskDefinitionArns"]
    registered = [ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"] for arn in families]
    (definition,) = (each for each in registered if "busybox" in json.dumps(each["containerDefinitions"]))
    roles = {each["RoleName"]: each["Arn"] for each in stage.client("iam").list_roles()["Roles"]}
    assert {definition["taskRoleArn"], definition["executionRoleArn"]} <= set(roles.values())


def test_the_stacks_of_two_cells_can_coexist(wide: dict[str, Template]) -> None:
    """Home first, as the CDK deploys it; its cell names home's bus and roles."""
    with mock_aws(config=NOBODY_RUNS):
        cells = [
            deploy("argosy-dev", "us-east-1", wide["argosy-dev"]),
            deploy("argosy-dev-eu-west-1", "eu-west-1", wide["argosy-dev-eu-west-1"]),
        ]
        for cell in cells:
            assert cell.missing() == set()
            assert cell.unknown() <= UNKNOWN_TO_MOTO | {"AWS::SNS::Subscription", "AWS::SNS::TopicPolicy"}
            clusters = boto3.client("ecs", region_name=cell.region).describe_clusters(clusters=["argosy-dev"])
            assert [each["status"] for each in clusters["clusters"]] == ["ACTIVE"]
        rules = boto3.client("events", region_name="us-east-1").list_rules(EventBusName="argosy-dev")["Rules"]
        urgent = {f"argosy-dev-forwarded-{kind.rule}" for kind in URGENT_KINDS}
        assert {rule["Name"] for rule in rules} == {"argosy-dev-forwarded", *urgent}
