"""botocore's service models, found and read once per process.

Each boto3 session looks for them and parses them again: 0.9 s of CPU time for those that local mode needs. A test
process makes hundreds of sessions.
"""

from __future__ import annotations

import os

import botocore.session
from botocore.loaders import Loader


class Folders(list[str]):
    """Each once, although each session of boto3 adds its own."""

    def append(self, folder: str) -> None:
        if folder not in self:
            super().append(folder)


def keep() -> None:
    """From now on, all sessions of this process have one loader."""
    loader = Loader(extra_search_paths=Folders())

    def shared(folders: str | None = None) -> Loader:
        for folder in filter(None, (folders or "").split(os.pathsep)):  # the AWS CLI adds its own service models
            loader.search_paths.append(folder)
        return loader

    botocore.session.create_loader = shared
