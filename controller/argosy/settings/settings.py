"""The owner's choices for a deployment, validated once; every fault is reported with its path.

The same model reads cdk.json's context (`load_settings`) and is passed to the functions as ARGOSY_SETTINGS (`to_json`).
Names are camelCase outside and snake_case inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError
from pydantic.alias_generators import to_camel

from argosy.catalogue.lookup import is_offered_in, load_catalogue, offered
from argosy.model.policy import FIRST_ORDER, Policy, VcpuQuota
from argosy.settings.defaults import DEFAULT_CPU_TYPES, DEFAULT_GPU_TYPES, DEFAULT_ZONES
from argosy.settings.headroom import HeadroomSize
from argosy.settings.stage import MAIN, STAGE, prefix_of_stage
from argosy.settings.values import (
    DEFAULT_QUALIFIER,
    AmiId,
    Attributes,
    Bucket,
    CheckpointDays,
    CpuTypeName,
    DiskGib,
    FamilyGlob,
    FunctionName,
    GpuTypeName,
    GroupName,
    ImageNames,
    ImageNetModel,
    InitializationMibps,
    Listed,
    MostTasks,
    OnDemandQuotaName,
    PolicyName,
    Qualifier,
    QuotaName,
    Region,
    ReservationIds,
    RetentionDays,
    RoleGlob,
    Seconds,
    SettingsModel,
    Share,
    SubnetId,
    TagKey,
    TagValue,
    TargetGroupArn,
    TypeGlob,
    TypeName,
    UsdPerHour,
    Vcpus,
    VpcId,
    Zone,
)

# Lambda allows 4 KB for all environment variables of a function; the other names and values take about 1.2 KB.
MAX_JSON_BYTES = 2_500
# CloudFormation's limit, and how many of these the stack of a cell may need for all but its fleets and their lists.
MAX_STACK_RESOURCES, OTHER_RESOURCES = 500, 168
# The families of the images' task-definitions.json, which the examples stack and local mode make.
SHIPPED_FAMILIES = (
    *("inference", "recommender", "sweep"),
    *("tensorflow-cpu", "tensorflow-1-gpu", "tensorflow-4-gpu", "tensorflow-8-gpu", "pytorch-4-gpu", "pytorch-8-gpu"),
)


class SettingsError(ValueError):
    """The settings cannot be used. `faults` holds (path, sentence) for each fault; the message contains all of them."""

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        self.faults = faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "".join(f"\n  {path}: {sentence}" for path, sentence in faults)
        super().__init__(f'the settings have {count} (cdk.json, context "argosy", or -c NAME=VALUE):{lines}')


class InstanceTypes(SettingsModel):
    """Which instance types the fleets may buy. Each type has one EC2 Fleet in each zone."""

    cpu: Listed[CpuTypeName] = DEFAULT_CPU_TYPES
    gpu: Listed[GpuTypeName] = DEFAULT_GPU_TYPES

    @property
    def all(self) -> tuple[str, ...]:
        """CPU types, then GPU types, in the order named."""
        return (*self.cpu, *self.gpu)


class OfferedChange(SettingsModel):
    """The owner's corrections to the shipped list of the types that a Region offers."""

    add: Listed[TypeName] = ()
    remove: Listed[TypeName] = ()
    # What EC2's live list adds (`settings.live_offers`): types that the catalogue lacks, and what single zones lack.
    found: Listed[TypeName] = ()
    lacking: Mapping[Zone, Listed[TypeName]] = Field(default_factory=dict)


class VcpuQuotas(SettingsModel):
    """How many vCPUs of a quota family (standard, g, p, ...) this deployment may use at once in a Region."""

    spot: Mapping[QuotaName, Vcpus] = Field(default_factory=dict)
    on_demand: Mapping[OnDemandQuotaName, Vcpus] = Field(default_factory=dict)


