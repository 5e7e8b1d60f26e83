"""The rights in the templates (no rule pack has these rules)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stacks.templates import Statement, Template, text

pytestmark = pytest.mark.stacks

ROLE = "arn:<Partition>:iam::<AccountId>:role/argosy"
SESSION_MANAGER = "arn:<Partition>:iam::aws:policy/AmazonSSMManagedInstanceCore"
AGENT_OF_EXEC = {f"ssmmessages:{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data")}


def every(templates: dict[str, Template], home: Template) -> Iterator[Statement]:
    for template in (home, *templates.values()):
        yield from template.statements()


def test_passrole_names_exact_roles_and_the_service_they_go_to(home: Template) -> None:
    """Home's watchdog and teardown pass the instances' roles of any cell, also of those that the settings forgot."""
    passed = set()
    for statement in home.statements():
        if "iam:PassRole" in statement.actions:
            assert statement.actions == ["iam:PassRole"]
            service = statement.conditions["StringEquals"]["iam:PassedToService"]
            passed |= {(statement.policy.partition("Role")[0], service, role) for role in statement.resources}
    assert passed == {
        ("Controller", "ecs-tasks.amazonaws.com", f"{ROLE}-execution"),
        ("Controller", "ecs-tasks.amazonaws.com", f"{ROLE}-task"),
        ("Controller", "ec2.amazonaws.com", f"{ROLE}-instance-us-east-1"),
        ("Api", "scheduler.amazonaws.com", f"{ROLE}-schedules"),
        *((who, "ec2.amazonaws.com", f"{ROLE}-instance-*") for who in ("Watchdog", "TeardownWait")),
    }


def test_the_way_to_a_secret_on_the_scope_page_is_the_role_that_tasks_have(home: Template) -> None:
    """Another role in a definition of one's own could not be passed."""
    page = Path(__file__).parents[2] / "docs" / "concepts" / "scope.md"
    (line,) = [each for each in page.read_text(encoding="utf-8").splitlines() if each.startswith("| secrets in specs")]
    assert "give `<prefix>-task` a policy for the secret" in line
    assert "argosy-task" in {each.get("RoleName") for each in home.of_type("AWS::IAM::Role").values()}


def test_no_right_is_a_wildcard_of_actions(home: Template, wide: dict[str, Template]) -> None:
    for statement in every(wide, home):
        assert not [
            action for action in statement.actions if action.endswith("*") and "Teardown" not in statement.policy
        ]


def test_tasks_are_started_and_stopped_on_our_clusters_only(home: Template, wide: dict[str, Template]) -> None:
    found = 0
    for statement in every(wide, home):
        if {"ecs:RunTask", "ecs:StopTask", "ecs:ListTasks"} & set(statement.actions):
            clusters = statement.conditions["ArnEquals"]["ecs:cluster"]
            for cluster in clusters if isinstance(clusters, list) else [clusters]:
                assert text(cluster).partition(":cluster/")[2] in ("argosy", "argosy-dev")
            found += 1
    assert found


def test_fleets_and_instances_of_others_are_out_of_reach(home: Template, wide: dict[str, Template]) -> None:
    found = 0
    for statement in every(wide, home):
        with_a_fleet = all(re.search(r":(image|subnet)/\*$", resource) for resource in statement.resources)
        if {"ec2:ModifyFleet", "ec2:TerminateInstances"} & set(statement.actions) and not with_a_fleet:
            assert statement.conditions["StringEquals"]["aws:ResourceTag/argosy:stage"] in ("main", "dev")
            found += 1
    assert found


def test_no_function_may_create_roles_and_only_controllers_may_buy_from_our_launch_templates_alone(
    home: Template, wide: dict[str, Template]
) -> None:
    buying = ("ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateTags")
    found = set()
    for statement in every(wide, home):
        assert not [each for each in statement.actions if each.startswith(("ec2:RequestSpot", "iam:Create", "iam:Put"))]
        if not set(buying) & set(statement.actions):
            continue
        assert "Controller" in statement.policy
        kinds = {resource.rpartition(":")[2].partition("/")[0] for resource in statement.resources}
        conditions = statement.conditions.get("StringEquals", {})
        if "launch-template" in kinds:
            assert conditions["aws:ResourceTag/argosy:stage"] in ("main", "dev")
        if kinds == {"fleet"}:
            assert conditions["aws:RequestTag/argosy:stage"] in ("main", "dev")
        if "ec2:CreateTags" in statement.actions:
            assert conditions == {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}
        if "ec2:RunInstances" in statement.actions and "instance" in kinds:
            assert "ec2:LaunchTemplate" in statement.conditions["ArnLike"]
        found |= {(action, kind) for action in statement.actions for kind in kinds}
    assert {("ec2:CreateFleet", "fleet"), ("ec2:RunInstances", "instance"), ("ec2:CreateTags", "fleet")} <= found


