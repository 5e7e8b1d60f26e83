"""Launch templates, one for each instance type: image, role, disk, agent, metadata service.

A fleet is made with version 1 of its type's template, which always exists, and names that in its own template forever:
CloudFormation replaces a fleet whose template it would have to change. The controller moves fleets to later versions.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from argosy.catalogue.lookup import load_catalogue
from argosy.settings.amis import newest_ami_parameter
from argosy.settings.settings import Amis, Settings
from stacks.boot import user_data
from stacks.runner import Runner


class LaunchTemplates(Construct):
    """`by_type`: which template a type's instances start from. ECS-optimised AL2023 images, unless an AMI is pinned."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        role: iam.IRole,
        security_group: ec2.ISecurityGroup,
        runner: Runner,
    ) -> None:
        super().__init__(scope, id)
        self._settings, self._security_group, self._runner = settings, security_group, runner
        self._profile = iam.CfnInstanceProfile(self, "Profile", roles=[role.role_name])
        self._pins = settings.amis.get(cdk.Stack.of(self).region, Amis())
        self.by_type = {name: self._template(name) for name in settings.instance_types.all}

    def _image(self, kind: str) -> str:
        pinned: str | None = getattr(self._pins, kind)
        return pinned or ec2.MachineImage.from_ssm_parameter(newest_ami_parameter(kind)).get_image(self).image_id

    def _template(self, name: str) -> ec2.CfnLaunchTemplate:
        settings, kind = self._settings, load_catalogue()[name]
        policy, rates = settings.policy(), settings.volume_initialization_mibps.items()
        tags = [
            cdk.CfnTag(key="argosy:stage", value=settings.stage),
            cdk.CfnTag(key="Name", value=f"{settings.prefix} {name}"),
            *(cdk.CfnTag(key=key, value=value) for key, value in settings.tags.items()),
        ]
        return ec2.CfnLaunchTemplate(
            self,
            logical(name),
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                image_id=self._image(settings.image_of(name)),
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(arn=self._profile.attr_arn),
                security_group_ids=[self._security_group.security_group_id],
                user_data=cdk.Fn.base64(user_data(settings, name, self._runner.of[kind.architecture].arguments)),
                # Tasks must not reach the instance's role: tokens only, and no reply survives a bridge's extra hop.
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_endpoint="enabled",
                    http_tokens="required",
                    http_put_response_hop_limit=1,
                    http_protocol_ipv6="disabled",
                    instance_metadata_tags="disabled",
                ),
                block_device_mappings=[
                    _root_volume(
                        policy.disk_gib_of(kind),
                        policy.disk_mibps_of(kind),
                        next((mibps for glob, mibps in rates if fnmatchcase(name, glob)), None),
                    )
                ],
                instance_initiated_shutdown_behavior="terminate",
                # A maintain fleet takes its instances' tags from here, not from the fleet. It launches as
                # AWSServiceRoleForEC2Fleet, whose policy allows tags on instances, spot requests and volumes only: EC2
                # refuses the whole launch if a template tags anything else, such as network interfaces.
                tag_specifications=[
                    ec2.CfnLaunchTemplate.TagSpecificationProperty(resource_type=resource, tags=tags)
                    for resource in ("instance", "volume")
                ],
            ),
            tag_specifications=[
                ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty(resource_type="launch-template", tags=tags)
            ],
        )


def logical(name: str) -> str:
    """A name of AWS as a part of a logical id, one to one for types and zones: c5.2xlarge -> C52xlarge."""
    return "".join(part[:1].upper() + part[1:] for part in name.replace(".", "-").split("-"))


def _root_volume(
    size_gib: int, mibps: int, initialization_mibps: int | None
) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    return ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
        device_name="/dev/xvda",
        ebs=ec2.CfnLaunchTemplate.EbsProperty(
            volume_type="gp3",
            volume_size=size_gib,
            throughput=mibps,
            volume_initialization_rate=initialization_mibps,
            encrypted=True,
            delete_on_termination=True,
        ),
    )
