"""`make gpu-check`: whole GPUs, shares, their memory, training and inference, in local mode. Offline, four minutes.

It needs a GPU, PyTorch and nvidia-cuda-mps-control. What is missing is named, and its rows say "not run". Exit codes:
0 unless a part failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

import argosy
from argosy.catalogue.lookup import load_catalogue
from argosy.cli.session import Session
from argosy.cli.tables import PlainTable
from argosy.local.cloud import LocalAws
from argosy.local.deployment import local_settings
from argosy.local.gpus import Gpu, described, find_gpus, fitting_types
from argosy.local.mps import why_not_shared
from argosy.local.options import LocalOptions
from tests.harness.gpu_check.parts import PARTS, TASKS, Bench, Row, not_run, run
from tests.harness.programs import program

PYTHONS = (".venv-pytorch/bin/python", "python3", "/usr/bin/python3")
ASKED = "import torch; print(torch.__version__, torch.cuda.is_available())"
USABLE = 0.9  # of the memory of a GPU or an instance


def gpu_check(
    session: Session,
    python: Annotated[str, typer.Option("--python", metavar="PATH", help="Python with PyTorch.")] = "",
    parts: Annotated[list[str] | None, typer.Option("--part", metavar="NAME", help="Only this part; repeat.")] = None,
    on_cpu: Annotated[bool, typer.Option("--on-cpu", help="PyTorch without a GPU; speeds prove nothing.")] = False,
) -> None:
    """Does Argosy do on this machine's GPU what its documents say?"""
    began, gpus = time.monotonic(), find_gpus()
    found = next(filter(None, map(pytorch_of, (python,) if python else PYTHONS)), None)
    reason = why_not(gpus, found, on_cpu=on_cpu)
    names = [name for name in PARTS if not parts or name in parts]
    ran = checked(gpus, found[0], names, on_cpu=on_cpu) if found and not reason else not_run(names, reason)
    rows = list(ran)
    session.console.print(f"GPU: {described(gpus) or 'none'}; PyTorch {found[1] if found else 'none'}.")
    session.console.print(table(rows))
    session.console.print(f"{time.monotonic() - began:.0f} s")
    sys.exit(any(row.enough is False for row in rows))


def pytorch_of(python: str) -> tuple[str, str, bool] | None:
    """A Python's full path, its PyTorch's version, and whether that has a GPU; None without PyTorch."""
    words = [python, "-c", f"import sys; {ASKED}; print(sys.executable)"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    version, has_gpu = said[-2].split()
    return said[-1], version, has_gpu == "True"


def why_not(gpus: tuple[Gpu, ...], found: tuple[str, str, bool] | None, *, on_cpu: bool) -> str:
    """Why nothing can be checked; "" if all can."""
    if not gpus:
        return "this machine has no GPU"
    if found is None:
        return "no Python with PyTorch"
    if not (found[2] or on_cpu):
        return f"PyTorch {found[1]} sees no GPU"
    return why_not_shared(gpus)


def checked(gpus: tuple[Gpu, ...], python: str, names: Sequence[str], *, on_cpu: bool) -> Iterator[Row]:
    names_of_types = fitting_types(gpus, os.cpu_count() or 1)
    types = [load_catalogue()[name] for name in names_of_types]
    gpu_mib = min(gpus[0].memory_mib, *(each.gpu_memory_mib for each in types))
    share_mib = min(8000, int(gpu_mib * USABLE) // TASKS)
    memory_mib = int(min(each.registered_memory_mib for each in types) * USABLE)
    settings, pythons = local_settings(names_of_types), {"pytorch-*": python}
    options = LocalOptions(settings, gpus=gpus, pythons=pythons, boot_s=0.2, tick_s=0.3, processes=TASKS)
    with tempfile.TemporaryDirectory() as scratch, LocalAws(options=options) as aws:
        client = argosy.Client(endpoint_url=aws.endpoint_url, region="us-east-1")
        yield from run(Bench(client, gpus, share_mib, memory_mib, python, Path(scratch), on_cpu), names)


def table(rows: Iterable[Row]) -> PlainTable:
    grid = PlainTable("PART", "WANTED", "FOUND", "VERDICT", least=())
    for row in rows:
        verdict = "-" if row.enough is None else "ok" if row.enough else "FAILED"
        grid.add_row(row.part, row.wanted, row.found, verdict)
    return grid


if __name__ == "__main__":
    program(gpu_check)()
