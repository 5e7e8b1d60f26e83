"""botocore's descriptions of the services, found and read once per process.

Each boto3 session looks for them and parses them again: 0.9 s of processor time for those that local mode needs. A test
process makes hundreds of sessions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import boto3.session
import botocore.session
from botocore.loaders import create_loader


def keep() -> None:
    """From now on, all sessions of this process have one loader."""
    loader = create_loader(str(Path(boto3.__file__).parent / "data"))

    def set_up(session: Any) -> None:
        session._loader = loader  # its own way adds the folder of boto3's data to the search path again

    botocore.session.create_loader = lambda _path=None: loader
    boto3.session.Session._setup_loader = set_up