class PriceCaps(SettingsModel):
    """USD an hour of bought instances. The cap per vCPU is for types without GPUs, that per GPU for types with them."""

    per_instance_hour: UsdPerHour | None = None
    per_vcpu_hour: UsdPerHour | None = None
    per_gpu_hour: UsdPerHour | None = None

    def to_policy(self) -> dict[str, float]:
        """The caps that are set, under Policy's names for them."""
        caps = {
            "max_usd_per_hour": self.per_instance_hour,
            "max_usd_per_vcpu_hour": self.per_vcpu_hour,
            "max_usd_per_gpu_hour": self.per_gpu_hour,
        }
        return {name: cap for name, cap in caps.items() if cap is not None}


class Amis(SettingsModel):
    """AMI ids to use in one Region in place of the newest ECS-optimised AL2023 images."""

    cpu: AmiId | None = None
    gpu: AmiId | None = None
    cpu_arm64: AmiId | None = None
    gpu_arm64: AmiId | None = None  # AWS has no such image for ECS: types of this kind need one


class ExistingVpc(SettingsModel):
    """The owner's own VPC in one Region: a subnet for each zone that instances may live in."""

    vpc_id: VpcId
    subnets: Annotated[Mapping[Zone, SubnetId], Field(min_length=1, max_length=6)]


