"""Where do Argosy's own modules and images lie on this machine?"""

from __future__ import annotations

from pathlib import Path


def package_root() -> Path:
    """The folder that `argosy` is imported from."""
    return Path(__file__).resolve().parents[2]


def images_folder() -> Path:
    """Inside the package when it was installed from a wheel, else `containers/` of the checkout."""
    shipped = package_root() / "argosy" / "containers"
    return shipped if shipped.is_dir() else package_root().parent / "containers"
