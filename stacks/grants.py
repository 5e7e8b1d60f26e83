"""Who may do what? Every right that Argosy's own roles have, on one page.

Names are fixed by the settings, so the ARNs of all cells can be written here without a reference between stacks. The
functions' right to write their own logs is added where their log group is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from argosy.settings.settings import Settings


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
    def tick(self) -> str:
        return self.of("events", f"rule/{self.settings.prefix}-tick")

    def function(self, name: str) -> str:
        return self.of("lambda", f"function:{self.settings.prefix}-{name}")

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


def allow(
    actions: Iterable[str], resources: Iterable[str], **conditions: dict[str, str | list[str]]
) -> iam.PolicyStatement:
    """Keywords such as `StringEquals={...}` are the conditions."""
    return iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions or None)


def api(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """Reads the state, leaves requests in the inbox, wakes the controller; nothing in EC2, and in ECS it only looks at
    the task definition that a spec names."""
    requests: str | list[str] = ["INBOX", "TOKENS", "SUBMITTED"]
    return [
        allow(["dynamodb:GetItem", "dynamodb:Query"], [arns.table]),
        allow(["dynamodb:PutItem"], [arns.table], **{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": requests}}),
        allow(["lambda:InvokeFunction"], [arns.function("controller")]),
        allow(["events:EnableRule"], [arns.tick]),
        allow(["ssm:GetParameter"], [arns.images]),
        allow(["ecs:DescribeTaskDefinition"], ["*"]),  # knows no resource
        *_reads(arns, bucket),
    ]


def controller(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """Launches on our clusters, steers our fleets, ends our instances, writes results."""
    return [*_state(arns), *_tasks(arns), *_instances(arns), *_results(arns, bucket)]


def _state(arns: Arns) -> list[iam.PolicyStatement]:
    # A transaction needs the rights of the writes in it.
    items = ["GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"]
    messages = ["ReceiveMessage", "DeleteMessage"]
    bus = arns.of("events", "event-bus/default")
    return [
        allow([f"dynamodb:{name}" for name in items], [arns.table]),
        allow([f"sqs:{name}" for name in messages], [arns.queue]),
        allow(["events:EnableRule", "events:DisableRule"], [arns.tick]),
        allow(["events:PutEvents"], [bus], StringEquals={"events:source": "argosy"}),
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
        # Of the families that the owner allows, with any command; only on our clusters, and only with our roles.
        allow(["ecs:RunTask"], definitions, ArnEquals=ours),
        allow(["iam:PassRole"], _task_roles(arns), StringEquals={"iam:PassedToService": "ecs-tasks.amazonaws.com"}),
        allow(["ecs:StopTask", "ecs:DescribeTasks"], tasks, ArnEquals=ours),
        allow(["ecs:ListTasks"], ["*"], ArnEquals=ours),  # ECS's own example: the cluster is a condition here
        allow(["ecs:DescribeContainerInstances"], hosts, ArnEquals=ours),
        allow(["ecs:ListContainerInstances"], arns.clusters),
        allow(["ecs:TagResource"], tasks, StringEquals={"ecs:CreateAction": "RunTask"}),
        allow(
            ["ecs:TagResource"],
            arns.everywhere("ecs", f"task-definition/{prefix}-*"),
            StringEquals={"ecs:CreateAction": "RegisterTaskDefinition"},
        ),
        # These know no resource; what a definition may run as is decided by PassRole.
        allow(["ecs:RegisterTaskDefinition", "ecs:DescribeTaskDefinition"], ["*"]),
    ]


def _task_roles(arns: Arns) -> list[str]:
    return [arns.role("execution"), arns.role("task")]


def _instances(arns: Arns) -> list[iam.PolicyStatement]:
    roles = [arns.role(f"instance-{cell}") for cell in arns.settings.cells]
    return [
        *_ending(arns),
        # EC2's list calls know no resource. Launch templates: whether a fleet launches from the newest version.
        allow([*_market(arns), "ec2:DescribeLaunchTemplates"], ["*"]),
        allow(["ec2:DescribeFleetHistory"], arns.everywhere("ec2", "fleet/*")),
        # EC2 requires it of a caller who makes a fleet launch instances with a role.
        allow(["iam:PassRole"], roles, StringEquals={"iam:PassedToService": "ec2.amazonaws.com"}),
    ]


def _market(arns: Arns) -> list[str]:
    """The calls for prices, and for placement scores if the owner wants them."""
    scores = ["ec2:DescribeAvailabilityZones", "ec2:GetSpotPlacementScores"] if arns.settings.placement_scores else []
    return ["ec2:DescribeSpotPriceHistory", *scores]


def _results(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """A run that is tried again loses the marker of its earlier end; nothing else is ever deleted."""
    keys = [f"{name}/*" for name in arns.buckets(bucket)]
    markers = [f"{name}/*/_FAILED" for name in arns.buckets(bucket)]
    return [allow(["s3:PutObject"], keys), allow(["s3:DeleteObject"], markers), *_reads(arns, bucket)]


def _reads(arns: Arns, bucket: str, *inputs: str) -> list[iam.PolicyStatement]:
    """ListBucket also makes a missing object a 404 and not a 403."""
    names = [*arns.buckets(bucket), *inputs]
    return [
        allow(["s3:GetObject"], [f"{name}/*" for name in names]),
        allow(["s3:ListBucket"], names),
    ]


def task(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """The users' programs: read the buckets and those of the inputs, write attempts and parts, and never a run's spec,
    manifest or marker."""
    places = [f"{name}/*{part}/*" for name in arns.buckets(bucket) for part in ("/attempts", "/parts")]
    versions = [f"{name}/*" for name in arns.buckets(bucket)]  # of an input that a program may ask for by its version
    return [
        allow(["s3:PutObject", "s3:AbortMultipartUpload"], places),
        allow(["s3:GetObjectVersion"], versions),
        *_reads(arns, bucket, *arns.inputs),
    ]


def execution(arns: Arns) -> list[iam.PolicyStatement]:
    """What the ECS agent needs to start a task: pull from this account's registries, open a log stream."""
    pull = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    streams = arns.everywhere("logs", f"log-group:/ecs/{arns.settings.prefix}/tasks:*")
    return [
        allow(["ecr:GetAuthorizationToken"], ["*"]),  # knows no resource
        allow(pull, arns.everywhere("ecr", "repository/*")),
        allow(["logs:CreateLogStream", "logs:PutLogEvents"], streams),
    ]