class Settings(SettingsModel):
    """One deployment, by default the usual one. Construct it through `load_settings` or `from_json`.

    Times are in seconds. A map keyed by Region need not hold Regions that use the default."""

    stage: Annotated[str, Field(pattern=STAGE)] = MAIN
    cells: Annotated[Listed[Region], Field(min_length=1, max_length=8)] = ("us-east-1",)  # the first one is home
    zones: Mapping[Region, Annotated[Listed[Zone], Field(min_length=1, max_length=6)]] = Field(default_factory=dict)
    instance_types: InstanceTypes = InstanceTypes()
    offered: Mapping[Region, OfferedChange] = Field(default_factory=dict)
    max_instances: Annotated[int, Field(ge=1, le=10_000)] = 100  # of the whole deployment, at any time
    min_instances: Annotated[int, Field(ge=0, le=10_000)] = 0  # kept and bought while runs are open, even without work
    headroom: Annotated[tuple[HeadroomSize, ...], Field(max_length=5)] = ()  # kept while runs are open
    min_idle: Annotated[int, Field(ge=0, le=10_000)] = 0  # idle instances that are never released: they always cost
    max_type_share: Share = 1.0  # the largest share of all instances' CPU that one type may have, if there is a choice
    max_cell_share: Share = 1.0  # and that one cell may have
    vcpu_quotas: Mapping[Region, VcpuQuotas] = Field(default_factory=dict)  # unlimited unless named
    capacity_reservations: Mapping[Region, ReservationIds] = Field(default_factory=dict)  # used first
    linger_s: Annotated[int, Field(alias="lingerSeconds", ge=0, le=86_400)] = 300  # an idle instance is kept this long
    linger_by_type: Mapping[TypeGlob, Seconds] = Field(default_factory=dict)  # instead: the first glob that matches
    disk_gib: Mapping[TypeGlob, DiskGib] = Field(default_factory=dict, alias="diskGiB")  # 60, and 150 with GPUs
    volume_initialization_mibps: Mapping[TypeGlob, InitializationMibps] = Field(default_factory=dict)  # is bought
    images_on_instance_storage: bool = True  # if its NVMe disk is as large as the volume
    # The most tasks on an instance at a time, by the first glob that matches; otherwise what Docker's bridge takes.
    max_tasks_per_instance: Mapping[TypeGlob, MostTasks] = Field(default_factory=dict)
    # Attributes of instances that constraints may name, by globs of their types: every glob that matches gives its own.
    attributes: Mapping[TypeGlob, Attributes] = Field(default_factory=dict)
    cool_down_s: Annotated[Seconds, Field(alias="coolDownSeconds")] = 120  # after an order, none of its type goes
    image_pull_s: Annotated[int, Field(alias="imagePullSeconds", ge=600, le=14_400)] = 1_800  # PENDING no longer
    price_caps: PriceCaps = PriceCaps()
    capacity_manager: bool = False  # ask EC2 Capacity Manager, once a day, how often the account was interrupted
    placement_scores: bool = False  # also ask EC2 for its spot placement scores, once an hour; advice only
    stop_timeout_s: Annotated[int, Field(alias="stopTimeoutSeconds", ge=2, le=110)] = 90  # from SIGTERM to SIGKILL
    results: Literal["retain", "destroy"] = "retain"  # what `cdk destroy` does to the results bucket
    output_buckets: Listed[Bucket] = ()  # runs may write to these and to the deployment's own bucket
    input_buckets: Listed[Bucket] = ()  # their programs may read these and everything they may write to
    input_days: Annotated[int, Field(ge=0, le=3_650)] = 120  # that uploaded inputs outlast their last use; 0 = for good
    checkpoint_days: CheckpointDays = 30  # that checkpoints outlast their last save; 0 = for good
    fitness_functions: Annotated[Listed[FunctionName], Field(max_length=20)] = ()  # that strategies may name; imported
    allow_exec: bool = False  # whether users may run commands in running tasks (`argosy exec`, ECS Exec)
    gangs: bool = False  # whether runs may have gangs: host networking, and instances reach each other by TCP
    allow_interrupt: bool = False  # whether users may send spot notices to instances (`argosy interrupt`)
    allow_ssm: bool = False  # whether Session Manager may open a shell on an instance
    # Roles whose session names another party sets (SAML, OIDC): each of their users is an owner.
    session_owners: Annotated[Listed[RoleGlob], Field(max_length=20)] = ()
    # Families that runs may name as taskDefinition, besides the deployment's own and those of the shipped images.
    task_definitions: Annotated[Listed[FamilyGlob], Field(max_length=20)] = ()
    # Target groups of the owner's load balancers, by the name that services give: their tasks are registered there.
    target_groups: Annotated[Mapping[GroupName, TargetGroupArn], Field(max_length=10)] = Field(default_factory=dict)
    gpu_share_across_owners: bool = False  # whether tasks of several owners may share a GPU, which fails as a whole
    log_retention_days: RetentionDays = 14
    journal_days: Annotated[int, Field(ge=0, le=3_650)] = 30  # of the record for `argosy explain --at`; 0 = no record
    # How instances reach AWS and registries: public addresses, one NAT gateway, or interface endpoints (images in ECR).
    subnets: Literal["public", "nat", "private"] = "public"
    vpcs: Mapping[Region, ExistingVpc] = Field(default_factory=dict)  # instead of a VPC that the deployment makes
    amis: Mapping[Region, Amis] = Field(default_factory=dict)
    images: ImageNames = ()  # folders of containers/ whose images are published, or true (that needs Docker or podman)
    examples: bool = False  # also make the example images' task definitions (deploying those stacks needs Docker)
    base_image: Annotated[str, Field(pattern=r"^[^\s,]{1,200}$")] | None = None  # replaces BASE of the Dockerfiles
    python: Literal["3.11", "3.12", "3.13", "3.14"] = "3.12"  # of argosy/python, in which users' own programs run
    inference_model: ImageNetModel | None = None  # the model that the inference image then contains, in /model
    bootstrap_qualifier: Qualifier = DEFAULT_QUALIFIER
    permissions_boundary: PolicyName | None = None  # of every role that the stacks make
    # On everything that the stacks make and can tag, instances and volumes included.
    tags: Annotated[Mapping[TagKey, TagValue], Field(max_length=20)] = Field(default_factory=dict)
    # Of the controller. 0 = none: a new account may have 10, and reserving only saves invocations that end at once.
    reserved_concurrency: Annotated[int, Field(ge=0, le=100)] = 0
    alarms: bool = True  # 0.10 USD a month for each metric of one, beyond the account's first ten
    dashboard: bool = True  # 3 USD a month, beyond the account's first three
    alarm_email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")] | None = None

    @property
    def prefix(self) -> str:
        """How every name in AWS begins."""
        return prefix_of_stage(self.stage)

    @property
    def region(self) -> str:
        """The home Region: the first cell, where the controller, the table and the bucket are."""
        return self.cells[0]

    @property
    def families(self) -> tuple[str, ...]:
        """Globs of the task definition families that the controller may run."""
        return (f"{self.prefix}-*", *SHIPPED_FAMILIES, *self.task_definitions)

    def zones_of(self, cell: str) -> tuple[str, ...]:
        """The availability zones of a cell, three by default. Explicit, so that synth asks no account for them."""
        if cell in self.vpcs:
            return tuple(self.vpcs[cell].subnets)
        return self.zones.get(cell) or tuple(f"{cell}{letter}" for letter in DEFAULT_ZONES.get(cell, "abc"))

    def image_of(self, name: str) -> str:
        """Which of `Amis` the instances of a type start from: cpu, gpu, cpu_arm64, gpu_arm64."""
        return load_catalogue()[name].image

    def offers(self, cell: str) -> frozenset[str]:
        """The instance types that a cell's Region offers: the shipped list with the owner's corrections."""
        change = self.offered.get(cell, OfferedChange())
        return (offered(cell) | {*change.add, *change.found}) - frozenset(change.remove)

    def has_pool(self, cell: str, name: str, zone: str) -> bool:
        """Whether one zone of a cell has a type that the cell offers. A type that the owner adds is in every zone that
        does not lack it."""
        change = self.offered.get(cell, OfferedChange())
        named = name in (*change.add, *change.found) or is_offered_in(cell, zone, name)
        return named and name not in change.lacking.get(zone, ())

    def pools(self, cell: str) -> tuple[tuple[str, str], ...]:
        """(instance type, zone) of every pool that has a fleet in `cell`: the types that are both named and offered."""
        usable = self.offers(cell)
        return tuple(
            (name, zone)
            for name in self.instance_types.all
            if name in usable
            for zone in self.zones_of(cell)
            if self.has_pool(cell, name, zone)
        )

    def policy(self) -> Policy:
        """The numbers that steer the controller, with those that the owner has set."""
        policy = Policy(
            linger_s=self.linger_s,
            linger_by_type=tuple(self.linger_by_type.items()),
            disk_gib_by_type=tuple(self.disk_gib.items()),
            most_tasks_by_type=tuple(self.max_tasks_per_instance.items()),
            attributes_by_type=tuple((glob, tuple(given.items())) for glob, given in self.attributes.items()),
            cool_down_s=self.cool_down_s,
            gangs=self.gangs,
            pull_patience_s=self.image_pull_s,
            min_idle=self.min_idle,
            min_instances=self.min_instances,
            headroom=tuple(each.to_policy() for each in self.headroom),
            max_instances=self.max_instances,
            max_type_share=self.max_type_share,
            max_cell_share=self.max_cell_share,
            vcpu_quotas=tuple(
                VcpuQuota(cell, purchase, family, vcpus)
                for cell, quotas in self.vcpu_quotas.items()
                for purchase, named in (("spot", quotas.spot), ("on-demand", quotas.on_demand))
                for family, vcpus in named.items()
            ),
            # A stop takes at most its time-out; the tick that sees its end and EC2 take a little more.
            wind_down_s=self.stop_timeout_s + 30.0,
            gpu_share_across_owners=self.gpu_share_across_owners,
            data_cell=self.region,  # where the results bucket is, and the registry of the images
            public_addresses=self.subnets == "public",
        )
        return replace(policy, first_order=FIRST_ORDER, **dict[str, Any](self.price_caps.to_policy()))

    def to_json(self) -> str:
        """Compact JSON without defaults, for ARGOSY_SETTINGS; `from_json` restores an equal value."""
        return self.model_dump_json(by_alias=True, exclude_defaults=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. Raises pydantic's ValidationError on text that this version did not write."""
        return cls.model_validate_json(text)


def load_settings(context: Mapping[str, Any], change: Callable[[Settings], Settings] = lambda found: found) -> Settings:
    """The settings in a mapping with cdk.json's names. Raises SettingsError with every fault.

    change: applied to them before they are compared with one another.
    """
    faults, settings = _parse(context)
    settings = change(settings)
    faults += list(_contradictions(settings))
    if faults:
        raise SettingsError(faults)
    return settings


def _parse(context: Mapping[str, Any]) -> tuple[list[tuple[str, str]], Settings]:
    """The faults of single fields, and the settings without the faulty fields, so that the rest can be checked too."""
    try:
        return [], Settings.model_validate(dict(context))
    except ValidationError as error:
        faults = faults_of(error)
        broken = {str(e["loc"][0]) for e in error.errors()}
        if "cells" in broken:  # then maps keyed by Region cannot be checked
            broken |= {"zones", "offered", "amis", "vcpuQuotas", "capacityReservations", "vpcs"}
        _, settings = _parse({key: value for key, value in context.items() if key not in broken})
        return faults, settings


def faults_of(error: ValidationError) -> list[tuple[str, str]]:
    """Path and sentence of each fault of a setting."""
    paths = [(".".join(map(str, each["loc"])), _sentence(each)) for each in error.errors(include_url=False)]
    return [(re.sub(r"\.(\d+)", r"[\1]", path), says) for path, says in paths]


def _sentence(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "is not a setting"
    if error["type"] == "model_type":
        return "should be a JSON object, as docs/reference/settings.md shows"
    says = str(error["msg"]).removeprefix("Value error, ")
    return says.replace("Input should", "should").replace("String should", "should")


def _contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """(path, sentence) of every fault that only shows when several settings are compared."""
    yield from _region_faults(settings)
    if settings.subnets == "private" and len(settings.cells) > 1:
        yield "subnets", "private cannot reach other Regions, and runs keep their data in the home Region: use nat"
    for name in ("min_instances", "min_idle"):
        if getattr(settings, name) > settings.max_instances:
            yield to_camel(name), f"is above maxInstances ({settings.max_instances})"
    if settings.alarm_email and not settings.alarms:
        yield "alarmEmail", "would hear of nothing: alarms is false"
    for cell in settings.cells:
        if not settings.pools(cell):
            sentence = f"none of the named types is known to be offered in {cell}; correct that in offered.{cell}.add"
            yield "instanceTypes", sentence
        yield from _size_faults(settings, cell)
    for name in settings.instance_types.all:
        unpinned = [cell for cell in settings.cells if not settings.amis.get(cell, Amis()).gpu_arm64]
        if settings.image_of(name) == "gpu_arm64" and unpinned:
            sentence = f"{name} needs amis.{unpinned[0]}.gpuArm64: ECS publishes no AMI for ARM with GPUs"
            yield "instanceTypes.gpu", sentence
    if (size := len(settings.to_json())) > MAX_JSON_BYTES:
        yield "(all)", f"the settings take {size} bytes as JSON; a function's environment holds {MAX_JSON_BYTES}"


def _size_faults(settings: Settings, cell: str) -> Iterator[tuple[str, str]]:
    """Each named type has a launch template, a list of its fleets, and a fleet in each zone, even where the Region does
    not offer it."""
    types, zones = settings.instance_types.all, settings.zones_of(cell)
    fleets = sum(settings.has_pool(cell, name, zone) for name in types for zone in zones)
    room = MAX_STACK_RESOURCES - OTHER_RESOURCES
    if fleets + 2 * len(types) > room:
        yield (
            "instanceTypes",
            f"{len(types)} types in {len(zones)} zones of {cell} are too many for one stack "
            f"({MAX_STACK_RESOURCES} resources): name at most {room // (len(zones) + 2)} types, or fewer zones.{cell}",
        )


def _region_faults(settings: Settings) -> Iterator[tuple[str, str]]:
    for name in ("zones", "offered", "amis", "vcpu_quotas", "capacity_reservations", "vpcs"):
        for region in getattr(settings, name):
            if region not in settings.cells:
                yield f"{to_camel(name)}.{region}", f"is not one of the cells ({', '.join(settings.cells)})"
    for region in settings.vpcs.keys() & settings.zones.keys():
        yield f"zones.{region}", f"the zones of {region} come from vpcs.{region}.subnets"
    named = {f"zones.{region}": (region, zones) for region, zones in settings.zones.items()}
    named |= {f"vpcs.{region}.subnets": (region, tuple(vpc.subnets)) for region, vpc in settings.vpcs.items()}
    for path, (region, zones) in named.items():
        for zone in zones:
            if zone[:-1] != region:
                yield path, f"{zone} is a zone of another Region"
    for name, arn in settings.target_groups.items():
        if arn.split(":")[3] not in settings.cells:
            yield f"targetGroups.{name}", f"is in none of the cells ({', '.join(settings.cells)})"
