"""The SSM parameters in which AWS names the newest AMI of a kind (`Settings.image_of`)."""

from __future__ import annotations

_VARIANTS = {"cpu": "", "gpu": "gpu/", "cpu_arm64": "arm64/"}


def newest_ami_parameter(kind: str) -> str:
    """AWS's public SSM parameter with the newest ECS-optimised AL2023 image; there is none for ARM with GPUs.
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html"""
    return f"/aws/service/ecs/optimized-ami/amazon-linux-2023/{_VARIANTS[kind]}recommended/image_id"
