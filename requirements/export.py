"""Which exact packages does each environment hold? Writes the hashed requirement files from pyproject.toml's groups.

    python requirements/export.py             write them again; what is pinned stays as it is
    python requirements/export.py --upgrade   with the newest versions that pyproject.toml allows
    python requirements/export.py --check     say whether pyproject.toml has changed since (needs no network)

The files are the project's lock. They name no registry (users have their own) and serve every platform and every
Python from 3.11 on by markers. `dev.txt` comes first and holds all the others to its versions, but for
those of environments that stand apart.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_MARK = "# Made by `make requirements` from"


@dataclass(frozen=True)
class Export:
    """One file: its path, and where its direct requirements stand (a source and, of pyproject.toml, a group)."""

    path: str
    source: str = "pyproject.toml"
    group: str | None = None
    only_group: bool = False
    python: str = "3.11"
    apart: bool = False  # its own environment, which shares no version with the others


EXPORTS = (
    Export("requirements/dev.txt", group="dev"),
    Export("requirements.txt", group="cdk"),
    Export("requirements/local.txt", group="local"),
    Export("requirements/controller.txt", group="functions"),
    Export("requirements/install.txt", group="install", only_group=True),
    Export("containers/digits/requirements.txt", source="containers/digits/requirements.in", python="3.12"),
    Export("containers/sweep/requirements.txt", source="containers/sweep/requirements.in", python="3.12"),
    # From 3.11 on, because .venv-tensorflow is made from these too.
    Export("requirements/tensorflow.txt", source="requirements/tensorflow.in"),
    Export("requirements/checkov.txt", source="requirements/checkov.in", apart=True),  # it pins others than ours
    Export("requirements/runner.txt", source="requirements/runner.in", apart=True),
    Export("requirements/docs.txt", source="requirements/docs.in", apart=True),
    *(
        Export(f"containers/{image}/requirements-{flavour}.txt", source=f"containers/{image}/requirements-{flavour}.in")
        for image in ("tensorflow-inference", "tensorflow-benchmark", "recommender")
        for flavour in ("cpu", "gpu")
    ),
    *(
        Export(f"{path}-{flavour}.txt", source=f"{path}-{flavour}.in")
        for path in ("containers/shared/requirements-pytorch",)
        for flavour in ("cpu", "gpu")
    ),
)


def digest(export: Export) -> str:
    """Twelve hexadecimal digits of SHA-256 over everything that the file is made from."""
    text = (ROOT / export.source).read_text()
    if export.source.endswith(".toml"):
        tables = tomllib.loads(text)
        project = tables["project"]
        wanted = [project["dependencies"], project["requires-python"], tables["dependency-groups"]]
        text = json.dumps(wanted, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def header(export: Export) -> str:
    return f"{_MARK} {export.source} ({digest(export)}): do not edit\n"


def stale() -> list[str]:
    """The files that are missing or were made from other requirements than today's."""
    return [e.path for e in EXPORTS if not (ROOT / e.path).is_file() or _first_line(ROOT / e.path) != header(e)]


def _first_line(path: Path) -> str:
    with path.open() as lines:
        return lines.readline()


def _command(export: Export, uv: str, *, upgrade: bool) -> list[str]:
    command = [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate"]
    # Before pip 24 a requirement with an extra is not met by a pin without it: `coverage[toml]` of pytest-cov.
    command += ["--no-strip-extras", "--no-emit-index-url", "--no-config"]
    command += ["--python-version", export.python, "--output-file", export.path]
    command += ["--upgrade"] if upgrade else []
    command += [] if export is EXPORTS[0] or export.apart else ["--constraints", EXPORTS[0].path]
    command += [] if export.only_group else [export.source]
    return command + (["--group", export.group] if export.group else [])


def write(uv: str, *, upgrade: bool) -> None:
    """Raises subprocess.CalledProcessError when the requirements contradict each other; uv has said why."""
    for export in EXPORTS:
        subprocess.run(_command(export, uv, upgrade=upgrade), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        path = ROOT / export.path
        path.write_text(header(export) + path.read_text())
        print(f"wrote {export.path}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write or check the hashed requirement files.")
    parser.add_argument("--uv", default="uv", help="the uv to call")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    parser.add_argument("--check", action="store_true", help="only say whether they are up to date")
    chosen = parser.parse_args()
    if not chosen.check:
        write(chosen.uv, upgrade=chosen.upgrade)
        return 0
    old = stale()
    if old:
        print(f"out of date: {', '.join(old)}; type `make requirements`", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
