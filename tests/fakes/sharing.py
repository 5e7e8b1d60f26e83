"""The api's answers about the sharing of a cluster."""

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


def alone(**fields: Any) -> dict[str, Any]:
    """For a deployment without a document."""
    queues = [queue("default", 1, share=1.0, **_ROOM, lately=[], owners=None)]
    found = {"revision": 0, "appliedAt": None, "document": None, "earlier": [], "queues": queues}
    return sharing(**found, halfLifeSeconds=0.0, quotas=[], **fields)


_ROOM = {"preempts": False, "preemptible": None, "preempted": 0, "kept": 0}


def in_full() -> dict[str, Any]:
    """For a deployment that uses every feature: owners, caps, guarantees, recent use, quotas, room taken."""
    owners = [
        {"name": None, "proven": False, "runs": 1},
        {"name": "alice", "proven": True, "runs": 3},
        {"name": "bob", "proven": False, "runs": 2},
    ]
    by_owner = [{"owner": "alice", "use": 0.4, "factor": 0.5}, {"owner": None, "use": 0.02, "factor": 4.0}]
    research = {"within": "owners", "owners": owners, "lately": by_owner, "runs": 6, "use": 0.46, "share": 2 / 7}
    research |= {"cap": {"usdPerHour": 40, "gpus": 16}, "level": 0.23, "waiting": 1_234_567, "running": 4_200}
    research |= {"used": {"usdPerHour": 40.0, "vcpus": 512.0, "gpus": 4.0, "instances": 61.25}, "preempted": 1_200}
    prod = {"preempts": True, "kept": 2, "use": 0.31, "share": 4 / 7, "level": 0.0775, "runs": 2, "running": 900}
    prod |= {"guarantee": {"vcpus": 256}, "used": {"usdPerHour": 22.5, "vcpus": 320.0, "gpus": 0, "instances": 40.0}}
    night = {"guarantee": {"instances": 5}, "lend": False, "level": None, "share": 0.0, "preemptible": True}
    quota = {"region": "us-east-1", "purchase": "spot"}
    return sharing(
        queues=[
            queue(
                "default", owners=None, runs=0, running=0, waiting=0, use=0.0, share=1 / 7, lately=[], **_ROOM | _IDLE
            ),
            queue("research", 2, **_ROOM | {"preemptible": True} | research),
            queue("prod", 4, owners=None, lately=[{"owner": None, "use": 0.31, "factor": 1.609375}], **_ROOM | prod),
            queue("night", 0, owners=None, lately=[], **_ROOM | night),
        ],
        document={"version": 1, "halfLife": "24h", "reclaim": {"by": "preempt"}, "queues": {"prod": {"weight": 4}}},
        halfLifeSeconds=86_400.0,
        usdPerHour={"used": 71.2, "limit": 120.0},
        quotas=[
            {**quota, "family": "standard", "vcpus": 1_000, "left": 152, "used": {"research": 496.0, "prod": 320.0}},
            {**quota, "family": "g", "vcpus": 64, "left": -8, "used": {"research": 72.0}},
        ],
    )


_IDLE = {"level": 0.0, "used": {"usdPerHour": 0.0, "vcpus": 0.0, "gpus": 0, "instances": 0.0}}
