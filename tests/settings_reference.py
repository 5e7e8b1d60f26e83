"""The reference page of a deployment's settings: each name, its default and its meaning."""

from __future__ import annotations

import json

from argosy.settings.settings import Settings

MEANINGS = {
    "stage": "Name of the deployment; another stage is an independent one. Set it with `STAGE=NAME make deploy`.",
    "cells": "Regions, up to 8. The first is home and cannot change.",
    "zones": "Availability zones of a Region, up to 6; otherwise three.",
    "instanceTypes": "The types that may be bought, CPU and GPU types separately.",
    "offered": "Corrections to the types that a Region offers: `{REGION: {add: [...], remove: [...]}}`.",
    "maxInstances": "Most instances, running or ordered, up to 10,000.",
    "minInstances": "Instances kept while runs are open.",
    "headroom": "Room for further tasks, kept while runs are open: `[{places: N, vcpus: V, memory: MIB, ...}]`.",
    "minIdle": "Idle instances kept at all times. They cost day and night.",
    "maxTypeShare": "Largest share of all CPU in one type, if there is a choice.",
    "maxCellShare": "Largest share of all CPU in one cell, if there is a choice.",
    "vcpuQuotas": "vCPUs to use of each EC2 quota: `{REGION: {spot: {FAMILY: N}, onDemand: {...}}}`.",
    "capacityReservations": "Capacity Reservations and Blocks to use first: `{REGION: [ID or ARN of a group, ...]}`.",
    "lingerSeconds": "How long an idle instance is kept.",
    "lingerByType": "The same by type: `{GLOB: SECONDS}`; the first matching glob counts.",
    "diskGiB": "Volume size by type; otherwise 60, with GPUs 150.",
    "volumeInitializationMibps": "MiB/s from 100 to 300, by type, at which EC2 fills a new volume from the AMI's "
    "snapshot. AWS charges for it on each new volume.",
    "imagesOnInstanceStorage": "Images go to the instance's own NVMe disk, where one is as large as the volume.",
    "maxTasksPerInstance": "Most tasks on an instance by type; otherwise 1,023.",
    "attributes": "Attributes for placement constraints: `{GLOB: {NAME: VALUE}}`; all matching globs apply.",
    "coolDownSeconds": "How long an idle instance is kept after an order for its type.",
    "imagePullSeconds": "The longest pull of an image. A task that is PENDING for longer is stopped and tried again.",
    "priceCaps": "Highest EC2 price: `perInstanceHour`, `perVcpuHour`, `perGpuHour`, in USD.",
    "capacityManager": "Ask EC2 Capacity Manager, which you must enable, how often the account was interrupted.",
    "placementScores": "Let EC2's spot placement scores change prices by up to 10 %.",
    "stopTimeoutSeconds": "Time from SIGTERM to SIGKILL, 2 to 110. A spot warning leaves 120 s.",
    "results": "What `make destroy` does with the results bucket: `retain` or `destroy`.",
    "outputBuckets": "Other buckets that runs may write to.",
    "inputBuckets": "Other buckets that tasks may read.",
    "inputDays": "When uploaded inputs are deleted after their last use, in days; 0 keeps them.",
    "checkpointDays": "When checkpoints are deleted after they were saved, in days from 7 on; 0 keeps them.",
    "fitnessFunctions": "Placement functions that specs may name: `module:function`.",
    "gpuShareAcrossOwners": "Whether tasks of several owners may [share a GPU](../guides/gpus.md#a-part-of-a-gpu).",
    "gangs": "Allow [gangs](../guides/gangs.md), whose tasks have their instance's network.",
    "allowExec": "Allow `argosy exec` (ECS Exec).",
    "allowInterrupt": "Allow `argosy interrupt` (AWS Fault Injection Service).",
    "allowSsm": "Allow a shell on instances with Session Manager (`AmazonSSMManagedInstanceCore`).",
    "sessionOwners": "Globs of roles whose session names identify owners.",
    "taskDefinitions": "Globs of further task definition families that runs may name.",
    "targetGroups": "Target groups for services: `{NAME: ARN}`, up to 10.",
    "logRetentionDays": "How long logs are kept.",
    "journalDays": "How long decisions are recorded for `argosy explain RUN --at TIME`; 0 records none.",
    "subnets": "How instances reach AWS: `public`, `nat` or `private`.",
    "vpcs": "Your own VPCs: `{REGION: {vpcId: ID, subnets: {ZONE: ID}}}`.",
    "amis": "AMIs by Region: `cpu`, `gpu`, `cpuArm64`, `gpuArm64`.",
    "images": "Folders of `containers/` to publish, or true for all.",
    "examples": "Also deploy the example images and their task definitions.",
    "baseImage": "Base of all images, in place of `python:3.12-slim`.",
    "python": "Python version of `argosy/python`: 3.11 to 3.14.",
    "inferenceModel": "keras.applications model inside the inference image.",
    "bootstrapQualifier": "Qualifier of the CDK's bootstrap, as `@aws-cdk/core:bootstrapQualifier`.",
    "permissionsBoundary": "Policy, by name or ARN, that bounds every role of the stacks.",
    "tags": "Tags on everything that is deployed: `{KEY: VALUE}`. A later change replaces the fleets.",
    "reservedConcurrency": "Reserved concurrency of the controller function.",
    "alarms": "Make alarms. 0.10 USD a month for each of their metrics, beyond the account's first ten.",
    "dashboard": "Make the dashboard. 3 USD a month, beyond the account's first three.",
    "alarmEmail": "Address that alarms notify.",
}


def page() -> str:
    """Every setting, in the order of the model. Raises KeyError if one has no meaning here."""
    lines = ["# Settings", "", "Written by `make reference`; do not edit.", ""]
    lines += ["Put settings into `cdk.json` under `context.argosy`, or pass them as `-c NAME=VALUE` in `ARGS`.", ""]
    lines += ["| setting | default | meaning |", "| -- | -- | -- |"]
    defaults = json.loads(Settings().model_dump_json(by_alias=True))
    lines += [f"| `{name}` | {_default(value)} | {MEANINGS[name]} |" for name, value in defaults.items()]
    return "\n".join([*lines, ""])


def _default(value: object) -> str:
    """Compact JSON; empty for a default that says nothing."""
    if isinstance(value, dict):
        return "<br>".join(f"{name}: {_default(each)}" for name, each in value.items() if each)
    if isinstance(value, list):
        return ", ".join(f"`{each}`" for each in value)
    return "" if value is None else f"`{json.dumps(value)}`"
