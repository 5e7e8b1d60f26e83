"""How are thousands of instances shown in one reply? As columns: an object for each takes 450 bytes, and Lambda answers
with 6 MB at most, which 13,000 instances would fill; in columns an instance takes 81."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

JSON = dict[str, Any]
_NAMES: Mapping[str, Callable[[JSON], str]] = {
    "type": lambda each: each["instanceType"],
    "zone": lambda each: each["availabilityZone"],
    "pool": lambda each: f"{each['cell']}/{each['instanceType']}/{each['availabilityZone']}",
    "purchase": lambda each: each["purchase"],
    "status": lambda each: each["status"],
}
_SHARES = {"cpuUsed": "cpu", "memoryUsed": "memory", "gpuUsed": "gpus"}


def in_columns(cluster: JSON) -> JSON:
    """DescribeCluster's body with its instances as columns of one length.

    `data` is base64 of little-endian numbers of `dtype`; where there are `values`, of rows in them. The shares in use
    are 0..1, or not a number where an instance has none of it; ids are 19 bytes each, filled up with zeros.
    """
    instances: Sequence[JSON] = cluster["instances"]
    columns = {"id": _column(np.array([each["instanceId"] for each in instances], dtype="S19"))}
    columns |= {name: _names([of(each) for each in instances]) for name, of in _NAMES.items()}
    for name, source in (("usdPerHour", "priceUsdPerHour"), ("onDemandUsdPerHour", "onDemandUsdPerHour")):
        columns[name] = _column(np.array([each[source] for each in instances], dtype="<f8"))
    for name, source in _SHARES.items():
        columns[name] = _column(np.array([_share(each[source]) for each in instances], dtype="<f4"))
    columns["tasks"] = _column(np.array([each["tasks"] for each in instances], dtype="<u4"))
    return {**cluster, "instances": {"rows": len(instances), "columns": columns}}


def _share(amount: JSON) -> float:
    return amount["used"] / amount["total"] if amount["total"] else float("nan")


def _names(names: Sequence[str]) -> JSON:
    values = sorted(set(names))
    row = {name: number for number, name in enumerate(values)}
    return {**_column(np.array([row[name] for name in names], dtype="<u2")), "values": values}


def _column(values: NDArray[Any]) -> JSON:
    return {"dtype": values.dtype.str, "data": base64.b64encode(values.tobytes()).decode()}
