"""Run specs as users write them, and their faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.spec.faults import SpecError
from argosy.spec.parse import parse_spec

ROOT = Path(__file__).resolve().parents[2]


def spec(**fields: Any) -> dict[str, Any]:
    """A good spec with these fields in place of its own; None takes one away."""
    data: dict[str, Any] = {
        "version": 1,
        "name": "digits",
        "container": {"image": "argosy/digits"},
        "array": {"range": "0:100", "shardSize": 10},
        **fields,
    }
    return {name: value for name, value in data.items() if value is not None}


def container(*command: str, **fields: Any) -> dict[str, Any]:
    return {"image": "argosy/digits", **({"command": list(command)} if command else {}), **fields}


def faults(data: Any) -> list[str]:
    with pytest.raises(SpecError) as refusal:
        parse_spec(data)
    return [fault.text() for fault in refusal.value.faults]


GOOD: list[dict[str, Any]] = [
    {"container": None, "run": ["python", "primes.py", "${start}"], "workdir": ".", "packages": ["numpy>=2", "x[y]"]},
    {"container": {"image": "debian:12"}, "run": 'sort < "${range}"', "setup": "make\nmake install"},
    {"run": ["x"], "inputs": "s3://bucket/${index}/", "result": "stdout", "job": "s3://own/a.json"},
    {"run": ["x"], "inputs": ["s3://bucket/", "s3://bucket/a b"], "result": "none"},
    {"name": "a"},
    {"name": "a" * 63},
    {"container": container(image="123456789012.dkr.ecr.us-east-1.amazonaws.com/team/tf:2.17_gpu")},
    {"container": container(image="localhost:5000/x")},
    {"container": container(image="argosy/digits@sha256:" + "0f" * 32)},
    {"resources": {"vcpus": 0.25, "memory": 6, "gpus": 8}},
    {"resources": {"gpuShare": {"memoryMib": 8000, "maxComputePercent": 25}, "gpuModel": "L4"}},
    {"array": {"size": 1_000_000}},
    {"array": {"range": "0:1000000"}},
    {"array": {"itemsFrom": "s3://bucket/items.jsonl"}},
    {"array": {"size": 1, "partSuffix": ""}},
    {"output": "s3://bucket"},
    {"output": "s3://bucket/a/b-c_d.e/"},
    {"tags": {"team": "vision", "a b": "ü/x@y"}},
    {"retryStrategy": {"attempts": 10, "evaluateOnExit": [{"onReason": "OutOfMemory*", "action": "EXIT"}]}},
    {"container": container("${item}", "${item.a-b_c}"), "array": {"items": [{"a-b_c": 1}]}},
    {"capacity": {"purchase": "on-demand", "maxInstances": 8}},
    {"container": container(hostPorts=[1, 8080, 65_535, "53/udp", "53/tcp"])},
    {"container": container(hostPorts=list(range(8000, 8094)))},
    {"placement": {"group": "team/a:b_c-d.e", "maxTasksPerInstance": 1}},
    {"placement": {"group": "g" * 255, "affinity": ["g" * 255], "antiAffinity": ["run:x"]}},
    {"placement": {"softConstraints": [{"expression": "distinctInstance", "weight": 1_000_000}]}},
    {"placement": {"affinity": [], "antiAffinity": [], "softConstraints": []}},
]