def test_a_controller_may_launch_into_the_reservations_of_its_settings_alone(
    home: Template, wide: dict[str, Template]
) -> None:
    def granted(*templates: Template) -> set[tuple[str, str]]:
        rights = [each for template in templates for each in template.statements()]
        return {
            (action, resource.rpartition(":")[2])
            for statement in rights
            for action in statement.actions
            for resource in statement.resources
            if "capacity-reservation/" in resource or action == "ec2:DescribeCapacityReservations"
        }

    assert granted(home) == set()
    reserved = "capacity-reservation/cr-0123456789abcdef0"
    any_of_region = "capacity-reservation/*"  # where a group is named
    assert granted(*wide.values()) == {
        ("ec2:CreateFleet", reserved),
        ("ec2:RunInstances", reserved),
        ("ec2:CreateFleet", any_of_region),
        ("ec2:RunInstances", any_of_region),
        ("ec2:GetGroupsForCapacityReservation", any_of_region),
        ("ec2:DescribeCapacityReservations", "*"),
    }


def test_the_api_only_reads_task_definitions_and_writes_only_requests(home: Template) -> None:
    rights = home.role_statements(home.function_role("argosy-api"))
    actions = {action for statement in rights for action in statement.actions}
    looks = {action for action in actions if action.startswith(("ecs:", "ec2:", "iam:"))}
    assert looks == {"ecs:DescribeTaskDefinition", "iam:PassRole"}  # of the schedules' role, to their service
    assert not actions & {"dynamodb:UpdateItem", "dynamodb:DeleteItem", "s3:PutObject"}
    (put,) = [statement for statement in rights if "dynamodb:PutItem" in statement.actions]
    keys = put.conditions["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"]
    schedules = ["FIRES", "SCHEDULES", "SCHEDULES-WAITING", "SCHEDULES-WRITTEN"]
    assert sorted(keys) == sorted(
        ["INBOX", "REVISIONS", "SUBMITTED", "TOKENS", *schedules]
    )  # and nothing that carries the version


def test_the_watchdog_may_only_look_at_heartbeat_and_inbox_wake_the_controller_and_free(home: Template) -> None:
    rights = home.role_statements(home.function_role("argosy-watchdog"))
    actions = {action for statement in rights for action in statement.actions}
    assert actions == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "dynamodb:Query",
        "iam:PassRole",
        "ec2:DescribeFleets",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplates",
        "ec2:ModifyFleet",
        "ec2:TerminateInstances",
        "sqs:SendMessage",
        "sqs:GetQueueAttributes",
        "sqs:GetQueueUrl",
        "events:EnableRule",
    }
    reads = [each for each in rights if "dynamodb:Query" in each.actions]
    keys = [each.conditions["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"] for each in reads]
    assert sorted(keys) == [["CONTROL"], ["INBOX"], ["STATE"]]


def test_tasks_write_attempts_parts_and_checkpoints_only(home: Template, wide: dict[str, Template]) -> None:
    for template, buckets in ((home, 1), (wide["argosy-dev"], 2)):
        (role,) = [
            id for id, p in template.of_type("AWS::IAM::Role").items() if p.get("RoleName", "").endswith("-task")
        ]
        rights = template.role_statements(role)
        writes = [r for s in rights if "s3:PutObject" in s.actions for r in s.resources]
        assert len(writes) == 3 * buckets
        assert all(name.endswith(("/*/attempts/*", "/*/parts/*", "/argosy/checkpoints/*")) for name in writes)
        removes = [r for s in rights if "s3:DeleteObject" in s.actions for r in s.resources]
        assert len(removes) == buckets
        assert all(name.partition("/")[2] == "argosy/checkpoints/*" for name in removes)
        assert {a for s in rights for a in s.actions} - AGENT_OF_EXEC <= {
            "s3:PutObject", "s3:AbortMultipartUpload", "s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket",
            "s3:DeleteObject",
        }  # fmt: skip


def test_programs_cannot_read_the_journal(home: Template, wide: dict[str, Template]) -> None:
    """Neither its lines, which are in the table, nor its objects in the results bucket, which they can otherwise
    read."""
    for template in (home, wide["argosy-dev"]):
        (role,) = [
            id for id, p in template.of_type("AWS::IAM::Role").items() if p.get("RoleName", "").endswith("-task")
        ]
        rights = [each for each in template.role_statements(role) if not set(each.actions) <= AGENT_OF_EXEC]
        assert not [action for s in rights for action in s.actions if not action.startswith("s3:")]
        (denied,) = template.role_statements(role, "Deny")
        on_objects = {a for s in rights for a in s.actions} - {"s3:ListBucket"}
        assert set(denied.actions) == on_objects
        assert [each.partition("/")[2] for each in denied.resources] == ["argosy/journal/*"]
        (own,) = {r.partition("/")[0] for r in denied.resources}
        assert own in {r.partition("/")[0] for s in rights for r in s.resources}


