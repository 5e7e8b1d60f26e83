"""The health of a container instance, in ECS's words, and of its GPUs, in those of NVIDIA's driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.model.instance_types import XID_ATTRIBUTE

MOST_WORDS, MOST_DIGITS = 300, 6  # characters that are kept; of an Xid
# After these errors a GPU has to be reset, or the machine restarted, before it is used again: "Resolution Bucket
# (Immediate Action)" and the texts of https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html. Others are
# the application's (13, 31, 43, 45, 69, 94: restart the application, or ignore), or only inform.
XIDS: Mapping[int, str] = {
    46: "GPU stopped processing",
    48: "double bit ECC error",
    62: "internal micro-controller halt",
    64: "GPU memory remapping failure",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    95: "uncontained memory error",
    109: "context switch timeout",
    110: "security fault",
    119: "GSP RPC timeout",
    120: "GSP error",
    136: "link training failed",
    140: "unrecovered ECC error",
    143: "GPU initialization error",
    158: "GPU fatal timeout",
}


def driver_fault(attributes: Mapping[str, str]) -> str:
    """What the instance says of its GPUs by its attributes; "" = nothing that concerns the instance."""
    told = attributes.get(XID_ATTRIBUTE, "")
    meaning = XIDS.get(int(told)) if told.isdecimal() and len(told) < MOST_DIGITS else None
    return f"NVIDIA's driver says Xid {told}: {meaning}" if meaning else ""


def impairment(checks: Iterable[Mapping[str, Any]]) -> str:
    """The failed ones of its checks. Raises AttributeError for checks that are none."""
    failed = [f"{each.get('type')} {each.get('statusReason') or ''}" for each in checks if each["status"] == "IMPAIRED"]
    return f"ECS says IMPAIRED: {', '.join(map(str.strip, failed))}"[:MOST_WORDS].encode(errors="replace").decode()
