"""What may a value of each field of a run spec look like? For editors, through the JSON Schema, and for the reference.

By the names of the models, then of the fields as users write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "RunSpec": {
        "version": 1,
        "kind": "service",
        "service": {"desired": 3},
        "daemon": {"instances": "attribute:ecs.instance-type =~ m5.*"},
        "name": "nightly-scores",
        "taskDefinition": "my-family:3",
        "dependsOn": [{"run": "prepare-261121-062733-k3f9"}],
        "notBefore": "2026-11-21T18:00:00Z",
        "output": "s3://my-bucket/results/",
        "compat": "aws-batch",
        "tags": {"team": "search"},
        "queue": "research",
        "owner": "alice",
        "priority": 10,
        "run": ["python", "primes.py", "${start}", "${end}"],
        "workdir": ".",
        "setup": "pip install --no-index ./vendored",
        "packages": ["pandas", "numpy>=2"],
        "job": "s3://my-bucket/argosy/programs/jobs/3f2a.json",
        "inputs": ["s3://my-bucket/images/${index}/"],
        "result": "folder",
        "container": {"image": "argosy/digits", "command": ["--range", "${range}"]},
        "resources": {"vcpus": 2, "memory": 4096},
        "array": {"range": "0:1000", "shardSize": 50},
        "placement": {"maxConcurrentTasks": 200},
        "capacity": {"budgetUsd": 5},
        "retryStrategy": {"attempts": 3},
        "timeout": {"attemptDurationSeconds": 1800},
    },
    "DaemonSpec": {
        "instances": "attribute:ecs.instance-type =~ m5.*",
        "update": {"minHealthyPercent": 80, "order": "stop-first"},
    },
    "DaemonUpdateSpec": {
        "minHealthyPercent": 80,
        "order": "start-first",
        "healthySeconds": 30,
        "progressSeconds": 900,
        "rollback": False,
    },
    "ServiceSpec": {"desired": 3, "update": {"maxOverPercent": 50}},
    "UpdateSpec": {
        "minHealthyPercent": 90,
        "maxOverPercent": 25,
        "healthySeconds": 30,
        "progressSeconds": 600,
        "rollback": True,
    },
    "DependencySpec": {"run": "prepare-261121-062733-k3f9", "type": "N_TO_N", "on": "success"},
    "ContainerSpec": {
        "image": "argosy/digits",
        "command": ["python", "work.py", "--range", "${range}"],
        "environment": {"LEVEL": "debug"},
        "hostPorts": [8080, "53/udp"],
    },
    "ResourcesSpec": {
        "vcpus": 2,
        "memory": 4096,
        "gpus": 1,
        "gpuModel": "A100",
        "gpuMemoryMib": 40000,
        "diskGiB": 50,
        "architecture": "arm64",
    },
    "ArraySpec": {
        "range": "0:1000",
        "shardSize": 50,
        "size": 100,
        "items": [{"lr": 0.1}, {"lr": 0.01}],
        "itemsFrom": "s3://my-bucket/items.jsonl",
        "expectedSeconds": 30,
        "partSuffix": ".jsonl",
    },
    "PlacementSpec": {
        "constraints": ["attribute:ecs.instance-type =~ c5.*"],
        "strategy": ["spread:attribute:ecs.availability-zone", "binpack:memory"],
        "maxConcurrentTasks": 200,
        "group": "nightly",
        "maxTasksPerInstance": 4,
        "softConstraints": [{"expression": "distinctInstance", "weight": 1}],
        "affinity": ["cache"],
        "antiAffinity": ["training"],
    },
    "SoftConstraintSpec": {
        "expression": "attribute:ecs.instance-type =~ c7i.*",
        "weight": 5,
    },
    "CapacitySpec": {
        "purchase": "spot-then-on-demand",
        "deadline": "6h",
        "fallback": {"afterWaitSeconds": 900},
        "onDemandBase": 2,
        "cells": ["us-east-1", "eu-west-1"],
        "maxInstances": 100,
        "transferGbPerTask": 0.5,
        "maxHourlyCost": 20,
        "budgetUsd": 5,
        "onCap": "finish",
    },
    "FallbackSpec": {
        "afterWaitSeconds": 900,
        "afterInterruptions": 2,
    },
    "RetrySpec": {
        "attempts": 3,
        "evaluateOnExit": [{"onExitCode": "64", "action": "EXIT"}],
    },
    "ExitRuleSpec": {
        "onExitCode": "64",
        "onReason": "OutOfMemoryError*",
        "onStatusReason": "Host EC2*",
        "action": "EXIT",
    },
    "TimeoutSpec": {
        "attemptDurationSeconds": 1800,
        "runDurationSeconds": 86400,
    },
    "EnvironmentEntry": {"name": "LEVEL", "value": "debug"},
}
