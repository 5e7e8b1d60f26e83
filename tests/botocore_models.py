"""botocore's descriptions of the services, read once per process.

Each boto3 session parses the JSON of every service that it makes a client of: 0.9 s of processor time for those that
local mode needs. A test process makes hundreds of sessions.
"""

from __future__ import annotations

from functools import cache

from botocore.loaders import JSONFileLoader


def keep() -> None:
    """From now on, every session of this process shares what was parsed."""
    read = JSONFileLoader.load_file
    kept = cache(lambda path: read(JSONFileLoader(), path))
    JSONFileLoader.load_file = lambda _, path: kept(path)