def test_tasks_may_read_the_input_buckets_and_no_role_may_write_them(home: Template, wide: dict[str, Template]) -> None:
    assert not [s for s in home.statements() if any("data-bucket" in r for r in s.resources)]
    template = wide["argosy-dev"]
    found = {
        (action, resource.removeprefix("arn:<Partition>:s3:::"))
        for statement in template.statements()
        for action in statement.actions
        for resource in statement.resources
        if "data-bucket" in resource and statement.policy.startswith("TaskRole")
    }
    assert found == {("s3:GetObject", "data-bucket/*"), ("s3:ListBucket", "data-bucket")}
    others = [s.policy for s in template.statements() if any("data-bucket" in r for r in s.resources)]
    assert all(policy.startswith("TaskRole") for policy in others), others
    listed = [r for s in template.statements() for r in s.resources if s.policy.startswith("TaskRole")]
    assert listed.count("arn:<Partition>:s3:::others-bucket") == 1  # named twice, granted once


def test_only_the_instances_role_may_register_and_only_with_our_cluster(home: Template) -> None:
    found = [s for s in home.statements() if "ecs:RegisterContainerInstance" in s.actions]
    (statement,) = found
    assert statement.policy.startswith("CellInstanceRole")
    assert all(resource.endswith(":cluster/argosy") for resource in statement.resources)


def test_the_teardown_may_empty_the_bucket_only_where_it_goes_too(home: Template, wide: dict[str, Template]) -> None:
    def deletes(template: Template) -> set[str]:
        """Exceptions: the marker of an earlier end, which the controller removes from a run that is retried,
        checkpoints, which tasks remove, and the names of uploaded folders, which users remove."""
        known = ("/*/_FAILED", "/argosy/checkpoints/*", "/argosy/programs/inputs/names/*")
        others = [s for s in template.statements() if not all(r.endswith(known) for r in s.resources)]
        return {a for s in others for a in s.actions if a.startswith("s3:Delete")}

    assert deletes(home) == set()
    assert deletes(wide["argosy-dev"]) == {"s3:DeleteObject", "s3:DeleteObjectVersion"}


def test_queues_and_bucket_refuse_anything_but_tls(home: Template) -> None:
    for kind in ("AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy"):
        for policy in home.of_type(kind).values():
            statements = policy["PolicyDocument"]["Statement"]
            assert [
                s for s in statements
                if s["Effect"] == "Deny" and s["Condition"].get("Bool", {}).get("aws:SecureTransport") == "false"
            ]  # fmt: skip
    assert len(home.of_type("AWS::SQS::QueuePolicy")) == len(home.of_type("AWS::SQS::Queue"))


def test_tasks_and_users_have_the_rights_of_exec_where_the_owner_allows_it(wide: dict[str, Template]) -> None:
    """The agent in a container has four calls, which take no resource; a user has one, on our clusters and their
    tasks."""
    template = wide["argosy-dev"]
    [role] = [id for id, p in template.of_type("AWS::IAM::Role").items() if p.get("RoleName") == "argosy-dev-task"]
    [agent] = [each for each in template.role_statements(role) if each.actions[0].startswith("ssmmessages:")]
    assert (set(agent.actions), agent.resources) == (AGENT_OF_EXEC, ["*"])
    [user] = [each for each in template.statements() if "ecs:ExecuteCommand" in each.actions]
    assert "Submitters" in user.policy
    where = [f"arn:<Partition>:ecs:{region}:<AccountId>:" for region in ("us-east-1", "eu-west-1")]
    assert set(user.resources) == {
        f"{start}{rest}" for start in where for rest in ("cluster/argosy-dev", "task/argosy-dev/*")
    }


def test_the_right_to_call_the_function_does_not_open_an_entrance(wide: dict[str, Template]) -> None:
    """IAM matches a name with a wildcard against every alias. Only callers with a grant for an alias may use it."""
    invoking = [
        (each.policy, resource)
        for template in wide.values()
        for each in template.statements()
        if "lambda:InvokeFunction" in each.actions
        for resource in each.resources
        if "-api" in str(resource)
    ]
    assert {resource for _, resource in invoking} == {
        "arn:<Partition>:lambda:us-east-1:<AccountId>:function:argosy-dev-api"
    }
    assert not any("Members" in policy for policy, _ in invoking)


def test_without_the_setting_no_role_has_rights_for_exec(home: Template, closed: Template) -> None:
    for template in (home, closed):
        assert "ssmmessages" not in str(template.body)
        assert "ExecuteCommand" not in str(template.body)


