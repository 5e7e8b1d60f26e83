"""Containers that a killed local mode left behind: those with the label of the port that is ours now."""

from __future__ import annotations

import subprocess


def label(port: int) -> str:
    """Of every container of the local mode on this port."""
    return f"argosy.local.port={port}"


def remove_leftovers(engine: str, port: int) -> None:
    """Only for the local mode that listens on the port: any earlier one is gone. Containers that the engine cannot
    remove stay,
    and prevent no start under podman. Raises OSError if there is no such engine.
    """
    found = _ask(engine, "ps", "--all", "--quiet", "--filter", f"label={label(port)}").stdout.split()
    if found:
        _ask(engine, "rm", "--force", *found)


def _ask(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
