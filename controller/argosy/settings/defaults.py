"""The instance types and zones of a deployment whose settings name none."""

from __future__ import annotations

# The zones of Regions in which accounts do not get a, b and c:
# https://docs.aws.amazon.com/global-infrastructure/latest/regions/
DEFAULT_ZONES = {"ap-northeast-1": "acd", "ca-central-1": "abd", "us-west-1": "ac"}

DEFAULT_CPU_TYPES = tuple(
    f"{family}.{size}"
    for family, sizes in {
        "c5": ("large", "xlarge", "2xlarge", "4xlarge", "9xlarge"),
        "c6i": ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge"),
        "c7i": ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge"),
    }.items()
    for size in sizes
)
# p3 first, then types with 1, 4 and 8 GPUs for the Regions that no longer offer it.
DEFAULT_GPU_TYPES = (
    *("p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge"),
    *("g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge", "g5.12xlarge", "g5.48xlarge", "g6.xlarge", "g6.12xlarge"),
)
