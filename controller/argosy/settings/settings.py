"""How is this deployment set up? The owner's choices, validated once, with every fault at once and its path.

The same model reads cdk.json's context (`load_settings`) and travels to the functions as ARGOSY_SETTINGS (`to_json`).
Names are camelCase outside and snake_case inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from argosy.catalogue.lookup import is_offered_in, load_catalogue, offered
from argosy.model.policy import Policy, VcpuQuota
from argosy.settings.limits import Seconds, Share, TypeGlob, VcpuQuotas

# Lambda allows 4 KB for all environment variables of a function; the other names and values take about 1.2 KB.
MAX_JSON_BYTES = 2_500
# A region's zones where a, b and c are not what accounts get: https://docs.aws.amazon.com/global-infrastructure/latest/regions/
DEFAULT_ZONES = {"ap-northeast-1": "acd", "ca-central-1": "abd", "us-west-1": "ac"}
# The retentions that CloudWatch Logs accepts (PutRetentionPolicy), up to two years.
LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731)

DEFAULT_CPU_TYPES = tuple(
    f"{family}.{size}"
    for family, sizes in {
        "c5": ("large", "xlarge", "2xlarge", "4xlarge", "9xlarge"),
        "c6i": ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge"),
        "c7i": ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge"),
    }.items()
    for size in sizes
)
# p3 as the originals had it, then the types that stand in for it where it is no longer offered: 1, 4 and 8 GPUs.
DEFAULT_GPU_TYPES = (
    *("p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge"),
    *("g4dn.xlarge", "g4dn.12xlarge", "g5.xlarge", "g5.12xlarge", "g5.48xlarge", "g6.xlarge", "g6.12xlarge"),
)


class SettingsError(ValueError):
    """The settings cannot be used; `faults` holds (path, sentence) for each fault, the message all of them."""

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "".join(f"\n  {path}: {sentence}" for path, sentence in faults)
        super().__init__(f'the settings have {count} (cdk.json, context "argosy", or -c NAME=VALUE):{lines}')


def _split(value: Any) -> Any:
    """`-c cells=us-east-1,eu-west-1` arrives as one string."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _unique(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and len(set(map(str, value))) < len(value):
        raise ValueError("names something twice")
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
        raise ValueError(f"{name[:80]!r} is no module:function")
    if name.startswith(("random:", "spread:", "binpack:", "mix:")):
        raise ValueError(f"{name[:80]!r} begins as a built-in strategy does: rename the module")
    return name


def _retention(days: int) -> int:
    if days not in LOG_RETENTION_DAYS:
        raise ValueError(f"CloudWatch Logs accepts one of {', '.join(map(str, LOG_RETENTION_DAYS))}")
    return days


Item = TypeVar("Item")
Listed = Annotated[tuple[Item, ...], BeforeValidator(_unique), BeforeValidator(_split)]
Region = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
Zone = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$")]
TypeName = Annotated[str, AfterValidator(_known_type)]
Bucket = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
FunctionName = Annotated[str, AfterValidator(_function_name)]
AmiId = Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")]
# What containers/tensorflow-inference/bake.py can put into an image.
ImageNetModel = Literal["MobileNet", "MobileNetV2", "ResNet50", "EfficientNetB0", "InceptionV3"]


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class InstanceTypes(_Part):
    """Which instance types the fleets may buy, one EC2 Fleet per type and zone; c5.* and p3.* are named by default."""

    cpu: Listed[Annotated[str, AfterValidator(_cpu_type)]] = DEFAULT_CPU_TYPES
    gpu: Listed[Annotated[str, AfterValidator(_gpu_type)]] = DEFAULT_GPU_TYPES

    @property
    def all(self) -> tuple[str, ...]:
        """CPU types, then GPU types, in the order named."""
        return (*self.cpu, *self.gpu)


class OfferedChange(_Part):
    """What the owner knows better than the shipped list of types that a Region offers."""

    add: Listed[TypeName] = ()
    remove: Listed[TypeName] = ()


class PriceCaps(_Part):
    """USD an hour: what costs more is not bought, on spot or on-demand. Per vCPU concerns types without GPUs, per GPU
    the others."""

    per_instance_hour: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    per_vcpu_hour: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    per_gpu_hour: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    def to_policy(self) -> dict[str, float]:
        """Those that are set, under the names that Policy has for them."""
        caps = {
            "max_usd_per_hour": self.per_instance_hour,
            "max_usd_per_vcpu_hour": self.per_vcpu_hour,
            "max_usd_per_gpu_hour": self.per_gpu_hour,
        }
        return {name: cap for name, cap in caps.items() if cap is not None}


