"""What the tasks of a run used of what they asked for: figures for the pages of the run and of a task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from argosy.client.gpu_use import MeasuredUse
from argosy.client.gpu_use import sentence as gpu_sentence
from argosy.client.measurements import Column, MeasuredAttempt
from argosy.client.task_use import MeasuredTask, sentence
from argosy.figures import axes, svg
from argosy.figures.document import Figure, Table
from argosy.figures.history import Floats
from argosy.figures.numbers import duration

_KINDS = {"computing": "2", "vCPUs": "0", "memory": "1"}


def gpu_use(uses: Sequence[MeasuredUse], advice: str = "") -> Figure:
    """Over time of the attempt that was measured longest, and a row for each. advice: what would be enough."""
    longest = max(uses, key=lambda each: each.at[-1])
    drawn = {"computing": _parts(longest.use, 100.0), "memory": _parts(longest.memory_mib, longest.has_mib)}
    rows = [
        (f"{each.index}", f"{each.attempt}", f"{each.gpus} x {each.name}", _asked(each), gpu_sentence([each]))
        for each in uses
    ]
    table = Table((">Task", ">Attempt", "GPUs", "Asked for", "Used"), rows, stacks=True)
    figure = _over_time(("gpu-use", "Use of GPUs"), longest, drawn, _note(gpu_sentence(uses), advice))
    return replace(figure, table=table)


def task_use(uses: Sequence[MeasuredTask], view: Mapping[str, Any], advice: str = "") -> Figure:
    """The same of vCPUs and memory. view: what a task asks for, as DescribeRun's."""
    longest = max(uses, key=lambda each: each.at[-1])
    drawn = {
        "vCPUs": _parts(longest.vcpus, view.get("vcpus") or longest.peak_vcpus),
        "memory": _parts(longest.memory_mib, view.get("memoryMib") or longest.peak_mib),
    }
    rows = [(f"{each.index}", f"{each.attempt}", sentence([each], view)) for each in uses]
    note = _note(sentence(uses, view), advice)
    figure = _over_time(("use", "Use of vCPUs and memory"), longest, drawn, note)
    return replace(figure, table=Table((">Task", ">Attempt", "Used"), rows, stacks=True))


def _over_time(name: tuple[str, str], of: MeasuredAttempt, drawn: Mapping[str, Floats], note: str) -> Figure:
    """A line for each series whose values are known, as parts of what was asked for."""
    known = {label: values for label, values in drawn.items() if not np.isnan(values).all()}
    most = max(1.0, *(float(np.nanmax(values)) for values in known.values()))
    step = 0.25 * max(1, math.ceil(most / 2))  # processes of this machine may use more than they ask for
    ticks = [(step * place, f"{100 * step * place:.0f} %") for place in range(math.ceil(most / step) + 1)]
    said = f"Use by task {of.index} over {duration(of.at[-1])}, of what it asked for."
    frame = svg.Frame(
        axes.seconds(0.0, of.at[-1]),
        axes.Axis(0.0, ticks[-1][0], ticks),
        "since it started",
        f"of task {of.index}",
        said,
    )
    at = np.array(of.at)
    lines = [(at, svg.Layer(label, _KINDS[label], values, _last(values))) for label, values in known.items()]
    return Figure(*name, note=note, picture=svg.lines(frame, lines))


def _note(used: str, advice: str) -> str:
    return f"{used}. {advice}" if advice else f"{used}."


def _asked(use: MeasuredUse) -> str:
    return f"{use.share_mib:,} MiB of one" if use.share_mib else "whole"


def _parts(column: Column, whole: float | None) -> Floats:
    return np.array([np.nan if value is None else value for value in column], dtype="f8") / (whole or 1.0)


def _last(parts: Floats) -> str:
    known = parts[~np.isnan(parts)]
    return f"{100 * known[-1]:.0f} %"
