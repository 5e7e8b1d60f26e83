"""Annotated types of the settings' values, with their validators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from argosy.catalogue.lookup import load_catalogue
from argosy.catalogue.quotas import BY_KEY
from argosy.model.policy import BRIDGE_PORTS


class SettingsModel(BaseModel):
    """A part of the settings: its names are camelCase outside and snake_case inside."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


# The retentions that CloudWatch Logs accepts (PutRetentionPolicy), up to two years.
LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731)


def _split(value: Any) -> Any:
    """`-c cells=us-east-1,eu-west-1` arrives as one string."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _without_repetition(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and len(set(map(str, value))) < len(value):
        raise ValueError("has an entry twice")
    return value


def _known_type(name: str) -> str:
    if name not in load_catalogue():
        raise ValueError(f"{name!r} is not an instance type of the catalogue (whole families, no bare metal)")
    return name


def _cpu_type(name: str) -> str:
    if load_catalogue()[_known_type(name)].gpus:
        raise ValueError(f"{name!r} has GPUs: name it under instanceTypes.gpu")
    return name


def _gpu_type(name: str) -> str:
    if not load_catalogue()[_known_type(name)].gpus:
        raise ValueError(f"{name!r} has no GPU: name it under instanceTypes.cpu")
    return name


def _function_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII) or len(name) > 200:
        raise ValueError(f"{name[:80]!r} does not have the form module:function")
    if name.startswith(("random:", "spread:", "binpack:", "mix:")):
        raise ValueError(f"{name[:80]!r} begins like a built-in strategy: rename the module")
    return name


def _retention(days: int) -> int:
    if days not in LOG_RETENTION_DAYS:
        raise ValueError(f"CloudWatch Logs accepts one of {', '.join(map(str, LOG_RETENTION_DAYS))}")
    return days


def _checkpoint_days(days: int) -> int:
    if days and not 7 <= days <= 3_650:
        raise ValueError("must be 0 (checkpoints stay) or 7 to 3650 days: a running task saves everything once a day")
    return days


def _quota_name(key: str) -> str:
    if key not in BY_KEY:
        raise ValueError(f"{key[:40]!r} is not a quota family; known: {', '.join(BY_KEY)}")
    return key


def _on_demand_quota_name(key: str) -> str:
    if key == "p5":
        raise ValueError("on-demand P5 instances draw on the quota of p")
    return key


def _image_names(value: Any) -> Any:
    """`-c images=true` means all of them, `false` none."""
    return {"true": ALL_IMAGES, "false": ()}.get(str(value).lower(), value)


def _own_attribute(name: str) -> str:
    if name.startswith(("ecs.", "argosy.", "com.amazonaws.")):
        raise ValueError(f"{name} begins like an attribute of ECS or Argosy")
    return name


def _own_tag(key: str) -> str:
    if key.lower().startswith(("aws:", "argosy:")) or key == "Name":
        raise ValueError(f"{key!r} is a tag of AWS or Argosy")
    return key


def with_qualifier(given: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the CDK's own name for the qualifier, which a company's cdk.json may have. context: that of
    cdk.json."""
    own = context.get("@aws-cdk/core:bootstrapQualifier")
    return {**({"bootstrapQualifier": own} if own else {}), **given}


ALL_IMAGES = ("all",)
DEFAULT_QUALIFIER = "hnb659fds"  # of the CDK's bootstrap
HOME_TAG = "argosy:home"  # on the role <prefix>-execution: its deployment's home Region
Item = TypeVar("Item")
Listed = Annotated[tuple[Item, ...], BeforeValidator(_without_repetition), BeforeValidator(_split)]
Region = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
_RESERVATION = r"^(cr-[0-9a-f]{8,17}|arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/[A-Za-z0-9_./-]+)$"
ReservationIds = Annotated[Listed[Annotated[str, Field(pattern=_RESERVATION)]], Field(max_length=50)]
Zone = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$")]
TypeName = Annotated[str, AfterValidator(_known_type)]
CpuTypeName = Annotated[str, AfterValidator(_cpu_type)]
GpuTypeName = Annotated[str, AfterValidator(_gpu_type)]
TypeGlob = Annotated[str, Field(pattern=r"^[a-z0-9*?.-]{1,40}$")]
QuotaName = Annotated[str, AfterValidator(_quota_name)]
OnDemandQuotaName = Annotated[QuotaName, AfterValidator(_on_demand_quota_name)]
Vcpus = Annotated[int, Field(ge=0, le=1_000_000)]
Seconds = Annotated[int, Field(ge=0, le=86_400)]
# ECS's rules for an attribute that the owner gives (API reference, Attribute).
AttributeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./\\-]{1,128}$"), AfterValidator(_own_attribute)]
AttributeValue = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_.@/\\:-]([A-Za-z0-9_.@/\\: -]{0,126}[A-Za-z0-9_.@/\\:-])?$")
]
Attributes = Annotated[Mapping[AttributeName, AttributeValue], Field(max_length=10)]
DiskGib = Annotated[int, Field(ge=30, le=16_384)]  # the ECS-optimised AMIs need 30
InitializationMibps = Annotated[int, Field(ge=100, le=300)]  # EC2's bounds of VolumeInitializationRate
MostTasks = Annotated[int, Field(ge=1, le=BRIDGE_PORTS)]
Share = Annotated[float, Field(gt=0, le=1)]
UsdPerHour = Annotated[float, Field(gt=0, allow_inf_nan=False)]
RetentionDays = Annotated[int, AfterValidator(_retention)]
CheckpointDays = Annotated[int, AfterValidator(_checkpoint_days)]
Bucket = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
FunctionName = Annotated[str, AfterValidator(_function_name)]
GroupName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
TargetGroupArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[a-z-]*:elasticloadbalancing:[a-z0-9-]+:[0-9]{12}:targetgroup/[A-Za-z0-9-]{1,32}/[0-9a-f]{16}$"
    ),
]
FamilyGlob = Annotated[str, Field(pattern=r"^[A-Za-z0-9_*-]{1,255}$")]
RoleGlob = Annotated[str, Field(pattern=r"^[\w+=,.@*-]{1,64}$")]  # IAM's rules for the name of a role
VpcId = Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$")]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]
Qualifier = Annotated[str, Field(pattern=r"^[a-z0-9]{1,10}$")]  # the CDK's rule
# A managed policy's name with its path, or its ARN.
PolicyName = Annotated[
    str, Field(pattern=r"^(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/)?[A-Za-z0-9_+=,.@/-]{1,256}$")
]
TagKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9_ .:/=+@-]{1,128}$"), AfterValidator(_own_tag)]
TagValue = Annotated[str, Field(pattern=r"^[A-Za-z0-9_ .:/=+@-]{0,256}$")]
AmiId = Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")]
# Names of folders of containers/. `_image_names` checks what can be checked at once.
ImageNames = Annotated[Listed[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,40}$")]], BeforeValidator(_image_names)]
# The models that containers/tensorflow-inference/bake.py can put into an image.
ImageNetModel = Literal["MobileNet", "MobileNetV2", "ResNet50", "EfficientNetB0", "InceptionV3"]
