"""The home stack: state, events, functions, their end, and how the deployment is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy import layout
from argosy.messages.eventbridge import RULE_PATTERNS
from argosy.messages.urgent import URGENT_KINDS
from stacks import bundle
from tests.stacks.templates import Template, text

pytestmark = pytest.mark.stacks


@pytest.mark.parametrize(
    "kind",
    [
        "AWS::EC2::VPC",
        "AWS::ECS::Cluster",
        "AWS::EC2::EC2Fleet",
        "AWS::EC2::LaunchTemplate",
        "AWS::DynamoDB::Table",
        "AWS::SQS::Queue",
        "AWS::S3::Bucket",
        "AWS::Lambda::Function",
        "AWS::Events::Rule",
        "AWS::CloudWatch::Dashboard",
        "AWS::CloudWatch::Alarm",
        "Custom::ArgosyTeardown",
    ],
)
def test_everything_that_was_promised_is_there(home: Template, kind: str) -> None:
    assert home.of_type(kind)


def test_the_template_leaves_a_fifth_of_what_cloudformation_takes(home: Template) -> None:
    """1,000,000 bytes are the most, and the CDK's indentation took 166,000 of 870,000."""
    [file] = home.folder.glob("*.template.json")
    assert file.stat().st_size < 800_000


def test_what_holds_data_keeps_its_logical_id(home: Template) -> None:
    """Another id would replace the resource, and for the teardown run the old one in the middle of live work."""
    assert {"StateTable", "ResultsBucket", "Vpc", "Teardown", "FleetC5LargeUsEast1a"} <= home.resources.keys()


def test_the_table(home: Template) -> None:
    table = home.one("AWS::DynamoDB::Table")
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert home.resources["StateTable"]["DeletionPolicy"] == "Delete"


def test_results_stay_unless_the_settings_say_otherwise(home: Template, wide: dict[str, Template]) -> None:
    assert (
        home.resources["ResultsBucket"]["DeletionPolicy"] == "RetainExceptOnCreate"
    )  # a failed deployment leaves none
    assert wide["argosy-dev"].resources["ResultsBucket"]["DeletionPolicy"] == "Delete"


