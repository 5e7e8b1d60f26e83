"""The rights of what ends instances: watchdogs, the guard of cells and the teardown."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_iam as iam

from stacks.grants import Arns, allow, ending


def freeing(arns: Arns, places: Sequence[str]) -> list[iam.PolicyStatement]:
    """The rights of `controller/argosy/aws/shutdown.py`: find all our resources, lower fleets and end instances."""
    return [allow(["ec2:DescribeLaunchTemplates"], ["*"]), *ending(arns, places)]


def _records(arns: Arns, *actions: str) -> iam.PolicyStatement:
    """The heartbeat, the switches and the cells' records in home's table, and no other item."""
    return _of_partition(arns, "CONTROL", *actions)


def _of_partition(arns: Arns, partition: str, *actions: str) -> iam.PolicyStatement:
    keys: dict[str, str | list[str]] = {"dynamodb:LeadingKeys": [partition]}
    names = [f"dynamodb:{action}" for action in actions]
    return allow(names, [arns.table], **{"ForAllValues:StringEquals": keys})


def _reach(arns: Arns, region: str) -> list[str]:
    """The Regions where a function of this Region's stack may end instances. Home's: wherever a cell ever was, because
    the current settings may no longer name some."""
    return ["*"] if region == arns.settings.region else [region]


def watchdog(arns: Arns, region: str) -> list[iam.PolicyStatement]:
    """Reads the records; ends the instances. Home's watchdog also checks whether a request waits and a state is stored,
    and enables the tick."""
    queried = [_of_partition(arns, name, "Query") for name in ("INBOX", "STATE")]
    waking = [*queried, allow(["events:EnableRule"], [arns.tick])]
    at_home = region == arns.settings.region
    return [_records(arns, "Query"), *(waking if at_home else []), *freeing(arns, _reach(arns, region))]


def cell_guard(arns: Arns) -> list[iam.PolicyStatement]:
    """Looks at cells and writes their records; changes nothing in EC2."""
    looks = ["ec2:DescribeFleets", "ec2:DescribeInstances", "ec2:DescribeLaunchTemplates"]
    return [_records(arns, "Query", "PutItem", "DeleteItem"), allow(looks, ["*"])]


def teardown_begin(arns: Arns, region: str) -> list[iam.PolicyStatement]:
    """Stops the launches; home's also stops the tick."""
    tick = [allow(["events:DisableRule"], [arns.tick])] if region == arns.settings.region else []
    return [_records(arns, "PutItem"), *tick]


def teardown_wait(arns: Arns, region: str, bucket: str | None = None) -> list[iam.PolicyStatement]:
    """Ends the instances, clears the cluster; empties a bucket that goes too."""
    cluster = arns.of("ecs", f"cluster/{arns.settings.prefix}", region)
    emptying = (
        [
            allow(["s3:ListBucketVersions"], [bucket]),
            allow(["s3:DeleteObject", "s3:DeleteObjectVersion"], [f"{bucket}/*"]),
        ]
        if bucket
        else []
    )
    return [
        _records(arns, "Query", "PutItem"),
        *freeing(arns, _reach(arns, region)),
        allow(["ecs:ListContainerInstances", "ecs:DeregisterContainerInstance"], [cluster]),
        *emptying,
    ]
