"""The account of a command's arguments: that of `--profile`, else the shell's, as the CDK takes it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import boto3


def profile_of(arguments: Sequence[str]) -> str | None:
    """The `--profile` of a cdk command line, whose other arguments are ignored."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile")
    profile: str | None = parser.parse_known_args(list(arguments))[0].profile
    return profile


def client(service: str, region: str, profile: str | None) -> Any:
    """Raises botocore's ProfileNotFound."""
    return boto3.Session(profile_name=profile).client(service, region_name=region)