class Amis(_Part):
    """AMI ids to use in one Region in place of the newest ECS-optimised AL2023 images."""

    cpu: AmiId | None = None
    gpu: AmiId | None = None


class Settings(_Part):
    """One deployment. Construct it through `load_settings` or `from_json`; `Settings()` is the default deployment.

    Times are seconds, retention days. Region-keyed maps need only name the Regions that differ from the default.
    """

    stage: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,15}$")] = "main"
    cells: Annotated[Listed[Region], Field(min_length=1, max_length=8)] = ("us-east-1",)  # the first one is home
    zones: Mapping[Region, Annotated[Listed[Zone], Field(min_length=1, max_length=6)]] = Field(default_factory=dict)
    instance_types: InstanceTypes = InstanceTypes()
    offered: Mapping[Region, OfferedChange] = Field(default_factory=dict)
    max_instances: Annotated[int, Field(ge=1, le=10_000)] = 100  # of the whole deployment, at any time
    min_instances: Annotated[int, Field(ge=0, le=10_000)] = 0  # kept and bought while runs are open, work or no work
    min_idle: Annotated[int, Field(ge=0, le=10_000)] = 0  # idle instances that are never let go: they cost all day
    max_type_share: Share = 1.0  # of the cpu of all instances, that of one type, as far as there is a choice
    max_cell_share: Share = 1.0  # and that of one cell
    vcpu_quotas: Mapping[Region, VcpuQuotas] = Field(default_factory=dict)  # what is not named is unlimited
    linger_s: Annotated[int, Field(alias="lingerSeconds", ge=0, le=86_400)] = 300  # an idle instance is kept this long
    linger_by_type: Mapping[TypeGlob, Seconds] = Field(default_factory=dict)  # or this: first glob that matches
    cool_down_s: Annotated[Seconds, Field(alias="coolDownSeconds")] = 120  # from ordering more of a type until any goes
    price_caps: PriceCaps = PriceCaps()
    placement_scores: bool = False  # ask EC2 for its spot placement scores too, once an hour: advice
    stop_timeout_s: Annotated[int, Field(alias="stopTimeoutSeconds", ge=2, le=110)] = 90  # SIGTERM to SIGKILL; a spot
    # warning leaves 120 s
    results: Literal["retain", "destroy"] = "retain"  # what `cdk destroy` does to the results bucket
    output_buckets: Listed[Bucket] = ()  # runs may write to these besides the deployment's own bucket
    input_buckets: Listed[Bucket] = ()  # and their programs may read these, besides all they may write to
    fitness_functions: Annotated[Listed[FunctionName], Field(max_length=20)] = ()  # of the owner's own, which specs may
    # name in a strategy: the controller imports and calls what is listed here, and nothing else
    log_retention_days: Annotated[int, AfterValidator(_retention)] = 14
    subnets: Literal["public", "private"] = "public"  # private needs interface endpoints, which cost by the hour
    amis: Mapping[Region, Amis] = Field(default_factory=dict)
    launch_template_version: Annotated[str, Field(pattern=r"^[1-9]\d{0,4}$")] = "1"  # a literal, never $Latest (D8)
    images: bool = False  # also publish the images of containers/ (deploying that stack needs Docker)
    examples: bool = False  # also make the example images' task definitions (deploying those stacks needs Docker)
    base_image: Annotated[str, Field(pattern=r"^[^\s,]{1,200}$")] | None = None  # in place of the Dockerfiles' own BASE
    inference_model: ImageNetModel | None = None  # what the inference image that they build brings along in /model
    reserved_concurrency: Annotated[int, Field(ge=0, le=100)] = 0  # of the controller; 0 = none: a new account's limit
    # of 10 concurrent executions leaves nothing to reserve. It only saves invocations that leave at once.
    alarm_email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")] | None = None

    @property
    def prefix(self) -> str:
        """The start of every name in AWS: "argosy", or "argosy-<stage>" for a stage other than main."""
        return "argosy" if self.stage == "main" else f"argosy-{self.stage}"

    @property
    def region(self) -> str:
        """The home Region: the first cell, where the controller, the table and the bucket are."""
        return self.cells[0]

    def zones_of(self, cell: str) -> tuple[str, ...]:
        """The availability zones of a cell, explicit so that synth asks no account for them; three unless set."""
        return self.zones.get(cell) or tuple(f"{cell}{letter}" for letter in DEFAULT_ZONES.get(cell, "abc"))

    def offers(self, cell: str) -> frozenset[str]:
        """The instance types that a cell's Region offers: the shipped list with the owner's changes."""
        change = self.offered.get(cell, OfferedChange())
        return (offered(cell) | frozenset(change.add)) - frozenset(change.remove)

    def has_pool(self, cell: str, name: str, zone: str) -> bool:
        """Whether a type that a cell offers is there in one of its zones. What the owner adds is there in all."""
        return name in self.offered.get(cell, OfferedChange()).add or is_offered_in(cell, zone, name)

    def pools(self, cell: str) -> tuple[tuple[str, str], ...]:
        """(instance type, zone) of every pool that has a fleet in `cell`: named and offered."""
        usable = self.offers(cell)
        return tuple(
            (name, zone)
            for name in self.instance_types.all
            if name in usable
            for zone in self.zones_of(cell)
            if self.has_pool(cell, name, zone)
        )

    def policy(self) -> Policy:
        """The numbers that steer the controller, as far as the owner has a say in them."""
        policy = Policy(
            linger_s=self.linger_s,
            linger_by_type=tuple(self.linger_by_type.items()),
            cool_down_s=self.cool_down_s,
            min_idle=self.min_idle,
            min_instances=self.min_instances,
            max_instances=self.max_instances,
            max_type_share=self.max_type_share,
            max_cell_share=self.max_cell_share,
            vcpu_quotas=tuple(
                VcpuQuota(cell, purchase, family, vcpus)
                for cell, quotas in self.vcpu_quotas.items()
                for purchase, named in (("spot", quotas.spot), ("on-demand", quotas.on_demand))
                for family, vcpus in named.items()
            ),
            # A stop takes at most its time-out; then the tick that hears of it, and EC2.
            wind_down_s=self.stop_timeout_s + 30.0,
            data_cell=self.region,  # the results bucket is there
        )
        return replace(policy, **dict[str, Any](self.price_caps.to_policy()))

    def to_json(self) -> str:
        """Compact JSON without defaults, for ARGOSY_SETTINGS; `from_json` restores an equal value."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. Raises pydantic's ValidationError on text that this version did not write."""
        return cls.model_validate_json(text)


