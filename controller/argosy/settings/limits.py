"""What may the owner's settings about quotas, shares and times hold? Their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from argosy.catalogue.quotas import BY_KEY


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
