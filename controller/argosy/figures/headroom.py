"""The room that is kept for further tasks, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.figures.numbers import counted, money

SHOWN = 3  # instances


def said_headroom(headroom: Mapping[str, Any]) -> str:
    """headroom: as DescribeCluster has it."""
    sizes, names = " and ".join(map(_size, headroom["sizes"])), headroom["instances"]
    shown = ", ".join([*names[:SHOWN], *(["..."] if names[SHOWN:] else [])])
    price = f"{counted(len(names), 'instance')} without tasks for {money(headroom['usdPerHour'])} an hour ({shown})"
    kept = f"; it keeps {price}" if names else ""
    short = f"; some of it is missing: {headroom['waiting']}" if headroom["waiting"] else ""
    return f"While runs are open, room is kept for {sizes}{kept}{short}."


def _size(each: Mapping[str, Any]) -> str:
    gpus = f", {counted(each['gpus'], 'GPU')}" if each["gpus"] else ""
    share = f", {each['gpuShareMib']:,} MiB of a GPU" if each["gpuShareMib"] else ""
    needs = f"{each['vcpus']:g} vCPU, {each['memoryMib']:,} MiB{gpus}{share}"
    return f"{counted(each['places'], 'task')} of {needs} on {each['purchase']}"