def load_settings(context: Mapping[str, Any]) -> Settings:
    """Settings from a mapping in cdk.json's spelling; raises SettingsError that lists every fault."""
    faults, settings = _parse(context)
    faults += list(_contradictions(settings))
    if faults:
        raise SettingsError(faults)
    return settings


def _parse(context: Mapping[str, Any]) -> tuple[list[tuple[str, str]], Settings]:
    """Faults of single fields, and the settings without the faulty fields, so that the rest can still be compared."""
    try:
        return [], Settings.model_validate(dict(context))
    except ValidationError as error:
        faults = [(_path(e["loc"]), _sentence(e)) for e in error.errors(include_url=False)]
        broken = {str(e["loc"][0]) for e in error.errors()}
        if "cells" in broken:  # nothing keyed by Region can be judged then
            broken |= {"zones", "offered", "amis", "vcpuQuotas"}
        _, settings = _parse({key: value for key, value in context.items() if key not in broken})
        return faults, settings


def _path(location: tuple[int | str, ...]) -> str:
    return re.sub(r"\.(\d+)", r"[\1]", ".".join(str(part) for part in location))


def _sentence(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "is not a setting"
    return (
        str(error["msg"])
        .removeprefix("Value error, ")
        .replace("Input should", "should")
        .replace("String should", "should")
    )


def _above_the_most(settings: Settings) -> Iterator[tuple[str, str]]:
    """(path, fault) of least sizes that the largest one forbids."""
    for name in ("min_instances", "min_idle"):
        if getattr(settings, name) > settings.max_instances:
            yield to_camel(name), f"is above maxInstances ({settings.max_instances})"


def _contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    for name in ("zones", "offered", "amis", "vcpu_quotas"):
        for region in getattr(settings, name):
            if region not in settings.cells:
                yield f"{to_camel(name)}.{region}", f"is not one of the cells ({', '.join(settings.cells)})"
    for region, zones in settings.zones.items():
        for zone in zones:
            if zone[:-1] != region:
                yield f"zones.{region}", f"{zone} is a zone of another Region"
    yield from _above_the_most(settings)
    for cell in settings.cells:
        if not settings.pools(cell):
            yield (
                "instanceTypes",
                f"none of the named types is offered in {cell} as far as is known; correct it under offered.{cell}.add",
            )
    if (size := len(settings.to_json())) > MAX_JSON_BYTES:
        yield "(all)", f"take {size} bytes as JSON; the functions' environment has room for {MAX_JSON_BYTES}"