def test_only_with_the_setting_users_interrupt_instances_and_only_the_deployments_own(
    home: Template, closed: Template, wide: dict[str, Template]
) -> None:
    for template in (home, closed, wide["argosy-dev-eu-west-1"]):
        assert "fis" not in str(template.body)
    template = wide["argosy-dev"]
    role = template.named("AWS::IAM::Role", "RoleName", "argosy-dev-interrupt")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    [sends] = [each for each in template.statements() if "ec2:SendSpotInstanceInterruptions" in each.actions]
    ours = {"StringEquals": {"aws:ResourceTag/argosy:stage": "dev"}}
    assert sends.conditions == ours
    given = [each for each in template.statements() if any(name.startswith("fis:") for name in each.actions)]
    assert {each.policy[:17] for each in given} == {"OutputsSubmitters"}
    acting = [each for each in given if {"fis:DeleteExperimentTemplate", "fis:GetExperiment"} & set(each.actions)]
    assert [each.conditions for each in acting] == [ours, ours]
    [passed] = [
        each
        for each in template.statements()
        if "fis.amazonaws.com" in str(each.conditions) and "iam:PassRole" in each.actions
    ]
    assert [each.rpartition("/")[2] for each in passed.resources] == ["argosy-dev-interrupt"]


def test_only_with_the_setting_session_manager_opens_a_shell_on_an_instance(
    home: Template, closed: Template, wide: dict[str, Template]
) -> None:
    for template, expected in ((home, []), (closed, []), *((each, [SESSION_MANAGER]) for each in wide.values())):
        roles = template.of_type("AWS::IAM::Role").items()
        given = [
            text(policy) for id, role in roles if "InstanceRole" in id for policy in role.get("ManagedPolicyArns", [])
        ]
        assert given == expected


def test_users_can_see_whether_a_deployment_allows_exec(home: Template, wide: dict[str, Template]) -> None:
    for template, said in ((home, '"allowExec":false'), (wide["argosy-dev"], '"allowExec":true')):
        [parameter] = [p for p in template.of_type("AWS::SSM::Parameter").values() if "deployment" in text(p["Name"])]
        assert said in text(parameter["Value"])


def test_users_may_delete_the_names_of_uploaded_folders_and_nothing_else(wide: dict[str, Template]) -> None:
    deleting = [
        (each.policy, str(resource))
        for template in wide.values()
        for each in template.statements()
        if "s3:DeleteObject" in each.actions and ("Member" in each.policy or "Submitter" in each.policy)
        for resource in each.resources
    ]
    assert len(deleting) >= 2
    assert all(resource.endswith("/argosy/programs/inputs/names/*") for _, resource in deleting)


def test_only_this_accounts_tasks_may_have_the_tasks_role(home: Template) -> None:
    role = home.named("AWS::IAM::Role", "RoleName", "argosy-task")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_no_secret_and_no_account_is_written_down(home: Template, wide: dict[str, Template]) -> None:
    for template in (home, *wide.values()):
        whole = str(template.body)
        assert "AKIA" not in whole
        assert "aws_secret" not in whole.lower()


def test_the_controller_changes_the_targets_of_the_groups_that_the_owner_allows_and_of_no_others(
    home: Template, wide: dict[str, Template]
) -> None:
    assert not [each for each in home.statements() if any("elasticloadbalancing" in name for name in each.actions)]
    statements = (each for template in wide.values() for each in template.statements())
    (found,) = [each for each in statements if any("elasticloadbalancing" in name for name in each.actions)]
    assert found.policy.startswith("Controller")
    assert sorted(found.actions) == [
        "elasticloadbalancing:DeregisterTargets",
        "elasticloadbalancing:RegisterTargets",
    ]
    assert found.resources == [
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef",
    ]


def test_an_instance_that_becomes_an_ami_may_pull_and_nothing_else(home: Template) -> None:
    (profile,) = [
        each
        for each in home.of_type("AWS::IAM::InstanceProfile").values()
        if each.get("InstanceProfileName") == "argosy-bake"
    ]
    (role,) = [each["Ref"] for each in profile["Roles"]]
    trusted = home.of_type("AWS::IAM::Role")[role]["AssumeRolePolicyDocument"]["Statement"]
    assert [each["Principal"] for each in trusted] == [{"Service": "ec2.amazonaws.com"}]
    pull = {f"ecr:{name}" for name in ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer")}
    rights = {(action, *each.resources) for each in home.role_statements(role) for action in each.actions}
    repositories = "arn:<Partition>:ecr:us-east-1:<AccountId>:repository/*"
    assert rights == {("ecr:GetAuthorizationToken", "*"), *((action, repositories) for action in pull)}
