"""The code and the libraries that made a decision."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import argosy

# What a decision is a function of. What reads messages is not among it: facts are recorded as they were read.
DECIDING = ("catalogue", "engine", "lifecycle", "market", "model", "placement", "scheduler")
LIBRARIES = ("numpy", "highspy")


@cache
def code_digest() -> str:
    """Digest of the files that decide, with the catalogue's figures: 16 hexadecimal digits."""
    root = Path(argosy.__file__).parent
    digest = hashlib.sha256()
    for folder in DECIDING:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".lark", ".json"):
                digest.update(f"\0{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def platform_now() -> dict[str, str]:
    """Floating-point results, and so decisions, may differ between machines and between versions of these."""
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a bundle may leave the metadata of its packages out
        return "unknown"
