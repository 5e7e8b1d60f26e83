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
        "c8i": ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge"),
        "m8i": ("xlarge", "2xlarge", "4xlarge"),
    }.items()
    for size in sizes
)
# p3 first, then types with 1, 4 and 8 GPUs of the families that a new account can buy. With the CPU types there are 42,
# so that they fit into one stack in six zones too (`MAX_STACK_RESOURCES`).
DEFAULT_GPU_TYPES = (
    *("p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge"),
    *("g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge", "g5.12xlarge", "g5.48xlarge", "g6.xlarge", "g6.12xlarge"),
    *("g6e.xlarge", "g6e.12xlarge", "g7.2xlarge", "g7e.2xlarge"),
    *("p5.4xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"),
)
