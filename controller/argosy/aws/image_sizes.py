"""How large is an image of a private ECR repository?

>>> where, request = described_by("123456789012.dkr.ecr.us-east-1.amazonaws.com/team/train:v2")
>>> where, request["repositoryName"], request["imageIds"]
('us-east-1', 'team/train', [{'imageTag': 'v2'}])
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from argosy.aws.errors import AWS_ERRORS

_ECR = re.compile(
    r"(?P<account>[0-9]{12})\.dkr[.-]ecr\.(?P<region>[a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|on\.aws)/"
    r"(?P<name>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>.+))?"
)


def described_by(image: str) -> tuple[str, dict[str, Any]] | None:
    """The Region to ask, and the request of DescribeImages; None for an image of another registry."""
    found = _ECR.fullmatch(image)
    if found is None:
        return None
    which = {"imageDigest": found["digest"]} if found["digest"] else {"imageTag": found["tag"] or "latest"}
    return found["region"], {
        "registryId": found["account"],
        "repositoryName": found["name"],
        "imageIds": [which],
    }


class EcrImageSizes:
    """Sizes by DescribeImages. ecr: makes a boto3 client in a Region."""

    def __init__(self, ecr: Callable[[str], Any]) -> None:
        self._ecr = ecr

    def bytes_of(self, image: str) -> int:
        """As stored, compressed; of an image for several architectures that of the largest. 0 = unknown: another
        registry, another account's repository, or no such image."""
        if (asked := described_by(image)) is None:
            return 0
        region, request = asked
        try:
            details = self._ecr(region).describe_images(**request)["imageDetails"]
        except AWS_ERRORS:
            return 0  # a plan without the pull is better than none
        return max((int(each.get("imageSizeInBytes", 0)) for each in details), default=0)
