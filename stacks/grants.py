"""The rights of Argosy's own roles, all on one page.

Names are fixed by the settings, so the ARNs of all cells can be written here without a reference between stacks. The
functions' right to write their own logs is added where their log group is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from argosy.settings.settings import Settings

SCHEDULES = ("SCHEDULES", "SCHEDULES-WRITTEN", "SCHEDULES-WAITING", "FIRES")  # partitions of the table
JOURNAL, PROGRAMS = "argosy/journal/", "argosy/programs/"  # folders of the results bucket


@dataclass(frozen=True)
class Arns:
    """The ARNs of a deployment's resources, by name. Regions are in the order of the cells; the first is home."""

    settings: Settings
    partition: str = cdk.Aws.PARTITION
    account: str = cdk.Aws.ACCOUNT_ID

    def of(self, service: str, rest: str, region: str | None = None) -> str:
        place = self.settings.region if region is None else region
        return f"arn:{self.partition}:{service}:{place}:{self.account}:{rest}"

    def everywhere(self, service: str, rest: str) -> list[str]:
        return [self.of(service, rest, cell) for cell in self.settings.cells]

    def role(self, name: str) -> str:
        return self.of("iam", f"role/{self.settings.prefix}-{name}", "")

    @property
    def clusters(self) -> list[str]:
        return self.everywhere("ecs", f"cluster/{self.settings.prefix}")

    @property
    def table(self) -> str:
        return self.of("dynamodb", f"table/{self.settings.prefix}-state")

    @property
    def queue(self) -> str:
        return self.of("sqs", f"{self.settings.prefix}-events")

    @property
    def logs(self) -> list[str]:
        return self.everywhere("logs", f"log-group:/ecs/{self.settings.prefix}/tasks:*")

    @property
    def tick(self) -> str:
        return self.of("events", f"rule/{self.settings.prefix}-tick")

    def function(self, name: str) -> str:
        return self.of("lambda", f"function:{self.settings.prefix}-{name}")

    @property
    def schedules(self) -> str:
        return self.of("scheduler", f"schedule/{self.settings.prefix}/*")

    @property
    def schedule_group(self) -> str:
        return self.of("scheduler", f"schedule-group/{self.settings.prefix}")

    @property
    def images(self) -> str:
        return self.of("ssm", f"parameter/{self.settings.prefix}/images/*")

    def buckets(self, own: str) -> list[str]:
        """The results bucket (its ARN) and the further ones that the settings allow."""
        return [own, *self._named(self.settings.output_buckets)]

    @property
    def inputs(self) -> list[str]:
        """The buckets that the users' programs may read and that Argosy does not write."""
        return self._named(name for name in self.settings.input_buckets if name not in self.settings.output_buckets)

    def _named(self, buckets: Iterable[str]) -> list[str]:
        return [f"arn:{self.partition}:s3:::{name}" for name in buckets]


def signed_for(settings: Settings) -> dict[str, str]:
    """The recipient of requests that callers sign to prove their identity (`model/signed_requests.py`)."""
    host = f"sts.{settings.region}.{cdk.Aws.URL_SUFFIX}"
    return {"host": host, "deployment": f"{cdk.Aws.ACCOUNT_ID}/{settings.region}/{settings.prefix}"}


def allow(
    actions: Iterable[str], resources: Iterable[str], **conditions: dict[str, str | list[str]]
) -> iam.PolicyStatement:
    """Keywords such as `StringEquals={...}` are the conditions."""
    return iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions or None)


def deny(actions: Iterable[str], resources: Iterable[str]) -> iam.PolicyStatement:
    """Denies the actions even where another statement allows them."""
    return iam.PolicyStatement(effect=iam.Effect.DENY, actions=list(actions), resources=list(resources))


