"""The folders of Argosy's own modules and images on this machine."""

from __future__ import annotations

import platform
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def package_root() -> Path:
    """The folder that `argosy` is imported from."""
    return Path(__file__).resolve().parents[2]


def images_folder() -> Path:
    """Inside the package when it was installed from a wheel, else `containers/` of the checkout."""
    shipped = package_root() / "argosy" / "containers"
    return shipped if shipped.is_dir() else package_root().parent / "containers"


def is_checkout() -> bool:
    """Whether this is a checkout, where `make` can be typed, and no installed package."""
    return (package_root().parent / "Makefile").is_file()


def runner_file() -> Path:
    """Where `make runner` puts the init of containers for this machine; it may not exist yet."""
    machine = platform.machine()
    return package_root().parent / "build" / "runner" / _ARCHITECTURES.get(machine, machine) / "argosy-runner"
