"""How does an instance start? The CPU and GPU launch templates: image, role, disk, agent settings, metadata service."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from argosy.catalogue.lookup import ECS_RESERVED_MEMORY_MIB
from argosy.settings.settings import Amis, Settings

# GiB. The AMI takes 30; the rest is for images and scratch. CUDA images are several GB each.
ROOT_VOLUME_GIB = {"Cpu": 60, "Gpu": 150}


class LaunchTemplates(Construct):
    """`cpu` and `gpu`: ECS-optimised AL2023 images, by SSM parameter unless the settings pin an AMI."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        role: iam.IRole,
        security_group: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(scope, id)
        self._settings, self._security_group = settings, security_group
        self._profile = iam.CfnInstanceProfile(self, "Profile", roles=[role.role_name])
        pins = settings.amis.get(cdk.Stack.of(self).region, Amis())
        self.cpu = self._template("Cpu", pins.cpu or self._newest(ecs.AmiHardwareType.STANDARD))
        self.gpu = self._template("Gpu", pins.gpu or self._newest(ecs.AmiHardwareType.GPU))

    def _newest(self, hardware: ecs.AmiHardwareType) -> str:
        return ecs.EcsOptimizedImage.amazon_linux2023(hardware).get_image(self).image_id

    def _template(self, kind: str, image_id: str) -> ec2.CfnLaunchTemplate:
        settings = self._settings
        tags = [
            cdk.CfnTag(key="argosy:stage", value=settings.stage),
            cdk.CfnTag(key="Name", value=f"{settings.prefix} {kind.lower()}"),
        ]
        return ec2.CfnLaunchTemplate(
            self,
            kind,
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                image_id=image_id,
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(arn=self._profile.attr_arn),
                security_group_ids=[self._security_group.security_group_id],
                user_data=cdk.Fn.base64(user_data(settings, gpu=kind == "Gpu")),
                # Tasks must not reach the instance's role: tokens only, and no reply survives a bridge's extra hop.
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_endpoint="enabled",
                    http_tokens="required",
                    http_put_response_hop_limit=1,
                    http_protocol_ipv6="disabled",
                    instance_metadata_tags="disabled",
                ),
                block_device_mappings=[_root_volume(ROOT_VOLUME_GIB[kind])],
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


def _root_volume(size_gib: int) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    return ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
        device_name="/dev/xvda",
        ebs=ec2.CfnLaunchTemplate.EbsProperty(
            volume_type="gp3", volume_size=size_gib, encrypted=True, delete_on_termination=True
        ),
    )


def user_data(settings: Settings, *, gpu: bool) -> str:
    """The boot script. The firewall rule comes first: without it there is no agent configuration, so nothing joins."""
    agent = {
        "ECS_CLUSTER": settings.prefix,
        "ECS_ENABLE_SPOT_INSTANCE_DRAINING": "true",
        "ECS_CONTAINER_INSTANCE_PROPAGATE_TAGS_FROM": "ec2_instance",
        "ECS_RESERVED_MEMORY": ECS_RESERVED_MEMORY_MIB,
        "ECS_CONTAINER_STOP_TIMEOUT": f"{settings.stop_timeout_s}s",
        "ECS_IMAGE_PULL_BEHAVIOR": "once",  # CUDA images have gigabytes; prefer-cached would end the clean-up of images
        "ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION": "10m",  # 3 h by default: thousands of short tasks would fill the disk
        "ECS_IMAGE_CLEANUP_INTERVAL": "30m",
        "ECS_AWSVPC_BLOCK_IMDS": "true",
        "ECS_DISABLE_PRIVILEGED": "true",
        "ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE": "true",
    }
    if gpu:
        agent["ECS_ENABLE_GPU_SUPPORT"] = "true"
    lines = "\n".join(f"{name}={value}" for name, value in agent.items())
    return f"""#!/bin/bash
set -euo pipefail
# Tasks in bridge mode must not reach the instance's credentials. The raw table is not Docker's, so the rule stays.
iptables --table raw --insert PREROUTING --in-interface docker+ --destination 169.254.169.254/32 --jump DROP
cat >> /etc/ecs/ecs.config <<'SETTINGS'
{lines}
SETTINGS
"""
