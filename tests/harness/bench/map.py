"""How long do many short calls take (`bench map`)? `argosy.map` in local mode beside libraries that do the same.

Each library runs in a separate process: it starts its workers, makes a few calls to warm up, and is then timed from the
call of its map to the last result. Arguments that are left out keep the library's defaults.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from argosy.cli.session import Session
from argosy.cli.tables import PlainTable
from argosy.local.clients import child_environment
from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions

PATIENCE_S = 600.0
WARM_UP = 8  # calls
NOT_INSTALLED = 3
PROGRAM = """
import os, sys, time

def square(x):
    return x * x

def timed(way):
    list(way(range({warm_up})))
    begin = time.perf_counter()
    found = list(way(range({calls})))
    print(time.perf_counter() - begin)
    assert found == [x * x for x in range({calls})]

if __name__ == "__main__":
    try:
        {imports}
    except ImportError:
        sys.exit({not_installed})
    {body}
"""
# By name: what the program imports, and what it does then.
WAYS = {
    "argosy.map": ("import argosy", "timed(lambda items: argosy.map(square, items))"),
    "concurrent.futures": (
        "from concurrent.futures import ProcessPoolExecutor",
        "with ProcessPoolExecutor() as pool: timed(lambda items: pool.map(square, items))",
    ),
    "joblib": (
        "from joblib import Parallel, delayed",
        "with Parallel(n_jobs=-1) as pool: timed(lambda items: pool(delayed(square)(x) for x in items))",
    ),
    "dask": (
        "from dask.distributed import Client",
        "with Client(dashboard_address=None) as client: timed(lambda items: client.gather(client.map(square, items)))",
    ),
    "ray": (
        "import ray",
        "ray.init(logging_level='error'); call = ray.remote(square);"
        " timed(lambda items: ray.get([call.remote(x) for x in items]))",
    ),
}


@dataclass(frozen=True)
class Calls:
    """What is called, and by which Python."""

    calls: Annotated[int, typer.Option(min=1, help="Number of calls.")] = 10_000
    python: Annotated[Path, typer.Option(help="A Python that has the other libraries.")] = Path(sys.executable)


@dataclass(frozen=True)
class MapTime:
    """One way. seconds: None if its library is not installed."""

    by: str
    seconds: float | None


def map(session: Session, calls: Calls) -> None:
    """Call a function with every number, by argosy.map in local mode and by other libraries, one after the other."""
    with LocalAws(options=LocalOptions()) as aws, TemporaryDirectory(prefix="argosy-bench-") as folder:
        assert aws.key is not None
        there = child_environment(aws.endpoint_url, aws.region, aws.key)
        there |= {"ARGOSY_ENDPOINT_URL": aws.endpoint_url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        rows = list(_timed(Path(folder), calls, there))
    if session.wants_json:
        session.print_json({"rows": [asdict(row) for row in rows]})
        return
    table = PlainTable("BY", f">SECONDS FOR {calls.calls:,} CALLS")
    for row in rows:
        table.add_row(row.by, "not installed" if row.seconds is None else f"{row.seconds:.2f}")
    session.console.print(table)


def _timed(folder: Path, calls: Calls, there: Mapping[str, str]) -> Iterator[MapTime]:
    file = folder / "calls.py"
    for name, (imports, body) in WAYS.items():
        given = {"warm_up": WARM_UP, "calls": calls.calls, "imports": imports, "body": body}
        file.write_text(PROGRAM.format(**given, not_installed=NOT_INSTALLED), encoding="utf-8")
        is_ours = name == "argosy.map"
        words = [sys.executable if is_ours else str(calls.python), str(file)]
        environment = {**os.environ, **there} if is_ours else {**os.environ}
        done = subprocess.run(
            words, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False
        )
        if done.returncode not in (0, NOT_INSTALLED):
            raise OSError(f"the program of {name} ended with {done.returncode}")
        yield MapTime(name, None if done.returncode else float(done.stdout.split()[-1]))