def test_unfinished_uploads_go_after_a_day_and_the_record_of_decisions_after_its_days(home: Template) -> None:
    rules = {rule["Id"]: rule for rule in home.one("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]}
    assert set(rules) == {"unfinished-uploads", "journal", "calls", "inputs", "checkpoints"}
    assert rules["unfinished-uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert (rules["journal"]["Prefix"], rules["journal"]["ExpirationInDays"]) == (layout.JOURNAL, 30)


def test_what_maps_have_sent_and_checkpoints_go_after_a_month_and_programs_stay(home: Template) -> None:
    rules = {rule["Id"]: rule for rule in home.one("AWS::S3::Bucket")["LifecycleConfiguration"]["Rules"]}
    assert (rules["calls"]["Prefix"], rules["calls"]["ExpirationInDays"]) == (layout.CALLS, 30)
    assert (rules["inputs"]["Prefix"], rules["inputs"]["ExpirationInDays"]) == (layout.INPUTS, 120)
    kept = rules["checkpoints"]
    assert (kept["Prefix"], kept["ExpirationInDays"], kept["Status"]) == (layout.CHECKPOINTS, 30, "Enabled")
    assert [rule["Prefix"] for rule in rules.values() if layout.PROGRAMS.startswith(rule.get("Prefix", "-"))] == []


def test_the_queue_hands_what_it_cannot_deliver_to_the_dead_letters(home: Template) -> None:
    queue = home.named("AWS::SQS::Queue", "QueueName", "argosy-events")
    dead = queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
    assert home.resources[dead]["Properties"]["QueueName"] == "argosy-events-dead"


def test_the_rules_let_through_what_the_controller_parses(home: Template) -> None:
    rules = {r["Name"].removeprefix("argosy-"): r for r in home.of_type("AWS::Events::Rule").values()}
    for name, pattern in RULE_PATTERNS:
        found = rules[name]["EventPattern"]
        assert (found["source"], found["detail-type"]) == (pattern["source"], pattern["detail-type"])
        if found["source"] == ["aws.ecs"]:
            (cluster,) = found["detail"]["clusterArn"]
            assert text(cluster).endswith(":us-east-1:<AccountId>:cluster/argosy")
        (target,) = rules[name]["Targets"]
        assert target["Arn"]["Fn::GetAtt"][0].startswith("StoreEvents")
    urgent = {kind.rule for kind in URGENT_KINDS}
    assert rules.keys() == {name for name, _ in RULE_PATTERNS} | urgent | {"tick", "watchdog", "ends-of-runs"}


def test_what_is_urgent_calls_the_controller_and_nothing_repeats_the_call(home: Template) -> None:
    for kind in URGENT_KINDS:
        rule = home.named("AWS::Events::Rule", "Name", f"argosy-{kind.rule}")
        pattern, (target,) = rule["EventPattern"], rule["Targets"]
        assert (pattern["source"], pattern["detail-type"]) == ([kind.source], [kind.detail_type, *kind.also])
        said = {name: allowed for name, allowed in pattern.get("detail", {}).items() if name != "clusterArn"}
        assert said == dict(kind.detail)
        assert ("clusterArn" in pattern.get("detail", {})) is (kind.source == "aws.ecs")
        assert target["Arn"]["Fn::GetAtt"][0].startswith("Controller")
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}


def test_every_target_has_somewhere_to_put_what_it_cannot_deliver(home: Template, wide: dict[str, Template]) -> None:
    for template in (home, *wide.values()):
        for rule in template.of_type("AWS::Events::Rule").values():
            assert all("DeadLetterConfig" in target for target in rule["Targets"])


def test_the_tick_is_off_at_rest_and_the_watchdog_never(home: Template) -> None:
    tick = home.named("AWS::Events::Rule", "Name", "argosy-tick")
    assert (tick["State"], tick["ScheduleExpression"]) == ("DISABLED", "rate(1 minute)")
    assert tick["Targets"][0]["RetryPolicy"]["MaximumRetryAttempts"] == 0
    assert home.named("AWS::Events::Rule", "Name", "argosy-watchdog")["State"] == "ENABLED"


def function(template: Template, name: str) -> dict[str, Any]:
    return template.named("AWS::Lambda::Function", "FunctionName", name)


def test_the_functions(home: Template) -> None:
    for name, handler in {
        "argosy-api": "argosy.handlers.api",
        "argosy-controller": "argosy.handlers.controller",
        "argosy-watchdog": "argosy.aws.watchdog.handler",
        "argosy-teardown-begin": "argosy.aws.teardown.on_event",
        "argosy-teardown-wait": "argosy.aws.teardown.is_complete",
    }.items():
        found = function(home, name)
        assert (found["Handler"], found["Runtime"], found["Architectures"]) == (handler, "python3.13", ["arm64"])
        assert "VpcConfig" not in found  # its network interfaces would hold up `cdk destroy` for an hour
    assert function(home, "argosy-controller")["Timeout"] == 900


def test_the_controllers_invocations_are_few_and_never_repeated(home: Template, wide: dict[str, Template]) -> None:
    assert "ReservedConcurrentExecutions" not in function(home, "argosy-controller")  # new accounts have none to give
    assert function(wide["argosy-dev"], "argosy-dev-controller")["ReservedConcurrentExecutions"] == 3
    configs = home.of_type("AWS::Lambda::EventInvokeConfig").values()
    by_function = {text(c["FunctionName"]): c for c in configs}
    (controller,) = [c for name, c in by_function.items() if name.startswith("<Controller")]
    assert controller["MaximumRetryAttempts"] == 0
    assert "OnFailure" in controller["DestinationConfig"]


def test_no_queue_invokes_a_function_that_feeds_it(home: Template) -> None:
    assert not home.of_type("AWS::Lambda::EventSourceMapping")


CONTRACT = {
    "ARGOSY_STAGE", "ARGOSY_TABLE", "ARGOSY_QUEUE_URL", "ARGOSY_CLUSTER", "ARGOSY_BUCKET", "ARGOSY_LOG_GROUP",
    "ARGOSY_CONTROLLER_FUNCTION", "ARGOSY_TICK_RULE", "ARGOSY_EXECUTION_ROLE_ARN", "ARGOSY_TASK_ROLE_ARN",
    "ARGOSY_API_FUNCTION_ARN", "ARGOSY_SCHEDULES_ROLE_ARN", "ARGOSY_SETTINGS", "ARGOSY_IDENTITY",
}  # fmt: skip


def test_api_and_controller_get_the_names_they_need_within_lambdas_limit(
    home: Template, wide: dict[str, Template]
) -> None:
    for template, prefix in ((home, "argosy"), (wide["argosy-dev"], "argosy-dev")):
        for name in ("api", "controller"):
            variables = function(template, f"{prefix}-{name}")["Environment"]["Variables"]
            assert variables.keys() == CONTRACT
            assert sum(len(key) + len(text(value)) for key, value in variables.items()) < 4096
            assert variables["ARGOSY_TICK_RULE"] == f"{prefix}-tick"


def test_every_log_group_has_an_end_and_every_function_a_log_group(home: Template, wide: dict[str, Template]) -> None:
    for template in (home, *wide.values()):
        groups = template.of_type("AWS::Logs::LogGroup")
        assert all(group["RetentionInDays"] == 14 for group in groups.values())
        assert all(template.resources[id]["DeletionPolicy"] == "Delete" for id in groups)
        for found in template.of_type("AWS::Lambda::Function").values():
            assert found["LoggingConfig"]["LogGroup"]["Ref"] in groups


def test_on_destroy_the_teardown_comes_before_everything_that_it_frees_or_needs(
    home: Template, wide: dict[str, Template]
) -> None:
    for template in (home, *wide.values()):
        after = template.reaches("Teardown")
        for kind in (
            "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::ECS::Cluster", "AWS::EC2::EC2Fleet", "AWS::EC2::LaunchTemplate",
            "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::Lambda::Function", "AWS::Events::Rule",
            "AWS::IAM::Role", "AWS::IAM::Policy", "AWS::Logs::LogGroup", "AWS::IAM::InstanceProfile",
        ):  # fmt: skip
            assert template.of_type(kind).keys() <= after, kind


def test_whatever_can_carry_the_ownership_tag_does(home: Template) -> None:
    for kind in (
        "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup", "AWS::ECS::Cluster", "AWS::DynamoDB::Table",
        "AWS::ECS::TaskDefinition", "AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::Lambda::Function", "AWS::IAM::Role",
        "AWS::Logs::LogGroup", "AWS::CloudWatch::Alarm", "AWS::StepFunctions::StateMachine", "AWS::Events::Rule",
    ):  # fmt: skip
        for id, properties in home.of_type(kind).items():
            assert {"Key": "argosy:stage", "Value": "main"} in properties.get("Tags", []), id
    for parameter in home.of_type("AWS::SSM::Parameter").values():
        assert parameter["Tags"] == {"argosy:stage": "main"}


def test_outputs_under_the_names_that_others_know_and_ours(home: Template) -> None:
    outputs = home.body["Outputs"]
    for name in (
        "ClusterName", "VpcId", "PublicSubnetOne", "PublicSubnetTwo", "ContainerSecurityGroup", "ECSTaskExecutionRole",
    ):  # fmt: skip
        assert outputs[name]["Export"] == {"Name": f"argosy:{name}"}
    for name in (
        "ApiFunctionName",
        "ControllerFunctionName",
        "ResultsBucketName",
        "LogGroupName",
        "TaskDefinition4Gpu",
    ):
        assert "Export" not in outputs[name]


def test_the_command_finds_the_deployment_by_one_parameter(home: Template) -> None:
    parameter = home.named("AWS::SSM::Parameter", "Name", "/argosy/deployment")
    found = json.loads(text(parameter["Value"]))
    assert found == {
        "stage": "main",
        "region": "us-east-1",
        "cells": ["us-east-1"],
        "cluster": "argosy",
        "apiFunction": "argosy-api",
        "controllerFunction": "argosy-controller",
        "bucket": "<ResultsBucket>",
        "logGroup": "/ecs/argosy/tasks",
        "table": "argosy-state",
        "queueUrl": found["queueUrl"],
        "python": "3.12",
        "allowExec": False,
        "allowInterrupt": False,
        "inputDays": 120,
        "identity": {"host": "sts.us-east-1.<URLSuffix>", "deployment": "<AccountId>/us-east-1/argosy"},
    }


def test_alarms_go_by_mail_only_when_asked(home: Template, wide: dict[str, Template]) -> None:
    assert not home.of_type("AWS::SNS::Topic")
    assert all(alarm["AlarmActions"] for alarm in wide["argosy-dev"].of_type("AWS::CloudWatch::Alarm").values())


def test_the_dashboard_shows_metrics_that_the_controller_emits(home: Template) -> None:
    source = (bundle.SOURCE / "argosy" / "handlers.py").read_text()
    body = text(home.one("AWS::CloudWatch::Dashboard")["DashboardBody"])
    shown = {
        metric[1]
        for widget in json.loads(body)["widgets"]
        for metric in widget["properties"].get("metrics", [])
        if metric[0] == "Argosy"
    }
    assert shown
    assert all(f'"{name}"' in source for name in shown)


def asset(template: Template, function_name: str) -> str:
    key = function(template, function_name)["Code"]["S3Key"].removesuffix(".zip")
    return str(template.folder / f"asset.{key}")


@pytest.mark.parametrize(
    ("name", "module"),
    [("argosy-watchdog", "argosy.aws.watchdog"), ("argosy-teardown-wait", "argosy.aws.teardown")],
)
def test_the_small_functions_run_from_their_zip_alone(home: Template, name: str, module: str) -> None:
    program = f"import {module}, sys; print('numpy' in sys.modules, 'pydantic' in sys.modules)"
    command = [sys.executable, "-P", "-c", program]
    environment = {"PYTHONPATH": asset(home, name), "PYTHONDONTWRITEBYTECODE": "1"}
    answer = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert answer.stdout.strip() == "False False", answer.stderr


def test_the_controllers_zip_holds_the_handlers_and_their_data_but_no_local_mode(home: Template) -> None:
    folder = Path(asset(home, "argosy-controller")) / "argosy"
    assert (folder / "handlers.py").is_file()
    assert (folder / "catalogue" / "prices.json").is_file()
    assert not [name for name in bundle.USERS_HALF if (folder / name).exists()]


def test_every_module_in_the_controllers_zip_can_be_imported_from_there(home: Template) -> None:
    program = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
for path in sorted((root / "argosy").rglob("*.py")):
    importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
print(sys.modules["argosy"].__file__)
"""
    folder = asset(home, "argosy-controller")
    environment = {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "AWS_REGION": "us-east-1"}
    command = [sys.executable, "-P", "-c", program, folder]
    answer = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert answer.stdout.startswith(folder), answer.stderr


def test_cloudformation_waits_an_hour_for_the_teardown_and_no_longer(home: Template) -> None:
    assert home.resources["Teardown"]["Properties"]["ServiceTimeout"] == "3600"
    machines = home.of_type("AWS::StepFunctions::StateMachine")
    assert machines  # the framework's own waiting, which must end first


def test_the_api_verifies_signatures_for_the_deployment_that_the_parameter_names(home: Template) -> None:
    parameter = home.named("AWS::SSM::Parameter", "Name", "/argosy/deployment")
    api = home.named("AWS::Lambda::Function", "FunctionName", "argosy-api")
    told = json.loads(text(api["Environment"]["Variables"]["ARGOSY_IDENTITY"]))
    assert told == json.loads(text(parameter["Value"]))["identity"]