def api(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """Reads the state, leaves requests in the inbox, wakes the controller. It has no rights in EC2; in ECS it only
    reads the task definition that a spec names."""
    requests: str | list[str] = ["INBOX", "TOKENS", "SUBMITTED", "REVISIONS", *SCHEDULES]
    return [
        allow(["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"], [arns.table]),
        allow(["dynamodb:PutItem"], [arns.table], **{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": requests}}),
        allow(["lambda:InvokeFunction"], [arns.function("controller")]),
        allow(["events:EnableRule"], [arns.tick]),
        allow(["ssm:GetParameter"], [arns.images]),
        allow(["ecs:DescribeTaskDefinition"], ["*"]),  # has no resource
        allow(["ecr:DescribeImages"], arns.everywhere("ecr", "repository/*")),  # the size of an image, for a plan
        *_clock(arns),
        *_reads(arns, bucket),
    ]


def _clock(arns: Arns) -> list[iam.PolicyStatement]:
    """Schedules of our group, which fire with the one role for that; and the right to report a missed time."""
    fires: dict[str, str | list[str]] = {"iam:PassedToService": "scheduler.amazonaws.com"}
    return [
        allow([f"scheduler:{name}Schedule" for name in ("Create", "Update", "Delete")], [arns.schedules]),
        allow(["iam:PassRole"], [arns.role("schedules")], StringEquals=fires),
        _publish(arns),
    ]


def _publish(arns: Arns) -> iam.PolicyStatement:
    """Our own events. AWS lists `events:source` as a key of several values, its user guide compares it like a key of
    one: this form holds under both, and only when the key is there."""
    said: dict[str, dict[str, str | list[str]]] = {
        "ForAllValues:StringEquals": {"events:source": "argosy"},
        "Null": {"events:source": "false"},
    }
    return allow(["events:PutEvents"], [arns.of("events", "event-bus/default")], **said)


def schedules(arns: Arns) -> list[iam.PolicyStatement]:
    """EventBridge Scheduler may call the api function, and nothing else."""
    return [allow(["lambda:InvokeFunction"], [arns.function("api")])]


def controller(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """Launches on our clusters, steers our fleets, ends our instances, writes results."""
    return [*_state(arns), *_tasks(arns), *_instances(arns), *_results(arns, bucket), *_targets(arns)]


def _targets(arns: Arns) -> list[iam.PolicyStatement]:
    """Target groups that the owner allows, and no others."""
    groups = sorted(set(arns.settings.target_groups.values()))
    changes = [f"elasticloadbalancing:{name}Targets" for name in ("Register", "Deregister")]
    return [allow(changes, groups)] if groups else []


def _state(arns: Arns) -> list[iam.PolicyStatement]:
    # A transaction needs the rights of the writes in it.
    items = ["GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"]
    messages = ["ReceiveMessage", "DeleteMessage"]
    return [
        allow([f"dynamodb:{name}" for name in items], [arns.table]),
        allow([f"sqs:{name}" for name in messages], [arns.queue]),
        allow(["events:EnableRule", "events:DisableRule"], [arns.tick]),
        _publish(arns),
    ]


def _tasks(arns: Arns) -> list[iam.PolicyStatement]:
    ours: dict[str, str | list[str]] = {"ecs:cluster": arns.clusters}
    prefix = arns.settings.prefix
    tasks = arns.everywhere("ecs", f"task/{prefix}/*")
    hosts = arns.everywhere("ecs", f"container-instance/{prefix}/*")
    definitions = [
        each for glob in arns.settings.families for each in arns.everywhere("ecs", f"task-definition/{glob}:*")
    ]
    return [
        # Families that the owner allows, with any command; only on our clusters, and only with our roles.
        allow(["ecs:RunTask"], definitions, ArnEquals=ours),
        allow(["iam:PassRole"], _task_roles(arns), StringEquals={"iam:PassedToService": "ecs-tasks.amazonaws.com"}),
        allow(["ecs:StopTask", "ecs:DescribeTasks"], tasks, ArnEquals=ours),
        allow(["ecs:ListTasks"], ["*"], ArnEquals=ours),  # ECS's own example: the cluster is a condition here
        allow(["ecs:DescribeContainerInstances", "ecs:UpdateContainerInstancesState"], hosts, ArnEquals=ours),
        allow(["ecs:ListContainerInstances"], arns.clusters),
        allow(["ecs:TagResource"], tasks, StringEquals={"ecs:CreateAction": "RunTask"}),
        allow(
            ["ecs:TagResource"],
            arns.everywhere("ecs", f"task-definition/{prefix}-*"),
            StringEquals={"ecs:CreateAction": "RegisterTaskDefinition"},
        ),
        # These take no resource; PassRole decides what a definition may run as, and only definitions whose names
        # are ours are deregistered.
        allow(["ecs:RegisterTaskDefinition", "ecs:DeregisterTaskDefinition", "ecs:DescribeTaskDefinition"], ["*"]),
        allow(["logs:GetLogEvents"], arns.logs),  # of failed tasks
    ]


def _task_roles(arns: Arns) -> list[str]:
    return [arns.role("execution"), arns.role("task")]


def _instances(arns: Arns) -> list[iam.PolicyStatement]:
    return [
        *ending(arns, arns.settings.cells),
        # EC2's list calls have no resource. Launch templates: whether a fleet launches from the newest version.
        allow([*_market(arns), "ec2:DescribeLaunchTemplates", "ec2:DescribeInstanceStatus"], ["*"]),
        allow(
            ["ec2:GetConsoleOutput"],
            arns.everywhere("ec2", "instance/*"),
            StringEquals={"aws:ResourceTag/argosy:stage": arns.settings.stage},
        ),
        allow(["ec2:DescribeFleetHistory"], arns.everywhere("ec2", "fleet/*")),
        allow(["pricing:GetProducts"], ["*"]),  # has no resource
        *_on_demand(arns),
    ]


def _on_demand(arns: Arns) -> list[iam.PolicyStatement]:
    """A fleet of type instant launches with the caller's rights: only from our launch templates, and with our tag.
    Role, image and security group come from the template; the deployment alone makes versions of it."""

    def ec2(*names: str) -> list[str]:
        return [arn for name in names for arn in arns.everywhere("ec2", f"{name}/*")]

    ours: dict[str, str | list[str]] = {"aws:ResourceTag/argosy:stage": arns.settings.stage}
    tagged: dict[str, str | list[str]] = {"aws:RequestTag/argosy:stage": arns.settings.stage}
    with_template: dict[str, str | list[str]] = {"ec2:LaunchTemplate": ec2("launch-template")}
    made: dict[str, str | list[str]] = {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}
    images = [f"arn:{arns.partition}:ec2:{cell}::image/*" for cell in arns.settings.cells]
    reserved = _reserved(arns)
    grouped = [each for each in reserved if each.endswith("/*")]
    return [
        *([allow(["ec2:GetGroupsForCapacityReservation"], grouped)] if grouped else []),
        allow(["ec2:CreateFleet"], ec2("fleet"), StringEquals=tagged),
        allow(["ec2:CreateFleet", "ec2:RunInstances"], ec2("launch-template"), StringEquals=ours),
        allow(["ec2:CreateFleet"], [*images, *reserved, *ec2("instance", "subnet", "volume")]),
        allow(["ec2:RunInstances"], ec2("instance"), ArnLike=with_template),
        allow(
            ["ec2:RunInstances"],
            [*images, *reserved, *ec2("network-interface", "security-group", "subnet", "volume")],
        ),
        allow(["ec2:CreateTags"], ec2("fleet", "instance", "volume"), StringEquals=made),
    ]


def _reserved(arns: Arns) -> list[str]:
    """The Capacity Reservations of the settings; all of a Region where these name a group, whose members change."""
    named = arns.settings.capacity_reservations.items()
    ids = {(cell, "*" if each.startswith("arn:") else each): None for cell, names in named for each in names}
    return [arns.of("ec2", f"capacity-reservation/{each}", cell) for cell, each in ids]


def ending(arns: Arns, places: Sequence[str]) -> list[iam.PolicyStatement]:
    """Change fleets and end instances that carry our tag. places: Regions, or "*" for all of them."""
    ours: dict[str, str | list[str]] = {"aws:ResourceTag/argosy:stage": arns.settings.stage}

    def ec2(*names: str) -> list[str]:
        return [arns.of("ec2", f"{name}/*", place) for name in names for place in places]

    # ModifyFleet also needs rights for the launch parameters: AWS's Service Authorization Reference names image,
    # launch template and subnet. An image of AWS's has no account and no tag of ours. PassRole: EC2 requires it of a
    # caller who makes a fleet launch instances with a role, and may do so for every change of a fleet.
    images = [f"arn:{arns.partition}:ec2:{place}::image/*" for place in places]
    return [
        allow(["ec2:DescribeFleets", "ec2:DescribeInstances"], ["*"]),
        allow(["ec2:ModifyFleet"], ec2("fleet", "launch-template"), StringEquals=ours),
        allow(["ec2:ModifyFleet"], [*images, *ec2("subnet")]),
        allow(["ec2:TerminateInstances"], ec2("instance"), StringEquals=ours),
        allow(
            ["iam:PassRole"],
            [arns.role(f"instance-{place}") for place in places],
            StringEquals={"iam:PassedToService": "ec2.amazonaws.com"},
        ),
    ]


def _market(arns: Arns) -> list[str]:
    """The calls for prices and offered types, and for placement scores and the account's interruptions if the owner
    wants them, and for the Capacity Reservations that the settings name."""
    wanted = {
        "GetSpotPlacementScores": arns.settings.placement_scores,
        "GetCapacityManagerMetricData": arns.settings.capacity_manager,
    }
    asked = [name for name, is_wanted in wanted.items() if is_wanted]
    zones = ["DescribeAvailabilityZones"] if asked else []
    asked += ["DescribeCapacityReservations"] if arns.settings.capacity_reservations else []
    return [f"ec2:{name}" for name in ("DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory", *zones, *asked)]


def _results(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """Removes the marker of the earlier end when a run is tried again; nothing else is ever deleted."""
    keys = [f"{name}/*" for name in arns.buckets(bucket)]
    markers = [f"{name}/*/_FAILED" for name in arns.buckets(bucket)]
    return [allow(["s3:PutObject"], keys), allow(["s3:DeleteObject"], markers), *_reads(arns, bucket)]


def _reads(arns: Arns, bucket: str, *inputs: str) -> list[iam.PolicyStatement]:
    """ListBucket also makes a missing object a 404 and not a 403."""
    names = [*arns.buckets(bucket), *inputs]
    return [allow(["s3:GetObject"], [f"{name}/*" for name in names]), allow(["s3:ListBucket"], names)]


def task(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """The users' programs: read the buckets and those of the inputs, write attempts, parts and checkpoints, and never a
    run's spec, manifest or marker. Only checkpoints are removed. Argosy's own records are out of their reach: they have
    no right on the table, and none on the folder of the journal."""
    names = arns.buckets(bucket)
    places = [f"{name}/{part}/*" for name in names for part in ("*/attempts", "*/parts", "argosy/checkpoints")]
    on_objects = ("GetObject", "GetObjectVersion", "PutObject", "AbortMultipartUpload", "DeleteObject")
    return [
        allow(["s3:PutObject", "s3:AbortMultipartUpload"], places),
        allow(["s3:DeleteObject"], [f"{name}/argosy/checkpoints/*" for name in names]),
        allow(["s3:GetObjectVersion"], [f"{name}/*" for name in names]),  # a program may ask for one of an input
        *_reads(arns, bucket, *arns.inputs),
        deny([f"s3:{name}" for name in on_objects], [f"{bucket}/{JOURNAL}*"]),
        *_exec_agent(arns),
    ]


def _exec_agent(arns: Arns) -> list[iam.PolicyStatement]:
    """The calls of ECS Exec's agent in a container, made with the task's role, where the owner allows exec. They take
    no resource:
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html#ecs-exec-required-iam-permissions"""
    channels = [f"{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data")]
    return [allow([f"ssmmessages:{name}" for name in channels], ["*"])] if arns.settings.allow_exec else []


def execution(arns: Arns) -> list[iam.PolicyStatement]:
    """The ECS agent starting a task: pull from this account's registries, open a log stream."""
    return [*bake(arns), allow(["logs:CreateLogStream", "logs:PutLogEvents"], arns.logs)]


def bake(arns: Arns) -> list[iam.PolicyStatement]:
    """An instance that becomes an AMI (`argosy image bake`): pull from this account's registries. A token for these
    takes no resource."""
    pull = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    return [allow(["ecr:GetAuthorizationToken"], ["*"]), allow(pull, arns.everywhere("ecr", "repository/*"))]


def managed_for_instance(settings: Settings) -> list[str]:
    """AWS's own policies on an instance's role. Session Manager's also reads the account's SSM parameters."""
    return ["AmazonSSMManagedInstanceCore"] if settings.allow_ssm else []


def instance(arns: Arns, region: str, runners: Sequence[str]) -> list[iam.PolicyStatement]:
    """The ECS agent and the boot script on an instance: they join our cluster, report, and read the runner."""
    cluster = arns.of("ecs", f"cluster/{arns.settings.prefix}", region)
    hosts = arns.of("ecs", f"container-instance/{arns.settings.prefix}/*", region)
    reports = ["SubmitTaskStateChange", "SubmitContainerStateChange", "SubmitAttachmentStateChanges"]
    of_hosts = ["Poll", "PutAttributes", "StartTelemetrySession", "UpdateContainerInstancesState"]
    ours: dict[str, str | list[str]] = {"ecs:cluster": cluster}
    return [
        allow(["ecs:RegisterContainerInstance", "ecs:DeregisterContainerInstance"], [cluster]),
        allow([f"ecs:{name}" for name in reports], [cluster]),
        allow([f"ecs:{name}" for name in of_hosts], [hosts], ArnEquals=ours),
        allow(["ecs:TagResource"], [hosts], StringEquals={"ecs:CreateAction": "RegisterContainerInstance"}),
        allow(["ecs:DiscoverPollEndpoint"], ["*"]),  # has no resource
        allow(["s3:GetObject"], runners),
    ]


def submitter(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """For people and programs that may use the whole deployment, whatever the queue. Without a wildcard in the
    function's name: that would also admit them through every queue's entrance, so no user could be kept out of a queue.
    """
    clusters, tasks = arns.clusters, arns.everywhere("ecs", f"task/{arns.settings.prefix}/*")
    return [
        allow(["lambda:InvokeFunction"], [arns.function("api")]),
        # `argosy exec`, where the owner allows it. ECS asks for the right on the cluster and on the task.
        *([allow(["ecs:ExecuteCommand"], [*clusters, *tasks])] if arns.settings.allow_exec else []),
        *member(arns, bucket),
    ]


def member(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """For people and programs that use a queue: find the deployment, view it, read results and logs, upload programs,
    inputs and their names. No `argosy exec`: IAM can name tasks, but not the queues that they belong to."""
    prefix = arns.settings.prefix
    ours: dict[str, str | list[str]] = {"ecs:cluster": arns.clusters}
    tasks = arns.everywhere("ecs", f"task/{prefix}/*")
    hosts = arns.everywhere("ecs", f"container-instance/{prefix}/*")
    return [
        allow(["ssm:GetParameter"], [arns.of("ssm", f"parameter/{prefix}/deployment")]),
        # The command reads the stack's outputs if the parameter was deleted.
        allow(["cloudformation:DescribeStacks"], [arns.of("cloudformation", f"stack/{prefix}/*")]),
        allow(["logs:GetLogEvents"], arns.logs),
        # `argosy logs` asks ECS which stream an attempt wrote to, also of one that has ended; `argosy query` lists.
        allow(["ecs:DescribeTasks"], tasks, ArnEquals=ours),
        allow(["ecs:ListTasks"], ["*"], ArnEquals=ours),
        allow(["ecs:ListContainerInstances"], arns.clusters),
        allow(["ecs:DescribeContainerInstances"], hosts, ArnEquals=ours),
        # Offers for sale, and the log that a definition writes: these take no resource that could be named here.
        allow(["ec2:DescribeSpotPriceHistory", "ecs:DescribeTaskDefinition"], ["*"]),
        allow(["s3:PutObject", "s3:AbortMultipartUpload"], [f"{bucket}/{PROGRAMS}*"]),
        allow(["s3:DeleteObject"], [f"{bucket}/{PROGRAMS}inputs/names/*"]),
        *_reads(arns, bucket),
    ]