def instance(arns: Arns, region: str) -> list[iam.PolicyStatement]:
    """The ECS agent on an instance: it may join our cluster and no other, and speak for itself."""
    cluster = arns.of("ecs", f"cluster/{arns.settings.prefix}", region)
    hosts = arns.of("ecs", f"container-instance/{arns.settings.prefix}/*", region)
    reports = ["SubmitTaskStateChange", "SubmitContainerStateChange", "SubmitAttachmentStateChanges"]
    ours: dict[str, str | list[str]] = {"ecs:cluster": cluster}
    return [
        allow(["ecs:RegisterContainerInstance", "ecs:DeregisterContainerInstance"], [cluster]),
        allow([f"ecs:{name}" for name in reports], [cluster]),
        allow(["ecs:Poll", "ecs:StartTelemetrySession", "ecs:UpdateContainerInstancesState"], [hosts], ArnEquals=ours),
        allow(["ecs:TagResource"], [hosts], StringEquals={"ecs:CreateAction": "RegisterContainerInstance"}),
        allow(["ecs:DiscoverPollEndpoint", "ec2:DescribeTags"], ["*"]),  # these two know no resource
    ]


def freeing(arns: Arns) -> list[iam.PolicyStatement]:
    """What `controller/argosy/aws/shutdown.py` does: find all our resources, lower fleets and end instances."""
    return [allow(["ec2:DescribeLaunchTemplates"], ["*"]), *_ending(arns)]


def _ending(arns: Arns) -> list[iam.PolicyStatement]:
    """Lower fleets and end instances that carry our tag."""
    ours: dict[str, str | list[str]] = {"aws:ResourceTag/argosy:stage": arns.settings.stage}
    return [
        allow(["ec2:DescribeFleets", "ec2:DescribeInstances"], ["*"]),
        allow(["ec2:ModifyFleet"], arns.everywhere("ec2", "fleet/*"), StringEquals=ours),
        allow(["ec2:TerminateInstances"], arns.everywhere("ec2", "instance/*"), StringEquals=ours),
    ]


def watchdog(arns: Arns) -> list[iam.PolicyStatement]:
    """Reads the heartbeat; ends the instances."""
    heartbeat: dict[str, str | list[str]] = {"dynamodb:LeadingKeys": ["CONTROL"]}
    return [
        allow(["dynamodb:GetItem"], [arns.table], **{"ForAllValues:StringEquals": heartbeat}),
        *freeing(arns),
    ]


def teardown(arns: Arns, region: str, bucket: str | None = None) -> list[iam.PolicyStatement]:
    """Sets the kill switch, stops the tick, ends the instances, clears the cluster; empties a bucket that goes too."""
    cluster = arns.of("ecs", f"cluster/{arns.settings.prefix}", region)
    switch: dict[str, str | list[str]] = {"dynamodb:LeadingKeys": ["CONTROL"]}
    emptying = (
        [
            allow(["s3:ListBucket", "s3:ListBucketVersions"], [bucket]),
            allow(["s3:DeleteObject", "s3:DeleteObjectVersion"], [f"{bucket}/*"]),
        ]
        if bucket
        else []
    )
    return [
        allow(["dynamodb:PutItem", "dynamodb:DeleteItem"], [arns.table], **{"ForAllValues:StringEquals": switch}),
        allow(["events:DisableRule"], [arns.tick]),
        *freeing(arns),
        allow(["ecs:ListContainerInstances", "ecs:DeregisterContainerInstance"], [cluster]),
        *emptying,
    ]


def submitter(arns: Arns, bucket: str) -> list[iam.PolicyStatement]:
    """For people and programs that use the deployment: find it, call the api, read results and logs."""
    names = arns.settings.prefix
    logs = arns.everywhere("logs", f"log-group:/ecs/{names}/tasks:*")
    return [
        allow(["lambda:InvokeFunction"], [arns.function("api")]),
        allow(
            ["ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath"],
            [arns.of("ssm", f"parameter/{names}"), arns.of("ssm", f"parameter/{names}/*")],
        ),
        allow(["logs:FilterLogEvents", "logs:GetLogEvents", "logs:DescribeLogStreams"], logs),
        # `argosy logs` asks ECS which stream an attempt wrote to.
        allow(["ecs:DescribeTasks"], arns.everywhere("ecs", f"task/{names}/*")),
        # These know no resource, or only container instances: what is for sale, and which definition a task had.
        allow(["ec2:DescribeSpotPriceHistory", "ecs:DescribeTaskDefinition"], ["*"]),
        *_reads(arns, bucket),
    ]
