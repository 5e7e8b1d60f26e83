"""Which of the owner's settings say how much may be bought, and what idles, and how does the controller get them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from controller.catalogue.quotas import BY_KEY
from controller.model.policy import VcpuQuota

if TYPE_CHECKING:
    from controller.settings import Settings


def _quota_name(key: str) -> str:
    if key not in BY_KEY:
        raise ValueError(f"{key[:40]!r} is no quota family; there are {', '.join(BY_KEY)}")
    return key


def _on_demand_quota(key: str) -> str:
    if key == "p5":
        raise ValueError("on demand, P5 draws on the quota of p")
    return key


QuotaName = Annotated[str, AfterValidator(_quota_name)]
Vcpus = Annotated[int, Field(ge=0, le=1_000_000)]
TypeGlob = Annotated[str, Field(pattern=r"^[a-z0-9*?.-]{1,40}$")]
Seconds = Annotated[int, Field(ge=0, le=86_400)]
Share = Annotated[float, Field(gt=0, le=1)]


class VcpuQuotas(BaseModel):
    """How many vCPUs of a quota family this deployment may have at once in a Region: standard, g, p, ..."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    spot: Mapping[QuotaName, Vcpus] = Field(default_factory=dict)
    on_demand: Mapping[Annotated[QuotaName, AfterValidator(_on_demand_quota)], Vcpus] = Field(default_factory=dict)


def above_the_most(settings: Settings) -> Iterator[tuple[str, str]]:
    """(path, fault) of least sizes that the largest one forbids."""
    for name in ("min_instances", "min_idle"):
        if getattr(settings, name) > settings.max_instances:
            yield to_camel(name), f"is above maxInstances ({settings.max_instances})"


def policy_numbers(settings: Settings) -> dict[str, Any]:
    """What the settings say, under the names that Policy has for it."""
    return {
        "linger_s": settings.linger_s,
        "linger_by_type": tuple(settings.linger_by_type.items()),
        "cool_down_s": settings.cool_down_s,
        "min_idle": settings.min_idle,
        "min_instances": settings.min_instances,
        "max_instances": settings.max_instances,
        "max_type_share": settings.max_type_share,
        "max_cell_share": settings.max_cell_share,
        "vcpu_quotas": tuple(
            VcpuQuota(cell, purchase, family, vcpus)
            for cell, quotas in settings.vcpu_quotas.items()
            for purchase, named in (("spot", quotas.spot), ("on-demand", quotas.on_demand))
            for family, vcpus in named.items()
        ),
        # A stop takes at most its time-out; then the tick that hears of it, and EC2.
        "wind_down_s": settings.stop_timeout_s + 30.0,
        "data_cell": settings.region,  # the results bucket is there
        **settings.price_caps.to_policy(),
    }
