"""The run specs and programs that come with Argosy: in `containers/` here, or in the installed package."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path("containers")


def example(name: str) -> Path:
    """The path of `digits/run.yaml` and the like: as short as possible, since users may type it again."""
    from argosy.local.options import images_folder

    here = FOLDER / name
    return here if here.exists() else images_folder() / name
