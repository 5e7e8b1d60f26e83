"""What the api answers about how a cluster is shared."""

from __future__ import annotations

from typing import Any


def queue(name: str, weight: int = 1, **fields: Any) -> dict[str, Any]:
    values = {"within": None, "runs": 1, "waiting": 900, "running": 100, "use": 0.25, "share": 0.5, "level": 0.25}
    values |= {
        "cap": None,
        "guarantee": None,
        "lend": True,
        "used": {"usdPerHour": 1.5, "vcpus": 16.0, "gpus": 0, "instances": 4.0},
    }
    return {"name": name, "weight": weight, **values, **fields}


def sharing(**fields: Any) -> dict[str, Any]:
    document = {"version": 1, "queues": {"default": {}, "research": {"weight": 3}}}
    queues = [
        queue("default"),
        queue("research", 3, use=0.5, level=0.166667, cap={"usdPerHour": 40, "gpus": 16}),
        queue("night", 0, level=None, guarantee={"instances": 5}, lend=False),
    ]
    earlier = [{"revision": 2, "appliedAt": "2026-11-21T06:27:33.000Z"}]
    found = {"revision": 3, "appliedAt": "2026-11-22T06:27:33.000Z", "document": document, "earlier": earlier}
    return {**found, "usdPerHour": {"used": 31.2, "limit": None}, "queues": queues, **fields}
