"""Why does a fleet not launch, and how is the cause removed?

EC2 reports it twice: with a sub-type, which says little, and with a description in words. The same sub-type
(`spotFleetRequestConfigurationInvalid`) has been seen for a lack of capacity, for a subnet without free addresses and
for a wrong role. So the description decides, and the sub-type only if there is no description.

The sub-types are those of `EventInformation` in EC2's own service model. The phrases are EC2's error messages
(https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html), as fleets repeat them in descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from argosy.model.events import PoolShort
from argosy.model.instances import Purchase

MAX_REFUSAL = 380  # characters of an answer that names a role, a fleet and a policy
MAX_DESCRIPTION = 200  # characters kept of EC2's own words: a pool's record is one of hundreds in an item

# Sub-types of "EC2 Fleet Error" and "EC2 Fleet Information" that keep a fleet of one pool from its target.
OBSTACLES = frozenset(
    {
        "iamFleetRoleInvalid",
        "allLaunchSpecsTemporarilyBlacklisted",
        "spotInstanceCountLimitExceeded",
        "spotFleetRequestConfigurationInvalid",
        "launchSpecUnusable",
        "launchSpecTemporarilyBlacklisted",
        "fleetProgressHalted",
    }
)


class _Fault(NamedTuple):
    """The obstacle, and whether it lasts until a person acts."""

    sentence: str
    lasting: bool = False
    over_quota: bool = False
    only: Purchase | None = None  # the purchase option that it concerns; None = any


_CAPACITY = _Fault("EC2 has no capacity for it now")
_PRICE = _Fault("the spot price is above what the fleet may pay", only=Purchase.SPOT)
_SPOT_QUOTA = _Fault(
    "the account's vCPU quota for spot instances is used up (argosy doctor shows it; ask for more in Service Quotas)",
    over_quota=True,
    only=Purchase.SPOT,
)
_ON_DEMAND_QUOTA = _Fault(
    "the account's vCPU quota for on-demand instances is used up (ask for more in Service Quotas)",
    over_quota=True,
    only=Purchase.ON_DEMAND,
)
_ADDRESSES = _Fault("its subnet has no free address (fewer instances, larger subnets or more zones help)")
_IMAGE = _Fault("its machine image (AMI) cannot be used: deploy again, with a current image", lasting=True)
_ROLE = _Fault("its instance profile or role is missing or may not be used: deploy again", lasting=True)
_RIGHTS = _Fault(
    "EC2 Fleet may not launch it: a policy of the account or of its organisation (SCP) forbids it, or the "
    "service-linked role is missing (argosy doctor)",
    lasting=True,
)
_TEMPLATE = _Fault("its launch template or network is gone: deploy again", lasting=True)
_NOT_OFFERED = _Fault("EC2 does not offer this type in the zone; the next deployment leaves its fleet out")
_INVALID = _Fault("EC2 refuses the fleet's configuration: deploy again with settings that it accepts", lasting=True)

_NO_RIGHT = _Fault(
    "a policy of the account or of its organisation (SCP) forbids the controller to order (argosy doctor)",
    lasting=True,
)
_REFUSED = _Fault("EC2 refuses the order", lasting=True)
_FORBIDDEN = re.compile("not authorized|UnauthorizedOperation|AccessDenied|explicit deny", re.I)

# The first phrase that a description contains counts.
_PHRASES = tuple(
    (re.compile(pattern, re.I), fault)
    for pattern, fault in (
        (r"max spot instance count exceeded|spotInstanceCountLimit|MaxSpotInstanceCountExceeded", _SPOT_QUOTA),
        (r"VcpuLimitExceeded|more vCPU capacity than your current vCPU limit", _ON_DEMAND_QUOTA),
        (
            r"(not have |in)sufficient \S* ?capacity|Insufficient\w*Capacity|no (spot )?capacity|Unfulfillable",
            _CAPACITY,
        ),
        (r"not (have )?enough free addresses|InsufficientFreeAddresses|free (ip )?addresses", _ADDRESSES),
        (r"SpotMaxPriceTooLow|below the (current )?spot price|price .*(too low|not valid)", _PRICE),
        (
            r"not supported in (your|the) requested availability zone|type .*not (supported|offered)"
            r"|unsupported instance ?types",
            _NOT_OFFERED,
        ),
        (r"instance.?profile|iam:PassRole|IamInstanceProfile", _ROLE),
        (r"image id|for images|InvalidAMI|UnavailableAMI|AMI (is|was|does|cannot)", _IMAGE),
        (r"not authorized|Unauthorized|AccessDenied|service control policy|explicit deny|service.linked role", _RIGHTS),
        (r"launch template|InvalidSubnet|InvalidGroup|subnet id|security group", _TEMPLATE),
    )
)
_BY_SUB_TYPE = {
    "allLaunchSpecsTemporarilyBlacklisted": _CAPACITY,
    "spotInstanceCountLimitExceeded": _SPOT_QUOTA,
    "fleetProgressHalted": _PRICE,  # "the price in every launch specification is not valid"
    "iamFleetRoleInvalid": _RIGHTS,
    "spotFleetRequestConfigurationInvalid": _INVALID,
    "MaxSpotInstanceCountExceeded": _SPOT_QUOTA,
    "VcpuLimitExceeded": _ON_DEMAND_QUOTA,
    "InsufficientFreeAddressesInSubnet": _ADDRESSES,
    "SpotMaxPriceTooLow": _PRICE,
}


def shortage(pool: str, code: str, description: str = "") -> PoolShort:
    """The meaning of a fleet's sub-type, or the error code of a call, with its description. pool: its key, or the
    fleet's id."""
    words = _in_one_line(description)
    fault = _of(code, words)
    said = f"{_in_one_line(code)}: {words}" if words else _in_one_line(code)
    return PoolShort(pool, f"{fault.sentence} [{said}]", fault.lasting, fault.over_quota, fault.only)


def refusal(pool: str, code: str, description: str = "") -> PoolShort:
    """The meaning of the answer to a call that EC2 refuses until a person acts."""
    said = _in_one_line(f"{code}: {description}" if description else code, MAX_REFUSAL)
    fault = _NO_RIGHT if _FORBIDDEN.search(said) else _NOT_OFFERED if _of(code, said) is _NOT_OFFERED else _REFUSED
    return PoolShort(pool, f"{fault.sentence} [{said}]", fault.lasting, refused=True)


def latest_shortage(fleet_id: str, records: list[Mapping[str, Any]]) -> PoolShort | None:
    """The last obstacle in a fleet's history (HistoryRecords of DescribeFleetHistory). One that a person has to remove
    comes before others; None when there is none."""
    told = [record.get("EventInformation") or {} for record in records]
    found = [
        shortage(fleet_id, str(each["EventSubType"]), str(each.get("EventDescription") or ""))
        for each in told
        if each.get("EventSubType") in OBSTACLES
    ]
    return max(reversed(found), key=lambda each: each.lasting, default=None)


def _of(code: str, words: str) -> _Fault:
    named = next((fault for pattern, fault in _PHRASES if pattern.search(words)), None)
    return named or _BY_SUB_TYPE.get(code, _CAPACITY)


def _in_one_line(text: str, most: int = MAX_DESCRIPTION) -> str:
    """Without control characters, and short."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(printable.split())[:most]
